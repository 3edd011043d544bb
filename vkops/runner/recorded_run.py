"""Runs of programs, of which the shaders are recorded."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from vkops import __version__, console
from vkops.errors import ShaderCompileError
from vkops.runtime.shader_checks import NEWEST_SPIRV
from vkops.shaders import recorded_shaders, tools
from vkops.shaders.bundle_file import Entry
from vkops.shaders.compiler import validated
from vkops.shaders.module import Module
from vkops.shaders.recorded_shaders import Record


class RecordedRun(NamedTuple):
    """The exit status of a program, and the shaders that it and its child processes used."""

    status: int
    records: Sequence[Record]


def run(command: Sequence[str]) -> RecordedRun:
    """Run a program to its end; OSError if it cannot be started."""
    with TemporaryDirectory(prefix="vkops-") as folder:
        environment = {**os.environ, recorded_shaders.FOLDER: folder}
        done = subprocess.run(command, env=environment, check=False)
        return RecordedRun(done.returncode, recorded_shaders.records(Path(folder)))


def bundled(records: Iterable[Record]) -> dict[Entry, bytes]:
    """Return the content of a bundle of recorded shaders, one of each source.

    A warning names those that spirv-val refuses, which no device runs.

    Raises:
        ShaderCompileError: spirv-val is missing.
    """
    tools.find("spirv-val", "spirv-tools")
    sources: dict[str, Record] = {}
    for record in records:
        sources.setdefault(record.key, record)
    hashes = {key: hashlib.sha256(each.spirv).hexdigest() for key, each in sources.items()}
    compiled = {hash_ for key, hash_ in hashes.items() if key != hash_}
    shaders = {}
    for name, key, _, spirv in sources.values():
        if key == hashes[key] and key in compiled:  # the entry of its source has it
            continue
        try:
            shaders[_entry(name, key, hashes[key], spirv)] = spirv
        except ShaderCompileError as error:
            console.complain(f"Warning: not in the bundle: {error}")
    return shaders


def _entry(name: str, key: str, hash_: str, spirv: bytes) -> Entry:
    layout, module = validated(spirv, name), Module.read(spirv, name)
    modules = [Module.read(spirv, name, entry) for entry in module.entry_points]
    features = [feature for each in modules for feature in (*each.needs, layout) if feature]
    features += [f"subgroup operations {name}" for name in module.subgroup_operations]
    newest = [version for version, spirv in NEWEST_SPIRV.items() if module.spirv_version <= spirv]
    vulkan = "{}.{}".format(*newest[0])
    return Entry(name, key, hash_, vulkan, tuple(dict.fromkeys(features)), __version__)
