#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of contiguous runs of bytes, each side at any alignment. Addresses count bytes.
//
// An item's step is one 16-byte vector of the destination. A vector that is wholly in the run is
// stored; of one at its edge, words are stored, and of a word at its edge only the run's own bits
// are changed, atomically: the rest may belong to runs that are written at the same time.

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uvec4 source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };
layout(std430, binding = 3) buffer TargetWords { uint target_words[]; };  // the same memory

// 16 bytes from byte `start` on, 0 to 15, of the 32 that low and high make.
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

// Stores those bytes of a word that are in the run; `base` is the run's byte at the word's start.
void store_word(uint word, uint value, int base, int run) {
    int from = clamp(-base, 0, 4) * 8;
    int to = clamp(run - base, 0, 4) * 8;
    if (from == 0 && to == 32) {
        target_words[word] = value;
    } else if (from < to) {
        uint mask = (~0u << from) & (~0u >> (32 - to));
        atomicAnd(target_words[word], ~mask);
        atomicOr(target_words[word], value & mask);
    }
}

uvec4 steps;
uvec4 position;
int run;
bool along;   // steps go along the run, or across runs
bool onward;  // each step begins where the last one ended

void copy_row(Item item) {
    uvec4 low = uvec4(0u);
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        uint vector = item.dst / 16u + (along ? item.position : item.first);
        int base = int(vector * 16u - item.dst);  // the run's byte at the vector's start
        if (base < run) {
            // Vectors that hold none of the run's bytes are not read: they may not be there.
            int first = int(item.src) >> 4;
            int last = (int(item.src) + run - 1) >> 4;
            int start = int(item.src) + base;
            int at = start >> 4;
            if (!onward || i == 0u) low = source[clamp(at, first, last)];
            uvec4 high = source[clamp(at + 1, first, last)];
            uvec4 value = shifted(low, high, uint(start) & 15u);
            low = high;
            if (base >= 0 && base + 16 <= run) {
                target[vector] = value;
            } else {
                for (uint k = 0u; k < 4u; ++k)
                    store_word(vector * 4u + k, value[k], base + int(k) * 4, run);
            }
            TRACE_STORE(vector * 16u + uint(max(-base, 0)), uint(min(16, run - base) - max(-base, 0)),
                        item.src + uint(max(base, 0)), 1u, 1u, 0u,
                        shifted(value, uvec4(0u), uint(max(-base, 0))));
        }
        item.dst += steps.STEPS_DST;
        item.src += steps.STEPS_SRC;
        item.position += position.POSITION_STEP;
    }
}

void main() {
    Item item;
    if (!find_item(item)) return;

    steps = table[item.record + STEPS];
    position = table[item.record + POSITION];
    run = int(table[item.record + RUN].RUN_LENGTH);
    along = position.POSITION_DIGIT_0 != 0u;
    onward = along && position.POSITION_STEP == 1u;
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
    }
}
