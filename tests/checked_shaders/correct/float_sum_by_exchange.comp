// vkops debug check --groups 2 --bind B1=uint32:1
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { float x[]; };
layout(std430, binding = 1) buffer B1 { uint total; };

void main() { uint old = total, assumed;
  do { assumed = old; old = atomicCompSwap(total, assumed, floatBitsToUint(uintBitsToFloat(assumed) + x[i])); } while (old != assumed); }
