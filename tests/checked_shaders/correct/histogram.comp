// vkops debug check --groups 4
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
shared uint bins[16];
void main() { if (own < 16) bins[own] = 0; barrier();
  atomicAdd(bins[data[i] % 16], 1u); barrier();
  if (own < 16) atomicAdd(result[own], bins[own]); }
