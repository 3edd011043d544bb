"""Drivers that look like others, fail and tell what they were asked for: a Vulkan layer in C.

``scripts/setup`` builds it. A process that is started with the variables of ``environment`` has it,
and ``layer`` gives it the layer's functions.
"""

import ctypes
import os
import re
import subprocess
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest
from adapters import LAYERS
from processes import without_notice

from vkops.gpu.adapters.adapter import VALIDATION_LAYER

BUILD = Path(__file__).parents[2] / "build" / "imitated"
LIBRARY = BUILD / "libvkops_imitated.so"
NAME = "VK_LAYER_VKOPS_imitated"
SYSTEM = "/usr/share/vulkan/explicit_layer.d"

# Loader 1.3.239 orders layers as it finds them, newer ones as they are named; the first is the nearest to
# the program. In ``environment`` the validation layer is above, and sees the imitated device. Here it is
# below, and sees no call that fails: version 1.3.239 takes a submission that fails for one that runs.
VALIDATED_BELOW = {LAYERS: f"{NAME}:{VALIDATION_LAYER}", "VK_LAYER_PATH": f"{BUILD}:{SYSTEM}"}

KINDS = ("discrete", "small-bar", "integrated", "integrated-coherent", "minimum")

NO_HOST_MEMORY, NO_DEVICE_MEMORY, LOST, UNKNOWN = -1, -2, -4, -13


def environment(kind=None, **variables):
    """Variables of a process whose drivers have the layer; a kind is one of KINDS, or "" for none."""
    layers = [name for name in os.environ.get(LAYERS, "").split(":") if name not in ("", NAME)]
    all_ = {**os.environ, LAYERS: ":".join([*layers, NAME]), "VK_LAYER_PATH": f"{SYSTEM}:{BUILD}"}
    if kind is not None:
        all_["VKOPS_IMITATED"] = kind
    return {**all_, **variables}


@lru_cache
def layer():
    """The functions of the layer in this process, which requests.h explains."""
    library = ctypes.CDLL(str(LIBRARY))
    library.lose.argtypes = [ctypes.c_char_p]
    library.slow.argtypes = [ctypes.c_int64]
    library.fail.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    library.records.restype = ctypes.c_char_p
    return library


def records(name=""):
    """The lines of the layer's record that begin with the name of a function, without it.

    Without a name: all lines.
    """
    lines = layer().records().decode().splitlines()
    return [
        line.removeprefix(name).strip() for line in lines if line.split()[0] == name or not name
    ]


def counts():
    """How often each function is in the layer's record."""
    return Counter(line.split()[0] for line in records())


IMPORTS = f"""
import json, os, sys, time
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from imitated import LOST, NO_DEVICE_MEMORY, NO_HOST_MEMORY, UNKNOWN, counts, layer, records
faulty, index = layer(), int(sys.argv[1])
"""
START = (
    IMPORTS
    + """
import numpy as np
import vkops
device = vkops.Device(index, staged=sys.argv[2] == "staged")
def call(use):
    try:
        return use()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""
)

CUDA = """
import ctypes, gc
from cuda.bindings import driver
from exporter import Exporter
from vkops.tensors.exchange import element_type, label_device, _DEVICE, _member
cuda = ctypes.CDLL("libcuda.so.1") if os.environ["LD_LIBRARY_PATH"] else None
def count(name):
    return ctypes.c_int.in_dll(cuda, "imitated_" + name).value
def call_cuda(name, *arguments):
    driver.cuCtxPushCurrent(driver.CUcontext(111))  # the one of device 1
    error, *results = getattr(driver, name)(*arguments)
    driver.cuCtxPopCurrent()
    assert not error, name
    return results[0] if results else None
def hold(stream, on):
    cuda.imitated_hold(ctypes.c_void_p(int(stream)), int(on))
def stream():
    return call_cuda("cuStreamCreate", 1)
def copy_in(stream, pointer, array):
    pointers = driver.CUdeviceptr(pointer), driver.CUdeviceptr(array.ctypes.data)
    call_cuda("cuMemcpyDtoDAsync", *pointers, array.nbytes, stream)
class Writable:
    def __init__(self, array):
        self.kept = array
        self.__array_interface__ = dict(array.__array_interface__, data=(array.ctypes.data, False))
def seen(tensor, *, ready=True, **options):
    # An array of what a consumer of CUDA gets, and DLPack's device: here, CUDA's memory is the host's.
    # It is ready when the consumer's stream is.
    capsule = tensor.__dlpack__(**options)
    if ready:
        call_cuda("cuStreamSynchronize", driver.CUstream(options.get("stream", 1)))
    where = tuple(_member(capsule, _DEVICE, ctypes.c_int32 * 2))
    label_device(capsule, (1, 0))
    array = np.from_dlpack(Exporter(capsule))
    if not array.flags.writeable:  # NumPy marks all that comes by DLPack before 1.0
        array = np.asarray(Writable(array))
    return array, where
class Foreign:
    # An array as memory of a device of CUDA.
    def __init__(self, array, number=1, code=None):
        self.array, self.number, self.code, self.asked = array, number, code, []
    def __dlpack_device__(self):
        return 2, self.number
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append(stream)
        capsule = self.array.__dlpack__()
        if self.code is not None:
            element_type(capsule)[0] = self.code
        if dl_device is None:
            label_device(capsule, (2, self.number))
        return capsule
"""


def cuda_environment(uuid, *, ordered):
    """Variables of a process with the imitated CUDA; ``ordered``: and with semaphores as files."""
    variables = {"LD_LIBRARY_PATH": str(BUILD / "cuda"), "VKOPS_IMITATED_CUDA": uuid}
    return {**variables, "VKOPS_EXPORTED_SEMAPHORES": "1"} if ordered else variables


def run(program, *arguments, kind=None, **variables):
    """Run a program with the layer, which succeeds; return its process."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    env = environment(kind, **variables)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def faulty():
    """Runs a program with the layer and a device, and returns its output."""

    def run_with_device(program, *arguments, errors="", **variables):
        done = run(START + program, *arguments, **variables)
        assert re.fullmatch(errors, without_notice(done.stderr))
        return done.stdout

    return run_with_device
