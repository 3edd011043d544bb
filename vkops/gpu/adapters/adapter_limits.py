"""The limits of an adapter: those of Vulkan, memory and features that matter to vkops."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vkops.errors import DeviceError, show

LIMITS = "VKOPS_LIMITS"
"""Environment variable: ``minimum`` uses no more of an adapter than Vulkan guarantees."""

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Heap:
    """A Vulkan memory heap, its size in bytes."""

    size: int
    device_local: bool


@dataclass(frozen=True, slots=True)
class MemoryType:
    """A Vulkan memory type: the heap's index, and properties such as ``"HOST_VISIBLE"``."""

    heap: int
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an adapter under Vulkan's names; sizes, ranges and alignments in bytes.

    Source: VkPhysicalDeviceLimits, VkPhysicalDeviceMaintenance3Properties,
    VkPhysicalDeviceMaintenance4Properties, VkPhysicalDeviceSubgroupProperties,
    VkPhysicalDeviceMemoryProperties, VkQueueFamilyProperties, VkImageFormatProperties.
    """

    max_compute_work_group_count: Triple
    max_compute_work_group_size: Triple
    max_compute_work_group_invocations: int
    max_compute_shared_memory_size: int
    max_push_constants_size: int
    max_storage_buffer_range: int
    max_uniform_buffer_range: int
    max_texel_buffer_elements: int
    max_per_stage_descriptor_storage_buffers: int
    max_per_stage_descriptor_uniform_buffers: int
    max_per_stage_resources: int
    max_bound_descriptor_sets: int
    min_storage_buffer_offset_alignment: int
    min_uniform_buffer_offset_alignment: int
    min_texel_buffer_offset_alignment: int
    max_buffer_size: int
    max_memory_allocation_size: int
    max_memory_allocation_count: int
    non_coherent_atom_size: int
    buffer_image_granularity: int
    max_image_dimension_2d: int
    max_linear_image_dimension_2d: int
    """Texels along a side of the linear images that copies use; 0 if the driver has none."""
    timestamp_valid_bits: int
    """Those of the queue; 0 if it has no timestamps."""
    subgroup_size: int
    subgroup_operations: tuple[str, ...]
    """Such as ``"SHUFFLE"``; none if compute shaders lack them."""
    heaps: tuple[Heap, ...]
    memory_types: tuple[MemoryType, ...]
    features: tuple[str, ...]
    """The optional features that shaders can use. The kernels of vkops use only shaderInt64."""

    @property
    def max_allocation(self) -> int:
        """The largest buffer and the largest allocation of memory, whichever is less."""
        return min(self.max_buffer_size, self.max_memory_allocation_size)

    @property
    def max_workgroup(self) -> int:
        """The most invocations of a workgroup along one dimension, the first one."""
        return min(self.max_compute_work_group_size[0], self.max_compute_work_group_invocations)


MINIMUM: Mapping[str, Any] = MappingProxyType(
    {
        "max_compute_work_group_count": (65535, 65535, 65535),
        "max_compute_work_group_size": (128, 128, 64),
        "max_compute_work_group_invocations": 128,
        "max_compute_shared_memory_size": 16 << 10,
        "max_push_constants_size": 128,
        "max_storage_buffer_range": 1 << 27,
        "max_uniform_buffer_range": 16 << 10,
        "max_texel_buffer_elements": 1 << 16,
        "max_per_stage_descriptor_storage_buffers": 4,
        "max_per_stage_descriptor_uniform_buffers": 12,
        "max_per_stage_resources": 128,
        "max_bound_descriptor_sets": 4,
        "min_storage_buffer_offset_alignment": 256,
        "min_uniform_buffer_offset_alignment": 256,
        "min_texel_buffer_offset_alignment": 256,
        "max_buffer_size": 1 << 30,
        "max_memory_allocation_size": 1 << 30,
        "max_memory_allocation_count": 4096,
        "non_coherent_atom_size": 256,
        "buffer_image_granularity": 128 << 10,
        "max_image_dimension_2d": 4096,
        "max_linear_image_dimension_2d": 4096,
        "timestamp_valid_bits": 0,
        "subgroup_size": 1,
        "subgroup_operations": ("BASIC",),
        "memory_types": (
            MemoryType(0, ("DEVICE_LOCAL",)),
            MemoryType(0, ("HOST_VISIBLE", "HOST_COHERENT")),
        ),
        "features": ("robustBufferAccess",),
    }
)
"""What every device has at least, or of alignments and granularities at most.

Linear images are an exception: where a device has them, they are as large as other images."""


def limits_of(adapter: Any) -> Limits:
    """Return the limits of an adapter of the native module: its own, or what VKOPS_LIMITS says.

    Raises:
        DeviceError: VKOPS_LIMITS has a wrong value.
    """
    wanted = os.environ.get(LIMITS) or "adapter"
    if wanted not in ("adapter", "minimum"):
        raise DeviceError(f"{LIMITS}: got {show(wanted)}, must be adapter or minimum")
    found = {
        **adapter.limits,
        "heaps": tuple(Heap(*heap) for heap in adapter.memory_heaps),
        "memory_types": tuple(MemoryType(*kind) for kind in adapter.memory_types),
        "features": adapter.features,
    }
    return Limits(**{**found, **MINIMUM} if wanted == "minimum" else found)
