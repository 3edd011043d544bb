"""Objects that threads share: what one thread has looked at, another may have changed when it is used.

The other thread acts here where it would do the most harm, at the same moment each time.
"""

import faulthandler
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from types import SimpleNamespace

import mixed_work
import numpy as np
import pytest
from compiled_operators import compiled, reverse
from processes import call

import vkops
from vkops import dml
from vkops.gpu.run import profile_recorder, program
from vkops.gpu.run.buffer import HostBuffer
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.gpu.run.pending import BackgroundTask
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.system import threads
from vkops.tensors.array_plan import memoized

X = np.arange(8, dtype=np.int32)
SHADER = """#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer X { int x[]; };
void main() { x[gl_GlobalInvocationID.x] += 1; }"""


class Interleaved(EncodedPlan):
    """A plan that another thread binds right after each time that it was cut."""

    @property
    def _cut(self):
        return vars(self).get("cut")

    @_cut.setter
    def _cut(self, value):
        vars(self)["cut"] = value
        if self.others:
            self.others.pop()()


def test_a_plan_that_two_threads_cut(small_buffers):
    device, n = small_buffers, 3000
    numbers = np.arange(n + 256, dtype=np.int32)
    operator, x = reverse(device, n, dml.TensorDataType.INT32), device.buffer(numbers.nbytes)
    x.write(numbers)

    def run(first):
        y = device.buffer(4 * n)
        operator.dispatch([(x, 4 * first, 4 * n)], [y])
        np.testing.assert_array_equal(np.frombuffer(y.read(), np.int32), numbers[first:][:n][::-1])

    (plan,) = operator.program.encoded(device)
    plan.__class__, plan.others = Interleaved, [lambda: run(256)]
    run(0)
    assert plan.others == []
    run(0)  # as the other was the last one


class Cleared(dict):
    """A cache that another thread clears when it was found that it has a value."""

    def __contains__(self, key):
        found = super().__contains__(key)
        self.clear()
        return found

    def get(self, *arguments):
        found = super().get(*arguments)
        self.clear()
        return found


@pytest.mark.features
def test_caches_that_another_thread_clears(device):
    kernel = vkops.ElementwiseKernel("int32 x", "int32 z", "z = x + 1")
    fused, shader = vkops.fuse(lambda x: kernel(kernel(x))), device.compile_shader(SHADER)
    x = device.tensor(X)
    for name, one, work, result in (
        ("_calls", kernel, lambda: kernel(x), X + 1),
        ("_kernels", fused, lambda: fused(x), X + 2),
        ("_calls", shader, lambda: shader(y := x.copy(), groups=1) or y, X + 1),
    ):
        work()
        setattr(one, name, Cleared(getattr(one, name)))
        assert getattr(one, name)
        np.testing.assert_array_equal(work().numpy(), result, name)


def test_a_stream_that_two_threads_have_waited_for(device):
    streams = device.vulkan.streams

    class Stream:
        is_current = False

        def finish(self):
            streams.remove(self)

    class Seen(list):
        def __contains__(self, stream):
            found = super().__contains__(stream)
            self.remove(stream)
            return found

    streams.append(Stream())
    device.vulkan.finish_streams()
    assert streams == []
    device.vulkan.streams = Seen([SimpleNamespace(is_current=False, finish=lambda: None)])
    device.vulkan.finish_streams()
    assert device.vulkan.streams == []
    device.vulkan.streams = streams


def two_streams(index):
    """Streams that begin at once and use the same host memory wait for each other in one order."""
    faulthandler.dump_traceback_later(60, exit=True)
    both, stream, ended = threading.Barrier(2), program.stream, []

    def slow(*arguments):
        stream(*arguments)
        threading.Event().wait(0.2)
        ended.append(None)

    def settle(buffer, original=HostBuffer.settle):
        original(buffer)
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)

    with vkops.Device(index) as device:
        one, two = (dml.BufferTensorDesc(dml.TensorDataType.INT32, [n]) for n in (8, 16))
        joined = compiled(device, dml.JoinOperatorDesc([one, one], two, 0))
        sources = [device.host_buffer(32) for _ in range(2)]
        targets = [device.host_buffer(64) for _ in range(2)]
        for source in sources:
            source.write(X)
        program.stream, HostBuffer.settle = slow, settle
        with ThreadPoolExecutor(2) as pool:
            for order, target in zip((sources, sources[::-1]), targets, strict=True):
                pool.submit(joined.dispatch, order, [target], wait=False)
        both.abort()
        sources[0].write(bytes(32))
        assert len(ended) == 2
        for target in targets:
            assert target.read() == X.tobytes() * 2
    print("right")


def test_streams_that_two_threads_start(adapter):
    assert call(two_streams, adapter.index) == "right\n"


def test_a_stream_that_was_abandoned_stands_for_those_before_it():
    go, results = threading.Event(), []
    first = BackgroundTask(lambda: (go.wait(10), results.append("first")))
    second = BackgroundTask(lambda: results.append("second"), [first])
    third = BackgroundTask(lambda: results.append("third"), [second])
    for task in (third, first):
        task.start()
    second.abandon()
    go.set()
    second.finish()
    assert results[0] == "first"
    third.wait()
    assert results == ["first", "third"]


def test_a_program_that_two_threads_record(device):
    x, program = device.tensor(X), device.record()

    def other():
        with pytest.raises(vkops.DeviceError, match="another thread is recording"), program:
            raise AssertionError

    with program:
        y = vkops.flip(x).copy()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(other).result()
        z = vkops.roll(y, 1)
    assert len(program.steps) == 2
    program.run()
    np.testing.assert_array_equal(z.numpy(), np.roll(X[::-1], 1))


def test_nobody_waits_with_a_lock_held(device, monkeypatch):
    waited = []

    def noting(function):
        def wait(*arguments):
            waited.append([lock for lock in threads.locks if lock._is_owned()])
            return function(*arguments)

        return wait

    for kind, name in ((VulkanDevice, "wait"), (BackgroundTask, "finish")):
        monkeypatch.setattr(kind, name, noting(getattr(kind, name)))
    with vkops.profile():
        setup = mixed_work.WorkSetup(device)
        for kind in mixed_work.KINDS:
            for seed in range(5):
                kind(setup, Random(seed))
    assert waited
    assert not any(waited)


def test_a_profile_that_ends_while_another_one_ends(device):
    recorders = profile_recorder.recorders

    class Other:
        """The recorder of a device, which another thread removes when the device has ended."""

        def __init__(self):
            self.vulkan = SimpleNamespace(lost="", finish=lambda: recorders.remove(self))

    finished, vulkan = [], device.vulkan
    with pytest.MonkeyPatch.context() as patch, vkops.profile() as profile:
        finish = vulkan.finish
        patch.setattr(vulkan, "finish", lambda: finished.append(finish()))
        vkops.flip(device.tensor(X)).copy()
        recorders.insert(0, Other())
    assert finished
    assert [each.name for each in profile.calls if each.number][-1:] == ["copy_view"]


def test_a_plan_that_a_signal_handler_makes_while_one_is_kept():
    class Plan:
        def __init__(self, number):
            self.number, self.program, self.reads = number, SimpleNamespace(name=""), 0

        @property
        def kilobytes(self):
            self.reads += 1
            if self.number and self.reads == 2:  # when it is added to the size of all
                assert plans[(0,)].number == 0
            return 10

    def build(number):
        return Plan(number)

    plans = memoized(build)
    for number in range(1, 4):
        assert plans[(number,)].number == number
    assert plans._kilobytes == 10 * len(plans)
