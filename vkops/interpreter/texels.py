"""The numbers that shaders read from texels, and write to them, by the formats of images."""

from __future__ import annotations

import numpy as np

from vkops.interpreter.operations import Array
from vkops.shaders.image_formats import Format

_FIELDS = {"rgb10_a2": (10, 10, 10, 2), "r11f_g11f_b10f": (11, 11, 10)}
"""The numbers of bits of the components of a packed texel."""


def decoded(raw: Array, form: Format) -> Array:
    """Return texels as vectors of four numbers; those missing in the format are 0, 0, 0 and 1."""
    raw = raw.reshape(len(raw), -1)
    if form.is_packed:
        elements = _unpacked(raw, form)
    elif form.kind == "float" and raw.dtype.kind != "f":
        most = np.float32(np.iinfo(raw.dtype).max)
        elements = np.maximum(raw.astype(np.float32) / most, -1)
    else:
        elements = raw.astype(np.float32) if raw.dtype.kind == "f" else raw
    if form.name.endswith("_srgb"):
        linear = np.where(
            elements <= 0.04045, elements / 12.92, ((elements + 0.055) / 1.055) ** 2.4
        )
        elements = np.c_[linear[:, :3], elements[:, 3:]]
    missing = np.zeros((len(elements), 4), elements.dtype)
    missing[:, 3] = 1
    missing[:, : elements.shape[1]] = elements
    return missing


def _bits(form: Format) -> tuple[int, ...]:
    return _FIELDS[form.name.removesuffix("ui")]


def _unpacked(raw: Array, form: Format) -> Array:
    word, parts, at = raw[:, 0].astype(np.uint64), [], 0
    for bits in _bits(form):
        part = word >> np.uint64(at) & np.uint64((1 << bits) - 1)
        at += bits
        if form.name == "r11f_g11f_b10f":  # as unsigned float16, with shorter mantissas
            parts.append((part << np.uint64(15 - bits)).astype(np.uint16).view(np.float16))
        else:
            parts.append(part / np.float32((1 << bits) - 1) if form.kind == "float" else part)
    return np.stack(parts, 1).astype(np.float32 if form.kind == "float" else np.uint32)


def encoded(values: Array, form: Format) -> Array:
    """Return texels for vectors of numbers, as an image stores them."""
    dtype = np.dtype(form.dtype)
    if form.is_packed:
        elements = _packed(values, form)[:, None]
    elif form.kind == "float" and dtype.kind != "f":
        most = np.iinfo(dtype).max
        low = -1 if dtype.kind == "i" else 0
        elements = np.rint(np.clip(np.nan_to_num(values), low, 1) * np.float64(most)).astype(dtype)
    elif dtype.kind == "f":
        elements = values.astype(dtype)
    else:
        elements = np.clip(values, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)
    elements = elements[:, : form.channels]
    return elements if form.channels > 1 else elements[:, 0]


def _packed(values: Array, form: Format) -> Array:
    word, at = np.zeros(len(values), np.uint32), 0
    for number, bits in enumerate(_bits(form)):
        part = values[:, number]
        if form.name == "r11f_g11f_b10f":
            half = np.where(part > 0, part, 0).astype(np.float16).view(np.uint16)
            part = half >> np.uint16(15 - bits)
        elif form.kind == "float":
            part = np.rint(np.clip(np.nan_to_num(part), 0, 1) * np.float32((1 << bits) - 1))
        word |= np.minimum(part, (1 << bits) - 1).astype(np.uint32) << np.uint32(at)
        at += bits
    return word
