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

uint load(uint element) {
    return (source[element / PER_WORD] >> (element % PER_WORD * BITS)) & MASK;
}

// A word's worth of consecutive elements, from an address that need not be aligned.
uint load_word(uint element) {
    uint word = element / PER_WORD;
    uint shift = element % PER_WORD * BITS;
    uint low = source[word] >> shift;
    // The next word is read only when it holds a wanted element: it may lie past the buffer's end.
    return shift == 0u ? low : low | (source[word + 1u] << (32u - shift));
}

void main() {
    Item item;
    if (!find_item(item)) return;

    uint steps = table[item.record + STEPS];
    uint step_dst = table[item.record + STEP_DST];
    uint step_src = table[item.record + STEP_SRC];
    uint step_position = table[item.record + STEP_POSITION];
    uint limit = table[item.record + LIMIT];
    uint run = table[item.record + RUN];
    uint run_src = table[item.record + RUN_SRC];
    bool fill = table[item.record + IS_FILL] != 0u;
    uint constant = table[item.record + PATTERN];
    bool along = table[item.record + POSITION_0] != 0u;  // steps go along the run, or across runs

    for (uint i = 0u; i < steps && item.position < limit; ++i) {
        uint word = item.dst / PER_WORD + (along ? item.position : item.first);
        uint base = word * PER_WORD - item.dst;  // the word's first element within the run; may wrap
        if (base < run && run - base >= PER_WORD) {
            uint value = constant;
            if (!fill && run_src == 1u) {
                value = load_word(item.src + base);
            } else if (!fill) {
                value = 0u;
                for (uint t = 0u; t < PER_WORD; ++t)
                    value |= load(item.src + (base + t) * run_src) << (t * BITS);
            }
            target[word] = value;
        } else {
            uint value = 0u;
            uint mask = 0u;
            for (uint t = 0u; t < PER_WORD; ++t) {
                if (base + t < run) {
                    uint bits = MASK << (t * BITS);
                    mask |= bits;
                    value |= fill ? constant & bits
                                  : load(item.src + (base + t) * run_src) << (t * BITS);
                }
            }
            if (mask != 0u) {
                atomicAnd(target[word], ~mask);
                atomicOr(target[word], value);
            }
        }
        item.dst += step_dst;
        item.src += step_src;
        item.position += step_position;
    }
}
