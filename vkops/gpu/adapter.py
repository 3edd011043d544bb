"""Vulkan adapters: what is there, its limits and memory. Kompute reports none of this."""

from __future__ import annotations

import logging
import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from vkops.errors import DeviceError, MissingPackageError, show
from vkops.gpu import loader_files, mesa_cache

_TYPES = ("OTHER", "INTEGRATED_GPU", "DISCRETE_GPU", "VIRTUAL_GPU", "CPU")
_PREFERENCE = ("DISCRETE_GPU", "INTEGRATED_GPU", "VIRTUAL_GPU", "OTHER", "CPU")
_EXPECT = "VKOPS_EXPECT"
_NICKNAMES = {"lavapipe": "llvmpipe"}  # the name of its rasteriser is all that it reports
LAYERS = "VK_INSTANCE_LAYERS"
_VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"
_NON_SEMANTIC_INFO = "VK_KHR_shader_non_semantic_info"
_MEMORY_BUDGET = "VK_EXT_memory_budget"


ALLOCATION_SLACK = 64 << 10
"""Bytes by which a driver's allocation may exceed the buffer it is for."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A Vulkan adapter. Sizes in bytes; versions as ``"a.b.c"``."""

    index: int
    name: str
    type: str
    driver: str
    api_version: str
    driver_version: str
    vendor_id: int
    device_id: int
    dedicated_memory: int
    """Device-local memory."""
    shared_memory: int
    """Memory on the host's side."""
    unified_memory: bool
    """Whether the host sees the memory the device works in: no staging is needed."""
    max_buffer: int
    """Largest buffer: what a shader can address, and one allocation can hold
    (maxStorageBufferRange, maxMemoryAllocationSize)."""
    max_bindings: int
    """Buffers a shader can be given (maxPerStageDescriptorStorageBuffers)."""


def devices() -> list[DeviceInfo]:
    """List the Vulkan adapters, in the loader's order.

    Raises:
        DeviceError: there is no Vulkan loader, or no driver that works.

    >>> [device.index for device in devices()][0]
    0
    """
    return [_info(index, handle) for index, handle in enumerate(_handles())]


def choose(adapter: str | int | None, expect: str | None = None) -> DeviceInfo:
    """``select``, and make sure that it is what ``expect``, or VKOPS_EXPECT, says.

    Raises:
        DeviceError: there is none, or it is another than is expected.
    """
    info = select(adapter)
    expected = os.environ.get(_EXPECT, "") if expect is None else expect
    if expected and not _is(info, expected):
        source = f" ({_EXPECT})" if expect is None else ""
        raise DeviceError(
            f"{info.name!r} ({info.type}) would be used where {expected!r} is expected{source}"
        )
    if adapter is None and not expected and info.type == "CPU":
        _say_once(
            f"no GPU was found, {info.name!r} is a CPU driver; to silence this message, pass an "
            f"adapter (--adapter on the command line) or set {_EXPECT}=lavapipe"
        )
    return info


def _is(info: DeviceInfo, expected: str) -> bool:
    if expected.lower() == "gpu":
        return info.type.endswith("_GPU")
    return _NICKNAMES.get(expected.lower(), expected.lower()) in info.name.lower()


@lru_cache(maxsize=1)
def _say_once(message: str) -> None:
    logging.getLogger("vkops").warning(message)


def select(adapter: str | int | None) -> DeviceInfo:
    """The adapter with that index, the first whose name contains that text, or the best one.

    Raises:
        DeviceError: there is none; the message lists those there are.
    """
    found = devices()
    if adapter is None:
        return min(found, key=lambda info: _PREFERENCE.index(info.type))
    if isinstance(adapter, str):
        matches = [info for info in found if adapter.lower() in info.name.lower()]
        wanted = f"whose name contains {show(adapter)}"
    else:
        index = operator.index(adapter)
        matches = [info for info in found if info.index == index]
        wanted = f"with index {show(index)}"
    if not matches:
        names = ", ".join(f"[{info.index}] {info.name}" for info in found)
        raise DeviceError(f"no adapter {wanted}; available devices: {names}")
    return matches[0]


def check_arguments(adapter: object, expect: object, **flags: object) -> None:
    """Refuse arguments of ``Device`` that are of the wrong kind (DEV-14).

    Raises:
        InvalidDescTypeError: one is.
    """
    if adapter is not None and not isinstance(adapter, str):
        try:
            if isinstance(adapter, bool):
                raise TypeError
            operator.index(adapter)  # type: ignore[arg-type]
        except Exception:
            _refuse("adapter", adapter, "an index, part of an adapter's name, or None")
    if expect is not None and not isinstance(expect, str):
        _refuse("expect", expect, "'lavapipe', 'gpu', part of an adapter's name, or None")
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            _refuse(name, flag, "True or False")


def _refuse(field: str, value: object, allowed: str) -> NoReturn:
    raise DeviceError(f"{field}: got {show(value)}, must be {allowed} [DEV-14]")


@dataclass(frozen=True, slots=True)
class MemoryHeap:
    """The Vulkan memory heap behind one kind of Kompute tensor."""

    index: int
    size: int


def printf_extensions(index: int) -> list[str]:
    """The device extension that shaders with debugPrintf need, where the adapter has it."""
    found = _vk().vkEnumerateDeviceExtensionProperties(_handles()[index], None)
    return [_NON_SEMANTIC_INFO] if _NON_SEMANTIC_INFO in {e.extensionName for e in found} else []


def tensor_heap(index: int, *, host: bool) -> MemoryHeap:
    """The heap Kompute takes host-visible or device-local tensors of that adapter from.

    It takes the first memory type with the properties it wants.
    """
    vk = _vk()
    wanted = (
        vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
        if host
        else vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
    )
    memory = vk.vkGetPhysicalDeviceMemoryProperties(_handles()[index])
    for _, kind in _memory_types(memory):
        if kind.propertyFlags & wanted == wanted:
            return MemoryHeap(kind.heapIndex, memory.memoryHeaps[kind.heapIndex].size)
    raise DeviceError(f"adapter {index} has no memory that Kompute can use")


def available_memory(index: int, heap: MemoryHeap, held: int) -> int:
    """Return the bytes of the heap that this process can still get, as far as the driver reports.

    ``held`` is the number that it holds already by vkops' own count.
    """
    vk = _vk()
    handle = _handles()[index]
    extensions = vk.vkEnumerateDeviceExtensionProperties(handle, None)
    if _MEMORY_BUDGET not in {extension.extensionName for extension in extensions}:
        return heap.size - held
    budget = vk.VkPhysicalDeviceMemoryBudgetPropertiesEXT()
    properties = vk.VkPhysicalDeviceMemoryProperties2(pNext=budget)
    vk.vkGetPhysicalDeviceMemoryProperties2(handle, properties)
    held = max(held, int(budget.heapUsage[heap.index]))
    return min(heap.size, int(budget.heapBudget[heap.index])) - held


@contextmanager
def validation() -> Iterator[None]:
    """Have instances created within load the Khronos validation layer.

    Raises:
        DeviceError: the layer is not installed (DEV-08).
    """
    loader_files.check()
    layers = {layer.layerName for layer in _vk().vkEnumerateInstanceLayerProperties()}
    if _VALIDATION_LAYER not in layers:
        raise DeviceError(
            f"debug: {_VALIDATION_LAYER} is not installed "
            "(Debian and Ubuntu: vulkan-validationlayers) [DEV-08]"
        )
    before = os.environ.get(LAYERS)
    os.environ[LAYERS] = os.pathsep.join(filter(None, [before, _VALIDATION_LAYER]))
    try:
        yield
    finally:
        if before is None:
            del os.environ[LAYERS]
        else:
            os.environ[LAYERS] = before


def under_validation() -> bool:
    """Whether this process runs under the Khronos validation layer, as its environment says."""
    return _VALIDATION_LAYER in os.environ.get(LAYERS, "").split(os.pathsep)


# -- the vulkan package ----------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _vk() -> Any:
    try:
        import vulkan
    except ImportError as error:
        raise MissingPackageError(
            f"devices need the package {error.name or 'vulkan'}: pip install vulkan",
            name=error.name,
        ) from error
    except OSError as error:
        raise DeviceError(
            "no Vulkan loader: libvulkan.so.1 was not found (Debian and Ubuntu: libvulkan1)"
        ) from error
    return vulkan


@lru_cache(maxsize=1)
def _instance() -> Any:
    vk = _vk()
    application = vk.VkApplicationInfo(
        pApplicationName="vkops", apiVersion=vk.VK_MAKE_VERSION(1, 1, 0)
    )
    loader_files.check()
    mesa_cache.spare()  # before a driver is loaded
    try:
        return vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=application), None)
    except vk.VkError as error:
        raise DeviceError(
            "no Vulkan driver that works was found (Debian and Ubuntu: mesa-vulkan-drivers; "
            f"`vkops devices` says more): {type(error).__name__}"
        ) from error


@lru_cache(maxsize=1)
def _handles() -> tuple[Any, ...]:
    vk = _vk()
    try:
        handles = tuple(vk.vkEnumeratePhysicalDevices(_instance()))
    except vk.VkError as error:
        raise DeviceError(
            f"no Vulkan adapter: the drivers found no hardware to drive ({type(error).__name__})"
        ) from error
    if not handles:
        raise DeviceError(
            "no Vulkan adapter: the loader works but no driver offers a device "
            "(Debian and Ubuntu: mesa-vulkan-drivers)"
        )
    return handles


def _info(index: int, handle: Any) -> DeviceInfo:
    vk = _vk()
    properties = vk.vkGetPhysicalDeviceProperties(handle)
    memory = vk.vkGetPhysicalDeviceMemoryProperties(handle)
    heaps = [memory.memoryHeaps[i] for i in range(memory.memoryHeapCount)]
    local = [bool(heap.flags & vk.VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) for heap in heaps]
    host = vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
    host_types = [kind for _, kind in _memory_types(memory) if kind.propertyFlags & host == host]
    return DeviceInfo(
        index=index,
        name=properties.deviceName,
        type=_TYPES[properties.deviceType],
        driver=_driver(handle),
        api_version=_version(properties.apiVersion),
        driver_version=_version(properties.driverVersion),
        vendor_id=properties.vendorID,
        device_id=properties.deviceID,
        dedicated_memory=sum(h.size for h, is_local in zip(heaps, local, strict=True) if is_local),
        shared_memory=sum(h.size for h, is_local in zip(heaps, local, strict=True) if not is_local),
        unified_memory=bool(host_types)
        and bool(host_types[0].propertyFlags & vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT),
        max_buffer=min(properties.limits.maxStorageBufferRange, _max_allocation(handle)),
        max_bindings=properties.limits.maxPerStageDescriptorStorageBuffers,
    )


def _memory_types(memory: Any) -> Iterator[tuple[int, Any]]:
    for i in range(memory.memoryTypeCount):
        yield i, memory.memoryTypes[i]


def _driver(handle: Any) -> str:
    """The driver's name and version in its own words, where it gives them (Vulkan 1.2)."""
    vk = _vk()
    extensions = vk.vkEnumerateDeviceExtensionProperties(handle, None)
    if "VK_KHR_driver_properties" not in {extension.extensionName for extension in extensions}:
        return "unknown"
    driver = vk.VkPhysicalDeviceDriverProperties()
    vk.vkGetPhysicalDeviceProperties2(handle, vk.VkPhysicalDeviceProperties2(pNext=driver))
    name, info = (vk.ffi.string(text).decode() for text in (driver.driverName, driver.driverInfo))
    return f"{name} {info}".strip()


def _max_allocation(handle: Any) -> int:
    """Bytes of the largest buffer that one allocation can hold, which may need a little more."""
    vk = _vk()
    limits = vk.VkPhysicalDeviceMaintenance3Properties()
    vk.vkGetPhysicalDeviceProperties2(handle, vk.VkPhysicalDeviceProperties2(pNext=limits))
    return int(limits.maxMemoryAllocationSize) - ALLOCATION_SLACK


def _version(value: int) -> str:
    return f"{value >> 22 & 0x7F}.{value >> 12 & 0x3FF}.{value & 0xFFF}"
