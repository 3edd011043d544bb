// Stores the vectors of a run of bytes.
//
// A vector that is wholly in the run is stored at once. Of one at an end of the run, words are stored,
// and of a word at its edge only the run's own bits are changed, atomically: the rest may belong to
// runs that are written at the same time. GPUs do so at once, too. Elsewhere the vector is kept until
// the run's loop is done, because CPU drivers execute both sides of a branch.

// With WIDE, vectors are integers of 64 bits: some drivers execute each component of a vector by itself.

layout(std430, binding = 2) buffer Target { uvec4 target[]; };

#ifdef WIDE
#define Vector u64vec2
#define VECTORS wide_target
layout(std430, binding = 3) writeonly buffer WideTarget { u64vec2 wide_target[]; };  // the same memory

uvec4 words_of(u64vec2 v) { return uvec4(unpackUint2x32(v.x), unpackUint2x32(v.y)); }
Vector vector_of(uvec4 v) { return u64vec2(packUint2x32(v.xy), packUint2x32(v.zw)); }
#else
#define Vector uvec4
#define VECTORS target

uvec4 words_of(uvec4 v) { return v; }
Vector vector_of(uvec4 v) { return v; }
#endif

struct Edges {
    bool starts;    // whether there are vectors at the start and at the end
    bool ends;
    uvec2 vectors;
    uvec4 at_start;
    uvec4 at_end;
};

Edges no_edges() { return Edges(false, false, uvec2(0u), uvec4(0u), uvec4(0u)); }

// Stores a word of a vector. `base` is the run's byte at the word's start, `length` the run's length.
void store_word(uint vector, uint k, uint value, int base, int length) {
    int from = clamp(-base, 0, 4) * 8;
    int to = clamp(length - base, 0, 4) * 8;
    if (from == 0 && to == 32) {
        target[vector][k] = value;
    } else if (from < to) {
        uint mask = (~0u << from) & (~0u >> (32 - to));
        atomicAnd(target[vector][k], ~mask);
        atomicOr(target[vector][k], value & mask);
    }
}

// `base` is the run's byte at the vector's start.
void store_vector(inout Edges edges, uint vector, Vector whole, int base, int length) {
    uvec4 value = words_of(whole);
    if (base >= 0 && base + 16 <= length) {
        VECTORS[vector] = whole;
    } else if (ALIGNED) {
        for (uint k = 0u; k < 4u; ++k) store_word(vector, k, value[k], base + int(k) * 4, length);
    } else if (base < 0) {
        edges.starts = true;
        edges.vectors.x = vector;
        edges.at_start = value;
    } else if (base < length) {
        edges.ends = true;
        edges.vectors.y = vector;
        edges.at_end = value;
    }
}

// `dst` is the run's first byte.
void store_edges(Edges edges, uint dst, int length) {
    uint end = edges.ends ? 8u : edges.starts ? 4u : 0u;
    for (uint k = edges.starts ? 0u : 4u; k < end; ++k) {
        uint vector = k < 4u ? edges.vectors.x : edges.vectors.y;
        uint value = k < 4u ? edges.at_start[k % 4u] : edges.at_end[k % 4u];
        store_word(vector, k % 4u, value, int(vector * 16u + k % 4u * 4u - dst), length);
    }
}
