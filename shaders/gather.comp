#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of whole words from where indices say: elements of UNIT = 4, 8 or 16 bytes.

#if UNIT == 16 && defined(WIDE)
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define Element u64vec2
#elif UNIT == 16
#define Element uvec4
#elif UNIT == 8
#define Element uvec2
#else
#define Element uint
#endif

#define INDEXED
#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { Element source[]; };
layout(std430, binding = 2) writeonly buffer Target { Element target[]; };

#include "indices.glsl"

void copy_element(Item item, uint at) {
    Element element = source[at];
    target[item.dst] = element;
}

uvec4 steps;
uint step_position;
Indexing from;
uint base;
#ifdef LIMITED
uvec4 limits;
#endif

void copy_row(Item item) {
    uint moved;
    uint i = 0u;
#ifndef GENERAL
    // One index may be that of all steps. Loads and branches in the loop would cost more than the
    // copy itself: CPU drivers execute both sides of a branch.
    if ((from.advance.ADVANCE_INDICES | from.advance.ADVANCE_POSITION) == 0u) {
        find_moved(from, item.index, item.place, moved);
        for (; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
            copy_element(item, item.src + moved);
            item.dst += steps.STEPS_DST;
            item.src += steps.STEPS_SRC;
            item.position += step_position;
        }
    }
#endif
    for (; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        find_moved(from, item.index, item.place, moved);
#ifdef LIMITED
        moved = limited(limits, item.src + moved - base) + base - item.src;
#endif
#ifdef GENERAL
        if (is_within(from.within, item.src + moved - base))
#endif
            copy_element(item, item.src + moved);
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
    from = indexing(item);
#ifdef GENERAL
    base = table[from.record + RECORD_VECTORS + HEAD].HEAD_SRC;
#endif
#ifdef LIMITED
    limits = table[from.record + RECORD_VECTORS + LIMITS];
#endif
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
        next_indices(item, from);
    }
}
