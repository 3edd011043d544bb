"""Checks of shaders without a device: races, barriers, bounds, and values that are not defined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vkops.console import activity
from vkops.debug.image_arguments import Resource
from vkops.errors import (
    BindingError,
    InvalidDescError,
    ModelError,
    OutOfDeviceMemoryError,
    show,
)
from vkops.interpreter import addresses
from vkops.interpreter.addresses import Heap, with_addresses
from vkops.interpreter.barriers import Barriers
from vkops.interpreter.bounds import Bounds
from vkops.interpreter.findings import Finding, Findings, Invocation
from vkops.interpreter.limit import Limit
from vkops.interpreter.memory import Memory
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import dtype_of
from vkops.interpreter.printing import Printing
from vkops.interpreter.races import Races
from vkops.interpreter.scheduler import Run
from vkops.interpreter.shadow import Shadow
from vkops.interpreter.state import MAX_ITERATIONS, Settings
from vkops.interpreter.undefined import Floats, Undefined
from vkops.notebook import repr_html
from vkops.plan.rounding import round_up
from vkops.shaders import shader as shaders
from vkops.shaders.layout import Array, Number, leaves
from vkops.shaders.module import Block

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT_SUBGROUP_SIZE = 32
OTHER_SUBGROUP_SIZES = (8, 64)
SUBGROUP_SIZES = (1, 2, 4, 8, 16, 32, 64)
MAX_INVOCATIONS = 1 << 24

CHECKS: tuple[type[Observer], ...] = (Barriers, Bounds, Undefined)
"""The checks that are made by default, with that of data races."""

_SUBGROUP = ("GroupNonUniform", "Subgroup")
TOLERANCE = {2: (1e-3, 1e-5), 4: (1e-3, 1e-5), 8: (1e-3, 1e-5)}
"""Differences that are tolerated between floats, by their bytes: of a number, and of the largest.

They may have been added in another order."""

TOLERANCE_OF_DEVICES = {2: (2**-6, 2**-7), 4: (1e-3, 2**-11), 8: (1e-3, 1e-5)}
"""Those between devices, as Vulkan allows them for each instruction: most in sin, cos and atan."""

Buffer = Any
"""An array, a number of bytes, or values of a uniform block; see ``check``."""


@dataclass(frozen=True)
class Report:
    """The result of ``check``.

    Attributes:
        name: the name of the shader.
        findings: the faults, by their lines.
        buffers: what the storage blocks hold after the run, by their names or bindings.
        printed: the texts of debugPrintfEXT, each with the invocation.
        instructions: how many were executed, for each invocation.
    """

    name: str
    findings: tuple[Finding, ...]
    buffers: Mapping[str, npt.NDArray[Any]]
    printed: tuple[tuple[Invocation, str], ...]
    instructions: int

    _repr_html_ = repr_html

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(each.text for each in self.findings) or f"{self.name}: nothing was found"


def check(
    shader: Any,
    buffers: Mapping[str, Buffer] | Sequence[Buffer] = (),
    *,
    groups: int | Sequence[int] | None = None,
    threads: int | Sequence[int] | None = None,
    push: Any = (),
    subgroup_size: int | None = None,
    floats: bool = False,
    max_iterations: int = MAX_ITERATIONS,
    plain_barriers: bool = True,
    **settings: Any,
) -> Report:
    """Run a shader in an interpreter, without Vulkan, and report its faults.

    These are data races, barriers that not all invocations reach, reads of what was never written,
    indices out of bounds, integer divisions by zero, shifts by too many bits, loops that do not
    end, and results that depend on the order of workgroups or on the size of subgroups. A loop that
    does not end is the last fault that is reported.

    Args:
        shader: GLSL or HLSL text, a path, SPIR-V, or a shader that is loaded or compiled.
        buffers: for each block, by its name or in the order of bindings, an array; a number of
            bytes, none of which is written before the shader runs; or values of a uniform block.
            Blocks that are given the same array share memory. A block that is not given a buffer
            gets one element for each invocation, with distinct values. An array of blocks is given
            a list of buffers. Images, textures and texel buffers are given an array, a list of
            arrays for the levels, or an image; a texture a pair of that and of a sampler. A sampler
            can be a dictionary of the arguments of ``Device.sampler``.
        groups: one to three numbers of workgroups; one workgroup by default.
        threads: numbers of invocations instead, rounded up to whole workgroups.
        push: push constants, as ``CompiledShader.dispatch`` takes them. Here and in uniform blocks,
            an array of NumPy stands for the address of its elements.
        subgroup_size: a power of two from 1 to 64. By default it is 32, and a shader with
            operations on subgroups is also run with 8 and 64, to compare the results.
        floats: also report instructions that make NaN or infinity of finite numbers.
        max_iterations: a loop does not end if no invocation leaves it in so many iterations; the
            default, 16,384, takes a few seconds unless they are long.
        plain_barriers: report accesses of a buffer that only a plain ``barrier()`` separates, which
            orders shared memory.
        settings: more arguments of ``vkops.shaders.load``, such as macros.

    Raises:
        ShaderCompileError: the shader is wrong, or uses what the interpreter does not support.
        BindingError: a buffer does not fit its block (SH-04, SH-05).
        InvalidDescError: SH-07, SH-09.

    >>> text = '''#version 450
    ... layout(local_size_x = 64) in;
    ... layout(std430, binding = 0) buffer Data { uint data[]; };
    ... void main() { data[gl_GlobalInvocationID.x + 1] += 1; }'''
    >>> report = check(text, {"Data": np.zeros(64, np.uint32)})
    >>> [(finding.kind, finding.place.line) for finding in report.findings]
    [('out of bounds', 4)]
    """
    given = groups, threads, push, subgroup_size, floats, max_iterations, plain_barriers
    return Case.of(shader, buffers, *given, **settings).check()


class _Results(dict[str, Any]):
    """Arrays by the names of blocks, which their other names and their bindings find, too."""

    shader: shaders.Shader

    def __missing__(self, name: str) -> npt.NDArray[Any]:
        block = self.shader.block(name)
        if block is None or block.point not in self:
            raise KeyError(name)
        return self[block.point]  # type: ignore[no-any-return]


_Outcome = tuple[Run, dict[tuple[int, int], Memory]]


@dataclass
class Case:
    """A shader with all that it is run with; buffers by set and binding."""

    shader: shaders.Shader
    given: Mapping[tuple[int, int], Buffer]
    groups: tuple[int, int, int]
    push: bytes
    subgroup_size: int
    other_sizes: Sequence[int]
    floats: bool = False
    max_iterations: int = MAX_ITERATIONS
    plain_barriers: bool = True
    max_instructions: int | None = None
    tensors: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)

    @classmethod
    def of(
        cls,
        shader: Any,
        buffers: Mapping[str, Buffer] | Sequence[Buffer] = (),
        groups: int | Sequence[int] | None = None,
        threads: int | Sequence[int] | None = None,
        push: Any = (),
        subgroup_size: int | None = None,
        floats: bool = False,
        max_iterations: int = MAX_ITERATIONS,
        plain_barriers: bool = True,
        **settings: Any,
    ) -> Self:
        """Check the arguments of ``check``."""
        loaded = getattr(shader, "shader", shader)  # that of a CompiledShader
        if not isinstance(loaded, shaders.Shader):
            loaded = shaders.load(loaded, **{"debug": True, **settings})
        if groups is None and threads is None:
            groups = 1
        counts = loaded.group_counts(groups, threads)
        name, value = ("groups", groups) if threads is None else ("threads", threads)
        if counts is None or min(counts) < 1:
            message = f"got {show(value)}, must be one to three numbers from 1"
            raise InvalidDescError(loaded.name, name, message, "SH-07")
        invocations = prod(counts) * prod(loaded.module.local_size)
        if invocations > MAX_INVOCATIONS:
            message = f"got {invocations} invocations, must be {MAX_INVOCATIONS} at most"
            raise InvalidDescError(loaded.name, name, message, "SH-07")
        size = DEFAULT_SUBGROUP_SIZE if subgroup_size is None else subgroup_size
        if size not in SUBGROUP_SIZES:
            message = f"got {show(subgroup_size)}, must be 1, 2, 4, 8, 16, 32 or 64"
            raise InvalidDescError(loaded.name, "subgroup_size", message, "SH-07")
        if not isinstance(max_iterations, int) or max_iterations < 1:
            message = f"got {show(max_iterations)}, must be an integer from 1"
            raise InvalidDescError(loaded.name, "max_iterations", message, "SH-07")
        tensors: dict[str, npt.NDArray[Any]] = {}
        given = _given(loaded, buffers, tensors)
        others = OTHER_SUBGROUP_SIZES if subgroup_size is None else ()
        pushed = with_addresses(loaded.module.push, "push_constants", push, tensors)
        packed = loaded.pack(pushed)
        how = size, others, floats, max_iterations, plain_barriers
        return cls(loaded, given, counts, packed, *how, tensors=tensors)

    def check(self) -> Report:
        """Run it, also with other sizes of subgroups and another order if these can matter."""
        printing = Printing()
        first = run, memory = self.run(observers=[printing])
        count, note = prod(self.groups), ""
        declares = any(c.startswith(_SUBGROUP) for c in self.shader.module.capabilities)
        if not run.stopped and (declares or run.program.has_subgroup_barriers):
            for size in self.other_sizes:
                self._compare(first, self.run(size), "subgroup size", f"subgroups of {size}",
                              f"subgroups of {self.subgroup_size}")  # fmt: skip
        if run.program.has_atomics and count > 1 and (run.begun < count or not run.stopped):
            other = self.run(order="descending")
            self._compare(first, other, "order of workgroups", "workgroups in descending order",
                          "ascending order")  # fmt: skip
            last = other[0] if other[0].stopped else run
            if run.stopped and last.begun < count:
                note = f", while {last.begun:,} of {count:,} workgroups ran"
                note += "; it ends if more run at once, which no device guarantees" * (last is run)
        findings = tuple(
            replace(found, message=found.message + note * (found.kind == "loop")).with_source(
                run.program.sources
            )
            for found in self.findings
        )
        results, printed = self.results(memory), tuple(printing.texts)
        return Report(self.shader.name, findings, results, printed, run.executed)

    def run(
        self,
        subgroup_size: int | None = None,
        order: str = "ascending",
        observers: Sequence[Observer] = (),
    ) -> _Outcome:
        """Run it on fresh buffers, and add what is found for the first time.

        ``observers`` are told before the checks of what happens.
        """
        size = subgroup_size or self.subgroup_size
        settings = Settings(size, order, self.max_iterations)
        checks = [kind() for kind in (*CHECKS, *[Floats] * self.floats)]
        checks.append(Races(plain_barriers=self.plain_barriers))
        if self.max_instructions is not None:
            checks.append(Limit(self.max_instructions))
        memory = self.memory()
        arguments = self.shader, memory, self.groups, self.push, settings
        run = Run(*arguments, observers=[*observers, *checks])
        with activity(lambda: f"{run.step.place}: {run.executed:,} instructions executed"):
            run.run()
        self.findings.update(run.findings)
        return run, memory

    def memory(self) -> dict[tuple[int, int], Any]:
        """Return the memory of each binding; those that one array is bound to share it.

        Of an array of blocks, that is a list of memories.
        """
        invocations = prod(self.groups) * prod(self.shader.module.local_size)
        alike: dict[Any, list[Any]] = {}
        elements: dict[tuple[int, int], list[Any]] = {}
        for place in self.shader.places:
            data: Any = self.given.get(place)
            elements[place] = [*enumerate(data)] if isinstance(data, list) else [(-1, data)]
            for number, each in elements[place]:
                same = id(each) if isinstance(each, np.ndarray) else (place, number)
                alike.setdefault(same, []).append((place, number, each))
        found: dict[Any, Any] = {}
        for parts in alike.values():
            blocks = [block for place, *_ in parts for block in self.shader.places[place]]
            try:
                made = _memory(blocks, parts[0][2], invocations)
            except MemoryError as error:
                message = f"{self.shader.name} {blocks[0].point}: the host has no memory for it"
                raise OutOfDeviceMemoryError(message) from error
            found.update((part[:2], copy(made)) for part in parts)  # each has a name of its own
        heap = Heap(self.tensors, self.shader.module.capabilities)
        heap.shadow = Shadow(heap.units)
        return {addresses.PLACE: heap} | {
            place: found[place, -1] if parts[0][0] < 0 else [found[place, n] for n, _ in parts]
            for place, parts in elements.items()
        }

    def results(self, memory: Mapping[tuple[int, int], Any]) -> dict[str, npt.NDArray[Any]]:
        """Return what storage blocks and tensors that have addresses hold, by their names."""
        results = _Results(memory[addresses.PLACE].results())
        for block in self.shader.blocks:
            own = memory[block.place]
            own = {"": own} if block.length is None else {f"[{n}]": m for n, m in enumerate(own)}
            if block.kind == "storage":
                for suffix, each in own.items():
                    results[block.point + suffix] = as_numbers(block, each.contents())
            elif block.kind.startswith("storage"):
                given = self.given[block.place]
                given = [given] if block.length is None else given
                for resource, (suffix, each) in zip(given, own.items(), strict=True):
                    results[block.point + suffix] = resource.result(each)
        results.shader = self.shader
        return results

    def _compare(self, one: _Outcome, other: _Outcome, kind: str, how: str, before: str) -> None:
        """Report the first element that differs, unless a fault that is known may be the reason."""
        if any(finding.kind in ("data race", "loop") for finding in self.findings):
            return
        run, memory = one
        for place, blocks in self.shader.places.items():
            if blocks[0].kind != "storage" or all(block.readonly for block in blocks):
                continue
            is_array = blocks[0].length is not None
            both = (each if is_array else [each] for each in (memory[place], other[1][place]))
            for own, changed in zip(*both, strict=True):
                a, b = own.contents(), changed.contents()
                if len(found := differences(blocks[0], a, b)):
                    at = int(found[0])
                    where = own.element(at)
                    value, before_it = (number_at(blocks[0], data, at) for data in (b, a))
                    message = f"'{where}' is {value} with {how}, and {before_it} with {before}"
                    written = run.last_write(own, at)
                    self.findings.add(kind, written, message, (), len(found), where)


def check_end(findings: Iterable[Finding]) -> None:
    """Raise a ModelError if a loop does not end, as results then mean nothing."""
    for finding in findings:
        if finding.kind == "loop":
            raise ModelError(str(finding))


def differences(
    block: Block,
    one: npt.NDArray[np.uint8],
    other: npt.NDArray[np.uint8],
    tolerance: Mapping[int, tuple[float, float]] = TOLERANCE,
) -> npt.NDArray[np.int64]:
    """Return the first bytes of numbers that differ, except as the order of invocations allows.

    Floats may differ as much as additions in another order make them. The same numbers of a type
    in another order are no difference, as a shader may append to a buffer.
    """
    found = []
    for dtype, starts in _numbers(block, one.size):
        at = starts[:, None] + np.arange(dtype.itemsize)
        a, b = (data[at].view(dtype)[:, 0] for data in (one, other))
        differs = _differences(a, b, *tolerance.get(dtype.itemsize, (0, 0)))
        if differs.any() and not (np.sort(a) == np.sort(b)).all():
            found.append(starts[differs])
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _numbers(block: Block, nbytes: int) -> list[tuple[np.dtype[Any], npt.NDArray[np.int64]]]:
    """Return each type of number in so many bytes of a block, and where its numbers begin."""
    if block.dtype is not None:
        starts = np.arange(nbytes // block.dtype.itemsize) * block.dtype.itemsize
        return [(block.dtype, starts)]
    assert block.type is not None
    found: dict[np.dtype[Any], list[Any]] = {}
    for leaf in leaves(block.type):
        found.setdefault(_dtype(leaf.type), []).append([leaf.location])
    last = block.type.members[-1]
    if block.stride and isinstance(last.type, Array):
        starts = np.arange(last.offset, nbytes - block.stride + 1, block.stride)
        for leaf in leaves(last.type.element):
            found.setdefault(_dtype(leaf.type), []).append(starts + leaf.location)
    return [(dtype, np.concatenate(starts)) for dtype, starts in found.items()]


def number_at(block: Block, data: npt.NDArray[np.uint8], at: int) -> str:
    """Return the number that has a byte of a block with some contents, as text."""
    for dtype, starts in _numbers(block, data.size):
        for start in starts[(starts <= at) & (at < starts + dtype.itemsize)].tolist():
            return str(data[start : start + dtype.itemsize].view(dtype)[0])
    return "padding"


def _differences(
    a: npt.NDArray[Any], b: npt.NDArray[Any], relative: float, absolute: float
) -> npt.NDArray[np.bool_]:
    if a.dtype.kind != "f":
        return np.asarray(a != b)
    size = np.nan_to_num(np.maximum(np.abs(a), np.abs(b)), posinf=0).max(initial=0)
    near = np.isclose(a, b, rtol=relative, atol=absolute * float(size), equal_nan=True)
    return np.asarray(~near)


# -- arguments -------------------------------------------------------------------------------------


def _given(
    shader: shaders.Shader,
    buffers: Mapping[str, Buffer] | Sequence[Buffer],
    tensors: dict[str, npt.NDArray[Any]],
) -> dict[tuple[int, int], Buffer]:
    """Return buffers by set and binding: arrays of bytes, or numbers of bytes.

    Of an array of blocks, that is a list of them. Arrays in uniform blocks that stand for their
    addresses are added to ``tensors``.
    """
    if not isinstance(buffers, (Mapping, Sequence)) or isinstance(buffers, str):
        message = f"got {show(buffers)}, must be a dictionary or a list of buffers"
        raise BindingError(shader.name, "buffers", message, "SH-04")
    if not isinstance(buffers, Mapping):
        buffers = shader.by_position(buffers)
    found: dict[tuple[int, int], Buffer] = {}
    stored: dict[int, npt.NDArray[np.uint8]] = {}
    named = shader.named(buffers)
    slots = [shaders.Slot(point, block, False) for point, block in named.items()]
    for (point, block, _), given in zip(
        *shader.expanded(slots, [buffers[point] for point in named]), strict=True
    ):
        value = given
        if block.kind not in ("storage", "uniform"):
            value = Resource(shader, point, block, value)
        elif block.kind == "uniform" and not isinstance(value, np.ndarray):
            value = with_addresses(block.type, point, value, tensors)
            value = np.frombuffer(shader.pack_uniform(block, value), np.uint8)
        elif not isinstance(value, int) or isinstance(value, bool):
            stored[id(given)] = value = stored.get(id(given), _bytes(shader, point, given))
        if not isinstance(value, Resource):
            nbytes = value if isinstance(value, int) else value.size
            shader.check_bytes(point, block, 0, nbytes, nbytes)
        if block.length is None:
            found[block.place] = value
        else:
            found.setdefault(block.place, []).append(value)
    for place, blocks in shader.places.items():
        if place not in found and blocks[0].kind == "sampler":
            default = Resource(shader, blocks[0].point, blocks[0], None)
            length = blocks[0].length
            found[place] = default if length is None else [default] * (length or 1)
        elif place not in found and blocks[0].type and blocks[0].length is not None:
            largest = max(block.nbytes + block.stride for block in blocks)
            nbytes = round_up(largest, max(block.scalar_nbytes for block in blocks))
            found[place] = [nbytes] * (blocks[0].length or 1)
    has_default = ("storage", "uniform")  # with an element for each invocation
    shader.check_complete(b for b in shader.blocks if b.place in found or b.kind in has_default)
    return found


def refuse_images(shader: shaders.Shader) -> None:
    """Refuse images, textures, texel buffers and samplers, which are not run for models (SH-01)."""
    for block in shader.blocks:
        if block.kind not in ("storage", "uniform"):
            message = f"got a {block.kind}, must be a storage or uniform block here"
            raise BindingError(shader.name, block.point, message, "SH-01")


def _bytes(shader: shaders.Shader, point: str, value: Any) -> npt.NDArray[np.uint8]:
    array = np.asarray(value)
    if array.dtype.kind not in "iufbV":
        message = f"got {show(value)}, must be an array of numbers or a number of bytes"
        raise BindingError(shader.name, point, message, "SH-04")
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


# -- buffers ---------------------------------------------------------------------------------------


def _memory(blocks: Sequence[Block], given: Buffer | None, invocations: int) -> Memory:
    if isinstance(given, Resource):
        return given.memory()
    block = min(blocks, key=lambda each: each.scalar_nbytes)
    assert block.type is not None
    largest = max(blocks, key=lambda each: each.nbytes + each.stride * invocations)
    data = _distinct(largest, invocations) if given is None else given
    size = data if isinstance(data, int) else data.size
    memory = Memory(block.instance, block.type, "", 1, size, is_written=not isinstance(data, int))
    if not all(each.readonly for each in blocks):
        memory.shadow = Shadow(memory.units)
    if not isinstance(data, int):
        memory.fill(data.tobytes())
    return memory


def _distinct(block: Block, count: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of a block with ``count`` elements of its array, all of distinct values.

    Integers begin at 0, as they may be indices; floats at 1.
    """
    assert block.type is not None
    head = round_up(block.nbytes, 8) if block.stride == 0 else block.nbytes
    data = np.zeros(round_up(head + block.stride * count, 8), np.uint8)
    for number, leaf in enumerate(leaves(block.type)):
        _write(data, leaf.location, leaf.type, np.arange(number, number + 1))
    last = block.type.members[-1]
    if block.stride and isinstance(last.type, Array):
        starts = last.offset + block.stride * np.arange(count)
        for leaf in leaves(last.type.element):
            _write(data, starts + leaf.location, leaf.type, np.arange(count))
    return data[: head + block.stride * count]


def _write(
    data: npt.NDArray[np.uint8], at: Any, number: Number, values: npt.NDArray[np.int64]
) -> None:
    dtype = _dtype(number)
    if number.kind == "float":
        values = values + 1
    data.view(dtype)[np.atleast_1d(at) // dtype.itemsize] = values.astype(dtype)


def _dtype(number: Number) -> np.dtype[Any]:
    return np.dtype("u4") if number.kind == "bool" else dtype_of(number)


def as_numbers(block: Block, data: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    """Return bytes of a block as numbers of its type, or as words if it has several types."""
    dtype = block.dtype or np.dtype("u4")
    whole = data.size // dtype.itemsize * dtype.itemsize
    return np.frombuffer(data[:whole].tobytes(), dtype)
