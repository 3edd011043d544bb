"""Declaration of the fields of operator descriptors, and the kinds and structures of values."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from vkops.arguments import values
from vkops.arguments.values import ArgumentName
from vkops.dml.tensor_desc import UINT32_MAX, BufferTensorDesc

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[T], T]:
        """Tell type checkers that a decorator makes dataclasses; nothing else reads it."""
        return lambda decorator: decorator


T = TypeVar("T")
Role = Literal["input", "output", "attribute"]


@dataclass(frozen=True)
class ScaleBias:
    """Multiply by scale, then add bias; validation does not allow it (IDENT-02).

    Source: DML_SCALE_BIAS.

    Raises:
        InvalidDescError: scale or bias is not a number, or not one that 32 bits can hold.
    """

    scale: float
    bias: float

    def __post_init__(self) -> None:
        for name in ("scale", "bias"):
            vars(self)[name] = values.float32(
                getattr(self, name), ArgumentName("", name, "IDENT-02")
            )


@dataclass(frozen=True)
class Size2D:
    """Width and height.

    Source: DML_SIZE_2D.

    Raises:
        InvalidDescTypeError: width or height is not an integer.
    """

    width: int
    height: int

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            vars(self)[name] = values.integer(getattr(self, name), ArgumentName("", name, "UPS-02"))


class Kind(NamedTuple):
    """A kind of values of fields.

    Attributes:
        name: its name.
        annotation: the type of the values, as text.
        convert: converts a value; raises InvalidDescTypeError for one of another kind, and
            InvalidDescOverflowError for a float that is too large for 32 bits.
        bounds: the least and the greatest value, or entry of an array, that descriptors accept.
        entry: the kind of the entries, if this is a kind of arrays.
    """

    name: str
    annotation: str
    convert: Callable[[object, ArgumentName], Any]
    bounds: tuple[int, int] | None = None
    entry: Kind | None = None


def _tensor(value: object, argument: ArgumentName) -> BufferTensorDesc:
    if isinstance(value, BufferTensorDesc):
        return value
    # None stands for a null pointer; anything else is a tensor of another type than BUFFER.
    rule = argument.rule if value is None else "T-01"
    raise argument._replace(rule=rule).wrong_kind(value, "a BufferTensorDesc")


def _tensors(value: object, argument: ArgumentName) -> tuple[BufferTensorDesc, ...]:
    return values.array(value, argument, _tensor, "BufferTensorDesc")


TENSOR = Kind("tensor", "BufferTensorDesc", _tensor)
TENSORS = Kind("tensor_array", "Sequence[BufferTensorDesc]", _tensors, entry=TENSOR)
UINT = Kind("uint", "int", values.integer)  # of any size: the rules of the operators limit it
INT = Kind("int", "int", values.integer, (-(2**31), 2**31 - 1))
UINTS = Kind("uint_array", "Sequence[int]", values.integers, (0, UINT32_MAX), UINT)
INTS = Kind("int_array", "Sequence[int]", values.integers, INT.bounds, INT)
BOOL = Kind("bool", "bool", values.boolean)
FLOAT = Kind("float", "float", values.float32)  # DirectML's FLOAT: a number of 32 bits
FLOATS = Kind("float_array", "Sequence[float]", values.floats32, entry=FLOAT)
SCALAR = Kind("scalar", "float", values.number)  # DML_SCALAR_UNION
SCALE_BIAS = Kind(
    "scale_bias", "ScaleBias", partial(values.instance, ScaleBias, "a ScaleBias or None")
)
SIZE_2D = Kind("size_2d", "Size2D", partial(values.instance, Size2D, "a Size2D"))


@dataclass(frozen=True)
class Field:
    """One field of an operator descriptor.

    Attributes:
        name: name in Python; dml_name is DirectML's.
        kind: kind of its values.
        role: whether it is an input, an output or an attribute. Tensors are bound in the order of
            their fields; attributes are fixed when the operator is created.
        rule: the rule that is broken by a value of the wrong kind, or of more than 32 bits.
        optional: whether None is allowed.
        count: DirectML's field for the length of this array; Python needs none.
        enum: the enumeration of the values, if the kind is enum.
        data_type: the field that names the data type of this scalar.
        holds_indices: whether this tensor has a data type of its own, because it holds indices.
        any_rank: whether this tensor may have another rank than the others.
    """

    name: str
    dml_name: str
    kind: Kind
    role: Role
    rule: str
    optional: bool = False
    count: str | None = None
    enum: type[IntEnum] | None = None
    data_type: str | None = None
    holds_indices: bool = False
    any_rank: bool = False

    def convert(self, operator: str, value: object) -> Any:
        """Convert a value to the type of the field's kind.

        Raises:
            InvalidDescTypeError: it is of another kind.
            InvalidDescOverflowError: it is a float, or an array of them, and too large for 32 bits.
        """
        if value is None and self.optional:
            return None
        return self.kind.convert(value, ArgumentName(operator, self.name, self.rule))


# -- declarations ----------------------------------------------------------------------------------


def tensor(role: Role, *, optional: bool = False, any_rank: bool = False) -> Any:
    """Declare a tensor."""
    return _declared(TENSOR, "T-18", role=role, optional=optional, any_rank=any_rank)


def indices(*, any_rank: bool = False) -> Any:
    """Declare an input tensor of indices, whose data type is not that of the other tensors."""
    return _declared(TENSOR, "T-18", role="input", holds_indices=True, any_rank=any_rank)


def tensors(role: Role, rule: str, count: str) -> Any:
    """Declare an array of tensors whose length is DirectML's field ``count``."""
    return _declared(TENSORS, rule, role=role, count=count)


def attribute(
    kind: Kind, rule: str, count: str = "DimensionCount", *, default: Any = dataclasses.MISSING
) -> Any:
    """Declare an attribute; the length of an array is DirectML's field ``count``.

    With ``default=None``, the attribute may be None or left out.
    """
    length = count if kind.entry else None
    return _declared(kind, rule, default=default, count=length, optional=default is None)


def enumeration(enum: type[IntEnum], rule: str) -> Any:
    """Declare an attribute that is a member of an enumeration."""
    return _declared(Kind("enum", enum.__name__, partial(values.member, enum)), rule, enum=enum)


def scalar(rule: str, data_type: str) -> Any:
    """Declare a number of the data type that the field ``data_type`` names."""
    return _declared(SCALAR, rule, data_type=data_type)


def _declared(
    kind: Kind,
    rule: str,
    *,
    role: Role = "attribute",
    default: Any = dataclasses.MISSING,
    **more: object,
) -> Any:
    metadata = {"kind": kind, "role": role, "rule": rule, **more}
    return dataclasses.field(default=default, metadata=metadata)


def declared_fields(cls: type) -> tuple[Field, ...]:
    """Return the fields that a class declares itself, in their order."""
    declared = ((name, vars(cls).get(name)) for name in cls.__annotations__)
    return tuple(
        Field(name, name.title().replace("_", ""), **field.metadata)
        for name, field in declared
        if isinstance(field, dataclasses.Field)
    )


@dataclass_transform(
    frozen_default=True, field_specifiers=(tensor, indices, tensors, attribute, enumeration, scalar)
)
def descriptor(cls: type[T]) -> type[T]:
    """Make a frozen dataclass of a class whose fields are declared with the functions above.

    The docstring of an operator's descriptor is completed with its source, the texts about fields
    from the docstrings of its bases, and the errors that all descriptors raise.
    """
    documented = cls.__doc__ is not None  # not if Python drops docstrings; a dataclass has one
    frozen = dataclass(frozen=True)(cls)
    if documented and (operator := getattr(frozen, "operator", None)):
        text, prompt, example = cleandoc(frozen.__doc__ or "").partition(">>>")
        about = text.partition("Attributes:\n")[0].rstrip()
        texts, declared = texts_of(frozen), getattr(frozen, "FIELDS", ())
        attributes = "\n".join(f"    {f.name}: {texts[f.name]}" for f in declared)
        has_floats = any(FLOAT in (f.kind, f.kind.entry) for f in declared)
        errors = _ERRORS + _OVERFLOW_ERROR if has_floats else _ERRORS
        source = f"Source: DML_{operator}_OPERATOR_DESC."
        parts = (about, source, f"Attributes:\n{attributes}", f"{errors}\n{prompt}{example}")
        frozen.__doc__ = "\n\n".join(parts)
    return frozen


def texts_of(kind: type) -> dict[str, str]:
    """Return the texts about fields in the docstrings of a descriptor and of its bases."""
    texts: dict[str, str] = {}
    for cls in reversed(kind.__mro__):
        text = cleandoc(cls.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        texts.update(re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE))
    return texts


_ERRORS = """\
Raises:
    InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.
"""
_OVERFLOW_ERROR = "    InvalidDescOverflowError: a float is too large for 32 bits.\n"
