"""The types of images that shaders declare, and the formats of images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy

_DIMENSIONS = ("1D", "2D", "3D", "Cube", "Rect", "Buffer", "SubpassData")
_VIEW_TYPES = {"1D": 0, "2D": 1, "3D": 2, "Cube": 3}
_ARRAYED_VIEW_TYPES = {"1D": 4, "2D": 5, "Cube": 6}

SAMPLES = (2, 4, 8, 16, 32, 64)
"""The numbers of samples of texels that have several: those of VkSampleCountFlagBits."""

_FIRST = {
    (8, 1): 9, (8, 2): 16, (8, 4): 37, (16, 1): 70, (16, 2): 77, (16, 4): 91,
    (32, 1): 98, (32, 2): 101, (32, 4): 107, (64, 1): 110,
}  # fmt: skip
"""By bits of a component and number of components, the first VkFormat that has these."""

_SUFFIXES = {
    8: {"": 0, "_snorm": 1, "ui": 4, "i": 5, "_srgb": 6},
    16: {"": 0, "_snorm": 1, "ui": 4, "i": 5, "f": 6},
    32: {"ui": 0, "i": 1, "f": 2},
    64: {"ui": 0, "i": 1},
}
_PACKED = {
    "rgb10_a2": (64, "float"), "rgb10_a2ui": (68, "uint"), "r11f_g11f_b10f": (122, "float"),
}  # fmt: skip

_SPIRV_FORMATS = (
    "", "rgba32f", "rgba16f", "r32f", "rgba8", "rgba8_snorm", "rg32f", "rg16f", "r11f_g11f_b10f",
    "r16f", "rgba16", "rgb10_a2", "rg16", "rg8", "r16", "r8", "rgba16_snorm", "rg16_snorm",
    "rg8_snorm", "r16_snorm", "r8_snorm", "rgba32i", "rgba16i", "rgba8i", "r32i", "rg32i", "rg16i",
    "rg8i", "r16i", "r8i", "rgba32ui", "rgba16ui", "rgba8ui", "r32ui", "rgb10_a2ui", "rg32ui",
    "rg16ui", "rg8ui", "r16ui", "r8ui", "r64ui", "r64i",
)  # fmt: skip
"""The names of SPIR-V's image formats, by their numbers."""


_DTYPES = {"u": "uint", "i": "int", "f": "float"}


HALF_MAGNITUDE = """
uint half_magnitude(uint magnitude) {  // rounded to nearest, ties to even
    if (magnitude >= 0x47800000u)  // 65536, infinity or NaN
        return magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    if (magnitude < 0x38800000u)  // below the normal numbers: an addition rounds
        return floatBitsToUint(uintBitsToFloat(magnitude) + 0.5) - 0x3f000000u;
    return (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
}"""
"""A function that converts the bits of a float without its sign to those of a float16."""


class Format(NamedTuple):
    """A format of images.

    ``name`` is that of GLSL, ``vulkan`` the VkFormat, ``dtype`` and ``channels`` are the elements
    of a texel, and ``kind`` is the type of the numbers that shaders see: float, uint, int, uint64
    or int64.

    >>> FORMATS["rgba8"]
    Format(name='rgba8', vulkan=37, dtype='u1', channels=4, kind='float')
    """

    name: str
    vulkan: int
    dtype: str
    channels: int
    kind: str

    @property
    def dtype_name(self) -> str:
        """NumPy's name of the type of its elements.

        >>> FORMATS["rgba8"].dtype_name
        'uint8'
        """
        return f"{_DTYPES[self.dtype[0]]}{8 * int(self.dtype[1])}"

    @property
    def is_packed(self) -> bool:
        """Whether a texel is one number whose bits hold several channels."""
        return self.name in _PACKED

    @property
    def nbytes(self) -> int:
        """The bytes of a texel."""
        return int(self.dtype[1]) * self.channels


def _formats() -> Iterator[Format]:
    for (bits, channels), first in _FIRST.items():
        for suffix, more in _SUFFIXES[bits].items():
            name = f"{'rgba'[:channels]}{bits}{suffix}"
            kind = {"ui": "uint", "i": "int"}.get(suffix, "float") + "64" * (bits == 64)
            base = {"i": "i", "_snorm": "i", "f": "f"}.get(suffix, "u")
            yield Format(name, first + more, f"{base}{bits // 8}", channels, kind)
    for name, (number, kind) in _PACKED.items():
        yield Format(name, number, "u4", 1, kind)


FORMATS: Mapping[str, Format] = {each.name: each for each in _formats()}
"""All formats by their names; those that a device lacks are refused there.

An array has a format if it has the type of its elements, sign and byte order included, and as many
channels; a shader sees a format if it declares numbers of its kind. Whatever binds texels asks
``formats_of`` and ``view_format``, which read this table.
"""


class ImageType(NamedTuple):
    """The type of an image, a texture or a texel buffer in a shader.

    ``dimension`` is 1D, 2D, 3D, Cube, Buffer or another one. ``kind`` is the type of the numbers
    that the shader sees, as that of ``Format``. ``format`` is None if it declares none.
    """

    dimension: str
    is_arrayed: bool
    is_multisampled: bool
    kind: str
    format: Format | None

    @classmethod
    def read(cls, words: tuple[int, ...], kind: str) -> ImageType:
        """Return the type that an OpTypeImage declares."""
        _, _, dimension, _, arrayed, multisampled, _, format_ = words[:8]
        named = _SPIRV_FORMATS[format_] if format_ < len(_SPIRV_FORMATS) else ""
        name = _DIMENSIONS[dimension] if dimension < len(_DIMENSIONS) else str(dimension)
        return cls(name, bool(arrayed), bool(multisampled), kind, FORMATS.get(named))

    @property
    def dims(self) -> int:
        """The dimensions of the images that are bound to it."""
        return 2 if self.dimension == "Cube" else int(self.dimension[0])

    @property
    def has_layers(self) -> bool:
        """Whether these images have layers."""
        return self.is_arrayed or self.dimension == "Cube"

    @property
    def rank(self) -> int:
        """The axes of these images without channels: layers, sizes and samples."""
        return self.dims + self.has_layers + self.is_multisampled

    @property
    def view_type(self) -> int | None:
        """The VkImageViewType; None if vkops has no such images."""
        types = _ARRAYED_VIEW_TYPES if self.is_arrayed else _VIEW_TYPES
        has_none = self.is_multisampled and self.dimension != "2D"
        return None if has_none else types.get(self.dimension)

    def channels(self, shape: tuple[int, ...]) -> int | None:
        """Return the number of elements of a texel, for an array of a shape; None if none fits.

        For a texel buffer, this is the number that ``format`` says, or else the length of the last
        axis if there are several axes and it is 2 or 4.
        """
        if self.dimension == "Buffer":
            alone = shape[-1] if len(shape) > 1 and shape[-1] in (2, 4) else 1
            return self.format.channels if self.format else alone
        rank = self.rank
        count = shape[rank] if len(shape) == rank + 1 else 1
        fits = len(shape) in (rank, rank + 1) and count in (1, 2, 3, 4)
        if fits and self.is_multisampled:
            fits = shape[rank - 1] in SAMPLES
        return {3: 4}.get(count, count) if fits else None

    @property
    def shapes(self) -> str:
        """The shapes of arrays that can be bound to it, in words."""
        samples = " and one of 2, 4, 8, 16, 32 or 64 samples" * self.is_multisampled
        return f"{self.dims + self.has_layers} axes{samples}, and 1 to 4 channels or none"

    @property
    def elements(self) -> str:
        """The elements of arrays that can be bound to it, in words."""
        if self.format:
            return f"{self.format.dtype_name} and {self.format.channels} channels"
        names = [
            each.dtype_name
            for each in FORMATS.values()
            if each.kind == self.kind and not each.is_packed
        ]
        return " or ".join(dict.fromkeys(names))

    def __str__(self) -> str:
        prefix = {"uint": "u", "int": "i", "uint64": "u64", "int64": "i64"}.get(self.kind, "")
        form = "MS" * self.is_multisampled + "Array" * self.is_arrayed
        return f"{self.format.name + ' ' if self.format else ''}{prefix}image{self.dimension}{form}"


def formats_of(dtype: numpy.dtype[numpy.generic], channels: int) -> list[Format]:
    """Return all formats of texels that have ``channels`` elements of a data type."""
    return [each for each in FORMATS.values() if dtype == each.dtype and each.channels == channels]


def view_format(
    dtype: numpy.dtype[numpy.generic], channels: int, fixed: Format | None, declared: ImageType
) -> Format | None:
    """Return the format of a view for a declaration; None if there is none.

    If neither the image nor the declaration has a format, integers of 8 and 16 bits are normalised
    if the shader declares numbers of kind float.
    """
    fitting = [fixed] if fixed else formats_of(dtype, channels)
    seen = [each for each in fitting if each.kind == declared.kind]
    if declared.format is not None:
        return declared.format if declared.format in seen else None
    return next((each for each in seen if fixed or not each.is_packed), None)


def refusal(
    dtype: numpy.dtype[numpy.generic], channels: int, fixed: Format | None, declared: ImageType
) -> str:
    """Return the error for elements that ``view_format`` has no format for (SH-14)."""
    if fixed:
        return f"got {fixed.name}, must be what {declared} has"
    message = f"got {dtype} and {channels} channels, must be {declared.elements} for {declared}"
    other_sign = {"int": "uint", "uint": "int"}.get(dtype.name.rstrip("0123456789"))
    if f"{other_sign}{8 * dtype.itemsize}" in declared.elements.split():
        message += "; tensor.view() reads the same bytes"
    return message
