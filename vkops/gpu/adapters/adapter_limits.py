"""The limits of an adapter: those of Vulkan, memory and features that matter to kernels."""

from __future__ import annotations

from dataclasses import dataclass

from vkops.gpu.adapters import adapter
from vkops.gpu.adapters.kompute import load_native

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
    VkPhysicalDeviceSubgroupProperties, VkPhysicalDeviceMemoryProperties.
    """

    max_compute_work_group_count: Triple
    max_compute_work_group_size: Triple
    max_compute_work_group_invocations: int
    max_compute_shared_memory_size: int
    max_push_constants_size: int
    max_storage_buffer_range: int
    max_uniform_buffer_range: int
    max_per_stage_descriptor_storage_buffers: int
    max_per_stage_descriptor_uniform_buffers: int
    min_storage_buffer_offset_alignment: int
    min_uniform_buffer_offset_alignment: int
    max_memory_allocation_size: int
    max_memory_allocation_count: int
    subgroup_size: int
    subgroup_operations: tuple[str, ...]
    """Such as ``"SHUFFLE"``; none if compute shaders lack them."""
    heaps: tuple[Heap, ...]
    memory_types: tuple[MemoryType, ...]
    features: tuple[str, ...]
    """The optional features that shaders can use. The kernels of vkops use only shaderInt64."""


@dataclass(frozen=True, slots=True)
class Loader:
    """The Vulkan loader: its Vulkan version, and its layers, each with its version."""

    version: str
    layers: tuple[str, ...]


def loader() -> Loader:
    """Return what the loader reports without a driver.

    Raises:
        DeviceError: there is no Vulkan loader.
    """
    native, text = load_native(), adapter.version_text
    layers = tuple(f"{name} {text(version)}" for name, version in native.layers())
    return Loader(text(native.version()), layers)


def limits(index: int) -> Limits:
    """Return the limits of the adapter with that index, as in ``devices()``.

    Raises:
        DeviceError: there is no Vulkan loader, no driver that works, or no such adapter.

    >>> limits(0).max_compute_work_group_invocations >= 128  # what Vulkan guarantees
    True
    """
    found = adapter.native_adapters()[adapter.select(index).index]
    return Limits(
        **found.limits,
        heaps=tuple(Heap(*heap) for heap in found.memory_heaps),
        memory_types=tuple(MemoryType(*kind) for kind in found.memory_types),
        features=found.features,
    )
