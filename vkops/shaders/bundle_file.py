"""Bundles of compiled shaders: zip files of modules, and of ``bundle.json``, which names them.

A bundle is untrusted data. It is read in memory, nothing is extracted, and members are stored as
they are, so that no member is larger than the file. Its bytes depend on nothing but the shaders.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from vkops.errors import InvalidDescError, show
from vkops.shaders.binary import is_spirv
from vkops.shaders.sources import MAX_SPIRV_BYTES
from vkops.system.files import read_regular
from vkops.system.output_files import write_output

FORMAT = 1
MAX_SHADERS = 4096
MAX_BYTES = 64 << 20
"""Bytes of a bundle."""

_CONTENT = "bundle.json"
_MAX_CONTENT_BYTES = 8 << 20
_HASH = re.compile(r"[0-9a-f]{64}")
_MAX_TEXT = 500
_MAX_FEATURES = 100

_END = struct.Struct("<4s4HIIH")
"""The end of a zip file without a comment: PK\\5\\6, ..., members, bytes of the directory, ..."""

_LOCATOR = b"PK\6\7"
"""The start of the record before that end in files of 4 GiB and more (zip64)."""

_MAX_DIRECTORY_BYTES = 256
"""Of each member, whose name has at most 68 characters."""

_FIRST_TIME = (1980, 1, 1, 0, 0, 0)
"""The first one that a member of a zip file can have."""

Refuse = Callable[..., InvalidDescError]
"""A function that returns the error for a reason and a rule, which is BUN-01 by default."""


@dataclass(frozen=True, order=True)
class Entry:
    """A shader in a bundle.

    ``key`` is the hash of its source and all else that the SPIR-V depends on, except the compiler;
    ``spirv`` is the hash of the module. ``vulkan`` is the version that the SPIR-V needs, and
    ``features`` are those that a device must have. ``vkops`` is the version that compiled it.
    """

    name: str
    key: str
    spirv: str
    vulkan: str
    features: tuple[str, ...]
    vkops: str


def write(path: Path, shaders: Mapping[Entry, bytes]) -> None:
    """Write a bundle, whole or not at all.

    Raises:
        InvalidDescError: it would be too large (BUN-02).
        OSError: it cannot be written.
    """
    entries = sorted(shaders)
    content = {"format": FORMAT, "shaders": [asdict(entry) for entry in entries]}
    members = {f"{entry.spirv}.spv": shaders[entry] for entry in entries}
    members[_CONTENT] = json.dumps(content, indent=1).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, member in sorted(members.items()):
            info = zipfile.ZipInfo(name, _FIRST_TIME)
            info.create_system, info.external_attr = 3, 0o644 << 16  # Unix, on all systems
            archive.writestr(info, member)
    data = stream.getvalue()
    is_long = len(members[_CONTENT]) > _MAX_CONTENT_BYTES
    if len(entries) > MAX_SHADERS or len(data) > MAX_BYTES or is_long:
        message = f"got {len(entries)} shaders, {len(data)} bytes; must be {MAX_SHADERS} shaders "
        message += f"and {MAX_BYTES} bytes at most, of which {_MAX_CONTENT_BYTES} describe them"
        raise InvalidDescError("bundle", "", message, "BUN-02")
    write_output(path, [data])


def read(path: str, operator: str, field: str = "path") -> dict[Entry, bytes]:
    """Return the shaders of a bundle; each module has the hash of its entry.

    Raises:
        InvalidDescError: it cannot be read, is damaged or not a bundle (BUN-01), is too large
            (BUN-02), or has another format (BUN-03). It names ``operator`` and ``field``.
    """

    def refuse(reason: str, rule: str = "BUN-01") -> InvalidDescError:
        return InvalidDescError(operator, field, f"got {path!r}, which {reason}", rule)

    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        rule = "BUN-02" if error.errno == errno.EFBIG else "BUN-01"
        raise refuse(f"cannot be read: {error.strerror or error}", rule) from error
    except ValueError as error:
        raise refuse("is not a file name") from error
    try:
        return _shaders(data, refuse)
    except InvalidDescError:
        raise
    except Exception as error:  # zipfile and json fail in many ways on bad bytes
        raise refuse("is damaged") from error


def _shaders(data: bytes, refuse: Refuse) -> dict[Entry, bytes]:
    """Return the shaders of a bundle; ``refuse`` raises some errors, others mean it is damaged."""
    members = _members(data, refuse)
    text = members.pop(_CONTENT)
    if len(text) > _MAX_CONTENT_BYTES:
        raise refuse(f"has a {_CONTENT} of more than {_MAX_CONTENT_BYTES} bytes", "BUN-02")
    content = json.loads(text)
    if content["format"] != FORMAT:
        reason = f"has the format {show(content['format'])}, must be {FORMAT}: another version of "
        raise refuse(f"{reason}vkops wrote it", "BUN-03")
    if len(content["shaders"]) > MAX_SHADERS:
        raise refuse(f"has more than {MAX_SHADERS} shaders", "BUN-02")
    shaders = {}
    for fields in content["shaders"]:
        entry = Entry(**{**fields, "features": tuple(fields["features"])})
        texts = (entry.name, entry.key, entry.spirv, entry.vulkan, *entry.features, entry.vkops)
        if (
            not all(isinstance(text, str) and len(text) <= _MAX_TEXT for text in texts)
            or not all(map(_HASH.fullmatch, (entry.key, entry.spirv)))
            or len(entry.features) > _MAX_FEATURES
        ):
            raise ValueError("no such entry")
        shaders[entry] = members[f"{entry.spirv}.spv"]
    if {f"{entry.spirv}.spv" for entry in shaders} != members.keys():
        raise ValueError("members without an entry")
    for name, spirv in members.items():
        if hashlib.sha256(spirv).hexdigest() != name.removesuffix(".spv") or not is_spirv(spirv):
            raise refuse(f"is damaged: {name} does not have the hash of its entry")
    return shaders


def _members(data: bytes, refuse: Refuse) -> dict[str, bytes]:
    """Return the members of a zip file by their names."""
    end = data[-_END.size :]
    signature, *_, count, directory, _, comment = _END.unpack(end.rjust(_END.size, b"\0"))
    before = data[-_END.size - 20 : -_END.size]
    if signature != b"PK\5\6" or comment or before.startswith(_LOCATOR):
        raise refuse("is not a bundle of `vkops shader bundle`, or a truncated one")
    if count > MAX_SHADERS + 1 or directory > _MAX_DIRECTORY_BYTES * count:
        raise refuse(f"has more than {MAX_SHADERS} shaders", "BUN-02")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        names = {info.filename for info in infos}
        if _CONTENT not in names or len(names) != len(infos):
            raise refuse(f"is not a bundle of `vkops shader bundle`: it needs one {_CONTENT}")
        if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
            raise refuse("has compressed members, which no bundle has")
        sizes = [info.file_size for info in infos]
        if max(sizes) > MAX_SPIRV_BYTES or sum(sizes) > len(data):
            reason = f"has a member of more than {MAX_SPIRV_BYTES} bytes"
            if sum(sizes) > len(data):
                reason = "has members of more bytes than the file"
            raise refuse(reason, "BUN-02")
        return {info.filename: archive.read(info) for info in infos}
