"""Other libraries that can do the same works, each used only where it is installed and asked for.

A peer is a module with a ``Peer`` class; nothing imports it, or its library, before ``load``.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from vkops.bench.movement import Array
from vkops.errors import MissingPackageError

if TYPE_CHECKING:
    from vkops.bench.works import Case
    from vkops.gpu.adapter import DeviceInfo


@dataclass(frozen=True)
class Program:
    """A work as a peer runs it: inputs resident, outputs in packed memory of its own."""

    run: Callable[[], Any]
    """Do the work once, and wait until it is done."""
    results: Callable[[], Sequence[Array]]
    """The outputs of the last run, for the comparison with NumPy."""


class Peer(Protocol):
    """A library, ready to prepare works."""

    label: str
    """What it is called in tables and plots, with what it runs on."""
    version: str

    def __init__(self, info: DeviceInfo) -> None: ...

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Program | None:
        """The work with these inputs, or None where the library cannot do it."""


# By the package that is asked for: the module here, and the packages it needs.
_PEERS = {
    "torch": ("pytorch", ("torch",)),
    "onnxruntime": ("onnx_runtime", ("onnxruntime", "onnx")),
    "wgpu": ("webgpu", ("wgpu",)),
    "ncnn": ("ncnn_cpu", ("ncnn",)),
}
PEERS = tuple(_PEERS)
"""The names of all peers: their packages'."""


def installed() -> list[str]:
    """The names of the peers whose packages are here."""
    return [name for name in PEERS if not _missing(name)]


def module(name: str) -> str:
    """The module of a peer; it needs the peer's packages."""
    return f"{__name__}.{_PEERS[name][0]}"


def load(name: str, info: DeviceInfo) -> Peer:
    """Import a peer's library, to run on that device or, where it knows no Vulkan, on the CPU.

    Raises:
        MissingPackageError: a package is not installed, or cannot be imported.
        DeviceError: the library finds no such device.
    """
    require(name)
    # OpenMP's threads would otherwise spin into the next contender's turn, or keep their own
    # library waiting for milliseconds while others run.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        peer: type[Peer] = importlib.import_module(module(name)).Peer
        return peer(info)
    except ImportError as error:
        raise MissingPackageError(
            f"peer {name}: its library cannot be imported: {error}", name=name
        ) from error


def require(name: str) -> None:
    """Raise MissingPackageError where one of a peer's packages is not installed."""
    if missing := _missing(name):
        raise MissingPackageError(
            f"peer {name}: {' and '.join(missing)} not installed: pip install 'vkops[peers]'",
            name=missing[0],
        )


def _missing(name: str) -> list[str]:
    return [package for package in _PEERS[name][1] if not is_installed(package)]


def is_installed(package: str) -> bool:
    """Whether a package can be found; it is not imported."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
