#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
shared uint part[2][64];
void main() { uint now = 0; part[0][own] = data[i]; barrier();
  for (uint s = 1; s < 64; s *= 2) { part[1 - now][own] = part[now][own] + (own >= s ? part[now][own - s] : 0u);
    now = 1 - now; barrier(); }
  result[i] = part[now][own]; }
