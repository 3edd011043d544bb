"""Declarations of parameters, such as ``"float32 a, T x, raw T table"``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vkops.arguments.refused_operators import REFUSED
from vkops.arguments.values import ArgumentName
from vkops.elementwise.formats import ALWAYS_CODED, CODES, GLSL_TYPES, Code, kind_of
from vkops.errors import InvalidDescError, show
from vkops.runtime.bindings import Elements
from vkops.tensors.operators import Operators
from vkops.tensors.tensor import Tensor, default_device

NAME = re.compile(r"(?!gl_|[in]$)[A-Za-z](?:_?[A-Za-z0-9])*_?", re.ASCII)
_KEYWORDS = re.compile(
    r"""
    active|asm|atomic_uint|attribute|bool|break|case|cast|centroid|class|coherent|
    common|const|continue|default|discard|do|double|else|enum|extern|external|false|
    fixed|flat|float|for|goto|half|highp|if|inline|int|
    interface|invariant|layout|long|lowp|mediump|namespace|noinline|noperspective|
    partition|patch|precise|precision|public|readonly|resource|restrict|return|
    sampler|shared|short|sizeof|smooth|static|struct|subroutine|superp|switch|
    template|this|true|typedef|uint|uniform|union|unsigned|using|varying|void|volatile|
    while|writeonly|
    [biudhf]?vec[234]|[du]?mat[234](x[234])?|[iuf](8|16|32|64)(vec|mat)[234](x[234])?|
    u?int(8|16|32|64)_t|float(16|32|64)_t|
    [iu]?(sampler|image|texture)(1D|2D|3D|Cube|2DRect|Buffer|2DMS)\w*
    """,
    re.VERBOSE | re.ASCII,
)
"""The words of GLSL that cannot be names."""

_RENAMED = {"buffer", "filter", "in", "inout", "input", "out", "output", "sample"}
"""The words of GLSL that can be names: macros rename the variables in operations."""

_OPTION = re.compile(r"-D\s*([A-Za-z_]\w*)(?:=(.*))?", re.ASCII)

_DECLARATION = re.compile(r"(?:(raw)\s+)?(\S+)\s+(\S+)")
_VARIABLE = re.compile(r"[A-Z][A-Za-z0-9]*", re.ASCII)


class Parameter(NamedTuple):
    """A parameter; ``type`` is the name of a data type, or a type variable such as ``T``.

    The operation indexes the elements of a ``raw`` parameter. If a parameter is ``wide``,
    operations compute in 32 bits with elements that have fewer. Elements of a ``raw`` array have
    the GLSL type ``element``, if it is not empty.
    """

    type: str
    name: str
    is_output: bool = False
    raw: bool = False
    wide: bool = False
    element: str = ""

    @property
    def is_variable(self) -> bool:
        """Whether the arguments determine the data type."""
        return self.type not in GLSL_TYPES

    @property
    def variable(self) -> str:
        """The name of the variable in the GLSL."""
        return f"_{self.name}" if self.name in _RENAMED else self.name


@dataclass(eq=False)
class Operand:
    """A parameter in a call.

    Attributes:
        parameter: the parameter.
        dtype: the data type of its elements; first that of the value, if it has one.
        array: the number of its array, or None for a scalar.
        value: a tensor, an array, a number, or None for an output that is to be made.
        elements: where the elements of an array are.
        in_words: whether the device reads and writes elements as parts of words of 32 bits.
    """

    parameter: Parameter
    dtype: np.dtype[Any]
    array: int | None = None
    value: Any = None
    elements: Elements = dataclasses.field(init=False)
    in_words: bool = False

    @property
    def is_array(self) -> bool:
        """Whether the value has elements in memory."""
        return isinstance(self.value, (Tensor, np.ndarray))

    @property
    def code(self) -> Code | None:
        """The conversion of elements from bits; None if GLSL has their type."""
        name = self.dtype.name
        return CODES.get(name) if self.parameter.wide or name in ALWAYS_CODED else None

    @property
    def type(self) -> str:
        """The GLSL type of the elements in the operation."""
        code = self.code
        glsl_type = GLSL_TYPES[self.dtype.name] if code is None else code.type
        return self.parameter.element or glsl_type

    @property
    def passed_dtype(self) -> np.dtype[Any]:
        """The data type in which a scalar is passed to the device; it has 4 or 8 bytes."""
        wide = {"b": "u4", "u": "u4", "i": "i4", "f": "f4"}
        return np.dtype(wide[kind_of(self.dtype)]) if self.dtype.itemsize < 4 else self.dtype

    @property
    def expression(self) -> str:
        """The GLSL of an element or a scalar as an operand."""
        name, code, number = self.parameter.name, self.code, self.array
        if number is None:
            value = f"_value_{name}"
            if kind_of(self.dtype) == "b":
                return f"{value} != 0u"
            is_rounded = code is not None and code.functions
            return code.rounded(value) if code and is_rounded else f"{self.type}({value})"
        memory = f"_memory_{name}"
        if code is None:
            return f"{memory}[_at{number}]"
        bits = f"uint({memory}[_at{number}])"
        if self.in_words:
            word = self._word
            # An output's element is written next; other invocations write the word's other bits.
            if self.parameter.is_output:
                word = f"atomicAnd({word}, ~({self._mask} << {self._place}))"
            bits = f"({word} >> {self._place} & {self._mask})"
        return code.decoded.format(bits)

    @property
    def stored(self) -> str:
        """The GLSL that writes an element of an output, after that which reads it."""
        name, code, number = self.parameter.name, self.code, self.array
        memory, value = f"_memory_{name}", f"_element_{name}"
        if code is None:
            return f"{memory}[_at{number}] = {value};"
        bits = code.encoded.format(value)
        if not self.in_words:
            return f"{memory}[_at{number}] = {self._narrow}({bits});"
        return f"atomicOr({self._word}, (({bits}) & {self._mask}) << {self._place});"

    @property
    def block(self) -> str:
        """The GLSL of the block of an array."""
        _, name, is_output, raw, *_ = self.parameter
        is_coded = self.code is not None
        element = "uint" if self.in_words else self._narrow if is_coded else self.type
        array = f"{element} {self.parameter.variable if raw else f'_memory_{name}'}[];"
        access = "buffer" if is_output else "readonly buffer"
        return f"layout(std430, binding = {self.array}) {access} _Block_{name} {{ {array} }};"

    @property
    def _narrow(self) -> str:
        return f"uint{8 * self.dtype.itemsize}_t"

    @property
    def _word(self) -> str:
        shift = 3 - self.dtype.itemsize  # to get a word's number from an element's
        return f"_memory_{self.parameter.name}[_at{self.array} >> {shift}]"

    @property
    def _place(self) -> str:
        mask, bits = 4 // self.dtype.itemsize - 1, 8 * self.dtype.itemsize
        return f"(_at{self.array} & {mask}) * {bits}"

    @property
    def _mask(self) -> str:
        return f"{(1 << 8 * self.dtype.itemsize) - 1}u"


class Symbol(Operators):
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


def _refuse_symbol(name: str) -> Callable[..., Any]:
    return lambda self, *_: self.__getattr__(name)


_OTHERS = ["__bool__", "__float__", "__getitem__", "__index__", "__iter__", "__len__"]
_OTHERS += ["__matmul__", "__rmatmul__"]  # not kernels of elements
for _name in _OTHERS:
    setattr(Symbol, _name, _refuse_symbol(_name))
for _name in REFUSED:
    if not hasattr(Operators, _name):
        setattr(Symbol, _name, _refuse_symbol(_name))


def renamings(parameters: Iterable[Parameter], directive: str = "define") -> list[str]:
    """Return the lines that define or undefine macros for parameters with renamed variables."""
    return [
        f"#{directive} {each.name}{f' {each.variable}' * (directive == 'define')}"
        for each in parameters
        if each.variable != each.name
    ]


def with_options(name: str, preamble: str, options: object) -> str:
    """Return a preamble after the macros that options such as ``-DSIZE=4`` define (EW-01)."""
    if isinstance(options, str) or not isinstance(options, Sequence):
        raise ArgumentName(name, "options", "EW-01").wrong_kind(options, "a tuple of options")
    lines = []
    for option in options:
        match = _OPTION.fullmatch(option) if isinstance(option, str) else None
        if match is None:
            message = f"got {show(option)}, must be -DNAME or -DNAME=VALUE: kernels are in GLSL"
            raise InvalidDescError(name, "options", message, "EW-01")
        lines.append(f"#define {match[1]} {'1' if match[2] is None else match[2]}")
    return "\n".join([*lines, f'#line 1 "{name} preamble"', preamble]) if lines else preamble


def check_texts(**texts: object) -> None:
    """Raise an error if a text is not a string, or if ``name`` is wrong (EW-01)."""
    for field, text in texts.items():
        if not isinstance(text, str) or (field == "name" and not NAME.fullmatch(text)):
            kind = "letters, digits and underscores" if field == "name" else "a string"
            raise InvalidDescError("", field, f"got {show(text)}, must be {kind}", "EW-01")


def parse(
    name: str, in_params: str, out_params: str, *, raw_outputs: bool = False
) -> tuple[Parameter, ...]:
    """Return the inputs and outputs that are declared (EW-01).

    >>> parse("kernel", "raw T x", "float32 y")[0]
    Parameter(type='T', name='x', is_output=False, raw=True, wide=False, element='')
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
