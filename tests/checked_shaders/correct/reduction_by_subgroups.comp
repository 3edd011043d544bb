// vkops debug check --groups 2
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
shared uint part[64];
void main() { uint sum = subgroupAdd(data[i]);
  if (subgroupElect()) part[gl_SubgroupID] = sum;
  barrier();
  if (own == 0) { uint total = 0; for (uint k = 0; k < gl_NumSubgroups; ++k) total += part[k];
    result[gl_WorkGroupID.x] = total; } }
