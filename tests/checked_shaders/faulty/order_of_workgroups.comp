// vkops debug check --groups 4 --bind Counter=uint32:1
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 2) buffer Counter { uint counter; };
void main() { if (own != 0) return; uint turn = atomicAdd(counter, 1u);
  result[gl_WorkGroupID.x] = turn * 3 + gl_WorkGroupID.x; //! order of workgroups
}
