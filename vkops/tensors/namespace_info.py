"""The array API's description of a namespace: its devices, dtypes and capabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vkops.arguments.values import refuse
from vkops.errors import show
from vkops.gpu.adapters.adapter import devices as adapters
from vkops.plan.size_limits import MAX_DIMENSIONS
from vkops.tensors.tensor import Device, DeviceLike, as_device, default_device

bool = np.bool_
"""The array API's name of the dtype; NumPy 1 has it by another name."""

KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


class NamespaceInfo:
    """The inspection functions of the array API (2024.12).

    >>> import vkops
    >>> info = vkops.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"]
    dtype('float64')
    >>> sorted(info.dtypes(kind="real floating"))
    ['float32', 'float64']
    """

    def capabilities(self) -> dict[str, Any]:
        """Masks are indices, and shapes of results depend on elements; such calls wait.

        Data types of complex numbers are only moved: see ``dtypes``.
        """
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": MAX_DIMENSIONS,
        }

    def default_device(self) -> Device:
        """The device that arrays are sent to if none is given."""
        return default_device()

    def devices(self) -> list[Device]:
        """A device of each adapter; all are opened."""
        return [as_device("", info.index) for info in adapters()]

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of results if none is given; the same on all devices."""
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(
        self, *, device: DeviceLike = None, kind: str | Sequence[str] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The dtypes of the array API by name: all, or those of a kind, or of several.

        All devices move all of them, and other dtypes of NumPy.

        Raises:
            InvalidDescError: an unknown kind (ARRAY-19).
        """
        if kind is None:
            kind = ("bool", "numeric")
        dtypes: dict[str, np.dtype[Any]] = {}
        for name in (kind,) if isinstance(kind, str) else kind:
            if name not in tuple(KINDS):
                kinds = ", ".join(map(repr, KINDS))
                refuse("DTYPES", "kind", f"got {show(name)}, must be one of {kinds}", "ARRAY-19")
            dtypes |= {dtype: np.dtype(dtype) for dtype in KINDS[name]}
        return dtypes


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  # the array API's name
    """The inspection functions of the array API."""
    return NamespaceInfo()
