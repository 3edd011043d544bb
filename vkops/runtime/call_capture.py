"""Calls of shaders as stand-alone programs: ``vkops.capture_call``."""

from __future__ import annotations

import io
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import numpy.typing as npt

from vkops.errors import DeviceError, show
from vkops.gpu.run.open_device import OpenDevice
from vkops.runtime.bindings import elements, is_memory
from vkops.shaders.shader import Shader, Slot

captures: list[CallCapture] = []
"""The captures that wait for a call; the last one takes it."""

_PROGRAM = '''"""Repeats a call of a shader: python FILE.zip [ADAPTER]

call.json has its numbers of workgroups, its push constants and the versions it was captured with,
shader.spv the shader. inputs/ and outputs/ have what its blocks held before and after it, if it
ended.
"""

import io, json, sys, zipfile

import numpy as np
import vkops

case = zipfile.ZipFile(sys.argv[0])
call = json.loads(case.read("call.json"))
device = vkops.Device(*sys.argv[1:2])
shader = device.compile_shader(case.read("shader.spv"), name=call["name"])


def array(file):
    return np.load(io.BytesIO(case.read(file)))


blocks = {}
for name, kind in call["blocks"].items():
    values = array(f"inputs/{name}.npy")
    blocks[name] = values.tobytes()
    if kind != "uniform":
        blocks[name] = device.tensor(values), 0, values.nbytes
shader.dispatch(blocks, call["groups"], bytes.fromhex(call["push_constants"]))
device.synchronize()
wrong = 0
for name in call["outputs"]:
    if f"outputs/{name}.npy" not in case.namelist():
        print(f"{name}: the call that was captured did not end, this one did")
        continue
    expected, found = array(f"outputs/{name}.npy").ravel(), blocks[name][0].numpy().ravel()
    size = expected.itemsize
    unlike = (expected.view(np.uint8) != found.view(np.uint8)).reshape(-1, size).any(1)
    print(f"{name}: {unlike.sum()} of {unlike.size} elements differ")
    for n in np.flatnonzero(unlike)[:3]:
        print(f"  element {n}: got {found[n]}, was {expected[n]}")
    wrong += unlike.sum()
sys.exit(int(wrong > 0))
'''


class CallCapture:
    """A capture of the first call of a shader in a block; see ``capture_call``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise DeviceError(f"capture_call: got {show(path)}, must be the path of a file")
        self._path = os.fspath(path)

    def __enter__(self) -> CallCapture:
        captures.append(self)
        return self

    def __exit__(self, kind: object = None, *_: object) -> None:
        if self in captures:
            captures.remove(self)
            if kind is None:
                raise DeviceError("capture_call: no shader was called in its block")

    @contextmanager
    def around(
        self,
        device: OpenDevice,
        shader: Shader,
        slots: Sequence[Slot],
        values: Sequence[Any],
        groups: Any,
        push: bytes,
    ) -> Iterator[None]:
        """Write a call that runs in this block; its outputs are added when they are there."""
        device.vulkan.refuse_recording("a call that is captured runs at once")
        if shader.module.uses_addresses or not isinstance(groups[0], int):
            raise _refused("addresses or numbers of workgroups on the device")
        inputs, outputs = {}, {}
        for slot, value in zip(slots, values, strict=True):
            name, kind = slot.point, slot.block.kind
            if kind not in ("storage", "uniform"):
                raise _refused(f"a {kind}, {name}")
            if is_memory(value):
                inputs[name] = _array(device, shader, slot, value)
                if slot.is_written:
                    outputs[name] = slot, value
            else:
                inputs[name] = np.frombuffer(shader.pack_uniform(slot.block, value), np.uint8)
        versions = {name: metadata.version(name) for name in ("vkops", "kp", "numpy")}
        call = {
            "name": shader.name,
            "groups": list(groups),
            "push_constants": push.hex(),
            "blocks": {slot.point: slot.block.kind for slot in slots},
            "outputs": [*outputs],
            "versions": {**versions, "Python": platform.python_version()},
            "device": {"name": device.info.name, "driver": device.info.driver},
        }
        with ZipFile(self._path, "w", ZIP_DEFLATED) as file:
            file.writestr("__main__.py", _PROGRAM)
            file.writestr("call.json", json.dumps(call, indent=2))
            file.writestr("shader.spv", shader.spirv)
            _write(file, "inputs", inputs)
        yield
        with ZipFile(self._path, "a", ZIP_DEFLATED) as file:
            results = {name: _array(device, shader, *output) for name, output in outputs.items()}
            _write(file, "outputs", results)


def _write(file: ZipFile, folder: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    for name, array in arrays.items():
        content = io.BytesIO()
        np.save(content, array)
        file.writestr(f"{folder}/{name}.npy", content.getvalue())


def capture_call(path: str | os.PathLike[str]) -> CallCapture:
    """Write the first call of a shader in a block as a program.

    The block begins with ``with vkops.capture_call("case.zip"):``.

    ``python case.zip`` repeats the call, and says whether its outputs are the same. The file has
    the shader, what its blocks held before and after the call, its push constants, and versions.
    Blocks that shared memory have their own there.

    Raises:
        DeviceError: not a path, or no shader was called in the block, or one with what no file can
            hold: addresses, images, samplers, or numbers of workgroups on the device.
    """
    return CallCapture(path)


def _array(device: OpenDevice, shader: Shader, slot: Slot, value: Any) -> npt.NDArray[Any]:
    """Return a copy of what a block is bound to; bytes become numbers of its type, if it fits."""
    if hasattr(value, "numpy"):
        return np.array(value.numpy(), order="C")
    buffer, view, *_ = elements(device, shader.name, slot.point, value, written=False)
    array, dtype = buffer.array(view.offset, *view.sizes), slot.block.dtype
    return array.view(dtype) if dtype and array.nbytes % dtype.itemsize == 0 else array


def _refused(what: str) -> DeviceError:
    return DeviceError(f"capture_call: the call has {what}, which a file cannot hold")
