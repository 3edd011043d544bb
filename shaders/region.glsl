// Finds an invocation's first element in the region table.
//
// One dispatch runs all regions of a plan, each of which is a record of the table. An item is the
// part of a region that one invocation copies: some elements, a fixed step apart, in one row or
// in several, a fixed distance apart. The items of a region are numbered in mixed radix over its
// digits, the fastest first, and those of all regions one after the other.
//
// The modules layout.py and encoding.py in vkops/gpu/kernels declare and write the table. It has
// vectors of four words because some drivers spend as long on a word as on a vector, when they
// compile a load and when they run one. For the same reason no loop below has a constant bound,
// which drivers would unroll; the table bounds all of them (20 halvings, 10 digits, the steps of
// an item).

#ifdef DEBUG_PRINTF
#extension GL_EXT_debug_printf : require
#endif

#include "layout.glsl"

layout(local_size_x = WORKGROUP_SIZE) in;

// Whether the first items of all records are those of workgroups. Then each workgroup has one record,
// which drivers for GPUs read and decode once for all of its invocations.
layout(constant_id = 0) const bool ALIGNED = true;

layout(std430, binding = 0) readonly buffer Table { uvec4 table[]; };

struct Item {
    uint record;
    uint dst;       // addresses of the first element
    uint src;
    uint position;  // of the first element along the steps
    uint first;     // digit 0
    uint row;       // number of the first row
#ifdef INDEXED
    uint index;     // address of the first element's index, in words of the index tensor
    uint place;     // its position in a sequence
#endif
};

// n / size by multiplication, exact for n < 2^31; factor is floor(2^32 (2^shift - size) / size) + 1.
uint divide(uint n, uint size, uint factor) {
    uint high, low;
    umulExtended(n, factor, high, low);
    return (high + n) >> (findMSB(size - 1u) + 1);
}

// Finds this invocation's item; returns false if it has none.
bool find_item(out Item item) {
    uvec4 head = table[0];
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint first = group * gl_WorkGroupSize.x;
    uint rest = first + gl_LocalInvocationIndex;
    if (!ALIGNED) first = rest;
    if (rest >= head.HEADER_ITEMS) return false;

    uint low = 0u;
    uint high = head.HEADER_RECORDS;
    bool turns = !ALIGNED && head.HEADER_TURNS != 0u;
    if (turns) {
        uint turn = divide(rest / TURN, high, head.HEADER_TURNS);
        low = rest / TURN - turn * high;
        rest = turn * TURN + rest % TURN;
        high = low + 1u;
    }
    while (high - low > 1u) {
        uint middle = (low + high) >> 1;
        if (table[RECORDS + middle * RECORD_VECTORS].HEAD_FIRST_ITEM <= first) low = middle;
        else high = middle;
    }
    item.record = RECORDS + low * RECORD_VECTORS;

    head = table[item.record + HEAD];
    uvec4 position = table[item.record + POSITION];
    if (!turns) rest -= head.HEAD_FIRST_ITEM;
    item.dst = head.HEAD_DST;
    item.src = head.HEAD_SRC;
    item.position = 0u;
    item.first = 0u;
    item.row = 0u;
    uint number_of_rows = table[item.record + ROWS].ROWS_NUMBER;
#ifdef INDEXED
    uvec4 start = table[item.record + RECORD_VECTORS + START];
    item.index = start.START_INDICES;
    item.place = start.START_POSITION;
#endif
    for (uint d = 0u; d < head.HEAD_DIGITS; ++d) {
        uvec4 digit = table[item.record + DIGIT + d];
        uint quotient = divide(rest, digit.DIGIT_SIZE, digit.DIGIT_FACTOR);
        uint value = rest - quotient * digit.DIGIT_SIZE;
        item.dst += value * digit.DIGIT_DST;
        item.src += value * digit.DIGIT_SRC;
        item.position +=
            value * (d == 0u ? position.POSITION_DIGIT_0 : d == 1u ? position.POSITION_DIGIT_1
                   : d == 3u ? position.POSITION_DIGIT_3 : 0u);
        if (d == 0u) item.first = value;
        if (d == 2u) item.row = value * number_of_rows;
#ifdef INDEXED
        uvec4 advance = table[item.record + RECORD_VECTORS + DIGIT_ADVANCE + d];
        item.index += value * advance.DIGIT_ADVANCE_INDICES;
        item.place += value * advance.DIGIT_ADVANCE_POSITION;
#endif
        rest = quotient;
    }
#ifdef DEBUG_PRINTF
    debugPrintfEXT("record %u: dst %u, src %u, position %u",
                   (item.record - RECORDS) / RECORD_VECTORS, item.dst, item.src, item.position);
#endif
    return !ALIGNED || rest == 0u;  // behind the items of a record, the workgroup has none
}

// Goes on to the item's next row.
void next_row(inout Item item, uvec4 rows) {
    item.dst += rows.ROWS_DST;
    item.src += rows.ROWS_SRC;
    ++item.row;
}
