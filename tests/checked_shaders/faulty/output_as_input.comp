// vkops debug check --bind Out=256
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
void main() { 
  result[i] += data[i]; //! never written
}
