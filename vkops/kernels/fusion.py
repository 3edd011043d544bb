"""Functions of elementwise kernels, with one reduction at their end, as one kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from vkops.arguments.values import ArgumentName, refuse
from vkops.elementwise.arguments import array_of, choose_dtypes, number_of, operands_of
from vkops.elementwise.formats import GLSL_TYPES
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.elementwise.parameters import (
    NAME,
    Operand,
    Parameter,
    Symbol,
    check_texts,
    renamings,
)
from vkops.kernels.axis_kernel import InnerKernel, conversion
from vkops.kernels.reduction import ReductionKernel
from vkops.plan.view import Ints
from vkops.tensors.shape_arguments import broadcast_shapes
from vkops.tensors.tensor import DeviceLike, Tensor

_RULE = "EW-09"
_MAX_KERNELS = 64
_TYPED = (Tensor, np.ndarray, np.generic)
_NUMBERED = re.compile(r"\b[in]\b")

_KEPT = {
    "float16": "unpackFloat2x16(packFloat2x16(f16vec2({x}, 0)) ^ zero).x",
    "float32": "uintBitsToFloat(floatBitsToUint({x}) ^ zero)",
    "float64": "packDouble2x32(unpackDouble2x32({x}) ^ zero)",
}
"""Expressions for a value ``x`` with a ``zero`` that compilers do not know.

So a driver cannot combine an operation of a kernel with one of the next.
"""


class _Step(NamedTuple):
    """A call of a kernel: the GLSL of its inputs, the names of its outputs, and other arguments."""

    kernel: Any
    operands: Sequence[Operand]
    inputs: Sequence[str]
    outputs: Sequence[str]
    options: dict[str, Any]

    @property
    def counts(self) -> bool:
        """Whether an elementwise kernel uses the index or the number of elements."""
        return (
            not self.is_wide
            and _NUMBERED.search(f"{self.kernel.operation} {self.kernel.preamble}") is not None
        )

    @property
    def is_wide(self) -> bool:
        """Whether the kernel computes with all its elements in 32 bits at least."""
        return all(each.parameter.wide for each in self.operands)

    @property
    def defines(self) -> list[str]:
        """The macros of the type variables."""
        types = {e.parameter.type: e.type for e in self.operands if e.parameter.is_variable}
        return [f"#define {variable} {type_}" for variable, type_ in types.items()]


class _Trace:
    """The calls of kernels by a function, and the names of its arguments and of their results.

    Of each name, ``dtypes`` has the data type, and ``sources`` the arguments that it depends on.
    """

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self.name = name
        self.device = next((e.device for e in args if isinstance(e, Tensor)), None)
        self.steps: list[_Step] = []
        self.dtypes: dict[str, Any] = {}
        self.numbers: dict[str, Any] = {}
        self.sources: dict[str, set[str]] = {}
        self.arguments = [Symbol(self, f"fused{k}") for k in range(len(args))]
        for k, value in enumerate(args):
            if not isinstance(value, (*_TYPED, bool, int, float)):
                expected = "a tensor, an array or a number"
                raise ArgumentName(name, f"argument {k}", "EW-03").wrong_kind(value, expected)
            self.dtypes[f"fused{k}"] = getattr(value, "dtype", None)
            self.sources[f"fused{k}"] = {f"fused{k}"}
            if not isinstance(value, (Tensor, np.ndarray)):
                self.numbers[f"fused{k}"] = value

    def refuse(self, field: str, message: str) -> Any:
        refuse(self.name, field, f"{message}: it cannot be fused", _RULE)

    def call(self, kernel: Any, values: Sequence[Any], **options: Any) -> Any:
        """Record a call of a kernel, and return its outputs."""
        inputs = [each for each in kernel._params if not each.is_output]
        if self.steps and isinstance(self.steps[-1].kernel, ReductionKernel):
            self.refuse(kernel.name, f"is called after the reduction {self.steps[-1].kernel.name}")
        if len(values) > len(inputs) or any(
            options.pop(k, None) is not None for k in ("out", "size")
        ):
            self.refuse(kernel.name, "has an output or a size that is given")
        known = [self._value(kernel, *pair) for pair in zip(inputs, values, strict=False)]
        operands = operands_of(kernel.name, kernel._params, known, len(known))
        choose_dtypes(kernel.name, operands)
        texts = [self._text(kernel, *pair) for pair in zip(operands, values, strict=False)]
        names = [f"_v{len(self.dtypes) + k}" for k in range(len(operands) - len(inputs))]
        for name, operand in zip(names, operands[len(inputs) :], strict=True):
            self.dtypes[name] = operand.dtype
            self.sources[name] = {s for text in texts for s in self.sources.get(text, ())}
        self.steps.append(_Step(kernel, operands, texts, names, options))
        outputs = tuple(Symbol(self, name) for name in names)
        return outputs[0] if len(outputs) == 1 else outputs

    def _value(self, kernel: Any, parameter: Parameter, value: Any) -> Any:
        """A value of the same kind and data type, for the checks of the kernel."""
        field = f"{kernel.name} {parameter.name}"
        if parameter.raw or (
            not isinstance(value, (Symbol, np.generic))
            and (isinstance(value, (list, tuple)) or hasattr(value, "__dlpack__"))
        ):
            kind = "is a raw input" if parameter.raw else "is not an argument of the function"
            self.refuse(field, kind)
        if not isinstance(value, Symbol):
            return value
        if value.trace is not self:
            self.refuse(field, "is a value of another function")
        return self.numbers.get(value.name, np.empty(0, self.dtypes[value.name]))

    def _text(self, kernel: Any, operand: Operand, value: Any) -> str:
        """The GLSL of an input, whose data type is known."""
        dtype = operand.dtype
        if not isinstance(value, Symbol):
            operand.value = value
            data = np.array(number_of(kernel.name, operand), dtype).tobytes().ljust(4, b"\0")
            words = np.frombuffer(data, np.uint32).tolist()
            code = operand.code
            if code is not None:
                return code.decoded.format(f"{words[0]}u")
            return _literal(operand.type, dtype, words)
        before = self.dtypes[value.name]
        if before is not None and value.name in self.numbers and before != dtype:
            self.refuse(f"{kernel.name} {operand.parameter.name}", f"is {dtype}, and was {before}")
        self.dtypes[value.name] = dtype
        return value.name

    def kernel(self, results: Any) -> tuple[Any, list[int], dict[str, Any]]:
        """Return the kernel, the numbers of the arguments that it takes, and other arguments."""
        values = results if isinstance(results, tuple) and len(results) > 1 else (results,)
        names = [e.name for e in values if isinstance(e, Symbol) and e.trace is self]
        produced = [name for step in self.steps for name in step.outputs]
        if len({*names}.intersection(produced)) < len(values):
            self.refuse("result", "must be results of kernels, each once")
        last = self.steps[-1]
        is_reduced = isinstance(last.kernel, ReductionKernel)
        if is_reduced and names != [*last.outputs]:
            self.refuse("result", f"must be what the reduction {last.kernel.name} returns")
        needed = {*names}
        steps: list[_Step] = []
        for step in reversed(self.steps):
            if needed.intersection(step.outputs):
                steps.insert(0, step)
                needed.update(step.inputs)
        used = [k for k, each in enumerate(self.arguments) if each.name in needed]
        wide = not is_reduced and all(each.is_wide for each in steps)
        params = [Parameter(self.dtypes[f"fused{k}"].name, f"fused{k}", wide=wide) for k in used]
        if is_reduced:
            return self._reduction(steps, params), used, last.options
        results = [
            Parameter(self.dtypes[e].name, f"result{k}", True, wide=wide)
            for k, e in enumerate(names)
        ]
        preamble, body = self._texts(steps, params)
        for name, each in zip(names, results, strict=True):
            body += f"{each.name} = {Operand(each, self.dtypes[name]).type}({name});\n"
        whole = [(f"result {k}", self.sources[name]) for k, name in enumerate(names)]
        whole += [
            (each.kernel.name, self.sources[each.outputs[0]]) for each in steps if each.counts
        ]
        kernel = _Fused((*params, *results), body, self.name, preamble)
        kernel._in_order = any(each.kernel._in_order for each in steps)
        kernel._whole = whole
        return kernel, used, {}

    def _texts(self, steps: Sequence[_Step], params: Sequence[Parameter]) -> tuple[str, str]:
        """The functions of elementwise kernels, and the statements that call them."""
        functions, statements, known = [], ["const uint zero = uint(n) >> 31;"], set()
        types = {each.name: Operand(each, self.dtypes[each.name]).type for each in params}
        for k, step in enumerate(steps):
            kernel, line = step.kernel, f'#line 1 "{step.kernel.name}'
            preamble, definitions = [], (kernel.preamble, *step.defines)
            if definitions not in known:
                known.add(definitions)
                preamble = [f'{line} preamble"', kernel.preamble]
            declared = ["const int i", "const int n"]
            for each in step.operands:
                access = "inout" if each.parameter.is_output else "const"
                declared.append(f"{access} {each.type} {each.parameter.variable}")
            parameters = [each.parameter for each in step.operands]
            head = f"void _step{k}({', '.join(declared)}) {{"
            functions += [*step.defines, *preamble, head, *renamings(parameters), f'{line}"']
            functions += [kernel.operation, "\n;}", *renamings(parameters, "undef")]
            functions += [f"#undef {each.split()[1]}" for each in step.defines]
            inputs = [
                value if types.get(value, each.type) == each.type else f"{each.type}({value})"
                for value, each in zip(step.inputs, step.operands, strict=False)
            ]
            outputs = step.operands[len(inputs) :]
            for name, each in zip(step.outputs, outputs, strict=True):
                types[name] = each.type
                statements.append(f"{each.type} {name};")
            statements.append(f"_step{k}({', '.join(['i', 'n', *inputs, *step.outputs])});")
            for name, each in zip(step.outputs, outputs, strict=True):
                if (code := each.code) is not None:
                    functions.append(code.functions)
                    statements.append(f"{name} = {code.rounded(name)};")
                elif each.dtype.kind == "f":
                    kept = _KEPT[each.dtype.name].format(x=name)
                    statements.append(f"{name} = {kept};")
        return "\n".join(functions), "\n".join([*statements, ""])

    def _reduction(self, steps: Sequence[_Step], params: Sequence[Parameter]) -> ReductionKernel:
        """The reduction that ends a function, of elements that the other steps compute."""
        *others, last = steps
        for each in others:
            if each.counts:
                self.refuse(each.kernel.name, "uses i or n before a reduction")
        kernel, types = last.kernel, {e.parameter.type: e.dtype.name for e in last.operands}
        dtype = types.get(kernel._element_type, kernel._element_type)
        element = GLSL_TYPES.get(dtype, dtype)
        preamble, body = self._texts(others, params)
        arguments = ["i", "n", *[each.name for each in params]]
        declared = ["int i", "int n", *[f"{GLSL_TYPES[e.type]} {e.name}" for e in params]]
        for operand, text in zip(last.operands, last.inputs, strict=False):
            body += f"const {operand.type} {operand.parameter.variable} = {text};\n"
        mapped, reduced, ends = kernel._texts
        function = f"{element} _mapped_value({', '.join(declared)}) {{\n{body}return "
        function += f"{conversion(element)}("
        texts = [preamble, *last.defines, kernel._preamble, function]
        parameters = [each.parameter for each in last.operands]
        texts += [*renamings(parameters), f'#line 1 "{kernel.name} map_expr"', mapped, ");}"]
        texts += renamings(parameters, "undef")
        return ReductionKernel(
            ", ".join(f"{each.type} {each.name}" for each in params),
            ", ".join(f"{types[each.type]} {each.name}" for each in kernel._outputs),
            f"_mapped_value({', '.join(arguments)})",
            reduced, ends, kernel._identity, kernel.name, dtype,
            "\n".join(texts),
        )  # fmt: skip


def _key(args: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([e.dtype if isinstance(e, _TYPED) else type(e) for e in args])


def _literal(type_: str, dtype: np.dtype[Any], words: Sequence[int]) -> str:
    """The GLSL of a number with these bits."""
    bits = f"uvec2({words[0]}u, {words[-1]}u)" if dtype.itemsize == 8 else f"{words[0]}u"
    if dtype.kind == "f":
        name = {2: "unpackFloat2x16", 4: "uintBitsToFloat", 8: "packDouble2x32"}[dtype.itemsize]
        return f"{name}({bits}){'.x' * (dtype.itemsize == 2)}"
    return f"{type_}(packUint2x32({bits}))" if dtype.itemsize == 8 else f"{type_}({bits})"


class _Fused(InnerKernel):
    """A kernel of several, whose results have one shape, as have those kernels that use it."""

    _max_local_size = ElementwiseKernel._max_local_size
    _whole: Sequence[tuple[str, set[str]]]

    def _shape(self, operands: Sequence[Operand], size: Any) -> Ints:
        shape = super()._shape(operands, size)
        for label, names in self._whole:
            shapes = [e.value.shape for e in operands if e.is_array and e.parameter.name in names]
            if (together := broadcast_shapes(shapes)) != shape:
                message = f"has shape {together}, must be {shape}, which arguments have together"
                refuse(self.name, label, message, _RULE)
        return shape


class FusedFunction:
    """A function of kernels that runs as one kernel; ``vkops.fuse`` makes it."""

    def __init__(self, function: Callable[..., Any], kernel_name: str | None = None) -> None:
        if not callable(function):
            raise ArgumentName("fuse", "function", _RULE).wrong_kind(
                function, "a function of kernels"
            )
        self._function = function
        name = kernel_name or getattr(function, "__name__", "")
        self._name = name if isinstance(name, str) and NAME.fullmatch(name) else "fused"
        self._kernels: dict[Any, tuple[Any, list[int], dict[str, Any]]] = {}

    def __repr__(self) -> str:
        return f"<vkops.fuse {self._name!r}>"

    def __call__(self, *args: Any, device: DeviceLike = None) -> Any:
        """Run the kernel, which is made at the first call with arguments of these data types.

        Args:
            args: the arguments of the function: tensors, NumPy arrays and numbers.
            device: where it runs; by default the device of the first tensor.

        Returns:
            The results of the function.

        Raises:
            InvalidDescError: the function cannot be fused (EW-09), or as for the kernels.
            ShaderCompileError: the kernels cannot be compiled together.
        """
        key = _key(args)
        fused = self._kernels.get(key)
        if fused is None:
            args = tuple([array_of(self._name, f"argument {k}", e)[0] for k, e in enumerate(args)])
            fused = self._kernels.get(key := _key(args))
        if fused is None:
            if any(isinstance(each, Symbol) for each in args):
                return self._function(*args)
            if len(self._kernels) >= _MAX_KERNELS:
                self._kernels.clear()
            trace = _Trace(self._name, args)
            fused = self._kernels[key] = trace.kernel(self._function(*trace.arguments))
        kernel, used, options = fused
        return kernel(*[args[k] for k in used], device=device, **options)


def fuse(function: Callable[..., Any] | None = None, *, kernel_name: str | None = None) -> Any:
    """Return a function that runs the elementwise kernels which it calls as one kernel.

    The results have the same bits. The function is called with symbols once for all arguments of
    some data types. It can use operators and the functions of arithmetic, such as ``vkops.exp``,
    call elementwise kernels without ``raw`` inputs and, last, one reduction. These take arguments,
    numbers, and results of others. What the function returns are results of them: of a reduction,
    or one or several of one shape.

    Args:
        function: the function; without it, ``fuse`` returns a decorator, as ``cupy.fuse`` does.
        kernel_name: the name of the kernel in errors; by default, that of the function.

    Raises:
        InvalidDescError: it is not a function (EW-09), or a name is wrong (EW-01).

    >>> import numpy as np, vkops
    >>> @vkops.fuse()
    ... def squared_difference(x, y):
    ...     return (x - y) * (x - y)
    >>> squared_difference(np.float32([1, 2]), np.float32([4, 4])).numpy()
    array([9., 4.], dtype=float32)
    >>> scale = vkops.ElementwiseKernel("T x, T y", "T z", "z = x * y", "scale")
    >>> @vkops.fuse
    ... def total(x, y):
    ...     return vkops.kernels.sum(scale(x, y) + 1, axis=1)
    >>> total(np.float32([[1, 2], [3, 4]]), np.float32([10, 20])).numpy()
    array([ 52., 112.], dtype=float32)
    """
    if kernel_name is not None:
        check_texts(name=kernel_name)
    if function is None:
        return lambda function: FusedFunction(function, kernel_name)
    return FusedFunction(function, kernel_name)
