#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
void main() { part[own] = data[i]; barrier();
  for (uint s = 32; s > 0; s /= 2) {
    if (own < s) part[own] += part[own + s]; //! data race
  }
  if (own == 0) result[0] = part[0]; }
