"""All functions of ``vkops.kernels`` with the checks of ``vkops debug check``."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_checks import checked
from kernel_numbers import random, same

import vkops
from vkops import kernels
from vkops.debug import checking

pytestmark = pytest.mark.features

OF_BYTES = {"argsort", "bincount", "nonzero", "partition", "topk", "unique"}
OF_OTHERS = {"unique_all", "unique_counts", "unique_inverse", "unique_values"}
"""Functions that are calls of others in the table."""

CALLS = {
    **{
        name: getattr(kernels, name)
        for name in dir(kernels)
        if name[0] != "_" and callable(getattr(kernels, name)) and name not in OF_OTHERS
    },
    "argsort": lambda x: kernels.argsort(x, dtype="int32"),
    "columns": lambda x: kernels.sum(x.broadcast_to((40, 2, 70)), 0),
    "compress": lambda x: kernels.compress(x[0], x, 1),
    "cumsum": lambda x: kernels.cumsum(x[:, ::-1], 0),
    "cumulative_prod": lambda x: kernels.cumulative_prod(x, axis=1, include_initial=True),
    "cumulative_sum": lambda x: kernels.cumulative_sum(x, axis=0),
    "dot": lambda x: kernels.dot(x, x.T),
    "histogram": lambda x: kernels.histogram(x, 5, (-1, 1)),
    "inner": lambda x: kernels.inner(x, x),
    "integers": lambda x: kernels.random.Philox(1).integers(7, size=99, device=x.device),
    "matmul": lambda x: kernels.matmul(x, x.T),
    "normal": lambda x: kernels.random.Philox(1).normal(size=99, device=x.device),
    "partition": lambda x: kernels.partition(x, 3),
    "percentile": lambda x: kernels.percentile(x, 30, 1),
    "permutation": lambda x: kernels.random.Philox(1).permutation(x, 1),
    "quantile": lambda x: kernels.quantile(x, [0.2, 0.9]),
    "random": lambda x: kernels.random.Philox(1).random(99, device=x.device),
    "scatter_add": lambda x: kernels.scatter_add(x, [1, 0, 1], x[0]),
    "searchsorted": lambda x: kernels.searchsorted(x[0], x),
    "arithmetic": lambda x: vkops.sin(x * 1e20) > x // 3,
    "segments": lambda x: SEGMENTS(x, x),
    "tensordot": lambda x: kernels.tensordot(x, x),
    "topk": lambda x: kernels.topk(x, 3),
    "unique": lambda x: kernels.unique(x, return_inverse=True, return_counts=True),
    "vdot": lambda x: kernels.vdot(x, x),
    "vecdot": lambda x: kernels.vecdot(x, x[0]),
    "where": lambda x: kernels.where(x > 0, x, x[0]),
}
SEGMENTS = vkops.ScanKernel(
    "T x, T s", "T y", "x", "across_seg_boundary ? b : a + b", "y = prev_item", "0",
    is_segment_start_expr="s > 1",
)  # fmt: skip


# Their kernels differ on CPUs; the others only get fewer elements for each invocation there.
ON_CPUS = {"argsort", "bincount", "compress", "cumprod", "histogram", "nonzero", "partition"}
ON_CPUS |= {"permutation", "segments", "sort", "topk", "unique"}


@pytest.fixture(
    params=[*((name, False) for name in CALLS), *((name, True) for name in sorted(ON_CPUS))],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def call(request, device, change_device):
    """Calls a function, with a kernel for CPUs or for GPUs."""
    name, is_cpu = request.param
    change_device(is_cpu=is_cpu)
    x = device.tensor(random((2, 70), "int8" if name in OF_BYTES else "float32"))
    return name, lambda: CALLS[name](x)


def test_nothing_is_found_with_any_size_of_subgroups(call):
    with checked() as names:
        call[1]()
    assert names


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_outputs_in_parts_of_words_have_no_race(device, change_device, dtype):
    """Where storage buffers have no elements of 8 and 16 bits, several invocations change one word."""
    change_device(features=device.features - {f"storageBuffer{n}BitAccess" for n in (8, 16)})
    x, y, mask = random((2, 70), dtype), random((2, 70), dtype, 1), random((2, 70), "bool", 2)
    changed = device.tensor(y)
    with checked() as names:
        vkops.add(device.tensor(x), 1, out=changed, where=device.tensor(mask))
        is_more = changed > device.tensor(x)
    assert len(names) == 2
    expected = np.where(mask, x + np.array(1, dtype), y)
    same(changed, expected)
    same(is_more, expected > x)
    for chosen in (np.s_[:], np.s_[:, ::2], np.s_[:, 1:3]):  # in place, and next to the input
        with checked() as names:
            vkops.add(changed[chosen], changed[:, :1], out=changed[chosen])
        assert names == ["add"]
        expected[chosen] += expected[:, :1].copy()
        same(changed, expected)


def test_kernels_of_vkops_are_checked_if_that_is_asked_for(call):
    name, run = call
    with checking(max_instructions=1) as checks:
        run()
    with checking(max_instructions=1, kernels=True) as every:
        run()
    # Those of the user's own, each of whose passes is checked.
    expected = every.not_checked if name == "segments" else {}
    assert every.not_checked
    assert (checks.checked, checks.not_checked) == (0, expected)
