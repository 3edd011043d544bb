"""Declarations of parameters, such as ``"float32 a, T x, raw T table"``."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vkops.arguments.refused_operators import REFUSED
from vkops.errors import InvalidDescError, show
from vkops.runtime.bindings import Elements
from vkops.tensors.tensor import Tensor, default_device

GLSL_TYPES = {
    "bool": "bool", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint", "uint64": "uint64_t",
    "float16": "float16_t", "float32": "float", "float64": "double",
}  # fmt: skip
"""The GLSL type of each data type that elements can have."""

_GLSL_TYPES = {np.dtype(name): type_ for name, type_ in GLSL_TYPES.items()}
"""The same by the data types themselves, whose names NumPy computes each time."""

FORMATS = dict(zip(_GLSL_TYPES, "?bhiqBHIQefd", strict=True))
"""The format by which the module struct packs each."""

NAME = re.compile(r"(?!gl_|[in]$)[A-Za-z](?:_?[A-Za-z0-9])*_?", re.ASCII)
_KEYWORDS = re.compile(
    r"""
    active|asm|atomic_uint|attribute|bool|break|buffer|case|cast|centroid|class|coherent|
    common|const|continue|default|discard|do|double|else|enum|extern|external|false|
    filter|fixed|flat|float|for|goto|half|highp|if|in|inline|inout|input|int|
    interface|invariant|layout|long|lowp|mediump|namespace|noinline|noperspective|out|
    output|partition|patch|precise|precision|public|readonly|resource|restrict|return|
    sample|sampler|shared|short|sizeof|smooth|static|struct|subroutine|superp|switch|
    template|this|true|typedef|uint|uniform|union|unsigned|using|varying|void|volatile|
    while|writeonly|
    [biudhf]?vec[234]|[du]?mat[234](x[234])?|[iuf](8|16|32|64)(vec|mat)[234](x[234])?|
    u?int(8|16|32|64)_t|float(16|32|64)_t|
    [iu]?(sampler|image|texture)(1D|2D|3D|Cube|2DRect|Buffer|2DMS)\w*
    """,
    re.VERBOSE | re.ASCII,
)
"""The words of GLSL that cannot be names."""

_DECLARATION = re.compile(r"(?:(raw)\s+)?(\S+)\s+(\S+)")
_VARIABLE = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)


class Parameter(NamedTuple):
    """A parameter: ``type`` is the name of a data type, or a type variable such as ``T``.

    A ``raw`` parameter is indexed by the operation.
    """

    type: str
    name: str
    is_output: bool = False
    raw: bool = False

    @property
    def is_variable(self) -> bool:
        """Whether the arguments decide the data type."""
        return self.type not in GLSL_TYPES


@dataclass(eq=False)
class Operand:
    """A parameter in a call.

    Attributes:
        parameter: the parameter.
        dtype: the data type of its elements; first that of the value, if it has one.
        array: the number of its array, or None for a scalar.
        value: a tensor, an array, a number, or None for an output that is to be made.
        elements: where the elements of an array are.
    """

    parameter: Parameter
    dtype: np.dtype[Any]
    array: int | None = None
    value: Any = None
    elements: Elements = dataclasses.field(init=False)

    @property
    def is_array(self) -> bool:
        """Whether the value has elements in memory."""
        return isinstance(self.value, (Tensor, np.ndarray))

    @property
    def type(self) -> str:
        """The GLSL type of the elements."""
        return _GLSL_TYPES[self.dtype]

    @property
    def passed_dtype(self) -> np.dtype[Any]:
        """The data type in which a scalar is passed to the device: one of 4 or 8 bytes."""
        wide = {"b": "u4", "u": "u4", "i": "i4", "f": "f4"}
        return np.dtype(wide[self.dtype.kind]) if self.dtype.itemsize < 4 else self.dtype

    @property
    def expression(self) -> str:
        """The GLSL of an element or a scalar."""
        name = self.parameter.name
        value = f"_value_{name}" if self.array is None else f"_memory_{name}[_at{self.array}]"
        if self.dtype.kind == "b":
            return f"uint({value}) != 0u"
        return value if self.array is not None else f"{self.type}({value})"

    @property
    def block(self) -> str:
        """The GLSL of the block of an array."""
        _, name, is_output, raw = self.parameter
        element = "uint8_t" if self.dtype.kind == "b" else self.type
        array = f"{element} {name if raw else f'_memory_{name}'}[];"
        access = "buffer" if is_output else "readonly buffer"
        return f"layout(std430, binding = {self.array}) {access} _Block_{name} {{ {array} }};"


class Symbol:
    """A value in a function that is being fused; ``trace`` records the kernels that are called."""

    def __init__(self, trace: Any, name: str) -> None:
        self.trace: Any = trace
        self.name: str = name

    @property
    def device(self) -> Any:
        """The device of the arguments."""
        return self.trace.device or default_device()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type."""
        dtype: np.dtype[Any] | None = self.trace.dtypes[self.name]
        return self.__getattr__("the data type of a number") if dtype is None else dtype

    def __getattr__(self, name: str) -> Any:
        return self.trace.refuse("value", f"is used with {name}, which is not a kernel")


_OTHERS = ("__bool__", "__eq__", "__float__", "__getitem__", "__index__", "__iter__", "__len__")
for _name in (*REFUSED, *_OTHERS):
    setattr(Symbol, _name, lambda self, *_, name=_name: self.__getattr__(name))


def check_texts(**texts: object) -> None:
    """Refuse anything but texts, and a wrong ``name`` (EW-01)."""
    for field, text in texts.items():
        if not isinstance(text, str) or (field == "name" and not NAME.fullmatch(text)):
            kind = "letters, digits and underscores" if field == "name" else "a string"
            raise InvalidDescError("", field, f"got {show(text)}, must be {kind}", "EW-01")


def parse(
    name: str, in_params: str, out_params: str, *, raw_outputs: bool = False
) -> tuple[Parameter, ...]:
    """Return the inputs and outputs that are declared (EW-01).

    >>> parse("kernel", "raw T x", "float32 y")[0]
    Parameter(type='T', name='x', is_output=False, raw=True)
    """
    inputs = in_params.split(",") if in_params.strip() else []
    parameters = [_parameter(name, f"in_params[{i}]", text) for i, text in enumerate(inputs)]
    for i, text in enumerate(out_params.split(",")):
        parameters.append(_parameter(name, f"out_params[{i}]", text, is_output=True))
        if parameters[-1].raw and not raw_outputs:
            message = "is a raw output, must not be: only inputs can be raw"
            raise InvalidDescError(name, f"out_params[{i}]", message, "EW-01")
    names = [name for parameter in parameters for name in {parameter.name, parameter.type}]
    for parameter in parameters:
        if names.count(parameter.name) > 1:
            message = f"got the name {parameter.name} twice, must be once"
            raise InvalidDescError(name, "parameters", message, "EW-01")
    return tuple(parameters)


def _parameter(name: str, field: str, text: str, *, is_output: bool = False) -> Parameter:
    match = _DECLARATION.fullmatch(text.strip())
    raw, type_, identifier = match.groups() if match else ("", "", "")
    message = ""
    if match is None:
        message = f"got {show(text.strip())}, must be a type and a name, such as 'float32 x'"
    elif type_ not in GLSL_TYPES and not _VARIABLE.fullmatch(type_):
        types = ", ".join(GLSL_TYPES)
        message = f"got type {show(type_)}, must be {types}, or a type variable such as T"
    elif not NAME.fullmatch(identifier):
        message = f"got name {show(identifier)}, must begin with a letter, and not be i or n"
    elif _KEYWORDS.fullmatch(identifier):
        message = f"got name {show(identifier)}, which is a word of GLSL, must be another"
    if message:
        raise InvalidDescError(name, field, message, "EW-01")
    return Parameter(type_, identifier, is_output, bool(raw))
