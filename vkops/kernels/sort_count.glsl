// Counts all digits of all keys, and of the numbers of their rows, before the first pass of a sort.
// Neighbouring invocations have counts of their own, if there is room.

shared uint counts[COPIES * DIGITS * 256];
Word _key, keys[EACH];

void main() {
    const uint lane = gl_LocalInvocationID.x, copy = lane % COPIES, many = EACH * LANES;
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    for (uint t = lane; t < counts.length(); t += LANES) counts[t] = 0;
    barrier();
    for (uint first = group * many; first < _n; first += gl_NumWorkGroups.x * gl_NumWorkGroups.y * many) {
        [[unroll]] for (uint u = 0; u < EACH; ++u) {  // without branches, several are read at a time
            const uint _i = min(first + LANES * u + lane, _n - 1);
            // the element
            keys[u] = ordered(_key);
        }
        [[unroll]] for (uint u = 0; u < EACH; ++u) {
            const uint at = first + LANES * u + lane, row = at / _value_count;
            if (at >= _n) break;
            [[unroll]] for (uint d = 0; d < DIGITS; ++d) {
                const uint digit = d < KEY_DIGITS ? uint(keys[u] >> 8 * d) : row >> 8 * (d - KEY_DIGITS);
                atomicAdd(counts[(256 * d + digit % 256) * COPIES + copy], 1);
            }
        }
    }
    barrier();
    for (uint t = lane; t < DIGITS * 256; t += LANES) {
        uint sum = 0;
        for (uint k = 0; k < COPIES; ++k) sum += counts[COPIES * t + k];
        if (sum != 0) atomicAdd(state[256 * (t / 256 * _value_stride + 1) + t % 256], sum);
    }
}
