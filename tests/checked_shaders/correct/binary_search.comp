#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
void main() { uint low = 0, high = data.length();
  while (low < high) { uint middle = (low + high) / 2; if (data[middle] < i) low = middle + 1; else high = middle; }
  result[i] = low; }
