#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
void main() { uint64_t x = data[i];
  result[i] = uint(x >> (own + 1u)); //! shift
}
