#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of whole words to where indices say: elements of UNIT = 4, 8 or 16 bytes.
//
// Elements may have the same target. Then any of them remains: where elements have several words,
// a dispatch writes one of them, and only where the words before it are the element's own.

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
layout(std430, binding = 2) buffer Target { Element target[]; };

#include "indices.glsl"

void store(uint to, Element element, uint word) {
#if UNIT > 4
    if (word != ALL_WORDS) {
        Element present = target[to];
        for (uint k = 0u; k < word; ++k)
            if (present[k] != element[k]) return;
        target[to][word] = element[word];
        return;
    }
#endif
    target[to] = element;
}

void main() {
    Item item;
    if (!find_item(item)) return;

    uvec4 steps = table[item.record + STEPS];
    uint step_position = table[item.record + POSITION].POSITION_STEP;
    bool constant = table[item.record + RUN].RUN_CONSTANT != 0u;
    Element pattern = table[item.record + PATTERN].COMPONENTS;
    uvec4 advance = table[item.record + RECORD_VECTORS + ADVANCE];
    uvec4 within = table[item.record + RECORD_VECTORS + WITHIN];
    uint base = table[item.record + 2u * RECORD_VECTORS + HEAD].HEAD_DST;
    bool once = (advance.ADVANCE_INDICES | advance.ADVANCE_POSITION) == 0u;

    uint moved = 0u;
    bool inside = false;
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        if (!once || i == 0u) inside = find_moved(item, item.index, item.place, moved);
        uint to = item.dst + moved;
        if (inside && is_within(within, to - base)) {
            Element element = source[item.src];  // a constant's address is 0, which exists
            if (constant) element = pattern;
            store(to, element, within.WITHIN_WORD);
            TRACE_STORE(to * UNIT, UNIT, item.src * UNIT, UNIT, UNIT, constant ? CONSTANT : 0u,
                        element);
        }
        item.dst += steps.STEPS_DST;
        item.src += steps.STEPS_SRC;
        item.index += advance.ADVANCE_INDICES;
        item.place += advance.ADVANCE_POSITION;
        item.position += step_position;
    }
}
