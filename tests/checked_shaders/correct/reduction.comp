// vkops debug check --groups 3 --bind B0=numbers_150.npy
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
shared uint part[64];
void main() { part[own] = i < data.length() ? data[i] : 0; barrier();
  for (uint s = 32; s > 0; s >>= 1) { if (own < s) part[own] += part[own + s]; barrier(); }
  if (own == 0) result[gl_WorkGroupID.x] = part[0]; }
