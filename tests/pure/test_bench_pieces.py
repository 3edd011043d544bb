"""Works as strided reads and as copies say what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from vkops.bench.peers.pieces import copies, reads
from vkops.bench.works import WORKS, join, permute, split, step, window

CASES = {
    "split": split("float32", (4, 6, 5), 1, [1, 3, 2]),
    "split of half words": split("uint16", (4, 6), 1, [1, 5]),
    "join": join("int64", (3, 2, 4), 1, 3),
    "join of bytes": join("uint8", (5, 3), 1, 3),
    "window": window("float32", (6, 7), (1, 2), (3, 4)),
    "steps": step("float32", (7, 9, 4), (-2, 3, 1)),
    "reverse": step("uint8", (5, 5), (-1, -1)),
    "permute": permute("float64", (2, 3, 4), (2, 0, 1)),
    "permute of nothing": permute("float32", (2, 3, 4), (0, 1, 2)),
}


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return CASES[request.param](1)


@pytest.fixture
def arrays(case):
    random = np.random.default_rng(0)
    return [
        random.integers(0, 256, int(np.prod(shape)) * case.dtype.itemsize, np.uint8)
        .view(case.dtype)
        .reshape(shape)
        for shape in case.shapes
    ]


def same(got, wanted):
    assert [a.tobytes() for a in got] == [a.tobytes() for a in wanted]


def test_reads(case, arrays):
    size = case.dtype.itemsize
    made = []
    for output in reads(case):
        parts = []
        for source in output.sources:
            shape = list(output.shape)
            shape[output.axis] = source.length
            flat = arrays[source.input].reshape(-1)[output.origin :]
            parts.append(as_strided(flat, shape, [stride * size for stride in source.strides]))
        made.append(np.concatenate(parts, output.axis))
    same(made, case.numpy(arrays))


def test_copies(case, arrays):
    found = copies(case, 1000)
    if case.dtype.itemsize < 4:  # these take words apart
        assert found is None
        return
    inputs = [array.reshape(-1).view(np.uint8) for array in arrays]
    outputs = [np.zeros_like(array).reshape(-1).view(np.uint8) for array in case.numpy(arrays)]
    for c in found:
        assert not any(n % 4 for n in (c.source, c.target, c.nbytes))
        outputs[c.output][c.target :][: c.nbytes] = inputs[c.input][c.source :][: c.nbytes]
    same(outputs, case.numpy(arrays))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("W1", 4),
        ("W2", None),
        ("W4", None),
        ("W5", None),
        ("W7", 2000),
        ("W12", 256),
        ("W16", 1024),
    ],
)
def test_how_many_copies_a_work_takes(name, count):
    found = copies(next(work for work in WORKS if work.name == name).build(1), 4096)
    assert (found and len(found)) == count
