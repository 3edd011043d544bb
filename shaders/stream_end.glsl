// Stores the last vector of a stream, of which only `count` bytes belong to it: the rest of a word stays.
void store_end(uint vector, uvec4 value, uint count) {
    for (uint k = 0u; k * 4u < count; ++k) {
        uint word = vector * 4u + k;
        uint left = count - k * 4u;
        uint others = left < 4u ? ~0u << (left * 8u) : 0u;
        target_words[word] = (value[k] & ~others) | (target_words[word] & others);
    }
}
