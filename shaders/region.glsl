// The region table and the walk from an invocation to its first element.
//
// One dispatch runs all regions of a plan. Work is counted in items: an item is one invocation
// that copies up to `STEPS` elements, a fixed step apart. Items of a region are numbered in mixed
// radix over its digits, fastest first; a workgroup holds 64 consecutive items of one region.
//
// vkops/gpu/table.py writes the table; the word numbers below are its field order.

layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer Table { uint table[]; };

const uint TABLE_REGIONS = 0u;  // number of regions
const uint TABLE_BLOCKS = 1u;   // number of workgroups with work; the dispatch may have more
const uint HEADER_WORDS = 16u;

const uint FIRST_BLOCK = 0u;    // number of the region's first workgroup
const uint ITEMS = 1u;          // number of items
const uint DST = 2u;            // element address of the region's origin
const uint SRC = 3u;
const uint STEPS = 4u;          // elements (or, below a word, words) per item
const uint STEP_DST = 5u;       // what one step adds to the addresses
const uint STEP_SRC = 6u;
const uint STEP_POSITION = 7u;  // and to the position, which must stay below the limit
const uint LIMIT = 8u;
const uint POSITION_0 = 9u;     // position = digit 0 * this
const uint POSITION_1 = 10u;    //          + digit 1 * this
const uint RUN = 11u;           // below a word: elements of a contiguous destination run
const uint RUN_SRC = 12u;       //               and their source stride
const uint IS_FILL = 13u;       // 1: every element is the pattern
const uint PATTERN = 14u;       // 4 words
const uint DIGITS = 18u;        // number of digits
const uint DIGIT = 19u;         // DIGIT_WORDS for each of up to 9 digits
const uint DIGIT_WORDS = 5u;    // size, division factor, division shift, dst stride, src stride
const uint MAX_DIGITS = 9u;
const uint RECORD_WORDS = 64u;

struct Item {
    uint record;    // word number of the region's record
    uint dst;       // element addresses of the item's first element
    uint src;
    uint position;  // of the first element along the stepping direction
    uint first;     // digit 0
};

// rest / size by the precomputed multiply and shift; exact for rest < 2^31.
uint divide(uint rest, uint digit) {
    uint high, low;
    umulExtended(rest, table[digit + 1u], high, low);
    return (high + rest) >> table[digit + 2u];
}

// Finds this invocation's item; false if it has none.
bool find_item(out Item item) {
    uint block = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (block >= table[TABLE_BLOCKS]) return false;

    uint low = 0u;
    uint high = table[TABLE_REGIONS];
    for (int i = 0; i < 32 && high - low > 1u; ++i) {
        uint middle = (low + high) >> 1;
        if (table[HEADER_WORDS + middle * RECORD_WORDS + FIRST_BLOCK] <= block) low = middle;
        else high = middle;
    }
    item.record = HEADER_WORDS + low * RECORD_WORDS;

    uint rest = (block - table[item.record + FIRST_BLOCK]) * gl_WorkGroupSize.x
              + gl_LocalInvocationIndex;
    if (rest >= table[item.record + ITEMS]) return false;

    item.dst = table[item.record + DST];
    item.src = table[item.record + SRC];
    item.position = 0u;
    item.first = 0u;
    uint digits = table[item.record + DIGITS];
    for (uint d = 0u; d < MAX_DIGITS && d < digits; ++d) {
        uint digit = item.record + DIGIT + d * DIGIT_WORDS;
        uint quotient = divide(rest, digit);
        uint value = rest - quotient * table[digit];
        item.dst += value * table[digit + 3u];
        item.src += value * table[digit + 4u];
        if (d == 0u) item.first = value;
        if (d < 2u) item.position += value * table[item.record + POSITION_0 + d];
        rest = quotient;
    }
    return true;
}
