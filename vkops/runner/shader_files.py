"""Run a shader on buffers from files, and print or write its results: ``vkops shader run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import vkops
from vkops.errors import ModelError
from vkops.plan.rounding import round_up
from vkops.runner import array_files, shader_bindings
from vkops.runner.dispatch_timing import RunOptions, run_timed
from vkops.runner.shader_bindings import NumberValues
from vkops.shaders.module import Block
from vkops.shaders.shader import Shader

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ShaderOptions:
    """The buffers, groups and push constants; the names are those of the command line.

    ``groups`` are numbers, or a block and the byte of its buffer where the numbers are.
    """

    bind: Sequence[str] = ()
    out: Sequence[str] = ()
    output: Sequence[str] = ()
    groups: Sequence[int] | tuple[str, int] | None = None
    threads: Sequence[int] | None = None
    push: NumberValues = ()


def run_shader(
    shader: Shader, device: vkops.Device, options: RunOptions, shader_options: ShaderOptions
) -> None:
    """Run a shader in a loop, and print or write the buffers that ``shader_options.out`` names."""
    compiled = device.compile_shader(shader)
    arrays, names = _arrays(shader, shader_options)
    targets = array_files.targets(names, shader_options.output, shader.name)
    # Whole words, with zeros after the last bytes.
    buffers = {name: device.buffer(round_up(array.nbytes, 4)) for name, array in arrays.items()}
    for name, array in arrays.items():
        buffers[name].fill(array)
        buffers[name].write(bytes(-array.nbytes % 4), array.nbytes)
    elements: dict[Block, list[Any]] = {}
    for name, array in arrays.items():
        buffer, block = buffers[name], shader.block(name.partition("[")[0])
        assert block is not None
        span: Any = buffer, 0, buffer.nbytes
        if block.image:
            span = vkops.Tensor.over(device, buffer, array.shape, array.dtype)
        elements.setdefault(block, []).append(span)
    spans = {block.point: block.bound_to(each) for block, each in elements.items()}
    groups: Any = shader_options.groups
    if groups is not None and isinstance(groups[0], str):
        name, offset = groups
        block = shader.block(name)
        if block is None or block.point not in buffers:
            message = f"groups: {name!r} is not a block that has a buffer"
            raise ModelError(f"{shader.name}: {message}; these are {', '.join(buffers) or 'none'}")
        groups = buffers[block.point], offset
    run = compiled.bound(spans, groups, shader_options.push, threads=shader_options.threads)
    run_timed(shader.name, options, lambda _: run.dispatch(), device)
    results = {
        name: np.frombuffer(buffers[name].read(0, a.nbytes), a.dtype).reshape(a.shape)
        for name, a in arrays.items()
        if name in names
    }
    array_files.write_or_print(targets, results, flat=options.flat)


def _arrays(shader: Shader, options: ShaderOptions) -> tuple[dict[str, Array], list[str]]:
    """Return the initial values of each block, and the blocks that are results.

    Buffers without a name go to the remaining blocks, in the order of their bindings. Those with
    the name of an array are its elements, in their order.
    """
    given = shader_bindings.read(options.bind, shader.name)
    results: list[str] = []
    points: list[str] = []
    for text in options.out:
        if (block := shader.block(text)) is not None:
            points.append(block.point)  # bound to a file
        else:
            given.append(_zeros(text))
    first_result = len(given) - (len(options.out) - len(points))
    arrays: dict[str, Array] = {}
    for number, (block, value) in enumerate(shader_bindings.assigned(given, shader)):
        array = np.zeros(value, np.uint8) if isinstance(value, int) else value
        point = block.point
        if block.is_array:
            point += f"[{sum(key.startswith(f'{point}[') for key in arrays)}]"
        if point in arrays:
            raise ModelError(f"{shader.name}: {point!r} has a buffer already")
        if array.dtype.kind not in shader_bindings.NUMBER_KINDS:
            raise ModelError(f"{shader.name}: {point}: got {array.dtype}, must be numbers")
        if not array.size:
            raise ModelError(f"{shader.name}: {point}: got no values, must have at least 1")
        arrays[point] = array
        if number >= first_result:
            results.append(point)
    results += [point for point in arrays if point.partition("[")[0] in points]
    return arrays, results


def _zeros(text: str) -> tuple[str, Array]:
    """Return the name and the zeros of ``[NAME:]TYPE:COUNT``; COUNT can be a shape, such as 4x6."""
    name, _, form = text.partition(":")
    if ":" not in form:
        name, form = "", text
    if (array := shader_bindings.zeros(form)) is None:
        raise ModelError(
            f"{text}: must be [NAME:]TYPE:COUNT, such as uint32:1024 or float16:4x6, or the name "
            "of a block that is bound to a file"
        )
    return name, array
