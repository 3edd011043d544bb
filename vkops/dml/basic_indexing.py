"""Basic indices of expressions, as windows of SLICE1 and dimensions that are dropped or added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from vkops.arguments.basic_index import ErrorFormats, basic_index
from vkops.arguments.values import ArgumentName, integer, refuse
from vkops.errors import InvalidDescTypeError, from_builtin, show
from vkops.plan.view import Ints

_INDEX = ArgumentName("GRAPH", "index", "G-13")
_PARTS = "integers, slices, `...` and None; for tensors of indices there is vkops.dml.gather"
_TEXTS = ErrorFormats(
    ellipses="has more than one `...`",
    too_many="has {count} integers and slices, must have {rank} at most",
    outside="got {index}, must be {low} to {high} in dimension {axis}",
    zero_step="has a slice with step 0 in dimension {axis}",
)


class Window(NamedTuple):
    """The elements that an index selects.

    Attributes:
        offsets: first element of the window, per dimension.
        sizes: extent of the window, per dimension.
        strides: signed distance between elements in the window, per dimension.
        dimensions: for each dimension of the result that of the tensor, or None for a new one.
    """

    offsets: Ints
    sizes: Ints
    strides: Ints
    dimensions: Sequence[int | None]


def window_of(sizes: Ints, index: Any) -> Window:
    """Return the window that an index selects of a tensor, with the meaning of NumPy's.

    Raises:
        InvalidDescError: the index selects no element, or does not fit the tensor (G-13).
        InvalidDescTypeError: it has parts of another kind (G-13).

    >>> window_of((4, 6), (-1, slice(None, None, -2)))
    Window(offsets=(3, 1), sizes=(1, 5), strides=(1, -2), dimensions=[1])
    """
    parts = [*map(_integers, index if isinstance(index, tuple) else (index,))]
    try:
        selected = basic_index(sizes, parts, _TEXTS)
    except (IndexError, ValueError) as error:
        raise from_builtin(error, *_INDEX) from None
    windows: list[tuple[int, int, int]] = []
    dimensions: list[int | None] = []
    for part in selected:
        if part is None:
            dimensions.append(None)
        elif isinstance(part, int):
            windows.append((part, 1, 1))
        elif part:
            dimensions.append(len(windows))
            extent = abs(part[-1] - part[0]) + 1
            windows.append((min(part[0], part[-1]), extent, part.step if extent > 1 else 1))
        else:
            dimension = len(windows)
            size = show(sizes[dimension])
            message = f"selects no element of dimension {dimension}, which has size {size}"
            refuse(*_INDEX[:2], message, _INDEX.rule)
    if not windows:
        refuse(*_INDEX[:2], "needs a tensor of 1 dimension or more", _INDEX.rule)
    if not dimensions:
        refuse(*_INDEX[:2], "leaves no dimensions, must leave 1 or more", _INDEX.rule)
    offsets, lengths, strides = zip(*windows, strict=True)
    return Window(offsets, lengths, strides, dimensions)


def _integers(part: Any) -> Any:
    """Convert the numbers of a part of an index to Python integers."""
    if part is None or part is ...:
        return part
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        return slice(*[None if bound is None else integer(bound, _INDEX) for bound in bounds])
    try:
        return integer(part, _INDEX)
    except InvalidDescTypeError:
        raise _INDEX.wrong_kind(part, _PARTS) from None
