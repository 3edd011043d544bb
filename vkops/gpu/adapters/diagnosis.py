"""The Vulkan drivers that are installed, and why one does not work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from vkops.gpu.adapters import loader_files

_TIMEOUT_S = 30.0

# Runs in a process of its own, because a broken driver can crash it.
_PROBE = """
import ctypes, json, sys
from vkops.errors import VkopsError
from vkops.gpu.adapters.adapter import devices
try:
    ctypes.CDLL(sys.argv[1])
    print(json.dumps({"adapters": [device.name for device in devices()]}))
except (OSError, VkopsError) as error:
    print(json.dumps({"reason": str(error)}))
"""


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver manifest that the Vulkan loader would read.

    ``path`` is that of the manifest, ``adapters`` the names of the adapters it offers, ``reason``
    why there are none.
    """

    name: str
    path: str
    library: str
    adapters: tuple[str, ...]
    reason: str

    @property
    def usable(self) -> bool:
        """Whether it offers an adapter."""
        return bool(self.adapters)


def drivers() -> list[Driver]:
    """Try each installed driver by itself, in a process of its own."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(_diagnose, loader_files.manifests()))


def _diagnose(manifest: Path) -> Driver:
    name = manifest.stem
    try:
        library = json.loads(manifest.read_bytes())["ICD"]["library_path"]
        if os.path.dirname(library):  # paths are relative to the manifest
            library = str((manifest.parent / library).resolve())
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Driver(name, str(manifest), "", (), f"its manifest cannot be read: {error!r:.200}")
    adapters, reason = _probe(manifest, library)
    return Driver(name, str(manifest), library, adapters, reason)


def _probe(manifest: Path, library: str) -> tuple[tuple[str, ...], str]:
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
        answer = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return (), f"it did not answer within {_TIMEOUT_S:.0f} s"
    except (ValueError, IndexError):
        return (), f"it ended its process (status {done.returncode})"
    return tuple(answer.get("adapters", ())), answer.get("reason", "")
