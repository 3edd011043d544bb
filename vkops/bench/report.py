"""A report: what was measured, where, when and with which versions; saved as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from vkops.bench.measure import Result
from vkops.bench.peers import Peer
from vkops.errors import VkopsError
from vkops.gpu.adapter import DeviceInfo

LABELS = {
    "vkops": "vkops",
    "numpy": "NumPy",
    "memcpy": "memcpy",
    "buffer_copy": "Kompute copy",
}
"""What contenders are called, apart from peers. Of these, only vkops and NumPy do the work."""


@dataclass(frozen=True)
class Report:
    """The results of one run."""

    device: DeviceInfo
    date: str
    """ISO 8601."""
    processors: int
    versions: Mapping[str, str]
    """Of the packages that took part."""
    peers: Mapping[str, str]
    """The peers' names, and what they are called."""
    scale: int
    rounds: int
    results: Sequence[Result]

    def json_ready(self) -> dict[str, Any]:
        """The same as plain data: seconds and bytes."""
        return asdict(self)


def made_from(
    device: DeviceInfo,
    results: Sequence[Result],
    peers: Mapping[str, Peer],
    *,
    scale: int = 1,
    rounds: int = 9,
) -> Report:
    """The report of results measured just now on this machine."""
    return Report(
        device=device,
        date=date.today().isoformat(),
        processors=os.cpu_count() or 1,
        versions={
            **{name: metadata.version(name) for name in ("vkops", "kp", "numpy")},
            **{name: peer.version for name, peer in peers.items()},
        },
        peers={name: peer.label for name, peer in peers.items()},
        scale=scale,
        rounds=rounds,
        results=results,
    )


def read(path: Path) -> Report:
    """A report that was saved as JSON.

    Raises:
        VkopsError: the file holds none.
        OSError: it cannot be read.
    """
    try:
        data = json.loads(path.read_bytes())
        results = [_result(**result) for result in data.pop("results")]
        return Report(device=DeviceInfo(**data.pop("device")), results=results, **data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise VkopsError(f"{path}: not a report of `vkops bench --json`: {error}") from error


def _result(*, seconds: Mapping[str, float], **more: Any) -> Result:
    return Result(seconds={name: float(value) for name, value in seconds.items()}, **more)
