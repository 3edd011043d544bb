"""The HTML of objects in notebooks: tables, pictures, and the drawings of plans."""

from __future__ import annotations

from dataclasses import fields
from functools import singledispatch
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.debug.shader_check import Report
from vkops.errors import VkopsError
from vkops.explain.explanation import TensorInfo, count, movements
from vkops.explain.page import FIGURE_CSS, FIGURE_SCRIPT, FRAME_SCRIPT, PAGE_CSS, figure
from vkops.explain.tables import size_text
from vkops.gpu.adapters.adapter import DeviceInfo
from vkops.gpu.adapters.adapter_limits import Limits
from vkops.gpu.run.recording import RecordedProgram
from vkops.notebook import picture_html, table_html
from vkops.plan.graph import Step
from vkops.plan.region import CopyPlan
from vkops.runtime.compiled_shader import CompiledShader
from vkops.runtime.image import Image
from vkops.shaders import Shader
from vkops.shaders.listing import describe
from vkops.tensors.tensor import Device, Tensor

MAX_CELLS = 8
"""Rows and columns of a tensor that are shown."""

MAX_SIDE = 512
"""Pixels along a side of a picture, of which larger images show a part of the pixels."""


@singledispatch
def html(shown: Any) -> str:
    """Return the HTML of an object."""
    return f"<pre>{escape(repr(shown))}</pre>"


html.register(Device, lambda shown: html(shown.info))
html.register(Limits, lambda shown: table_html("", ("limits", ""), shown.rows()))
html.register(CompiledShader, lambda shown: html(shown.shader))


@html.register
def _(shown: Tensor) -> str:
    try:
        part: Any = shown[(0,) * max(0, shown.ndim - 2)][(slice(MAX_CELLS),) * min(2, shown.ndim)]
        values = np.atleast_2d(part.numpy())  # whose elements have the digits of their types
    except VkopsError:  # it cannot be read now
        return html.dispatch(object)(shown)
    which = f", [{', '.join('0' * (shown.ndim - 2))}]" if shown.ndim > 2 else ""
    more = ", the first elements" if part.size < shown.size and not which else which
    title = f"Tensor {shown.shape} {shown.dtype} on {shown.device.info.label}{more}"
    heads = ["", *map(str, range(len(values[0]) if len(values) else 0))]
    return table_html(title, heads, [[i, *row] for i, row in enumerate(values)])


@html.register
def _(shown: Image) -> str:
    try:
        pixels = _pixels(shown)
    except VkopsError:
        return html.dispatch(object)(shown)
    height, width, channels = pixels.shape
    return picture_html(repr(shown)[1:-1], (width, height), channels, map(bytes, pixels))


def _pixels(image: Image) -> npt.NDArray[np.uint8]:
    """Return pixels with channels of 8 bits, of the first layer, slice and samples of an image."""
    array: npt.NDArray[Any] = image.numpy()[None, None]
    if not image.channels:
        array = array[..., None]
    if image.samples > 1:
        array = array[..., 0, :]
    array = array[(0,) * (array.ndim - 3)]
    array = array[tuple(slice(None, None, -(-side // MAX_SIDE)) for side in array.shape[:2])]
    if array.dtype != np.uint8:
        limits = None if array.dtype.kind == "f" else np.iinfo(array.dtype)
        low, high = (limits.min, limits.max) if limits else (0, 1)
        scaled = np.nan_to_num(array.astype(np.float64)).clip(low, high) - low
        array = (scaled * (255 / (high - low))).round().astype(np.uint8)
    return array


@html.register
def _(shown: DeviceInfo) -> str:
    values = {each.name: getattr(shown, each.name) for each in fields(shown)}
    rows = [
        (name, size_text(value) if "memory" in name else value)
        for name, value in values.items()
        if name != "limits"
    ]
    info = table_html(shown.name, ("info", ""), rows)
    return f"{info}<details><summary>Limits and features</summary>{html(shown.limits)}</details>"


@html.register
def _(shown: Shader) -> str:
    rows = [
        (b.number, b.point, b.kind, b.dtype or "", "reads" if b.readonly else "reads and writes")
        for b in shown.blocks
    ]
    blocks = table_html(f"Shader {shown.name}", ("Binding", "Name", "Kind", "Type", "Access"), rows)
    others = [row for row in describe(shown) if row[0] != "Blocks"]
    return blocks + table_html("", ("", ""), others)


@html.register
def _(shown: RecordedProgram) -> str:
    title = f"Recorded program of {count(len(shown.steps), 'step')}"
    return table_html(title, ("Step", "Name"), enumerate(shown.steps))


@html.register
def _(shown: Report) -> str:
    if not shown.findings:
        return f"<p>{escape(str(shown))}</p>"
    rows = [(f.kind, f.place, f.message, f.count) for f in shown.findings]
    title = f"{shown.name}: {count(len(rows), 'finding')}"
    lines = "\n".join(f.source for f in shown.findings)
    source = f"<pre>{escape(lines)}</pre>" if lines.strip() else ""
    return table_html(title, ("Kind", "Line", "Fault", "Times"), rows) + source


@html.register
def _(shown: CopyPlan) -> str:
    sizes = {f"input {n}": nbytes for n, nbytes in enumerate(shown.inputs)}
    sizes |= {f"output {n}": output.nbytes for n, output in enumerate(shown.outputs)}
    flat = [TensorInfo.flat(*each, shown.element_size) for each in sizes.items()]
    numbers, count = tuple(range(len(flat))), len(shown.inputs)
    step = Step(shown, numbers[:count], numbers[count:])
    drawn = "".join(map(figure, movements([step], dict(enumerate(flat)))))
    style = f"<style>{PAGE_CSS}{FIGURE_CSS}</style>"
    page = f"<!DOCTYPE html>{style}<body>{drawn}<script>{FIGURE_SCRIPT}{FRAME_SCRIPT}</script>"
    frame = "width:100%;height:24em;border:0"
    return f"<iframe title='Plan' style='{frame}' srcdoc=\"{escape(page)}\"></iframe>"
