"""Checks that a device can run a shader, and the pipeline that it runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from vkops.errors import InvalidDescError, ShaderCompileError
from vkops.gpu.run.open_device import OpenDevice
from vkops.runtime.shader_arguments import COUNTED
from vkops.shaders.binary import DAMAGED
from vkops.shaders.limited_indices import Lengths, with_limited_indices
from vkops.shaders.shader import Shader

_AXES = "xyz"

_COUNTED = {
    "storage blocks": "max_per_stage_descriptor_storage_buffers",
    "uniform blocks": "max_per_stage_descriptor_uniform_buffers",
    "storage images": "max_per_stage_descriptor_storage_images",
    "textures": "max_per_stage_descriptor_sampled_images",
    "samplers": "max_per_stage_descriptor_samplers",
    "blocks": "max_per_stage_resources",
}
"""The limits on numbers of blocks; blocks of all kinds count towards the last one."""

NEWEST_SPIRV = {(1, 0): (1, 0), (1, 1): (1, 3), (1, 2): (1, 5), (1, 3): (1, 6)}
"""The newest version of SPIR-V for each version of Vulkan."""


def check_features(device: OpenDevice, shader: Shader) -> None:
    """Check that the device has the features that a shader uses (SH-02)."""
    missing = [name for name in shader.needs if name not in device.features]
    missing += [
        f"subgroup operations {name}"
        for name in shader.subgroup_operations
        if name not in device.info.limits.subgroup_operations
    ]
    major, minor = map(int, device.info.api_version.split(".")[:2])
    newest = NEWEST_SPIRV.get((major, minor), max(NEWEST_SPIRV.values()))
    if "VK_KHR_spirv_1_4" in device.features:
        newest = max(newest, (1, 4))
    if shader.spirv_version > newest:
        missing.append("SPIR-V {}.{}".format(*shader.spirv_version))
    if missing:
        message = f"needs {', '.join(missing)}, which {device.info.label} does not have"
        raise InvalidDescError(shader.name, "", message, "SH-02")


def check_limits(device: OpenDevice, shader: Shader, lengths: Lengths = ()) -> None:
    """Check a shader against the device's limits (SH-08); see ``with_limited_indices``."""
    limit = device.info.limits
    x, y, z = shader.local_size
    sizes = zip(_AXES, shader.local_size, limit.max_compute_work_group_size, strict=True)
    used = [(f"local_size_{axis}", got, allowed) for axis, got, allowed in sizes]
    numbers: Counter[str] = Counter()
    for place, (block, *_) in shader.places.items():
        count = block.length or dict(lengths).get(place, 1)
        numbers.update(dict.fromkeys((*COUNTED[block.kind], "blocks"), count))
    sets = 1 + max((block.set for block in shader.blocks), default=-1)
    used += [
        ("descriptor sets", sets, limit.max_bound_descriptor_sets),
        ("invocations of a workgroup", x * y * z, limit.max_compute_work_group_invocations),
        ("bytes of shared memory", shader.shared_nbytes, limit.max_compute_shared_memory_size),
        ("bytes of push constants", shader.push_nbytes, limit.max_push_constants_size),
        *[(field, numbers[field], getattr(limit, name)) for field, name in _COUNTED.items()],
    ]
    for field, got, allowed in used:
        if got > allowed:
            message = f"got {got}, must be {allowed} at most on {device.info.label}"
            raise InvalidDescError(shader.name, field, message, "SH-08")


def make_pipeline(device: OpenDevice, shader: Shader, lengths: Lengths = ()) -> Any:
    """Return the pipeline of a shader that the device can run, for these lengths of arrays."""
    check_features(device, shader)
    check_limits(device, shader, lengths)
    code, bindings = within_bounds(device, shader, lengths), shader.bindings(dict(lengths))
    settings = code, bindings, shader.entry_point, shader.push_nbytes
    pipeline = device.vulkan.shader_pipeline(*settings)
    pipeline.set_name(device.vulkan.native, shader.name)
    return pipeline


def within_bounds(device: OpenDevice, shader: Shader, lengths: Lengths = ()) -> bytes:
    """Return the SPIR-V with indices clamped to arrays and buffers, if the driver is on the CPU.

    There, an index out of bounds would reach this process's own data. Under the validation layer,
    the shader stays as it was written, so that the layer can report such indices.

    Raises:
        ShaderCompileError: the module is damaged although spirv-val accepted it, or spirv-opt is
            missing and needed.
    """
    if device.info.type != "CPU" or device.vulkan.validated:
        return shader.spirv
    try:
        if "robustBufferAccess2" in device.features:
            return with_limited_indices(shader.spirv, lengths)
        return shader.with_limited_indices(lengths)
    except DAMAGED as error:
        raise ShaderCompileError(f"{shader.name}: damaged SPIR-V", file=shader.name) from error
