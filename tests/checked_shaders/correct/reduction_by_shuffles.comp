// vkops debug check --groups 2
#version 450
#extension GL_KHR_shader_subgroup_shuffle_relative : require
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
shared uint part[64];
void main() { uint sum = data[i], lane = gl_SubgroupInvocationID;
  for (uint s = gl_SubgroupSize / 2; s > 0; s /= 2) sum += subgroupShuffleDown(sum, s);
  if (lane == 0) part[gl_SubgroupID] = sum;
  barrier();
  if (own == 0) { for (uint k = 1; k < gl_NumSubgroups; ++k) sum += part[k]; result[gl_WorkGroupID.x] = sum; } }
