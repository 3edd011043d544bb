// vkops debug check --groups 2 --bind B1=uint32:1 --bind B2=uint32:2
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint lock[]; };
layout(std430, binding = 2) buffer B2 { uint most[]; };
void main() { bool done = false;
  while (!done) { if (atomicCompSwap(lock[0], 0u, 1u) == 0u) {
    memoryBarrierBuffer(); if (data[i] > most[0]) { most[0] = data[i]; most[1] = i; } memoryBarrierBuffer();
    atomicExchange(lock[0], 0u); done = true; } } }
