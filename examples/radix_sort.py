"""Sort numbers on the device with a stable radix sort, and compare with NumPy.

Usage: python examples/radix_sort.py [COUNT]

Each of eight passes sorts by four bits. A workgroup sorts the numbers of its tile: it counts how
many of each digit each invocation has, and adds these counts up. The counts of all tiles, added
up, say where the numbers of a tile belong.
"""

import sys

import numpy as np

import vkops

SOURCE = """#version 450
#define INVOCATIONS 128u
#define TILE 1024u
layout(local_size_x = INVOCATIONS) in;
layout(push_constant) uniform Push { uint shift, tiles; };
shared uint counts[16 * INVOCATIONS], sums[INVOCATIONS];
uint digit_of(uint key) { return (key >> shift) & 15u; }

// Replace the sums of all invocations by the sums of those before them.
void add_up(uint own, uint sum) {
    sums[own] = sum;
    barrier();
    for (uint step = 1; step < INVOCATIONS; step *= 2) {
        uint before = own < step ? 0 : sums[own - step];
        barrier();
        sums[own] += before;
        barrier();
    }
}

#ifdef ADD_UP  // one workgroup: replace the counts of all tiles by the sums of those before them
layout(std430, binding = 0) buffer Table { uint table[]; };
void main() {
    uint own = gl_LocalInvocationID.x, count = (16 * tiles + INVOCATIONS - 1) / INVOCATIONS;
    uint first = own * count, last = min(first + count, 16 * tiles), sum = 0;
    for (uint i = first; i < last; ++i) sum += table[i];
    add_up(own, sum);
    uint before = own == 0 ? 0 : sums[own - 1];
    for (uint i = first; i < last; ++i) {
        uint added = table[i];
        table[i] = before;
        before += added;
    }
}
#else
layout(std430, binding = 0) readonly buffer Keys { uint keys[]; };
layout(std430, binding = 1) buffer Table { uint table[]; };
#ifdef MOVE
layout(std430, binding = 2) writeonly buffer Sorted { uint ordered[]; };
#endif
void main() {
    uint own = gl_LocalInvocationID.x, tile = gl_WorkGroupID.x;
    uint first = TILE * tile + TILE / INVOCATIONS * own;
    uint last = min(first + TILE / INVOCATIONS, keys.length());
    for (uint digit = 0; digit < 16; ++digit) counts[digit * INVOCATIONS + own] = 0;
    for (uint i = first; i < last; ++i) ++counts[digit_of(keys[i]) * INVOCATIONS + own];
    barrier();
    uint sum = 0;
    for (uint i = 0; i < 16; ++i) sum += counts[16 * own + i];
    add_up(own, sum);  // eight invocations have the counts of a digit
#ifdef MOVE
    uint before = own == 0 ? 0 : sums[own - 1];
    uint digit = own / 8, start = digit == 0 ? 0 : sums[8 * digit - 1];
    for (uint i = 0; i < 16; ++i) {  // where the next number of an invocation and a digit goes
        uint added = counts[16 * own + i];
        counts[16 * own + i] = table[digit * tiles + tile] + before - start;
        before += added;
    }
    barrier();
    for (uint i = first; i < last; ++i) {
        uint key = keys[i];
        ordered[counts[digit_of(key) * INVOCATIONS + own]++] = key;
    }
#else
    if (own >= 16) return;
    uint before = own == 0 ? 0 : sums[8 * own - 1];
    table[own * tiles + tile] = sums[8 * own + 7] - before;
#endif
}
#endif
"""


def sort(device, keys):
    """Return the sorted numbers of a tensor of uint32."""
    count, add_up, move = (
        device.compile_shader(SOURCE, defines={name: 1}) for name in ("COUNT", "ADD_UP", "MOVE")
    )
    tiles = -(-keys.size // 1024)
    table = device.tensor(np.zeros(16 * tiles, np.uint32))
    for shift in range(0, 32, 4):
        size = {"shift": shift, "tiles": tiles}
        count(keys, table, **size, groups=tiles)
        add_up(table, **size, groups=1)
        keys = move(keys, table, **size, groups=tiles, out="Keys")
    return keys


device = vkops.Device()
count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
numbers = np.random.default_rng(0).integers(0, 2**32, count, np.uint32)
ordered = sort(device, device.tensor(numbers)).numpy()
equal = np.array_equal(ordered, np.sort(numbers))
print(f"{count} numbers sorted by {device.name}: {'as NumPy' if equal else 'WRONG'}")
sys.exit(not equal)
