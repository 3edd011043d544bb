// vkops debug check --groups 8 --bind B0=uint32:2
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
#extension GL_EXT_shader_atomic_float : require
layout(std430, binding = 0) buffer B0 { uint count; float sum; };
void main() { atomicAdd(count, 1u); atomicAdd(sum, 1.0 / float(i + 3)); }
