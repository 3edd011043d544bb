"""Kernels that scan elements of arrays along an axis, in an order that only shapes decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from vkops.arguments.other_names import suggest_names
from vkops.elementwise.formats import GLSL_TYPES
from vkops.elementwise.parameters import Parameter
from vkops.elementwise.source import GROUP
from vkops.kernels.arithmetic import DType, to_half
from vkops.kernels.axis_kernel import (
    COUNT,
    FOR_EACH,
    LANES,
    AxisKernel,
    InnerKernel,
    builtin,
    function_of,
    permuted,
)
from vkops.kernels.functions import summed, typed_input, widened
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.tensors.creation import empty
from vkops.tensors.shape_arguments import one_axis
from vkops.tensors.tensor import DeviceLike, Tensor

RUN = 32
"""The elements that one invocation scans, one after the other."""

_FEW, _SHARED_RUNS = 8, 32
"""Rows of so few elements are read alone, and so many runs are read by a workgroup together."""

_PARTS = ("run_before", "run_sums", "run_starts")

_HEAD = f"""void main() {{
    {GROUP}
    const uint _lane = gl_LocalInvocationID.x;
    const uint _count = uint(_value_n), _runs = (_count + {RUN - 1}) / {RUN}, _rows = _n / _count;
    if (_group * _RUNS >= _rows * _runs) return;
    const uint _place = min(_group * _RUNS + _lane, _rows * _runs - 1);
    const uint _row = %s, _run = %s, _own = _row * _runs + _run, _first = {RUN} * _run;
    const bool _is_used = _lane < _RUNS && _group * _RUNS + _lane == _place;
    const uint _length = _is_used ? min({RUN}, _count - _first) : 0;"""

_ALONE = """
    for (uint _k = _first; _k < _first + _length; ++_k) {
        const uint _i = _row * _count + _k;"""
"""Each invocation reads and writes the elements of its run; neighbours have neighbouring rows."""

_SHARED = f"""shared uvec2 _firsts[_RUNS];
shared uint _starting[_RUNS];
shared %(element)s _items[_RUNS * {RUN + 1}];
%(element)s _read[_EACH];
"""
"""The runs of a workgroup: their rows and first elements, what starts segments, and the items.

The result before a run is before its items, so that neighbours use different banks.
"""

_TOGETHER = f"""
    {FOR_EACH} {{
        const uint _r = _t / {RUN}, _s = _t % {RUN}, _at = _t + _r + 1;
        const uint _k = min(_firsts[_r].y + _s, _count - 1), _i = _firsts[_r].x + _k;"""
"""Invocations read or write the elements of all runs of the workgroup, one after the other.

They read an element again where there is none: without branches, several are read at a time.
"""


class ScanKernel(AxisKernel):
    """A kernel that scans the elements of arrays along an axis, as PyOpenCL's GenericScanKernel.

    Each element is mapped to an item; items are replaced by the results of themselves and of all
    items before them; and these are mapped to outputs. The order of operations is fixed by the
    shapes and the axis alone: no device, workgroup or layout changes it. ``scan_expr`` must be
    associative, but for rounding.

    Args:
        in_params: the inputs, as for ``ElementwiseKernel``. The names of the expressions are taken,
            and run_before, run_sums and run_starts.
        out_params: the outputs. Those that are ``raw`` are indexed by ``output_statement``, and
            must be given in a call.
        input_expr: the GLSL expression for an item, in which ``i`` is the index of the element
            along the axis, and ``n`` is the number of elements.
        scan_expr: the GLSL expression for ``a``, the result of items, and ``b``, that of the items
            that follow. ``across_seg_boundary`` is true if a segment starts among these.
        output_statement: GLSL statements that assign to the outputs, in which ``item`` is the
            result of the items up to this one, and ``prev_item`` that of those before it.
        neutral: the GLSL of ``prev_item`` at the start of a segment, or None if it is not used.
        name: the name of the kernel in errors.
        scan_type: the type of items: a NumPy data type or a type variable; by default that of the
            first output.
        is_segment_start_expr: the GLSL expression that is true where a segment starts, if any.
        preamble: GLSL declarations, such as functions that the expressions call.

    Attributes:
        name: the name.

    Raises:
        InvalidDescError: a declaration is wrong (EW-01).

    >>> import numpy as np, vkops
    >>> most = vkops.ScanKernel("T x", "T y", "x", "max(a, b)", "y = item", name="most")
    >>> x = np.array([[1, 3, 2], [5, 4, 6]], np.float32)
    >>> most(x, axis=1).numpy()
    array([[1., 3., 3.],
           [5., 5., 6.]], dtype=float32)
    """

    _type_field = "scan_type"
    _reserved = ("a", "b", "item", "prev_item", "across_seg_boundary", *_PARTS)
    _raw_outputs = True

    def __init__(
        self,
        in_params: str,
        out_params: str,
        input_expr: str,
        scan_expr: str,
        output_statement: str,
        neutral: object = None,
        name: str = "scan",
        scan_type: str | None = None,
        is_segment_start_expr: str | None = None,
        preamble: str = "",
    ) -> None:
        texts = {"input_expr": input_expr, "scan_expr": scan_expr}
        texts["output_statement"] = output_statement
        texts["is_segment_start_expr"] = is_segment_start_expr or ""
        self._declare(name, in_params, out_params, scan_type, preamble, **texts)
        self._neutral = neutral
        self._scan_of_sums = self._memoized(self._new_scan_of_sums)

    def __call__(
        self, *args: Any, axis: Any = None, out: Any = None, device: DeviceLike = None
    ) -> Any:
        """Scan, without waiting for it.

        Arguments, results and errors are those of ``ReductionKernel``, but for ``axis``, which is
        one; by default all elements are scanned in C order, and outputs have one dimension.
        """
        home, inputs, outputs, shape, form = self._arguments(args, out, device)
        result_shape, order = shape, [*range(len(shape))]
        if axis is None:
            result_shape, count = (prod(shape),), prod(shape)
        else:
            last = one_axis(self.name, axis, len(shape))
            order, count = [i for i in order if i != last] + [last], shape[last]
        results = self._results(home, outputs, result_shape)
        if prod(shape):
            values = [permuted(home, each, shape, order) for each in inputs]
            targets = [
                each if parameter.raw else each.reshape(shape).transpose(*order)
                for each, parameter in zip(results, self._outputs, strict=True)
            ]
            runs, before = ceil_div(count, RUN), []
            together = not home.tuning.is_cpu and count > _FEW and self._is_along(values)
            if runs > 1:
                rows, types = prod(shape) // count, [form[0], np.dtype(np.int32)]
                types = types[: 1 + bool(self._texts[3])]
                sums = [empty((rows, runs), dtype=each, device=home) for each in types]
                kernel = self._pass(*form, "run_sums", together, axis is None)
                kernel(*values, count, out=sums, device=home)
                before = sums[:1]
                self._scan_of_sums(*form)(*sums, axis=1, out=before)
            kernel = self._pass(*form, "run_before" * len(before), together, axis is None)
            kernel(*values, count, *before, out=targets, device=home)
        return results[0] if len(results) == 1 else tuple(results)

    def _is_along(self, values: Sequence[Any]) -> bool:
        """Whether neighbours along the axis are nearer than rows are, in the first array."""
        pairs = zip(values, self._inputs, strict=True)
        first = next(x for x, each in pairs if isinstance(x, Tensor) and not each.raw)
        strides = [abs(stride) for stride in first.placed()[1].strides]
        return len(strides) == 1 or strides[-1] <= strides[-2] or not strides[-2]

    def _new_pass(
        self, dtype: DType, types: Any, part: str, together: bool, flat: bool
    ) -> InnerKernel:
        """The kernel whose invocations each scan a run of elements, one after the other.

        Its arguments are arrays whose last dimension has the ``n`` elements to scan, or which have
        ``n`` elements in all if they are ``flat``, ``n``, and, if there are several runs, the
        results ``run_before`` them. The outputs are those of the elements; or ``run_sums`` and
        ``run_starts``, the result of each run, and whether a segment starts in it. Those of a
        workgroup read and write its elements ``together`` or alone.
        """
        mapped, scanned, statement, start = self._texts
        element, name, is_bool = GLSL_TYPES[dtype.name], self.name, dtype.kind == "b"
        array = Parameter(dtype.name, part, part == "run_sums", raw=True)
        params = [*self._concrete(self._inputs, types), COUNT, *[array] * bool(part)]
        begin, end, output = "", "", ""
        if part == "run_before":
            last = f"{'uint' * is_bool}(run_before[_own - 1])"
            begin = f"_some = _is_used && _run > 0; if (_some) _last = {element}({last});"
        if part == "run_sums":
            end = f"run_sums[_own] = {'uint8_t(uint(_last))' if is_bool else '_last'};"
            if start:
                params.append(Parameter("int32", "run_starts", is_output=True, raw=True))
                end += " run_starts[_own] = int(_start);"
            end = f"if (_is_used) {{ {end} }}"
        else:
            params += self._concrete(self._outputs, types)
            if self._neutral is not None:
                first = f"{element}({self._neutral})"
                output = f"const {element} prev_item = _had && !_starts ? _before : {first};\n"
            output += f"const {element} item = _last;\n"
            output += f'#line 1 "{name} output_statement"\n{statement}'
        read = f"""_item = {element}(
#line 1 "{name} input_expr"
{mapped}
);
_starts = bool(
#line 1 "{name} is_segment_start_expr"
{start or "false"}
);"""
        scan = """_before = _last; _had = _some;
_last = _some ? _scanned(_last, _item, _starts) : _item;
_some = true; _start = _start || _starts;"""
        runs = _SHARED_RUNS if together else LANES
        if together:
            operation = f"if (_reads) {{\n{read}\nreturn;\n}}\n{output}"
            main = _shared_main(element, begin, scan, end, bool(start), bool(output))
        else:
            operation = f"{read}\n{scan}\n{output}"
            head = _HEAD % ("_place % _rows", "_place / _rows")
            main = f"{head}\n    {begin}{_ALONE}", f"    }}\n    {end}\n}}"

        def invocations(shape: Ints, _: object) -> int:
            rows = 1 if flat else prod(shape[:-1])
            return rows * ceil_div(prod(shape) // rows, RUN) * (LANES // runs)

        arguments = f"{element} a, {element} b, bool across_seg_boundary"
        function = function_of(name, "scan_expr", f"_scanned({arguments})", scanned, element)
        declared = f"""#define _RUNS {runs}
#define _EACH (_RUNS * {RUN} / {LANES})
{self._declared(types)}
{element} _last = {element}(0), _before, _item;
bool _some = false, _had, _starts, _start = false, _reads = true;
{function}"""
        return InnerKernel(
            tuple(params),
            operation,
            name,
            declared,
            main=main,
            index="_k",
            invocations=invocations,
        )

    def _new_scan_of_sums(self, dtype: DType, types: Any) -> ScanKernel:
        _, scanned, _, start = self._texts
        inputs = f"{dtype} x{', int32 s' * bool(start)}"
        texts = inputs, f"{dtype} y", "x", scanned, "y = item", None, self.name, None
        return ScanKernel(*texts, "s != 0" * bool(start), self._declared(types))


suggest_names(ScanKernel)


def _shared_main(
    element: str, begin: str, scan: str, end: str, has_starts: bool, has_output: bool
) -> tuple[str, ...]:
    """The text around the statements of runs that a workgroup reads and writes together."""
    bits, at = "(_starting[%s] >> _s & 1) != 0" if has_starts else "false", f"_lane * {RUN + 1}"
    head = f"""{_SHARED % {"element": element}}{_HEAD % ("_place / _runs", "_place % _runs")}
    {begin}
    if (_lane < _RUNS) {{
        _firsts[_lane] = uvec2(_row * _count, _is_used ? _first : _count);
        _starting[_lane] = 0;
        _items[{at}] = _last;
    }}
    barrier();{_TOGETHER}"""
    scanned = f"""        _read[_u] = _item;
        if (_starts) atomicOr(_starting[_r], 1u << _s);
    }}
    {FOR_EACH} _items[_t + _t / {RUN} + 1] = _read[_u];
    barrier();
    for (uint _s = 0, _at = {at} + 1; _s < _length; ++_s, ++_at) {{
        _item = _items[_at]; _starts = {bits.replace("%s", "_lane")};
        {scan}
        {"_items[_at] = _last;" * has_output}
    }}
    {end}"""
    if not has_output:
        return head, f"{scanned}\n}}"
    write = f"""
    memoryBarrierBuffer();  // others have read what is overwritten
    barrier();
    _reads = false;{_TOGETHER}
        if (_firsts[_r].y + _s > _k) continue;
        _last = _items[_at]; _before = _items[_at - 1];
        _had = _k > 0; _starts = {bits.replace("%s", "_r")};"""
    return head, scanned + write, "    }\n}"


def cumsum(
    x: Any, /, axis: Any = None, *, dtype: Any = None, out: Any = None, device: DeviceLike = None
) -> Tensor:
    """Return the sums of the elements up to each one along an axis, as ``numpy.cumsum``.

    Arguments and errors are those of ``sum``, but for ``axis``, which is one; by default, the
    elements of all axes are summed in C order.

    >>> import numpy as np, vkops
    >>> vkops.kernels.cumsum(np.arange(6).reshape(2, 3), axis=1).numpy()
    array([[ 0,  1,  3],
           [ 3,  7, 12]])
    """
    tensor, result_dtype = typed_input("cumsum", x, dtype, device, summed)
    return _accumulating("cumsum", tensor.dtype, result_dtype, "a + b")(tensor, axis=axis, out=out)


def cumprod(
    x: Any, /, axis: Any = None, *, dtype: Any = None, out: Any = None, device: DeviceLike = None
) -> Tensor:
    """Return the products of the elements up to each one along an axis, as ``numpy.cumprod``.

    Arguments and errors are those of ``cumsum``.

    >>> import numpy as np, vkops
    >>> vkops.kernels.cumprod(np.arange(1, 6)).numpy()
    array([  1,   2,   6,  24, 120])
    """
    tensor, result_dtype = typed_input("cumprod", x, dtype, device, summed)
    return _accumulating("cumprod", tensor.dtype, result_dtype, "a * b")(tensor, axis=axis, out=out)


@lru_cache(64)
def _accumulating(name: str, dtype: DType, result: DType, scanned: str) -> Callable[..., Tensor]:
    is_half = result == np.float16
    texts = f"{dtype} x", f"{result} y", "x", scanned, f"y = {'to_half' * is_half}(item)"
    kernel = ScanKernel(*texts, None, name, widened(result).name, None, to_half * is_half)
    return builtin(kernel)
