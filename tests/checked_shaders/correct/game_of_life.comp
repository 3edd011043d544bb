// vkops debug check --groups 2,2
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(std430, binding = 0) buffer B0 { uint now[]; };
layout(std430, binding = 1) buffer B1 { uint next[]; };
void main() { ivec2 g = ivec2(gl_GlobalInvocationID.xy); int n = 0;
  for (int dy = -1; dy <= 1; ++dy) for (int dx = -1; dx <= 1; ++dx) {
    if (dx == 0 && dy == 0) continue;
    ivec2 at = (g + ivec2(dx, dy) + 16) % 16; n += int(now[at.y * 16 + at.x] & 1u); }
  uint self = now[g.y * 16 + g.x] & 1u; next[g.y * 16 + g.x] = n == 3 || (n == 2 && self == 1u) ? 1u : 0u; }
