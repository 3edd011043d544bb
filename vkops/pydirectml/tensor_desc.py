"""Tensor descriptors with the arguments of PyDirectML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from vkops.arguments.values import Place, integers
from vkops.dml import BufferTensorDesc, TensorDataType, TensorFlags

_Policy = Callable[[TensorDataType, tuple[int, ...]], BufferTensorDesc]


class TensorDesc(BufferTensorDesc):
    """A tensor in a buffer, with the arguments of PyDirectML. Source: pydirectml.TensorDesc.

    The first argument is ``data_type``; then come ``flags``, which may be left out, and ``sizes``,
    and then a ``tensor_policy``, or ``strides`` in elements, ``total_tensor_size_in_bytes`` and
    ``guaranteed_base_offset_alignment``.

    Raises:
        InvalidDescTypeError: an argument is of the wrong kind (T-02 to T-17).

    >>> from vkops.dml import TensorPolicy
    >>> TensorDesc(TensorDataType.FLOAT32, [1, 3, 4, 4], TensorPolicy.interleaved_channel).strides
    (48, 1, 12, 3)
    >>> TensorDesc(TensorDataType.INT8, TensorFlags.OWNED_BY_DML, [3]).total_tensor_size_in_bytes
    4
    """

    @overload
    def __init__(
        self, data_type: TensorDataType, sizes: Sequence[int], tensor_policy: _Policy = ...
    ) -> None: ...

    @overload
    def __init__(
        self, data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None
    ) -> None: ...

    @overload
    def __init__(
        self,
        data_type: TensorDataType,
        flags: TensorFlags,
        sizes: Sequence[int],
        tensor_policy: _Policy = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        data_type: TensorDataType,
        flags: TensorFlags,
        sizes: Sequence[int],
        strides: Sequence[int] | None,
        total_tensor_size_in_bytes: int,
        guaranteed_base_offset_alignment: int,
    ) -> None: ...

    def __init__(self, data_type: Any, *args: Any, **keywords: Any) -> None:
        names = ["sizes", "tensor_policy"]
        if args and not isinstance(args[0], (Sequence, np.ndarray)):
            names = ["flags", *names]
        if len(args) >= len(names) and not callable(args[len(names) - 1]):
            names[-1] = "strides"
        names += ["total_tensor_size_in_bytes", "guaranteed_base_offset_alignment"]
        if len(args) > len(names) or any(name in keywords for name in names[: len(args)]):
            raise TypeError("TensorDesc(): got too many arguments, or one of them twice")
        given = {"sizes": None, **dict(zip(names, args, strict=False)), **keywords}
        policy = given.pop("tensor_policy", None)
        if policy is not None:
            if not callable(policy) or isinstance(policy, type):
                raise Place("", "tensor_policy", "T-07").wrong_kind(policy, "a function")
            sizes = integers(given["sizes"], Place("", "sizes", "T-04"))
            given["strides"] = policy(data_type, sizes).strides
        super().__init__(data_type, **given)
