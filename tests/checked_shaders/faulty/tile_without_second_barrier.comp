// vkops debug check --bind Data=numbers_1024.npy
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
void main() { uint sum = 0;
  for (uint t = 0; t < 4; ++t) {
    part[own] = data[t * 64 + own]; //! data race
    barrier();
    sum += part[(own + 1) % 64];
  }
  result[i] = sum; }
