"""The meaning of the operators that read indices: from views of inputs to regions with indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.plan.algebra import coalesce_region
from vkops.plan.movements import pack
from vkops.plan.region import CopyPlan, Fill, Indices, Output, Progression, Read, Region, Term
from vkops.plan.view import Ints, View

OutOfRange = Literal["vkops", "directml"]
"""The rule for indices that are out of range: see ``vkops.Device``."""


class IndexTensor(NamedTuple):
    """A view of an input that holds indices, and their data type as NumPy writes it: ``"i8"``."""

    input: int
    dtype: str
    view: View


MAX_COPIED_PARTS = 256
"""The number of regions up to which a view with many axes is copied; above it, it is gathered."""


def blocks_of(view: View, dims: int) -> tuple[View, npt.NDArray[np.int64]] | None:
    """Divide the elements of a view, in their order, into blocks of ``dims`` - 1 dimensions.

    Blocks can be gathered; without indices, a view of many dimensions would need many regions.

    Returns:
        A view of a block at each possible address, the address being its first axis, and the
        addresses of the blocks, in order. None if few regions of ``dims`` dimensions can copy the
        view without indices.

    >>> blocks_of(View((2,) * 10, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)), 8) is None
    True
    """
    source = coalesce_region(pack(view)).source_view
    sizes, strides, first = source.sizes, source.strides, source.offset
    outer = len(sizes) - dims
    if outer <= 0 or prod(sizes[:outer]) <= MAX_COPIED_PARTS:
        return None
    # The first axis of the result is the address, so blocks have one dimension less.
    places = np.zeros(1, np.int64)
    for size, stride in zip(sizes[: outer + 1], strides[: outer + 1], strict=True):
        places = np.add.outer(places, stride * np.arange(size)).reshape(-1)
    lowest = int(np.min(places))
    places -= lowest
    places.flags.writeable = False
    block = sizes[outer + 1 :], strides[outer + 1 :]
    whole = View((int(np.max(places)) + 1, *block[0]), (1, *block[1]), first + lowest)
    return whole, places


def gather(source: Read, indices: IndexTensor, target: View, axis: int) -> Region:
    """Copy the indexed places of an axis, which the axes of the indices replace.

    >>> source, indices = Read(0, View.packed((9, 4))), IndexTensor(1, "i4", View.packed((2, 3)))
    >>> region = gather(source, indices, View.packed((2, 3, 4)), 0)
    >>> region.source.view.strides, region.indices.view.strides
    ((0, 0, 1), (3, 1, 0))
    """
    view, index_view = source.view, indices.view
    term = Term(0, view.sizes[axis], view.strides[axis])
    moved = _repeated(view.take(axis, 0), axis, index_view.sizes)
    before, after = view.sizes[:axis], view.sizes[axis + 1 :]
    numbers = _repeated(_repeated(index_view, len(index_view.sizes), after), 0, before)
    return Region(target, Read(source.input, moved), _moving(indices, numbers, (term,), "clamp"))


def gather_elements(source: Read, indices: IndexTensor, target: View, axis: int) -> Region:
    """Copy one element for each index, which replaces the element's own place along an axis."""
    view = source.view
    moved = _at_first_place(view, axis, indices.view.sizes)
    region_indices = _moving(indices, indices.view, (_own_place(view, axis),), "clamp")
    return Region(target, Read(source.input, moved), region_indices)


def gather_nd(source: Read, indices: IndexTensor, target: View, batch: int) -> Region:
    """Copy the place that each index tuple, the last axis of the indices, selects.

    The first ``batch`` axes of both tensors are the same, and not indexed.
    """
    view, (numbers, terms) = source.view, _tuples(source.view, indices.view, batch)
    rest = view.sizes[batch + len(terms) :]
    for _ in terms:
        view = view.take(batch, 0)
    moved = _repeated(view, batch, numbers.sizes[batch:])
    numbers = _repeated(numbers, len(numbers.sizes), rest)
    return Region(target, Read(source.input, moved), _moving(indices, numbers, terms, "clamp"))


def scatter_elements(updates: Read | Fill, indices: IndexTensor, target: View, axis: int) -> Region:
    """Write one element for each index, which replaces the element's own place along an axis.

    Other regions must have written the whole target before.
    """
    moved = _at_first_place(target, axis, indices.view.sizes)
    terms = (_own_place(target, axis),)
    return Region(moved, updates, _moving(indices, indices.view, terms, "skip"))


def scatter_nd(updates: Read, indices: IndexTensor, target: View) -> Region:
    """Write to the place that each index tuple, the last axis of the indices, selects."""
    numbers, terms = _tuples(target, indices.view, 0)
    rest = target.sizes[len(terms) :]
    for _ in terms:
        target = target.take(0, 0)
    moved = _repeated(target, 0, numbers.sizes)
    numbers = _repeated(numbers, len(numbers.sizes), rest)
    return Region(moved, updates, _moving(indices, numbers, terms, "skip"))


def scatter_blocks(updates: Read, starts: IndexTensor, target: View, axis: int) -> Region:
    """Write blocks along an axis, each from the place that an index gives on.

    The indices have one element along the axis. A block that does not fit is not written.

    >>> starts = IndexTensor(1, "u8", View.packed((2, 1)))
    >>> region = scatter_blocks(Read(0, View.packed((2, 3))), starts, View.packed((2, 9)), 1)
    >>> region.target.sizes, region.indices.terms
    ((2, 3), (Term(offset=0, size=7, stride=1),))
    """
    sizes = updates.view.sizes
    term = Term(0, target.sizes[axis] - sizes[axis] + 1, target.strides[axis])
    moved = target.narrow(axis, 0, sizes[axis])
    return Region(moved, updates, _moving(starts, starts.view.broadcast(sizes), (term,), "skip"))


def one_hot(
    off: Read, on: Read, indices: IndexTensor, target: View, axis: int
) -> tuple[Region, Region]:
    """Write ``on`` at the place that each index selects along an axis, and ``off`` elsewhere.

    Both are views without axes. The indices have one element along the axis.

    >>> off, on = (Read(0, View((), (), place)) for place in (0, 1))
    >>> indices = IndexTensor(1, "i8", View.packed((3, 1)))
    >>> fill, marks = one_hot(off, on, indices, View.packed((3, 4)), 1)
    >>> fill.source.view, marks.source.view
    (View(sizes=(3, 4), strides=(0, 0), offset=0), View(sizes=(3, 1), strides=(0, 0), offset=1))
    """
    fill = Region(target, Read(off.input, off.view.broadcast(target.sizes)))
    marks = Read(on.input, on.view.broadcast(indices.view.sizes))
    return fill, scatter_elements(marks, indices, target, axis)


def reverse_sequences(source: Read, lengths: IndexTensor, target: View, axis: int) -> Region:
    """Reverse the first elements along an axis; ``lengths`` holds their number for each sequence.

    ``lengths`` has one element along the axis.
    """
    view, size = source.view, source.view.sizes[axis]
    moved = _at_first_place(view, axis, view.sizes)
    numbers = lengths.view.broadcast(view.sizes)
    position = View(view.sizes, tuple(int(d == axis) for d in range(len(view.sizes))))
    terms = (Term(0, size, view.strides[axis]),)
    indices = Indices(lengths.input, lengths.dtype, numbers, terms, "reverse", position)
    return Region(target, Read(source.input, moved), indices)


def with_limits(plan: CopyPlan) -> CopyPlan:
    """Return a plan of one operator whose indices may address all bytes of the indexed tensor.

    See ``Indices.limits``. If a source ends within an element, reading this element gives 0.

    >>> source, indices = Read(0, View.packed((3,))), IndexTensor(1, "i4", View.packed((2,)))
    >>> region = gather(source, indices, View.packed((2,)), 0)
    >>> plan = with_limits(CopyPlan(4, (14, 8), (Output(8, (region,)),)))
    >>> [(each.source.input, each.indices.limits) for _, each in plan.regions]
    [(0, range(0, 4)), (2, range(-3, 1))]
    """
    zero = len(plan.inputs) + len(plan.constants)
    outputs = tuple(
        Output(output.nbytes, tuple(_regions_with_limits(output, plan, zero)))
        for output in plan.outputs
    )
    if any(region.input == zero for output in outputs for region in output.regions):
        constant = Progression(f"u{plan.element_size}", 0, 0, 1)
        return replace(plan, outputs=outputs, constants=(*plan.constants, constant))
    return replace(plan, outputs=outputs)


def _regions_with_limits(output: Output, plan: CopyPlan, zero: int) -> Iterator[Region]:
    """The regions of an output; the input with the number ``zero`` has one element, which is 0."""
    size = plan.element_size
    for region in output.regions:
        indices, source = region.indices, region.source
        if indices is None:
            yield region
        elif indices.rule == "skip":
            limits = range(output.nbytes // size)
            yield replace(region, indices=replace(indices, limits=limits))
        else:
            assert isinstance(source, Read)
            whole, rest = divmod(plan.inputs[source.input], size)
            limits, within = range(whole + bool(rest)), range(whole) if rest else None
            yield replace(region, indices=replace(indices, limits=limits, within=within))
            if rest:  # the element that the memory ends within
                last = replace(indices, limits=range(-whole, 1), within=range(1))
                yield Region(region.target, Read(zero, source.view.shift(-whole)), last)


def _moving(
    indices: IndexTensor, numbers: View, terms: tuple[Term, ...], rule: Literal["clamp", "skip"]
) -> Indices:
    """Return indices for a rule that does not use positions."""
    position = View(numbers.sizes, (0,) * len(numbers.sizes))
    return Indices(indices.input, indices.dtype, numbers, terms, rule, position)


def _repeated(view: View, axis: int, sizes: Ints) -> View:
    """A view with new axes from ``axis`` on, along which its elements repeat."""
    for size in reversed(sizes):
        view = view.insert(axis, size)
    return view


def _at_first_place(view: View, axis: int, sizes: Ints) -> View:
    """Return a view that stays at the first place along an axis: indices move it from there."""
    return View(sizes, (*view.strides[:axis], 0, *view.strides[axis + 1 :]), view.offset)


def _own_place(view: View, axis: int) -> Term:
    """The term of indices that replace an element's own place along an axis.

    Its stride is 0 on an axis of size 1, which has no other place; DirectML does the same.
    """
    size = view.sizes[axis]
    return Term(0, size, view.strides[axis] if size > 1 else 0)


def _tuples(view: View, indices: View, batch: int) -> tuple[View, tuple[Term, ...]]:
    """The first numbers of index tuples, and a term for each number."""
    *_, count = indices.sizes
    *_, step = indices.strides
    axes = range(batch, batch + count)
    terms = tuple(
        Term(number * step, view.sizes[axis], view.strides[axis])
        for number, axis in enumerate(axes)
    )
    return indices.take(len(indices.sizes) - 1, 0), terms
