"""Operations of the native module: copies with regions, fills, submissions."""

import gc
import sys
import threading
import time
import weakref
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from arrays import run_work, small_memory
from compiled_operators import identity
from onnx_models import node_model
from processes import python

import vkops
from vkops.gpu.adapters.kompute import load_kompute
from vkops.gpu.copies.rule import COPY, REGIONS, SHADERS, CopyRule
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.onnx import Session
from vkops.plan import CopyPlan, Fill, Output, Region, View
from vkops.plan.movements import copy

pytestmark = pytest.mark.memory


@pytest.fixture
def native(adapter, monkeypatch):
    """A device that copies all contiguous runs with regions."""
    monkeypatch.setenv(COPY, "regions")
    with vkops.Device(adapter.index) as device:
        yield device


def chain(device, count):
    """Dispatches of which each copies what the one before it wrote, and their memory."""
    nbytes = 1 << 12
    buffers = [device.buffer(nbytes) for _ in range(count + 1)]
    whole = copy(View.packed((nbytes // 4,)), View.packed((nbytes // 4,)))
    program = EncodedPlan(CopyPlan(4, (nbytes,), (Output(nbytes, (whole,)),)), device.tuning)
    work = [
        dispatch
        for source, target in pairwise(buffers)
        for dispatch in program.bind([source.extents], [target.extents])
    ]
    return work, buffers


@pytest.mark.parametrize("by_regions", [False, True], ids=["shader", "regions"])
def test_each_dispatch_of_a_submission_sees_what_those_before_it_wrote(device, by_regions):
    if by_regions:
        device.tuning = replace(device.tuning, copies=REGIONS)
    work, buffers = chain(device, 19)
    data = np.random.default_rng(1).integers(0, 1 << 32, 1 << 10, np.uint32)
    for number in range(3):
        buffers[0].write(data + np.uint32(number))
        run_work(device, work)
        np.testing.assert_array_equal(buffers[-1].array().view(np.uint32), data + np.uint32(number))


DOUBLED = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
void main() { uint i = gl_GlobalInvocationID.x; target[i] = 2 * source[i]; }"""


def test_memory_is_bound_anew_where_its_handle_was_that_of_freed_memory(device):
    """Drivers give the handle of a destroyed buffer to the next one."""
    doubled, target = device.compile_shader(DOUBLED), device.tensor(np.zeros(64, np.uint32))
    for number in range(20):
        source = device.buffer((40 + number) << 20)  # in memory of its own
        source.write(np.full(64, number, np.uint32))
        doubled((source, 0, 256), target, threads=64)
        np.testing.assert_array_equal(target.numpy(), np.full(64, 2 * number, np.uint32))
        del source
        gc.collect()
        device.vulkan.release_empty_heaps()


def rows_of(x, start, width):
    """A plan that copies some columns of an array to a packed one."""
    rows, _columns = x.shape
    region = copy(View.packed(x.shape).narrow(1, start, width), View.packed((rows, width)))
    nbytes = rows * width * x.itemsize
    return CopyPlan(x.itemsize, (x.nbytes,), (Output(nbytes, (region,)),))


@pytest.mark.parametrize("shape", [(16, 1 << 16), (1 << 12, 256)])
def test_runs_are_regions(native, shape):
    x = np.random.default_rng(3).integers(0, 256, shape, np.uint8)
    plan = rows_of(x, 64, 128)
    buffers = native.buffer(x.nbytes), native.buffer(plan.outputs[0].nbytes)
    (work,) = EncodedPlan(plan, native.tuning).bind(*([buffer.extents] for buffer in buffers))
    assert work.command == "vkCmdCopyBuffer"
    buffers[0].write(x)
    run_work(native, [work])
    np.testing.assert_array_equal(buffers[1].array().reshape(shape[0], 128), x[:, 64:192])


def test_operations_of_kompute_run_in_order_with_others(device):
    kp, manager = load_kompute(), device.vulkan.native.manager
    data = np.arange(4, dtype=np.float32)
    x, y, z = (manager.tensor_t(data * n, kp.TensorTypes.host) for n in (1, 0, 0))
    device.submit([kp.OpTensorCopy([x, y]), kp.OpTensorCopy([y, z])])
    device.synchronize()
    np.testing.assert_array_equal(z.data(), data)


WIDTHS = [(np.uint8, 21), (np.uint8, 64), (np.uint16, 85), (np.float32, 112), (np.complex128, 1)]


@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
@pytest.mark.parametrize("rows", [5, 64, 1001, 20000])
def test_rows_of_any_width_and_number(native, dtype, width, rows):
    """The end of the last heap, which some of the tensors fill, included."""
    x = np.random.default_rng(rows).integers(0, 256, (rows, 3 * width * np.dtype(dtype).itemsize))
    x = x.astype(np.uint8).view(dtype)
    parts = [np.ascontiguousarray(part) for part in np.split(x, 3, 1)]
    for source in (x, native.tensor(x)):
        for got, part in zip(vkops.split(source, 3, 1, device=native), parts, strict=True):
            assert got.numpy().tobytes() == part.tobytes()
    for sources in (parts, [native.tensor(part) for part in parts]):
        assert vkops.concat(sources, axis=1, device=native).numpy().tobytes() == x.tobytes()
    padded = vkops.pad(native.tensor(x.view(np.uint8)), ((1, 2), (3, 64)))
    np.testing.assert_array_equal(padded.numpy(), np.pad(x.view(np.uint8), ((1, 2), (3, 64))))


@pytest.mark.parametrize(
    ("pattern", "filled"),
    [
        (b"\0", True),
        (b"\x01", True),
        (b"\x01\x02", True),
        (b"\x01\x02\x03\x04", True),
        (b"\x01\x02\x03\x04" * 2, True),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", False),
        (bytes(16), True),
        (bytes(15) + b"\x01", False),
    ],
)
@pytest.mark.parametrize("start", [0, 1, 4])
def test_runs_of_a_constant_that_is_a_word_again_and_again_are_filled(
    native, pattern, filled, start
):
    size = len(pattern)
    count = 1 << 12
    region = Region(View((3, count), (count + 8, 1), start), Fill(pattern))
    nbytes = (3 * (count + 8) + 8) * size
    target = native.buffer(nbytes)
    target.write(np.full(nbytes, 7, np.uint8))
    expected = np.full((3 * (count + 8) + 8, size), 7, np.uint8)
    for row in range(3):
        first = start + row * (count + 8)
        expected[first : first + count] = np.frombuffer(pattern, np.uint8)
    program = EncodedPlan(CopyPlan(size, (), (Output(nbytes, (region,)),)), native.tuning)
    work = program.bind([], [target.extents])
    aligned = start * size % 4 == 0
    assert ({each.command for each in work} == {"vkCmdFillBuffer"}) == (filled and aligned)
    run_work(native, work)
    np.testing.assert_array_equal(target.array(), expected.ravel())


def test_columns_in_several_heaps(native):
    """Each pair of heaps has copies of its own; an operator may be bound to any of them."""
    x = np.random.default_rng(5).integers(0, 1 << 30, (1 << 15, 3 * 256), np.int32)
    parts = np.split(x, 3, 1)
    tensors = [native.tensor(part) for part in parts]
    for tensor in tensors[1:]:
        assert tensor.buffer.extents[0].resource is not tensors[0].buffer.extents[0].resource
    np.testing.assert_array_equal(vkops.concat(tensors, axis=1).numpy(), x)


def test_a_plan_without_regions_does_nothing(native):
    plan = CopyPlan(4, (1 << 16,), (Output(1 << 16, ()),))
    buffers = [native.buffer(1 << 16) for _ in range(2)]
    assert not EncodedPlan(plan, native.tuning).bind(*([buffer.extents] for buffer in buffers))


def test_a_plan_of_too_many_regions_is_left_to_shaders(native):
    """The limit is that of all its regions together."""
    halves = [View.packed((64, 64)).narrow(1, start, 32) for start in (0, 32)]
    regions = tuple(copy(View((64, 32), (100, 1), k), half) for k, half in enumerate(halves))
    plan = CopyPlan(4, (4 * 6400,), (Output(4 * 64 * 64, regions),))
    source, target = native.buffer(4 * 6400), native.buffer(4 * 64 * 64)
    for most, expected in ((128, 1), (127, 0)):
        native.tuning = replace(native.tuning, copies=replace(REGIONS, max_copies=most))
        work = EncodedPlan(plan, native.tuning).bind([source.extents], [target.extents])
        assert [each.command for each in work].count("vkCmdCopyBuffer") == expected


def test_an_operator_in_its_own_place_is_left_to_shaders(native):
    """Regions of one copy must not overlap; DirectML lets an output be its own input."""
    buffer = native.buffer(1 << 12)
    whole = copy(View.packed((1 << 10,)), View.packed((1 << 10,)))
    program = EncodedPlan(CopyPlan(4, (1 << 12,), (Output(1 << 12, (whole,)),)), native.tuning)
    work = program.bind([buffer.extents], [buffer.extents])
    assert [each.command for each in work] == ["vkCmdDispatch"]


def memory_of(nbytes, start):
    """An array that begins ``start`` bytes behind a page, with random bytes around it."""
    around = np.random.default_rng(nbytes + start).integers(0, 256, nbytes + 3 * 4096, np.uint8)
    first = -around.ctypes.data % 4096 + start
    return around[first : first + nbytes]


@pytest.mark.parametrize("start", [0, 1, 64, 4095])
@pytest.mark.parametrize("more", [0, 1, 4096, 5000])
def test_arrays_at_any_address(native, start, more):
    x = memory_of((32 << 10) + more, start)
    x.flags.writeable = False
    result = vkops.concat([x, x[::-1], x], device=native)
    np.testing.assert_array_equal(result.numpy(), np.concatenate([x, x[::-1], x]))


def test_arrays_beside_tensors_in_several_heaps(native):
    small_memory(native, 1 << 16)
    x = np.random.default_rng(0).integers(0, 256, 32 << 10, np.uint8)
    large = np.random.default_rng(1).integers(0, 256, 1 << 17, np.uint8)
    t = native.tensor(large)
    rows, columns = large.reshape(4, -1), large.reshape(-1, 4)
    y = native.tensor(large)
    y[5 : 5 + x.size] = x
    assigned = large.copy()
    assigned[5 : 5 + x.size] = x
    (joined,) = Session(node_model("Concat", large, x, axis=0)[0], native).run({"i0": t, "i1": x})
    for result, expected in (
        (vkops.join([t, x]), np.concatenate([large, x])),
        (vkops.join([x, t, large]), np.concatenate([x, large, large])),
        (vkops.tile(x, 4, device=native), np.tile(x, 4)),
        (vkops.tile(rows, 2, device=native), np.tile(rows, 2)),
        (vkops.roll(rows, 1, 0, device=native), np.roll(rows, 1, 0)),
        (vkops.repeat(rows, 2, 0, device=native), np.repeat(rows, 2, 0)),
        (vkops.pad(columns, ((1, 2), (0, 0)), device=native), np.pad(columns, ((1, 2), (0, 0)))),
        (vkops.stack([t, large]), np.stack([large, large])),
        (y, assigned),
        (joined, np.concatenate([large, x])),
    ):
        np.testing.assert_array_equal(result.numpy(), expected)


def test_imported_arrays_are_given_back(native):
    x = memory_of(1 << 20, 0).copy()
    gone = weakref.ref(x)
    first, _second = vkops.split(x, [1 << 19, 1 << 19], device=native)
    x[...] = 0
    assert first.numpy().any(), "the result must not depend on the array any more"
    del x
    gc.collect()
    assert gone() is None


def test_many_small_arrays_are_one_upload(device, monkeypatch):
    arrays = [np.full((3, n), n, np.int16) for n in range(1, 200)]
    taken = []
    allocate = device.pool.allocate
    monkeypatch.setattr(
        device.pool, "allocate", lambda nbytes: taken.append(nbytes) or allocate(nbytes)
    )
    result = vkops.concat(arrays, axis=1, device=device)
    np.testing.assert_array_equal(result.numpy(), np.concatenate(arrays, 1))
    assert len(taken) == 2  # the arrays, and the result


def switches_while(run):
    """How often another thread runs while ``run`` does, if nothing takes Python's lock away."""
    count, stop = 0, False

    def other():
        nonlocal count
        while not stop:
            count += 1
            time.sleep(0)  # gives the lock back

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=other)
    thread.start()
    try:
        sys.setswitchinterval(100)
        before = count
        run()
        return count - before
    finally:
        sys.setswitchinterval(interval)
        stop = True
        thread.join()


def test_other_threads_run_while_the_device_works(device):
    work, _buffers = chain(device, 1)
    # Once is enough: a busy machine may run the other thread rarely.
    assert any(switches_while(lambda: run_work(device, work)) for _ in range(1000))


def test_the_device_measures_all_since_the_time_was_taken(native, is_time):
    take = native.measure_dispatches()
    assert take() is None
    work, buffers = chain(native, 19)
    target, copied = native.host_buffer(1 << 12), identity(native, 1 << 10)
    bound = copied.bind([buffers[0]], [buffers[1]])
    with native.record() as program:
        bound.dispatch()
    for run in (
        lambda: run_work(native, work),
        lambda: copied.dispatch([buffers[0]], [target]),
        bound.dispatch,
        program.run,
    ):
        started = time.perf_counter_ns()
        run()
        taken = take()
        assert is_time(taken)
        assert (taken or 0) <= (time.perf_counter_ns() - started) / 1e6
        assert take() is None
    bound.dispatch()
    assert is_time(take(stop=True))
    assert native.vulkan.native.measures == 0
    run_work(native, work)
    assert take() is None


def test_measurements_that_overlap_have_each_all_that_was_submitted(native, is_time):
    """The one that began first ends first, and another one is forgotten."""
    work, _buffers = chain(native, 19)
    one, other, forgotten = (native.measure_dispatches() for _ in range(3))
    del forgotten
    run_work(native, work)
    assert is_time(first := one())
    run_work(native, work)
    assert is_time(second := one(stop=True))
    run_work(native, work)
    assert one() is None
    assert is_time(every := other(stop=True))
    assert every is None or every > first + second
    assert native.vulkan.native.measures == 0


def test_a_measurement_that_is_dropped_ends_at_the_next_wait(native):
    """Nothing native happens where it is freed: that may be in the middle of another call."""
    work, _buffers = chain(native, 3)
    kept, dropped = native.measure_dispatches(), native.measure_dispatches()
    del kept
    run_work(native, work)
    assert native.vulkan.native.measures == int(native.info.limits.timestamp_valid_bits > 0)
    del dropped
    run_work(native, work)
    assert native.vulkan.native.measures == 0
    assert native.vulkan.submission_observers == []
    with vkops.profile() as profile:
        take = native.measure_dispatches()
        run_work(native, work)
        del take
        run_work(native, work)
        assert native.vulkan.native.measures == 2
    assert native.vulkan.native.measures == 0
    assert len(profile.calls) >= 2


def test_a_wrong_choice_of_copies_is_refused(adapter, monkeypatch):
    monkeypatch.setenv(COPY, "fast")
    with pytest.raises(vkops.DeviceError, match=r"VKOPS_COPY: got 'fast', must be auto, shader or"):
        vkops.Device(adapter.index)


THREADS_AT_EXIT = """
import gc, sys, threading, time
import numpy as np, vkops

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)  # Python ends the threads meanwhile

device = vkops.Device(int(sys.argv[1]))
x = np.zeros(50_000, np.uint8)
ready = threading.Barrier(4)

def work():
    vkops.concat([x, x], device=device)
    ready.wait()
    while True:
        vkops.concat([x, x], device=device)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
ready.wait()
gc.disable()
slow = Slow()
slow.itself = slow  # so that it is collected after all that is called at exit
"""


@pytest.mark.parametrize("wanted", ["regions", "shader"])
def test_threads_that_copy_arrays_while_the_interpreter_exits(adapter, monkeypatch, wanted):
    """Some functions of NumPy, such as numpy.unique, abort the process then."""
    monkeypatch.setenv(COPY, wanted)
    for _ in range(3):
        python("-W", "ignore", "-c", THREADS_AT_EXIT, adapter.index)


# -- copies as on GPUs, for which drivers of CPUs stand here -----------------------------------------


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


LARGE = CopyRule(64 << 10)


@pytest.mark.parametrize(
    ("rule", "count", "nbytes", "kind"),
    [
        (None, 4, 1 << 20, "vkCmdDispatch"),
        (LARGE, 4, 1 << 20, "vkCmdCopyBuffer"),
        (LARGE, 1 << 12, 16, "vkCmdDispatch"),
    ],
)
def test_regions_that_a_rule_copies(as_gpu, rule, count, nbytes, kind):
    """Shaders are the rule of GPUs themselves."""
    as_gpu.tuning = replace(as_gpu.tuning, copies=rule or as_gpu.tuning.copies)
    source, target = View((count, nbytes), (2 * nbytes, 1)), View.packed((count, nbytes))
    plan = CopyPlan(1, (2 * count * nbytes,), (Output(count * nbytes, (copy(source, target),)),))
    x = np.random.default_rng(1).integers(0, 256, plan.inputs[0], np.uint8)
    commands, (result,) = kinds(as_gpu, plan, x)
    assert commands == [kind]
    np.testing.assert_array_equal(result, x.reshape(count, 2, nbytes)[:, 0].ravel())


def test_a_plan_is_divided_between_copies_and_shaders(as_gpu):
    as_gpu.tuning = replace(as_gpu.tuning, copies=LARGE)
    n = 4 << 20
    run, fill = copy(View.packed((n,)), View.packed((n,))), Fill(b"a")
    reverse = copy(View((n,), (-1,), n - 1), View.packed((n,)))
    outputs = (
        Output(n, (reverse,)),
        Output(n + (1 << 16), (run, Region(View((1 << 16,), (1,), n), fill))),
    )
    x = np.random.default_rng(1).integers(0, 256, n, np.uint8)
    commands, (backwards, filled) = kinds(as_gpu, CopyPlan(1, (n,), outputs), x)
    assert commands == ["vkCmdCopyBuffer", "vkCmdFillBuffer", "vkCmdDispatch"]
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


def test_a_rule_that_changes_holds_for_plans_that_ran_before(device, monkeypatch, change_device):
    vulkan, kernels = device.vulkan, []
    x = np.arange(1 << 18, dtype=np.uint32)
    tensor, pipeline = device.tensor(x), vulkan.pipeline

    def asked(kernel, *, aligned):
        kernels.append(kernel.name)
        return pipeline(kernel, aligned=aligned)

    monkeypatch.setattr(vulkan, "pipeline", asked)
    for rule in (REGIONS, SHADERS):
        change_device(copies=rule)
        kernels.clear()
        parts = vkops.split(tensor, [1, x.size - 1])
        assert bool(kernels) == (rule is SHADERS)
        np.testing.assert_array_equal(vkops.concat(parts).numpy(), x)
