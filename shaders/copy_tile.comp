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

#define WORKGROUP_SIZE (UNIT > 4 ? 64 : 256 / UNIT)  // 64 bytes of a tile for each, or fewer
#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uvec4 source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };

const uint SIDE = 128u / UNIT;  // elements
const uint SIDE_VECTORS = 8u;
const uint PER_VECTOR = 16u / UNIT;
const uint LINES = WORKGROUP_SIZE / SIDE_VECTORS;  // that a workgroup loads or stores at once
const uint LOADS = SIDE / LINES;

// The tile consists of elements, or of words of smaller elements.
#if UNIT == 16
#define Entry uvec4
const uint PER_ENTRY = 1u;
#elif UNIT == 8
#define Entry uvec2
const uint PER_ENTRY = 1u;
#else
#define Entry uint
const uint PER_ENTRY = 4u / UNIT;
#endif
const uint SIDE_ENTRIES = SIDE / PER_ENTRY;

shared Entry tile[SIDE * SIDE_ENTRIES];

// Where an entry of a row is: such that invocations that run together access different banks. The
// exclusive or of two entries' places is the place of the exclusive or of their rows and columns.
uint place(uint row, uint entry) {
#if UNIT < 4
    return row * SIDE_ENTRIES + (entry ^ (row % 4u | row / PER_VECTOR * 4u));
#else
    return row * SIDE_ENTRIES + (entry ^ row);
#endif
}

void store_row(uint at, uvec4 vector) {
#if UNIT == 16
    tile[at] = vector;
#elif UNIT == 8
    tile[at] = vector.xy;
    tile[at ^ 1u] = vector.zw;
#else
    tile[at] = vector.x;
    tile[at ^ 1u] = vector.y;
    tile[at ^ 2u] = vector.z;
    tile[at ^ 3u] = vector.w;
#endif
}

// The entry that is `row` rows below one at the start of a vector.
Entry below(uint at, uint row) { return tile[at ^ place(row, 0u)]; }

#if UNIT <= 4
// Entries below one, as many rows apart as an entry has elements.
uvec4 entries(uint at, uint row) {
    return uvec4(below(at, row), below(at, row + PER_ENTRY), below(at, row + 2u * PER_ENTRY),
                 below(at, row + 3u * PER_ENTRY));
}
#endif

// The vectors of the destination that consist of the elements of entries, a vector's rows from one on.
void transpose_entries(uint at, out uvec4 vectors[PER_ENTRY]) {
#if UNIT == 16
    vectors[0] = below(at, 0u);
#elif UNIT == 8
    vectors[0] = uvec4(below(at, 0u), below(at, 1u));
#elif UNIT == 4
    vectors[0] = entries(at, 0u);
#elif UNIT == 2
    uvec4 a = entries(at, 0u), b = entries(at, 1u);
    vectors[0] = (a & 0xffffu) | (b << 16);
    vectors[1] = (a >> 16) | (b & 0xffff0000u);
#else
    uvec4 a = entries(at, 0u), b = entries(at, 1u), c = entries(at, 2u), d = entries(at, 3u);
    uvec4 ac = (a & 0xffffu) | (c << 16), bd = (b & 0xffffu) | (d << 16);
    vectors[0] = (ac & 0x00ff00ffu) | ((bd & 0x00ff00ffu) << 8);
    vectors[1] = ((ac >> 8) & 0x00ff00ffu) | (bd & 0xff00ff00u);
    ac = (a >> 16) | (c & 0xffff0000u);
    bd = (b >> 16) | (d & 0xffff0000u);
    vectors[2] = (ac & 0x00ff00ffu) | ((bd & 0x00ff00ffu) << 8);
    vectors[3] = ((ac >> 8) & 0x00ff00ffu) | (bd & 0xff00ff00u);
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
    uint line = gl_LocalInvocationIndex / SIDE_VECTORS;
    uint vector = gl_LocalInvocationIndex % SIDE_VECTORS;
    uint first = vector * PER_VECTOR;  // element of a line

    if (first < columns) {
        uint groups = divide(first, along.ALONG_SIZE, along.ALONG_FACTOR);
        uint src = item.src + groups * outer.OUTER_ALONG_SRC
                   + (first - groups * along.ALONG_SIZE) / PER_VECTOR;
        // All loads begin before one of them is waited for.
        uvec4 vectors[LOADS];
        for (uint n = 0u; n < LOADS; ++n) {
            uint row = line + n * LINES;
            if (row >= rows) continue;
            groups = divide(row, across.ACROSS_SIZE, across.ACROSS_FACTOR);
            vectors[n] = source[src + groups * outer.OUTER_ACROSS_SRC
                                + (row - groups * across.ACROSS_SIZE) * across.ACROSS_SRC];
        }
        uint at = place(line, first / PER_ENTRY);
        for (uint n = 0u; n < LOADS; ++n)
            if (line + n * LINES < rows) store_row(at ^ place(n * LINES, 0u), vectors[n]);
    }
    barrier();
    if (first < rows) {
        uint groups = divide(first, across.ACROSS_SIZE, across.ACROSS_FACTOR);
        uint dst = item.dst + groups * outer.OUTER_ACROSS_DST
                   + (first - groups * across.ACROSS_SIZE) / PER_VECTOR;
        uint at = place(first, line);
        for (uint n = 0u; n < SIDE_ENTRIES / LINES; ++n) {
            uint entry = line + n * LINES, column = entry * PER_ENTRY;
            if (column >= columns) break;
            groups = divide(column, along.ALONG_SIZE, along.ALONG_FACTOR);
            uint to = dst + groups * outer.OUTER_ALONG_DST
                      + (column - groups * along.ALONG_SIZE) * along.ALONG_DST;
            uvec4 vectors[PER_ENTRY];
            transpose_entries(at ^ (n * LINES), vectors);
            for (uint k = 0u; k < PER_ENTRY; ++k) target[to + k * along.ALONG_DST] = vectors[k];
        }
    }
}
