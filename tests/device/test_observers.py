"""Blocks that observe dispatches overlap in any order, and each ends alone: nothing stays on."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from threading import Event, Thread

import numpy as np
import pytest

import vkops
from vkops.debug import checking
from vkops.debug.traffic import call_traffic
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.shaders import compiler

ADD = vkops.ElementwiseKernel("float32 x", "float32 y", "y = x + 1")
SOURCE = """#version 450
layout(std430, binding = 0) buffer Data { float data[]; };
void main() { data[0] = 1; }  // a comment"""


@pytest.fixture(autouse=True)
def nothing_stays_on():
    yield
    assert (VulkanDevice.observers, compiler.line_users) == ([], [])


@pytest.fixture
def x(device):
    return device.tensor(np.arange(64, dtype=np.float32))


class InGenerator:
    """A block of a generator, as a fixture has it."""

    def __init__(self, block):
        self.block = block

    def __enter__(self):
        self.generator = self.run()
        return next(self.generator)

    def __exit__(self, *_):
        self.generator.close()

    def run(self):
        with self.block as value:
            yield value


class InThread:
    """A block of another thread, which begins and ends when this one does."""

    def __init__(self, block):
        self.block = block

    def __enter__(self):
        self.begun, self.end = Event(), Event()
        self.thread = Thread(target=self.run)
        self.thread.start()
        assert self.begun.wait(60)
        return self.value

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()

    def run(self):
        with self.block as self.value:
            self.begun.set()
            self.end.wait(60)


class Checking:
    """A block of ``checking``, which has seen some of the dispatches."""

    def __init__(self, _):
        self.block = checking()

    def has_seen(self, value, count):
        return value.checked == count

    keeps_lines = True


class Capture:
    """A block of ``capture_call``, which writes the first dispatch that it sees."""

    def __init__(self, path):
        self.path, self.block = path, vkops.capture_call(path)

    def has_seen(self, _, count):
        return self.path.exists() == (count > 0)

    keeps_lines = False


@pytest.mark.parametrize("way", [lambda block: block, InGenerator, InThread])
@pytest.mark.parametrize("second", [Checking, Capture])
@pytest.mark.parametrize("first", [Checking, Capture])
def test_the_block_that_began_first_ends_first(device, tmp_path, x, first, second, way):
    def has_lines():
        return b"a comment" in device.compile_shader(SOURCE).shader.spirv

    one, other = first(tmp_path / "one.zip"), second(tmp_path / "other.zip")
    a, b = way(one.block), way(other.block)
    ADD(x)
    seen_by_one, seen_by_other = a.__enter__(), b.__enter__()
    assert one.has_seen(seen_by_one, 0)
    ADD(x)
    assert has_lines() == (one.keeps_lines or other.keeps_lines)
    a.__exit__(None, None, None)
    ADD(x)
    assert has_lines() == other.keeps_lines
    b.__exit__(None, None, None)
    ADD(x)
    assert not has_lines()
    assert one.has_seen(seen_by_one, 1)
    assert other.has_seen(seen_by_other, 2)


def test_traffic_is_that_of_the_thread_of_a_call(x):
    begun, ended, results = Event(), Event(), {}

    def one():
        ADD(x)
        begun.set()
        assert ended.wait(60)
        ADD(x)

    def other():
        assert begun.wait(60)
        ADD(x)
        ended.set()
        threads[0].join()
        ADD(x)
        ADD(x)

    def run(call):
        results[call] = call_traffic(call)

    threads = [Thread(target=run, args=(each,)) for each in (one, other)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for call, count in ((one, 2), (other, 3)):
        _, traffic, dispatches = results[call]
        assert (dispatches, traffic.loads.requested) == (count, count * x.nbytes)


def test_traffic_is_counted_in_a_block_that_ends_first(x):
    block = checking()
    checks = block.__enter__()

    def call():
        ADD(x)
        block.__exit__(None, None, None)
        ADD(x)

    assert call_traffic(call)[2] == 2
    assert checks.checked == 1


def test_a_submission_reads_the_observers_once(device, x):
    """An observer that is removed while a submission runs sees all of it, and no other."""
    seen = []

    @contextmanager
    def observer(name, device, call):
        seen.append(name)
        for each in observers if name == "first" and len(seen) == 1 else ():
            VulkanDevice.observers.remove(each)
        yield

    observers = [partial(observer, name) for name in ("second", "first")]
    with device.record() as program:
        ADD(x)
        ADD(x)
    VulkanDevice.observers += observers  # the last one is asked first
    program.run()
    program.run()
    assert seen == ["first", "second"] * 2


def test_threads_that_begin_and_end_blocks_do_not_disturb_dispatches(x):
    done = Event()

    def begin_and_end():
        while not done.is_set():
            with checking():
                pass

    threads = [Thread(target=begin_and_end) for _ in range(2)]
    for each in threads:
        each.start()
    try:
        for _ in range(100):
            assert ADD(x)[0].item() == 1
    finally:
        done.set()
        for each in threads:
            each.join()
