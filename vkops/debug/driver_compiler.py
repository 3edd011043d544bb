"""Statistics and machine code of shaders from Mesa's compiler for AMD GPUs, which needs no GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vkops.errors import DeviceError, ShaderCompileError
from vkops.gpu.adapters import loader_files
from vkops.gpu.adapters.adapter import LAYERS
from vkops.shaders.shader import Shader
from vkops.system import vulkan
from vkops.system.processes import describe, run_limited

_MANIFEST = "radeon_icd*.json"
_UNKNOWN = "Unknown family"
_REMOVED = "RADV_FORCE_FAMILY=<family> has been removed"
_SECONDS = 120
_NBYTES = 8 << 30

FAMILIES = ("polaris10", "vega10", "navi10", "navi14", "navi21", "navi31", "navi33")
"""Some of the GPU families that the driver supports, with Mesa's names."""

_OLD_NAMES = {"navi31": "gfx1100", "navi32": "gfx1101", "navi33": "gfx1102"}
"""The names before Mesa 23, by the present names."""

# Runs in a process of its own: for an unknown family, the driver ends its process.
_CHILD = """
import base64, json, sys
from vkops.gpu.adapters.kompute import load_native
native = load_native()
adapter = native.Instance([], {}).adapters()[0]
compiler = native.Compiler(adapter)
print(json.dumps([adapter.name, adapter.driver]), flush=True)
for line in sys.stdin:
    spirv, *rest = json.loads(line)
    try:
        outcome = compiler.compile(base64.b64decode(spirv), *rest)
    except native.Error as error:
        outcome = str(error)
    print(json.dumps(outcome), flush=True)
"""


class CompiledProgram(NamedTuple):
    """A compiled shader: statistics such as registers, and the machine code."""

    figures: Mapping[str, float]
    machine_code: str


class Compilation(NamedTuple):
    """The compiled programs of shaders for one GPU, and the driver that compiled them."""

    gpu: str
    driver: str
    programs: Sequence[CompiledProgram]


def compile_for(family: str, shaders: Sequence[Shader]) -> Compilation:
    """Compile shaders for a family of AMD GPUs, without running them."""
    manifests = [*loader_files.manifests(), *loader_files.installed()]
    manifest = next((path for path in manifests if path.match(_MANIFEST)), None)
    if manifest is None:
        package = vulkan.how_to_install("mesa-vulkan-drivers")
        raise DeviceError(f"Mesa's driver for AMD GPUs is not installed ({package})")
    status, output = _child(manifest, family, shaders)
    if _UNKNOWN in output and family in _OLD_NAMES:
        status, output = _child(manifest, _OLD_NAMES[family], shaders)
    if _REMOVED in output:
        raise DeviceError(
            f"the driver of {manifest} compiles only for GPUs that are there, as all of Mesa from "
            "26 on do: use one of Mesa 22 to 25"
        )
    lines = [line for line in output.splitlines() if line.startswith(("[", '"'))]
    if _UNKNOWN in output or not family:  # without a name, the driver looks for real GPUs
        known = ", ".join(FAMILIES)
        raise DeviceError(f"the driver of {manifest} has no GPU {family!r}; there are {known}")
    if not lines:
        reason = output.strip().splitlines()[-1:] or [describe(status)]
        raise DeviceError(f"the driver of {manifest} cannot be used: {reason[0]}")
    gpu, driver = json.loads(lines[0])
    programs = []
    for shader, line in zip(shaders, [*lines[1:], ""], strict=False):
        outcome = json.loads(line) if line else f"the driver ended the process ({describe(status)})"
        if isinstance(outcome, str):
            raise ShaderCompileError(f"{shader.name}: {family}: {outcome}")
        _, subgroup_size, figures, texts = outcome[0]
        figures = {"Subgroup size": subgroup_size, **dict(figures)}
        programs.append(CompiledProgram(figures, dict(texts).get("Assembly", "")))
    return Compilation(gpu, driver, programs)


def _child(manifest: Path, family: str, shaders: Sequence[Shader]) -> tuple[int, str]:
    """Compile in a process of its own; return its status and its output."""
    variables = {
        "RADV_FORCE_FAMILY": family,
        "VK_DRIVER_FILES": str(manifest),
        "VK_ICD_FILENAMES": str(manifest),
        LAYERS: "",
        "MESA_SHADER_CACHE_DISABLE": "true",
    }
    lines = []
    for shader in shaders:
        spirv = b64encode(shader.spirv).decode()
        lines.append(json.dumps([spirv, shader.entry_point, shader.bindings(), shader.push_nbytes]))
    try:
        status, output = run_limited(
            [sys.executable, "-c", _CHILD],
            seconds=_SECONDS,
            nbytes=_NBYTES,
            stdin="\n".join(lines).encode(),
            variables=variables,
        )
    except subprocess.TimeoutExpired:
        message = f"the driver has not compiled the shaders within {_SECONDS} s"
        raise ShaderCompileError(f"{family}: {message}") from None
    except OSError as error:
        raise DeviceError(f"{family}: the compiler cannot be started: {error}") from None
    return status, output.decode(errors="replace")
