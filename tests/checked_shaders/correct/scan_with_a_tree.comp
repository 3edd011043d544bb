// vkops debug check --groups 2
#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
layout(std430, binding = 0) buffer B0 { uint data[]; };
layout(std430, binding = 1) buffer B1 { uint result[]; };
shared uint t[64];
void main() { t[own] = data[i]; uint step = 1;
  for (uint d = 32; d > 0; d >>= 1) { barrier();
    if (own < d) t[step * (2 * own + 2) - 1] += t[step * (2 * own + 1) - 1]; step *= 2; }
  if (own == 0) t[63] = 0;
  for (uint d = 1; d < 64; d *= 2) { step >>= 1; barrier();
    if (own < d) { uint a = step * (2 * own + 1) - 1, b = step * (2 * own + 2) - 1;
      uint kept = t[a]; t[a] = t[b]; t[b] += kept; } }
  barrier(); result[i] = t[own]; }
