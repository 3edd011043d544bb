"""What moves where: the one representation every operator lowers to."""

from __future__ import annotations

from dataclasses import dataclass

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Elements of an input: its index, the offset of the first element, signed strides.

    Offset and strides count elements; stride 0 repeats an element.
    """

    input: int
    offset: int
    strides: Ints


@dataclass(frozen=True, slots=True)
class Fill:
    """One constant element, as its bytes in memory order (``element_size`` of them)."""

    pattern: bytes


@dataclass(frozen=True, slots=True)
class Region:
    """A box of elements written to one output: ``sizes`` elements, each from ``source``.

    Element ``c`` of the box goes to ``dst_offset + sum(c * dst_strides)``, counted in elements.
    """

    sizes: Ints
    dst_offset: int
    dst_strides: Ints
    source: Read | Fill


@dataclass(frozen=True, slots=True)
class Output:
    """One output: its size in bytes and the regions that make it (disjoint, in any order)."""

    nbytes: int
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Strided copies from inputs to outputs.

    ``element_size`` is 1, 2, 4, 8 or 16 bytes; ``inputs`` holds the byte size of each input.
    All regions are independent of each other: they may run in any order, or at once.

    >>> import numpy as np
    >>> from vkops.plan import CopyPlan, Output, Read, Region, execute
    >>> backwards = Region((3,), 0, (1,), Read(0, 2, (-1,)))
    >>> plan = CopyPlan(2, (6,), (Output(6, (backwards,)),))
    >>> execute(plan, [np.int16([1, 2, 3]).view(np.uint8)])[0].view(np.int16)
    array([3, 2, 1], dtype=int16)
    """

    element_size: int
    inputs: Ints
    outputs: tuple[Output, ...]
