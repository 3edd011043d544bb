#version 450
#extension GL_GOOGLE_include_directive : require
// Transposes tiles of elements of UNIT = 1 to 16 bytes through shared memory, for GPUs.
//
// A workgroup copies one tile, whose rows and columns have 128 bytes at most. Vectors are read
// along the rows, which are contiguous in the source, and written along the columns, which are
// contiguous in the destination. So both are whole memory transactions. Addresses count vectors.
//
// Elements `across` the rows, those of a column, are numbered along one dimension or two, and so
// are those `along` the rows. The second dimension goes on where the first one ends.

#define WORKGROUP_SIZE (UNIT > 8 ? 64 : 512 / UNIT)  // 32 bytes of a tile for each
#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uvec4 source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };

const uint SIDE = 128u / UNIT;  // elements
const uint SIDE_WORDS = 32u;
const uint SIDE_VECTORS = 8u;
const uint PER_VECTOR = 16u / UNIT;

shared uint tile[SIDE * SIDE_WORDS];

// Where a word of a row is: such that invocations that run together access different banks.
uint place(uint row, uint word) {
    return row * SIDE_WORDS + (word ^ ((row ^ (row >> 4)) & (SIDE_WORDS - 1u)));
}

// A word of a vector that consists of the elements of a column, from a row on.
uint column_word(uint row, uint column, uint word) {
#if UNIT >= 4
    const uint words = UNIT / 4u;  // of an element
    return tile[place(row + word / words, column * words + word % words)];
#else
    const uint count = 4u / UNIT;  // of elements
    uint bit = column % count * UNIT * 8u;
    uint result = 0u;
    for (uint k = 0u; k < count; ++k) {
        uint bits = tile[place(row + word * count + k, column / count)] >> bit;
        result |= (bits & ((1u << (UNIT * 8u)) - 1u)) << (k * UNIT * 8u);
    }
    return result;
#endif
}

void main() {
    Item item;
    if (!find_item(item)) return;  // a workgroup has a tile, or none

    uvec4 across = table[item.record + ACROSS];
    uvec4 along = table[item.record + ALONG];
    uvec4 outer = table[item.record + OUTER];
    uint rows = min(table[item.record + POSITION].POSITION_DIGIT_1,
                    across.ACROSS_LIMIT - item.position);
    uint columns = min(table[item.record + ROWS].ROWS_NUMBER, along.ALONG_LIMIT - item.row);

    for (uint k = gl_LocalInvocationIndex; k < rows * SIDE_VECTORS; k += WORKGROUP_SIZE) {
        uint row = k / SIDE_VECTORS;
        uint column = k % SIDE_VECTORS * PER_VECTOR;
        if (column >= columns) continue;
        uint groups = divide(row, across.ACROSS_SIZE, across.ACROSS_FACTOR);
        uint src = item.src + groups * outer.OUTER_ACROSS_SRC
                   + (row - groups * across.ACROSS_SIZE) * across.ACROSS_SRC;
        groups = divide(column, along.ALONG_SIZE, along.ALONG_FACTOR);
        src += groups * outer.OUTER_ALONG_SRC + (column - groups * along.ALONG_SIZE) / PER_VECTOR;
        uvec4 vector = source[src];
        for (uint w = 0u; w < 4u; ++w) tile[place(row, column * UNIT / 4u + w)] = vector[w];
    }
    barrier();
    for (uint k = gl_LocalInvocationIndex; k < columns * SIDE_VECTORS; k += WORKGROUP_SIZE) {
        uint column = k / SIDE_VECTORS;
        uint row = k % SIDE_VECTORS * PER_VECTOR;
        if (row >= rows) continue;
        uint groups = divide(column, along.ALONG_SIZE, along.ALONG_FACTOR);
        uint inner = column - groups * along.ALONG_SIZE;
        uint dst = item.dst + groups * outer.OUTER_ALONG_DST + inner * along.ALONG_DST;
        groups = divide(row, across.ACROSS_SIZE, across.ACROSS_FACTOR);
        inner = row - groups * across.ACROSS_SIZE;
        dst += groups * outer.OUTER_ACROSS_DST + inner / PER_VECTOR;
        uvec4 vector;
        for (uint w = 0u; w < 4u; ++w) vector[w] = column_word(row, column, w);
        target[dst] = vector;
    }
}
