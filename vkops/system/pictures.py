"""Pictures in .png and .jpg files, which Pillow reads and writes."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from vkops.system.threads import filtered

SUFFIXES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
"""The suffixes of pictures, with Pillow's names of their formats."""

_CONVERTED = {"1": "L", "PA": "RGBA", "CMYK": "RGB", "YCbCr": "RGB"}


class PictureError(Exception):
    """A file is not a picture, or an array cannot be one; the text says why."""


def read(stream: BinaryIO) -> npt.NDArray[Any]:
    """Return the pixels of a picture, rows first, with channels unless it is grey.

    They are uint8, or uint16 if it is grey with 16 bits.

    Raises:
        PictureError: the bytes are not a picture, it is too large, or Pillow is missing.
    """
    pillow = _pillow()
    try:
        with filtered("error", pillow.DecompressionBombWarning):
            picture = pillow.open(stream, formats=[*SUFFIXES.values()])
        if picture.mode == "P":
            picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
        pixels = np.asarray(picture.convert(_CONVERTED.get(picture.mode, picture.mode)))
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        raise PictureError(f"has more pixels than Pillow reads: {error}") from error
    except pillow.UnidentifiedImageError as error:
        raise PictureError("is not a PNG or JPEG picture") from error
    except Exception as error:  # Pillow fails in many ways on bad bytes
        raise PictureError(f"is a damaged picture: {error}") from error
    return pixels if pixels.dtype == np.uint8 else pixels.astype(np.uint16)


def encoded(pixels: npt.NDArray[Any], suffix: str) -> bytes:
    """Return the content of a picture file; pixels are as ``read`` returns, or floats from 0 to 1.

    Raises:
        PictureError: a picture cannot have these pixels, or Pillow is missing.
    """
    pillow = _pillow()
    if pixels.dtype.kind == "f":
        pixels = np.rint(np.clip(np.nan_to_num(pixels), 0, 1) * 255).astype(np.uint8)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    is_grey, most = pixels.ndim == 2, 2 if suffix == ".png" else 1
    is_picture = is_grey or (pixels.ndim == 3 and pixels.shape[2] in ((3,), (2, 3, 4))[most - 1])
    if not is_picture or pixels.dtype.kind != "u" or pixels.itemsize > (most if is_grey else 1):
        raise PictureError(
            f"got {pixels.shape} {pixels.dtype}, must be rows of pixels of uint8, or of floats "
            "from 0 to 1: grey, or with 3 channels; in .png files also 2 or 4, and grey uint16"
        )
    file = io.BytesIO()
    pillow.fromarray(np.ascontiguousarray(pixels)).save(file, SUFFIXES[suffix])
    return file.getvalue()


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        message = "needs the package Pillow to be read or written: pip install 'vkops[pictures]'"
        raise PictureError(message) from error
    return Image
