"""Shaders: the compiler with its cache, SPIR-V modules, and the kernels of the package."""

from vkops.shaders.compiler import compile, read, validate
from vkops.shaders.shader import Number, Shader, load
from vkops.shaders.variants import VARIANTS, Variant, compiler_state, for_records, source_dir, spirv

__all__ = [
    "VARIANTS",
    "Number",
    "Shader",
    "Variant",
    "compile",
    "compiler_state",
    "for_records",
    "load",
    "read",
    "source_dir",
    "spirv",
    "validate",
]
