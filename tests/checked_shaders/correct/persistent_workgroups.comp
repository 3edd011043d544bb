// vkops debug check --groups 4 --bind B0=numbers_384.npy --bind B1=1536 --bind B2=uint32:1
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
layout(std430, binding = 2) buffer B2 { uint next; };
shared uint item;
void main() { for (uint k = 0; k < 64; ++k) { if (own == 0) item = atomicAdd(next, 1u); barrier(); uint mine = item; barrier();
    if (mine >= 6) break; result[mine * 64 + own] = data[mine * 64 + own] * 2; } }
