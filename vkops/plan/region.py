"""Copy plans, the representation that every operator is lowered to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vkops.plan.view import Ints, View


@dataclass(frozen=True, slots=True)
class Read:
    """Elements of an input: its number, and the view of it that is read."""

    input: int
    view: View


@dataclass(frozen=True, slots=True)
class Fill:
    """One constant element, as its bytes in memory order (``element_size`` of them)."""

    pattern: bytes


@dataclass(frozen=True, slots=True)
class Region:
    """A copy to a view of an output, element by element, from a view of an input or a constant.

    Both views have the same sizes.
    """

    target: View
    source: Read | Fill

    @property
    def sizes(self) -> Ints:
        """The sizes of both views."""
        return self.target.sizes

    @property
    def input(self) -> int | None:
        """The number of the input that is read; None for a constant."""
        return self.source.input if isinstance(self.source, Read) else None

    @property
    def source_view(self) -> View:
        """The view that is read; of a constant, one whose strides are 0."""
        if isinstance(self.source, Read):
            return self.source.view
        return View(self.sizes, (0,) * len(self.sizes))

    def with_views(self, target: View, source: View) -> Region:
        """A region with the same input or constant and other views."""
        if isinstance(self.source, Read):
            return Region(target, Read(self.source.input, source))
        return Region(target, self.source)

    def map(self, change: Callable[[View], View]) -> Region:
        """Apply the same change to both views.

        >>> region = Region(View.packed((4, 2)), Read(0, View((4, 2), (1, 4))))
        >>> region.map(lambda view: view.narrow(0, 1, 2)).source
        Read(input=0, view=View(sizes=(2, 2), strides=(1, 4), offset=1))
        """
        return self.with_views(change(self.target), change(self.source_view))

    def take(self, axis: int, at: int) -> Region:
        """The part at one index of an axis, without that axis."""
        return self.map(lambda view: view.take(axis, at))

    def reading(self, input: int) -> Region:
        """The same region of another input; constants stay as they are."""
        if isinstance(self.source, Read):
            return Region(self.target, Read(input, self.source.view))
        return self


@dataclass(frozen=True, slots=True)
class Output:
    """One output: its size in bytes and the regions that make it (disjoint, in any order)."""

    nbytes: int
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Strided copies from inputs to outputs.

    ``element_size`` is 1, 2, 4, 8 or 16 bytes; ``inputs`` holds the byte size of each input. Views
    count elements. All regions are independent of each other: they may run in any order, or at
    once.

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
