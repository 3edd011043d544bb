#version 450
#extension GL_KHR_shader_subgroup_shuffle_relative : require
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };

void main() { uint sum = data[i] + 1, lane = gl_SubgroupInvocationID;
  for (uint s = 1; s < 4; s *= 2) { uint left = subgroupShuffleUp(sum, s); sum += lane % 4 >= s ? left : 0u; }
  result[i] = sum; }
