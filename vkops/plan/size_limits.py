"""Limits on the tensors of a graph, the same for every front end that builds one."""

from __future__ import annotations

from math import prod

import numpy as np

from vkops.errors import show
from vkops.plan.view import Ints

MAX_TENSOR_BYTES = 2**63 - 1
"""Size of a tensor, in bytes: the largest that NumPy can represent."""

MAX_DIMENSIONS = 32 if np.lib.NumpyVersion(np.__version__) < "2.0.0" else 64
"""Number of dimensions of a tensor: NumPy's own limit."""

MAX_PIECES = 1 << 16
"""The number of parts or pieces that one operator may have: each takes memory on the device."""

MAX_GRAPH_REGIONS = 1 << 19
"""Number of tensors and regions of a graph, added together."""


class LimitError(ValueError):
    """A tensor or a graph exceeds a limit."""


class BudgetError(Exception):
    """More steps were taken than a budget allows."""


class Budget:
    """A limited number of steps, which code spends as it takes them."""

    def __init__(self, steps: float) -> None:
        self.available: float = steps

    def spend(self, steps: int = 1) -> None:
        """Count steps."""
        self.available -= steps
        if self.available < 0:
            raise BudgetError


def check_shape(shape: Ints, itemsize: int) -> None:
    """Check that a tensor is not too large, on any device.

    Sizes of 0 are left out of the product: NumPy limits empty arrays in the same way.
    """
    if len(shape) > MAX_DIMENSIONS:
        raise LimitError(f"got {len(shape)} dimensions, must be {MAX_DIMENSIONS} at most")
    if prod(filter(None, shape)) * itemsize > MAX_TENSOR_BYTES:
        left_out = ", sizes of 0 left out" if 0 in shape else ""
        raise LimitError(f"got {show(shape)}, must have {MAX_TENSOR_BYTES} bytes at most{left_out}")
