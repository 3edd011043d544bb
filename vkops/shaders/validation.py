"""Modules that spirv-val found valid; the results are cached on disk."""

from __future__ import annotations

import hashlib

from vkops.errors import ShaderCompileError, printable
from vkops.shaders import compiler
from vkops.shaders.binary import is_spirv
from vkops.system.disk_cache import DiskCache

_TARGETS = {4: "vulkan1.1spv1.4", 5: "vulkan1.2", 6: "vulkan1.3"}
"""The environments of SPIR-V 1.4 and later."""

_LAYOUTS = {
    "": (),
    "uniformBufferStandardLayout": ("--uniform-buffer-standard-layout",),
    "scalarBlockLayout": ("--scalar-block-layout",),
}
"""Features of Vulkan that allow other layouts of blocks, each more, and options of spirv-val."""

_CACHE = DiskCache("valid", "cache of valid shaders", 100)


def validated(spirv: bytes, name: str) -> str:
    """Check a module of SPIR-V 1.0 to 1.6, and return the feature that its layouts need, or "".

    Raises:
        ShaderCompileError: it is not valid, or spirv-val is missing; the message names ``name``.
    """
    if not is_spirv(spirv):
        raise ShaderCompileError(f"{name}: {len(spirv)} bytes that are not SPIR-V", file=name)
    minor = spirv[5]
    if spirv[6] != 1 or minor > max(_TARGETS):
        message = f"{name}: got SPIR-V {spirv[6]}.{minor}, must be 1.0 to 1.{max(_TARGETS)}"
        raise ShaderCompileError(message, file=name)
    key = hashlib.sha256(spirv).hexdigest()
    known = _CACHE.load(key)
    if known is not None and known.decode(errors="replace") in _LAYOUTS:
        return known.decode()
    refusal = None
    for layout, options in _LAYOUTS.items():
        try:
            target = _TARGETS.get(minor, "vulkan1.1")
            compiler.validate(spirv, target_env=target, options=options)
        except ShaderCompileError as error:
            refusal = refusal or error
        else:
            _CACHE.store(key, layout.encode())
            return layout
    assert refusal is not None
    message = f"{name}: {printable(refusal.message)}"
    raise ShaderCompileError(message, file=name, log=refusal.log) from refusal
