// vkops debug check --groups 3
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint8_t data[]; };
layout(std430, binding = 1) buffer B1 { float16_t h[]; };
layout(std430, binding = 2) buffer B2 { int64_t w[]; };
void main() { h[i] += float16_t(data[i]) * 0.5hf; w[i] -= int64_t(data[i]) << 40; data[i] ^= uint8_t(3); }
