"""The parts of NVIDIA's driver that Vulkan needs and a container for CUDA may lack."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

VENDOR = 0x10DE

_GRAPHICS = "in a container, NVIDIA_DRIVER_CAPABILITIES=all"
_PACKAGES = {
    "libEGL.so.1": "libegl1",
    "libGLX.so.0": "libglx0",
    "libGLX_nvidia.so.0": f"libnvidia-gl of the driver's version; {_GRAPHICS}",
    "libX11.so.6": "libx11-6",
    "libXext.so.6": "libxext6",
}
"""The packages of Debian and Ubuntu with the libraries that the driver loads for Vulkan."""


def missing(root: Path = Path("/"), load: Callable[[str], object] = ctypes.CDLL) -> str:
    """Say why there is an NVIDIA GPU, but no Vulkan adapter; "" if there is no GPU or no reason.

    ``load`` raises an OSError, which names the library that the system lacks, as ``ctypes`` does.
    """
    if not (root / "dev/nvidiactl").exists():
        return ""
    absent: dict[str, str] = {}
    for library in _PACKAGES:
        try:
            load(library)
        except OSError as error:
            name = str(error).partition(": ")[0]  # of one that it is linked with, perhaps
            absent[name] = f"{name} (package {_PACKAGES[name]})" if name in _PACKAGES else name
    if absent:
        return f"NVIDIA's driver lacks libraries for Vulkan: {', '.join(absent.values())}"
    instances = (root / "proc/driver/nvidia/capabilities").glob("gpu*/mig/gi*")
    if os.environ.get("NVIDIA_VISIBLE_DEVICES", "").startswith("MIG-") or any(instances):
        return "NVIDIA's driver has no Vulkan for a part of a GPU (MIG)"
    places = [root / "etc", root / "usr/share", root / "usr/local/share"]
    if not any(any(place.glob("vulkan/icd.d/nvidia*.json")) for place in places):
        return f"NVIDIA's driver has no manifest for Vulkan, nvidia_icd.json ({_GRAPHICS})"
    return ""
