"""Workloads: their descriptors, and their strided reads and copies, which must do as NumPy."""

from math import prod

import numpy as np
import pytest
from bench_peers.strided import copies, reads
from numpy.lib.stride_tricks import as_strided

from vkops.bench import WORKLOADS
from vkops.bench.workloads import Join, Permute, Split, Step, Window
from vkops.bench.workloads import case as make
from vkops.plan.rounding import round_up

CASES = {
    "split": make("float32", Split(1, (1, 3, 2)), (4, 6, 5)),
    "split of half words": make("uint16", Split(1, (1, 5)), (4, 6)),
    "join": make("int64", Join(1), (3, 2, 4), 3),
    "join of bytes": make("uint8", Join(1), (5, 3), 3),
    "window": make("float32", Window((1, 2), (3, 4)), (6, 7)),
    "steps": make("float32", Step((-2, 3, 1)), (7, 9, 4)),
    "reverse": make("uint8", Step((-1, -1)), (5, 5)),
    "permute": make("float64", Permute((2, 0, 1)), (2, 3, 4)),
    "permute of nothing": make("float32", Permute((0, 1, 2)), (2, 3, 4)),
}


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return CASES[request.param]


@pytest.fixture
def arrays(case):
    return case.inputs(np.random.default_rng(0))


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
            flat = arrays[source.input].reshape(-1)[output.offset :]
            parts.append(as_strided(flat, shape, [stride * size for stride in source.strides]))
        made.append(np.concatenate(parts, output.axis))
    same(made, case.numpy(arrays))


def test_copies(case, arrays):
    found = copies(case, 1000)
    if case.dtype.itemsize < 4:  # their copies would be of parts of words
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
def test_the_number_of_copies(name, count):
    found = copies(next(w.case for w in WORKLOADS if w.name == name), 4096)
    assert (found and len(found)) == count


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_descriptors(workload):
    """Descriptors are valid, and their inputs have the sizes that the case says."""
    case = workload.case.scaled(2)
    case.desc.validate()
    described = zip(case.desc.inputs, case.shapes, case.dtypes, strict=True)
    for (_, tensor), shape, dtype in described:  # whole words
        assert tensor.total_tensor_size_in_bytes == round_up(prod(shape) * dtype.itemsize, 4)
