#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of whole words from where indices say: elements of UNIT = 4, 8 or 16 bytes.

#if UNIT == 16
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

void main() {
    Item item;
    if (!find_item(item)) return;

    uvec4 steps = table[item.record + STEPS];
    uint step_position = table[item.record + POSITION].POSITION_STEP;
    uvec4 advance = table[item.record + RECORD_VECTORS + ADVANCE];
    uvec4 within = table[item.record + RECORD_VECTORS + WITHIN];
    uint base = table[item.record + 2u * RECORD_VECTORS + HEAD].HEAD_SRC;
    bool once = (advance.ADVANCE_INDICES | advance.ADVANCE_POSITION) == 0u;

    uint moved = 0u;
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        if (!once || i == 0u) find_moved(item, item.index, item.place, moved);
        uint from = item.src + moved;
        if (is_within(within, from - base)) {
            Element element = source[from];
            target[item.dst] = element;
            TRACE_STORE(item.dst * UNIT, UNIT, from * UNIT, UNIT, UNIT, 0u, element);
        }
        item.dst += steps.STEPS_DST;
        item.src += steps.STEPS_SRC;
        item.index += advance.ADVANCE_INDICES;
        item.place += advance.ADVANCE_POSITION;
        item.position += step_position;
    }
}
