"""A report of measurements: device, date, versions and results; saved as JSON."""

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
"""Labels of the contenders that are always measured; the last two are plain copies."""


@dataclass(frozen=True)
class Report:
    """The results of one run."""

    device: DeviceInfo
    date: str
    """ISO 8601."""
    processors: int
    versions: Mapping[str, str]
    """The versions of the packages that were measured, by name."""
    peers: Mapping[str, str]
    """The labels of the peers, by name."""
    scale: int
    rounds: int
    results: Sequence[Result]

    def json_ready(self) -> dict[str, Any]:
        """Return the report as plain data for JSON, in seconds and bytes."""
        return asdict(self)


def made_from(
    device: DeviceInfo,
    results: Sequence[Result],
    peers: Mapping[str, Peer],
    *,
    scale: int = 1,
    rounds: int = 9,
) -> Report:
    """Make the report of results that were just measured on this machine."""
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
    """Read a report that was saved as JSON.

    Raises:
        VkopsError: the file does not hold a report.
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
