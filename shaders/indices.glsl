// Reads the index tensor, and finds where it moves the address of an element.
//
// An index has one word or two, the low one first, and is signed or not. A record with indices is
// followed by two more: one with their strides, and one with a term for each number of a tuple,
// whose head has the addresses of both tensors. Kernels that are not GENERAL read tuples of one
// number only, and write all elements. With LIMITED, numbers are not limited to their terms: they
// address the memory of the tensor, modulo 2^32.

layout(std430, binding = 3) readonly buffer Indices { uvec2 indices[]; };

struct Indexing {
    uvec4 format;
    uvec4 term;     // of the first number
    uvec4 advance;
    uvec4 within;
    uvec4 row;      // added by a row
    uint address;   // of the index tensor, in words
    uint record;
};

Indexing indexing(Item item) {
    Indexing result;
    result.record = item.record + RECORD_VECTORS;
    result.format = table[result.record + FORMAT];
    result.advance = table[result.record + ADVANCE];
    result.within = table[result.record + WITHIN];
    result.row = table[result.record + ROW_ADVANCE];
    result.term = table[result.record + RECORD_VECTORS + TERM];
    result.address = table[result.record + HEAD].HEAD_SRC * UNIT / 4u;  // it counts units
    return result;
}

// What one number of an index tuple adds to an address. Returns whether it is inside its term;
// otherwise the nearest number inside is taken.
bool add_number(Indexing from, uvec4 term, uint index, uint position, inout uint moved) {
    index += term.TERM_OFFSET;
    uvec2 words = indices[index / 2u];
    uint low = (index & 1u) == 0u ? words.x : words.y;
    bool is_signed = from.format.FORMAT_SIGNED != 0u;
    uint high = is_signed ? uint(int(low) >> 31) : 0u;
    if (from.format.FORMAT_WORDS == 2u) high = words.y;
    bool negative = is_signed && int(high) < 0;  // it counts from the end
    uint number = negative ? low + term.TERM_SIZE : low;
#ifdef LIMITED
    moved += number * term.TERM_STRIDE;
    return true;
#endif
    bool inside = high == (negative ? ~0u : 0u) && number < term.TERM_SIZE;
    if (!inside) number = negative ? 0u : term.TERM_SIZE - 1u;
    if (from.format.FORMAT_REVERSE != 0u) {  // the number is the length of a sequence
        uint length = inside ? number : negative ? 0u : term.TERM_SIZE;
        number = position < length ? length - 1u - position : position;
    }
    moved += number * term.TERM_STRIDE;
    return inside;
}

// What moves the address of an element whose index tuple and position are given. Returns whether
// all numbers are inside their terms.
bool find_moved(Indexing from, uint index, uint position, out uint moved) {
    moved = 0u;
    index += from.address;
    bool inside = add_number(from, from.term, index, position, moved);
#ifdef GENERAL
    for (uint t = 1u; t < from.format.FORMAT_TERMS; ++t) {
        uvec4 term = table[from.record + RECORD_VECTORS + TERM + t];
        inside = add_number(from, term, index, position, moved) && inside;
    }
#endif
    return inside;
}

void next_indices(inout Item item, Indexing from) {
    item.index += from.row.ROW_ADVANCE_INDICES;
    item.place += from.row.ROW_ADVANCE_POSITION;
}

#ifdef LIMITED
// The nearest address within limits, counted from the tensor's own.
uint limited(uvec4 limits, uint address) {
    return limits.LIMITS_FIRST + min(address - limits.LIMITS_FIRST, limits.LIMITS_LAST);
}
#endif

// Whether the element at a moved address, counted from the tensor's own, is written.
bool is_within(uvec4 within, uint address) {
    return address - within.WITHIN_FIRST < within.WITHIN_NUMBER;
}
