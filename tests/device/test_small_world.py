"""Operators on small tensors against NumPy: all there are (slow), and some of each.

All of them run in processes of their own: coverage would take longer than they do.
"""

import pytest
import small_world
from processes import python

# Per shape, axis and way to cut it: Σ r · 4^(r − 1) · (1 + 2 + 4 + 8) for ranks r of 1 to 4.
# Of a slice per dimension of n = 1 to 5: 1, 3, 10, 21, 37 with offsets, sizes and strides within
# it; of a window 2, 8, 34, 88, 182. All of n up to 5 for ranks 1 and 2, up to 3 for rank 3.
# Strides beyond: 2, 4, 6 and 4, 12, 24 for n = 1 to 3 and ranks 1 and 2. Times 4 element sizes.
CASES = {
    "SPLIT": 4 * (15 + 120 + 720 + 3840),
    "JOIN": 4 * (15 + 120 + 720 + 3840),
    "SLICE": 4 * (72 + 72**2 + 14**3 + 12 + 12**2),
    "SLICE1": 4 * (314 + 314**2 + 44**3 + 40 + 40**2),
    "RANKS_4_TO_8": 20_000,
}

EVERY = {"SPLIT": 41, "JOIN": 41, "SLICE": 71, "SLICE1": 707, "RANKS_4_TO_8": 41}
"""One case of so many runs with the other tests; odd numbers, so all element sizes are among them."""


@pytest.mark.parametrize("operator", CASES)
def test_some_of_the_small_world(device, operator):
    every = EVERY[operator]
    assert small_world.prove(device, operator, every) == -(-CASES[operator] // every)


@pytest.mark.slow
@pytest.mark.parametrize("operator", CASES)
def test_the_whole_small_world(adapter, operator):
    assert int(python(small_world.__file__, adapter.index, operator)) == CASES[operator]
