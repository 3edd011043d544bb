"""Calls of shaders as stand-alone programs: ``vkops.capture_call``."""

from __future__ import annotations

import io
import json
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from itertools import count
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from vkops.debug.dispatch_checks import BoundResource, bindings_of, groups_of
from vkops.errors import DeviceError, show
from vkops.gpu.run.shader_dispatch import BoundCall
from vkops.gpu.run.vulkan_device import VulkanDevice

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


def array(file):
    return np.load(io.BytesIO(case.read(file)))


tensors, blocks = {}, {}
try:
    device = vkops.Device(*sys.argv[1:2])
    shader = device.compile_shader(case.read("shader.spv"), name=call["name"], entry=call["entry"])
    for point in call["blocks"]:
        tensor = tensors[point] = device.tensor(array(f"inputs/{point}.npy"))
        name, is_element, _ = point.partition("[")  # of an array of blocks
        bound = tensor, 0, tensor.nbytes
        blocks[name] = [*blocks.get(name, ()), bound] if is_element else bound
    shader.dispatch(blocks, call["groups"], bytes.fromhex(call["push_constants"]))
    device.synchronize()
except vkops.VkopsError as error:
    sys.exit(f"{type(error).__name__}: {error}")
status = 0
for point in call["outputs"]:
    if f"outputs/{point}.npy" not in case.namelist():
        print(f"{point}: the call that was captured did not end, this one did")
        continue
    expected, found = array(f"outputs/{point}.npy"), tensors[point].numpy()
    bits = f"u{found.itemsize}"
    unlike = np.flatnonzero(expected.view(bits) != found.view(bits))
    print(f"{point}: {unlike.size} of {found.size} elements differ")
    for n in unlike[:3]:
        print(f"  element {n}: got {found[n]}, was {expected[n]}")
        status = 1
sys.exit(status)
'''


@contextmanager
def capture_call(path: str | os.PathLike[str]) -> Iterator[None]:
    """Write the first call of a shader or of a kernel in a block as a program.

    The block begins with ``with vkops.capture_call("case.zip"):``.

    ``python case.zip`` repeats the call, and says whether its outputs are the same. The file has
    the shader, what its blocks held before and after the call, its push constants, and versions.
    Blocks that shared memory have their own there. A step of a recorded program is called when the
    program runs.

    Raises:
        DeviceError: not a path, or no shader was called in the block, or one with what no file can
            hold: addresses, images or samplers.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise DeviceError(f"capture_call: got {show(path)}, must be the path of a file")
    calls = count()  # threads take different numbers

    @contextmanager
    def around(device: VulkanDevice, bound: BoundCall) -> Iterator[None]:
        """Write the first call before it runs in this context, and its outputs after it has run."""
        outputs = _write(path, device, bound) if next(calls) == 0 else []
        yield
        if outputs:
            with ZipFile(path, "a", ZIP_DEFLATED) as file:
                _add(file, "outputs", outputs)

    VulkanDevice.observers.append(around)
    try:
        yield
    finally:
        VulkanDevice.observers.remove(around)
    if next(calls) == 0:
        raise DeviceError("capture_call: no shader was called in its block")


def _write(
    path: str | os.PathLike[str], device: VulkanDevice, bound: BoundCall
) -> list[BoundResource]:
    """Write a call without its outputs; return the bindings that it may write."""
    shader, bindings = bound.call.shader, [*bindings_of(bound)]
    kinds = {each.block.kind: each.point for each in bindings if each.block}
    refused = [f"a {kind}, {kinds[kind]}" for kind in kinds if kind not in ("storage", "uniform")]
    if refused or shader.uses_addresses:
        what = refused[0] if refused else "addresses"
        raise DeviceError(f"capture_call: the call has {what}, which a file cannot hold")
    outputs = [each for each in bindings if each.is_written]
    versions = {name: metadata.version(name) for name in ("vkops", "kp", "numpy")}
    call = {
        "name": shader.name,
        "entry": shader.entry_point,
        "groups": groups_of(bound),
        "push_constants": bound.push_constants.hex(),
        "blocks": [each.point for each in bindings],
        "outputs": [each.point for each in outputs],
        "versions": {**versions, "Python": platform.python_version()},
        "device": {"name": device.info.name, "driver": device.info.driver},
    }
    with ZipFile(path, "w", ZIP_DEFLATED) as file:
        file.writestr("__main__.py", _PROGRAM)
        file.writestr("call.json", json.dumps(call, indent=2))
        file.writestr("shader.spv", shader.spirv)
        _add(file, "inputs", bindings)
    return outputs


def _add(file: ZipFile, folder: str, bindings: Iterable[BoundResource]) -> None:
    """Write the present content of blocks: as numbers of their types if possible, else as bytes."""
    for each in bindings:
        array, dtype = each.read(), each.block and each.block.dtype
        content = io.BytesIO()
        fits = dtype and array.nbytes % dtype.itemsize == 0
        np.save(content, array.view(dtype) if fits else array)
        file.writestr(f"{folder}/{each.point}.npy", content.getvalue())
