#version 450
#extension GL_GOOGLE_include_directive : require
// Fills outputs of elements of UNIT = 1 to 8 bytes whose dimensions consist of parts, as those of pads do.
//
// In each part of a dimension, a step has a stride of its own in the source; the address of an element is
// the sum of what its coordinates add. A row, the innermost dimension, has a vector or more, so a vector
// has elements of two rows at most. An invocation stores some vectors, a workgroup apart, each at once,
// and nothing is atomic. A grid has one record for each dimension, one after the other.

#include "region.glsl"

#if UNIT == 8
#define Element uvec2
#else
#define Element uint
#endif

layout(std430, binding = 1) readonly buffer Source { Element source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };
layout(std430, binding = 3) buffer TargetWords { uint target_words[]; };  // the same memory

#include "stream_end.glsl"

const uint PER_VECTOR = 16u / UNIT;
const uint PER_WORD = max(4u / UNIT, 1u);

struct Parts {
    uvec4 starts;   // where they begin; those that do not exist begin behind the dimension
    uvec4 origins;  // what the coordinate 0 would add, if a part reached it
    uvec4 strides;
};

Parts parts_at(uint record) {
    return Parts(table[record + STARTS], table[record + ORIGINS], table[record + STRIDES]);
}

// What a coordinate adds to the address.
uint added(Parts parts, uint at) {
    uint origin = parts.origins.x, stride = parts.strides.x;
    bvec4 begun = greaterThanEqual(uvec4(at), parts.starts);
    origin = mix(origin, parts.origins.y, begun.y);
    stride = mix(stride, parts.strides.y, begun.y);
    origin = mix(origin, parts.origins.z, begun.z);
    stride = mix(stride, parts.strides.z, begun.z);
    origin = mix(origin, parts.origins.w, begun.w);
    stride = mix(stride, parts.strides.w, begun.w);
    return origin + at * stride;
}

uint levels;  // dimensions
uvec4 size;   // of a row
Parts parts;  // of a row

// The address of a row's origin. A row behind the last one is the first one.
uint row_address(Item item, uint row) {
    uint address = item.src;
    uint record = item.record;
    for (uint level = 1u; level < levels; ++level) {
        record += RECORD_VECTORS;
        uvec4 count = table[record + LEVEL];
        uint rest = divide(row, count.LEVEL_SIZE, count.LEVEL_FACTOR);
        address += added(parts_at(record), row - rest * count.LEVEL_SIZE);
        row = rest;
    }
    return address;
}

uint here, next;  // the addresses of a row and of the next one

Element element(uint column) {
    bool beyond = column >= size.LEVEL_SIZE;
    uint address = mix(here, next, beyond) + added(parts, column - mix(0u, size.LEVEL_SIZE, beyond));
#if UNIT < 4
    uint bit = address * UNIT % 4u * 8u;
    return bitfieldExtract(source[address / PER_WORD], int(bit), int(UNIT * 8u));
#else
    return source[address];
#endif
}

#if UNIT < 8
uint word(uint column) {
    uint result = element(column);
#if UNIT < 4
    result |= element(column + 1u) << (UNIT * 8u);
#endif
#if UNIT == 1
    result |= element(column + 2u) << 16 | element(column + 3u) << 24;
#endif
    return result;
}
#endif

void main() {
    Item item;
    if (!find_item(item)) return;

    uvec4 stream = table[item.record + STREAM];
    levels = stream.STREAM_SEGMENTS;
    size = table[item.record + LEVEL];
    parts = parts_at(item.record);

    uint block = item.first / WORKGROUP_SIZE;
    uint vector = block * (stream.STREAM_VECTORS - 1u) * WORKGROUP_SIZE + item.first;
    uint last = (stream.STREAM_NBYTES - 1u) / 16u;
    for (uint i = 0u; i < stream.STREAM_VECTORS && vector <= last; ++i) {
        uint row = divide(vector * PER_VECTOR, size.LEVEL_SIZE, size.LEVEL_FACTOR);
        uint column = vector * PER_VECTOR - row * size.LEVEL_SIZE;
        here = next = row_address(item, row);
        if (column + PER_VECTOR > size.LEVEL_SIZE) next = row_address(item, row + 1u);
#if UNIT == 8
        uvec4 value = uvec4(element(column), element(column + 1u));
#else
        uvec4 value = uvec4(word(column), word(column + PER_WORD), word(column + 2u * PER_WORD),
                            word(column + 3u * PER_WORD));
#endif
        uint to = item.dst / PER_VECTOR + vector;
        uint left = stream.STREAM_NBYTES - vector * 16u;
        if (left >= 16u) target[to] = value;
        else store_end(to, value, left);
        vector += WORKGROUP_SIZE;
    }
}
