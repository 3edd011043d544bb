"""Other libraries that can execute the workloads of the benchmark.

Each is a module with a ``Peer`` class. ``load`` imports the module and the library.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from benchmarks import is_installed
from vkops.bench.workloads import Array, BenchCase
from vkops.errors import MissingPackageError
from vkops.gpu.adapters.adapter import DeviceInfo


class PeerProgram(NamedTuple):
    """A workload of a peer, its inputs on its device, its outputs in packed memory of its own."""

    run: Callable[[], Any]
    """Execute the workload once and wait for it."""
    results: Callable[[], Sequence[Array]]
    """The outputs of the last run, for the comparison with NumPy."""


class Peer(Protocol):
    """A library that can execute workloads."""

    label: str
    """Its name in tables and plots, with the kind of device that it runs on."""
    version: str

    def __init__(self, info: DeviceInfo) -> None: ...

    def prepare(self, case: BenchCase, arrays: Sequence[Array]) -> PeerProgram | None:
        """Prepare a workload with these inputs; None if the library cannot execute it."""


# By the name of the package: the module of the peer, and the packages that it needs.
_PEERS = {
    "torch": ("pytorch", ("torch",)),
    "onnxruntime": ("onnx_runtime", ("onnxruntime", "onnx")),
    "wgpu": ("webgpu", ("wgpu",)),
    "ncnn": ("ncnn_cpu", ("ncnn",)),
}
PEERS = tuple(_PEERS)
"""The names of all peers, which are those of their packages."""


def installed() -> list[str]:
    """Return the names of the peers whose packages are installed."""
    return [name for name in PEERS if not _missing(name)]


def load(name: str, info: DeviceInfo) -> Peer:
    """Import a peer's library, for that device or, if it does not support Vulkan, for the CPU.

    Raises:
        MissingPackageError: a package is not installed, or cannot be imported.
        DeviceError: the library finds no such device.
    """
    require(name)
    # OpenMP's threads would otherwise still spin while the next contender runs.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        peer: type[Peer] = importlib.import_module(f"{__name__}.{_PEERS[name][0]}").Peer
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
