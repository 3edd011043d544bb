#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { vec2 x[]; };
layout(std430, binding = 1) buffer B1 { vec2 y[]; };
shared vec2 t[64];
void main() { t[own] = x[bitfieldReverse(own) >> 26]; barrier();
  for (uint h = 1; h < 64; h *= 2) { uint low = own & ~h; float angle = -3.14159265 * float(own & (h - 1)) / float(h);
    vec2 w = vec2(cos(angle), sin(angle)), a = t[low], b = t[low | h]; vec2 p = vec2(b.x * w.x - b.y * w.y, b.x * w.y + b.y * w.x);
    barrier(); t[own] = (own & h) == 0 ? a + p : a - p; barrier(); }
  y[own] = t[own]; }
