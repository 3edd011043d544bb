// vkops debug check --groups 5 --bind B2=uint32:1
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint sums[]; };
layout(std430, binding = 2) buffer B2 { uint counter; };

shared uint part[64]; shared bool last;
void main() { part[own] = data[i]; barrier();
  for (uint s = 32; s > 0; s /= 2) { if (own < s) part[own] += part[own + s]; barrier(); }
  if (own == 0) { sums[gl_WorkGroupID.x + 1] = part[0]; memoryBarrierBuffer();
    last = atomicAdd(counter, 1u) == gl_NumWorkGroups.x - 1; }
  barrier();
  if (last && own == 0) { uint sum = 0;
    for (uint k = 1; k <= gl_NumWorkGroups.x; ++k) sum += sums[k];
    sums[0] = sum; } }
