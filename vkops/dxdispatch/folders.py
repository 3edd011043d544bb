"""Where the paths in a model lead to, and which of them are refused."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from vkops.dxdispatch.json_reader import Node, quote
from vkops.paths import below

_LONGEST_SHOWN = 4096


@dataclass(frozen=True)
class Folders:
    """What paths in a model are relative to: those of files to read, and of files to write.

    Symbolic links resolved, each must lie inside its folder, unless ``allow_paths`` is true; then
    what is read may also be in the current folder, as in DxDispatch.
    """

    inputs: Path
    outputs: Path = Path()
    allow_paths: bool = False

    def find(self, node: Node) -> Path:
        """The regular file that a ``sourcePath`` names, which is no symbolic link.

        Raises:
            ModelError: there is none, or it is outside.
        """
        places = dict.fromkeys((self.inputs, *([Path()] if self.allow_paths else [])))
        for folder in places:
            path = self._inside(node, node.string(), folder)
            try:
                if stat.S_ISREG(path.stat().st_mode):
                    return path
            except OSError:
                continue
        where = " or ".join(quote(str(folder), _LONGEST_SHOWN) for folder in places)
        raise node.error(f"no file {quote(node.string())} in {where}")

    def folder(self, node: Node, name: str) -> Path:
        """The folder that an option of a compiler names.

        Raises:
            ModelError: it is outside.
        """
        return self._inside(node, name, self.inputs)

    def target(self, node: Node) -> Path:
        """The file to write that a ``targetPath`` names.

        Raises:
            ModelError: it is outside.
        """
        return self._inside(node, node.string(), self.outputs)

    def _inside(self, node: Node, name: str, folder: Path) -> Path:
        try:
            path = below(folder, name)
        except ValueError as error:  # it has a NUL, or half a surrogate pair
            raise node.error(f"{quote(name)} is no file name") from error
        if self.allow_paths:
            path = folder / name
            return Path(os.path.realpath(path)) if path.is_symlink() else path
        if path is None:
            raise node.error(
                f"{quote(name, _LONGEST_SHOWN)} is outside of the folder "
                f"{quote(str(folder), _LONGEST_SHOWN)}, which a model may leave only with "
                "--allow_paths"
            )
        return path
