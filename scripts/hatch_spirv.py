"""Add the shaders to the wheel: the GLSL sources and the SPIR-V of every kernel."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SpirvBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # its kernels are compiled from the checkout when they are used
            return
        # vkops is not installed here, nor is anything else it depends on.
        sys.path.insert(0, self.root)
        from vkops.errors import ShaderCompileError
        from vkops.shaders.variants import VARIANTS

        try:
            kernels = {v.file_name: v.compile(cache=False) for v in VARIANTS.values()}
        except ShaderCompileError as error:
            self.app.abort(f"The kernels cannot be compiled: {error}")
        finally:
            sys.path.remove(self.root)

        # Not in pyproject.toml, as an editable install would get copies that are never used.
        build_data["force_include"]["shaders"] = "vkops/shaders/glsl"
        self.folder = tempfile.TemporaryDirectory(prefix="vkops-spirv-")
        for name, spirv in kernels.items():
            path = Path(self.folder.name, name)
            path.write_bytes(spirv)
            build_data["force_include"][str(path)] = f"vkops/shaders/spirv/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.folder.cleanup()
