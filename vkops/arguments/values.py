"""Conversion of callers' arguments to plain Python values, or to errors that name the field."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from enum import Enum, IntEnum, IntFlag
from functools import reduce
from typing import NamedTuple, NoReturn, TypeVar

from vkops.errors import (
    CONVERSION_ERRORS,
    InvalidDescError,
    InvalidDescOverflowError,
    InvalidDescTypeError,
    ModelError,
    show,
)

T = TypeVar("T")
E = TypeVar("E", bound="IntEnum | IntFlag")

_MAX_ENTRIES = 1 << 20
_BOOLEANS = ("bool", "bool_")
"""The types of Python and NumPy, by name; before NumPy 2.3, those of NumPy have an index."""


class ArgumentName(NamedTuple):
    """An argument, as error messages name it: operator, field path and the rule for its kind."""

    operator: str
    field: str
    rule: str

    def item(self, index: int) -> ArgumentName:
        """Return the name of one entry of this array."""
        return ArgumentName(self.operator, f"{self.field}[{index}]", self.rule)

    def wrong_kind(self, value: object, expected: str) -> InvalidDescTypeError:
        """Return the error for a value that is not of the expected kind."""
        message = f"got {show(value)}, must be {expected}"
        return InvalidDescTypeError(self.operator, self.field, message, self.rule)


def refuse(operator: str, field: str, message: str, rule: str) -> NoReturn:
    """Raise an InvalidDescError for an argument."""
    raise InvalidDescError(operator, field, message, rule)


def integer(value: object, argument: ArgumentName) -> int:
    """Return an integer (NumPy's included) as int; booleans are not integers here."""
    if type(value) is int:
        return value
    if type(value).__name__ not in _BOOLEANS:
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise argument.wrong_kind(value, "an integer")


def number(value: object, argument: ArgumentName) -> float:
    """Return a number (NumPy's included) as int or float; booleans are not numbers here."""
    try:
        return integer(value, argument)
    except InvalidDescTypeError:
        pass
    if not isinstance(value, (bool, str, bytes, bytearray)):
        try:
            return float(value)  # type: ignore[arg-type]
        except CONVERSION_ERRORS:
            pass
    raise argument.wrong_kind(value, "a number")


def float32(value: object, argument: ArgumentName) -> float:
    """Return a number rounded to 32 bits, which DirectML's type FLOAT has."""
    exact = number(value, argument)
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", exact))[0]
    except (struct.error, OverflowError):
        message = f"got {show(exact)}, must be a number in the range of FLOAT32"
        raise InvalidDescOverflowError(*argument[:2], message, argument.rule) from None
    return rounded


def instance(kind: type[T], expected: str, value: object, argument: ArgumentName) -> T:
    """Return a value that must be an instance of a class."""
    if isinstance(value, kind):
        return value
    raise argument.wrong_kind(value, expected)


def boolean(value: object, argument: ArgumentName) -> bool:
    """Return True or False, the only values of DirectML's type BOOL here."""
    return instance(bool, "True or False", value, argument)


def model_option(name: str, value: object) -> bool:
    """Return an option for reading a model, True or False: "false" would count as true."""
    if isinstance(value, bool):
        return value
    raise ModelError(f"{name}: got {show(value)}, must be True or False")


def array(
    value: object, argument: ArgumentName, entry: Callable[[object, ArgumentName], T], entries: str
) -> tuple[T, ...]:
    """Return a list, tuple or one-dimensional NumPy array as a tuple, each entry converted."""
    expected = f"a sequence of {entries}"
    if isinstance(value, (str, bytes, bytearray, Mapping, Set, type)):
        raise argument.wrong_kind(value, expected)
    try:
        is_long = len(value) > _MAX_ENTRIES  # type: ignore[arg-type]
        items = [] if is_long else list(value)  # type: ignore[call-overload]
    except TypeError:
        raise argument.wrong_kind(value, expected) from None
    if is_long:
        raise argument.wrong_kind(value, f"{expected}, {_MAX_ENTRIES} at most")
    return tuple([entry(item, argument.item(i)) for i, item in enumerate(items)])


def integers(value: object, argument: ArgumentName) -> tuple[int, ...]:
    """Return a sequence of integers as a tuple."""
    if type(value) is tuple and all(type(item) is int for item in value):
        return value
    return array(value, argument, integer, "integers")


def floats32(value: object, argument: ArgumentName) -> tuple[float, ...]:
    """Return a sequence of numbers, each rounded to 32 bits, as a tuple."""
    return array(value, argument, float32, "numbers")


def member(cls: type[E], value: object, argument: ArgumentName) -> E:
    """Return a member of an enumeration (or a union of flags) for a member or its value."""
    if type(value) is cls or not isinstance(value, Enum):
        with suppress(InvalidDescTypeError):
            number = integer(value, argument)
            is_member = number in cls._value2member_map_
            if issubclass(cls, IntFlag):
                is_member = number & ~reduce(operator.or_, [int(each) for each in cls], 0) == 0
            if is_member:
                return cls(number)
    names = list(cls.__members__)
    joined = " or ".join(names) if len(names) <= 2 else "one of " + ", ".join(names)
    raise argument.wrong_kind(value, f"{joined} ({cls.__name__} or its value)")
