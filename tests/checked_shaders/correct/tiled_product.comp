// vkops debug check --threads 20,13 --push n=13,m=20,k=11
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(std430, binding = 0) buffer B0 { float a[]; };
layout(std430, binding = 1) buffer B1 { float b[]; };
layout(std430, binding = 2) buffer B2 { float c[]; };
layout(push_constant) uniform Push { uint n, m, k; };
shared float ta[8][8], tb[8][9];
void main() { uvec2 l = gl_LocalInvocationID.xy, g = gl_GlobalInvocationID.xy; float sum = 0.0;
  for (uint t = 0; t < k; t += 8) {
    ta[l.y][l.x] = g.y < n && t + l.x < k ? a[g.y * k + t + l.x] : 0.0;
    tb[l.y][l.x] = t + l.y < k && g.x < m ? b[(t + l.y) * m + g.x] : 0.0;
    barrier();
    for (uint j = 0; j < 8; ++j) sum += ta[l.y][j] * tb[j][l.x];
    barrier(); }
  if (g.y < n && g.x < m) c[g.y * m + g.x] = sum; }
