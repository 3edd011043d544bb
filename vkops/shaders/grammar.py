"""The grammar of SPIR-V: the names of its numbers, and which operands of instructions are ids.

``scripts/spirv_grammar.py`` writes grammar.json from the grammar in SPIRV-Headers. An instruction
has a pattern, with a letter for each operand:

- ``t``, ``r``: the type of its result, and its result
- ``i``: an id
- ``n``: a number of one word
- ``s``: a string
- ``m``: a mask of memory operands, with the operands of its bits
- ``o``: the opcode of another instruction, and the operands of that

What follows ``*`` is repeated, or missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import chain, cycle
from typing import Any

_DATA: dict[str, Any] = json.loads(files(__package__).joinpath("grammar.json").read_text("utf-8"))
CAPABILITIES: Mapping[int, str] = {n: name for name, n in _DATA["capabilities"].items()}
EXECUTION_MODES: Mapping[int, str] = {n: name for name, n in _DATA["execution modes"].items()}
INSTRUCTIONS: Mapping[int, str] = {
    op: name for ops in _DATA["instructions"].values() for name, op in ops.items()
}
_PATTERNS = {op: pattern for pattern, ops in _DATA["instructions"].items() for op in ops.values()}
WITH_RESULT = frozenset(op for op, pattern in _PATTERNS.items() if pattern.startswith("tr"))
"""The opcodes of instructions that have a result with a type."""

_ALIGNED = 2
"""The bit of memory operands whose operand is a number; those of others are ids."""
_MEMORY_IDS = 0x30018


def id_places(op: int, words: Sequence[int]) -> Sequence[int]:
    """Return which operands of an instruction are ids; in an unknown instruction all are."""
    pattern = _PATTERNS.get(op, "*i")
    if not pattern.strip("tri*"):
        return range(len(words))
    return [*_id_places(pattern, words)]


def _id_places(pattern: str, words: Sequence[int]) -> Iterator[int]:
    first, _, repeated = pattern.partition("*")
    at = 0
    for kind in chain(first, cycle(repeated)):
        if at >= len(words):
            return
        word, at = words[at], at + 1
        if kind in "tri":
            yield at - 1
        elif kind == "s":
            while at < len(words) and all(words[at - 1].to_bytes(4, "little")):
                at += 1
        elif kind == "m":
            at += word & _ALIGNED != 0
            count = (word & _MEMORY_IDS).bit_count()
            yield from range(at, at := at + count)
        elif kind == "o":
            rest = _PATTERNS.get(word, "*i").removeprefix("tr")
            yield from (at + place for place in _id_places(rest, words[at:]))
            return
