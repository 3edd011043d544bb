"""The movement of data: Vulkan adapters, memory, and the dispatch of plans."""

from vkops.gpu.adapters.adapter import DeviceInfo, devices
from vkops.gpu.adapters.diagnosis import Driver, drivers
from vkops.gpu.adapters.kompute import native_state

__all__ = ["DeviceInfo", "Driver", "devices", "drivers", "native_state"]
