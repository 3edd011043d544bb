"""Kernels that reduce elements of arrays along axes, in an order that only shapes decide."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Any

import numpy as np

from vkops.arguments.other_names import suggest_names
from vkops.arguments.values import refuse
from vkops.elementwise.arithmetic import DType
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.elementwise.parameters import Operand, Parameter, Symbol, check_texts, with_options
from vkops.elementwise.source import BATCH, GROUP
from vkops.kernels.axis_kernel import (
    COUNT,
    LANES,
    AxisKernel,
    DataTypes,
    InnerKernel,
    conversion,
    function_of,
    permuted,
)
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.tensors.creation import empty
from vkops.tensors.shape_arguments import some_axes
from vkops.tensors.tensor import Device, DeviceLike, Tensor

CHUNKS = {LANES: 128 * LANES, 1: 1024}
"""The elements of a partial result, for each number of invocations that compute it together."""

ENDS = 8
"""The invocations that reduce the results of a workgroup. A tree would need more barriers."""

_PARTIALS, _READ = "partials", "_partials"


class ReductionKernel(AxisKernel):
    """A kernel that reduces the elements of arrays along axes, as that of CuPy does.

    Each element is mapped; results of two are reduced to one, until one is left; and that is mapped
    again. The order in which elements are reduced is fixed by the shapes and the axes alone: no
    device, workgroup or layout changes it. ``reduce_expr`` must be associative and commutative, but
    for rounding.

    Args:
        in_params: the inputs, as for ``ElementwiseKernel``. The names a, b and partials are taken.
        out_params: the outputs.
        map_expr: the GLSL expression for an element, in which ``i`` is its index among the elements
            of a result, in C order, and ``n`` is their number.
        reduce_expr: the GLSL expression for ``a`` and ``b``, two elements or results.
        post_map_expr: GLSL statements that assign to the outputs, in which ``a`` is the result.
        identity: the GLSL of the result of no elements, or None if there is none.
        name: the name of the kernel in errors.
        reduce_type: the type of ``a`` and ``b``: a NumPy data type, a type variable, a vector such
            as ``"vec2"``, or a structure that the preamble declares; by default that of the first
            output. Values are not converted to a structure.
        preamble: GLSL declarations, such as functions that the expressions call.
        options: macros for all texts, such as ``"-DSIZE=4"``.

    Attributes:
        name: the name.

    Raises:
        InvalidDescError: a declaration is wrong (EW-01).

    >>> import numpy as np, vkops
    >>> norm = vkops.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    >>> x = vkops.asarray(np.array([[3, 4], [6, 8]], np.float32))
    >>> norm(x, axis=1).numpy()
    array([ 5., 10.], dtype=float32)
    >>> norm(x.T, axis=0, keepdims=True).numpy()
    array([[ 5., 10.]], dtype=float32)
    >>> span = vkops.ReductionKernel("T x", "T y", "vec2(x, x)",
    ...     "vec2(min(a.x, b.x), max(a.y, b.y))", "y = a.y - a.x", reduce_type="vec2")
    >>> span(x).item()
    5.0
    """

    _reserved = ("a", "b", _PARTIALS)
    _has_structures = True

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: object = None,
        name: str = "reduction",
        reduce_type: str | None = None,
        preamble: str = "",
        *,
        options: Sequence[str] = (),
    ) -> None:
        check_texts(name=name, preamble=preamble)
        preamble = with_options(name, preamble, options)
        texts = {"map_expr": map_expr, "reduce_expr": reduce_expr, "post_map_expr": post_map_expr}
        self._declare(name, in_params, out_params, reduce_type, preamble, **texts)
        self._identity = identity
        self._end = self._memoized(self._new_end)

    def __call__(
        self,
        *args: Any,
        axis: Any = None,
        keepdims: bool = False,
        out: Any = None,
        device: DeviceLike = None,
    ) -> Any:
        """Reduce, without waiting for it.

        Args:
            args: an argument for each input: tensors, NumPy arrays and numbers, broadcast together.
            axis: the axes along which elements are reduced, an integer or several; all by default.
            keepdims: keep these as dimensions of size 1.
            out: tensors that get the results: one, or a tuple of several.
            device: where it runs; by default the device of the first tensor.

        Returns:
            The output, or a tuple of several.

        Raises:
            InvalidDescError: arguments of the wrong number (EW-02), kind (EW-03), data type
                (EW-04), value (EW-05) or shape (EW-06), too many elements (EW-07), or an axis that
                does not exist (ARRAY-02).
            ShaderCompileError: an expression is wrong.
            OutOfDeviceMemoryError: arrays or outputs do not fit on the device.
        """
        for each in args:
            if isinstance(each, Symbol):
                return each.trace.call(self, args, out=out, axis=axis, keepdims=keepdims)
        home, inputs, outputs, shape, dtypes = self._arguments(args, out, device)
        axes = sorted(range(len(shape)) if axis is None else some_axes(self.name, axis, len(shape)))
        kept = tuple(n for i, n in enumerate(shape) if i not in axes)
        ends = tuple(1 if i in axes else n for i, n in enumerate(shape)) if keepdims else kept
        count = prod([shape[i] for i in axes])
        if not count and self._identity is None:
            refuse(self.name, "arguments", "have no elements, and there is no identity", "EW-06")
        results = self._results(home, outputs, ends)
        if prod(ends):
            reduced = []
            if count:
                partials = self._reduced(home, inputs, shape, axes, dtypes)
                reduced = [partials if self._is_structure else partials.reshape(kept)]
            targets = [each.reshape(kept) for each in results]
            self._end(*dtypes, bool(count))(*reduced, count, out=targets, device=home)
        return results[0] if len(results) == 1 else tuple(results)

    def _reduced(
        self,
        home: Device,
        inputs: Sequence[Operand],
        shape: Ints,
        axes: Sequence[int],
        dtypes: DataTypes,
    ) -> Tensor:
        """The reduced elements, before they are mapped to outputs."""
        kept = [i for i in range(len(shape)) if i not in axes]
        values = [permuted(home, each, shape, [*kept, *axes]) for each in inputs]
        by_rows = not axes or axes[-1] == len(shape) - 1
        results, count = (prod([shape[i] for i in chosen]) for chosen in (kept, axes))
        is_first, size, words = True, None, dtypes[0]
        while is_first or count > 1:
            lanes = 1 if count <= LANES // 4 or (not by_rows and results >= LANES) else LANES
            chunks = ceil_div(count, CHUNKS[lanes])
            shape = results, chunks
            if self._is_structure:
                size = None if is_first else (results, count)
                words = _words(dtypes[0])
                shape = *shape, dtypes[0].itemsize // words.itemsize
            partials = empty(shape, dtype=words, device=home)
            kernel = self._pass(*dtypes, lanes, is_first, 1 if home.tuning.is_cpu else BATCH)
            kernel(*values, count, out=partials, size=size, device=home)
            values, count, by_rows, is_first = [partials], chunks, True, False
        return partials

    def _new_pass(
        self, dtype: DType, types: Sequence[Any], lanes: int, is_first: bool, batch: int
    ) -> InnerKernel:
        """The kernel that makes partial results, each of the elements of a chunk.

        Its arguments are arrays whose last dimensions have the ``n`` elements to reduce, ``n``, and
        the partial results, for each result those of its chunks. The invocation ``l`` of a chunk
        reduces the elements l, l + lanes, l + 2 lanes and so on. Then, each of the first ``ENDS``
        invocations reduces the results of l, l + ENDS, l + 2 ENDS and so on, and the first one
        reduces theirs. A ``batch`` of elements is read before any of them is reduced.
        """
        mapped, reduced, _ = self._texts
        params = self._concrete(self._inputs, types)
        element, chunk = self._glsl(dtype), CHUNKS[lanes]
        operation, initial, read = f"_mapped = {conversion(element)}({mapped})", f"{element}(0)", ""
        chosen = "_partial = _t == _own ? _mapped : _reduced(_partial, _mapped);"
        partials = Parameter(dtype.name, _PARTIALS, is_output=True, raw=True)
        if not is_first:
            params, operation = (Parameter(dtype.name, "a"),), f"_mapped = {element}(a)"
        if self._is_structure:
            chosen = "if (_t != _own) _mapped = _reduced(_partial, _mapped); _partial = _mapped;"
            words = Parameter(_words(dtype).name, _READ, raw=True, element=element)
            partials, initial = words._replace(name=_PARTIALS, is_output=True), ""
            if not is_first:
                params, operation, read = (words,), "", f"_mapped = {_READ}[_i];"
        arguments = f"_reduced({element} a, {element} b)"
        declared = function_of(self.name, "reduce_expr", arguments, reduced, element)
        # Neighbours that reduce alone read neighbouring columns.
        result, number = ("_place % _results", "_place / _results")
        together = ""
        if lanes > 1:
            result, number = ("_place / _chunks", "_place % _chunks")
            declared += f"\nshared {element} _shared[{LANES}];"
            together = f"""
    const uint _used = min(_some, {lanes});
    _shared[_own] = _partial;
    barrier();
    if (_own < {ENDS}) {{
        for (uint _t = _own + {ENDS}; _t < _used; _t += {ENDS})
            _partial = _reduced(_partial, _shared[_t]);
        _shared[_own] = _partial;
    }}
    barrier();
    for (uint _t = 1; _own == 0 && _t < min(_used, {ENDS}); ++_t)
        _partial = _reduced(_partial, _shared[_t]);"""
        loop, place = f"for (uint _t = _own; _t < _some; _t += {lanes}) {{", "_t"
        if batch > 1:
            each = f"[[unroll]] for (uint _u = 0, _t = _begin; _u < {batch}; ++_u, _t += {lanes})"
            loop = (
                f"for (uint _begin = _own; _begin < _some; _begin += {batch * lanes}) {{ {each} {{"
            )
            place = "min(_t, _some - 1)"  # without branches, several are read at a time
            declared += f"\n{element} _batch[{batch}];"
            kept = "_batch[_u] = _mapped;"
            chosen = f"{kept}\n}}\n{each} if (_t < _some) {{\n_mapped = _batch[_u]; {chosen}"
        head = f"""{element} _mapped;
{declared}
void main() {{
    {GROUP}
    const uint _own = gl_LocalInvocationID.x % {lanes};
    const uint _place = _group * {LANES // lanes} + gl_LocalInvocationID.x / {lanes};
    const uint _count = uint(_value_n), _chunks = (_count + {chunk - 1}) / {chunk};
    const uint _results = _n / _count, _result = {result}, _number = {number};
    const uint _first = _number * {chunk};
    const uint _some = _place < _results * _chunks ? min({chunk}, _count - _first) : 0;
    {element} _partial{f" = {initial}" * bool(initial)};
    {loop}
        const uint _k = _first + {place}, _i = _result * _count + _k;"""
        stored = "uint8_t(uint(_partial))" if dtype.kind == "b" else "_partial"
        tail = f"""        {read}{chosen}
    }}{"}" * (batch > 1)}{together}
    if (_own == 0 && _some > 0) {_PARTIALS}[_result * _chunks + _number] = {stored};
}}"""
        return InnerKernel(
            (*params, COUNT, partials),
            operation,
            self.name,
            self._declared(types),
            main=(head, tail),
            index="_k",
            invocations=lambda _, arrays: lanes * prod(arrays[_PARTIALS][:2]),
        )

    def _new_end(self, dtype: DType, types: Sequence[Any], has_elements: bool) -> ElementwiseKernel:
        result: tuple[Parameter, ...] = (Parameter(dtype.name, "a"),)
        operation, element = self._texts[2], self._glsl(dtype)
        initial = f"{conversion(element)}({self._identity})"
        if self._is_structure:
            result = (Parameter(_words(dtype).name, _READ, raw=True, element=element),)
        if not has_elements:
            result = ()
        if self._is_structure or not has_elements:
            initial = f"{_READ}[i]" if has_elements else initial
            operation = f"{element} a = {initial}; {operation}"
        params = (*result, COUNT, *self._concrete(self._outputs, types))
        return InnerKernel(params, operation, self.name, self._declared(types))


def _words(dtype: DType) -> DType:
    """The largest data type of which elements of a structure are several."""
    return np.dtype(f"uint{8 * gcd(dtype.itemsize, 4)}")


suggest_names(ReductionKernel)
