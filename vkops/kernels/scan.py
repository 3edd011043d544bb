"""Kernels that scan elements of arrays along an axis, in an order that only shapes decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from vkops.arguments.other_names import suggest_names
from vkops.elementwise.arithmetic import DType, is_nan, to_half
from vkops.elementwise.formats import GLSL_TYPES
from vkops.elementwise.parameters import Parameter
from vkops.elementwise.source import GROUP
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
from vkops.tensors.creation import empty, zeros
from vkops.tensors.shape_arguments import one_axis
from vkops.tensors.tensor import DeviceLike, Tensor

RUN = 32
"""The elements that one invocation scans, one after the other."""

_FEW, _RUNS = 8, 32
"""Rows of so few elements are read alone, and so many runs are read by a workgroup together."""

_PARTS = ("run_before", "run_sums", "run_starts")

_ALONE = f"""void main() {{
    {GROUP}
    const uint _count = uint(_value_n), _runs = (_count + {RUN - 1}) / {RUN}, _rows = _n / _count;
    const uint _place = _group * {LANES} + gl_LocalInvocationID.x;
    if (_place >= _rows * _runs) return;
    const uint _row = _place % _rows, _run = _place / _rows, _own = _row * _runs + _run;
    %s
    for (uint _k = {RUN} * _run; _k < min({RUN} * (_run + 1), _count); ++_k) {{
        const uint _i = _row * _count + _k;"""
"""Each invocation reads and writes the elements of its run; neighbours have neighbouring rows."""

_SHARED = f"""
shared uint _starting[{_RUNS}];
shared _Item _items[{_RUNS} * {RUN + 1}];
_Item _read[_EACH];"""
"""The runs of a workgroup: what starts segments, and the items.

Before its items, a run has its result, and then the result before it: neighbours use different
banks.
"""

_TOGETHER = f"""
    {FOR_EACH} {{
        const uint _r = _t / {RUN}, _s = _t % {RUN}, _at = _t + _r + 1, _place = _PLACE;
        const uint _k = min(_place, _count - 1), _i = _START + _k;"""
"""Invocations read or write the elements of all runs of the workgroup, one after the other.

They read an element again where there is none: without branches, several are read at a time.
"""

_ROWS = f"""const uint _own_rows = {RUN} / min(_runs, {RUN}), _row = _group * _own_rows;
    if (_row >= _rows) return;
    if (_lane < {_RUNS}) {{
        const uint _r = _row + _lane / _runs;
        const bool _is_used = _lane < _own_rows * _runs && _r < _rows;
        const uint _k = _is_used ? {RUN} * (_lane % _runs) : _count;
        _firsts[_lane] = uvec2((_is_used ? _r : _row) * _count, _k);
        _starting[_lane] = 0;
    }}
    barrier();"""
"""A workgroup has whole rows, in ``_firsts`` the first element of each run, and that of its row."""

_SCAN_ROWS = f"""if (_row + _lane < _rows && _lane < _own_rows) {{
        uint _r = _lane * _runs;
        _set(_items[{RUN + 1} * _r], _HAS(_starting[_r]));
        for (++_r; _r < (_lane + 1) * _runs; ++_r) {{
            const _Item _sum = _items[{RUN + 1} * _r];
            _items[{RUN + 1} * _r] = _last;
            _add(_sum, _HAS(_starting[_r]));
        }}
    }}
    barrier();"""
"""The results before runs, from those of runs."""


def _for_32(first: str, step: str) -> str:
    """A loop over 32 numbers ``_s``, of which the first one has another statement."""
    return f"""{{ {{ const uint _s = 0; {first} }}
        [[unroll]] for (uint _s = 1; _s < 4; ++_s) {{ {step} }}
        for (uint _4 = 4; _4 < 32; _4 += 4)
            [[unroll]] for (uint _u = 0; _u < 4; ++_u) {{ const uint _s = _4 + _u; {step} }} }}"""


_SUM, _SUM_STARTS = f"_items[{RUN + 1} * _s]", "_HAS(_starting[_s])"
_SUM_RUNS = _for_32(f"_set({_SUM}, {_SUM_STARTS});", f"_add({_SUM}, {_SUM_STARTS});")
_SCAN_RUNS = _for_32(
    f"if (_own > 0) _add(_begun, {_SUM_STARTS}); else _set(_begun, {_SUM_STARTS});",
    f"const _Item _sum = {_SUM}; {_SUM} = _last; _add(_sum, {_SUM_STARTS});",
)

PATIENCE = 64
"""How often a workgroup reads a result of another one that is missing."""

_LEVELS = 5
"""Levels of results that workgroups share."""

_RESULTS = f"""
shared _Item _known[{_LEVELS + 1} * {RUN}];
shared uint _known_starts[{_LEVELS + 1}], _missing[{_LEVELS + 1}], _number;
uint _row, _blocks;
uint _word_of(uint level, uint index) {{
    const uint before = level == 0 ? 0 : 2 * _blocks + (_blocks >> 5 * level);
    return {RUN} + _WORDS * (_row * (2 * _blocks + _blocks / 16) + before + index);
}}
void _publish(uint level, uint index) {{
    const uvec2 bits = _bits_of(_last);
    const uint to = _word_of(level, index), flags = 0x10000 | uint(_start) << 17;
    [[unroll]] for (uint k = 0; k < _WORDS; ++k) {{
        const uint word = bits[k / 2] >> k % 2 * 16 & 0xFFFF | flags;
        atomicStore(run_sums[to + k], word, gl_ScopeDevice, 0, 0);
    }}
}}
bool _is_published(uint level, uint index, uint to, uint number) {{
    const uint from = _word_of(level, index);
    uint all = 0x30000;
    uvec2 bits = uvec2(0);
    [[unroll]] for (uint k = 0; k < _WORDS; ++k) {{
        const uint word = atomicLoad(run_sums[from + k], gl_ScopeDevice, 0, 0);
        all &= word;
        bits[k / 2] |= (word & 0xFFFF) << k % 2 * 16;
    }}
    if (all < 0x10000) return false;
    _known[to * {RUN} + number] = _item_of(bits);
    if (_HAS(all & 0x20000)) atomicOr(_known_starts[to], 1u << number);
    return true;
}}
bool _is_known(uint level, uint index, uint to, uint number) {{
    for (uint tries = 0; tries < {PATIENCE}; ++tries)
        if (_is_published(level, index, to, number)) return true;
    return false;
}}
void _add_known(uint level, bool some, uint count) {{
    const uint starts = _known_starts[level];
    uint k = level * {RUN}, end = k + count;
    if (!some) {{ _set(_known[k], _HAS(starts & 1)); ++k; }}
    for (; k + 3 < end; k += 4)
        [[unroll]] for (uint u = 0; u < 4; ++u)
            _add(_known[k + u], _HAS(starts >> (k + u) % {RUN} & 1));
    for (; k < end; ++k) _add(_known[k], _HAS(starts >> k % {RUN} & 1));
}}"""
"""The results that workgroups share in ``run_sums``: of blocks of 32 runs, of 32 blocks, and so on.

Behind those of blocks are the results of all elements up to the ends of blocks. The first word
counts the workgroups that have begun. Each of the others has 16 bits of a result, whether a segment
starts in it, and that it is there. So a result is known when all of its words are, whatever the
order in which they are seen, and it does not matter who computes it.
"""

_BLOCK = f"""if (_lane == 0) _number = atomicAdd(run_sums[0], 1);
    if (_lane <= {_LEVELS}) {{ _missing[_lane] = ~0; _known_starts[_lane] = 0; }}
    barrier();
    _blocks = (_runs + {RUN - 1}) / {RUN};
    if (_number >= _rows * _blocks) return;
    _row = _number / _blocks;
    const uint _block = _number % _blocks, _row_start = _row * _count;
    uint _own = _block, _target = _own, _rest = _own, _level = 0, _counts = 0;
    bool _ends = _own + 1 < _blocks, _has_end = _IS_EXACT, _total_starts;
    _Item _total;
    for (;;) {{
    if (_HAS(1)) {{
        if (_lane < {_RUNS}) _starting[_lane] = 0;
        barrier();
    }}"""
"""A workgroup has a block of a row: those of lower numbers have begun before."""

_LOOK_BACK = f"""if (_lane == 0 && _target + 1 < _blocks) {{
        {_SUM_RUNS}
        _publish(0, _target);
        if (_target == _own) {{ _total = _last; _total_starts = _start; }}
    }}
    if (_target != _own) barrier();  // before others of the workgroup look for that result
    for (; _rest > 0; _rest = (_rest - 1) / {RUN}, ++_level) {{
        const uint _others = (_rest - 1) % {RUN}, _index = _rest - 1 - _others + _lane;
        if (_lane <= _others && !_is_known(_level, _index, _level, _lane))
            atomicMin(_missing[_level], _index);
        barrier();
        if (_missing[_level] != ~0) break;
        _counts |= _others << 5 * _level;
        _ends = _ends && (_own >> 5 * _level) % {RUN} == {RUN - 1};
        if (_lane == 0 && _ends) {{
            _add_known(_level, false, {RUN - 1});
            _add(_total, _total_starts);
            _total = _last; _total_starts = _start;
            _publish(_level + 1, _own >> 5 * (_level + 1));
        }}
    }}
    if (_rest > 0) {{
        uint _index = _missing[_level], _above = _level;
        for (; _above > 0; --_above) {{
            barrier();
            if (_lane == 0) {{ _missing[_level] = ~0; _known_starts[_level] = 0; }}
            barrier();
            const uint _child = {RUN} * _index + _lane;
            if (_lane < {RUN} && !_is_published(_above - 1, _child, _level, _lane))
                atomicMin(_missing[_level], _child);
            barrier();
            if (_missing[_level] == ~0) break;
            _index = _missing[_level];
        }}
        if (_above == 0) _target = _index;
        else if (_lane == 0) {{
            _add_known(_level, false, {RUN});
            _publish(_above, _index);
        }}
        memoryBarrierBuffer();
        barrier();
        if (_lane == 0) {{ _missing[_level] = ~0; _known_starts[_level] = 0; }}
        continue;
    }}
    if (_target != _own) {{ _target = _own; continue; }}
    if (_lane == 0) {{
        const _Item _begun = _items[0];
        for (uint _above = _level; _above-- > 0;)
            _add_known(_above, _above + 1 < _level, (_counts >> 5 * _above) % {RUN} + 1);
        _items[0] = _last;
        {_SCAN_RUNS}
        if (!_IS_EXACT && _own + 1 < _blocks) _publish(0, _blocks + _own);
        if (_own < _block) _known[{_LEVELS * RUN}] = _last;
        else if (!_has_end && _own > 0 && !_is_known(0, _blocks + _own - 1, {_LEVELS}, 0))
            _missing[{_LEVELS}] = 0;
    }}
    barrier();
    if (_has_end || _missing[{_LEVELS}] == ~0) break;
    _has_end = _own < _block;
    _own = _target = _rest = _has_end ? _block : _block - 1;
    _level = _counts = 0; _ends = _own + 1 < _blocks;
    if (_lane < {_LEVELS}) _known_starts[_lane] = 0;
    }}
    if (!_IS_EXACT && _lane == 0 && _block > 0) _items[0] = _known[{_LEVELS * RUN}];"""
"""A workgroup looks for the results before its block, from those of blocks to those of most.

It reads each of them some times. If one is missing then, it reads the elements of the first block
whose result is, and goes on: a workgroup waits for no other one to go on. The results before runs
are those of the runs before in this block, after those of blocks before, but for the first run:
that is at the end of the block before, and for floats another one.
"""

_CONVERSIONS = {
    "bool": ("uvec2({}, 0)", "{}.x != 0"),
    "float16_t": ("uvec2(packFloat2x16(f16vec2({}, 0)), 0)", "unpackFloat2x16({}.x).x"),
    "float": ("uvec2(floatBitsToUint({}), 0)", "uintBitsToFloat({}.x)"),
    "double": ("unpackDouble2x32({})", "packDouble2x32({})"),
    "int64_t": ("unpackUint2x32(uint64_t({}))", "int64_t(packUint2x32({}))"),
    "uint64_t": ("unpackUint2x32({})", "packUint2x32({})"),
}
"""The GLSL of the bits of items, and back; of other types, they are those of a uint."""


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
        self._whole = self._memoized(self._new_whole)
        self._scan_of_sums = self._memoized(self._new_scan_of_sums)

    def __call__(
        self, *args: Any, axis: Any = None, out: Any = None, device: DeviceLike = None
    ) -> Any:
        """Scan, without waiting for it.

        Arguments, results and errors are those of ``ReductionKernel``, but for ``axis``, which is
        one; by default all elements are scanned in C order, and outputs have one dimension.
        """
        home, inputs, outputs, shape, dtypes = self._arguments(args, out, device)
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
            rows, runs = prod(shape) // count, ceil_div(count, RUN)
            if not home.tuning.is_cpu and count > _FEW and self._is_along(values):
                shared, blocks = [], ceil_div(runs, RUN)
                if blocks > 1:
                    words = _words(dtypes[0]) * rows * (2 * blocks + blocks // 16)
                    shared.append(zeros(RUN + words, "uint32", device=home))
                kernel = self._whole(*dtypes, blocks > 1, axis is None)
                kernel(*values, count, out=[*shared, *targets], device=home)
            else:
                before = []
                if runs > 1:
                    types = [dtypes[0], np.dtype(np.int32)][: 1 + bool(self._texts[3])]
                    sums = [empty((rows, runs), dtype=each, device=home) for each in types]
                    kernel = self._pass(*dtypes, "run_sums", axis is None)
                    kernel(*values, count, out=sums, device=home)
                    before = sums[:1]
                    self._scan_of_sums(*dtypes)(*sums, axis=1, out=before)
                kernel = self._pass(*dtypes, "run_before" * len(before), axis is None)
                kernel(*values, count, *before, out=targets, device=home)
        return results[0] if len(results) == 1 else tuple(results)

    def _is_along(self, values: Sequence[Any]) -> bool:
        """Whether neighbours along the axis are nearer than rows are, in the first array."""
        pairs = zip(values, self._inputs, strict=True)
        first = next(x for x, each in pairs if isinstance(x, Tensor) and not each.raw)
        strides = [abs(stride) for stride in first.placed()[1].strides]
        return len(strides) == 1 or strides[-1] <= strides[-2] or not strides[-2]

    def _new_pass(self, dtype: DType, types: Any, part: str, flat: bool) -> InnerKernel:
        """The kernel whose invocations each scan a run of elements, one after the other.

        Its arguments are arrays whose last dimension has the ``n`` elements to scan, or which have
        ``n`` elements in all if they are ``flat``, ``n``, and, if there are several runs, the
        results ``run_before`` them. The outputs are those of the elements; or ``run_sums`` and
        ``run_starts``, the result of each run, and whether a segment starts in it.
        """
        element, is_bool = GLSL_TYPES[dtype.name], dtype.kind == "b"
        array = Parameter(dtype.name, part, part == "run_sums", raw=True)
        params = [*self._concrete(self._inputs, types), COUNT, *[array] * bool(part)]
        begin, end, output = "", "", ""
        if part == "run_before":
            last = f"{'uint' * is_bool}(run_before[_own - 1])"
            begin = f"_had = _run > 0; if (_had) _last = {element}({last});"
        if part == "run_sums":
            end = f"run_sums[_own] = {'uint8_t(uint(_last))' if is_bool else '_last'};"
            if self._texts[3]:
                params.append(Parameter("int32", "run_starts", is_output=True, raw=True))
                end += " run_starts[_own] = int(_start);"
        else:
            params += self._concrete(self._outputs, types)
            output = self._output(element)
        operation = f"""{self._read(element)}
_before = _last;
if (_had) _add(_item, _starts);
else _set(_item, _starts);
{output}"""

        def invocations(shape: Ints, _: object) -> int:
            rows = 1 if flat else prod(shape[:-1])
            return rows * ceil_div(prod(shape) // rows, RUN)

        return InnerKernel(
            tuple(params),
            operation,
            self.name,
            self._scanning(element, types),
            main=(_ALONE.replace("%s", begin), f"        _had = true;\n    }}\n    {end}\n}}"),
            index="_k",
            invocations=invocations,
        )

    def _new_whole(self, dtype: DType, types: Any, looks_back: bool, flat: bool) -> InnerKernel:
        """The kernel that reads each element once: its workgroups scan 32 runs, of rows or of one.

        Arguments are those of ``_new_pass``. If rows have more runs, the first output is
        ``run_sums``, which is 0.
        """
        element, outputs = GLSL_TYPES[dtype.name], self._concrete(self._outputs, types)
        states = [Parameter("uint32", "run_sums", is_output=True, raw=True)] * looks_back
        params = (*self._concrete(self._inputs, types), COUNT, *states, *outputs)
        operation = f"if (_reads) {{\n{self._read(element)}\nreturn;\n}}\n{self._output(element)}"
        declared = f"""#define _Item {element}
#define _WORDS {_words(dtype)}
#define _IS_EXACT {str(dtype.kind != "f").lower()}
#define _EACH ({_RUNS} * {RUN} / {LANES})
{self._scanning(element, types)}"""

        def invocations(shape: Ints, _: object) -> int:
            rows = 1 if flat else prod(shape[:-1])
            runs = ceil_div(prod(shape) // rows, RUN)
            groups = rows * ceil_div(runs, _RUNS) if looks_back else ceil_div(rows, _RUNS // runs)
            return groups * LANES

        return InnerKernel(
            params,
            operation,
            self.name,
            declared,
            main=_whole_main(element, looks_back),
            index="_k",
            invocations=invocations,
            reads_again=looks_back,
        )

    def _read(self, element: str) -> str:
        """The statements that map an element to ``_item``."""
        mapped, _, _, start = self._texts
        return f"""_item = {element}(
#line 1 "{self.name} input_expr"
{mapped}
);
_starts = bool(
#line 1 "{self.name} is_segment_start_expr"
{start or "false"}
);"""

    def _output(self, element: str) -> str:
        """The statements that map the result of an element to outputs."""
        output = f"const {element} item = _last;\n"
        if self._neutral is not None:
            first = f"{element}({self._neutral})"
            output += f"const {element} prev_item = _had && !_starts ? _before : {first};\n"
        return f'{output}#line 1 "{self.name} output_statement"\n{self._texts[2]}'

    def _scanning(self, element: str, types: Any) -> str:
        """The declarations with ``_add``, which adds an item to those before it."""
        arguments = f"{element} a, {element} b, bool across_seg_boundary"
        function, has_starts = f"_scanned({arguments})", bool(self._texts[3])
        return f"""#define _HAS(starts) {"((starts) != 0)" if has_starts else "false"}
{self._declared(types)}
{element} _last = {element}(0), _before, _item;
bool _had = false, _starts, _start = false, _reads = true;
{function_of(self.name, "scan_expr", function, self._texts[1], element)}
void _set({element} item, bool starts) {{ _last = item; _start = starts; }}
void _add({element} item, bool starts) {{
    _last = _scanned(_last, item, starts);
    {"_start = _start || starts;" * has_starts}
}}"""

    def _new_scan_of_sums(self, dtype: DType, types: Any) -> ScanKernel:
        _, scanned, _, start = self._texts
        inputs = f"{dtype} x{', int32 s' * bool(start)}"
        texts = inputs, f"{dtype} y", "x", scanned, "y = item", None, self.name, None
        return ScanKernel(*texts, "s != 0" * bool(start), self._declared(types))


suggest_names(ScanKernel)


def _words(dtype: DType) -> int:
    """The words in which ``run_sums`` has a result."""
    return ceil_div(dtype.itemsize, 2)


def _whole_main(element: str, looks_back: bool) -> tuple[str, ...]:
    """The text around the statements of runs that a workgroup reads and writes together."""
    to_bits, to_item = _CONVERSIONS.get(element, ("uvec2({}, 0)", f"{element}({{}}.x)"))
    shared, begin, end = f"shared uvec2 _firsts[{_RUNS}];{_SHARED}", _ROWS, _SCAN_ROWS
    place, start, is_first = "_firsts[_r].y + _s", "_firsts[_r].x", "_firsts[_lane].y == 0"
    if looks_back:
        shared = f"""{_SHARED}
uvec2 _bits_of({element} item) {{ return {to_bits.format("item")}; }}
{element} _item_of(uvec2 bits) {{ return {to_item.format("bits")}; }}{_RESULTS}"""
        begin, end = _BLOCK, _LOOK_BACK
        place, start = f"_target * {RUN * _RUNS} + _t", "_row_start"
        is_first = "_block == 0 && _lane == 0"
    starts, item = "_HAS(_starting[_lane] >> _s & 1)", "_items[_first + _s + 1]"
    sums = _for_32(f"_set({item}, {starts});", f"_add({item}, {starts});")
    store = f"{item} = _last;"
    first = f"if ({is_first}) _set({item}, {starts}); else _add({item}, {starts}); {store}"
    head = f"""#define _PLACE {place}
#define _START {start}
{shared}
void main() {{
    {GROUP}
    const uint _lane = gl_LocalInvocationID.x, _first = {RUN + 1} * _lane;
    const uint _count = uint(_value_n), _runs = (_count + {RUN - 1}) / {RUN}, _rows = _n / _count;
    {begin}{_TOGETHER}"""
    scanned = f"""        _read[_u] = _item;
        if (_starts) atomicOr(_starting[_r], 1u << _s);
    }}
    {FOR_EACH} _items[_t + _t / {RUN} + 1] = _read[_u];
    barrier();
    if (_lane < {_RUNS}) {{
        if (_runs > 1) {sums}
        _items[_first] = _last;
    }}
    barrier();
    {end}
    if (_lane < {_RUNS}) {{
        _last = _items[_first];
        {_for_32(first, f"_add({item}, {starts}); {store}")}
    }}
    memoryBarrierBuffer();  // others have read what is overwritten
    barrier();
    _reads = false;{_TOGETHER}
        if (_place == _k) {{
        _last = _items[_at]; _before = _items[_at - 1];
        _had = _k > 0; _starts = _HAS(_starting[_r] >> _s & 1);"""
    return head, scanned, "    }\n}\n}"


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
    return accumulating("cumsum", tensor.dtype, result_dtype, "a + b")(tensor, axis=axis, out=out)


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
    return accumulating("cumprod", tensor.dtype, result_dtype, "a * b")(tensor, axis=axis, out=out)


@lru_cache(64)
def accumulating(
    name: str, dtype: DType, result: DType, scanned: str, item: str = "x"
) -> Callable[..., Tensor]:
    """The scan of elements, or of an ``item`` that is made of each."""
    is_half = result == np.float16
    preamble = is_nan(dtype) * (item != "x") + to_half * is_half
    texts = f"{dtype} x", f"{result} y", item, scanned, f"y = {'to_half' * is_half}(item)"
    kernel = ScanKernel(*texts, None, name, widened(result).name, None, preamble)
    return builtin(kernel)
