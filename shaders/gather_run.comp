#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of elements of UNIT = 1, 2, 4 or 8 bytes from where indices say to contiguous runs.
//
// A step is one 16-byte vector of the destination, which is assembled from elements.

#define INDEXED
#include "region.glsl"

#if UNIT == 8
#define Element uvec2
#else
#define Element uint
#endif

layout(std430, binding = 1) readonly buffer Source { Element source[]; };

#include "edges.glsl"
#include "indices.glsl"

const uint PER_VECTOR = 16u / UNIT;

struct Run {
    Indexing from;
    uint src;       // of its first element
    uint stride;
    uint index;
    uint place;
    int last;       // number of its last element
};

// The address of an element of the run; beyond its ends, of that at the end.
uint address(Run run, int number) {
    uint e = uint(clamp(number, 0, run.last));
    uint moved;
    find_moved(run.from, run.index + e * run.from.advance.ADVANCE_RUN_INDICES,
               run.place + e * run.from.advance.ADVANCE_RUN_POSITION, moved);
    return run.src + e * run.stride + moved;
}

Element load(uint at) {
#if UNIT < 4
    return (source[at * UNIT / 4u] >> (at * UNIT % 4u * 8u)) & ((1u << (UNIT * 8u)) - 1u);
#else
    return source[at];
#endif
}

Element element(Run run, int number) { return load(address(run, number)); }

#if UNIT < 4
uint word(Run run, int number) {
    uint result = 0u;
    for (uint k = 0u; k < 4u / UNIT; ++k) result |= element(run, number + int(k)) << (k * UNIT * 8u);
    return result;
}
#endif

uvec4 vector(Run run, int base) {
#if UNIT == 8
    return uvec4(element(run, base), element(run, base + 1));
#elif UNIT == 4
    return uvec4(element(run, base), element(run, base + 1), element(run, base + 2),
                 element(run, base + 3));
#else
    const int n = int(4u / UNIT);
    return uvec4(word(run, base), word(run, base + n), word(run, base + 2 * n),
                 word(run, base + 3 * n));
#endif
}

uvec4 steps;
uint step_position;

void copy_row(Item item, Run run) {
    run.src = item.src;
    run.index = item.index;
    run.place = item.place;
    int length = (run.last + 1) * int(UNIT);
    Edges edges = no_edges();
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        uint at = item.dst / PER_VECTOR + item.position;
        int base = int(at * PER_VECTOR - item.dst);  // the run's element at the vector's start
        store_vector(edges, at, vector(run, base), base * int(UNIT), length);
        item.position += step_position;
    }
    store_edges(edges, item.dst * UNIT, length);
}

void main() {
    Item item;
    if (!find_item(item)) return;

    steps = table[item.record + STEPS];
    step_position = table[item.record + POSITION].POSITION_STEP;
    uvec4 length = table[item.record + RUN];
    Run run;
    run.from = indexing(item);
    run.stride = length.RUN_SRC;
    run.last = int(length.RUN_LENGTH) - 1;
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item, run);
        next_row(item, rows);
        next_indices(item, run.from);
    }
}
