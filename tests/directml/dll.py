"""Asks a DirectML.dll by scripts/directml, which runs ask.c."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from directml.packing import Packed, Raw

REPOSITORY = Path(__file__).parents[2]
_LINES = Path(__file__).with_name("dlls.txt").read_text("utf-8").splitlines()
FOLDER = Path(os.environ.get("VKOPS_DIRECTML", REPOSITORY / "build/directml")) / "root/dml"
LEVELS = [line.split()[0] for line in _LINES if not line.startswith("#")]
"""The feature levels that a DLL is for."""

NEWEST = LEVELS[-1]

BEGUN, CREATE, COMPILE, INITIALIZE, EXECUTE, DONE = range(6)
"""How far a case came."""

NONE, BUFFER, OWNED, SHARED = range(4)
"""What is bound to an input or output."""

OUTSIDE, INPUTS = 1, 2
"""What changed although it should not: bytes around the tensors, or of inputs."""


class Slot(NamedTuple):
    """What is bound to an input or an output; the bytes of an output are there before it runs."""

    data: bytes = b""
    bound: int = BUFFER
    input: int = 0  # that a SHARED output shares its range with


class Edge(NamedTuple):
    """An edge of a graph: 1 from an input, 2 to an output, 3 between operators.

    Its numbers are those of DML_INPUT_GRAPH_EDGE_DESC, DML_OUTPUT_GRAPH_EDGE_DESC or
    DML_INTERMEDIATE_GRAPH_EDGE_DESC.
    """

    type: int
    numbers: tuple[int, ...]


class Case(NamedTuple):
    """An operator, or those of a graph, and what is bound; without outputs, it is only created."""

    operators: Sequence[Raw]
    inputs: Sequence[Slot] = ()
    outputs: Sequence[Slot] = ()
    edges: Sequence[Edge] = ()

    def bytes(self) -> bytes:
        """The case as ask.c reads it.

        Raises:
            NotImplementedError: DirectML's structures cannot hold a value.
        """
        slots = [*self.inputs, *self.outputs]
        sizes = [
            len(self.inputs[slot.input].data if slot.bound == SHARED else slot.data)
            for slot in slots
        ]
        counts = (len(self.operators), len(self.edges), len(self.inputs), len(self.outputs))
        return b"".join(
            [
                struct.pack("<6I", bool(self.outputs), *counts, 0),
                *(Packed(each).bytes() for each in self.operators),
                *(struct.pack("<6I", e.type, *(*e.numbers, 0)[:4], 0) for e in self.edges),
                *(
                    struct.pack("<IIQ", slot.bound, slot.input, size)
                    for slot, size in zip(slots, sizes, strict=True)
                ),
                *(
                    slot.data.ljust(-(-len(slot.data) // 8) * 8, b"\0")
                    for slot in slots
                    if slot.bound in (BUFFER, OWNED)
                ),
            ]
        )


class Answer(NamedTuple):
    """The last stage that DirectML came to, its HRESULT, and at the stage DONE the bytes of each output.

    At the stage BEGUN, DirectML ended the process. The level is the highest of the DLL.
    """

    stage: int
    hresult: int
    changed: int
    level: int
    outputs: tuple[bytes, ...] = ()


def ask(cases: Sequence[bytes], name: str, level: str = NEWEST) -> list[Answer]:
    """Ask the DLL of a level; the files of the cases and the answers have this name."""
    source, target = FOLDER / f"{name}.cases", FOLDER / f"{name}.results"
    source.write_bytes(b"".join(cases))
    target.unlink(missing_ok=True)
    answers: list[Answer] = []
    while len(answers) < len(cases):
        command = [str(REPOSITORY / "scripts/directml"), "ask", level, name, str(len(answers))]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        before = len(answers)
        answers = read(target.read_bytes() if target.exists() else b"")
        if len(answers) == before:
            raise RuntimeError(f"no answer: {result.stdout[-500:]} {result.stderr[-500:]}")
    source.unlink()
    target.unlink()
    return answers


def read(data: bytes) -> list[Answer]:
    """The answers in a file of results."""
    answers: list[Answer] = []
    at, begun = 0, None  # the case that was asked last, while it has no answer
    while at < len(data):
        answer = Answer(*struct.unpack_from("<4I", data, at))
        at += 16
        if answer.stage == BEGUN:
            if begun:  # the process ended in the case before
                answers.append(begun)
            begun = answer
            continue
        begun = None
        if answer.stage == DONE:
            (count,) = struct.unpack_from("<I", data, at)
            sizes = struct.unpack_from(f"<{count}I", data, at + 4)
            at += 4 + 4 * count
            outputs = []
            for size in sizes:
                outputs.append(data[at : at + size])
                at += size
            answer = answer._replace(outputs=tuple(outputs))
        answers.append(answer)
    return [*answers, begun] if begun else answers
