#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
void main() { uint a[4] = uint[4](1, 2, 3, 4);
  result[i] = a[data[i] % 5]; //! out of bounds
}
