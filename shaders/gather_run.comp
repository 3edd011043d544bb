#version 450
#extension GL_GOOGLE_include_directive : require
// Copies of elements of UNIT = 1, 2, 4 or 8 bytes from where indices say to contiguous runs.
//
// An item's step is one 16-byte vector of the destination, as in copy_run.comp. A vector that is
// wholly in the run is stored; of one at its edge, words are stored, and of a word at its edge only
// the run's own bits are changed, atomically.

#define INDEXED
#include "region.glsl"

#if UNIT == 8
#define Element uvec2
#else
#define Element uint
#endif

layout(std430, binding = 1) readonly buffer Source { Element source[]; };
layout(std430, binding = 2) buffer Target { uvec4 target[]; };

#include "indices.glsl"

const uint PER_VECTOR = 16u / UNIT;

struct Run {
    Indexing from;
    uint src;       // of its first element
    uint stride;
    uint index;
    uint place;
    int last;       // number of its last element
};

// The address of an element of the run; beyond its ends, of that at the end.
uint address(Run run, int number) {
    uint e = uint(clamp(number, 0, run.last));
    uint moved;
    find_moved(run.from, run.index + e * run.from.advance.ADVANCE_RUN_INDICES,
               run.place + e * run.from.advance.ADVANCE_RUN_POSITION, moved);
    return run.src + e * run.stride + moved;
}

Element load(uint at) {
#if UNIT < 4
    return (source[at * UNIT / 4u] >> (at * UNIT % 4u * 8u)) & ((1u << (UNIT * 8u)) - 1u);
#else
    return source[at];
#endif
}

Element element(Run run, int number) { return load(address(run, number)); }

#if UNIT < 4
uint word(Run run, int number) {
    uint result = 0u;
    for (uint k = 0u; k < 4u / UNIT; ++k) result |= element(run, number + int(k)) << (k * UNIT * 8u);
    return result;
}
#endif

uvec4 vector(Run run, int base) {
#if UNIT == 8
    return uvec4(element(run, base), element(run, base + 1));
#elif UNIT == 4
    return uvec4(element(run, base), element(run, base + 1), element(run, base + 2),
                 element(run, base + 3));
#else
    const int n = int(4u / UNIT);
    return uvec4(word(run, base), word(run, base + n), word(run, base + 2 * n),
                 word(run, base + 3 * n));
#endif
}

// Stores those bytes of a word that are in the run; `base` is the run's byte at the word's start.
void store_word(uint at, uint k, uint value, int base, int length) {
    int first = clamp(-base, 0, 4) * 8;
    int end = clamp(length - base, 0, 4) * 8;
    if (first == 0 && end == 32) {
        target[at][k] = value;
    } else if (first < end) {
        uint mask = (~0u << first) & (~0u >> (32 - end));
        atomicAnd(target[at][k], ~mask);
        atomicOr(target[at][k], value & mask);
    }
}

uvec4 steps;
uvec4 position;
bool along;  // steps go along the run, or across runs

void copy_row(Item item, Run run) {
    for (uint i = 0u; i < steps.STEPS_NUMBER && item.position < steps.STEPS_LIMIT; ++i) {
        run.src = item.src;
        run.index = item.index;
        run.place = item.place;
        uint at = item.dst / PER_VECTOR + (along ? item.position : item.first);
        int base = int(at * PER_VECTOR - item.dst);  // the run's element at the vector's start
        uvec4 value = vector(run, base);
        if (base >= 0 && base + int(PER_VECTOR) - 1 <= run.last) {
            target[at] = value;
        } else {
            for (uint k = 0u; k < 4u; ++k)
                store_word(at, k, value[k], base * int(UNIT) + int(k) * 4, (run.last + 1) * int(UNIT));
        }
#ifdef TRACE
        for (int e = max(base, 0); e < min(base + int(PER_VECTOR), run.last + 1); ++e) {
            uint from = address(run, e);
            TRACE_STORE((item.dst + uint(e)) * UNIT, UNIT, from * UNIT, UNIT, UNIT, 0u, load(from));
        }
#endif
        item.dst += steps.STEPS_DST;
        item.src += steps.STEPS_SRC;
        item.index += run.from.advance.ADVANCE_INDICES;
        item.place += run.from.advance.ADVANCE_POSITION;
        item.position += position.POSITION_STEP;
    }
}

void main() {
    Item item;
    if (!find_item(item)) return;

    steps = table[item.record + STEPS];
    position = table[item.record + POSITION];
    along = position.POSITION_DIGIT_0 != 0u;
    uvec4 length = table[item.record + RUN];
    Run run;
    run.from = indexing(item);
    run.stride = length.RUN_SRC;
    run.last = int(length.RUN_LENGTH) - 1;
    uvec4 rows = table[item.record + ROWS];
    for (uint r = 0u; r < rows.ROWS_NUMBER && item.row < rows.ROWS_LIMIT; ++r) {
        copy_row(item, run);
        next_row(item, rows);
        next_indices(item, run.from);
    }
}
