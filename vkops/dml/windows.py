"""Windows of a tensor: the attributes that SLICE1 and SLICE_GRAD share, and their rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, NoReturn

from vkops.dml.operator_desc import NamedTensor
from vkops.errors import show
from vkops.plan.view import Ints


class WindowRules(NamedTuple):
    """The rules of an operator that wrong windows, wrong strides and wrong sizes break."""

    windows: str
    strides: str
    sizes: str


class Windows(NamedTuple):
    """For each dimension: the first element of a window, its extent, and the signed step in it."""

    offsets: Ints
    sizes: Ints
    strides: Ints

    @property
    def starts(self) -> Ints:
        """The element that is taken first: the last of a window whose stride is negative.

        >>> Windows((1, 1), (9, 9), (2, -2)).starts
        (1, 9)
        """
        return tuple(
            offset if stride > 0 else offset + size - 1
            for offset, size, stride in zip(*self, strict=True)
        )

    def check(
        self,
        whole: NamedTensor,
        part: NamedTensor,
        rules: WindowRules,
        refuse: Callable[[str, str, str], NoReturn],
    ) -> None:
        """Check the windows of a tensor, and the sizes of the tensor of what is taken from them."""
        whole_path, whole_tensor = whole
        part_path, part_tensor = part
        dimensions = zip(*self, whole_tensor.sizes, part_tensor.sizes, strict=True)
        for i, (offset, length, stride, available, size) in enumerate(dimensions):
            field = f"input_window_sizes[{i}]"
            if length < 1:
                refuse(field, f"got {length}, must be 1 or more", rules.windows)
            if offset + length > available:
                message = (
                    f"the window ends at {show(offset + length)} (offset + size), "
                    f"must be at most {whole_path}.sizes[{i}] = {available}"
                )
                refuse(field, message, rules.windows)
            if stride == 0:
                refuse(f"input_window_strides[{i}]", "got 0, must not be 0", rules.strides)
            most = elements_in_window(length, stride)
            if size > most:
                message = (
                    f"got {size}, must be at most {most} "
                    "(1 + (window size - 1) div the stride's magnitude)"
                )
                refuse(f"{part_path}.sizes[{i}]", message, rules.sizes)


def elements_in_window(length: int, stride: int) -> int:
    """How many elements of a window of some length are ``stride`` apart.

    >>> elements_in_window(9, -2)
    5
    """
    return 1 + (length - 1) // abs(stride)
