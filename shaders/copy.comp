#version 450
#extension GL_GOOGLE_include_directive : require
// Strided copies of whole words: elements of UNIT = 4, 8 or 16 bytes.

#if UNIT == 16 && defined(WIDE)
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define Element u64vec2
#define COMPONENTS xyzw
#elif UNIT == 16
#define Element uvec4
#define COMPONENTS xyzw
#elif UNIT == 8
#define Element uvec2
#define COMPONENTS xy
#else
#define Element uint
#define COMPONENTS x
#endif

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { Element source[]; };
layout(std430, binding = 2) writeonly buffer Target { Element target[]; };

uvec4 steps;
uint step_position;
bool constant;
Element pattern;

void copy_row(Item item) {
    Element element;
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        // A constant's address is 0, which exists. On CPU drivers a branch costs more than a load.
        if (!ALIGNED || i == 0u || steps.STEPS_SRC != 0u) element = source[item.src];
        target[item.dst] = constant ? pattern : element;
        item.dst += steps.STEPS_DST;
        item.src += steps.STEPS_SRC;
        item.position += step_position;
    }
}

void main() {
    Item item;
    if (!find_item(item)) return;

    steps = table[item.record + STEPS];
    step_position = table[item.record + POSITION].POSITION_STEP;
    constant = table[item.record + RUN].RUN_CONSTANT != 0u;
#ifdef WIDE
    uvec4 bits = table[item.record + PATTERN];
    pattern = u64vec2(packUint2x32(bits.xy), packUint2x32(bits.zw));
#else
    pattern = table[item.record + PATTERN].COMPONENTS;
#endif
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item);
        next_row(item, rows);
    }
}
