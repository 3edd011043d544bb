// vkops debug check --groups 2
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };

void main() { atomicAnd(result[i / 4], ~(255u << (i % 4 * 8))); atomicOr(result[i / 4], (data[i] & 255u) << (i % 4 * 8)); }
