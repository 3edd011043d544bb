"""Regions written in one line, and plans of regions."""

from collections import defaultdict

from vkops.plan import CopyPlan, Fill, Output, Read, Region, View


def make_region(sizes, offset, strides, source):
    """A region that writes at an offset with strides, from a Fill or an (input, offset, strides)."""
    if not isinstance(source, Fill):
        number, start, steps = source
        source = Read(number, View(sizes, steps, start))
    return Region(View(sizes, strides, offset), source)


def fitting(element_size, *outputs, inputs=1, unit=4):
    """A plan of the regions of each output, of at least so many inputs.

    All tensors are just large enough, in whole units of so many bytes.
    """
    ends = defaultdict(lambda: 1, dict.fromkeys(range(inputs), 1))

    def nbytes(end):
        return -(-end * element_size // unit) * unit

    result = []
    for regions in map(tuple, outputs):
        result.append(Output(nbytes(max(region.target.extent for region in regions)), regions))
        for region in regions:
            if region.input is not None:
                ends[region.input] = max(ends[region.input], region.source_view.extent)
    return CopyPlan(element_size, tuple(nbytes(ends[n]) for n in sorted(ends)), tuple(result))
