"""Products of matrices and vectors, whose sums have an order that only shapes decide."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, boolean, integer, refuse
from vkops.elementwise.arithmetic import DType, to_half
from vkops.elementwise.formats import GLSL_TYPES, KINDS
from vkops.elementwise.parameters import Parameter
from vkops.elementwise.source import GROUP
from vkops.errors import show
from vkops.kernels.axis_kernel import LANES, InnerKernel, builtin
from vkops.kernels.functions import converted, numbers_of, require_dtype, widened
from vkops.kernels.reduction import ReductionKernel
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.tensors.creation import empty, zeros
from vkops.tensors.exchange import as_dtype
from vkops.tensors.operations import as_tensors
from vkops.tensors.shape_arguments import broadcast_shapes, one_or_more, some_axes
from vkops.tensors.tensor import Device, DeviceLike, Tensor

_ROWS, _COLUMNS, _DEPTH = 32, 64, 16
"""The tile of a workgroup, and the terms of each sum that it has in shared memory at a time."""

_MOST_DEEP = 32
"""The most terms, for cooperative matrices that have more than ``_DEPTH``."""

_ACROSS, _EACH = 16, 4
"""Invocations beside each other; the rows of each, and its columns, which are as many."""

_TILED = f"""shared FACTOR _left[{_ROWS} * _DEPTH], _right[_DEPTH * {_COLUMNS}];
#ifdef _COOPERATIVE
shared SUM _products[{_ROWS * _COLUMNS}];
#endif
void main() {{
    {GROUP}
    const uint _rows = uint(_value_rows), _inner = uint(_value_inner);
    const uint _columns = uint(_value_columns);
    const uint _across = (_columns + {_COLUMNS - 1}) / {_COLUMNS};
    const uint _tiles = (_rows + {_ROWS - 1}) / {_ROWS} * _across;
    const uint _matrix = _group / _tiles, _tile = _group % _tiles;
    const uint _top = _tile / _across * {_ROWS}, _start = _tile % _across * {_COLUMNS};
    const uint _lane = gl_LocalInvocationID.x, _x = _lane % {_ACROSS};
    const uint _y = _lane / {_ACROSS} * {_EACH};
    const bool _is_used = _matrix * _rows * _columns < _n;
    const uint _left_at = _matrix * uint(_value_left), _right_at = _matrix * uint(_value_right);
#ifdef _COOPERATIVE
    _Sum _sums[_EACH];
    [[unroll]] for (uint _u = 0; _u < _EACH; ++_u) _sums[_u] = _Sum(SUM(0));
#else
    precise SUM _sums[{_EACH}][{_EACH}];
    [[unroll]] for (uint _r = 0; _r < {_EACH}; ++_r)
        [[unroll]] for (uint _c = 0; _c < {_EACH}; ++_c) _sums[_r][_c] = SUM(0);
#endif
    for (uint _first = 0; _first < _inner; _first += _DEPTH) {{
        [[unroll]] for (uint _t = 0; _t < {_ROWS} * _DEPTH; _t += {LANES}) {{
            const uint _row = (_t + _lane) / _DEPTH, _k = (_t + _lane) % _DEPTH;
            const bool _has = _is_used && _top + _row < _rows && _first + _k < _inner;
            const uint _at = _left_at + (_top + _row) * _inner + _first + _k;
            _left[_t + _lane] = _has ? a[_at] : FACTOR(0);
        }}
        [[unroll]] for (uint _t = 0; _t < _DEPTH * {_COLUMNS}; _t += {LANES}) {{
            const uint _k = (_t + _lane) / {_COLUMNS}, _column = (_t + _lane) % {_COLUMNS};
            const bool _has = _is_used && _first + _k < _inner && _start + _column < _columns;
            const uint _at = _right_at + (_first + _k) * _columns + _start + _column;
            _right[_t + _lane] = _has ? b[_at] : FACTOR(0);
        }}
        barrier();
#ifdef _COOPERATIVE
        [[unroll]] for (uint _u = 0; _u < _EACH; ++_u) {{
            if (!_HAS_MATRIX(_u)) continue;
            [[unroll]] for (uint _k = 0; _k < _DEPTH; _k += _K) {{
                _Left _a;
                _Right _b;
                coopMatLoad(_a, _left, _DOWN(_u) * _DEPTH + _k, _DEPTH, _BY_ROWS);
                coopMatLoad(_b, _right, _k * {_COLUMNS} + _ALONG(_u), {_COLUMNS}, _BY_ROWS);
                _sums[_u] = coopMatMulAdd(_a, _b, _sums[_u]);
            }}
        }}
#else
        for (uint _k = 0; _k < _DEPTH; ++_k) {{
            SUM _b[{_EACH}];
            [[unroll]] for (uint _c = 0; _c < {_EACH}; ++_c)
                _b[_c] = SUM(_right[_k * {_COLUMNS} + _x + _c * {_ACROSS}]);
            [[unroll]] for (uint _r = 0; _r < {_EACH}; ++_r) {{
                const SUM _a = SUM(_left[(_y + _r) * _DEPTH + _k]);
                [[unroll]] for (uint _c = 0; _c < {_EACH}; ++_c) _sums[_r][_c] += _a * _b[_c];
            }}
        }}
#endif
        barrier();
    }}
#ifdef _COOPERATIVE
    [[unroll]] for (uint _u = 0; _u < _EACH; ++_u)
        if (_HAS_MATRIX(_u))
            coopMatStore(
                _sums[_u], _products, _DOWN(_u) * {_COLUMNS} + _ALONG(_u), {_COLUMNS}, _BY_ROWS
            );
    barrier();
#endif
    for (uint _t = 0; _t < {_EACH * _EACH}; ++_t) {{
        const uint _row = _top + _y + _t / {_EACH};
        const uint _column = _start + _x + _t % {_EACH} * {_ACROSS};
        if (!_is_used || _row >= _rows || _column >= _columns) continue;
        const uint _i = (_matrix * _rows + _row) * _columns + _column;
#ifdef _COOPERATIVE
        _sum = _products[(_row - _top) * {_COLUMNS} + _column - _start];
#else
        _sum = _sums[_t / {_EACH}][_t % {_EACH}];
#endif"""
"""The kernel whose workgroups compute a tile of a product each.

Each sum has one term after the other. What is beyond the matrices is 0, which changes no sum: none
of them is -0, since they start at 0. With cooperative matrices, the tile is divided into matrices,
of which each subgroup has ``_EACH`` or fewer, and the device orders the additions.
"""

_COOPERATIVE = """#ifdef GL_KHR_cooperative_matrix  // older compilers make the other kernel
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#define _COOPERATIVE
#define _K {k}
#define _EACH {each}
#define _Left coopmat<FACTOR, gl_ScopeSubgroup, {m}, {k}, gl_MatrixUseA>
#define _Right coopmat<FACTOR, gl_ScopeSubgroup, {k}, {n}, gl_MatrixUseB>
#define _Sum coopmat<SUM, gl_ScopeSubgroup, {m}, {n}, gl_MatrixUseAccumulator>
#define _BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define _MATRIX(u) (gl_SubgroupID + (u) * gl_NumSubgroups)
#define _HAS_MATRIX(u) (_MATRIX(u) < {matrices})
#define _DOWN(u) (_MATRIX(u) / {across} * {m})
#define _ALONG(u) (_MATRIX(u) % {across} * {n})
#endif
"""
"""The types of cooperative matrices that the kernel uses, and where in the tile they lie."""


def matmul(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = None,
    dtype: Any = None,
    device: DeviceLike = None,
    same_bits: bool = True,
) -> Tensor:
    """Return the products of matrices, as ``numpy.matmul``.

    The last two dimensions are those of matrices, and the others are broadcast together; an array
    of one dimension is a row on the left and a column on the right. The order of the additions
    follows from the shapes alone, so the sums have the same bits on every device: one term after
    the other, or, where a matrix has one row or column, as those of ``sum``. 8- and 16-bit floats
    are multiplied and added up in float32, and rounded once.

    Args:
        x1: a tensor or an array of a dimension at least.
        x2: another one.
        out: a tensor that gets the products.
        dtype: the data type of the products; by default the common one.
        device: where it runs; by default the device of the first tensor.
        same_bits: False lets the device order the additions: cooperative matrices are used where it
            has some for the data types of the arrays and of the sums, such as float16 and float32.

    Raises:
        InvalidDescError: data types that are not those of real numbers (EW-04) or that the device
            lacks (SH-02), shapes that do not fit together (EW-06), or ``same_bits`` that is not a
            Boolean (EW-05).

    >>> import numpy as np, vkops
    >>> vkops.matmul(np.array([[1, 2], [3, 4]]), np.array([1, 10])).tolist()
    [21, 43]
    """
    is_ordered = boolean(same_bits, ArgumentName("matmul", "same_bits", "EW-05"))
    left, right, wide, result_dtype = _operands("matmul", x1, x2, dtype, device)
    factor = np.result_type(left.dtype, right.dtype)
    if not (left.ndim and right.ndim):
        refuse("matmul", "arguments", "must have a dimension at least", "EW-06")
    is_row, is_column = left.ndim == 1, right.ndim == 1
    left = left.expand_dims(0) if is_row else left
    right = right.expand_dims(-1) if is_column else right
    (rows, inner), columns = left.shape[-2:], right.shape[-1]
    batch = broadcast_shapes([left.shape[:-2], right.shape[:-2]])
    if batch is None or right.shape[-2] != inner:
        message = f"have shapes {left.shape} and {right.shape}, which do not fit together"
        refuse("matmul", "arguments", message, "EW-06")
    shape = (*batch, *[rows] * (not is_row), *[columns] * (not is_column))
    result = empty(shape, result_dtype, device=left.device) if out is None else out
    if not isinstance(result, Tensor):
        raise ArgumentName("matmul", "out", "EW-03").wrong_kind(out, "a tensor to write to")
    if result.shape != shape or result.dtype != result_dtype:
        message = f"is {result.dtype} {result.shape}, must be {result_dtype} {shape}"
        refuse("matmul", "out", message, "EW-06")
    if not result.size:
        return result
    target = result.reshape((*batch, rows, columns), copy=False)
    if not inner:
        target[...] = zeros((), result_dtype, device=left.device)
    elif 1 in (rows, columns):
        left, right = _as_type(left, wide), _as_type(right, wide)
        row, column = left.expand_dims(-2), right.swapaxes(-1, -2).expand_dims(-3)
        _dotting(wide, result_dtype)(row, column, axis=-1, out=target)
    else:
        sizes = None if is_ordered else _matrices(left.device, factor, wide)
        factor = wide if sizes is None else factor
        left, right = _as_type(left, factor), _as_type(right, factor)
        (left, step), (right, other) = _batched(left, batch), _batched(right, batch)
        numbers = rows, inner, columns, step, other
        kernel = _multiplying(factor, wide, result_dtype, sizes)
        kernel(left, right, *numbers, out=target)
    return result


def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    out: Any = None,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the sums of products of elements along an axis, as ``numpy.vecdot``.

    Arguments and errors are those of ``matmul``; the arrays are broadcast together.

    >>> import numpy as np, vkops
    >>> vkops.vecdot(np.array([[1, 2], [3, 4]]), np.array([1, 10])).tolist()
    [21, 43]
    """
    left, right, wide, result_dtype = _operands("vecdot", x1, x2, dtype, device)
    along = integer(axis, ArgumentName("vecdot", "axis", "ARRAY-01"))
    ranks = left.ndim, right.ndim
    # The axis is one of both arrays, and its size is not broadcast.
    limits = -min(ranks), max(ranks) - 1 if ranks[0] == ranks[1] else -1
    if not (min(ranks) and limits[0] <= along <= limits[1]):
        message = f"got {show(axis)}, which is no axis of both shapes {left.shape}, {right.shape}"
        refuse("vecdot", "axis", message, "ARRAY-01")
    if left.shape[along] != right.shape[along]:
        message = f"have {left.shape[along]} and {right.shape[along]} elements along the axis"
        refuse("vecdot", "arguments", message, "EW-06")
    left, right = _as_type(left, wide), _as_type(right, wide)
    result: Tensor = _dotting(wide, result_dtype)(left, right, axis=along, out=out)
    return result


def tensordot(
    x1: Any, x2: Any, /, *, axes: Any = 2, dtype: Any = None, device: DeviceLike = None
) -> Tensor:
    """Return the sums of products along axes of two arrays, as ``numpy.tensordot``.

    Args:
        x1: a tensor or an array.
        x2: another one.
        axes: how many of the last axes of ``x1`` and of the first ones of ``x2``, or the axes of
            each.
        dtype: as for ``matmul``.
        device: as for ``matmul``.

    Raises:
        InvalidDescError: an axis that does not exist (ARRAY-01), or as for ``matmul``.

    >>> import numpy as np, vkops
    >>> vkops.tensordot(np.ones((2, 3, 4)), np.ones((3, 4, 5))).shape
    (2, 5)
    """
    left, right, *_ = _operands("tensordot", x1, x2, dtype, device)
    argument = ArgumentName("tensordot", "axes", "ARRAY-01")
    if isinstance(axes, Sized):
        if len(axes) != 2:
            refuse(
                *argument[:2], f"got {show(axes)}, must be a number or axes of both", argument.rule
            )
        first, second = [
            some_axes("tensordot", one_or_more(each, argument), tensor.ndim, "axes")
            for each, tensor in zip(axes, (left, right), strict=True)  # type: ignore[call-overload]
        ]
    else:
        count = integer(axes, argument)
        if not 0 <= count <= min(left.ndim, right.ndim):
            most = min(left.ndim, right.ndim)
            refuse(*argument[:2], f"got {show(axes)}, must be 0 to {most}", argument.rule)
        first, second = tuple(range(left.ndim - count, left.ndim)), tuple(range(count))
    return _summed_along("tensordot", left, right, (first, second), dtype)


def dot(x1: Any, x2: Any, /, *, dtype: Any = None, device: DeviceLike = None) -> Tensor:
    """Return the sums of products along the last axis and the last but one, as ``numpy.dot``.

    An array of one dimension has its only axis, and a number multiplies. Other arguments and errors
    are those of ``matmul``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.dot(np.array([1, 2]), np.array([3, 4])).item()
    11
    """
    left, right, *_ = _operands("dot", x1, x2, dtype, device)
    if not (left.ndim and right.ndim):
        row, column = left.reshape((-1, 1)), right.reshape((1, -1))
        return matmul(row, column, dtype=dtype).reshape(left.shape + right.shape)
    axes = (left.ndim - 1,), (max(right.ndim - 2, 0),)
    return _summed_along("dot", left, right, axes, dtype)


def inner(x1: Any, x2: Any, /, *, dtype: Any = None, device: DeviceLike = None) -> Tensor:
    """Return the sums of products along the last axes of two arrays, as ``numpy.inner``.

    A number multiplies. Other arguments and errors are those of ``matmul``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.inner(np.array([[1, 2], [3, 4]]), np.array([1, 10])).tolist()
    [21, 43]
    """
    left, right, *_ = _operands("inner", x1, x2, dtype, device)
    if not (left.ndim and right.ndim):
        return dot(left, right, dtype=dtype)
    return _summed_along("inner", left, right, ((left.ndim - 1,), (right.ndim - 1,)), dtype)


def vdot(x1: Any, x2: Any, /, *, dtype: Any = None, device: DeviceLike = None) -> Tensor:
    """Return the sum of the products of all elements, in C order, as ``numpy.vdot``.

    Arguments and errors are those of ``matmul``; the arrays have as many elements each.

    >>> import numpy as np, vkops
    >>> vkops.kernels.vdot(np.array([[1, 2], [3, 4]]), np.array([1, 10, 100, 1000])).item()
    4321
    """
    left, right = [each.reshape(-1) for each in _operands("vdot", x1, x2, dtype, device)[:2]]
    if left.size != right.size:
        message = f"have {left.size} and {right.size} elements, must have the same number"
        refuse("vdot", "arguments", message, "EW-06")
    return vecdot(left, right, dtype=dtype)


def _summed_along(
    name: str, left: Tensor, right: Tensor, axes: tuple[Ints, Ints], dtype: Any
) -> Tensor:
    """Return the sums of products along axes of both arrays; their other axes follow in order."""
    (first, second), kept = axes, (_others(left, axes[0]), _others(right, axes[1]))
    summed = [left.shape[axis] for axis in first], [right.shape[axis] for axis in second]
    if summed[0] != summed[1]:
        message = f"have sizes {summed[0]} and {summed[1]} along the axes, must have the same"
        refuse(name, "arguments", message, "EW-06")
    rows, columns = (
        [t.shape[axis] for axis in k] for t, k in zip((left, right), kept, strict=True)
    )
    count = prod(summed[0])
    matrix = left.transpose((*kept[0], *first)).reshape((prod(rows), count))
    other = right.transpose((*second, *kept[1])).reshape((count, prod(columns)))
    return matmul(matrix, other, dtype=dtype).reshape((*rows, *columns))


def _others(x: Tensor, axes: Sequence[int]) -> Ints:
    return tuple(axis for axis in range(x.ndim) if axis not in axes)


def _operands(
    name: str, x1: Any, x2: Any, dtype: Any, device: DeviceLike
) -> tuple[Tensor, Tensor, DType, DType]:
    """Two arrays, the data type in which they are multiplied, and the result's."""
    left, right = tensors = [
        numbers_of(name, each, None) for each in as_tensors(name, [x1, x2], device)
    ]
    result = np.result_type(*[each.dtype for each in tensors])
    result = result if dtype is None else as_dtype(name, dtype)
    require_dtype(name, result, [each for each in KINDS if "float8" not in each], tensors[0].device)
    wide = widened(result) if KINDS[result.name] == "f" else result
    if wide.itemsize < 4:
        wide = np.dtype(np.uint32 if wide.kind == "u" else np.int32)
    return left, right, wide, result


def _as_type(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype == dtype else converted(x, dtype)


def _matrices(device: Device, factor: DType, wide: DType) -> tuple[int, int, int, int] | None:
    """The sizes m, n and k of a device's cooperative matrices for such factors and sums.

    The last number is that of subgroups in a workgroup. None if there are no such matrices, or none
    that a tile can be divided into.
    """
    bits, limits = 8 * factor.itemsize, device.limits
    needed = {"cooperativeMatrix", "vulkanMemoryModel"}
    if bits < 32:
        number = "Float" if factor.kind == "f" else "Int"
        needed |= {f"storageBuffer{bits}BitAccess", f"shader{number}{bits}"}
    types = factor.name, factor.name, wide.name, wide.name
    shapes = [
        each[:3]
        for each in device.cooperative_matrices
        if each[3:] == (*types, False, "subgroup")
        and not (_ROWS % each.m or _COLUMNS % each.n or _MOST_DEEP % each.k)
        and _shared_bytes(factor, wide, each.k) <= limits.max_compute_shared_memory_size
    ]
    if not shapes or LANES % limits.subgroup_size or not needed <= device.features:
        return None
    return (*max(shapes, key=prod), LANES // limits.subgroup_size)


def _shared_bytes(factor: DType, wide: DType, depth: int) -> int:
    factors = (_ROWS + _COLUMNS) * max(depth, _DEPTH) * factor.itemsize
    return factors + _ROWS * _COLUMNS * wide.itemsize


def _batched(x: Tensor, batch: Ints) -> tuple[Tensor, int]:
    """Matrices for each index of a batch, and the elements from one to the next one."""
    count = prod(x.shape[:-2])
    if count == 1:
        return x, 0
    return x if count == prod(batch) else x.broadcast_to((*batch, *x.shape[-2:])), prod(
        x.shape[-2:]
    )


def _final(value: str, result: DType) -> str:
    """The GLSL of a sum as a number of the data type of results."""
    if KINDS[result.name] == "b":
        return f"{value} != 0"
    return f"to_half({value})" if result == np.float16 else f"{GLSL_TYPES[result.name]}({value})"


@lru_cache(64)
def _dotting(wide: DType, result: DType) -> ReductionKernel:
    texts = f"{wide} x, {wide} y", f"{result} z", "x * y", "a + b", f"z = {_final('a', result)}"
    preamble = to_half * (result == np.float16)
    return builtin(ReductionKernel(*texts, "0", "vecdot", wide.name, preamble))


@lru_cache(64)
def _multiplying(
    factor: DType, wide: DType, result: DType, shape: tuple[int, int, int, int] | None
) -> InnerKernel:
    """The kernel for arrays of factors; ``shape`` is that of ``_matrices``."""
    numbers = "rows", "inner", "columns", "left", "right"
    params = (
        *[Parameter(factor.name, name, raw=True) for name in "ab"],
        *[Parameter("int32", name) for name in numbers],
        Parameter(result.name, "y", is_output=True),
    )
    depth, extensions = _DEPTH, ""
    if shape is not None:
        m, n, k, subgroups = shape
        depth, across = max(depth, k), _COLUMNS // n
        matrices = _ROWS // m * across
        sizes = {"m": m, "n": n, "k": k, "across": across, "matrices": matrices}
        extensions = _COOPERATIVE.format(**sizes, each=ceil_div(matrices, subgroups))
    preamble = f"""{extensions}#define _DEPTH {depth}
#define FACTOR {GLSL_TYPES[factor.name]}
#define SUM {GLSL_TYPES[wide.name]}
{to_half * (result == np.float16)}SUM _sum;"""
    return builtin(
        InnerKernel(
            params,
            f"y = {_final('_sum', result)}",
            "matmul",
            preamble,
            lambda shape, _: (
                prod(shape[:-2])
                * ceil_div(shape[-2], _ROWS)
                * ceil_div(shape[-1], _COLUMNS)
                * LANES
            ),
            main=(_TILED, "    }\n}"),
        )
    )
