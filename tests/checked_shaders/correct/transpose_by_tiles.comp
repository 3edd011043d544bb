// vkops debug check --groups 2,2 --bind B0=numbers_1024.npy --bind B1=4096
#version 450
layout(local_size_x = 16, local_size_y = 4) in;
layout(std430, binding = 0) buffer B0 { float a[]; };
layout(std430, binding = 1) buffer B1 { float b[]; };
shared float tile[16][17];
void main() { uvec2 group = gl_WorkGroupID.xy * 16, l = gl_LocalInvocationID.xy; uint n = gl_NumWorkGroups.x * 16;
  for (uint k = 0; k < 16; k += 4) tile[l.y + k][l.x] = a[(group.y + l.y + k) * n + group.x + l.x];
  barrier();
  for (uint k = 0; k < 16; k += 4) b[(group.x + l.y + k) * n + group.y + l.x] = tile[l.x][l.y + k]; }
