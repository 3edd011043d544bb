"""Workloads: their descriptors, and their strided reads and copies, which must do as NumPy."""

from math import prod

import numpy as np
import pytest
from bench_cases import VIEWS
from benchmarks.peers.strided import copies, reads
from numpy.lib.stride_tricks import as_strided

from vkops.bench import WORKLOADS
from vkops.plan.rounding import round_up


@pytest.fixture(params=VIEWS, ids=str)
def case(request):
    return VIEWS[request.param]


@pytest.fixture
def arrays(case):
    return case.inputs(np.random.default_rng(0))


def same(got, wanted):
    assert [a.tobytes() for a in got] == [a.tobytes() for a in wanted]


def test_reads(case, arrays):
    size = case.dtype.itemsize
    result = []
    for output in reads(case):
        parts = []
        for source in output.sources:
            shape = list(output.shape)
            shape[output.axis] = source.length
            flat = arrays[source.input].reshape(-1)[output.offset :]
            parts.append(as_strided(flat, shape, [stride * size for stride in source.strides]))
        result.append(np.concatenate(parts, output.axis))
    same(result, case.operation.numpy(*arrays))


def test_copies(case, arrays):
    all_copies = copies(case, 10_000)
    if case.dtype.itemsize < 4:  # their copies would be of parts of words
        assert all_copies is None
        return
    inputs = [array.reshape(-1).view(np.uint8) for array in arrays]
    outputs = [
        np.zeros_like(array).reshape(-1).view(np.uint8) for array in case.operation.numpy(*arrays)
    ]
    for c in all_copies:
        assert not any(n % 4 for n in (c.source, c.target, c.nbytes))
        outputs[c.output][c.target :][: c.nbytes] = inputs[c.input][c.source :][: c.nbytes]
    same(outputs, case.operation.numpy(*arrays))


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
    all_copies = copies(next(w.case for w in WORKLOADS if w.name == name), 4096)
    assert (all_copies and len(all_copies)) == count


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_descriptors(workload):
    """Descriptors are valid, and their inputs have the sizes that the case says."""
    case = workload.case.scaled(2)
    case.desc.validate()
    described = zip(case.desc.inputs, case.shapes, case.dtypes, strict=True)
    for (_, tensor), shape, dtype in described:  # whole words
        assert tensor.total_tensor_size_in_bytes == round_up(prod(shape) * dtype.itemsize, 4)
