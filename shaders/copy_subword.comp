#version 450
#extension GL_GOOGLE_include_directive : require
// Strided copies of elements smaller than a word: UNIT = 1 or 2 bytes.
//
// An item's step is one 32-bit word of the destination, within a run of contiguous elements. A word
// that belongs wholly to the run is stored; a word at its edge may be shared with other runs, which
// may be written at the same time, so only the run's own bits are changed, atomically.

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uint source[]; };
layout(std430, binding = 2) buffer Target { uint target[]; };

const uint BITS = UNIT * 8u;
const uint PER_WORD = 32u / BITS;
const uint MASK = (1u << BITS) - 1u;
const uint WHOLE = ~0u;

// The part of the run that a word of the destination holds: its bits, and which they are. `base` is
// the run's element at the word's start; it wraps when the run begins within the word.
uvec2 gather(uint src, uint base, uint run, uint stride) {
    uvec2 value_mask = uvec2(0u);
    for (uint t = 0u; t < PER_WORD; ++t) {
        if (base + t >= run) continue;
        uint element = src + (base + t) * stride;
        uint bits = (source[element / PER_WORD] >> (element % PER_WORD * BITS)) & MASK;
        value_mask |= uvec2(bits, MASK) << (t * BITS);
    }
    return value_mask;
}

// A word's worth of consecutive elements, from an address that need not be aligned.
uint load_word(uint element) {
    uint word = element / PER_WORD;
    uint shift = element % PER_WORD * BITS;
    // The next word is read only where it holds a wanted element: it may be past the end.
    uint low = source[word] >> shift;
    return shift == 0u ? low : low | (source[word + 1u] << (32u - shift));
}

uvec4 steps;
uvec4 position;
uvec4 run;
bool constant;
uint pattern;
bool along;  // steps go along the run, or across runs

void copy_row(Item item) {
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        uint word = item.dst / PER_WORD + (along ? item.position : item.first);
        uint base = word * PER_WORD - item.dst;
        bool inside = base < run.RUN_LENGTH && run.RUN_LENGTH - base >= PER_WORD;

        uvec2 value_mask;
        if (inside && run.RUN_SRC == 1u) value_mask = uvec2(load_word(item.src + base), WHOLE);
        else value_mask = gather(item.src, base, run.RUN_LENGTH, run.RUN_SRC);
        if (constant) value_mask.x = pattern & value_mask.y;

        if (value_mask.y == WHOLE) {
            target[word] = value_mask.x;
        } else if (value_mask.y != 0u) {
            atomicAnd(target[word], ~value_mask.y);
            atomicOr(target[word], value_mask.x);
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
    run = table[item.record + RUN];
    constant = run.RUN_CONSTANT != 0u;
    pattern = table[item.record + PATTERN].PATTERN_X;
    along = position.POSITION_DIGIT_0 != 0u;
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
    }
}
