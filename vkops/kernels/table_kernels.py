"""Kernels of the table of arithmetic for data types, by NumPy's rule, and their calls."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, refuse
from vkops.elementwise.formats import CODES, EXTENSION_FLOATS, GLSL_TYPES, Code, dtype_of, kind_of
from vkops.elementwise.numeric import functions
from vkops.elementwise.parameters import Parameter, Symbol
from vkops.errors import (
    InvalidDescError,
    InvalidDescOverflowError,
    InvalidDescTypeError,
    VkopsError,
    show,
)
from vkops.kernels.axis_kernel import InnerKernel, builtin
from vkops.kernels.functions import NEEDED
from vkops.kernels.table import Entry
from vkops.tensors.creation import full
from vkops.tensors.exchange import as_array, as_dtype
from vkops.tensors.tensor import DeviceLike, Tensor

_NAMES = {1: ("x",), 2: ("x1", "x2"), 3: ("x", "low", "high")}
"""The names of operands in errors, by their number."""

_WEAK = (bool, int, float)
_MAX_KERNELS = 1024
_OPERAND = re.compile(r"\b[xyzT]\b")
_COMPARISONS = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt,
    "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
_ORDERS = {
    # The sign of x - y, where one of them is unsigned.
    "i": "(_x < int64_t(0) || uint64_t(_x) < _y ? -1 : uint64_t(_x) > _y ? 1 : 0)",
    "u": "(_y < int64_t(0) || uint64_t(_y) < _x ? 1 : uint64_t(_y) > _x ? -1 : 0)",
}

DType = np.dtype[Any]


# -- data types ------------------------------------------------------------------------------------


def _dtypes(entry: Entry, kinds: Sequence[Any], dtype: DType | None) -> tuple[DType, ...]:
    """The data types of operands and of the result, by NumPy's rule (ARITH-01).

    ``kinds`` are the data types of operands, and the types of Python's numbers.
    """
    kinds = [np.dtype(bool) if kind is bool else kind for kind in kinds]
    for field, kind in zip(_NAMES[len(kinds)], kinds, strict=True):
        if isinstance(kind, np.dtype) and kind.name not in GLSL_TYPES:
            message = f"has data type {kind}, must be one of {', '.join(GLSL_TYPES)}"
            refuse(entry.name, field, message, "EW-04")
    if any(isinstance(kind, np.dtype) and kind.name in EXTENSION_FLOATS for kind in kinds):
        # NumPy 1 resolves Python's integers to another type than its own calls do.
        kinds = [np.dtype(np.int8) if kind is int else kind for kind in kinds]
    try:
        if not entry.ufunc:
            common = dtype or common_dtype(kinds)
            return (common,) * (len(kinds) + 1)
        resolve: Any = getattr(np, entry.ufunc).resolve_dtypes
        signature = {} if dtype is None else {"signature": (None,) * len(kinds) + (dtype,)}
        resolved: tuple[DType, ...] = resolve((*kinds, None), **signature)
    except TypeError as error:
        names = ", ".join([getattr(kind, "__name__", f"{kind}") for kind in kinds])
        chosen = f" with dtype={dtype}" * (dtype is not None)
        message = f"has no rule for {names}{chosen}: {' '.join(str(error).split())}"
        raise InvalidDescTypeError(entry.name, "arguments", message, "ARITH-01") from error
    return resolved


def common_dtype(kinds: Sequence[Any]) -> DType:
    """The data type of operands together; Python's numbers take that of the others.

    Raises:
        TypeError: there is none.
    """
    common: DType = np.dtype(reduce(_common, kinds))
    return common


def _common(a: Any, b: Any) -> Any:
    """The data type of two operands together."""
    resolve: Any = np.maximum.resolve_dtypes
    return resolve((a, b, None))[-1]


def _may_cast(source: DType, target: DType) -> bool:
    """Whether NumPy lets a result of a data type be written to an array of another one."""
    if kind_of(source) == "f" == kind_of(target):
        return True
    return np.can_cast(
        source, np.dtype(np.float64) if kind_of(target) == "f" else target, "same_kind"
    )


# -- kernels ---------------------------------------------------------------------------------------


def _code(dtype: DType) -> Code | None:
    return CODES.get(dtype.name)


def _type(dtype: DType) -> str:
    """The GLSL type in which elements are computed."""
    code = _code(dtype)
    return GLSL_TYPES[dtype.name] if code is None else code.type


def _converted(value: str, source: DType, target: DType) -> tuple[str, str]:
    """The GLSL of a value of another data type, rounded to nearest, and of functions for it."""
    if source == target:
        return value, ""
    code, called = _code(target), ""
    if kind_of(target) == "b":
        is_float = kind_of(source) == "f"
        wide = _computed(source)
        return (
            (f"vk_true({value})", functions("vk_true(", wide))
            if is_float
            else (f"bool({value})", "")
        )
    if source == np.float64 and code and code.functions:
        value, called = f"vk_to_odd({value})", functions("vk_to_odd(", source)
    if target == np.int64 and kind_of(source) == "i":
        # Mesa 22.3's lavapipe compares int64_t(x) with constants as if it had no sign.
        return f"packInt2x32(ivec2({value}, {value} >> 31))", ""
    value = f"{_type(target)}({value})"
    if code and not np.can_cast(source, target):
        value, called = code.rounded(value), called + code.functions
    return value, called


def _computed(dtype: DType) -> DType:
    """The data type of 32 or 64 bits in which elements are computed."""
    code = _code(dtype)
    if code is None or code.type == "bool":
        return dtype
    return np.dtype({"int": "int32", "uint": "uint32", "float": "float32"}[code.type])


def _kernel(
    entry: Entry, sources: Sequence[DType], dtypes: Sequence[DType], target: DType, masked: bool
) -> InnerKernel:
    """The kernel for arrays of data types, operands and a result of other ones, and ``target``."""
    *operands, result = dtypes
    kinds, computed = [kind_of(each) for each in operands], _computed(operands[0])
    expression = entry.expression(kinds[0])
    if expression is None:
        given = ", ".join(map(str, sources))
        message = f"has no rule for {given}: its operands would be {operands[0]}"
        raise InvalidDescTypeError(entry.name, "arguments", message, "ARITH-01")
    code = _code(operands[0])
    if entry.name == "nextafter" and code:  # a step is one of the bits
        if code.bits < 16:
            message = f"has no rule for {operands[0]}"
            raise InvalidDescTypeError(entry.name, "arguments", message, "ARITH-01")
        x, y = (code.encoded.format(each) for each in "xy")
        stepped = code.decoded.format(f"vk_next_bits({x}, {y}, {1 << (code.bits - 1)}u)")
        expression = f"vk_isnan(x) || vk_isnan(y) ? vk_nan(x) : {stepped}"
    if {*kinds} == {"i", "u"}:
        order = _ORDERS[kinds[0]]
        expression = f"{order} {expression.split()[1]} 0"
    names = {"x": "_x", "y": "_y", "z": "_z", "T": _type(operands[0])}
    called = (code.functions if code else "") + functions(expression, computed)
    expression = _OPERAND.sub(lambda match: names[match[0]], expression)
    fields, lines = _NAMES[len(operands)], []
    for field, name, source, operand in zip(fields, "xyz", sources, operands, strict=False):
        value, needed = _converted(field, source, operand)
        called += needed
        lines.append(f"const {_type(operand)} _{name} = {value};")
    lines.append(f"precise {_type(result)} _result = {_type(result)}({expression});")
    value = "_result"
    code = _code(result)
    if code and target != result:  # as the function rounds it
        value, called = code.rounded(value), called + code.functions
    value, needed = _converted(value, result, target)
    lines.append(f"{'if (where) ' * masked}result = {value};")
    params = [Parameter(s.name, f, wide=True) for s, f in zip(sources, fields, strict=True)]
    if masked:
        params.append(Parameter("bool", "where", wide=True))
    params.append(Parameter(target.name, "result", is_output=True, wide=True))
    return builtin(
        InnerKernel((*params,), "\n".join(lines), entry.name.strip("_"), called + needed)
    )


# -- calls -----------------------------------------------------------------------------------------


class TableCalls:
    """The calls of a function: its kernels, and how arguments become theirs.

    ``plain`` has the kernels of calls without options, by the data types of tensors and the types
    of other operands.
    """

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.plain: dict[Any, Any] = {}
        self._kernels: dict[Any, InnerKernel] = {}

    def __call__(
        self,
        values: Sequence[Any],
        out: Any,
        where: Any,
        dtype: Any,
        device: DeviceLike,
    ) -> Any:
        """Call the function; errors are those of ``vkops.add``."""
        name = self.entry.name
        fields = _NAMES[len(values)]
        values = [operand_of(name, *pair) for pair in zip(fields, values, strict=True)]
        symbols = [each for each in (*values, where) if isinstance(each, Symbol)]
        out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        if out is not None and not isinstance(out, Tensor) and not symbols:
            raise ArgumentName(name, "out", "EW-03").wrong_kind(out, "a tensor to write to")
        chosen = None if dtype is None else as_dtype(name, dtype)
        kinds = tuple([kind_of_operand(each) for each in values])
        masked = where is not True
        target = out.dtype if isinstance(out, Tensor) else None
        key = kinds, chosen, target, masked
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._new_kernel(kinds, chosen, target, masked)
            if len(self._kernels) >= _MAX_KERNELS:
                self._kernels.clear()
                self.plain.clear()
            self._kernels[key] = kernel
        if masked:
            where = where if isinstance(where, (Tensor, Symbol, bool)) else as_array(where)
            values.append(where)
        if symbols:
            return symbols[0].trace.call(kernel, values, out=out)
        # Of Python's numbers that stand for Booleans, 0 is false.
        typed = [
            bool(each) if type(each) in (int, float) and parameter.type == "bool" else each
            for each, parameter in zip(values, kernel._params, strict=False)
        ]
        is_plain = chosen is None and target is None and not masked
        is_plain = is_plain and all(a is b for a, b in zip(typed, values, strict=True))
        values = typed
        is_integer = kernel._params[0].type[0] in "iub"
        if name == "pow" and is_integer and type(values[1]) is int and values[1] < 0:
            message = f"got {show(values[1])}, must be at least 0 for integers"
            raise InvalidDescError(name, "x2", message, "ARITH-03")
        try:
            result = kernel(*values, out=out, device=device)
        except InvalidDescOverflowError as error:
            return self._beyond(kernel, values, out, device, error)
        except VkopsError as error:
            self._name_dtype(kernel, error)
            raise
        if is_plain and not (name == "pow" and is_integer):
            keys = tuple([_key(each) for each in values])
            if np.ndarray not in keys:
                self.plain[keys if len(keys) > 1 else keys[0]] = kernel
        return result

    def _new_kernel(
        self, kinds: Sequence[Any], dtype: DType | None, target: DType | None, masked: bool
    ) -> InnerKernel:
        dtypes = _dtypes(self.entry, kinds, dtype)
        # Python's numbers have the data types of the operands that they become.
        pairs = zip(kinds, dtypes, strict=False)
        sources = [kind if isinstance(kind, np.dtype) else operand for kind, operand in pairs]
        if target is not None and not _may_cast(dtypes[-1], target):
            message = f"has data type {target}, to which {dtypes[-1]} cannot be cast"
            raise InvalidDescTypeError(self.entry.name, "out", message, "ARITH-02")
        native = [each.newbyteorder("=") if not each.isnative else each for each in sources]
        return _kernel(self.entry, native, dtypes, target or dtypes[-1], masked)

    def _beyond(
        self, kernel: InnerKernel, values: list[Any], out: Any, device: DeviceLike, error: Exception
    ) -> Any:
        """The result with a number of Python that its data type cannot hold, as in NumPy.

        A float becomes infinity, and comparisons with an integer have the same result everywhere.
        """
        floats = [type(each) is float and abs(each) < np.inf for each in values]
        if any(floats):
            values = [self._limited(kernel, k, each) for k, each in enumerate(values)]
            return kernel(*values, out=out, device=device)
        compare = _COMPARISONS.get(self.entry.name)
        numbers = [type(each) is int for each in values]
        if compare is None or numbers.count(True) != 1 or out is not None or len(values) != 2:
            raise error
        array = values[numbers.index(False)]
        result = compare(*[0 if each is array else each for each in values])
        home = array.device if isinstance(array, Tensor) else device
        return full(np.shape(array), bool(result), device=device or home)

    def _limited(self, kernel: InnerKernel, number: int, value: Any) -> Any:
        if type(value) is not float:
            return value
        with np.errstate(over="ignore"):
            return float(np.asarray(value).astype(dtype_of(kernel._params[number].type)))

    def _name_dtype(self, kernel: InnerKernel, error: VkopsError) -> None:
        """Say which data type the device lacks (SH-02), instead of the features of a shader."""
        if getattr(error, "rule", "") != "SH-02":
            return
        missing = [feature for feature in NEEDED.values() if feature in str(error)]
        types = [each.type for each in kernel._params if NEEDED.get(each.type) in missing]
        if missing:
            lacking = (
                f"is {types[0]}, which needs {NEEDED[types[0]]}" if types else f"needs {missing[0]}"
            )
            message = f"{lacking}, which the device does not have: "
            message += "give arrays of another data type, or another dtype="
            refuse(self.entry.name, "dtype", message, "SH-02")


def operand_of(name: str, field: str, value: Any) -> Any:
    """A tensor, an array, a number or a symbol (EW-03), in the byte order of the host."""
    if isinstance(value, Tensor) and not value.dtype.isnative:
        return value.astype(value.dtype.newbyteorder("="))
    if isinstance(value, (Tensor, Symbol, np.ndarray, np.generic, *_WEAK)):
        return value
    if isinstance(value, (complex, str, bytes, type(None))):
        expected = "a tensor, an array or a real number"
        raise ArgumentName(name, field, "EW-03").wrong_kind(value, expected)
    return as_array(value)


def kind_of_operand(value: Any) -> Any:
    """The data type of an operand, or the type of one of Python's numbers."""
    if isinstance(value, Symbol):
        dtype = value.trace.dtypes[value.name]
        return type(value.trace.numbers[value.name]) if dtype is None else dtype
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return dtype if dtype.isnative else dtype.newbyteorder("=")
    return next(kind for kind in _WEAK if isinstance(value, kind))


def _key(value: Any) -> Any:
    """How a call without options finds its kernel: the data type of a tensor, or else the type."""
    return value._dtype if type(value) is Tensor else type(value)
