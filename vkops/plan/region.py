"""Copy plans, the representation that every operator is lowered to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.notebook import repr_html
from vkops.plan.view import Ints, View

MAX_TERMS = 8
"""The most numbers that an index tuple may have."""


@dataclass(frozen=True, slots=True)
class Read:
    """Elements of an input: its number, and the view of it that is read."""

    input: int
    view: View


@dataclass(frozen=True, slots=True)
class Fill:
    """One constant element, as its bytes in memory order (``element_size`` of them)."""

    pattern: bytes


class Term(NamedTuple):
    """A number of an index tuple, which selects one of ``size`` places ``stride`` elements apart.

    It is stored ``offset`` indices after the first number of the tuple.
    """

    offset: int
    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class Indices:
    """Indices in an input, which move the address of each element of a region.

    The input has indices of one data type (``"i4"``, ``"i8"``, ``"u4"`` or ``"u8"``, as NumPy calls
    them, little-endian), which the views count. ``view`` says where the first number of each
    element's index tuple is. Each number is multiplied by the stride of its term; a negative one
    counts from the end. ``rule`` says which address the sum is added to, and how:

    - ``"clamp"``: to the source's; a number outside its term becomes the nearest one inside.
    - ``"skip"``: to the target's; an element with a number outside its term is not written.
    - ``"reverse"``: to the source's; the only number is the length of a sequence whose order is
      reversed (at most the size of the term), and ``position`` says where in the sequence each
      element is. Elements after the sequence stay where they are.

    Elements whose moved address is not in the range ``within`` are not written; None: all are.

    If ``limits`` is not None, numbers may leave their terms, as in DirectML: they address the whole
    tensor that they select elements of, and ``limits`` is the range of its elements. Of a number,
    only the lowest 32 bits and the sign are used: ``"u8"`` is taken as ``"i8"``. The address,
    counted from the start of the range, is modulo 2**32. Beyond the end of the range, ``"clamp"``
    reads the last element, and ``"skip"`` writes nothing.
    """

    input: int
    dtype: str
    view: View
    terms: tuple[Term, ...]
    rule: Literal["clamp", "skip", "reverse"]
    position: View
    within: range | None = None
    limits: range | None = None

    @property
    def is_signed(self) -> bool:
        """Whether a number whose highest bit is set counts from the end."""
        return self.dtype[0] == "i" or (self.limits is not None and self.words == 2)

    @property
    def words(self) -> int:
        """Words of 32 bits in an index."""
        return int(self.dtype[1]) // 4


@dataclass(frozen=True, slots=True)
class Region:
    """A copy to a view of an output, element by element, from a view of an input or a constant.

    All views have the same sizes. ``indices`` move one of the two addresses of each element.
    """

    target: View
    source: Read | Fill
    indices: Indices | None = None

    @property
    def sizes(self) -> Ints:
        """The sizes of all views."""
        return self.target.sizes

    @property
    def input(self) -> int | None:
        """The number of the input that is copied; None for a constant."""
        return self.source.input if isinstance(self.source, Read) else None

    @property
    def inputs(self) -> tuple[int, ...]:
        """The numbers of all inputs that are read; the last one is that of the indices, if any."""
        copied = () if self.input is None else (self.input,)
        return copied if self.indices is None else (*copied, self.indices.input)

    @property
    def source_view(self) -> View:
        """The view that is read; for a constant, a view whose strides are 0."""
        if isinstance(self.source, Read):
            return self.source.view
        return View(self.sizes, (0,) * len(self.sizes))

    @property
    def index_views(self) -> tuple[View, ...]:
        """The views of the indices and of the positions; none without indices."""
        return () if self.indices is None else (self.indices.view, self.indices.position)

    @property
    def kind(self) -> Literal["copy", "gather", "scatter"]:
        """Whether indices decide where elements are read (gather) or written (scatter)."""
        if self.indices is None:
            return "copy"
        return "scatter" if self.indices.rule == "skip" else "gather"

    @property
    def has_limits(self) -> bool:
        """Whether its indices address memory; the size of its elements must then not change."""
        return self.indices is not None and self.indices.limits is not None

    def with_views(self, target: View, source: View, *index_views: View) -> Region:
        """A region with the same input or constant and other views."""
        read = Read(self.source.input, source) if isinstance(self.source, Read) else self.source
        if self.indices is None:
            return Region(target, read)
        view, position = index_views
        return Region(target, read, replace(self.indices, view=view, position=position))

    def map(self, change: Callable[[View], View]) -> Region:
        """Apply the same change to all views.

        >>> region = Region(View.packed((4, 2)), Read(0, View((4, 2), (1, 4))))
        >>> region.map(lambda view: view.narrow(0, 1, 2)).source
        Read(input=0, view=View(sizes=(2, 2), strides=(1, 4), offset=1))
        """
        views = map(change, self.index_views)
        return self.with_views(change(self.target), change(self.source_view), *views)

    def shift(self, target: int, source: int) -> Region:
        """Move the view of the target and that of the source by a number of elements."""
        views = self.target.shift(target), self.source_view.shift(source)
        return self.with_views(*views, *self.index_views)

    def take(self, axis: int, at: int) -> Region:
        """The part at one index of an axis, without that axis."""
        return self.map(lambda view: view.take(axis, at))

    def renumber(self, numbers: Mapping[int, int]) -> Region:
        """The same region with other numbers of its inputs."""
        source, indices = self.source, self.indices
        if isinstance(source, Read):
            source = Read(numbers[source.input], source.view)
        if indices is not None:
            indices = replace(indices, input=numbers[indices.input])
        return Region(self.target, source, indices)


@dataclass(frozen=True, slots=True)
class Output:
    """One output: its size in bytes and the regions that make it, in any order.

    Regions are disjoint, except those that scatter. These run after the others, and may write an
    element several times: any of the values may remain.
    """

    nbytes: int
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Progression:
    """Constant data of a plan: ``count`` numbers, each ``delta`` more than the one before.

    ``dtype`` is NumPy's code of their data type, little-endian. Integers wrap. Floating-point
    numbers are the sum of ``start`` and a multiple of ``delta``, both in that type; the product and
    the sum are rounded. Those of 16 bits are computed with 32, and rounded toward zero at the end,
    as Direct3D converts them.

    >>> Progression("u1", 10, -2, 4).array()
    array([10,  8,  6,  4], dtype=uint8)
    >>> Progression("f2", 65472, 32, 3).array().tolist()
    [65472.0, 65504.0, 65504.0]
    """

    dtype: str
    start: float
    delta: float
    count: int

    @property
    def nbytes(self) -> int:
        """Their size in bytes."""
        return self.count * int(self.dtype[1])

    def array(self) -> npt.NDArray[Any]:
        """The numbers; their memory is allocated by this call."""
        dtype = np.dtype(f"<{self.dtype}")
        if dtype.kind == "f":
            with np.errstate(all="ignore"):  # numbers may be infinite, or become so
                values = np.arange(self.count, dtype=np.promote_types(dtype, np.float32))
                values *= dtype.type(self.delta)
                values += dtype.type(self.start)
                return _rounded_toward_zero(values, dtype)
        # Modulo a power of two, so only the lowest bits of all numbers count.
        words = np.dtype(f"<u{dtype.itemsize}")
        numbers = np.arange(self.count, dtype=np.uint64).astype(words)
        numbers *= words.type(int(self.delta) % 2 ** (8 * dtype.itemsize))
        numbers += words.type(int(self.start) % 2 ** (8 * dtype.itemsize))
        return numbers.view(dtype)


def _rounded_toward_zero(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert numbers to a type that may be narrower; only infinite ones become infinite."""
    if dtype == values.dtype:
        return values
    nearest = values.astype(dtype)
    beyond = np.abs(nearest) > np.abs(values)
    nearest[beyond] = np.nextafter(nearest[beyond], dtype.type(0))
    return nearest


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Strided copies from inputs to outputs.

    ``element_size`` is 1, 2, 4, 8 or 16 bytes; ``inputs`` holds the byte size of each input. The
    ``constants``, which are stored with the plan, are numbered after the inputs. Views count
    elements. All regions but those that scatter are independent of each other: they may run in
    any order, or at the same time.

    >>> import numpy as np
    >>> from vkops.plan import CopyPlan, Output, Read, Region, View, execute
    >>> backwards = Region(View((3,), (1,)), Read(0, View((3,), (-1,), 2)))
    >>> plan = CopyPlan(2, (6,), (Output(6, (backwards,)),))
    >>> execute(plan, [np.int16([1, 2, 3]).view(np.uint8)])[0].view(np.int16)
    array([3, 2, 1], dtype=int16)
    """

    element_size: int
    inputs: Ints
    outputs: tuple[Output, ...]
    constants: tuple[Progression, ...] = ()

    _repr_html_ = repr_html

    @property
    def regions(self) -> list[tuple[int, Region]]:
        """All regions, each with the number of its output."""
        return [(n, region) for n, output in enumerate(self.outputs) for region in output.regions]

    @property
    def index_inputs(self) -> frozenset[int]:
        """The numbers of the inputs that hold indices."""
        return frozenset(r.indices.input for _, r in self.regions if r.indices is not None)

    @property
    def bytes_written(self) -> int:
        """Number of bytes that the regions write."""
        return self.element_size * sum([prod(region.sizes) for _, region in self.regions])

    @property
    def bytes_read(self) -> int:
        """Number of bytes that the regions read; bytes that a region repeats count once.

        Elements that indices select count as often as they are selected.
        """
        regions = [region for _, region in self.regions]
        elements = sum(
            prod(r.sizes) if r.kind == "gather" else _distinct(r.source_view)
            for r in regions
            if r.input is not None
        )
        words = sum(
            _distinct(indices.view) * len(indices.terms) * indices.words
            for r in regions
            if (indices := r.indices)
        )
        return self.element_size * elements + 4 * words


def _distinct(view: View) -> int:
    """Number of elements of a view, without those that a stride of 0 repeats."""
    return prod(n for n, stride in zip(view.sizes, view.strides, strict=True) if stride)
