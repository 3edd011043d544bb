#version 450
layout(binding = 0, rgba8) uniform image2D picture;
void main() { imageStore(picture, ivec2(0), vec4(1)); }
