"""The limits of an adapter: those of Vulkan, memory and features that matter to kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vkops.gpu.adapters import adapter

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
    max_per_stage_descriptor_storage_buffers: int
    min_storage_buffer_offset_alignment: int
    max_memory_allocation_size: int
    max_memory_allocation_count: int
    subgroup_size: int
    subgroup_operations: tuple[str, ...]
    """Such as ``"SHUFFLE"``; none if compute shaders lack them."""
    heaps: tuple[Heap, ...]
    memory_types: tuple[MemoryType, ...]
    features: tuple[str, ...]
    """Which of ``FEATURES`` the adapter has."""


FEATURES = (
    "robustBufferAccess",
    "shaderFloat64",
    "shaderInt16",
    "shaderInt64",
    "storageBuffer16BitAccess",
    "storageBuffer8BitAccess",
)
"""Optional features that copying kernels could use. Those of vkops use only shaderInt64, where the
native operations enable it; Kompute itself enables none."""


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
    vk = adapter.vulkan()
    layers = vk.vkEnumerateInstanceLayerProperties()
    return Loader(
        adapter.version_text(vk.vkEnumerateInstanceVersion()),
        tuple(f"{layer.layerName} {adapter.version_text(layer.specVersion)}" for layer in layers),
    )


def limits(index: int) -> Limits:
    """Return the limits of the adapter with that index, as in ``devices()``.

    Raises:
        DeviceError: there is no Vulkan loader, no driver that works, or no such adapter.

    >>> limits(0).max_compute_work_group_invocations >= 128  # what Vulkan guarantees
    True
    """
    vk = adapter.vulkan()
    handle = adapter.handles()[adapter.select(index).index]
    subgroup = vk.VkPhysicalDeviceSubgroupProperties()
    allocation = vk.VkPhysicalDeviceMaintenance3Properties(pNext=subgroup)
    properties = vk.VkPhysicalDeviceProperties2(pNext=allocation)
    vk.vkGetPhysicalDeviceProperties2(handle, properties)
    memory = vk.vkGetPhysicalDeviceMemoryProperties(handle)
    values = properties.properties.limits
    in_compute = subgroup.supportedStages & vk.VK_SHADER_STAGE_COMPUTE_BIT
    operations = subgroup.supportedOperations if in_compute else 0
    return Limits(
        max_compute_work_group_count=_triple(values.maxComputeWorkGroupCount),
        max_compute_work_group_size=_triple(values.maxComputeWorkGroupSize),
        max_compute_work_group_invocations=values.maxComputeWorkGroupInvocations,
        max_compute_shared_memory_size=values.maxComputeSharedMemorySize,
        max_push_constants_size=values.maxPushConstantsSize,
        max_storage_buffer_range=values.maxStorageBufferRange,
        max_per_stage_descriptor_storage_buffers=values.maxPerStageDescriptorStorageBuffers,
        min_storage_buffer_offset_alignment=values.minStorageBufferOffsetAlignment,
        max_memory_allocation_size=allocation.maxMemoryAllocationSize,
        max_memory_allocation_count=values.maxMemoryAllocationCount,
        subgroup_size=subgroup.subgroupSize,
        subgroup_operations=_names(vk, "VK_SUBGROUP_FEATURE_", operations),
        heaps=tuple(
            Heap(heap.size, bool(heap.flags & vk.VK_MEMORY_HEAP_DEVICE_LOCAL_BIT))
            for heap in memory.memoryHeaps[0 : memory.memoryHeapCount]
        ),
        memory_types=tuple(
            MemoryType(kind.heapIndex, _names(vk, "VK_MEMORY_PROPERTY_", kind.propertyFlags))
            for kind in memory.memoryTypes[0 : memory.memoryTypeCount]
        ),
        features=tuple(_features(vk, handle)),
    )


def _triple(values: Any) -> Triple:
    x, y, z = values
    return x, y, z


def _names(vk: Any, prefix: str, flags: int) -> tuple[str, ...]:
    """The names of the flags that are set, without prefix and suffix, the lowest first."""
    bits = {
        getattr(vk, name): name.removeprefix(prefix).split("_BIT")[0]
        for name in dir(vk)
        if name.startswith(prefix) and "_BIT" in name and "FLAG_BITS" not in name
    }
    return tuple(bits[bit] for bit in sorted(bits) if flags & bit)


def _features(vk: Any, handle: Any) -> Iterator[str]:
    eight = vk.VkPhysicalDevice8BitStorageFeatures()
    sixteen = vk.VkPhysicalDevice16BitStorageFeatures(pNext=eight)
    core = vk.VkPhysicalDeviceFeatures2(pNext=sixteen)
    vk.vkGetPhysicalDeviceFeatures2(handle, core)
    for name in FEATURES:
        if any(getattr(part, name, 0) for part in (core.features, sixteen, eight)):
            yield name
