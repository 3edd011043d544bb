"""The operators of DirectML that vkops has, one module for each, or for several similar ones.

``vkops.dml`` imports the module of an operator when the operator is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from vkops.dml.levels import SUPPORT, class_name
from vkops.errors import import_late

if TYPE_CHECKING:
    from vkops.dml.operator_desc import OperatorDesc


class _Operators(Mapping[str, "type[OperatorDesc]"]):
    def __getitem__(self, name: str) -> type[OperatorDesc]:
        if name not in SUPPORT:
            raise KeyError(name)
        descriptor: type[OperatorDesc] = getattr(import_late("vkops.dml"), class_name(name))
        return descriptor

    def __iter__(self) -> Iterator[str]:
        return iter(SUPPORT)

    def __len__(self) -> int:
        return len(SUPPORT)


OPERATORS: Mapping[str, type[OperatorDesc]] = _Operators()
"""The descriptors of the operators vkops offers, by DirectML's name without its prefix."""
