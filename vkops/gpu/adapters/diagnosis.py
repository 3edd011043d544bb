"""The Vulkan drivers that are installed, and why one does not work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import psutil

from vkops import lavapipe
from vkops.gpu.adapters import loader_files

_TIMEOUT_S = 30.0

# Runs in a process of its own, because a broken driver can crash it.
_PROBE = """
import ctypes, json, sys
from vkops.errors import VkopsError
from vkops.gpu.adapters.adapter import devices
from vkops.gpu.adapters.diagnosis import build_date
try:
    ctypes.CDLL(sys.argv[1])
    names = [device.name for device in devices()]
    print(json.dumps({"adapters": names, "built": build_date(sys.argv[1])}))
except (OSError, VkopsError) as error:
    print(json.dumps({"reason": str(error).partition("; ")[0]}))  # without advice
"""


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver manifest that the Vulkan loader would read.

    ``path`` is that of the manifest, ``adapters`` the names of the adapters it offers, ``reason``
    why there are none, ``source`` the package of Python or the folder that it is from, ``built``
    the date of its library, such as ``"2025-07-16"``, which is empty if it is not known.
    """

    name: str
    path: str
    library: str
    adapters: tuple[str, ...]
    reason: str
    source: str = ""
    built: str = ""

    @property
    def usable(self) -> bool:
        """Whether it offers an adapter."""
        return bool(self.adapters)


def drivers() -> list[Driver]:
    """Try each installed driver by itself, in a process of its own."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(_diagnose, loader_files.manifests()))


def _diagnose(manifest: Path) -> Driver:
    driver = Driver(manifest.stem, str(manifest), "", (), "", str(manifest.parent))
    if manifest in loader_files.packaged():
        about = lavapipe.about()
        driver = replace(driver, source=f"{lavapipe.PACKAGE} {about.__version__}", built=about.DATE)
    try:
        library = json.loads(manifest.read_bytes())["ICD"]["library_path"]
        if os.path.dirname(library):  # paths are relative to the manifest
            library = str((manifest.parent / library).resolve())
    except (OSError, ValueError, KeyError, TypeError) as error:
        return replace(driver, reason=f"its manifest cannot be read: {error!r:.200}")
    answer = _probe(manifest, library)
    return replace(
        driver,
        library=library,
        adapters=tuple(answer.get("adapters", ())),
        reason=answer.get("reason", ""),
        built=driver.built or answer.get("built", ""),
    )


def build_date(library: str) -> str:
    """Return the date of a library that this process has loaded; empty if it is not found.

    Packages of systems keep it when they are installed.
    """
    stem = os.path.basename(library).partition(".so")[0]
    maps = getattr(psutil.Process(), "memory_maps", list)  # macOS has none
    with suppress(OSError):
        for loaded in maps():
            if os.path.basename(loaded.path).partition(".so")[0] == stem:
                return date.fromtimestamp(os.stat(loaded.path).st_mtime).isoformat()
    return ""


def _probe(manifest: Path, library: str) -> dict[str, Any]:
    """Return what a process of its own says: the adapters and the date, or the reason."""
    only = {"VK_DRIVER_FILES": str(manifest), "VK_ICD_FILENAMES": str(manifest)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, library],
            env={**os.environ, **only},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return {"reason": f"it did not answer within {_TIMEOUT_S:.0f} s"}
    except (ValueError, IndexError):
        return {"reason": f"it ended its process (status {done.returncode})"}
