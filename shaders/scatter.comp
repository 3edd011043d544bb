#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of whole words to where indices say: elements of UNIT = 4, 8 or 16 bytes.
//
// Elements may have the same target. Then any of them remains: where elements have several words,
// a dispatch writes one of these (BY_WORD), and only where the words before it are the element's.

#if UNIT == 16
#define Element uvec4
#define COMPONENTS xyzw
#elif UNIT == 8
#define Element uvec2
#define COMPONENTS xy
#else
#define Element uint
#define COMPONENTS x
#endif

#define INDEXED
#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { Element source[]; };
#if defined(BY_WORD) || defined(GENERAL)
layout(std430, binding = 2) buffer Target { uint target[]; };
#else
layout(std430, binding = 2) writeonly buffer Target { Element target[]; };
#endif

#include "indices.glsl"

void store(uint to, Element element, uint word) {
#if UNIT > 4 && (defined(BY_WORD) || defined(GENERAL))
    uint at = to * (UNIT / 4u);
    uint first = word == ALL_WORDS ? 0u : word;
    uint last = word == ALL_WORDS ? UNIT / 4u - 1u : word;
    for (uint k = 0u; k < first; ++k)
        if (target[at + k] != element[k]) return;
    for (uint k = first; k <= last; ++k) target[at + k] = element[k];
#else
    target[to] = element;
#endif
}

uvec4 steps;
uint step_position;
bool constant;
Element pattern;
Indexing from;
uint base;

void copy_row(Item item) {
    uint word = from.within.WITHIN_WORD;
    uint moved;
    uint i = 0u;
#ifndef GENERAL
    // One index may be that of all steps: see gather.comp.
    if ((from.advance.ADVANCE_INDICES | from.advance.ADVANCE_POSITION) == 0u) {
        if (!find_moved(from, item.index, item.place, moved)) return;
        for (; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
            Element element = source[item.src];  // a constant's address is 0, which exists
            store(item.dst + moved, constant ? pattern : element, word);
            item.dst += steps.STEPS_DST;
            item.src += steps.STEPS_SRC;
            item.position += step_position;
        }
    }
#endif
    for (; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        bool inside = find_moved(from, item.index, item.place, moved);
#ifdef GENERAL
        inside = inside && is_within(from.within, item.dst + moved - base);
#endif
        Element element = source[item.src];
        if (inside) store(item.dst + moved, constant ? pattern : element, word);
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
    pattern = table[item.record + PATTERN].COMPONENTS;
    from = indexing(item);
#ifdef GENERAL
    base = table[from.record + RECORD_VECTORS + HEAD].HEAD_DST;
#endif
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
        next_indices(item, from);
    }
}
