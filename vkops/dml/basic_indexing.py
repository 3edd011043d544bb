"""Basic indices of expressions, as windows of SLICE1 and dimensions that are dropped or added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from vkops.arguments.values import Place, integer
from vkops.errors import InvalidDescError, InvalidDescIndexError, show
from vkops.plan.view import Ints

_PLACE = Place("GRAPH", "index", "G-13")
_PARTS = "integers, slices, `...` and None; for tensors of indices there is vkops.dml.gather"


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
    windows: list[tuple[int, int, int]] = []
    dimensions: list[int | None] = []
    for part in _expanded(sizes, index if isinstance(index, tuple) else (index,)):
        dimension = len(windows)
        if part is None:
            dimensions.append(None)
            continue
        if isinstance(part, slice):
            dimensions.append(dimension)
        windows.append(_along(dimension, sizes[dimension], part))
    if not windows:
        _refuse("needs a tensor of 1 dimension or more")
    if not dimensions:
        _refuse("leaves no dimensions, must leave 1 or more")
    offsets, lengths, strides = zip(*windows, strict=True)
    return Window(offsets, lengths, strides, dimensions)


def _expanded(sizes: Ints, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts of an index with a slice for each dimension that it leaves out."""
    ellipses = [i for i, part in enumerate(parts) if part is ...]
    if len(ellipses) > 1:
        _refuse("has more than one `...`")
    named = sum(part is not None and part is not ... for part in parts)
    if named > len(sizes):
        _refuse(f"has {named} integers and slices, must have {len(sizes)} at most")
    place = ellipses[0] if ellipses else len(parts)
    return (*parts[:place], *[slice(None)] * (len(sizes) - named), *parts[place + 1 :])


def _along(dimension: int, size: int, part: Any) -> tuple[int, int, int]:
    """Offset, size and stride of the window along one dimension."""
    if not isinstance(part, slice):
        try:
            number = integer(part, _PLACE)
        except InvalidDescError:
            raise _PLACE.wrong_kind(part, _PARTS) from None
        if not -size <= number < size:
            allowed = f"must be {show(-size)} to {show(size - 1)} in dimension {dimension}"
            message = f"got {show(number)}, {allowed}"
            raise InvalidDescIndexError(*_PLACE[:2], message, _PLACE.rule)
        return number % size, 1, 1
    bounds = (part.start, part.stop, part.step)
    given = slice(*[None if bound is None else integer(bound, _PLACE) for bound in bounds])
    if given.step == 0:
        _refuse(f"has a slice with step 0 in dimension {dimension}")
    chosen = range(size)[given]
    if not chosen:
        _refuse(f"selects no element of dimension {dimension}, which has size {show(size)}")
    extent = abs(chosen[-1] - chosen[0]) + 1
    return min(chosen[0], chosen[-1]), extent, chosen.step if extent > 1 else 1


def _refuse(message: str) -> NoReturn:
    raise InvalidDescError(*_PLACE[:2], message, _PLACE.rule)
