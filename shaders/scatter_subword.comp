#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of elements smaller than a word, UNIT = 1 or 2 bytes, to where indices say.
//
// Other elements of the word, and other values of the same element, may be written at the same
// time: the word is exchanged only if it is what was read before. An attempt fails only after the
// store of another element, so MAX_EXCHANGES elements need no more attempts. Of more elements, a
// dispatch stores those at one place in their words (WITHIN_WORD): the rest of a word stays the same.

#define INDEXED
#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uint source[]; };
layout(std430, binding = 2) buffer Target { uint target[]; };

#include "indices.glsl"

const uint BITS = UNIT * 8u;
const uint PER_WORD = 32u / BITS;
const uint MASK = (1u << BITS) - 1u;

uvec4 steps;
uint step_position;
bool constant;
uint pattern;
Indexing from;
uint base;

void store(uint to, uint bits) {
    uint word = to / PER_WORD;
    uint shift = to % PER_WORD * BITS;
    uint others = ~(MASK << shift);
    if (from.within.WITHIN_WORD != ALL_WORDS) {
        uint whole = atomicOr(target[word], 0u);
        atomicExchange(target[word], (whole & others) | (bits << shift));
        return;
    }
    uint present = target[word];
    for (uint k = 0u; k < MAX_EXCHANGES; ++k) {
        uint wanted = (present & others) | (bits << shift);
        uint found = atomicCompSwap(target[word], present, wanted);
        if (found == present) return;
        present = found;
    }
}

void copy_row(Item item) {
    uint place = from.within.WITHIN_WORD;
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        uint moved;
        bool inside = find_moved(from, item.index, item.place, moved);
        uint to = item.dst + moved;
        inside = inside && (place == ALL_WORDS || to % PER_WORD == place);
        if (inside && is_within(from.within, to - base)) {
            uint bits = (source[item.src / PER_WORD] >> (item.src % PER_WORD * BITS)) & MASK;
            if (constant) bits = pattern;
            store(to, bits);
        }
        item.dst += steps.STEPS_DST;
        item.src += steps.STEPS_SRC;
        item.index += from.advance.ADVANCE_INDICES;
        item.place += from.advance.ADVANCE_POSITION;
        item.position += step_position;
    }
}

void main() {
    Item item;
    if (!find_item(item)) return;

    steps = table[item.record + STEPS];
    step_position = table[item.record + POSITION].POSITION_STEP;
    constant = table[item.record + RUN].RUN_CONSTANT != 0u;
    pattern = table[item.record + PATTERN].PATTERN_X & MASK;
    from = indexing(item);
    base = table[from.record + RECORD_VECTORS + HEAD].HEAD_DST;
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
        next_indices(item, from);
    }
}
