"""The benchmarks of scripts/bench: workloads, shaders, calls, transfers and the interpreter."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from datetime import date
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import vkops


def options(name: str, description: str | None, rounds: int) -> argparse.ArgumentParser:
    """Return the parser of the options of ``scripts/bench --NAME``."""
    parser = argparse.ArgumentParser(prog=f"scripts/bench --{name}", description=description)
    parser.add_argument("-a", "--adapter", help="index or part of the name of the adapter")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"rounds (default: {rounds})")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    return parser


def print_json(device: vkops.Device, packages: tuple[str, ...], **results: Any) -> None:
    """Print results with what they were measured with; of ``packages``, those that are there."""
    versions = {name: metadata.version(name) for name in packages if is_installed(name)}
    document = {
        "device": asdict(device.info),
        "date": date.today().isoformat(),
        "processors": os.cpu_count(),
        "versions": {"vkops": vkops.__version__, **versions},
        **results,
    }
    print(json.dumps(document, indent=2))


def is_installed(package: str) -> bool:
    """Whether a package can be found; it is not imported."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
