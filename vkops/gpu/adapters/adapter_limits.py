"""The limits of an adapter: those of Vulkan, memory and features that matter to vkops."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from vkops.errors import DeviceError, show
from vkops.gpu.adapters.kompute import Native
from vkops.notebook import repr_html

LIMITS = "VKOPS_LIMITS"
"""Environment variable: ``minimum`` uses no more of an adapter than Vulkan guarantees."""

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Heap:
    """A Vulkan memory heap, its size in bytes."""

    size: int
    device_local: bool

    def __str__(self) -> str:
        return f"{self.size} bytes{' of the device' if self.device_local else ''}"


@dataclass(frozen=True, slots=True)
class MemoryType:
    """A Vulkan memory type: the heap's index, and properties such as ``"HOST_VISIBLE"``."""

    heap: int
    properties: tuple[str, ...]

    def __str__(self) -> str:
        return f"heap {self.heap}: {' '.join(self.properties)}"


COMPONENTS = {
    **dict(enumerate(("float16", "float32", "float64"))),
    **{3 + n: f"{'u' * (n > 3)}int{8 << n % 4}" for n in range(8)},
    1000141000: "bfloat16", 1000491002: "float8_e4m3", 1000491003: "float8_e5m2",
}  # fmt: skip
"""The names of VkComponentTypeKHR."""


class CooperativeMatrix(NamedTuple):
    """A shape of matrices that subgroups multiply: result = a @ b + c, with types of numbers.

    ``a`` has m times k numbers, ``b`` k times n, the others m times n.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    result: str
    saturating: bool
    scope: str

    @classmethod
    def read(
        cls, m: int, n: int, k: int, types: Sequence[int], saturating: bool, scope: int
    ) -> CooperativeMatrix:
        """Name the numbers of Vulkan."""
        a, b, c, result = (COMPONENTS.get(type_, f"type {type_}") for type_ in types)
        named = {1: "device", 2: "workgroup", 3: "subgroup", 5: "queue family"}
        return cls(m, n, k, a, b, c, result, saturating, named.get(scope, f"scope {scope}"))


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an adapter under Vulkan's names; sizes, ranges and alignments in bytes.

    The defaults are what every device has at least, or of alignments and granularities at most.

    Source: VkPhysicalDeviceLimits, VkPhysicalDeviceMaintenance3Properties,
    VkPhysicalDeviceMaintenance4Properties, VkPhysicalDeviceSubgroupProperties,
    VkPhysicalDeviceMemoryProperties, VkQueueFamilyProperties.
    """

    max_compute_work_group_count: Triple = (65535, 65535, 65535)
    max_compute_work_group_size: Triple = (128, 128, 64)
    max_compute_work_group_invocations: int = 128
    max_compute_shared_memory_size: int = 16 << 10
    max_push_constants_size: int = 128
    max_storage_buffer_range: int = 1 << 27
    max_uniform_buffer_range: int = 16 << 10
    max_texel_buffer_elements: int = 1 << 16
    max_per_stage_descriptor_storage_buffers: int = 4
    max_per_stage_descriptor_uniform_buffers: int = 12
    max_per_stage_descriptor_storage_images: int = 4
    max_per_stage_descriptor_sampled_images: int = 16
    max_per_stage_descriptor_samplers: int = 16
    max_per_stage_resources: int = 128
    max_bound_descriptor_sets: int = 4
    min_storage_buffer_offset_alignment: int = 256
    min_uniform_buffer_offset_alignment: int = 256
    min_texel_buffer_offset_alignment: int = 256
    max_buffer_size: int = 1 << 30
    max_memory_allocation_size: int = 1 << 30
    max_memory_allocation_count: int = 4096
    non_coherent_atom_size: int = 256
    buffer_image_granularity: int = 128 << 10
    max_image_dimension_2d: int = 4096
    timestamp_valid_bits: int = 0
    """Those of the queue; 0 if it has no timestamps."""
    subgroup_size: int = 1
    subgroup_operations: tuple[str, ...] = ("BASIC",)
    """Such as ``"SHUFFLE"``; none if compute shaders lack them."""
    heaps: tuple[Heap, ...] = ()
    memory_types: tuple[MemoryType, ...] = (
        MemoryType(0, ("DEVICE_LOCAL",)),
        MemoryType(0, ("HOST_VISIBLE", "HOST_COHERENT")),
    )
    features: tuple[str, ...] = ("robustBufferAccess",)
    """The optional features that shaders can use. The kernels of vkops use only shaderInt64."""
    cooperative_matrices: tuple[CooperativeMatrix, ...] = ()

    _repr_html_ = repr_html

    def rows(self) -> list[tuple[str, str]]:
        """Return the name and the value of each limit as text."""

        def text(value: Any) -> str:
            if not isinstance(value, tuple):
                return str(value)
            numbers = all(isinstance(each, int) for each in value)
            return (" x " if numbers else ", ").join(map(str, value))

        return [(each.name, text(getattr(self, each.name))) for each in fields(self)]

    @property
    def max_allocation(self) -> int:
        """The largest buffer and the largest allocation of memory, whichever is less."""
        return min(self.max_buffer_size, self.max_memory_allocation_size)

    @property
    def max_workgroup(self) -> int:
        """The most invocations of a workgroup along one dimension, the first one."""
        return min(self.max_compute_work_group_size[0], self.max_compute_work_group_invocations)


def limits_of(adapter: Native) -> Limits:
    """Return the limits of an adapter of the native module: its own, or what VKOPS_LIMITS says."""
    setting = os.environ.get(LIMITS) or "adapter"
    if setting not in ("adapter", "minimum"):
        raise DeviceError(f"{LIMITS}: got {show(setting)}, must be adapter or minimum")
    heaps = tuple(Heap(*heap) for heap in adapter.memory_heaps)
    if setting == "minimum":
        return Limits(heaps=heaps)
    types = tuple(MemoryType(*kind) for kind in adapter.memory_types)
    matrices = tuple(CooperativeMatrix.read(*shape) for shape in adapter.cooperative_matrices)
    return Limits(
        **adapter.limits,
        heaps=heaps,
        memory_types=types,
        features=adapter.features,
        cooperative_matrices=matrices,
    )
