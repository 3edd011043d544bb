"""Descriptions of the declarations of a shader."""

from __future__ import annotations

from vkops.shaders.instructions import Scalar
from vkops.shaders.module import Block, Module


def describe(module: Module) -> tuple[tuple[str, str], ...]:
    """Return headings and texts: the bindings, and the resources that it uses."""
    x, y, z = module.local_size
    found = [
        ("Workgroup", f"{x} x {y} x {z} invocations"),
        ("Blocks", "; ".join(map(block_text, module.blocks)) or "none"),
    ]
    if module.push_constants:
        numbers = ", ".join(f"{s.type} {s.name}" for s in module.push_constants)
        found.append(("Push constants", f"{numbers} ({module.push_nbytes} bytes)"))
    if module.specialization_constants:
        texts = map(_constant_text, module.specialization_constants)
        found.append(("Specialization constants", ", ".join(texts)))
    if module.shared_nbytes:
        found.append(("Shared memory", f"{module.shared_nbytes:,} bytes"))
    size = f"{len(module.spirv):,} bytes"
    code = f"{module.instructions:,} instructions, {module.loops} loops, {size}"
    return (*found, ("Code", code), ("Capabilities", ", ".join(module.capabilities)))


def block_text(block: Block) -> str:
    """Describe a block.

    >>> block_text(Block("Source", "", "storage", 0, 1, True, 0, 4, "%9"))
    '1 Source (storage, read only)'
    """
    access = ", read only" if block.readonly and block.kind == "storage" else ""
    names = " ".join(filter(None, (str(block.binding), block.name, block.instance)))
    return f"{names} ({block.kind}{access})"


def _constant_text(constant: Scalar) -> str:
    return f"{constant.type} {constant.name or constant.location} = {constant.default}"
