#version 450
#extension GL_GOOGLE_include_directive : require
// Outputs that are one stream of bytes, made of segments from anywhere at any alignment.
//
// The stream is rows of the same segments. An item fills `steps` consecutive vectors of it: it
// takes pieces, each as far as the source vector or the segment reaches, and stores a vector when
// it is full. So every vector has one owner, every byte is loaded and stored once, and nothing is
// atomic. Addresses count bytes; a stream begins at a multiple of 16.
//
// A stream has one record per segment, one after the other; its items belong to the first.
// With SEGMENTS, a row has at most so many, all of one source buffer.

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uvec4 source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };
layout(std430, binding = 3) buffer TargetWords { uint target_words[]; };  // the same memory

// A record's vectors, where they differ:
const uint STREAM = 1u;   // vectors of an item, bytes of the stream, segments
const uint SEGMENT = 2u;  // first byte in the row, bytes, what a row adds to src, source buffer
const uint ROW = 3u;      // bytes of a row, division factor

#if SEGMENTS == 0
layout(std430, binding = 4) readonly buffer Source1 { uvec4 source1[]; };
layout(std430, binding = 5) readonly buffer Source2 { uvec4 source2[]; };
layout(std430, binding = 6) readonly buffer Source3 { uvec4 source3[]; };
#endif

struct Place {
    uint src;     // of the next byte
    uint left;    // bytes left in the segment
    uint from;
};

#if SEGMENTS
// Few segments stay in registers: the table is as slow to read as the source.
uvec4 sources = uvec4(0u), lengths = uvec4(0u), strides = uvec4(0u);

void load_segments(uint record, uint count) {
    for (uint k = 0u; k < count; ++k) {
        uvec4 segment = table[record + SEGMENT];
        sources[k] = table[record + HEAD].z;
        lengths[k] = segment.y;
        strides[k] = segment.z;
        record += RECORD_VECTORS;
    }
}

Place segment_start(uint first, uint segment, uint row) {
    return Place(sources[segment] + row * strides[segment], lengths[segment], 0u);
}

uvec4 load(Place place) { return source[place.src >> 4]; }
#else
void load_segments(uint record, uint count) {}

Place segment_start(uint first, uint segment, uint row) {
    uint record = first + segment * RECORD_VECTORS;
    uvec4 it = table[record + SEGMENT];
    return Place(table[record + HEAD].z + row * it.z, it.y, it.w);
}

uvec4 load(Place place) {
    uint vector = place.src >> 4;
    if (place.from == 0u) return source[vector];
    if (place.from == 1u) return source1[vector];
    if (place.from == 2u) return source2[vector];
    return source3[vector];
}
#endif

// Bytes moved up by `count`, 0 to 15; those that leave at the top come in at the bottom.
uvec4 rotated(uvec4 v, uint count) {
    if ((count & 8u) != 0u) v = v.zwxy;
    if ((count & 4u) != 0u) v = v.wxyz;
    uint bits = (count & 3u) * 8u;
    return (v << bits) | ((v.wxyz >> 1) >> (31u - bits));
}

// The first `count` bytes from one vector, the others from another.
uvec4 joined(uvec4 first, uvec4 others, uint count) {
    uvec4 bits = uvec4(clamp(ivec4(count) - ivec4(0, 4, 8, 12), 0, 4)) * 8u;
    uvec4 half_bits = bits >> 1;  // a shift by 32 is undefined
    uvec4 mask = ((uvec4(1u) << half_bits) << (bits - half_bits)) - 1u;
    return (first & mask) | (others & ~mask);
}

void main() {
    Item item;
    if (!find_item(item)) return;

    uvec4 stream = table[item.record + STREAM];
    uvec4 row_bytes = table[item.record + ROW];
    uint position = item.first * stream.x * 16u;
    uint end = min(position + stream.x * 16u, stream.y);
    uint vector = (item.dst + position) / 16u;
    uint row = divide(position, row_bytes.x, row_bytes.y);
    uint column = position - row * row_bytes.x;

    uint segment = 0u;
    uint beyond = stream.z;
    while (beyond - segment > 1u) {
        uint middle = (segment + beyond) >> 1;
        if (table[item.record + middle * RECORD_VECTORS + SEGMENT].x <= column) segment = middle;
        else beyond = middle;
    }
    load_segments(item.record, stream.z);
    Place place = segment_start(item.record, segment, row);
    uint skipped = column - table[item.record + segment * RECORD_VECTORS + SEGMENT].x;
    place.src += skipped;
    place.left -= skipped;

    uvec4 gathered = uvec4(0u);
    uint filled = 0u;  // bytes of it
    while (position < end) {
        uint within = place.src & 15u;
        uint count = min(16u - within, place.left);
        uvec4 piece = rotated(load(place), (filled - within) & 15u);
        gathered = joined(gathered, piece, filled);
        // What comes after the end is stored by the next item.
        TRACE_STORE(vector * 16u + filled, min(count, end - position), place.src, 1u, 1u,
                    place.from, rotated(piece, (16u - filled) & 15u));
        filled += count;
        if (filled >= 16u) {
            target[vector] = gathered;
            gathered = piece;  // what did not fit has come round to the bottom
            filled -= 16u;
            ++vector;
        }
        position += count;
        place.src += count;
        place.left -= count;
        if (place.left == 0u) {
            ++segment;
            if (segment == stream.z) {
                segment = 0u;
                ++row;
            }
            place = segment_start(item.record, segment, row);
        }
    }
    // The end of the stream, which may be within a word.
    if (end == stream.y) {
        for (uint k = 0u; k * 4u < filled; ++k) {
            uint word = vector * 4u + k;
            uint left = filled - k * 4u;
            uint others = left < 4u ? ~0u << (left * 8u) : 0u;
            target_words[word] = (gathered[k] & ~others) | (target_words[word] & others);
        }
    }
}
