// The region table and the walk from an invocation to its first element.
//
// One dispatch runs all regions of a plan. Work is counted in items: an item is one invocation
// that copies up to `steps` elements, a fixed step apart. Items of a region are numbered in mixed
// radix over its digits, fastest first, and those of all regions one after the other.
//
// vkops/gpu/table.py writes the table: vectors of four words, as a driver may spend as long on a
// word as on a vector, when it compiles a load and when it runs one. For the same reason no loop
// below has a constant bound, which would have it unrolled; all are bounded by the table (20
// halvings, 10 digits, the steps of an item).

#ifdef DEBUG_PRINTF
#extension GL_EXT_debug_printf : require
#endif

layout(local_size_x = 64) in;

#ifdef TRACE
#define TABLE_ACCESS
#else
#define TABLE_ACCESS readonly
#endif
layout(std430, binding = 0) TABLE_ACCESS buffer Table { uvec4 table[]; };

const uint RECORDS = 1u;        // table[0] is (records, items of all, spread, 0)
const uint RECORD_VECTORS = 15u;

// A record's vectors:
const uint HEAD = 0u;       // number of the first item, dst and src address of the origin, digits
const uint STEPS = 1u;      // steps, what one adds to dst and src; limit of the position
const uint POSITION = 2u;   // what a step and digits 0, 1 and 3 add to the position
const uint RUN = 3u;        // elements (or bytes) of a run, their src stride; 1 for a constant; or
                            // what the kernel says
const uint PATTERN = 4u;    // the constant
const uint DIGITS = 5u;     // each: size, division factor, dst stride, src stride

struct Item {
    uint record;
    uint dst;       // element addresses of the first element
    uint src;
    uint position;  // of the first element along the stepping direction
    uint first;     // digit 0
};

// `vkops debug trace`: beyond the table, all stores of a byte of the target, whose number is there.
// A kernel tells of each store the first byte and how many, the byte of its source that the first
// one is from, the bytes of an element and what the next one adds there, and which source it is.
#ifdef TRACE
const uint TRACE_AT = 65536u;  // vectors of a table
const uint MOST_TRACED = 16u;

void trace(
    Item item, uint first, uint nbytes, uint src, uint size, uint stride, uint from, uvec4 value
) {
    uint within = table[TRACE_AT].y - first;
    if (within >= nbytes) return;
    uint number = atomicAdd(table[TRACE_AT].x, 1u);
    if (number >= MOST_TRACED) return;
    uint at = TRACE_AT + 1u + number * 3u;
    table[at] = uvec4(gl_WorkGroupID.xy, gl_LocalInvocationIndex, item.record);
    table[at + 1u] = uvec4(first, src + within / size * stride + within % size, from, nbytes);
    table[at + 2u] = value;
}

uvec4 words(uint v) { return uvec4(v, 0u, 0u, 0u); }
uvec4 words(uvec2 v) { return uvec4(v, 0u, 0u); }
uvec4 words(uvec4 v) { return v; }
#define TRACE_STORE(first, nbytes, src, size, stride, from, value) \
    trace(item, first, nbytes, src, size, stride, from, words(value))
#else
#define TRACE_STORE(first, nbytes, src, size, stride, from, value)
#endif
const uint CONSTANT = ~0u;  // from no source

// n / size by multiplication, exact for n < 2^31; factor is floor(2^32 (2^shift - size) / size) + 1.
uint divide(uint n, uint size, uint factor) {
    uint high, low;
    umulExtended(n, factor, high, low);
    return (high + n) >> (findMSB(size - 1u) + 1);
}

// The number of a workgroup that has items; false if this one has none. The dispatch may have more
// workgroups than there is work for; those without are spread evenly, as some drivers give each of
// their threads an equal number of neighbours. spread is 2^32 workgroups with work / all; 0: 2^32.
bool find_group(uint spread, out uint group) {
    group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (spread == 0u) return true;
    uint next, low;
    umulExtended(group + 1u, spread, next, low);
    umulExtended(group, spread, group, low);
    return group != next;
}

// Finds this invocation's item; false if it has none.
bool find_item(out Item item) {
    uvec4 head = table[0];
    uint group;
    if (!find_group(head.z, group)) return false;
    uint rest = group * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    if (rest >= head.y) return false;

    uint low = 0u;
    uint high = head.x;
    while (high - low > 1u) {
        uint middle = (low + high) >> 1;
        if (table[RECORDS + middle * RECORD_VECTORS].x <= rest) low = middle;
        else high = middle;
    }
    item.record = RECORDS + low * RECORD_VECTORS;

    head = table[item.record + HEAD];
    uvec4 position = table[item.record + POSITION];
    rest -= head.x;
    item.dst = head.y;
    item.src = head.z;
    item.position = 0u;
    item.first = 0u;
    for (uint d = 0u; d < head.w; ++d) {
        uvec4 digit = table[item.record + DIGITS + d];
        uint quotient = divide(rest, digit.x, digit.y);
        uint value = rest - quotient * digit.x;
        item.dst += value * digit.z;
        item.src += value * digit.w;
        item.position +=
            value * (d == 0u ? position.y : d == 1u ? position.z : d == 3u ? position.w : 0u);
        if (d == 0u) item.first = value;
        rest = quotient;
    }
#ifdef DEBUG_PRINTF
    debugPrintfEXT("record %u: dst %u, src %u, position %u",
                   (item.record - RECORDS) / RECORD_VECTORS, item.dst, item.src, item.position);
#endif
    return true;
}
