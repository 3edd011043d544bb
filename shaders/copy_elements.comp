#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of elements of UNIT = 4 or 8 bytes from anywhere to contiguous runs.
//
// A step is one 16-byte vector of the destination, which is assembled from elements. They have two
// strides in the source: from one to the next, and from one group of elements to the next.

#include "region.glsl"

#if UNIT == 8
#define Element uvec2
#define PerElement uvec2  // one for each element of a vector
const uvec2 WITHIN_VECTOR = uvec2(0u, 1u);
#else
#define Element uint
#define PerElement uvec4
const uvec4 WITHIN_VECTOR = uvec4(0u, 1u, 2u, 3u);
#endif

layout(std430, binding = 1) readonly buffer Source { Element source[]; };

#include "edges.glsl"

const uint PER_VECTOR = 16u / UNIT;

uvec4 steps;
uint step_position;
uvec4 run;
uvec4 group;
bool constant;
uvec4 pattern;

void copy_row(Item item) {
    uint vector = item.dst / PER_VECTOR + item.position;
    uint base = vector * PER_VECTOR - item.dst;  // the run's element at the vector's start
    // The group of each element, and its place in it. Elements before the run, whose numbers are
    // negative, count as those of groups before it.
    uint size = group.GROUP_SIZE;
    PerElement groups, places;
    for (uint k = 0u; k < PER_VECTOR; ++k) {
        groups[k] = divide(base + k + size * PER_VECTOR, size, group.GROUP_FACTOR);
        places[k] = base + k + size * PER_VECTOR - groups[k] * size;
    }
    PerElement from = item.src + (groups - PER_VECTOR) * run.RUN_SRC + places * group.GROUP_SRC;
    uint onward = divide(step_position * PER_VECTOR, size, group.GROUP_FACTOR);
    uint rest = step_position * PER_VECTOR - onward * size;
    uint step_src = onward * run.RUN_SRC + rest * group.GROUP_SRC;
    uint next_group = run.RUN_SRC - size * group.GROUP_SRC;

    Edges edges = no_edges();
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        // Elements outside of the run may not be there: the first is read in their place.
        PerElement numbers = base + WITHIN_VECTOR;
        PerElement at;
        for (uint k = 0u; k < PER_VECTOR; ++k)
            at[k] = numbers[k] < run.RUN_LENGTH ? from[k] : item.src;
#if UNIT == 8
        uvec4 value = uvec4(source[at.x], source[at.y]);
#else
        uvec4 value = uvec4(source[at.x], source[at.y], source[at.z], source[at.w]);
#endif
        if (constant) value = pattern;
        store_vector(edges, vector, value, int(base * UNIT), int(run.RUN_LENGTH * UNIT));
        from += step_src;
        places += rest;
        for (uint k = 0u; k < PER_VECTOR; ++k) {
            if (places[k] < size) continue;
            places[k] -= size;
            from[k] += next_group;
        }
        vector += step_position;
        base += step_position * PER_VECTOR;
        item.position += step_position;
    }
    store_edges(edges, item.dst * UNIT, int(run.RUN_LENGTH * UNIT));
}

void main() {
    Item item;
    if (!find_item(item)) return;

    steps = table[item.record + STEPS];
    step_position = table[item.record + POSITION].POSITION_STEP;
    run = table[item.record + RUN];
    constant = run.RUN_CONSTANT != 0u;
    pattern = table[item.record + PATTERN];  // or the group
    group = constant ? uvec4(1u, 1u, 0u, 0u) : pattern;
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
    }
}
