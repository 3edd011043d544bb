"""How data moves: Vulkan adapters, memory, and the dispatch of plans through Kompute."""

from vkops.gpu.adapter import DeviceInfo, devices
from vkops.gpu.diagnosis import Driver, drivers
from vkops.gpu.kompute import native_state

__all__ = ["DeviceInfo", "Driver", "devices", "drivers", "native_state"]
