// vkops debug check --groups 2 --bind Flag=uint32:1
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 2) buffer Flag { uint flag; };
void main() { if (own != 0) return;
  if (gl_WorkGroupID.x == 0) { atomicExchange(flag, 1u); memoryBarrierBuffer();
    result[0] = data[0]; }
  else if (atomicAdd(flag, 0u) == 1) { memoryBarrierBuffer();
    result[1] = result[0]; } //! data race
}
