#version 450
layout(binding = 0, rgba8) uniform image2D Source;
layout(std430, binding = 1) buffer Target { uint target[]; };
void main() {
    imageStore(Source, ivec2(0), vec4(1));
    target[0] = 1;
}
