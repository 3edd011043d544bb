// vkops debug check --groups 4 --bind B2=uint32:1
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
layout(std430, binding = 2) buffer B2 { uint counter; };
layout(std430, binding = 3) buffer B3 { uint sums[]; };
shared uint last;
void main() { result[i] = data[i];
  memoryBarrierBuffer(); barrier();
  if (own == 0) last = atomicAdd(counter, 1u);
  barrier(); if (last != gl_NumWorkGroups.x - 1) return;
  uint sum = 0;
  for (uint k = 0; k < gl_NumWorkGroups.x; ++k) sum += result[k * 64 + own];
  sums[own] = sum; }
