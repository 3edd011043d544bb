"""Vulkan adapters, their properties and memory."""

from __future__ import annotations

import logging
import operator
import os
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, NoReturn

from vkops import lavapipe
from vkops.errors import DeviceError, show
from vkops.gpu.adapters import forks, layer_messages, loader_files, mesa_cache, nvidia
from vkops.gpu.adapters.adapter_limits import Limits, limits_of
from vkops.gpu.adapters.kompute import Native, load_native, native_error, version_text
from vkops.gpu.adapters.layer_messages import SETTINGS
from vkops.notebook import repr_html
from vkops.system.vulkan import how_to_install

_TYPES = ("OTHER", "INTEGRATED_GPU", "DISCRETE_GPU", "VIRTUAL_GPU", "CPU")
_PREFERENCE = ("DISCRETE_GPU", "INTEGRATED_GPU", "VIRTUAL_GPU", "OTHER", "CPU")
_EXPECT = "VKOPS_EXPECT"
_NICKNAMES = {"lavapipe": "llvmpipe"}  # the name of its rasteriser is all that it reports
_UNIFIED = ("INTEGRATED_GPU", "CPU")

Mode = Literal["", "debug", "printf"]
"""The use of a Vulkan instance: ``debug`` and ``printf`` have the validation layer, and with the
latter it lets shaders print."""

LAYERS = "VK_INSTANCE_LAYERS"
"""Environment variable of the Vulkan loader: the layers of the instances that are made."""

VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"
"""The name of the Khronos validation layer."""

RENDERDOC_LAYER = "ENABLE_VULKAN_RENDERDOC_CAPTURE"
"""Environment variable of the Vulkan loader: 1 adds RenderDoc's layer to them."""

CHOSEN = "VKOPS_ADAPTER"
"""Environment variable: the adapter of devices that name none, by its index or part of its name."""

MEMORY_LIMIT = "VKOPS_MEMORY_LIMIT"
"""Environment variable: the bytes that tensors and buffers of a process may take from an adapter.

Region tables and staging memory, some MiB in all, can come on top: without them nothing runs."""

LIST_DRIVERS = "; `vkops devices` lists the drivers"
"""The end of a message, which ``vkops devices`` leaves out."""

_HOW_TO_INSTALL = lavapipe.how_to_install("mesa-vulkan-drivers")

ALLOCATION_SLACK = 64 << 10
"""Bytes by which an allocation of the driver may exceed the buffer that it is for."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A Vulkan adapter. Sizes in bytes; versions as ``"a.b.c"``."""

    index: int
    name: str
    type: str
    driver: str
    api_version: str
    driver_version: str = field(repr=False)
    vendor_id: int = field(repr=False)
    device_id: int = field(repr=False)
    dedicated_memory: int = field(repr=False)
    """Device-local memory."""
    shared_memory: int = field(repr=False)
    """Memory that is not device-local."""
    unified_memory: bool = field(repr=False)
    """Whether the host sees device-local memory, so that no staging is needed."""
    limits: Limits = field(repr=False)
    """The limits of the adapter, or those that VKOPS_LIMITS names."""
    shares_name: bool = field(default=False, repr=False)
    """Whether another adapter has the same name."""

    _repr_html_ = repr_html

    @property
    def memory(self) -> int:
        """The bytes of the device's own memory, or of the host's where it has none."""
        return self.dedicated_memory or self.shared_memory

    @property
    def max_buffer(self) -> int:
        """The largest buffer that one allocation can hold and that shaders address."""
        allocation = self.limits.max_allocation - ALLOCATION_SLACK
        return min(self.limits.max_storage_buffer_range, allocation)

    @property
    def max_bindings(self) -> int:
        """The most buffers of a shader (maxPerStageDescriptorStorageBuffers)."""
        return self.limits.max_per_stage_descriptor_storage_buffers

    @property
    def label(self) -> str:
        """The name as messages show it, with the index if another adapter has the same name."""
        return f"{self.name!r} [{self.index}]" if self.shares_name else repr(self.name)


def devices() -> list[DeviceInfo]:
    """List the Vulkan adapters, in the loader's order; the driver of vkops_lavapipe is last.

    Raises:
        DeviceError: there is no Vulkan loader, or no driver that works.

    >>> [device.index for device in devices()][0]
    0
    """
    return _infos("")


def _infos(mode: Mode) -> list[DeviceInfo]:
    infos = [_info(index, adapter) for index, adapter in enumerate(native_adapters(mode))]
    names = Counter(info.name for info in infos)
    return [replace(info, shares_name=True) if names[info.name] > 1 else info for info in infos]


def choose(adapter: str | int | None, expect: str | None = None, mode: Mode = "") -> DeviceInfo:
    """Return what ``select`` does, if it is what ``expect`` or VKOPS_EXPECT names."""
    info = select(adapter, mode)
    expected = os.environ.get(_EXPECT, "") if expect is None else expect
    if expected and not _is(info, expected):
        source = f" ({_EXPECT})" if expect is None else ""
        raise DeviceError(
            f"{info.label} ({info.type}) would be used where {expected!r} is expected{source}"
        )
    adapter = _chosen() if adapter is None else adapter
    if adapter is None and not expected and info.type == "CPU":
        found = f"no GPU was found: {info.label} is a CPU driver"
        _warn_once(
            f"{'; '.join(filter(None, [found, nvidia.missing()]))}; to silence this message, pass "
            f"an adapter (--adapter on the command line) or set {_EXPECT}=lavapipe"
        )
    return info


def _is(info: DeviceInfo, expected: str) -> bool:
    if expected.lower() == "gpu":
        return info.type.endswith("_GPU")
    return _NICKNAMES.get(expected.lower(), expected.lower()) in info.name.lower()


@lru_cache(maxsize=1)
def _warn_once(message: str) -> None:
    logging.getLogger("vkops").warning(message)


def select(adapter: str | int | None, mode: Mode = "") -> DeviceInfo:
    """Return the adapter with an index, or the first whose name contains a text.

    None selects the one that VKOPS_ADAPTER names in the same way, or the best one.
    """
    infos = _infos(mode)
    source = ""
    if adapter is None:
        adapter = _chosen()
        source = f" ({CHOSEN})"
    if adapter is None:
        return min(infos, key=lambda info: _PREFERENCE.index(info.type))
    if isinstance(adapter, str):
        matches = [info for info in infos if adapter.lower() in info.name.lower()]
        criterion = f"whose name contains {show(adapter)}"
    else:
        index = operator.index(adapter)
        matches = [info for info in infos if info.index == index]
        criterion = f"with index {show(index)}"
    if not matches:
        names = ", ".join(f"[{info.index}] {info.name}" for info in infos)
        raise DeviceError(f"no adapter {criterion}{source}; available devices: {names}")
    return matches[0]


def _chosen() -> str | int | None:
    """The adapter that VKOPS_ADAPTER names by an index or part of its name."""
    text = os.environ.get(CHOSEN, "")
    return int(text) if text.isdecimal() and text.isascii() else text or None


def check_arguments(
    adapter: object, expect: object, indices: object = "vkops", **flags: object
) -> None:
    """Check the types of the arguments of ``Device`` (DEV-14)."""
    if adapter is not None and not isinstance(adapter, str):
        try:
            if isinstance(adapter, bool):
                raise TypeError
            operator.index(adapter)  # type: ignore[arg-type]
        except TypeError:
            _refuse("adapter", adapter, "an index, part of an adapter's name, or None")
    if expect is not None and not isinstance(expect, str):
        _refuse("expect", expect, "'lavapipe', 'gpu', part of an adapter's name, or None")
    if not isinstance(indices, str) or indices not in ("vkops", "directml"):
        _refuse("indices", indices, "'vkops' or 'directml'")
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            _refuse(name, flag, "True or False")


def _refuse(field: str, value: object, allowed: str) -> NoReturn:
    raise DeviceError(f"{field}: got {show(value)}, must be {allowed} [DEV-14]")


def threads() -> int:
    """Return the number of threads that Mesa's CPU driver runs shaders on."""
    try:
        count = int(os.environ.get("LP_NUM_THREADS", ""))
    except ValueError:
        count = os.cpu_count() or 1
    return max(1, min(32, count))


def prefers_int64(info: DeviceInfo) -> bool:
    """Whether shaders move vectors faster as integers of 64 bits.

    Mesa 25's CPU driver takes 0.7 to 0.9 times as long with them. With Mesa 22.3 that depends on
    the processor: 0.8 to 1.6 times. GPUs load 16 bytes at once anyway.
    """
    mesa = re.search(r"Mesa (\d+)", info.driver)
    return info.type == "CPU" and mesa is not None and int(mesa[1]) >= 25


def available_memory(adapter: Native, heap: int, held: int) -> int:
    """Return the bytes of a heap that this process can still get, as far as the driver reports.

    ``held`` is the number of bytes that it holds already by vkops' own count.
    """
    size, budgets = adapter.memory_heaps[heap][0], adapter.memory_budget
    budget, used = budgets[heap] if budgets else (size, 0)
    return int(min(size, budget) - max(held, used))


def memory_limit(size: int) -> int:
    """Return the bytes of a heap that tensors may have: VKOPS_MEMORY_LIMIT, or all."""
    text = os.environ.get(MEMORY_LIMIT) or str(size)
    if not (text.isdecimal() and text.isascii() and len(text) < 20):
        raise DeviceError(f"{MEMORY_LIMIT}: got {show(text)}, must be a number of bytes")
    return int(text)


def validation_version() -> int:
    """Return the number of Vulkan's headers that the validation layer is of (DEV-08).

    Raises:
        DeviceError: it is not installed.
    """
    version = dict(load_native().layers()).get(VALIDATION_LAYER)
    if version is None:
        raise DeviceError(
            f"debug: {VALIDATION_LAYER} is not installed "
            f"({how_to_install('vulkan-validationlayers')}) [DEV-08]"
        )
    return int(version) & 0xFFF


def under_validation() -> bool:
    """Whether this process runs under the Khronos validation layer, as its environment says."""
    return VALIDATION_LAYER in os.environ.get(LAYERS, "").split(os.pathsep)


# -- the native module's report --------------------------------------------------------------------


def native_adapters(mode: Mode = "") -> tuple[Native, ...]:
    """Return the native module's adapters, as ``devices`` does, all of one Vulkan instance.

    The loader adds layers when an instance is made, so there is one for each choice of layers. A
    forked process makes its own: threads of drivers do not survive the fork.
    """
    variables = loader_files.variables(LAYERS, RENDERDOC_LAYER, SETTINGS)
    return instances(os.getpid(), mode, *variables)


@lru_cache(maxsize=4)
def instances(process: int, mode: Mode, *variables: str | None) -> tuple[Native, ...]:
    """Make an instance, and return its adapters; called by ``native_adapters``."""
    forks.state.listed_by = forks.state.listed_by or process
    native = load_native()
    manifests = loader_files.manifests()
    mesa_cache.disable_if_unsafe()  # before a driver is loaded
    environment, layers, settings = {}, [], {}
    if mode:
        validation_version()
        layers.append(VALIDATION_LAYER)
    if mode == "printf":
        settings = layer_messages.settings(mode)
        if not native.has_extension("VK_EXT_layer_settings", VALIDATION_LAYER):
            environment[SETTINGS] = str(layer_messages.FOLDER / f"{mode}.txt")
    try:
        with loader_files.environment(environment, loader_files.packaged()):
            instance = native.Instance(layers, settings)
    except native_error() as error:
        if not manifests:
            if variable := loader_files.chosen_by():
                raise DeviceError(f"no Vulkan driver: {variable} names none") from error
            raise DeviceError(f"no Vulkan driver is installed; {_cure()}") from error
        message = f"no Vulkan driver that works was found: {_result(error)}; {_cure()}"
        raise DeviceError(f"{message}{LIST_DRIVERS}") from error
    try:
        # The others first: those of the system are preferred to the packaged driver.
        adapters = tuple(sorted(instance.adapters(), key=_is_packaged))
    except native_error() as error:
        message = f"no Vulkan adapter: the drivers found no hardware to drive ({_result(error)})"
        raise DeviceError(f"{message}; {_cure()}") from error
    if not adapters:
        message = "no Vulkan adapter: the loader works but no driver offers a device"
        raise DeviceError(f"{message}; {_cure()}")
    return adapters


def _cure() -> str:
    """Say what to do where no driver works."""
    if variable := loader_files.chosen_by():
        return f"{variable} names the drivers: without it, those that are installed are used"
    return "; ".join(
        filter(None, [nvidia.missing(), f"a driver that needs no GPU: {_HOW_TO_INSTALL}"])
    )


def _is_packaged(adapter: Native) -> bool:
    """Whether an adapter is that of vkops_lavapipe, or of the same version."""
    return bool(loader_files.packaged()) and f"Mesa {lavapipe.about().MESA}" in adapter.driver


def _result(error: Exception) -> str:
    """The VkResult of an error, whose text is such as "vk::createInstance: ErrorDeviceLost"."""
    return f"Vk{str(error).rpartition(' ')[2]}"


def _info(index: int, adapter: Native) -> DeviceInfo:
    limits = limits_of(adapter)
    dedicated = sum(heap.size for heap in limits.heaps if heap.device_local)
    seen = [kind.properties for kind in limits.memory_types if "HOST_VISIBLE" in kind.properties]
    local = ["DEVICE_LOCAL" in properties for properties in seen]
    return DeviceInfo(
        index=index,
        name=adapter.name,
        type=_TYPES[adapter.type],
        driver=adapter.driver.strip() or "unknown",
        api_version=version_text(adapter.api_version),
        driver_version=version_text(adapter.driver_version),
        vendor_id=adapter.vendor_id,
        device_id=adapter.device_id,
        dedicated_memory=dedicated,
        shared_memory=sum(heap.size for heap in limits.heaps) - dedicated,
        unified_memory=all(local) or (any(local) and _TYPES[adapter.type] in _UNIFIED),
        limits=limits,
    )
