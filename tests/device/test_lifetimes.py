"""What holds device memory goes in any order, and late: nothing crashes, and Vulkan has no complaint.

Each is a process of its own under the validation layer. Run as a program, this file is that process:
PROGRAM ADAPTER ROUNDS.
"""

import atexit
import faulthandler
import gc
import sys
import sysconfig
from pathlib import Path
from random import Random
from threading import Event, Thread
from weakref import ref

import numpy as np
import pytest

import vkops
from vkops import dml
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.shaders import load

PROGRAMS = {}
N = 1 << 16
SECONDS = 900
"""After which a program is taken to hang."""


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def validated(name, adapter, rounds=1):
    """Run a program: it ends well, says its name and no more, and the layer says nothing."""
    from adapters import refused_by_layer  # not there where this file is the program
    from processes import python

    command = [sys.executable, __file__, name, str(adapter.index), str(rounds)]
    if refused_by_layer(adapter.name):
        assert python(*command[1:]) == f"{name}\n"
        return
    said = python("-m", "vkops", "debug", "validate", *command).splitlines()
    assert [line for line in said if not line.startswith("Known, ")] == [
        name,
        "The validation layer reported nothing",
    ]


# -- the programs ----------------------------------------------------------------------------------


def objects(device):
    """One of each kind that holds device memory, or what is recorded for it, by name."""
    import mixed_work

    mixed_work.stream_in_small_chunks()
    setup = mixed_work.WorkSetup(device)
    x = device.tensor(np.arange(N, dtype=np.int32))
    desc = dml.BufferTensorDesc(dml.TensorDataType.INT32, [N])
    backwards = setup.compile(dml.Slice1OperatorDesc(desc, desc, [0], [N], [-1]))
    out, far, host = device.buffer(4 * N), device.buffer(4 * N), device.host_buffer(4 * N)
    mixed_work.session(setup, Random(0))
    return {
        "tensor": x,
        "view": x.reshape(256, -1).T[::-1],
        "packed": x[::-1].pack(),
        "array": x.numpy(),
        "buffer": out,
        "bound": backwards.bind([x], [out]),
        "streamed": backwards.bind([x], [host]),
        "pending": backwards.dispatch([x], [far], wait=False),
        "stream": backwards.dispatch([x], [host], wait=False),
        "setup": setup,
    }


def use(held):
    """What is still there is right, or says that its device is closed."""
    expected = np.arange(N, dtype=np.int32)
    uses = {
        "tensor": lambda x: x.numpy()[7] == 7,
        "view": lambda x: x.numpy()[0, 0] == 255,
        "packed": lambda x: x.numpy()[0] == N - 1,
        "array": lambda x: np.array_equal(x, expected),
        "buffer": lambda x: x.read(0, 4) is not None,
        "bound": lambda x: x.dispatch() is None,
        "streamed": lambda x: x.dispatch() is None,
        "pending": lambda x: x.wait() is None,
        "stream": lambda x: x.wait() is None,
        "setup": lambda x: x.device.buffer(16) is not None,
        "device": lambda x: x.buffer(16) is not None,
    }
    for name, value in held.items():
        try:
            assert uses[name](value), name
        except vkops.DeviceError as error:
            if "is closed" not in str(error):
                raise


@program
def in_any_order(index, rounds):
    """Objects go one by one, in orders that differ; the rest is used. Half of the devices are closed."""
    for seed in range(4 * rounds):
        random = Random(seed)
        device = vkops.Device(index, staged=bool(seed % 2))
        held = objects(device) | {"device": device}
        close = device.close
        del device
        for step in random.sample([*held, "close"], len(held) + 1):
            if step == "close":
                if seed % 4 < 2:
                    close()
                del close  # which held the device, too
            else:
                del held[step]
            use(held)


@program
def in_cycles(index, rounds):
    """Found by Python's collector, all at once: an open device, and a closed one."""
    gc.disable()
    for number in range(2 * rounds):
        device = vkops.Device(index)
        held = objects(device)
        held["device"], held["itself"] = device, held
        held["bound"].start()
        if number % 2:
            device.close()
        del held, device
        assert gc.collect()


def alive(index, *, close=False, **options):
    """Objects for the interpreter to clear away, some of them in a cycle, with work under way."""
    device = vkops.Device(index, **options)
    held = objects(device)
    held["cycle"] = [held]
    held["bound"].start()
    if close:
        device.close()
    return held


@program
def at_exit(index, _):
    """Modules hold them, which go early and late, and the traceback of an error."""
    globals()["direct"] = held = alive(index)
    sys.modules["staged"] = alive(index, staged=True)
    try:
        held["setup"].device.buffer(1 << 50)
    except vkops.OutOfDeviceMemoryError as error:
        sys.last_value = error
        raise SystemExit(0) from error


@program
def at_exit_after_close(index, _):
    globals()["direct"] = alive(index, close=True)
    sys.modules["staged"] = alive(index, close=True, staged=True)


@program
def at_exit_after_a_failure(index, _):
    """The traceback holds a device that has no memory for a tensor."""

    def full(self, nbytes, use):
        raise vkops.OutOfDeviceMemoryError("full")

    VulkanDevice.new_memory = full
    try:
        vkops.Device(index).buffer(16)
    except vkops.OutOfDeviceMemoryError as error:
        sys.last_value = error


@program
def at_exit_in_handlers(index, _):
    """The device is used by exit handlers and finalizers, in the order that Python likes."""
    held = alive(index)
    atexit.register(use, {name: held[name] for name in ("tensor", "view", "bound", "stream")})

    class Late:
        def __del__(self, tensor=held["tensor"], bound=held["bound"]):
            bound.dispatch()
            assert tensor.numpy()[7] == 7

    # Python without a global lock clears modules before objects that they refer to.
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        globals()["late"] = Late()


@program
def at_exit_beside_threads(index, _):
    """Threads that nobody waits for dispatch and compile when the interpreter ends."""
    held = alive(index)
    device = held["tensor"].device.vulkan
    code = load(
        "#version 450\nlayout(binding = 0) buffer X { uint x; }; void main() { x = 1; }"
    ).spirv
    begun = [Event(), Event()]

    def dispatch():
        while True:
            held["bound"].dispatch()
            held["bound"].start()
            begun[0].set()

    def compile_again():
        while True:
            device.module.Pipeline(device.native, code, "main", [[(0, 7, 1)]], 0, False)
            begun[1].set()

    for work in (dispatch, compile_again):
        Thread(target=work, daemon=True).start()
    for each in begun:
        each.wait()


# -- the tests -------------------------------------------------------------------------------------


@pytest.mark.system("VkLayer_khronos_validation")
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {at_exit_beside_threads.__name__}))
def test_nothing_crashes_and_the_layer_is_silent(adapter, name):
    validated(name, adapter)


def test_nothing_crashes_beside_threads(adapter):
    """Not under the layer: 1.4.309 aborts at the end of a process that has a device then."""
    from processes import python

    name = at_exit_beside_threads.__name__
    assert python(__file__, name, adapter.index, 1) == f"{name}\n"


LATE = """
import os, sys
import numpy as np, vkops
from vkops import VkopsError, dml

class Late:
    def __init__(self, index):
        device = vkops.Device(index)
        self.tensor, self.compile = device.tensor(np.arange(4)), device.compile_shader

    def __del__(self, write=os.write, show="{}: {}\\n".format, failed=VkopsError, np=np, dml=dml):
        t = self.tensor
        uses = {name: lambda name=name: getattr(vkops, name) for name in vkops._MODULES}
        uses |= {name: lambda name=name: getattr(dml, name) for name in dml.__all__}
        uses |= {"namespace": t.__array_namespace__, "concatenate": lambda: np.concatenate([t, t])}
        uses |= {"kernel": t[::-1].copy, "values": lambda: t[1:].numpy()}
        uses |= {"shader": lambda: self.compile("#version 450\\nvoid main() {}")}
        for name, use in uses.items():
            try:
                use()
            except failed as error:
                if name in ("asarray", "kernel", "shader"):
                    write(1, show(name, error).encode())
            except BaseException as error:
                write(1, show(name, repr(error)).encode())

late = Late(int(sys.argv[1]))
"""


def test_finalizers_that_run_while_python_exits(adapter, tmp_path):
    """Everything works or raises an error of vkops: modules and kernels are loaded no more."""
    from processes import run_with

    program = ["-c", LATE, str(adapter.index)]
    status, said, problems = run_with(tmp_path, program, XDG_CACHE_HOME=str(tmp_path))
    assert (status, problems) == (0, "")
    name, *others = said.splitlines()
    assert name == (
        "asarray: vkops.tensors.creation cannot be imported while Python exits: a finalizer can "
        "use only names that were used before"
    )
    shader = "shader: no shader can be compiled while Python exits"
    # An installed vkops has its kernels in SPIR-V.
    assert others in ([shader], [shader.replace("shader", "kernel", 1), shader])


def test_streams_that_are_over_keep_nothing(device):
    from compiled_operators import identity

    copy = identity(device, N)
    source, target = device.host_buffer(4 * N), device.buffer(4 * N)
    copy.dispatch([source], [target], wait=False).wait()
    gone = ref(source), ref(target)
    del source, target
    assert [reference() for reference in gone] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["in_any_order", "in_cycles"])
def test_the_same_in_more_orders(adapter, name):
    validated(name, adapter, 8)


if __name__ == "__main__":
    _, name, index, rounds = sys.argv
    sys.path.append(str(Path(__file__).parents[1]))
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    print(name, flush=True)
    PROGRAMS[name](int(index), int(rounds))
