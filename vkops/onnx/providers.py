"""The providers of sessions: which adapter runs a model, as ONNX Runtime's users choose it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vkops.errors import DeviceError, ModelError, show
from vkops.gpu.adapters.adapter import DeviceInfo, devices

VULKAN = "VulkanExecutionProvider"
CPU = "CPUExecutionProvider"

Providers = Sequence["str | tuple[str, Mapping[str, Any]]"]
"""Names of providers, each perhaps with its options."""


class Provider(NamedTuple):
    """A provider that was chosen: its name, and the index of its adapter, None for the best one."""

    name: str
    adapter: int | None = None


def get_available_providers() -> list[str]:
    """Return the names of the providers that a session can have, the default one first.

    ``VulkanExecutionProvider`` is any adapter; ``CPUExecutionProvider`` is one that runs on the
    CPU, such as lavapipe.

    Source: onnxruntime.get_available_providers.

    >>> get_available_providers()[0]
    'VulkanExecutionProvider'
    """
    return [name for name in (VULKAN, CPU) if _adapters(name)]


def choose(providers: Any, provider_options: Any) -> Provider:
    """Return the first of some providers that is available.

    Raises:
        ModelError: an argument is of the wrong kind.
        DeviceError: none is available, or a provider does not have the adapter of its options.
    """
    for i, (name, options) in enumerate(_listed(providers, provider_options)):
        adapters = _adapters(name)
        if adapters:
            return _with_options(i, name, adapters, options)
        warnings.warn(
            f"the provider {name!r} is not available; available: {_available()}", stacklevel=3
        )
    raise DeviceError(f"providers: none of those given is available; available: {_available()}")


def _listed(providers: Any, provider_options: Any) -> list[tuple[str, Mapping[str, Any]]]:
    if not isinstance(providers, (list, tuple)) or not providers:
        expected = "a list of names, or of pairs of a name and a dict"
        raise ModelError(f"providers: got {show(providers)}, must be {expected}")
    pairs = []
    for i, entry in enumerate(providers):
        pair = (entry, {}) if isinstance(entry, str) else entry
        # No pattern of match: arrays of no dimension are sequences to it (NumPy 2.5).
        is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not is_pair or not isinstance(pair[0], str) or not isinstance(pair[1], Mapping):
            expected = "a name, or a pair of a name and a dict"
            raise ModelError(f"providers[{i}]: got {show(entry)}, must be {expected}")
        pairs.append((pair[0], pair[1]))
    if provider_options is None:
        return pairs
    if (
        not isinstance(provider_options, (list, tuple))
        or len(provider_options) != len(providers)
        or not all(isinstance(options, Mapping) for options in provider_options)
    ):
        expected = f"a list of {len(providers)} dicts, one for each of the providers"
        raise ModelError(f"provider_options: got {show(provider_options)}, must be {expected}")
    if not all(isinstance(entry, str) for entry in providers):
        message = "have options of their own, must be names where provider_options is given"
        raise ModelError(f"providers: {message}")
    return list(zip(providers, provider_options, strict=True))


def _with_options(
    place: int, name: str, adapters: Sequence[DeviceInfo], options: Mapping[str, Any]
) -> Provider:
    unknown = [key for key in options if key != "device_id"]
    if unknown:
        message = f"providers[{place}]: {name} has no option {show(unknown[0])}; it has device_id"
        raise ModelError(message)
    if "device_id" not in options:
        return Provider(name, None if name == VULKAN else adapters[0].index)
    device_id = options["device_id"]
    for info in adapters:
        if str(device_id) == str(info.index):  # ONNX Runtime has it as text
            return Provider(name, info.index)
    listed = ", ".join(f"{info.index} ({info.name})" for info in adapters)
    raise DeviceError(f"providers[{place}]: no device_id {show(device_id)}; {name} has {listed}")


def _adapters(name: str) -> list[DeviceInfo]:
    """The adapters of a provider; none, if there is no such provider."""
    return [info for info in devices() if name == VULKAN or (name == CPU and info.type == "CPU")]


def _available() -> str:
    return ", ".join(get_available_providers()) or "none"
