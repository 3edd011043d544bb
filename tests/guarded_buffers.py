"""Buffers with guards around what plans read and write."""

import numpy as np
from byte_arrays import poisoned

from vkops.extent import slice_extents
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.encoded_plan import EncodedPlan

GUARD = 256  # bytes around each array


class Guarded:
    """A buffer of arrays of bytes with poisoned guards around each.

    Attributes:
        arrays: what must be in the buffer, as views of ``image``, all of its bytes.
        extents: where the arrays are.
    """

    def __init__(self, device, arrays):
        ends = np.cumsum([GUARD, *(-(-array.size // GUARD) * GUARD + GUARD for array in arrays)])
        self.image = poisoned(int(ends[-1]))
        places = [(int(at), array.size) for at, array in zip(ends, arrays, strict=False)]
        self.arrays = [self.image[at : at + size] for at, size in places]
        for place, array in zip(self.arrays, arrays, strict=True):
            place[...] = array
        self.buffer = Buffer(device, self.image.size)
        self.buffer.write(self.image)
        self.extents = [slice_extents(self.buffer.extents, *place) for place in places]

    def check(self):
        """Compare all bytes."""
        np.testing.assert_array_equal(self.buffer.array(), self.image)


def guarded(device, plan, inputs, tuning=None):
    """Bind a plan to inputs and poisoned outputs: what to run, and both buffers."""
    sources = Guarded(device, inputs)
    targets = Guarded(device, [poisoned(output.nbytes) for output in plan.outputs])
    encoded = EncodedPlan(plan, tuning or device.tuning)
    return encoded.bind(sources.extents, targets.extents), sources, targets
