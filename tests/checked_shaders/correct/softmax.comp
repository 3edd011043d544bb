// vkops debug check --groups 2 --floats
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { float x[]; };
layout(std430, binding = 1) buffer B1 { float y[]; };
shared float part[64];
float all_(float v, bool largest) { part[own] = v; barrier();
  for (uint s = 32; s > 0; s /= 2) { if (own < s) part[own] = largest ? max(part[own], part[own + s]) : part[own] + part[own + s]; barrier(); }
  float found = part[0]; barrier(); return found; }
void main() { float most = all_(x[i], true), e = exp(x[i] - most); y[i] = e / all_(e, false); }
