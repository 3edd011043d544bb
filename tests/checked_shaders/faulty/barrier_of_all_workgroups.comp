// vkops debug check --groups 4 --bind Counter=uint32:1 --max-iterations 500
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 2) buffer Counter { uint counter; };
void main() { if (own != 0) return;
  atomicAdd(counter, 1u);
  while (atomicAdd(counter, 0u) < gl_NumWorkGroups.x); //! forward progress
}
