#version 450
layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
struct Body { vec3 position; uint kind; mat3 turn; };
layout(std430, binding = 0) buffer Bodies { Body bodies[]; };
layout(std140, binding = 1) uniform Parameters { mat3 turn; vec3 shift; float scale; };
void main() { Body b = bodies[i]; if (b.kind % 2 == 0) { b.turn = turn * b.turn; b.position = b.turn * b.position + shift; }
  b.position.y *= scale; bodies[i] = b; }
