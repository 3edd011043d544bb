#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
shared uint part[64];
void main() { part[own] = data[63 - own] * 7919u % 101u; barrier();
  for (uint k = 2; k <= 64; k *= 2) for (uint j = k / 2; j > 0; j /= 2) { uint other = own ^ j;
    if (other > own) { uint a = part[own], b = part[other]; if ((a > b) == ((own & k) == 0)) { part[own] = b; part[other] = a; } }
    barrier(); }
  result[own] = part[own]; }
