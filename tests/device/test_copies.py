"""Copies as on GPUs, for which drivers of CPUs stand here, and copies that are not possible."""

from dataclasses import replace

import numpy as np
import pytest
from arrays import run_work, small_memory

import vkops
from vkops.gpu.copies.rule import COPY, REGIONS, SHADERS
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.plan import CopyPlan, Fill, Output, Region, View
from vkops.plan.movements import copy

pytestmark = pytest.mark.memory


@pytest.fixture(params=["DISCRETE_GPU", "INTEGRATED_GPU"])
def as_gpu(request, device, monkeypatch):
    """The adapter as if it were a GPU; the host does not see the memory of a discrete one."""
    queue = device.vulkan
    unified = request.param == "INTEGRATED_GPU"
    info = replace(queue.info, type=request.param, unified_memory=unified)
    monkeypatch.setattr(queue, "info", info)
    monkeypatch.delenv(COPY, raising=False)
    with vkops.Device(device.info.index) as gpu:
        assert gpu.mapped == unified
        yield gpu


def kinds(device, plan, x):
    """The commands that a plan becomes, and its outputs."""
    source = device.buffer(plan.inputs[0])
    targets = [device.buffer(output.nbytes) for output in plan.outputs]
    source.write(x)
    work = EncodedPlan(plan, device.tuning).bind(
        [source.extents], [target.extents for target in targets]
    )
    run_work(device, work)
    return [each.command for each in work], [target.array() for target in targets]


@pytest.mark.parametrize(
    ("count", "nbytes", "kind"),
    [(4, 1 << 20, "vkCmdCopyBuffer"), (1 << 12, 16, "vkCmdDispatch")],
)
def test_large_regions_are_copied_and_small_ones_are_not(as_gpu, count, nbytes, kind):
    source, target = View((count, nbytes), (2 * nbytes, 1)), View.packed((count, nbytes))
    plan = CopyPlan(1, (2 * count * nbytes,), (Output(count * nbytes, (copy(source, target),)),))
    x = np.random.default_rng(1).integers(0, 256, plan.inputs[0], np.uint8)
    found, (result,) = kinds(as_gpu, plan, x)
    assert found == [kind]
    np.testing.assert_array_equal(result, x.reshape(count, 2, nbytes)[:, 0].ravel())


def test_a_plan_is_divided_between_copies_and_shaders(as_gpu):
    n = 4 << 20
    run, fill = copy(View.packed((n,)), View.packed((n,))), Fill(b"a")
    reverse = copy(View((n,), (-1,), n - 1), View.packed((n,)))
    outputs = (
        Output(n, (reverse,)),
        Output(n + (1 << 16), (run, Region(View((1 << 16,), (1,), n), fill))),
    )
    x = np.random.default_rng(1).integers(0, 256, n, np.uint8)
    found, (backwards, filled) = kinds(as_gpu, CopyPlan(1, (n,), outputs), x)
    assert found == ["vkCmdCopyBuffer", "vkCmdFillBuffer", "vkCmdDispatch"]
    np.testing.assert_array_equal(backwards, x[::-1])
    np.testing.assert_array_equal(filled[:n], x)
    assert set(filled[n:].tolist()) == {ord("a")}


def test_functions(as_gpu):
    x = np.random.default_rng(2).integers(0, 1 << 30, (1024, 1024), np.int32)
    t = as_gpu.tensor(x)
    for got, expected in zip(vkops.split(t, 4), np.split(x, 4), strict=True):
        np.testing.assert_array_equal(got.numpy(), expected)
    joined = vkops.concat([t, t[::-1]]).numpy()
    np.testing.assert_array_equal(joined, np.concatenate([x, x[::-1]]))
    np.testing.assert_array_equal(vkops.pad(t, 5).numpy(), np.pad(x, 5))


def test_arrays_whose_result_is_in_several_heaps_are_uploaded(adapter, monkeypatch):
    """Copies cannot write such a result, and shaders cannot read imported arrays."""
    monkeypatch.setenv(COPY, "regions")
    x = np.random.default_rng(4).integers(0, 256, (2, 1 << 17), np.uint8)
    with vkops.Device(adapter.index) as device:
        small_memory(device, 1 << 18)
        result = vkops.concat([x, x], axis=1, device=device)
        np.testing.assert_array_equal(result.numpy(), np.concatenate([x, x], 1))


def test_a_rule_that_changes_holds_for_plans_that_ran_before(device, monkeypatch):
    vulkan, kernels = device.vulkan, []
    x = np.arange(1 << 18, dtype=np.uint32)
    tensor, pipeline = device.tensor(x), vulkan.pipeline

    def asked(kernel, *, aligned):
        kernels.append(kernel.name)
        return pipeline(kernel, aligned=aligned)

    monkeypatch.setattr(vulkan, "pipeline", asked)
    for rule in (REGIONS, SHADERS):
        monkeypatch.setattr(device, "tuning", replace(device.tuning, copies=rule))
        kernels.clear()
        parts = vkops.split(tensor, [1, x.size - 1])
        assert bool(kernels) == (rule is SHADERS)
        np.testing.assert_array_equal(vkops.concat(parts).numpy(), x)
