"""Changes to bytes and to trees of plain values."""

import re

TOKEN = re.compile(rb'"(?:[^"\\\\]|\\\\.)*"|-?\d[\d.eE+-]*|[\[\]{},:]|\w+')

WORDS = [
    b"0", b"-1", b"1", b"4294967296", b"18446744073709551616", b"1e400", b"-0.0", b"NaN", b"null",
    b"true", b'""', b"[]", b"{}", b"[[", b'"\\ud800"', b"\\u0000", b"//", b"/*", b",", b":", b'"',
    b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x80\x80\x80\x80\x10", b"\xef\xbb\xbf", b"\x7f",
]  # fmt: skip


def mutated(random, data, others=()):
    """Bytes with a few changes; ``others`` are inputs to take pieces of."""
    raw = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        size = len(raw)
        at = random.randrange(size + 1)
        length = random.choice((1, 1, 2, 4, 8, 32, 200))
        kind = random.randrange(9)
        if kind == 0 and at < size:
            raw[at] = random.randrange(256)
        elif kind == 1 and at < size:
            raw[at] ^= 1 << random.randrange(8)
        elif kind == 2:
            del raw[at : at + length]
        elif kind == 3:
            raw[at:at] = random.randbytes(min(length, 8))
        elif kind == 4:
            raw[at:at] = random.choice(WORDS)
        elif kind == 5:
            word = random.choice(WORDS)
            raw[at : at + len(word)] = word
        elif kind == 6:
            raw[at:at] = raw[at : at + length] * random.choice((1, 1, 2, 50))
        elif kind == 7 and others:
            other = random.choice(others)
            start = random.randrange(len(other) + 1)
            raw[at : at + random.choice((0, length))] = other[start : start + length]
        else:
            digits = [i for i, byte in enumerate(raw) if 48 <= byte <= 57]
            if digits:
                raw[random.choice(digits)] = random.randrange(48, 58)
            else:
                del raw[at:]
        del raw[1 << 16 :]
    return bytes(raw)


def with_other_words(random, data, others):
    """A text with some words, numbers or signs replaced by those of other texts, or taken out."""
    for _ in range(random.choice((1, 1, 2, 4))):
        words = list(TOKEN.finditer(data))
        if not words:
            break
        old = random.choice(words)
        theirs = TOKEN.findall(random.choice(others))
        word = random.choice((*theirs, *WORDS, b""))
        data = data[: old.start()] + word + data[old.end() :]
    return data


def places(tree):
    """Every place in a tree, as what holds it and its key there."""
    pairs = []
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            pairs.append((holder, key))
            if isinstance(holder[key], (dict, list)):
                waiting.append(holder[key])
    return pairs
