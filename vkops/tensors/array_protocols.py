"""The protocols by which other libraries find the functions for tensors: vkops is the namespace."""

from __future__ import annotations

import importlib
from types import ModuleType

from vkops.errors import InvalidDescError, show

API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Versions of the array API whose functions for creating, moving and indexing elements are here."""


class ArrayProtocols:
    """Methods that lead from tensors to the functions of vkops."""

    __slots__ = ()

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The module ``vkops``: the array API's functions that move data are its functions.

        Raises:
            InvalidDescError: an unknown version of the array API (ARRAY-19).
        """
        if not (api_version is None or api_version in API_VERSIONS):
            message = f"got {show(api_version)}, must be one of {', '.join(API_VERSIONS)}"
            raise InvalidDescError("__array_namespace__", "api_version", message, "ARRAY-19")
        return importlib.import_module("vkops")
