#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of 16-byte vectors, with the elements of each in the same or in reversed order.

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uvec4 source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };

// The vector with its elements of `size` bytes in reversed order; 16 changes nothing.
uvec4 reversed(uvec4 v, uint size) {
    if (size <= 8u) v = v.zwxy;
    if (size <= 4u) v = v.yxwz;
    if (size <= 2u) v = (v << 16) | (v >> 16);
    if (size <= 1u) v = ((v & 0x00ff00ffu) << 8) | ((v >> 8) & 0x00ff00ffu);
    return v;
}

uvec4 steps;
uint step_position;
uint size;  // bytes of the elements that are reversed

void copy_row(Item item) {
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        uvec4 vector = reversed(source[item.src], size);
        target[item.dst] = vector;
        item.dst += steps.STEPS_DST;
        item.src += steps.STEPS_SRC;
        item.position += step_position;
    }
}

void main() {
    Item item;
    if (!find_item(item)) return;

    steps = table[item.record + STEPS];
    step_position = table[item.record + POSITION].POSITION_STEP;
    size = table[item.record + RUN].RUN_ELEMENT;
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
    }
}
