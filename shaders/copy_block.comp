#version 450
#extension GL_GOOGLE_include_directive : require
// Transposes square blocks whose sides are 16 bytes of elements of UNIT = 1, 2, 4 or 8 bytes: the
// source is read along one dimension and the destination written along another, both in vectors.
//
// A step is one block. Addresses count vectors.

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uvec4 source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };

#if UNIT == 8
const uint ROWS = 2u;  // loaded, and stored, at a time
#else
const uint ROWS = 4u;
#endif
const uint SIDE = 16u / UNIT;
const uint BITS = UNIT * 8u;

// Appends elements of the rows just loaded to one column of the block.
uvec4 append(uvec4 column, uint number, uvec4 rows[ROWS]) {
#if UNIT == 8
    return number == 0u ? uvec4(rows[0].xy, rows[1].xy) : uvec4(rows[0].zw, rows[1].zw);
#elif UNIT == 4
    return uvec4(rows[0][number], rows[1][number], rows[2][number], rows[3][number]);
#else
    uint word = number * UNIT / 4u;
    uint shift = number * BITS % 32u;
    const uint mask = (1u << BITS) - 1u;
    uvec4 elements = uvec4(rows[0][word], rows[1][word], rows[2][word], rows[3][word]);
    elements = (elements >> shift) & mask;
#if UNIT == 2
    return uvec4(column.zw, elements.xz | (elements.yw << 16));
#else
    elements.xy |= elements.zw << 16;
    return uvec4(column.yzw, elements.x | (elements.y << 8));
#endif
#endif
}

void main() {
    Item item;
    if (!find_item(item)) return;

    uvec4 steps = table[item.record + STEPS];
    uint step_position = table[item.record + POSITION].x;
    uvec4 block = table[item.record + RUN];  // src stride of a row, dst stride of a column, passes
#if UNIT >= 4
    block.z = 1u;
#endif

    for (uint i = 0u; i < steps.x && item.position < steps.w; ++i) {
        uvec4 columns[SIDE];
        for (uint c = 0u; c < SIDE; ++c) columns[c] = uvec4(0u);
        uint src = item.src;
        uint pass = 0u;
        do {
            uvec4 rows[ROWS];
            for (uint r = 0u; r < ROWS; ++r) rows[r] = source[src + r * block.x];
            for (uint c = 0u; c < SIDE; ++c) columns[c] = append(columns[c], c, rows);
            src += ROWS * block.x;
        } while (++pass < block.z);
        uint dst = item.dst;
        pass = 0u;
        do {
            for (uint r = 0u; r < ROWS; ++r) target[dst + r * block.y] = columns[r];
            for (uint c = 0u; c + ROWS < SIDE; ++c) columns[c] = columns[c + ROWS];
            dst += ROWS * block.y;
        } while (++pass < block.z);
        item.dst += steps.y;
        item.src += steps.z;
        item.position += step_position;
    }
}
