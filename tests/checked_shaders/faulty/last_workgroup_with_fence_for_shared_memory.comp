// vkops debug check --groups 4 --bind Counter=uint32:1
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 2) buffer Counter { uint counter; };
shared uint last;
void main() { result[i] = data[i];
  memoryBarrierShared(); barrier();
  if (own == 0) last = atomicAdd(counter, 1u);
  barrier(); if (last != gl_NumWorkGroups.x - 1) return;
  uint sum = 0;
  for (uint k = 0; k < gl_NumWorkGroups.x; ++k) sum += result[k * 64 + own]; //! data race
  part[own] = sum; }
