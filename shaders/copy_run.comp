#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef WIDE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
// Copies to contiguous runs of bytes, each side at any alignment. Addresses count bytes.
//
// What is written to a run is a run of the source as well, or one element again and again. A step
// is one 16-byte vector of the destination.

#include "region.glsl"
#include "edges.glsl"

layout(std430, binding = 1) readonly buffer Source { Vector source[]; };

uvec4 steps;
uint step_position;
int run;         // its length
uint element;    // bytes of an element
bool constant;
bool repeated;   // one element is written again and again
uvec4 pattern;   // of a constant

// 16 bytes from byte `start` on, 0 to 15, of the 32 that low and high make.
#ifdef WIDE
u64vec2 shifted(u64vec2 low, u64vec2 high, uint start) {
    uint64_t beyond = high.x;
    if ((start & 8u) != 0u) {
        low = u64vec2(low.y, high.x);
        beyond = high.y;
    }
    uint bits = (start & 7u) * 8u;
    if (bits == 0u) return low;
    return (low >> bits) | (u64vec2(low.y, beyond) << (64u - bits));
}
#else
uvec4 shifted(uvec4 low, uvec4 high, uint start) {
    uint beyond = high.x;
    if ((start & 8u) != 0u) {
        low = uvec4(low.zw, high.xy);
        high = high.zwzw;
        beyond = high.x;
    }
    if ((start & 4u) != 0u) {
        low = uvec4(low.yzw, high.x);
        beyond = high.y;
    }
    uint bits = (start & 3u) * 8u;
    if (bits == 0u) return low;
    return (low >> bits) | (uvec4(low.yzw, beyond) << (32u - bits));
}
#endif

// The first element of a vector, repeated to fill it.
uvec4 filled(uvec4 v) {
    if (element <= 8u) v = v.xyxy;
    if (element <= 4u) v = v.xxxx;
    if (element <= 2u) v = (v & 0xffffu) * 0x10001u;
    if (element <= 1u) v = (v & 0xffu) * 0x1010101u;
    return v;
}

void copy_row(Item item) {
    // Vectors that hold none of the run's bytes are not read: they may not be there.
    int first = int(item.src) >> 4;
    int last = repeated ? first : (int(item.src) + run - 1) >> 4;
    bool onward = step_position == 1u && !repeated;  // each step begins where the last one ended
    int at_first = (int(item.src - item.dst % 16u) >> 4) + int(item.position);
    Vector low = source[clamp(at_first, first, last)];
    uvec4 same = pattern;
    if (!ALIGNED || !constant && repeated) same = filled(words_of(shifted(low, low, item.src & 15u)));
    if (constant) same = pattern;

    Edges edges = no_edges();
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        uint vector = item.dst / 16u + item.position;
        int base = int(vector * 16u - item.dst);  // the run's byte at the vector's start
        Vector value = vector_of(same);
        if (!repeated) {
            int start = int(item.src) + base;
            int at = start >> 4;
            if (i != 0u && !onward) low = source[clamp(at, first, last)];
            Vector high = source[clamp(at + 1, first, last)];
            value = shifted(low, high, uint(start) & 15u);
            low = high;
        }
        store_vector(edges, vector, value, base, run);
        item.position += step_position;
    }
    store_edges(edges, item.dst, run);
}

void main() {
    Item item;
    if (!find_item(item)) return;

    steps = table[item.record + STEPS];
    step_position = table[item.record + POSITION].POSITION_STEP;
    uvec4 all = table[item.record + RUN];
    run = int(all.RUN_LENGTH);
    element = all.RUN_ELEMENT;
    constant = all.RUN_CONSTANT != 0u;
    repeated = constant || all.RUN_SRC == 0u;
    pattern = table[item.record + PATTERN];
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
    }
}
