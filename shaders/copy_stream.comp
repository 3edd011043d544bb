#version 450
#extension GL_GOOGLE_include_directive : require
// Fills outputs as one stream of bytes, made of segments from anywhere at any alignment.
//
// The stream consists of rows with the same segments. An item fills some consecutive vectors of
// it: it takes pieces, each as far as the source vector or the segment reaches, and stores a
// vector when it is full. So one invocation stores each vector, every byte is loaded and stored
// once, and nothing is atomic. Addresses count bytes; a stream begins at a multiple of 16.
//
// A stream has one record per segment, one after the other; its items belong to the first.
// With SEGMENTS, a row has at most so many, all of one source buffer. With SHARED, for GPUs, a
// workgroup first loads what its items need to shared memory: of each tensor, which `from` numbers,
// all from the first vector to the last one, each once. If that is too much, items load themselves.

#ifdef SHARED
#define WORKGROUP_SIZE 256
#endif

#include "region.glsl"

layout(std430, binding = 1) readonly buffer Source { uvec4 source[]; };
layout(std430, binding = 2) writeonly buffer Target { uvec4 target[]; };
layout(std430, binding = 3) buffer TargetWords { uint target_words[]; };  // the same memory

#include "stream_end.glsl"

#if SEGMENTS == 0 && !defined(SHARED)
layout(std430, binding = 4) readonly buffer Source1 { uvec4 source1[]; };
layout(std430, binding = 5) readonly buffer Source2 { uvec4 source2[]; };
layout(std430, binding = 6) readonly buffer Source3 { uvec4 source3[]; };
#endif

struct Cursor {
    uint src;   // address of the next byte
    uint left;  // bytes left in the segment
    uint from;  // number of the source
};

#if SEGMENTS
// Few segments stay in registers: the table is as slow to read as the source.
uvec4 sources = uvec4(0u), lengths = uvec4(0u), strides = uvec4(0u);

void load_segments(uint record, uint count) {
    for (uint k = 0u; k < count; ++k) {
        uvec4 segment = table[record + SEGMENT];
        sources[k] = table[record + HEAD].HEAD_SRC;
        lengths[k] = segment.SEGMENT_NBYTES;
        strides[k] = segment.SEGMENT_ROW_SRC;
        record += RECORD_VECTORS;
    }
}

Cursor segment_start(uint first, uint segment, uint row) {
    return Cursor(sources[segment] + row * strides[segment], lengths[segment], 0u);
}

uvec4 load(Cursor cursor) { return source[cursor.src >> 4]; }
#else
void load_segments(uint record, uint count) {}

Cursor segment_start(uint first, uint segment, uint row) {
    uint record = first + segment * RECORD_VECTORS;
    uvec4 it = table[record + SEGMENT];
    return Cursor(table[record + HEAD].HEAD_SRC + row * it.SEGMENT_ROW_SRC, it.SEGMENT_NBYTES,
                  it.SEGMENT_SOURCE);
}

#ifdef SHARED
const uint TENSORS = 4u;
const uint MAX_SHARED = 2u * WORKGROUP_SIZE;
const uint LINE_VECTORS = 8u;

shared uvec4 vectors[MAX_SHARED];
shared uint firsts[TENSORS], lasts[TENSORS];  // of the vectors, by tensor
uvec4 offsets;  // from a tensor's vectors in memory to those that are shared
bool is_shared;

uvec4 load(Cursor cursor) {
    uint vector = cursor.src >> 4;
    if (is_shared) return vectors[vector - offsets[cursor.from]];
    return source[vector];
}

void reserve(Cursor cursor, uint count) {
    atomicMin(firsts[cursor.from], cursor.src >> 4);
    atomicMax(lasts[cursor.from], (cursor.src + count - 1u) >> 4);
}

void load_shared() {
    uint total = 0u;
    for (uint t = 0u; t < TENSORS; ++t) {
        offsets[t] = firsts[t] - total;
        if (firsts[t] <= lasts[t]) total += lasts[t] - firsts[t] + 1u;
        is_shared = total <= MAX_SHARED;
        if (!is_shared) break;
        if (firsts[t] > lasts[t]) continue;
        // Invocations that run together load whole lines.
        uint vector = firsts[t] / LINE_VECTORS * LINE_VECTORS + gl_LocalInvocationIndex;
        for (; vector <= lasts[t]; vector += WORKGROUP_SIZE)
            if (vector >= firsts[t]) vectors[vector - offsets[t]] = source[vector];
    }
}
#else
uvec4 load(Cursor cursor) {
    uint vector = cursor.src >> 4;
    if (cursor.from == 0u) return source[vector];
    if (cursor.from == 1u) return source1[vector];
    if (cursor.from == 2u) return source2[vector];
    return source3[vector];
}
#endif
#endif

// The vector's bytes rotated upwards by `count`, 0 to 15.
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

Item item;
uvec4 stream;
Cursor cursor;
uint row, segment;

// Moves the cursor to a byte of the stream.
void seek(uint position) {
    uvec4 row_bytes = table[item.record + ROW];
    row = divide(position, row_bytes.ROW_NBYTES, row_bytes.ROW_FACTOR);
    uint column = position - row * row_bytes.ROW_NBYTES;
    segment = 0u;
    uint beyond = stream.STREAM_SEGMENTS;
    while (beyond - segment > 1u) {
        uint middle = (segment + beyond) >> 1;
        if (table[item.record + middle * RECORD_VECTORS + SEGMENT].SEGMENT_START <= column)
            segment = middle;
        else
            beyond = middle;
    }
    load_segments(item.record, stream.STREAM_SEGMENTS);
    cursor = segment_start(item.record, segment, row);
    uint skipped =
        column - table[item.record + segment * RECORD_VECTORS + SEGMENT].SEGMENT_START;
    cursor.src += skipped;
    cursor.left -= skipped;
}

// Goes on to the byte that is `count` bytes behind, at most where the next segment begins.
void advance(uint count) {
    cursor.src += count;
    cursor.left -= count;
    if (cursor.left == 0u) {
        ++segment;
        if (segment == stream.STREAM_SEGMENTS) {
            segment = 0u;
            ++row;
        }
        cursor = segment_start(item.record, segment, row);
    }
}

void main() {
    bool is_active = find_item(item);
#ifdef SHARED
    if (gl_LocalInvocationIndex < TENSORS) {
        firsts[gl_LocalInvocationIndex] = ~0u;
        lasts[gl_LocalInvocationIndex] = 0u;
    }
    barrier();
#else
    if (!is_active) return;
#endif

    uint position = 0u, end = 0u, vector = 0u;
    if (is_active) {
        stream = table[item.record + STREAM];
        position = item.first * stream.STREAM_VECTORS * 16u;
        end = min(position + stream.STREAM_VECTORS * 16u, stream.STREAM_NBYTES);
        vector = (item.dst + position) / 16u;
    }
#ifdef SHARED
    is_active = position < end;
    if (is_active) seek(position);
    Cursor first_cursor = cursor;
    uint first_row = row, first_segment = segment;
    for (uint at = position; at < end;) {
        uint count = min(end - at, cursor.left);
        reserve(cursor, count);
        advance(count);
        at += count;
    }
    barrier();
    load_shared();
    barrier();
    if (!is_active) return;
    cursor = first_cursor;
    row = first_row;
    segment = first_segment;
#else
    seek(position);
#endif

    uvec4 gathered = uvec4(0u);
    uvec4 piece = uvec4(0u);
    uint filled = 0u;  // bytes of it
    while (position < end) {
        uint within = cursor.src & 15u;
        uint count = min(16u - within, cursor.left);
        piece = rotated(load(cursor), (filled - within) & 15u);
        gathered = joined(gathered, piece, filled);
        // What comes after the end is stored by the next item.
        filled += count;
        position += count;
        if (filled >= 16u && position < end) {
            target[vector] = gathered;
            gathered = piece;  // the bytes that did not fit were rotated to the bottom
            filled -= 16u;
            ++vector;
        }
        advance(count);
    }
    // All invocations store their last vector, on GPUs the only one, at once.
    if (filled >= 16u) {
        target[vector] = gathered;
        gathered = piece;
        filled -= 16u;
        ++vector;
    }
    if (end == stream.STREAM_NBYTES) store_end(vector, gathered, filled);
}
