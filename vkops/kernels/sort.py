"""Stable radix sorts of numbers along an axis."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from math import prod
from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, refuse
from vkops.elementwise.formats import GLSL_TYPES
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.elementwise.parameters import parse
from vkops.elementwise.source import GROUP
from vkops.kernels.axis_kernel import LANES, InnerKernel, builtin
from vkops.kernels.functions import converted, integer_from, numbers_of, typed_input
from vkops.kernels.scan import PATIENCE, ScanKernel
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.tensors.creation import empty, zeros
from vkops.tensors.shape_arguments import one_axis, one_or_more
from vkops.tensors.tensor import Device, DeviceLike, Tensor

_MIN_LENGTH, _MAX_LENGTH = 64, 1 << 15
"""The elements that an invocation of a CPU driver moves; some end loops after 65,535 iterations."""

_COUNT, _MOVE = (
    files(__package__).joinpath(f"sort_{name}.glsl").read_text("utf-8").split("// the element\n")
    for name in ("count", "tile")
)
"""The kernels of GPUs, around the statements for an element."""

_TILE_WORDS = 20
"""The words of keys that an invocation of a GPU has: 128 of them have those of 10 KiB."""

_COUNTED, _COUNTING, _COUNTS = 64, 2048, 16
"""The elements that an invocation of a GPU counts at least, the most workgroups that count, and
how many numbers these have for each digit."""

_OFFSETS = builtin(ScanKernel("T x", "T y", "x", "a + b", "y = prev_item", "0", "sort"))
_ENDS = builtin(ScanKernel("T x", "T y", "x", "a + b", "y = prev_item | 1 << 31", "0", "sort"))
_INDICES = builtin(
    ElementwiseKernel("S x, int32 count", "T y", "y = T(uint(x) % uint(count))", "argsort")
)


def sort(
    x: Any,
    /,
    axis: Any = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    device: DeviceLike = None,
) -> Tensor:
    """Return the elements sorted along an axis, as ``numpy.sort`` with ``stable=True``.

    Args:
        x: a tensor or an array.
        axis: the axis; with None, the elements of all axes are sorted.
        descending: from the largest to the smallest; equal elements keep their order.
        stable: equal elements always keep their order: there is no other sort.
        device: where it runs; by default the device of the tensor.

    NaN is larger than all other numbers, and -0 is equal to 0. It does not wait.

    Raises:
        InvalidDescError: an axis that does not exist (ARRAY-01), elements of another type (EW-04),
            too many (EW-07), or a type that the device lacks (SH-02).

    >>> import numpy as np, vkops
    >>> vkops.kernels.sort(np.array([3.0, np.nan, -1.0], np.float32)).numpy()
    array([-1.,  3., nan], dtype=float32)
    """
    return sorted_places("sort", numbers_of("sort", x, device), axis, descending, None)[0]


def argsort(
    x: Any,
    /,
    axis: Any = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the indices that sort an axis, as ``numpy.argsort`` with ``stable=True``.

    Arguments and errors are those of ``sort``; ``dtype`` is that of the indices, by default int64.
    With ``vkops.take_along_axis``, they sort other arrays by these keys.

    >>> import numpy as np, vkops
    >>> vkops.kernels.argsort(np.array([3, 1, 2, 1], np.int32)).numpy()
    array([1, 3, 2, 0])
    """
    tensor, result_dtype = typed_input("argsort", x, dtype, device)
    return sorted_places("argsort", tensor, axis, descending, result_dtype)[1]


def partition(x: Any, kth: int | Ints, /, axis: Any = -1, *, device: DeviceLike = None) -> Tensor:
    """Return the elements so that those before ``kth`` are not larger, as ``numpy.partition``.

    Arguments and errors are those of ``sort``. All elements are sorted, so ``kth`` can be several
    places.

    >>> import numpy as np, vkops
    >>> vkops.kernels.partition(np.array([3, 1, 2], np.int32), 1).numpy()
    array([1, 2, 3], dtype=int32)
    """
    tensor = numbers_of("partition", x, device)
    if axis is None:
        tensor, axis = tensor.reshape(-1), 0
    size = max(tensor.shape[one_axis("partition", axis, tensor.ndim)], 1)
    for each in one_or_more(kth, ArgumentName("partition", "kth", "EW-05")):
        integer_from(-size, size - 1, each, "partition", "kth")
    return sorted_places("partition", tensor, axis, False, None)[0]


def topk(
    x: Any,
    k: int,
    /,
    axis: int = -1,
    *,
    largest: bool = True,
    dtype: Any = None,
    device: DeviceLike = None,
) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest or smallest elements of an axis, in their order, and their indices.

    Arguments and errors are those of ``argsort``; of equal elements, the first ones are taken.

    >>> import numpy as np, vkops
    >>> values, indices = vkops.kernels.topk(np.array([3, 1, 5, 5], np.int32), 3)
    >>> values.tolist(), indices.tolist()
    ([5, 5, 3], [2, 3, 0])
    """
    tensor, result_dtype = typed_input("topk", x, dtype, device)
    values, indices = sorted_places("topk", tensor, axis, largest, result_dtype)
    positive_axis = one_axis("topk", axis, tensor.ndim)
    count = integer_from(0, tensor.shape[positive_axis], k, "topk", "k")
    chosen = (slice(None),) * positive_axis + (slice(count),)
    return values[chosen].copy(), indices[chosen].copy()


def sorted_places(
    name: str, tensor: Tensor, axis: Any, descending: bool, dtype: np.dtype[Any] | None
) -> tuple[Tensor, Tensor]:
    """The sorted elements and, if a data type is given, their indices along the axis."""
    if axis is None:
        tensor, axis = tensor.reshape(-1), 0
    last = one_axis(name, axis, tensor.ndim)
    moved = tensor.swapaxes(last, -1)
    keys = indices = moved if tensor.size else moved.copy()
    if dtype is not None:
        indices = empty(moved.shape, dtype=dtype, device=tensor.device)
    if tensor.size:
        rows = prod(moved.shape[:-1])
        keys, places = _radix_sorted(name, moved, rows, descending, dtype is not None or rows > 1)
        keys = keys.view(tensor.dtype).reshape(moved.shape)
        if dtype is not None:
            _INDICES(places.reshape(moved.shape), moved.shape[-1], out=indices)
    return keys.swapaxes(last, -1), indices.swapaxes(last, -1)


def require_room(name: str, nbytes: int, device: Device) -> None:
    """Refuse an array whose sort needs more bytes in one piece than the device has (EW-07)."""
    if nbytes > (most := device.pool.max_range):
        refuse(name, "x", f"needs {nbytes} bytes to sort it, must be {most} at most", "EW-07")


def _radix_sorted(
    name: str, x: Tensor, rows: int, descending: bool, has_places: bool
) -> tuple[Tensor, Tensor]:
    """The bits of all elements, sorted by rows and in these, and the places that they had."""
    home, size, bits = x.device, x.size, 8 * x.itemsize
    kind = x.dtype.name if x.dtype.name == "bfloat16" else x.dtype.kind
    key = kind, bits, descending
    types = np.dtype(f"uint{bits}"), np.dtype(f"uint{max(bits, 32)}")
    require_room(name, size * (1 + has_places) * types[has_places].itemsize, home)
    values = [x.view(types[0])]
    shifts = range(0, bits, 8), range(0, (rows - 1).bit_length(), 8)
    passes = [(bool(by_row), shift) for by_row in range(2) for shift in shifts[by_row]]
    count = size // rows
    if home.tuning.is_cpu:
        runs = max(min(ceil_div(size, _MIN_LENGTH), 1 << 10), ceil_div(size, _MAX_LENGTH))
        state = empty((1, runs << 8), dtype="int32", device=home)
    else:
        lanes = _lanes(home)
        tiles = ceil_div(size, _tile_length(bits, lanes))
        state = zeros((len(passes), tiles + 2, 256), "uint32", device=home)
        _counting(*key, len(passes))(*values, count, tiles + 2, out=state)
        _ENDS(state[:, 1], axis=1, out=state[:, 1])
    for number, (by_row, shift) in enumerate(passes):
        moved = empty(size * (1 + has_places), dtype=types[has_places], device=home)
        variant = *key, by_row, has_places + bool(number and has_places)
        if home.tuning.is_cpu:
            numbers, table = (shift, count, runs, ceil_div(size, runs)), state[0]
            _run_pass(*variant, False)(*values, *numbers, out=table)
            _OFFSETS(table, out=table)
            _run_pass(*variant, True)(*values, *numbers, out=[table, moved])
            values = [moved[:size], moved[size:]][: 1 + has_places]
        else:
            whole = size if variant[-1] == 2 else None
            _tile_pass(*variant, lanes)(
                *values, shift, count, size=whole, out=[state[number], moved]
            )
            values = [moved]
    keys, places = moved[:size], moved[size:]
    return keys if keys.dtype == types[0] else converted(keys, types[0]), places


def _lanes(home: Device) -> int:
    """The invocations of a workgroup of a GPU: many, so that tiles have few words to share."""
    shared = home.info.limits.max_compute_shared_memory_size
    return 256 if shared >= 32 << 10 and home.tuning.invocations >= 256 else LANES


def _tile_length(bits: int, lanes: int) -> int:
    """The elements that a workgroup of a GPU moves, in shared memory: words of 4 or 8 bytes."""
    return _TILE_WORDS // (2 if bits > 32 else 1) * lanes


def _ordered(kind: str, bits: int, descending: bool, by_row: bool = False) -> str:
    """The GLSL of ``ordered``, which makes of bits integers in their order, or of places rows."""
    if by_row:
        return "#define ordered(place) (uint(place) / uint(_value_count))"
    key = "uint64_t" if bits > 32 else "uint"
    infinity = 0x7FF0 if bits == 64 else 0x7F80 if bits == 32 or kind == "bfloat16" else 0x7C00
    floats = f"""    if (key == sign) key = 0;
    const bool is_nan = (key & ~sign) > {key}({infinity}) << {bits - 16};
    key ^= (key & sign) != 0 ? ~{key}(0) : sign;
    if (is_nan) key = ~{key}(0);"""
    orders = {"i": "    key ^= sign;", "f": floats, "bfloat16": floats}
    return f"""{key} ordered({key} key) {{
    const {key} sign = {key}(1) << {bits - 1};
{orders.get(kind, "")}
    return {"~" * descending}key;
}}"""


def _kernel(
    inputs: str, outputs: str, operation: str, declared: str, **options: Any
) -> InnerKernel:
    params = parse("sort", inputs, outputs, raw_outputs=True)
    return builtin(InnerKernel(params, operation, "sort", declared, **options))


@lru_cache(64)
def _run_pass(
    kind: str, bits: int, descending: bool, by_row: bool, places: int, moves: bool
) -> InnerKernel:
    """The kernel of CPU drivers whose invocations each count the digits of a run, or move it.

    The table has, for each digit, a number for each run. ``places`` is 0 without places, 1 in the
    first pass, and then 2.
    """
    wide = f"uint{max(bits, 32) if places else bits}"
    inputs = f"{wide} x, {wide} place" if places == 2 else f"uint{bits} x"
    key = "place" if by_row else "uint64_t(x)" if bits > 32 else "uint(x)"
    operation = f"const int entry = int(ordered({key}) >> shift & 255) * runs + _run;\n"
    if moves:
        operation += f"const int to = table[entry]++; moved[to] = {GLSL_TYPES[wide]}(x);"
        place = "i" if places == 1 else "place"
        operation += f" moved[n + to] = {GLSL_TYPES[wide]}({place});" * bool(places)
    else:
        operation += "++table[entry];"
    clear = "for (int d = 0; d < 256; ++d) table[d * _value_runs + _run] = 0;"
    head = f"""void main() {{
    {GROUP}
    _run = int(_group * gl_WorkGroupSize.x + gl_LocalInvocationID.x);
    if (_run >= _value_runs) return;
    {clear * (not moves)}
    const uint _length = uint(_value_length), _first = uint(_run) * _length;
    for (uint _i = _first; _i < min(_n, _first + _length); ++_i) {{"""
    return _kernel(
        f"{inputs}, int32 shift, int32 count, int32 runs, int32 length",
        f"raw int32 table{f', raw {wide} moved' * moves}",
        operation,
        f"int _run;\n{_ordered(kind, bits, descending, by_row)}",
        main=(head, "    }\n}"),
        invocations=lambda _, arrays: prod(arrays["table"]) >> 8,
    )


def _defined(**macros: object) -> str:
    return "\n".join([f"#define {name} {value}" for name, value in macros.items()])


@lru_cache(64)
def _counting(kind: str, bits: int, descending: bool, digits: int) -> InnerKernel:
    """The kernel of GPUs that counts so many digits: those of keys, and then those of rows."""
    macros = _defined(
        Word="uint64_t" if bits > 32 else "uint",
        EACH=4,
        LANES=LANES,
        KEY_DIGITS=bits // 8,
        DIGITS=digits,
        COPIES=max(_COUNTS // digits, 1),
    )
    return _kernel(
        f"uint{bits} x, int32 count, int32 stride",
        "raw uint32 state",
        "_key = Word(x)",
        f"{macros}\n{_ordered(kind, bits, descending)}",
        main=_COUNT,
        invocations=lambda shape, _: min(ceil_div(prod(shape), _COUNTED), _COUNTING * LANES),
    )


@lru_cache(64)
def _tile_pass(
    kind: str, bits: int, descending: bool, by_row: bool, places: int, lanes: int
) -> InnerKernel:
    """The kernel of GPUs whose workgroups each move a tile; arguments are those of ``_run_pass``.

    Keys and places are in one array, one after the other: it moves those with the digit first.
    """
    wide, length = f"uint{max(bits, 32) if places else bits}", _tile_length(bits, lanes)
    starts = ("_n", "0") if by_row else ("0", "_n")
    macros = {
        "Word": "uint64_t" if bits > 32 else "uint",
        "WORDS": max(bits // 32, 1),
        "EACH": length // lanes,
        "LANES": lanes,
        "PATIENCE": PATIENCE,
        "Moved": GLSL_TYPES[wide],
        "KEYS": starts[0],
    }
    if places:
        macros |= {"OTHERS": starts[1], "OTHER": f"x[{starts[1]} + _i]" if places == 2 else "_i"}
    return _kernel(
        f"{f'raw {wide}' if places == 2 else f'uint{bits}'} x, int32 shift, int32 count",
        f"raw uint32 state, raw {wide} moved",
        f"_key = Word({f'x[{starts[0]} + i]' if places == 2 else 'x'})",
        f"{_defined(**macros)}\n{_ordered(kind, bits, descending, by_row)}",
        main=_MOVE,
        local_size=lanes,
        invocations=lambda shape, _: ceil_div(prod(shape), length) * lanes,
    )
