#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
#extension GL_KHR_shader_subgroup_shuffle_relative : require
void main() { uint x = data[i];
  if (own % 4 == 3) x += subgroupShuffleUp(x, 1u); //! never written
  result[i] = x;
}
