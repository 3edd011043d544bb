"""Extents: bytes of a resource, wherever they are."""

from __future__ import annotations

from typing import Any, NamedTuple


class Extent(NamedTuple):
    """``nbytes`` bytes of a resource, from byte ``start`` on.

    A resource is anything that can be compared: a heap of a device, a buffer, a name in a model.

    >>> whole = Extent("weights", 0, 64)
    >>> whole.part(16, 8)
    Extent(resource='weights', start=16, nbytes=8)
    >>> whole.overlaps(Extent("weights", 60, 8)), whole.overlaps(Extent("weights", 64, 8))
    (True, False)
    """

    resource: Any
    start: int
    nbytes: int

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.start + self.nbytes

    def part(self, start: int, nbytes: int) -> Extent:
        """Return some of the bytes, counted from the first one."""
        return Extent(self.resource, self.start + start, nbytes)

    def overlaps(self, other: Extent) -> bool:
        """Whether both share bytes."""
        apart = self.end <= other.start or other.end <= self.start
        return self.resource == other.resource and not apart


def slice_extents(extents: tuple[Extent, ...], start: int, nbytes: int) -> tuple[Extent, ...]:
    """Return the parts of extents that hold some bytes of what they hold one after the other.

    >>> slice_extents((Extent("a", 0, 8), Extent("b", 16, 8)), 6, 4)
    (Extent(resource='a', start=6, nbytes=2), Extent(resource='b', start=16, nbytes=2))
    """
    if len(extents) == 1:
        return (extents[0].part(start, nbytes),)
    parts = []
    end = start + nbytes
    for extent in extents:
        if start < extent.nbytes and end > 0:
            first = max(0, start)
            parts.append(extent.part(first, min(end, extent.nbytes) - first))
        start, end = start - extent.nbytes, end - extent.nbytes
    return tuple(parts)
