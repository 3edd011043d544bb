"""The parts of kernels that work along axes: declarations, arguments and outputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from vkops.arguments.values import refuse
from vkops.elementwise.arguments import choose_dtypes, operands_of, shape_of
from vkops.elementwise.formats import EXTENSION_FLOATS, GLSL_TYPES, dtype_of
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.elementwise.parameters import Operand, Parameter, check_texts, parse
from vkops.elementwise.source import HEAD
from vkops.errors import InvalidDescError, show
from vkops.plan.view import Ints
from vkops.shaders import load
from vkops.tensors.creation import empty
from vkops.tensors.operations import chosen_device
from vkops.tensors.tensor import Device, DeviceLike, Tensor, default_device

DataTypes = tuple[np.dtype[Any], tuple[tuple[str, str], ...]]
"""The data type of ``a`` and ``b``, and those of all types."""

LANES = 128
"""The invocations of a workgroup."""

FOR_EACH = f"[[unroll]] for (uint _u = 0, _t = _lane; _u < _EACH; ++_u, _t += {LANES})"
"""The loop over the items ``_t`` that a workgroup has in shared memory."""

COUNT = Parameter("int32", "n")

_VECTORS = re.compile(r"[biud]?vec[234]|[biuf](8|16|32|64)vec[234]|d?mat[234](x[234])?", re.ASCII)

_Kernel = TypeVar("_Kernel", bound="ElementwiseKernel | AxisKernel")


def builtin(kernel: _Kernel) -> _Kernel:
    """Mark a kernel as a part of vkops, and return it; see ``Shader``."""
    kernel._is_builtin = True
    return kernel


class InnerKernel(ElementwiseKernel):
    """A kernel with parameters that a declaration cannot have, such as ``n``.

    ``main`` are arguments of ``generate``. ``invocations`` is a function of the shape of the
    elements and the shapes of all arrays, if there is not one invocation for each element.
    Workgroups have ``local_size`` of them.
    """

    def __init__(
        self,
        params: tuple[Parameter, ...],
        operation: str,
        name: str,
        preamble: str,
        invocations: Callable[[Ints, Mapping[str, Ints]], int] | None = None,
        reads_again: bool = False,
        local_size: int = LANES,
        **main: Any,
    ) -> None:
        self._set(params, operation, name, preamble)
        self._max_local_size = local_size
        self._invocations, self._reads_again, self._main = invocations, reads_again, main
        self._in_order |= invocations is not None


class AxisKernel:
    """A kernel of expressions in which ``a`` and ``b`` are two elements or results."""

    _is_builtin = False
    _type_field = "reduce_type"
    _reserved: tuple[str, ...]
    _raw_outputs = _has_structures = False
    _new_pass: Callable[..., InnerKernel]

    def _declare(
        self,
        name: str,
        in_params: str,
        out_params: str,
        element_type: str | None,
        preamble: str,
        **expressions: str,
    ) -> None:
        """Set what is declared (EW-01)."""
        texts = {"in_params": in_params, "out_params": out_params, **expressions}
        check_texts(name=name, **texts, preamble=preamble)
        params = parse(name, in_params, out_params, raw_outputs=self._raw_outputs)
        variables = {each.type for each in params if each.is_variable}
        self._is_structure = self._has_structures and is_structure(element_type, preamble)
        if not self._is_structure and element_type not in (None, *GLSL_TYPES, *variables):
            types = ", ".join([*GLSL_TYPES, *sorted(variables)])
            message = f"got {show(element_type)}, must be None, {types}"
            raise InvalidDescError(name, self._type_field, message, "EW-01")
        for each in params:
            if each.name in self._reserved:
                message = f"got the name {each.name}, which the expressions use: must be another"
                raise InvalidDescError(name, "parameters", message, "EW-01")
        self.name: str = name
        self._params = params
        self._inputs = tuple(each for each in params if not each.is_output)
        self._outputs = params[len(self._inputs) :]
        self._element_type = element_type or self._outputs[0].type
        self._preamble = preamble
        self._texts = (*expressions.values(),)
        self._pass = self._memoized(self._new_pass)

    def _memoized(self, make: Callable[..., _Kernel]) -> Callable[..., _Kernel]:
        """Memoize a function that makes kernels of this one: they are a part of vkops if it is."""

        def made(*variant: Any) -> _Kernel:
            kernel = make(*variant)
            return builtin(kernel) if self._is_builtin else kernel

        return lru_cache(64)(made)

    def __repr__(self) -> str:
        return f"<vkops.{type(self).__name__} {self.name!r}>"

    def _arguments(
        self, args: Sequence[Any], out: Any, device: DeviceLike
    ) -> tuple[Device, list[Operand], list[Operand], Ints, DataTypes]:
        """The device, the inputs, the outputs, the shape of the inputs, and the data types."""
        targets = [] if out is None else [*out] if isinstance(out, (tuple, list)) else [out]
        operands = operands_of(self.name, self._params, [*args, *targets], len(args))
        choose_dtypes(self.name, operands)
        inputs, outputs = operands[: len(self._inputs)], operands[len(self._inputs) :]
        if not any(each.is_array and not each.parameter.raw for each in inputs):
            refuse(self.name, "arguments", "must have an array that is not raw", "EW-06")
        devices = [each.value.device for each in operands if isinstance(each.value, Tensor)]
        home = chosen_device(self.name, device) or (devices[0] if devices else default_device())
        types = {each.parameter.type: each.dtype for each in operands}
        if self._element_type not in types and not self._is_structure:
            types[self._element_type] = dtype_of(self._element_type)
        names = tuple((name, types[name].name) for name in types)
        if self._is_structure:
            stride = _stride(self.name, self._declared(names), self._element_type)
            element: np.dtype[Any] = np.dtype((np.void, stride))
        else:
            element = types[self._element_type]
            if element.name in EXTENSION_FLOATS:
                element = np.dtype(np.float32)
        dtypes = element, names
        return home, inputs, outputs, shape_of(self.name, inputs, None), dtypes

    def _results(self, home: Device, outputs: Sequence[Operand], shape: Ints) -> list[Tensor]:
        """The outputs, which are made unless they were given with this shape (EW-06)."""
        for each in outputs:
            if not each.parameter.raw and each.value is not None and each.value.shape != shape:
                message = f"has shape {each.value.shape}, must be {shape}"
                refuse(self.name, each.parameter.name, message, "EW-06")
        return [
            empty(shape, dtype=each.dtype, device=home) if each.value is None else each.value
            for each in outputs
        ]

    def _glsl(self, dtype: np.dtype[Any]) -> str:
        """The GLSL type of ``a`` and ``b``."""
        return self._element_type if self._is_structure else GLSL_TYPES[dtype.name]

    def _concrete(self, params: Sequence[Parameter], types: Sequence[Any]) -> tuple[Parameter, ...]:
        """Parameters with data types in place of type variables."""
        return tuple(each._replace(type=dict(types)[each.type]) for each in params)

    def _declared(self, types: Sequence[Any]) -> str:
        """The preamble, with the type variables of all parameters."""
        lines = [
            f"#define {name} {GLSL_TYPES[type_]}" for name, type_ in types if name not in GLSL_TYPES
        ]
        return "\n".join([*lines, f'#line 1 "{self.name} preamble"', self._preamble])


def permuted(device: Device, operand: Operand, shape: Ints, order: Sequence[int]) -> Any:
    """An input: an array broadcast to a shape, with its dimensions in another order."""
    value = operand.value
    if operand.parameter.raw or not operand.is_array:
        return value
    tensor = value if isinstance(value, Tensor) else Tensor.from_array(device, value)
    return tensor.broadcast_to(shape).transpose(*order)


def is_structure(type_: object, preamble: str) -> bool:
    """Whether a type is one of GLSL's vectors and matrices, or a structure of a preamble."""
    if not isinstance(type_, str) or not type_.isidentifier():
        return False
    is_declared = re.search(rf"\bstruct\s+{type_}\b", preamble)
    return bool(_VECTORS.fullmatch(type_) or is_declared)


@lru_cache(64)
def _stride(name: str, declared: str, type_: str) -> int:
    """The bytes from one element to the next of an array of a type, as the compiler has them."""
    source = f"""{HEAD}
{declared}
#line 1 "{name} reduce_type"
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer _Block {{ {type_} _elements[]; }};
void main() {{ _elements[0] = _elements[1]; }}"""
    return load(source, name=name).blocks[0].stride


def conversion(element: str) -> str:
    """The GLSL before a value in parentheses that converts it; a structure's are not converted."""
    return element if element in GLSL_TYPES.values() or _VECTORS.fullmatch(element) else ""


def function_of(name: str, field: str, function: str, expression: str, element: str) -> str:
    """The function of ``a`` and ``b`` that an expression of the user's own computes."""
    return f"""{element} {function} {{
    precise {element} _result = {conversion(element)}(
#line 1 "{name} {field}"
{expression}
#line 2 "{name} {field}"
    );
    return _result;
}}"""
