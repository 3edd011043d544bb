"""Arrays and numbers that the command line gives a shader: --bind, --push and --constant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.errors import ModelError, OutOfDeviceMemoryError, did_you_mean
from vkops.runner import array_files
from vkops.shaders.module import Block
from vkops.shaders.shader import Number, Shader

Array = npt.NDArray[Any]
BlockArgument = tuple[str, "Array | int"]
"""The name of a block, or "", with an array or a number of bytes."""
NumberValues = Sequence[Number] | Mapping[str, "Number | Sequence[Number]"]
"""Numbers in order, or by name."""

NUMBER_KINDS = "iuf"
_MAX_ELEMENTS = 1 << 40
_BYTES = re.compile(r"\d{1,19}")  # Python refuses to convert integers of more than 4,300 digits


def read(texts: Sequence[str], owner: str) -> list[BlockArgument]:
    """Return what each ``[BLOCK=]FILE|BYTES|TYPE:SHAPE`` gives; BLOCK may end in a colon instead.

    Raises:
        ModelError: a file cannot be read, or the text has another form.
        OutOfDeviceMemoryError: the host has too little memory.
    """
    given: list[BlockArgument] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            name, _, value = text.partition(":")
        if Path(text).is_file():
            given += array_files.read(text, [""], owner)
        elif (array := zeros(value)) is not None:
            given.append((name, array))
        elif _BYTES.fullmatch(value):
            given.append((name, int(value)))
        elif Path(value or text).suffix or Path(text).exists():
            given += array_files.read(text, [""], owner)
        else:
            raise ModelError(f"{text}: must be [BLOCK=]FILE, a size in bytes or TYPE:SHAPE")
    return given


def zeros(text: str) -> Array | None:
    """Return zeros of ``TYPE:SHAPE``, such as float16:4x6, or None if it is something else."""
    kind, _, form = text.partition(":")
    try:
        dtype, shape = np.dtype(kind).newbyteorder("="), tuple(int(n) for n in form.split("x"))
        is_number = kind and dtype.kind in NUMBER_KINDS
        if not is_number or min(shape) < 1 or prod(shape) > _MAX_ELEMENTS:
            return None
    except (TypeError, ValueError):
        return None
    try:
        return np.zeros(shape, dtype)
    except MemoryError as error:
        raise OutOfDeviceMemoryError(f"{text}: the host has no more memory available") from error


def assigned(given: Sequence[BlockArgument], shader: Shader) -> list[tuple[Block, Array | int]]:
    """Return what each block is given; what has no name goes to the remaining ones, in their order.

    Raises:
        ModelError: a block does not exist, or there are too few.
    """
    free = iter(shader.free(name for name, _ in given if name))
    pairs: list[tuple[Block, Array | int]] = []
    for name, value in given:
        block = shader.block(name) if name else next(free, None)
        if block is None:
            blocks = ", ".join(b.point for b in shader.blocks) or "none"
            what = f"got {len(given)} buffers, must be one for each block at most"
            if name:
                what = f"{name!r} is not a block"
            near = did_you_mean(name, [each.point for each in shader.blocks])
            raise ModelError(f"{shader.name}: {what}; the blocks are {blocks}{near}")
        pairs.append((block, value))
    return pairs


def number(text: str) -> Number:
    """Return the number, true or false that a text stands for; ValueError if it is none."""
    with suppress(ValueError):
        return {"true": 1, "false": 0}[text] if text in ("true", "false") else int(text, 0)
    return float(text)


def numbers(texts: Iterable[str]) -> NumberValues:
    """Return the numbers of ``N,...``, or those of each name of ``NAME=N,...``.

    >>> numbers(["1,0x10"]), numbers(["n=100,scale=0.5", "v=1,2"])
    ([1, 16], {'n': 100, 'scale': 0.5, 'v': [1, 2]})

    Raises:
        ValueError: a text is not a number, or a name is given twice or after numbers without names.
    """
    values: list[Number] = []
    named: dict[str, list[Number]] = {}
    for text in (part for each in filter(None, texts) for part in each.split(",")):
        name, equals, value = text.rpartition("=")
        if equals:
            if name in named:
                raise ValueError(f"got {name} twice")
            if values and not named:
                raise ValueError(f"got '{text}' after numbers without names")
            values = named[name] = []
        try:
            values.append(number(value))
        except ValueError:
            raise ValueError(f"got '{value}', must be a number") from None
    return {k: v[0] if len(v) == 1 else v for k, v in named.items()} if named else values
