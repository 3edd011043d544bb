"""The folders that a model may read from and write to."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from vkops.models.json_reader import Node, quote
from vkops.system.files import below

_MAX_SHOWN_CHARACTERS = 4096


@dataclass(frozen=True)
class Folders:
    """The folder of the files to read and the folder of the files to write.

    Each file must be inside its folder after symbolic links are resolved. If ``allow_paths`` is
    true, any path is allowed, and files to read may also be in the current folder, as in
    DxDispatch.
    """

    inputs: Path
    outputs: Path = Path()
    allow_paths: bool = False

    def find(self, node: Node) -> Path:
        """Return the regular file that a ``sourcePath`` names; ModelError if it is outside."""
        folders = dict.fromkeys((self.inputs, *([Path()] if self.allow_paths else [])))
        for folder in folders:
            path = self.inside(node, node.string(), folder)
            try:
                if stat.S_ISREG(path.stat().st_mode):
                    return path
            except OSError:
                continue
        where = " or ".join(quote(str(folder), _MAX_SHOWN_CHARACTERS) for folder in folders)
        raise node.error(f"no file {quote(node.string())} in {where}")

    def inside(self, node: Node, name: str, folder: Path) -> Path:
        """Return a file of a folder; ModelError if it is outside, unless ``allow_paths``."""
        try:
            path = below(folder, name)
        except ValueError as error:  # the name has a NUL or an unpaired surrogate
            raise node.error(f"{quote(name)} is not a file name") from error
        if self.allow_paths:
            path = folder / name
            return Path(os.path.realpath(path)) if path.is_symlink() else path
        if path is None:
            raise node.error(
                f"{quote(name, _MAX_SHOWN_CHARACTERS)} is outside of the folder "
                f"{quote(str(folder), _MAX_SHOWN_CHARACTERS)}, which a model may leave only with "
                "--allow_paths"
            )
        return path
