// vkops debug check --groups 4 --bind B2=uint32:1
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
layout(std430, binding = 2) buffer B2 { uint count; };

void main() { if (data[i] % 3 == 1) result[atomicAdd(count, 1u)] = data[i]; }
