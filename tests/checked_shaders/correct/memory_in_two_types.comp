#version 450
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer A { uint words[]; }; layout(std430, binding = 0) buffer B { uint8_t bytes[]; };
void main() { uint i = gl_GlobalInvocationID.x; bytes[4 * i + 1] = uint8_t(7u); uint w = words[i]; words[i] = w * 3; }
