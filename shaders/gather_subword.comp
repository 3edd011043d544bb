#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of elements smaller than a word, UNIT = 1 or 2 bytes, from where indices say.
//
// Items and steps are those of copy_subword.comp: a step is one word of the destination.

#define INDEXED
#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uint source[]; };
layout(std430, binding = 2) buffer Target { uint target[]; };

#include "indices.glsl"

const uint BITS = UNIT * 8u;
const uint PER_WORD = 32u / BITS;
const uint MASK = (1u << BITS) - 1u;

uvec4 steps;
uvec4 position;
uvec4 run;
Indexing from;
uint base;
#ifdef LIMITED
uvec4 limits;
#endif
bool along;  // steps go along the run, or across runs
bool once;   // all elements of a run have the same index

void copy_row(Item item) {
    uvec4 advance = from.advance;
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        uint word = item.dst / PER_WORD + (along ? item.position : item.first);
        uint value = 0u;
        uint mask = 0u;
        uint moved = 0u;
        // The run's elements from `first` on, before `end`, are in the word.
        uint first = max(word * PER_WORD, item.dst) - item.dst;
        uint end = min((word + 1u) * PER_WORD - item.dst, run.RUN_LENGTH);
        for (uint e = first; e < end; ++e) {
            if (!once || e == first)
                find_moved(from, item.index + e * advance.ADVANCE_RUN_INDICES,
                           item.place + e * advance.ADVANCE_RUN_POSITION, moved);
            uint at = item.src + e * run.RUN_SRC + moved;
#ifdef LIMITED
            at = limited(limits, at - base) + base;
#endif
            if (!is_within(from.within, at - base)) continue;
            uint bits = (source[at / PER_WORD] >> (at % PER_WORD * BITS)) & MASK;
            uint shift = (item.dst + e) % PER_WORD * BITS;
            value |= bits << shift;
            mask |= MASK << shift;
        }
        if (mask == ~0u) {
            target[word] = value;
        } else if (mask != 0u) {
            atomicAnd(target[word], ~mask);
            atomicOr(target[word], value);
        }
        item.dst += steps.STEPS_DST;
        item.src += steps.STEPS_SRC;
        item.index += advance.ADVANCE_INDICES;
        item.place += advance.ADVANCE_POSITION;
        item.position += position.POSITION_STEP;
    }
}

void main() {
    Item item;
    if (!find_item(item)) return;

    steps = table[item.record + STEPS];
    position = table[item.record + POSITION];
    run = table[item.record + RUN];
    from = indexing(item);
    base = table[from.record + RECORD_VECTORS + HEAD].HEAD_SRC;
#ifdef LIMITED
    limits = table[from.record + RECORD_VECTORS + LIMITS];
#endif
    along = position.POSITION_DIGIT_0 != 0u;
    once = (from.advance.ADVANCE_RUN_INDICES | from.advance.ADVANCE_RUN_POSITION) == 0u;
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
        next_indices(item, from);
    }
}
