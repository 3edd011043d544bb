#version 450
#extension GL_GOOGLE_include_directive : require
// Transposes square blocks of elements of UNIT = 1, 2, 4 or 8 bytes whose sides are one vector
// long: the source is read along one dimension and the destination written along another.
//
// A step is one block. Addresses count vectors: of 16 bytes for whole words, else of 8, because
// drivers are slow to compile many accesses.

#include "region.glsl"

#if UNIT >= 4
#define Vector uvec4
const uint SIDE = 16u / UNIT;
#else
#define Vector uvec2
const uint SIDE = 8u / UNIT;
#endif

layout(std430, binding = 1) readonly buffer Source { Vector source[]; };
layout(std430, binding = 2) writeonly buffer Target { Vector target[]; };

#if UNIT < 4
// An element of a row, as a word.
uint element(Vector row, uint number) {
    uint bit = number * UNIT * 8u;
    return (row[bit / 32u] >> (bit % 32u)) & ((1u << (UNIT * 8u)) - 1u);
}
#endif

Vector column(Vector rows[SIDE], uint number) {
#if UNIT == 8
    return number == 0u ? uvec4(rows[0].xy, rows[1].xy) : uvec4(rows[0].zw, rows[1].zw);
#elif UNIT == 4
    return uvec4(rows[0][number], rows[1][number], rows[2][number], rows[3][number]);
#else
    uvec2 result = uvec2(0u);
    for (uint r = 0u; r < SIDE; ++r) {
        uint bit = r * UNIT * 8u;
        result[bit / 32u] |= element(rows[r], number) << (bit % 32u);
    }
    return result;
#endif
}

void main() {
    Item item;
    if (!find_item(item)) return;

    uvec4 steps = table[item.record + STEPS];
    uint step_position = table[item.record + POSITION].POSITION_STEP;
    uvec4 block = table[item.record + BLOCK];

    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        Vector rows[SIDE];
        for (uint k = 0u; k < SIDE; ++k) rows[k] = source[item.src + k * block.BLOCK_ROW_SRC];
        for (uint k = 0u; k < SIDE; ++k) {
            target[item.dst + k * block.BLOCK_COLUMN_DST] = column(rows, k);
        }
        item.dst += steps.STEPS_DST;
        item.src += steps.STEPS_SRC;
        item.position += step_position;
    }
}
