"""The values of tensors as text: in the shape of the tensor, or as DxDispatch prints them.

One deliberate difference from DxDispatch: INT8 and UINT8 are printed as numbers, not characters.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.models.initial_values import ReadBytes, pieces

MAX_SHAPED_VALUES = 1000
"""Values that are printed in the shape of a tensor; an ellipsis stands for the others."""

_FLAT_AT_ONCE = 1 << 16  # values, whose texts take up to a hundred bytes each


def shaped(dtype: np.dtype[Any], shape: Sequence[int], read: ReadBytes) -> str:
    """Return a tensor as NumPy prints it: rows, with an ellipsis in each long dimension.

    Only what is printed is read.

    >>> numbers = np.arange(10_000, dtype=np.uint16)
    >>> print(shaped(numbers.dtype, (100, 100), lambda at, n: numbers.tobytes()[at : at + n]))
    [[   0,    1,    2, ...,   97,   98,   99],
     [ 100,  101,  102, ...,  197,  198,  199],
     [ 200,  201,  202, ...,  297,  298,  299],
     ...,
     [9700, 9701, 9702, ..., 9797, 9798, 9799],
     [9800, 9801, 9802, ..., 9897, 9898, 9899],
     [9900, 9901, 9902, ..., 9997, 9998, 9999]]
    """
    if prod(shape) <= MAX_SHAPED_VALUES:
        return text_of(np.frombuffer(read(0, prod(shape) * dtype.itemsize), dtype).reshape(shape))
    edge = _edge(shape)
    return _text(_edges(dtype, shape, edge, read), 0, edge)


def text_of(array: npt.NDArray[Any]) -> str:
    """Return an array as ``shaped`` does."""
    is_whole = array.size <= MAX_SHAPED_VALUES
    return _text(array, MAX_SHAPED_VALUES if is_whole else 0, 3 if is_whole else _edge(array.shape))


def _edge(shape: Sequence[int]) -> int:
    """Return how many elements to print at each end of a long dimension."""
    fitting = (e for e in (3, 2) if prod(min(n, 2 * e) for n in shape) <= MAX_SHAPED_VALUES)
    return next(fitting, 1)


def _text(array: npt.NDArray[Any], threshold: int, edge: int) -> str:
    width = shutil.get_terminal_size().columns
    return np.array2string(
        array, width, precision=6, separator=", ", threshold=threshold, edgeitems=edge
    )


def _edges(
    dtype: np.dtype[Any], shape: Sequence[int], edge: int, read: ReadBytes
) -> npt.NDArray[Any]:
    """Return the elements at both ends of each dimension, with one more between long ends.

    NumPy prints an ellipsis in place of that one.
    """
    ends = [[range(edge + 1), range(n - edge, n)] if n > 2 * edge else [range(n)] for n in shape]
    starts: Any = np.int64(0)  # of the rows that are printed
    for parts, n in zip(ends[:-1], shape, strict=False):
        starts = starts[..., None] * n + [index for part in parts for index in part]
    data = b"".join(
        read((start * shape[-1] + part.start) * dtype.itemsize, len(part) * dtype.itemsize)
        for start in starts.ravel().tolist()
        for part in ends[-1]
    )
    return np.frombuffer(data, dtype).reshape(*starts.shape, -1)


def print_flat(
    label: str, dtype: np.dtype[Any], count: int, read: ReadBytes, *, verbose: bool = False
) -> None:
    """Print so many values of a resource, as DxDispatch does.

    Plain: one line. Verbose: one line per value, with its bytes in hexadecimal, and a blank line.
    """
    write = sys.stdout.write
    write(f"{label}:" + ("\n" if verbose else ""))
    size, width, index = dtype.itemsize, len(str(count)), 0
    for chunk in pieces(read, count * size, _FLAT_AT_ONCE * size):
        texts = format_values(np.frombuffer(chunk, dtype))
        if verbose:
            for number, text in enumerate(texts):
                word = int.from_bytes(chunk[number * size : (number + 1) * size], "little")
                write(f"[{index + number:>{width}}] {text} (0x{word:>{2 * size}X})\n")
        else:
            write((", " if index else " ") + ", ".join(texts))
        index += len(texts)
    write("\n")


def format_values(values: npt.NDArray[Any]) -> Sequence[str]:
    """Return numbers as a C++ stream prints them: six significant digits, integers in full.

    Strings are quoted.
    """
    if values.dtype.kind in "iuO":
        return [str(value) for value in values.tolist()]
    if values.dtype.kind == "U":
        return [repr(value) for value in values.tolist()]
    if values.dtype.kind == "b":
        return [str(int(value)) for value in values.tolist()]
    if values.dtype.kind == "c":
        return [f"({value.real:g},{value.imag:g})" for value in values.tolist()]
    return [f"{value:g}" for value in values.astype(np.float64).tolist()]
