#version 450
layout(std430, binding = 0) buffer Data { double data[]; };
void main() { data[0] = 1.0; }
