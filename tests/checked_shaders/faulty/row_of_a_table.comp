#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
shared uint table[8][8];
void main() { table[own / 8][own % 8] = data[i]; barrier();
  result[i] = table[own % 8][own / 8 + 1]; //! out of bounds
}
