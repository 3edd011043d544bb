#version 450
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
void main() { uint v = data[i];
  for (uint s = 4; s > 0; s /= 2) v += subgroupShuffleXor(v, s);
  result[i] = v; }
