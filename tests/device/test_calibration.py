"""Copies on GPUs, by costs that they measure; drivers of CPUs stand for them here."""

from __future__ import annotations

from dataclasses import replace
from threading import Barrier, Thread

import numpy as np
import pytest

import vkops
from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.copies import calibration
from vkops.gpu.copies.copy_costs import COPY, UNMEASURED, CopyCosts
from vkops.gpu.copies.region_copies import Filling, RegionCopy
from vkops.gpu.memory.heaps import held_bytes
from vkops.gpu.run.dispatch import Dispatch
from vkops.gpu.run.executor import Executor
from vkops.plan import CopyPlan, Fill, Output, Region, View
from vkops.plan.movements import copy


@pytest.fixture
def measurements(monkeypatch):
    """The costs that executors have measured, one after the other."""
    found = []
    measure = Executor._measure_costs

    def counted(executor):
        found.append(measure(executor))
        return found[-1]

    monkeypatch.setattr(Executor, "_measure_costs", counted)
    return found


@pytest.fixture(params=["DISCRETE_GPU", "INTEGRATED_GPU"])
def as_gpu(request, device, measurements, monkeypatch, tmp_path):
    """Open the adapter as if it were a GPU, with an empty cache of costs.

    The host does not see the memory of a discrete one.
    """
    queue = device.executor.queue
    if not queue.kompute.native:
        pytest.skip("the native operations are switched off")
    assert queue.kompute.has_timestamps
    unified = request.param == "INTEGRATED_GPU"
    info = replace(queue.info, type=request.param, unified_memory=unified)
    monkeypatch.setattr(queue, "info", info)
    monkeypatch.setattr(calibration, "_in_process", {})
    monkeypatch.setenv("VKOPS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv(COPY, raising=False)
    return lambda: vkops.Device(device.info.index)


def rows(count, nbytes):
    """A plan that copies ``count`` rows of bytes to a packed output."""
    source = View((count, nbytes), (2 * nbytes, 1))
    output = Output(count * nbytes, (copy(source, View.packed((count, nbytes))),))
    return CopyPlan(1, (2 * count * nbytes,), (output,))


def kinds(device, plan):
    """The kinds of work that a plan becomes, after a check of what it does."""
    source, target = device.buffer(plan.inputs[0]), device.buffer(plan.outputs[0].nbytes)
    x = np.random.default_rng(1).integers(0, 256, plan.inputs[0], np.uint8)
    source.write(x)
    work = device.executor.prepare(plan).bind([source.allocation], [target.allocation])
    device.executor.run(work)
    count, nbytes = plan.regions[0][1].sizes
    expected = x.reshape(count, 2, nbytes)[:, 0].ravel()
    np.testing.assert_array_equal(target.array(), expected)
    return [type(each) for each in work]


def test_large_regions_are_copied_and_small_ones_are_not(as_gpu, measurements):
    with as_gpu() as gpu:
        assert gpu.executor.mapped == (gpu.info.type == "INTEGRATED_GPU")
        assert kinds(gpu, rows(4, 1 << 20)) == [RegionCopy]
        assert kinds(gpu, rows(1 << 12, 16)) == [Dispatch]
    (costs,) = measurements
    assert costs.shader > 0 < costs.unaligned
    assert costs.copy > 0 < costs.command
    assert costs.region > 0


def test_costs_are_measured_when_they_matter_and_only_once(as_gpu, measurements, monkeypatch):
    with as_gpu() as gpu:
        for plan in (rows(1, 1 << 19), rows(1 << 16, 16)):
            assert kinds(gpu, plan) == [Dispatch]
        assert (gpu.executor.tuning.copies is UNMEASURED, measurements) == (True, [])
        for _ in range(2):
            kinds(gpu, rows(1, 1 << 20))
        assert len(measurements) == 1
    with as_gpu() as gpu:
        kinds(gpu, rows(1, 1 << 20))
        assert len(measurements) == 1
        known = gpu.executor.tuning.copies
    monkeypatch.setattr(calibration, "_in_process", {})  # another process
    with as_gpu() as gpu:
        kinds(gpu, rows(1, 1 << 20))
        assert len(measurements) == 1
        assert gpu.executor.tuning.copies == known


def test_the_memory_for_measuring_is_given_back(as_gpu, measurements):
    with as_gpu() as gpu:
        sources = [(gpu.info.index, number) for number in range(16)]
        before = sum(map(held_bytes, sources))
        gpu.executor.prepare(rows(1, 1 << 20))
        # The memory of other tests may be freed meanwhile.
        assert sum(map(held_bytes, sources)) <= before
    assert len(measurements) == 1


def test_functions_graphs_and_fills_with_measured_costs(as_gpu, measurements, monkeypatch):
    """All costs are in favour of copies, to run as many of them as there are."""
    always = CopyCosts(shader=1e6, unaligned=1e6, copy=0, region=0, command=0)
    monkeypatch.setattr(Executor, "_measure_costs", lambda _: always)
    x = np.random.default_rng(2).integers(0, 1 << 30, (1024, 1024), np.int32)
    with as_gpu() as gpu:
        t = gpu.tensor(x)
        for got, expected in zip(vkops.split(t, 4, axis=1), np.split(x, 4, 1), strict=True):
            np.testing.assert_array_equal(got.numpy(), expected)
        np.testing.assert_array_equal(
            vkops.concat([t, t[::-1]]).numpy(), np.concatenate([x, x[::-1]])
        )
        np.testing.assert_array_equal(vkops.pad(t, 5).numpy(), np.pad(x, 5))
        plan = CopyPlan(4, (), (Output(64, (Region(View.packed((16,)), Fill(b"abcd")),)),))
        target = gpu.buffer(64)
        (work,) = gpu.executor.prepare(plan).bind([], [target.allocation])
        assert isinstance(work, Filling)
        gpu.executor.run([work])
        assert target.read() == b"abcd" * 16


def test_without_the_memory_to_measure_shaders_copy_and_it_is_tried_again(
    as_gpu, measurements, monkeypatch
):
    make = Executor._new_heap

    def refused(executor, size, *, mapped):
        if size == calibration.HEAP_BYTES:
            raise OutOfDeviceMemoryError("no memory")
        return make(executor, size, mapped=mapped)

    with as_gpu() as gpu:
        with monkeypatch.context() as patch:
            patch.setattr(calibration, "HEAP_BYTES", calibration.HEAP_BYTES + 4096)
            patch.setattr(Executor, "_new_heap", refused)
            assert kinds(gpu, rows(1, 1 << 20)) == [Dispatch]
        assert measurements == []
        assert kinds(gpu, rows(1, 1 << 20)) == [RegionCopy]


@pytest.mark.parametrize(("name", "value"), [("has_timestamps", False), ("native", None)])
def test_what_cannot_be_measured_is_copied_by_shaders(
    device, as_gpu, measurements, monkeypatch, name, value
):
    """Without timestamps, or without the native operations."""
    with monkeypatch.context() as patch:
        patch.setattr(device.executor.queue.kompute, name, value)
        opened = as_gpu()
    with opened as gpu:
        assert kinds(gpu, rows(1, 1 << 20)) == [Dispatch]
    assert measurements == []


def test_where_no_second_buffer_is_possible_shaders_copy(as_gpu, measurements, monkeypatch):
    with as_gpu() as gpu:
        monkeypatch.setattr(gpu.executor.queue.kompute, "buffer", lambda tensor: None)
        assert kinds(gpu, rows(1, 1 << 20)) == [Dispatch]
        assert measurements == [UNMEASURED]
        monkeypatch.setenv(COPY, "regions")
        with as_gpu() as wanted:
            assert kinds(wanted, rows(1, 1 << 20)) == [Dispatch]


@pytest.mark.parametrize(("wanted", "kind"), [("shader", Dispatch), ("regions", RegionCopy)])
def test_with_a_choice_nothing_is_measured(as_gpu, measurements, monkeypatch, wanted, kind):
    monkeypatch.setenv(COPY, wanted)
    with as_gpu() as gpu:
        assert kinds(gpu, rows(1, 1 << 20)) == [kind]
    assert measurements == []


def test_threads_that_need_the_costs_at_once(as_gpu, measurements):
    plan, found = rows(2, 1 << 20), []
    with as_gpu() as gpu:
        ready = Barrier(4)

        def work():
            ready.wait()
            found.append(kinds(gpu, plan))

        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [[RegionCopy]] * 4


def test_costs_are_measured_while_a_dispatch_is_pending(as_gpu, measurements):
    with as_gpu() as gpu:
        x = np.arange(1 << 10, dtype=np.int32)
        source, target = gpu.tensor(x), gpu.buffer(x.nbytes)
        desc = vkops.dml.BufferTensorDesc(vkops.dml.TensorDataType.INT32, [x.size])
        operator = gpu.create_operator(vkops.dml.ElementWiseIdentityOperatorDesc(desc, desc))
        pending = gpu.compile_operator(operator).dispatch([source], [target], wait=False)
        kinds(gpu, rows(1, 1 << 20))
        pending.wait()
        assert target.read() == x.tobytes()
    assert len(measurements) == 1
