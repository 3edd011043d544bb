#version 450
layout(constant_id = 0) const uint OFFSET = 0u;
layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Push { uint factor; };
void main() { target[0] = factor * source[0] + OFFSET; }
