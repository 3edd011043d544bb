"""Records of the shaders that a program uses; all its processes write them into one folder."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from vkops.errors import ShaderCompileError
from vkops.system.output_files import write_output

FOLDER = "VKOPS_RECORDED_SHADERS"
"""Environment variable: the folder of the records, which are made only if it is set."""

_recorded: set[tuple[str, str]] = set()


class Record(NamedTuple):
    """A shader that was used; ``key`` is the key of its source, as in ``bundle_file.Entry``.

    ``seconds`` is the time that it took to compile, 0 if it was not compiled.
    """

    name: str
    key: str
    seconds: float
    spirv: bytes


def record(name: str, key: str, spirv: bytes, seconds: float = 0.0) -> None:
    """Write that a shader is used; ShaderCompileError if it cannot be written."""
    folder = os.environ.get(FOLDER)
    if not folder or (name, key) in _recorded:
        return
    _recorded.add((name, key))
    file = hashlib.sha256(f"{key}{name}".encode(errors="replace")).hexdigest()
    head = json.dumps({"name": name, "key": key, "seconds": seconds}).encode()
    try:
        write_output(Path(folder, file), [head, b"\n", spirv])
    except OSError as error:
        reason = error.strerror or error
        raise ShaderCompileError(f"{name}: cannot be recorded in {folder!r}: {reason}") from error


def records(folder: Path) -> list[Record]:
    """Return the records in a folder, in an order that depends on nothing but the records."""
    result = []
    for path in folder.iterdir():
        if not path.name.startswith("."):  # not the unfinished file of a process that was killed
            head, _, spirv = path.read_bytes().partition(b"\n")
            result.append(Record(**json.loads(head), spirv=spirv))
    return sorted(result, key=lambda record: (record.key, record.name))
