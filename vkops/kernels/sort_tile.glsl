// A pass of a sort: each workgroup sorts a tile by a digit, and writes it in runs of equal digits.
//
// Ranks. Rows of 16 invocations have elements that follow one another, and a word for each digit. The
// higher half of a word is the number of elements that were counted, the lower one has a bit for each
// invocation that has one more. So the rank of an element is the sum of the higher half and of the
// bits of invocations before its own. Then each counts its element, and clears its bit: words are
// only added to, so others may set their bits for the next elements before.
//
// Offsets. Behind the number of workgroups that have begun, state has words of 256 digits: where each
// digit begins, and then those of all tiles. A word is 0; or 1 more than the number of elements of a
// tile; or bit 31 and the place for those of the next tile. So each word alone says what it is, as
// those of scans do, and it does not matter who wrote it. A workgroup adds up the words before its own
// up to one with bit 31. If one is missing after some reads, it counts the elements of that tile
// itself, and begins again: it waits for no other workgroup to go on. What it then counts again does
// not replace a place, which is larger.

#define TILE (EACH * LANES)
#define FOR_EACH [[unroll]] for (uint u = 0, t = lane; u < EACH; ++u, t += LANES)
#define FOR_IN_ROW [[unroll]] for (uint u = 0, t = 16 * EACH * row + bit; u < EACH; ++u, t += 16)
#define FOR_DIGITS [[unroll]] for (uint k = 0, d = lane; d < 256; ++k, d += LANES)

shared uint words[TILE * WORDS], starts[256], sums[16], number, missing;
Word _key, keys[EACH];
uint ranks[EACH], totals[256 / LANES];

uint digit_of(Word key) { return uint(ordered(key) >> _value_shift) & 255; }

#if WORDS == 1
void put(uint at, Word x) { words[at] = x; }
Word get(uint at) { return words[at]; }
#else
void put(uint at, Word x) {
    const uvec2 halves = unpackUint2x32(x);
    words[at] = halves.x;
    words[at + TILE] = halves.y;
}
Word get(uint at) { return packUint2x32(uvec2(words[at], words[at + TILE])); }
#endif

uint load(uint row, uint d) { return atomicLoad(state[256 * row + d], gl_ScopeDevice, 0, 0); }

void store(uint row, uint d, uint word) { atomicStore(state[256 * row + d], word, gl_ScopeDevice, 0, 0); }

void main() {
    const uint lane = gl_LocalInvocationID.x, row = lane / 16, bit = lane % 16;
    if (lane == 0) number = atomicAdd(state[0], 1);
    barrier();
    const uint own = number, first = own * TILE;
    if (first >= _n) return;
    bool again = false;
    for (uint tile = own;; again = true) {
        [[unroll]] for (uint r = 0; r < 16; ++r) words[LANES * r + lane] = 0;
        if (lane == 0) missing = 0;
        barrier();
        FOR_IN_ROW {
            const uint at = tile * TILE + t, _i = min(at, _n - 1);
            // the element
            keys[u] = _key;
            ranks[u] = at < _n ? digit_of(_key) : 255;
        }
        FOR_IN_ROW {
            const uint at = 256 * row + ranks[u];
            atomicAdd(words[at], 1 << bit);
            barrier();
            const uint word = words[at];
            ranks[u] = at << 16 | (word >> 16) + bitCount(word & (1 << bit) - 1);
            barrier();
            atomicAdd(words[at], (1 << 16) - (1 << bit));
        }
        barrier();
        FOR_DIGITS {
            uint sum = 0;
            [[unroll]] for (uint r = 0; r < LANES / 16; ++r) sum += words[256 * r + d] >> 16;
            starts[d] = totals[k] = sum;
            if (again) atomicMax(state[256 * (tile + 2) + d], sum + 1);
            else store(tile + 2, d, sum + 1);
        }
        barrier();
        if (tile != own) {
            tile = own;
            continue;
        }
        if (lane < 16) {
            uint sum = 0;
            for (uint d = 16 * lane; d < 16 * lane + 16; ++d) {
                const uint some = starts[d];
                starts[d] = sum;
                sum += some;
            }
            sums[lane] = sum;
        }
        barrier();
        FOR_DIGITS {
            uint sum = starts[d];
            for (uint s = 0; s < d / 16; ++s) sum += sums[s];
            starts[d] = sum;
            [[unroll]] for (uint r = 0; r < LANES / 16; ++r) {
                const uint some = words[256 * r + d] >> 16;
                words[256 * r + d] = sum;
                sum += some;
            }
        }
        barrier();
        FOR_IN_ROW ranks[u] = (ranks[u] & 0xFFFF) + words[ranks[u] >> 16];
        barrier();
        FOR_IN_ROW put(ranks[u], keys[u]);
        FOR_DIGITS {
            uint sum = 0, from = own + 1;
            for (uint tries = 0; tries < PATIENCE;) {
                const uint word = load(from, d);
                if (word >> 31 != 0) {
                    sum += word & 0x7FFFFFFF;
                    store(own + 2, d, 1 << 31 | sum + totals[k]);
                    starts[d] = sum - starts[d];
                    from = 0;
                    break;
                }
                if (word != 0) {
                    sum += word - 1;
                    --from;
                } else ++tries;
            }
            atomicMax(missing, from);
        }
        barrier();
        if (missing == 0) break;
        tile = missing - 2;
        barrier();
    }
    FOR_EACH {
        const Word key = get(t);
        const uint digit = digit_of(key);
        ranks[u] |= digit << 16;
        if (first + t < _n) moved[starts[digit] + t + KEYS] = Moved(key);
    }
#ifdef OTHERS
    barrier();
    FOR_IN_ROW {
        const uint _i = min(first + t, _n - 1);
        put(ranks[u] & 0xFFFF, Word(OTHER));
    }
    barrier();
    FOR_EACH if (first + t < _n) moved[starts[ranks[u] >> 16] + t + OTHERS] = Moved(get(t));
#endif
}
