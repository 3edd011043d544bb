"""The positions of elements of views in as few dimensions as possible, as a kernel needs them."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from vkops.plan.algebra import merge_dims
from vkops.plan.rounding import factor
from vkops.plan.view import Ints, View

_WORD = 1 << 32


class Indexing(NamedTuple):
    """How one kernel finds the elements of its arrays.

    Attributes:
        rank: number of dimensions; 1 or less if no index has to be divided.
        forms: of each array, ``"linear"`` if its elements have the order of the result and follow
            one another, ``"packed"`` if those of all such arrays begin at the first byte that is
            bound, ``"constant"`` if it has one element, or else ``"strided"``.
        words: the numbers of 32 bits that the kernel reads, in the order of ``fields``.
        spans: of each array, the first byte that is bound, and the number of bytes.
    """

    rank: int
    forms: tuple[str, ...]
    words: Ints
    spans: tuple[tuple[int, int], ...]


def fields(rank: int, forms: tuple[str, ...]) -> list[str]:
    """The names of the numbers in ``Indexing.words``; arrays have numbers.

    >>> fields(2, ("packed", "strided"))
    ['_n', '_size1', '_magic1', '_shift1', '_base1', '_stride0_1', '_stride1_1']
    """
    names = ["_n"]
    for axis in range(1, rank):
        names += [f"_size{axis}", f"_magic{axis}", f"_shift{axis}"]
    names += [f"_base{number}" for number, form in enumerate(forms) if form != "packed"]
    for number, form in enumerate(forms):
        names += [f"_stride{axis}_{number}" for axis in range(rank) if form == "strided"]
    return names


@lru_cache(maxsize=1024)
def indexing(
    shape: Ints, views: tuple[View, ...], itemsizes: Ints, alignment: int, *, in_order: bool
) -> Indexing:
    """Return the indexing of views that have been broadcast to a shape, which is not empty.

    The last view is that of an output. The dimensions are sorted by its strides, unless the
    elements must be numbered ``in_order``. The bound bytes begin at a multiple of ``alignment``.
    """
    if not in_order:
        views = _sorted(views)
    output, strides_of = views[-1], [view.strides for view in views]
    dims = merge_dims(zip(output.strides, output.sizes, *strides_of, strict=True))
    sizes = tuple([size for _, size, *_ in dims])
    words = [prod(shape)]
    for size in sizes[1:]:
        words += [size, factor(size), (size - 1).bit_length()]
    forms: list[str] = []
    spans: list[tuple[int, int]] = []
    bases: list[int] = []
    strides: list[int] = []
    for number, (view, itemsize) in enumerate(zip(views, itemsizes, strict=True)):
        view_strides = tuple([dim[2 + number] for dim in dims])
        first, last = view.bounds
        start = first * itemsize // alignment * alignment
        spans.append((start, -(-((last + 1) * itemsize - start) // 4) * 4))  # whole words
        bases.append(view.offset - start // itemsize)
        if not any(view_strides):
            forms.append("constant")
        elif View(sizes, view_strides).is_contiguous:
            forms.append("linear")
        else:
            forms.append("strided")
            strides += [stride % _WORD for stride in view_strides]
    if not any(base for base, form in zip(bases, forms, strict=True) if form == "linear"):
        forms = ["packed" if form == "linear" else form for form in forms]
    words += [base for base, form in zip(bases, forms, strict=True) if form != "packed"]
    return Indexing(len(dims), tuple(forms), (*words, *strides), tuple(spans))


@lru_cache(maxsize=1024)
def broadcast(view: View, shape: Ints) -> View:
    """Broadcast a view; dimensions of size 1 get stride 0, so that equal views compare equal."""
    sizes, steps, offset = view.broadcast(shape)
    strides = tuple([0 if n == 1 else stride for n, stride in zip(sizes, steps, strict=True)])
    return View(sizes, strides, offset)


def _sorted(views: tuple[View, ...]) -> tuple[View, ...]:
    """Reverse and sort the dimensions: the last view gets descending strides, none below 0."""
    strides = views[-1].strides
    axes = tuple(axis for axis, stride in enumerate(strides) if stride < 0)
    order = tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))
    return tuple(view.flip(axes).permute(order) for view in views)
