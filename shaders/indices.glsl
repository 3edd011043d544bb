// Reads the index tensor, and finds where it moves the address of an element.
//
// An index has one word or two, the low one first, and is signed or not. A record with indices is
// followed by two more: one with their strides, and one with a term for each number of a tuple,
// whose head has the addresses of both tensors.

layout(std430, binding = 3) readonly buffer Indices { uint indices[]; };

// What moves the address of an element whose index tuple and position are given. Returns whether
// all numbers are inside their terms; one that is not becomes the nearest one inside.
bool find_moved(Item item, uint index, uint position, out uint moved) {
    uvec4 format = table[item.record + RECORD_VECTORS + FORMAT];
    // The tensor's own address counts units.
    index += table[item.record + RECORD_VECTORS + HEAD].HEAD_SRC * UNIT / 4u;
    bool all_inside = true;
    moved = 0u;
    for (uint t = 0u; t < format.FORMAT_TERMS; ++t) {
        uvec4 term = table[item.record + 2u * RECORD_VECTORS + TERM + t];
        uint low = indices[index + term.TERM_OFFSET];
        bool negative = format.FORMAT_SIGNED != 0u && (low >> 31) != 0u;
        uint high = negative ? ~0u : 0u;
        if (format.FORMAT_WORDS == 2u) {
            high = indices[index + term.TERM_OFFSET + 1u];
            negative = format.FORMAT_SIGNED != 0u && (high >> 31) != 0u;
        }
        bool inside;
        uint number;
        if (negative) {  // it counts from the end
            uint back = 0u - low;
            inside = high == ~0u && back != 0u && back <= term.TERM_SIZE;
            number = inside ? term.TERM_SIZE - back : 0u;
        } else {
            inside = high == 0u && low < term.TERM_SIZE;
            number = inside ? low : term.TERM_SIZE - 1u;
        }
        if (format.FORMAT_REVERSE != 0u) {  // the number was the length of a sequence
            uint length = inside ? number : negative ? 0u : term.TERM_SIZE;
            number = position < length ? length - 1u - position : position;
        }
        moved += number * term.TERM_STRIDE;
        all_inside = all_inside && inside;
    }
    return all_inside;
}

// Whether the element at a moved address, counted from the tensor's own, is written.
bool is_within(uvec4 within, uint address) {
    return address - within.WITHIN_FIRST < within.WITHIN_NUMBER;
}
