// vkops debug check --groups 6 --bind B2=uint32:6 --bind B4=uint32:1
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
layout(std430, binding = 2) buffer B2 { uint flags[]; };
layout(std430, binding = 3) buffer B3 { uint sums[]; };
layout(std430, binding = 4) buffer B4 { uint tickets; };

shared uint part[64]; shared uint before, ticket;
void main() { if (own == 0) ticket = atomicAdd(tickets, 1u); barrier(); uint group = ticket; i = group * 64 + own;
  part[own] = data[i]; barrier();
  for (uint s = 1; s < 64; s *= 2) { uint v = own >= s ? part[own - s] : 0u; barrier(); part[own] += v; barrier(); }
  if (own == 0) { uint sum = 0;
    if (group > 0) { while (atomicAdd(flags[group - 1], 0u) == 0u) {} memoryBarrierBuffer(); sum = sums[group - 1]; }
    sums[group] = sum + part[63]; memoryBarrierBuffer(); atomicExchange(flags[group], 1u); before = sum; }
  barrier(); result[i] = before + part[own]; }
