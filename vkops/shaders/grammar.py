"""The grammar of SPIR-V: the names of its numbers, and which operands of instructions are ids.

``scripts/spirv_grammar.py`` writes grammar.json from the grammar in SPIRV-Headers. An instruction
has a pattern, with a letter for each operand:

- ``t``, ``r``: the type of its result, and its result
- ``i``: an id
- ``n``: a number of one word
- ``s``: a string
- ``m``: a mask of memory operands, with the operands of its bits
- ``o``: the opcode of another instruction, and the operands of that

The operands after ``*`` may be repeated, or missing.
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
OPCODES: Mapping[str, int] = {name.removeprefix("Op"): op for op, name in INSTRUCTIONS.items()}
BUILT_IN: Mapping[str, int] = _DATA["built-in variables"]
FUNCTIONS: Mapping[str, int] = _DATA["functions"]
"""The functions of GLSL.std.450."""

_PATTERNS = {op: pattern for pattern, ops in _DATA["instructions"].items() for op in ops.values()}
WITH_RESULT = frozenset(op for op, pattern in _PATTERNS.items() if pattern.startswith("tr"))
"""The opcodes of instructions that have a result with a type."""

ONLY_IDS = frozenset(op for op, pattern in _PATTERNS.items() if not pattern.strip("tri*"))
"""Those whose operands are all ids."""

_ALIGNED, _MEMORY_IDS = 0x2, 0x30018
"""The bits of memory operands that have a number, and those that have an id."""


def id_places(op: int, words: Sequence[int]) -> Iterator[int]:
    """Yield which operands of an instruction are ids; in an unknown instruction all are."""
    first, _, repeated = _PATTERNS.get(op, "*i").partition("*")
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
            yield from range(at, at := at + (word & _MEMORY_IDS).bit_count())
        elif kind == "o":  # the inner instruction has no type and no result of its own
            places = id_places(word, (0, 0, *words[at:]))
            yield from (at - 2 + place for place in places if place > 1)
            return
