#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
bool find(uint wanted, out uint at) { for (uint k = 0; k < 8; ++k) if (data[k] == wanted) { at = k; return true; } return false; }
void main() { uint at; bool found = find(i, at); if (found && at > 2) result[i] = at; else result[i] = 0; }
