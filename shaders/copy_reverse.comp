#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of 16-byte vectors whose elements may stand in reversed order in the destination.

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uvec4 source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };

// A vector's elements of `size` bytes, the last one first; 16 changes nothing.
uvec4 reversed(uvec4 v, uint size) {
    if (size <= 8u) v = v.zwxy;
    if (size <= 4u) v = v.yxwz;
    if (size <= 2u) v = (v << 16) | (v >> 16);
    if (size <= 1u) v = ((v & 0x00ff00ffu) << 8) | ((v >> 8) & 0x00ff00ffu);
    return v;
}

void main() {
    Item item;
    if (!find_item(item)) return;

    uvec4 steps = table[item.record + STEPS];
    uint step_position = table[item.record + POSITION].x;
    uint size = table[item.record + RUN].w;  // bytes of the elements that are reversed

    for (uint i = 0u; i < steps.x && item.position < steps.w; ++i) {
        uvec4 vector = reversed(source[item.src], size);
        target[item.dst] = vector;
        TRACE_STORE(item.dst * 16u, 16u, item.src * 16u + 16u - size, size, 0u - size, 0u, vector);
        item.dst += steps.y;
        item.src += steps.z;
        item.position += step_position;
    }
}
