"""Stable radix sorts of numbers along an axis."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from vkops.arguments.values import Place, refuse
from vkops.elementwise.formats import GLSL_TYPES
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.elementwise.parameters import parse
from vkops.elementwise.source import GROUP
from vkops.kernels.axis_kernel import FOR_EACH, LANES, InnerKernel, builtin
from vkops.kernels.functions import converted, integer_from, numbers_of, typed_input
from vkops.kernels.scan import ScanKernel
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.tensors.creation import empty
from vkops.tensors.shape_arguments import one_axis, one_or_more
from vkops.tensors.tensor import Device, DeviceLike, Tensor

_MIN_LENGTH, _MAX_LENGTH = 64, 1 << 15
"""The elements that an invocation moves; some drivers end loops after 65,535 iterations."""

_TILE_BYTES = 64 * LANES

_TILE = f"""void main() {{
    {GROUP}
    const uint _lane = gl_LocalInvocationID.x, _first = _group * _EACH * {LANES};
    for (uint _t = _lane; _t < _counts.length(); _t += {LANES}) _counts[_t] = 0;
    barrier();
    {FOR_EACH} {{
        const uint _i = min(_first + _t, _n - 1);"""

_COUNT_TILE = (
    f"shared uint _counts[512];\n{_TILE}",
    """        atomicAdd(_counts[32 * _digit + _lane % 32], _first + _t < _n ? 1 : 0);
    }
    barrier();
    uint _sum = 0;
    for (uint _k = 0; _lane < 16 && _k < 32; ++_k) _sum += _counts[32 * _lane + (_lane + _k) % 32];
    if (_lane < 16 && _group < _value_runs) table[_lane * _value_runs + _group] = int(_sum);
}""",
)
"""The kernel whose workgroups count the digits of a tile: neighbours have counts of their own."""

_EXCHANGE = f"""
    memoryBarrierBuffer();  // others have read what is overwritten
    barrier();
    {FOR_EACH} _tile[_AT(_ranks[_u])] = %s[_u];
    barrier();
    {FOR_EACH} %s[_u] = _tile[_AT(_t)];"""

_MOVE_TILE = (
    f"""#define _AT(t) ((t) + (t) / _EACH)
shared uint _counts[9 * {LANES}], _sums[{LANES + 1}], _offsets[16];
shared _Word _tile[_AT(_EACH * {LANES})];
_Word _keys[_EACH], _places[_EACH], _targets[_EACH];
uint _ranks[_EACH];
uint _before(uint digit, uint lane) {{
    const uint slot = digit % 8 * {LANES} + lane, total = _sums[{LANES}] << 16;
    return (_counts[slot + slot / 8] + _sums[slot / 8] + total) >> digit / 8 * 16 & 0xFFFF;
}}
{_TILE}""",
    f"""        _keys[_u] = _key; _places[_u] = _place;
        _tile[_AT(_t)] = _first + _t < _n ? _digit : 15;
    }}
    barrier();
    for (uint _k = 0; _k < _EACH; ++_k) {{
        const uint _at = _lane * (_EACH + 1) + _k, _d = uint(_tile[_at]), _shift = _d / 8 * 16;
        const uint _slot = _d % 8 * {LANES} + _lane, _some = _counts[_slot + _slot / 8];
        _tile[_at] = (_some >> _shift & 0xFFFF) << 4 | _d;
        _counts[_slot + _slot / 8] = _some + (1 << _shift);
    }}
    barrier();
    uint _sum = 0;
    for (uint _at = 9 * _lane; _at < 9 * _lane + 8; ++_at) {{
        const uint _some = _counts[_at];
        _counts[_at] = _sum;
        _sum += _some;
    }}
    _sums[_lane + 1] = _sum;
    if (_lane == 0) _sums[0] = 0;
    barrier();
    for (uint _apart = 1; _apart < {LANES}; _apart *= 2) {{
        const uint _more = _lane < _apart ? 0 : _sums[_lane + 1 - _apart];
        barrier();
        _sums[_lane + 1] += _more;
        barrier();
    }}
    if (_lane < 16 && _group < _value_runs)
        _offsets[_lane] = table[_lane * _value_runs + _group] - _before(_lane, 0);
    barrier();
    {FOR_EACH} {{
        const uint _rank = uint(_tile[_AT(_t)]), _d = _rank & 15;
        _ranks[_u] = _before(_d, _t / _EACH) + (_rank >> 4);
        _targets[_u] = _offsets[_d] + _ranks[_u];
    }}""",
)
"""The kernel whose workgroups sort a tile by a digit, and write it: runs of equal digits.

The elements of an invocation follow one another. It has 16 counts, two in a word. ``_before`` is
the number of elements of lower digits, and of those with this digit that come before those of an
invocation. All values change their places in shared memory.
"""

_OFFSETS = builtin(ScanKernel("T x", "T y", "x", "a + b", "y = prev_item", "0", "sort"))
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
    for each in one_or_more(kth, Place("partition", "kth", "EW-05")):
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
    digit_bits = 8 if home.tuning.is_cpu else 4
    kind = x.dtype.name if x.dtype.name == "bfloat16" else x.dtype.kind
    key = kind, bits, descending, digit_bits
    types = np.dtype(f"uint{bits}"), np.dtype(f"uint{max(bits, 32)}")
    length = _tile_length(bits)
    if home.tuning.is_cpu:
        runs = max(min(ceil_div(size, _MIN_LENGTH), 1 << 10), ceil_div(size, _MAX_LENGTH))
        length = ceil_div(size, runs)
    runs = ceil_div(size, length)
    require_room(name, size * (1 + has_places) * types[has_places].itemsize, home)
    values = [x.view(types[0])]
    for by_row, all_bits in ((False, bits), (True, (rows - 1).bit_length())):
        for shift in range(0, all_bits, digit_bits):
            form = by_row, has_places + len(values) - 1
            numbers = shift, runs, length, size // rows
            table = empty(runs << digit_bits, dtype="int32", device=home)
            moved = empty(size * (1 + has_places), dtype=types[has_places], device=home)
            _pass(*key, *form, False)(*values, *numbers, out=table)
            _OFFSETS(table, out=table)
            _pass(*key, *form, True)(*values, *numbers, out=[table, moved])
            values = [moved[:size], moved[size:]][: 1 + has_places]
    keys = values[0]
    return keys if keys.dtype == types[0] else converted(keys, types[0]), values[-1]


def _tile_length(bits: int) -> int:
    """The elements that a workgroup of a GPU moves, in shared memory: words of 4 or 8 bytes."""
    return _TILE_BYTES // (8 if bits > 32 else 4)


@lru_cache(64)
def _pass(
    kind: str, bits: int, descending: bool, digit_bits: int, by_row: bool, places: int, moves: bool
) -> InnerKernel:
    """The kernel whose invocations each count the digits of a run in a table, or move it by that.

    The table has, for each digit, a number for each run. ``places`` is 0 without places, 1 in the
    first pass, and then 2.
    """
    key = "uint64_t" if bits > 32 else "uint"
    infinity = 0x7FF0 if bits == 64 else 0x7F80 if bits == 32 or kind == "bfloat16" else 0x7C00
    floats = f"""const {key} magnitude = key & ~sign;
if (magnitude > {key}({infinity}) << {bits - 16})
    key = ~{key}(0);
else if (magnitude == 0)
    key = sign;
else
    key = (key & sign) != 0 ? ~key : key | sign;"""
    orders = {"i": "key ^= sign;", "f": floats, "bfloat16": floats}
    order = orders.get(kind, "") + "key = ~key;" * descending
    find = f"""const {key} sign = {key}(1) << {bits - 1};
{key} key = {key}(x);
{order}"""
    if by_row:
        find = "const uint key = uint(place) / uint(count);"
    if places == 1:
        find = f"const uint place = i;\n{find}"
    wide = f"uint{max(bits, 32) if places else bits}"
    element = GLSL_TYPES[wide]
    inputs = f"{wide} x, {wide} place" if places == 2 else f"uint{bits} x"
    inputs += ", int32 shift, int32 runs, int32 length, int32 count"
    outputs = f"raw int32 table{f', raw {wide} moved' * moves}"
    form = _tile_form if digit_bits == 4 else _run_form
    operation, declared, main, lanes = form(find, key, element, places, moves)
    kernel = InnerKernel(
        parse("sort", inputs, outputs, raw_outputs=True),
        operation,
        "sort",
        declared,
        main=main,
        invocations=lambda _, arrays: (prod(arrays["table"]) >> digit_bits) * lanes,
    )
    return builtin(kernel)


Form = tuple[str, str, tuple[str, str], int]
"""The operation, the declarations, the text around it, and the invocations for each run."""


def _run_form(find: str, _: str, element: str, places: int, moves: bool) -> Form:
    """The form of CPU drivers: each invocation has a run, and its counts in the table."""
    operation = f"{find}\nconst int entry = int(key >> shift & 255) * runs + _run;\n"
    if moves:
        operation += f"const int to = table[entry]++; moved[to] = {element}(x);"
        operation += f" moved[n + to] = {element}(place);" * bool(places)
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
    return operation, "int _run;", (head, "    }\n}"), 1


def _tile_form(find: str, key: str, element: str, places: int, moves: bool) -> Form:
    """The form of GPUs: the invocations of a workgroup have a tile, and counts in shared memory."""
    operation = f"{find}\n_digit = uint(key >> shift) & 15;"
    each = _tile_length(64 if key == "uint64_t" else 32) // LANES
    declared = f"#define _EACH {each}\nuint _digit;"
    if not moves:
        return operation, declared, _COUNT_TILE, LANES
    operation += f" _key = {key}(x);" + f" _place = {key}(place);" * bool(places)
    declared += f"\n#define _Word {key}\n_Word _key, _place;"
    store = f"moved[_to] = {element}(_keys[_u]);"
    store += f" moved[_n + _to] = {element}(_places[_u]);" * bool(places)
    arrays = ("_targets", "_keys", "_places")[: 2 + bool(places)]
    tail = f"""{"".join(_EXCHANGE.replace("%s", array) for array in arrays)}
    {FOR_EACH} {{
        const uint _to = uint(_targets[_u]);
        if (_first + _t < _n) {{ {store} }}
    }}
}}"""
    return operation, declared, (_MOVE_TILE[0], _MOVE_TILE[1] + tail), LANES
