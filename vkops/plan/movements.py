"""The meaning of operators: pure functions from views to the regions that move their elements.

DirectML descriptors, the functions for arrays and ONNX nodes check rules of their own, and call
these.
"""

from __future__ import annotations

from vkops.plan.region import Read, Region
from vkops.plan.view import View, packed_strides


def copy(source: View, target: View, input: int = 0) -> Region:
    """The region that copies a view of an input to a view of an output of the same sizes.

    >>> copy(View.packed((2, 3)).permute((1, 0)), View.packed((3, 2))).source
    Read(input=0, view=View(sizes=(3, 2), strides=(1, 3), offset=0))
    """
    return Region(target, Read(input, source))


def lay(source: View, start: int = 0, input: int = 0) -> Region:
    """The region that lays out a view row by row, from one element of the output on."""
    return copy(source, View(source.sizes, packed_strides(source.sizes), start), input)
