#version 450
#extension GL_GOOGLE_include_directive : require
// Strided copies of whole words: elements of UNIT = 4, 8 or 16 bytes.

#if UNIT == 16
#define Element uvec4
#elif UNIT == 8
#define Element uvec2
#else
#define Element uint
#endif

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { Element source[]; };
layout(std430, binding = 2) writeonly buffer Target { Element target[]; };

Element pattern(uint record) {
    uint word = record + PATTERN;
#if UNIT == 16
    return uvec4(table[word], table[word + 1u], table[word + 2u], table[word + 3u]);
#elif UNIT == 8
    return uvec2(table[word], table[word + 1u]);
#else
    return table[word];
#endif
}

void main() {
    Item item;
    if (!find_item(item)) return;

    uint steps = table[item.record + STEPS];
    uint step_dst = table[item.record + STEP_DST];
    uint step_src = table[item.record + STEP_SRC];
    uint step_position = table[item.record + STEP_POSITION];
    uint limit = table[item.record + LIMIT];

    if (table[item.record + IS_FILL] != 0u) {
        Element value = pattern(item.record);
        for (uint i = 0u; i < steps && item.position < limit; ++i) {
            target[item.dst] = value;
            item.dst += step_dst;
            item.position += step_position;
        }
        return;
    }
    for (uint i = 0u; i < steps && item.position < limit; ++i) {
        target[item.dst] = source[item.src];
        item.dst += step_dst;
        item.src += step_src;
        item.position += step_position;
    }
}
