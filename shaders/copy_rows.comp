#version 450
#extension GL_GOOGLE_include_directive : require
// Fills outputs as one stream of bytes, as copy_stream does, of few and not too short segments.
//
// Each segment has 16 bytes or more, so a vector of the stream has bytes of two segments at most: each
// of them is shifted into place, out of two vectors of the source that the neighbours load as well. An
// invocation stores some vectors, a workgroup apart, each at once, and nothing is atomic. All segments
// are of one source buffer; a row has SEGMENTS of them at most.

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uvec4 source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };
layout(std430, binding = 3) buffer TargetWords { uint target_words[]; };  // the same memory

#include "stream_end.glsl"

#if SEGMENTS == 1
#define PerSegment uint
#define OF(values, segment) values
#else
#define PerSegment uvec4
#define OF(values, segment) values[segment]
#endif

// Of each segment: its first byte in a row, the one behind it, the source's address of the row's first
// byte as if the segment reached it, and what a row adds to that.
PerSegment starts = PerSegment(~0u), ends = PerSegment(~0u);
PerSegment origins = PerSegment(0u), strides = PerSegment(0u);
uint count;        // of segments
uint first, last;  // vectors of the source that exist, with all those between them

void load_segments(Item item) {
    first = ~0u;
    last = 0u;
    for (uint k = 0u; k < count; ++k) {
        uint record = item.record + k * RECORD_VECTORS;
        uint src = table[record + HEAD].HEAD_SRC;
        uvec4 segment = table[record + SEGMENT];
        uvec4 reach = table[record + REACH];
        OF(starts, k) = segment.SEGMENT_START;
        OF(ends, k) = segment.SEGMENT_START + segment.SEGMENT_NBYTES;
        OF(origins, k) = src - segment.SEGMENT_START;
        OF(strides, k) = segment.SEGMENT_ROW_SRC;
        first = min(first, (src + reach.REACH_FIRST) >> 4);
        last = max(last, (src + reach.REACH_LAST) >> 4);
    }
}

// 16 bytes from an address on; those of vectors that do not exist are any.
uvec4 unaligned(uint address) {
    // An address before the source's first byte may be below 0.
    int vector = int(address) >> 4;
    uvec4 low = source[clamp(vector, int(first), int(last))];
    uvec4 high = source[min(vector + 1, int(last))];
    bool second = (address & 8u) != 0u, odd = (address & 4u) != 0u;
    low = second ? uvec4(low.zw, high.xy) : low;
    high.xy = second ? high.zw : high.xy;
    uvec4 words = odd ? uvec4(low.yzw, high.x) : low;
    uint beyond = odd ? high.y : high.x;
    int bits = int(address & 3u) * 8;
    return bitfieldInsert(words >> bits, uvec4(words.yzw, beyond), 32 - bits, bits);
}

// The first `count` bytes of one vector, and the others of another.
uvec4 joined(uvec4 one, uvec4 other, uint count) {
    ivec4 bits = clamp(ivec4(count * 8u) - ivec4(0, 32, 64, 96), 0, 32);
    return uvec4(bitfieldInsert(other.x, one.x, 0, bits.x), bitfieldInsert(other.y, one.y, 0, bits.y),
                 bitfieldInsert(other.z, one.z, 0, bits.z), bitfieldInsert(other.w, one.w, 0, bits.w));
}

void main() {
    Item item;
    if (!find_item(item)) return;

    uvec4 stream = table[item.record + STREAM];
    uvec4 row_bytes = table[item.record + ROW];
    count = SEGMENTS == 1 ? 1u : stream.STREAM_SEGMENTS;
    load_segments(item);

    uint block = item.first / WORKGROUP_SIZE;
    uint position = ((block * (stream.STREAM_VECTORS - 1u)) * WORKGROUP_SIZE + item.first) * 16u;
    for (uint i = 0u; i < stream.STREAM_VECTORS && position < stream.STREAM_NBYTES; ++i) {
        uint row = divide(position, row_bytes.ROW_NBYTES, row_bytes.ROW_FACTOR);
        uint column = position - row * row_bytes.ROW_NBYTES;
        uint segment = 0u;
#if SEGMENTS > 1
        segment = uint(column >= starts.y) + uint(column >= starts.z) + uint(column >= starts.w);
#endif
        uint left = OF(ends, segment) - column;
        uvec4 value = unaligned(OF(origins, segment) + row * OF(strides, segment) + column);
        if (left < 16u) {
            column += left;
#if SEGMENTS > 1
            ++segment;
            if (segment == count)
#endif
            {
                segment = 0u;
                column = 0u;
                ++row;
            }
            uint next = OF(origins, segment) + row * OF(strides, segment) + column;
            value = joined(value, unaligned(next - left), left);
        }
        uint vector = (item.dst + position) / 16u;
        position += 16u;
        if (position <= stream.STREAM_NBYTES) target[vector] = value;
        else store_end(vector, value, stream.STREAM_NBYTES & 15u);
        position += (WORKGROUP_SIZE - 1u) * 16u;
    }
}
