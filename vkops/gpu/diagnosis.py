"""Which Vulkan drivers are installed, and why one is of no use here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 30.0

# Runs in a process of its own: a broken driver may take its process with it.
_PROBE = """
import ctypes, json, sys
from vkops.errors import VkopsError
from vkops.gpu.adapter import devices
try:
    ctypes.CDLL(sys.argv[1])
    print(json.dumps({"adapters": [device.name for device in devices()]}))
except (OSError, VkopsError) as error:
    print(json.dumps({"reason": str(error)}))
"""


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver manifest that the Vulkan loader would read.

    ``path`` is the manifest's; ``adapters`` are the names of the adapters it offers; ``reason``
    says why there are none.
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
    """Try each installed driver alone, in a process of its own."""
    return [_diagnose(manifest) for manifest in manifests()]


def manifests() -> list[Path]:
    """The manifests the loader reads, in its order (its documented search path)."""
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        if os.environ.get(variable):
            return list(_expand(os.environ[variable]))
    home = Path("~").expanduser()  # which stays as it is where there is no home
    folders = [
        os.environ.get("XDG_CONFIG_HOME") or str(home / ".config"),
        *(os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep),
        "/etc",
        os.environ.get("XDG_DATA_HOME") or str(home / ".local/share"),
        *(os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(os.pathsep),
    ]
    found = list(_expand(os.environ.get("VK_ADD_DRIVER_FILES", "")))
    for folder in dict.fromkeys(folders):
        found += _expand(str(Path(folder) / "vulkan" / "icd.d"))
    return found


def _expand(paths: str) -> Iterator[Path]:
    """Files as they are named, the manifests of folders."""
    for path in map(Path, filter(None, paths.split(os.pathsep))):
        if path.is_dir():
            yield from sorted(path.glob("*.json"))
        elif path.suffix == ".json":
            yield path


def _diagnose(manifest: Path) -> Driver:
    name = manifest.stem
    try:
        library = json.loads(manifest.read_bytes())["ICD"]["library_path"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Driver(name, str(manifest), "", (), f"its manifest cannot be read: {error!r:.200}")
    # The loader's rule: a bare name is searched, a path is relative to the manifest.
    if os.sep in library:
        library = str((manifest.parent / library).resolve())
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
