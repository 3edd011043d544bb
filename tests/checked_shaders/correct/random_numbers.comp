#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
uint state; uint next() { state = state * 747796405u + 2891336453u; uint w = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u; return (w >> 22) ^ w; }
void main() { state = i; uint inside = 0; for (uint k = 0; k < 20; ++k) { vec2 p = vec2(next(), next()) * 2.3283064e-10; if (dot(p, p) < 1.0) ++inside; } result[i] = inside; }
