"""Regions written in one line."""

from vkops.plan import Fill, Read, Region, View


def make_region(sizes, offset, strides, source):
    """A region that writes at an offset with strides, from a Fill or an (input, offset, strides)."""
    if not isinstance(source, Fill):
        number, start, steps = source
        source = Read(number, View(sizes, steps, start))
    return Region(View(sizes, strides, offset), source)
