"""Images, textures, samplers and texel buffers, and the instructions that access them.

Terms and formulas are those of the chapter on image operations of Vulkan's specification.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from vkops.interpreter import texels
from vkops.interpreter.memory import MemoryVariable
from vkops.interpreter.operations import Array
from vkops.interpreter.program import Decoded, dtype_in, shape_of
from vkops.interpreter.state import State
from vkops.interpreter.values import Numbers, Outside, Pointer
from vkops.shaders.binary import Op
from vkops.shaders.image_formats import Format, ImageType
from vkops.shaders.layout import ArrayType, ScalarType, StructType, Type

_BIAS, _LOD, _GRAD, _OFFSET, _OFFSETS, _SAMPLE, _MIN_LOD = 0x1, 0x2, 0x4, 0x18, 0x20, 0x40, 0x80
"""Bits of image operands; an offset is constant or not."""
Extra = defaultdict[int, list[Array]]

_FIRST = np.zeros(1, np.int64)
"""The default number of the level or of the sample."""


class Sampling(NamedTuple):
    """A sampler: its attributes are those of ``vkops.Sampler``."""

    filter: str = "linear"
    address: str = "clamp"
    normalized: bool = True


class ImageVariable(MemoryVariable):
    """The texels of an image, a texture or a texel buffer, and the sampler of a texture.

    ``levels`` are arrays. Their axes are one for layers, if there are any; those of space; one for
    samples, if texels have several; and one for the elements of a texel or a sample.
    """

    def __init__(
        self, declared: ImageType, format_: Format, levels: Sequence[Array], sampler: Sampling
    ) -> None:
        self.declared, self.format, self.levels, self.sampler = declared, format_, levels, sampler
        number = ScalarType({"u": "uint", "i": "int", "f": "float"}[format_.dtype[0]],
                        int(format_.dtype[1]))  # fmt: skip
        size, count = number.nbytes, format_.channels
        self.texel: Type = number
        if count > 1:
            self.texel = ArrayType(number, count, size, size * count, "vector")
        nbytes = sum(level.nbytes for level in levels)
        super().__init__("", self.texel, "", 1, nbytes, is_written=True)
        self.fill(b"".join(level.tobytes() for level in levels))
        rank, layers = levels[0].ndim - 1, declared.has_layers
        self.dims: int = rank - layers - declared.is_multisampled
        sizes = [level.shape[:-1] for level in levels]
        # By level: the sizes in the order of coordinates; layers and samples come last.
        space = range(layers, layers + self.dims)
        axes = [*reversed(space), *range(layers), *range(space.stop, rank)]
        self.sizes: Array = np.array([[s[axis] for axis in axes] for s in sizes])
        self._strides = np.array([[prod(s[axis + 1 :]) for axis in axes] for s in sizes])
        self._starts = np.cumsum([0, *map(prod, sizes)])

    def element(self, offset: int, whole: Type | None = None) -> str:
        """Return the name of a texel at an offset, such as ``image(3, 5)``."""
        texel = offset // self.format.nbytes
        level = int(self._starts.searchsorted(texel, "right")) - 1
        at = (texel - int(self._starts[level])) // self._strides[level] % self.sizes[level]
        return f"{self.name}({self._words(at)}{f', level {level}' if level else ''})"

    def _words(self, at: Array) -> str:
        """Return the coordinates of a texel as text, such as ``3, 5``."""
        *texel, last = map(str, at)
        return ", ".join([*texel, f"sample {last}" if self.declared.is_multisampled else last])

    def results(self) -> list[Array]:
        """Return the levels with their stored content."""
        starts = (self._starts * self.format.nbytes).tolist()
        return [
            self.contents()[start : start + each.nbytes].view(each.dtype).reshape(each.shape)
            for start, each in zip(starts, self.levels, strict=False)
        ]

    def pointer(self, at: Array, level: Array) -> Pointer:
        """Return pointers to the texels with integer coordinates."""
        most = len(self.levels) - 1
        known = np.clip(level, 0, most)
        wrong = ((at < 0) | (at >= self.sizes[known])).any(1) | (level != known)
        where = np.where(wrong[:, None], 0, at)
        offset = (self._starts[known] + (where * self._strides[known]).sum(1)) * self.format.nbytes
        if not wrong.any():
            return Pointer(self, self.texel, offset)
        texts = [self._words(each) for each in at]
        if at.shape[1] > 1:
            texts = [f"({each})" for each in texts]
        sizes = self.sizes[int(np.broadcast_to(known, len(wrong))[wrong][0])].tolist()
        samples = f" of {sizes.pop()} samples" if self.declared.is_multisampled else ""
        count = f"{' x '.join(map(str, sizes))} texels{samples}"
        return Pointer(
            self, self.texel, offset, Outside(self.name, wrong, np.array(texts, object), count)
        )


class SamplerVariable(MemoryVariable):
    """A sampler that is bound alone."""

    def __init__(self, sampler: Sampling) -> None:
        super().__init__("", ScalarType("uint", 4), "", 1, 0, is_written=True)
        self.sampler = sampler


def _coordinates(run: State, id_: int) -> Array:
    value = run.value(id_)
    return value.reshape(len(value), -1)


def _at_sample(image: ImageVariable, at: Array, sample: Array = _FIRST) -> Array:
    """Return integer coordinates with the number of the sample appended, if texels have several."""
    if not image.declared.is_multisampled:
        return at
    count = max(len(at), len(sample))
    both = at, sample.astype(np.int64).reshape(-1, 1)
    return np.concatenate([np.broadcast_to(each, (count, each.shape[1])) for each in both], 1)


def _image(run: State, id_: int) -> tuple[ImageVariable, Sampling]:
    """Return an image, and the sampler that is combined with it."""
    value = run.raw(id_)
    image, sampler = value if isinstance(value, tuple) else (value, value)
    if not isinstance(image, Pointer) or not isinstance(sampler, Pointer):
        run.refuse("a choice of textures")
    return image.variable, sampler.variable.sampler


def _extra(run: State, operands: Sequence[int]) -> Extra:
    """Return the values of image operands by their bits."""
    extra: Extra = defaultdict(list)
    mask, *rest = operands or (0,)
    for bit in (0x1, 0x2, 0x4, 0x8, 0x10, 0x20, 0x40, 0x80):
        for _ in range(bool(mask & bit) + (mask & bit == _GRAD)):
            value = run.raw(rest.pop(0))
            members = value if isinstance(value, tuple) else (value,)
            extra[bit] += [run.checked(m).array for m in members if isinstance(m, Numbers)]
    extra[_OFFSET] = extra[0x8] + extra[0x10]
    return extra


def _result(run: State, step: Decoded, values: Array) -> Numbers:
    type_ = run.program.type(step.type)
    shape = shape_of(type_)
    values = values[:, : shape[0] if shape else 1].astype(dtype_in(type_))
    return Numbers(values.reshape(-1, *shape))


def _read(run: State, step: Decoded) -> Numbers:
    image, _ = _image(run, step.operands[0])
    extra = _extra(run, step.operands[2:])
    at = _coordinates(run, step.operands[1]).astype(np.int64)
    for offset in extra[_OFFSET]:
        at = at + np.pad(offset.reshape(len(offset), -1), ((0, 0), (0, at.shape[1] - image.dims)))
    at = _at_sample(image, at, *extra[_SAMPLE])
    level = extra[_LOD][0].astype(np.int64) if extra[_LOD] else _FIRST
    raw = run.load_numbers(image.pointer(at, level)).array
    return _result(run, step, texels.decoded(raw, image.format))


def _write(run: State, step: Decoded) -> None:
    pointer = _texel(run, step, *_extra(run, step.operands[3:])[_SAMPLE])
    values = _coordinates(run, step.operands[2])
    run.store(pointer, Numbers(texels.encoded(values, pointer.variable.format)))


def _texel_pointer(run: State, step: Decoded) -> Pointer:
    return _texel(run, step, run.value(step.operands[2]))


def _texel(run: State, step: Decoded, sample: Array = _FIRST) -> Pointer:
    """Return pointers to the texels or samples that an instruction accesses."""
    image, _ = _image(run, step.operands[0])
    at = _coordinates(run, step.operands[1]).astype(np.int64)
    return image.pointer(_at_sample(image, at, sample), _FIRST)


def _size(run: State, step: Decoded) -> Numbers:
    image, _ = _image(run, step.operands[0])
    level = run.value(step.operands[1]).astype(np.int64) if step.operands[1:] else np.zeros(1, int)
    known = np.clip(level, 0, len(image.levels) - 1)
    if (level != known).any():
        count = f"{len(image.levels)} levels"
        run.report_outside(f"'{image.name}'", level, level != known, count, run.active)
    sizes = image.sizes[known]
    if image.declared.dimension == "Cube":
        sizes = np.c_[sizes[:, :2], sizes[:, 2:] // 6][:, : 2 + image.declared.is_arrayed]
    return _result(run, step, sizes)


# -- sampling --------------------------------------------------------------------------------------

_FACES = np.array(
    [
        [(1, 0, 0), (0, 0, -1), (0, -1, 0)], [(-1, 0, 0), (0, 0, 1), (0, -1, 0)],
        [(0, 1, 0), (1, 0, 0), (0, 0, 1)], [(0, -1, 0), (1, 0, 0), (0, 0, -1)],
        [(0, 0, 1), (1, 0, 0), (0, -1, 0)], [(0, 0, -1), (-1, 0, 0), (0, -1, 0)],
    ],
    np.float32,
)  # fmt: skip
"""For each face of a cube, its direction, and the directions of its coordinates."""


def _on_face(direction: Array) -> tuple[Array, Array]:
    """Return the face that a direction goes through, and the coordinates on it, from 0 to 1."""
    size = np.abs(direction)
    x, y, z = size.T
    axis = np.where((z >= x) & (z >= y), 2, np.where(y >= x, 1, 0))
    rows = np.arange(len(direction))
    face = 2 * axis + (direction[rows, axis] < 0)
    across = np.einsum("nij,nj->ni", _FACES[face, 1:], direction)
    return face, (across / size[rows, axis][:, None] + 1) / 2


class _Footprint(NamedTuple):
    """The texels of one level that a sample is computed from.

    ``first`` has the coordinates of the first texel, and ``part`` the weights of the next texel
    along each axis. ``layers`` are the numbers of layers or faces, if there are any.
    """

    image: ImageVariable
    sampler: Sampling
    level: Array
    first: Array
    part: Array
    layers: Array

    def texel(self, run: State, which: Array) -> Array:
        """Return the texels at an offset from the first ones."""
        size = self.image.sizes[self.level][:, : self.image.dims]
        at, layers = self.first + which, self.layers
        outside = np.zeros(len(at), bool)
        if self.image.declared.dimension == "Cube":
            beyond = ((at < 0) | (at >= size)).any(1)
            if beyond.any():
                on_face = (2 * at + 1) / size - 1
                face = _FACES[layers[:, 0].astype(np.int64) % 6]
                other, where = _on_face(
                    face[:, 0] + on_face[:, :1] * face[:, 1] + on_face[:, 1:] * face[:, 2]
                )
                moved = np.clip(np.floor(where * size), 0, size - 1)
                at = np.where(beyond[:, None], moved, at)
                number = layers[:, 0] // 6 * 6 + other
                layers = np.where(beyond, number, layers[:, 0])[:, None]
        elif self.sampler.address == "repeat":
            at = at % size
        elif self.sampler.address == "mirror":
            at = at % (2 * size)
            at = np.minimum(at, 2 * size - 1 - at)
        elif self.sampler.address == "border":
            outside = ((at < 0) | (at >= size)).any(1)
        at = np.clip(at, 0, size - 1)
        both = np.concatenate([at, np.broadcast_to(layers, (len(at), layers.shape[1]))], 1)
        pointer = self.image.pointer(both.astype(np.int64), self.level)
        raw = run.load_numbers(pointer).array
        if outside.any():
            raw = np.where(outside.reshape(-1, *(1,) * (raw.ndim - 1)), raw.dtype.type(0), raw)
        return texels.decoded(raw, self.image.format)

    def filtered(self, run: State) -> Array:
        """Return the average of the texels, weighted by their distances."""
        if self.sampler.filter == "nearest":
            return self.texel(run, np.zeros(1, int))
        total: Any = 0
        for which in product((0, 1), repeat=self.image.dims):
            weight = np.where(which, self.part, 1 - self.part).prod(1, dtype=np.float32)
            total = total + weight[:, None] * self.texel(run, np.array(which))
        return total


def _footprint(
    image: ImageVariable, sampler: Sampling, at: Array, level: Array, extra: Extra, *, linear: bool
) -> _Footprint:
    dims = image.dims
    offset = extra[_OFFSET][0].reshape(-1, dims) if extra[_OFFSET] else np.zeros(1, int)
    count = max(len(at), len(level), len(offset))
    at, level = np.broadcast_to(at, (count, at.shape[1])), np.broadcast_to(level, count)
    layers: Array = np.zeros((len(at), 0))
    if image.declared.dimension == "Cube":
        face, where = _on_face(at[:, :3])
        cube = np.rint(at[:, 3:4]) if at.shape[1] > 3 else 0
        cube = np.clip(cube, 0, image.sizes[0, 2] // 6 - 1)
        layers, at = cube * 6 + face[:, None], where
    elif image.declared.has_layers:
        layers = np.clip(np.rint(at[:, dims:]), 0, image.sizes[0, dims] - 1)
    size = image.sizes[level][:, :dims]
    where = at[:, :dims] * size if sampler.normalized else at[:, :dims]
    where = where.astype(np.float32) - np.float32(0.5 if linear else 0)
    first = np.floor(where)
    return _Footprint(image, sampler, level, first + offset, where - first, layers)


def _level(image: ImageVariable, extra: Extra) -> Array:
    """Return the level of detail that image operands choose; 0 without any."""
    detail = np.zeros(1, np.float32)
    if extra[_LOD]:
        detail = extra[_LOD][0].astype(np.float32)
    elif extra[_GRAD]:
        size = image.sizes[0, : image.dims]
        along = [each.reshape(len(each), -1)[:, : image.dims] * size for each in extra[_GRAD]]
        longest = np.maximum(*(np.sqrt((each**2).sum(1)) for each in along))
        detail = np.log2(longest)
    for least in extra[_MIN_LOD]:
        detail = np.maximum(detail, least)
    return np.clip(np.nan_to_num(detail), 0, len(image.levels) - 1)


def _sampled(run: State, step: Decoded) -> Numbers:
    image, sampler = _image(run, step.operands[0])
    at, extra = _coordinates(run, step.operands[1]), _extra(run, step.operands[2:])
    if step.op == Op.ImageSampleProjExplicitLod:
        at = at[:, : image.dims] / at[:, image.dims : image.dims + 1]
    detail, linear = _level(image, extra), sampler.filter == "linear"
    low = np.floor(detail) if linear else np.clip(np.ceil(detail + 0.5) - 1, 0, None)
    low = low.astype(np.int64)
    texels = _footprint(image, sampler, at, low, extra, linear=linear).filtered(run)
    part = (detail - low)[:, None] if linear else np.zeros(1)
    if part.any():
        high = np.minimum(low + 1, len(image.levels) - 1)
        above = _footprint(image, sampler, at, high, extra, linear=linear).filtered(run)
        texels = texels * (1 - part) + above * part
    return _result(run, step, texels)


def _gathered(run: State, step: Decoded) -> Numbers:
    image, sampler = _image(run, step.operands[0])
    at, extra = _coordinates(run, step.operands[1]), _extra(run, step.operands[3:])
    component = int(run.value(step.operands[2])[0])
    places = [np.array(each) for each in ((0, 1), (1, 1), (1, 0), (0, 0))]
    if extra[_OFFSETS]:
        places = [each[0] for each in extra[_OFFSETS]]
    around = _footprint(image, sampler, at, np.zeros(1, np.int64), extra, linear=True)
    texels = [around.texel(run, place)[:, component] for place in places]
    return _result(run, step, np.stack(texels, 1))


HANDLERS: dict[int, Callable[[State, Decoded], Any]] = {
    Op.ImageRead: _read, Op.ImageFetch: _read, Op.ImageWrite: _write,
    Op.ImageTexelPointer: _texel_pointer, Op.ImageQuerySize: _size, Op.ImageQuerySizeLod: _size,
    Op.ImageQueryLevels: lambda run, step:
        _result(run, step, np.array([[len(_image(run, step.operands[0])[0].levels)]])),
    Op.ImageQuerySamples: lambda run, step:
        _result(run, step, _image(run, step.operands[0])[0].sizes[:1, -1:]),
    Op.ImageSampleExplicitLod: _sampled,
    Op.ImageSampleProjExplicitLod: _sampled, Op.ImageGather: _gathered,
    Op.SampledImage: lambda run, step: tuple(run.raw(id_) for id_ in step.operands),
    Op.Image: lambda run, step: Pointer(_image(run, step.operands[0])[0], StructType((), 0), 0),
}  # fmt: skip
"""The functions by opcode."""
