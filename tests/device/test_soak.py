"""A hundred thousand operators in one process: its memory does not grow, nor does what it records.

The process is one of its own: what other tests leave behind would count, and so would coverage.
Run as a program, this file is that process: ADAPTER COUNT.
"""

from __future__ import annotations

import gc
import json
import sys
from itertools import accumulate
from pathlib import Path
from random import Random

import numpy as np
import pytest

import vkops
from vkops import dml
from vkops.gpu.executor import MAX_KERNELS
from vkops.tensors.movement import MOST_KILOBYTES

OPERATORS = 100_000
WARM_UP = 5_000
"""Operators after which memory is measured, eager caches having been filled before."""

EVERY = 50
"""One result in so many is compared with NumPy's."""

GROWTH = 50_000
"""Kilobytes of resident memory that the operators after the warm-up may take."""

KINDS = sorted(kind for kind in dml.TensorDataType if (kind.size_bits or 0) >= 8)


@pytest.mark.slow
def test_memory_stays_as_it_is_over_a_hundred_thousand_operators(adapter):
    from processes import python  # not there where this file is the program

    found = json.loads(python(__file__, adapter.index, OPERATORS))
    assert found["checked"] == OPERATORS // EVERY
    assert found["used"] == 0, found
    assert found["kernels"] <= MAX_KERNELS, found
    assert found["resident"][-1] - found["resident"][0] < GROWTH, found


def soak(index, count):
    """Run operators, then tell what is held: memory in kB from the warm-up on, and the rest."""
    resident, checked = [], 0
    with vkops.Device(index) as device:
        fill_caches(device)
        for number in range(count):
            results, expected = operator(device, Random(number))
            if number % EVERY == 0:
                found = [result.numpy().tobytes() for result in results]
                assert found == [array.tobytes() for array in expected], number
                checked += 1
            if number >= WARM_UP and number % 1000 == 0:
                resident.append(resident_kilobytes())
        del results
        gc.collect()
        resident.append(resident_kilobytes())
        return {
            "checked": checked,
            "used": device.memory_report().used,
            "kernels": len(device.executor._kernels),
            "resident": resident,
        }


def fill_caches(device):
    """Let eager operators remember as much as they ever will."""
    x = device.tensor(np.zeros(MOST_KILOBYTES + 1, np.uint8))
    for n in range(1, x.size):
        vkops.join(vkops.split(x, [n, x.size - n]))
        vkops.slice(x, [n], [1])


def operator(device, random):
    """Make and run an operator of any kind, type and shape: its results, and NumPy's."""
    kind = random.choice(KINDS)
    rank = random.randint(1, 5)
    shape = [random.randint(1, (900, 60, 20, 8, 5)[rank - 1]) for _ in range(rank)]
    nbytes = int(np.prod(shape)) * kind.size_bits // 8
    x = np.frombuffer(random.randbytes(nbytes), kind.name.lower()).reshape(shape)
    axis = random.randrange(rank)
    make = random.choice((split, join, slice_, slice1, identity))
    return make(device, random, kind, x, axis)


def split(device, random, kind, x, axis):
    sizes = pieces(random, x.shape[axis])
    expected = np.split(x, list(accumulate(sizes))[:-1], axis)
    if random.random() < 0.5:
        return vkops.split(device.tensor(x), sizes, axis), expected
    desc = dml.SplitOperatorDesc(
        packed(kind, x), tuple(packed(kind, part) for part in expected), axis
    )
    return compiled(device, desc, [x], expected), expected


def join(device, random, kind, x, axis):
    parts = np.split(x, list(accumulate(pieces(random, x.shape[axis])))[:-1], axis)
    if random.random() < 0.5:
        return [vkops.join([device.tensor(part) for part in parts], axis)], [x]
    desc = dml.JoinOperatorDesc(tuple(packed(kind, part) for part in parts), packed(kind, x), axis)
    return compiled(device, desc, parts, [x]), [x]


def slice_(device, random, kind, x, _):
    offsets = [random.randrange(n) for n in x.shape]
    strides = [random.randint(1, 4) for _ in x.shape]
    index = tuple(slice(o, None, s) for o, s in zip(offsets, strides, strict=True))
    expected = [x[index]]
    sizes = expected[0].shape
    if random.random() < 0.5:
        return [vkops.slice(device.tensor(x), offsets, sizes, strides)], expected
    desc = dml.SliceOperatorDesc(
        packed(kind, x), packed(kind, expected[0]), offsets, sizes, strides
    )
    return compiled(device, desc, [x], expected), expected


def slice1(device, random, kind, x, _):
    strides = [random.choice((-3, -1, 1, 2)) for _ in x.shape]
    expected = [x[tuple(slice(None, None, s) for s in strides)]]
    desc = dml.Slice1OperatorDesc(
        packed(kind, x), packed(kind, expected[0]), [0] * x.ndim, x.shape, strides
    )
    return compiled(device, desc, [x], expected), expected


def identity(device, random, kind, x, _):
    order = random.sample(range(x.ndim), x.ndim)
    expected = [x.transpose(order)]
    strides = tuple(np.array(expected[0].strides) // x.itemsize)
    source = dml.BufferTensorDesc(kind, expected[0].shape, [int(s) for s in strides])
    desc = dml.ElementWiseIdentityOperatorDesc(source, packed(kind, expected[0]))
    return compiled(device, desc, [x], expected), expected


def compiled(device, desc, inputs, outputs):
    """Compile and dispatch; the outputs as tensors."""
    ready = device.compile_operator(device.create_operator(desc))
    results = [device.tensor(np.empty_like(array, order="C")) for array in outputs]
    ready.dispatch([device.tensor(array) for array in inputs], results)
    return results


def packed(kind, array):
    return dml.BufferTensorDesc(kind, array.shape)


def pieces(random, size):
    """Any sizes that add up to that."""
    cuts = sorted(random.sample(range(1, size), min(size - 1, random.randint(0, 6))))
    return [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]


def resident_kilobytes():
    """VmRSS of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    print(json.dumps(soak(int(sys.argv[1]), int(sys.argv[2]))))
