"""Samplers: how shaders read textures between texels and outside of them."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, ref

from vkops.arguments.values import ArgumentName, boolean, refuse
from vkops.errors import show
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.run.open_device import OpenDevice

_ADDRESSES = {"repeat": 0, "mirror": 1, "clamp": 2, "border": 3}
_FILTERS = ("linear", "nearest")

SETTINGS: WeakKeyDictionary[Native, dict[str, Any]] = WeakKeyDictionary()
"""The arguments of the native samplers."""


class Sampler:
    """A sampler, made by ``Device.sampler``.

    Attributes:
        filter: ``"linear"`` or ``"nearest"``, also between levels.
        address: what is outside: ``"clamp"``, ``"repeat"``, ``"mirror"`` or ``"border"``.
        normalized: whether coordinates are from 0 to 1 instead of texels.
    """

    def __init__(
        self, device: OpenDevice, filter: Any = "linear", address: Any = "clamp",
        normalized: Any = True,
    ) -> None:  # fmt: skip
        for name, value, allowed in (
            ("filter", filter, _FILTERS),
            ("address", address, _ADDRESSES),
        ):
            if not isinstance(value, str) or value not in allowed:
                message = f"got {show(value)}, must be {' or '.join(map(show, allowed))}"
                refuse("", name, message, "IMG-07")
        self.normalized: bool = boolean(normalized, ArgumentName("", "normalized", "IMG-07"))
        if not self.normalized and address not in ("clamp", "border"):
            message = f"got {show(address)}, must be 'clamp' or 'border' without normalized"
            refuse("", "address", message, "IMG-07")
        self.filter: str = filter
        self.address: str = address
        device.make_ready()
        vulkan = device.vulkan
        self._vulkan = ref(vulkan)  # weak: default samplers are kept until their device is freed
        number, make = _ADDRESSES[address], vulkan.module.Sampler
        is_linear = filter == "linear"
        self.native: Native = vulkan.call(make, vulkan.native, is_linear, number, self.normalized)
        SETTINGS[self.native] = {"filter": filter, "address": address, "normalized": normalized}

    def is_on(self, device: OpenDevice) -> bool:
        """Whether shaders of a device can use it."""
        return self._vulkan() is device.vulkan

    def __repr__(self) -> str:
        return f"<vkops.Sampler {self.filter}, {self.address}>"
