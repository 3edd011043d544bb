"""Checks of shaders without a device: races, barriers, bounds, and undefined values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy.typing as npt

from vkops.console import activity
from vkops.debug.arguments import Argument, Buffer, BufferArgument, TensorArgument, arguments
from vkops.debug.results import first_difference
from vkops.debug.shared_arrays import Layout, overlaps
from vkops.errors import BindingError, InvalidDescError, ModelError, OutOfDeviceMemoryError, show
from vkops.interpreter import addresses
from vkops.interpreter.addresses import TensorMemory, with_addresses
from vkops.interpreter.aliases import Aliases
from vkops.interpreter.barriers import Barriers
from vkops.interpreter.bounds import Bounds
from vkops.interpreter.findings import Finding, Findings, Invocation
from vkops.interpreter.memory import MemoryVariable
from vkops.interpreter.observer import Observer
from vkops.interpreter.printing import Printing
from vkops.interpreter.races import Races
from vkops.interpreter.scheduler import Run
from vkops.interpreter.schedules import ASCENDING, FORMS, described, explored, is_schedule
from vkops.interpreter.state import FORWARD_PROGRESS, MAX_ITERATIONS, Settings
from vkops.interpreter.undefined import Floats, Undefined
from vkops.interpreter.waits import Wait
from vkops.notebook import repr_html
from vkops.shaders import shader as shaders
from vkops.shaders.module import Block
from vkops.system.callers import calling_frame

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT_SUBGROUP_SIZE = 32
OTHER_SUBGROUP_SIZES = (8, 64)
SUBGROUP_SIZES = (1, 2, 4, 8, 16, 32, 64)
MAX_INVOCATIONS = 1 << 24
MAX_SEED = 999_999_999
MAX_WAITS = 2
"""For so many loops that wait, the shader runs again with the waiting subgroup first."""

CHECKS: tuple[type[Observer], ...] = (Aliases, Barriers, Bounds, Undefined)
"""The checks that run by default, besides the check for data races."""

NO_LINES = "got SPIR-V without source lines (OpLine); compile it with them (glslang -g)"
"""The message of commands that cannot show a shader's lines."""

_SUBGROUP = ("GroupNonUniform", "Subgroup")


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
    schedules: int | None = None,
    seed: int = 0,
    **settings: Any,
) -> Report:
    """Run a shader in an interpreter, without Vulkan, and report its faults.

    These are data races, barriers that not all invocations reach, reads of values that were never
    written, indices out of bounds, integer divisions by zero, uses of undefined results such as
    those of shifts by too many bits, blocks and references that are declared restrict and share
    written memory, endless loops, and results that depend on the order of workgroups or on the size
    of subgroups. An endless loop is the last fault that is reported.

    Args:
        shader: GLSL or HLSL text, a path, SPIR-V, or a shader that is loaded or compiled.
        buffers: for each block, by its name or in the order of bindings, an array; a number of
            bytes, which count as never written; or values of a uniform block. Blocks and images
            with the same array, or with contiguous views that overlap, share memory. A block
            without a buffer gets one element for each invocation, with distinct values. The value
            of an array of blocks is a list of buffers. The value of an image, a texture or a texel
            buffer is an array, a list of arrays for the levels, or an image; that of a texture is a
            pair of one of these and of a sampler. A sampler can be a dictionary of the arguments of
            ``Device.sampler``. If texels have several samples, their axis is after the width.
        groups: one to three numbers of workgroups; one workgroup by default.
        threads: numbers of invocations instead, rounded up to whole workgroups.
        push: push constants, as ``CompiledShader.dispatch`` takes them. Here and in uniform blocks,
            an array of NumPy stands for the address of its elements.
        subgroup_size: a power of two from 1 to 64. By default it is 32, and a shader with
            operations on subgroups is also run with 8 and 64, to compare the results.
        floats: also report instructions with finite operands that return NaN or infinity.
        max_iterations: the number of iterations after which a loop counts as endless if no
            invocation has left it; the default, 16,384, takes a few seconds in short loops.
        plain_barriers: report accesses of a buffer that only a plain ``barrier()`` separates, which
            orders shared memory.
        schedules: the number of orders of workgroups and subgroups to run the shader in: ascending,
            descending, and then shuffled orders and orders in which they take turns. By default,
            only the first one; with atomic operations, also the second one; and if a loop waits,
            orders in which the waiting invocations begin first.
        seed: the number of the first shuffled order.
        settings: more arguments of ``vkops.shaders.load``, such as macros.

    Raises:
        ShaderCompileError: the shader is wrong, or uses a feature that the interpreter lacks.
        BindingError: a buffer does not fit its block (SH-04, SH-05), or shares bytes with another
            one although it is not contiguous (SH-06).
        InvalidDescError: SH-07, SH-09.

    >>> import numpy as np
    >>> text = '''#version 450
    ... layout(local_size_x = 64) in;
    ... layout(std430, binding = 0) buffer Data { uint data[]; };
    ... void main() { data[gl_GlobalInvocationID.x + 1] += 1; }'''
    >>> report = check(text, {"Data": np.zeros(64, np.uint32)})
    >>> [(finding.kind, finding.place.line) for finding in report.findings]
    [('out of bounds', 4)]
    """
    options = groups, threads, push, subgroup_size, floats, max_iterations, plain_barriers
    report = Case.of(shader, buffers, *options, schedules, seed, **settings).check()
    frame = calling_frame()
    return replace(report, findings=tuple(each.called_from(frame) for each in report.findings))


class _Results(dict[str, Any]):
    """Arrays by the names of blocks; a block is also found by its other names and its binding."""

    shader: shaders.Shader

    def __missing__(self, name: str) -> npt.NDArray[Any]:
        block = self.shader.block(name)
        if block is None or block.point not in self:
            raise KeyError(name)
        return self[block.point]  # type: ignore[no-any-return]


class Stored(NamedTuple):
    """A block, an image or a tensor that shaders store to, with its argument and its memory."""

    block: Block | None
    argument: Argument
    memory: MemoryVariable

    @property
    def is_readonly(self) -> bool:
        """Whether the shader declares that it only reads it."""
        return self.block is not None and self.block.readonly

    def numbers(self) -> npt.NDArray[Any]:
        """Return its content as numbers."""
        return self.argument.result(self.block, self.memory)


_Outcome = tuple[Run, dict[tuple[int, int], MemoryVariable]]


@dataclass
class Case:
    """A shader with all its arguments; buffers are by set and binding."""

    shader: shaders.Shader
    given: Mapping[tuple[int, int], Sequence[Argument]]
    groups: tuple[int, int, int]
    push: bytes
    subgroup_size: int
    other_sizes: Sequence[int]
    floats: bool = False
    max_iterations: int = MAX_ITERATIONS
    plain_barriers: bool = True
    schedules: int | None = None
    seed: int = 0
    schedule: str = ASCENDING
    max_instructions: float = inf
    tensors: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    addresses: Sequence[int] = ()
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
        schedules: int | None = None,
        seed: int = 0,
        schedule: str = "",
        **settings: Any,
    ) -> Self:
        """Check the arguments of ``check``, and the name of the schedule of a single run."""
        loaded = getattr(shader, "shader", shader)  # the shader of a CompiledShader
        if not isinstance(loaded, shaders.Shader):
            loaded = shaders.load(loaded, **{"debug": True, **settings})

        def refuse(name: str, got: str, allowed: str) -> NoReturn:
            raise InvalidDescError(loaded.name, name, f"got {got}, must be {allowed}", "SH-07")

        if groups is None and threads is None:
            groups = 1
        counts = loaded.group_counts(groups, threads)
        name, value = ("groups", groups) if threads is None else ("threads", threads)
        if counts is None or min(counts) < 1:
            refuse(name, show(value), "one to three numbers from 1")
        invocations = prod(counts) * prod(loaded.local_size)
        if invocations > MAX_INVOCATIONS:
            refuse(name, f"{invocations} invocations", f"{MAX_INVOCATIONS} at most")
        size = DEFAULT_SUBGROUP_SIZE if subgroup_size is None else subgroup_size
        if size not in SUBGROUP_SIZES:
            refuse("subgroup_size", show(subgroup_size), "1, 2, 4, 8, 16, 32 or 64")
        if not isinstance(max_iterations, int) or max_iterations < 1:
            refuse("max_iterations", show(max_iterations), "an integer from 1")
        for name, number, least in (("schedules", schedules, 1), ("seed", seed, 0)):
            is_known = type(number) is int and least <= number <= MAX_SEED
            if not is_known and (name, number) != ("schedules", None):
                refuse(name, show(number), f"an integer from {least} to {MAX_SEED:,}")
        if not is_schedule(schedule := schedule or ASCENDING):
            refuse("schedule", show(schedule), FORMS)
        tensors: dict[str, npt.NDArray[Any]] = {}
        by_place = arguments(loaded, buffers, tensors)
        others = OTHER_SUBGROUP_SIZES if subgroup_size is None else ()
        pushed = with_addresses(loaded.push, "push_constants", push, tensors)
        packed = loaded.pack(pushed)
        how = size, others, floats, max_iterations, plain_barriers, schedules, seed, schedule
        return cls(loaded, by_place, counts, packed, *how, tensors=tensors)

    def check(self, observers: Sequence[Observer] = ()) -> Report:
        """Run the shader; if they can matter, also with other subgroup sizes and other schedules.

        ``observers`` observe the first run.
        """
        printing = Printing()
        first = run, memory = self.run(observers=[printing, *observers])
        count, has_ended = prod(self.groups), not run.stopped
        declares = any(c.startswith(_SUBGROUP) for c in self.shader.capabilities)
        if has_ended and (declares or run.program.has_subgroup_barriers):
            for size in self.other_sizes:
                self._compare(first, self.run(size), "subgroup size", f"subgroups of {size}",
                              f"subgroups of {self.subgroup_size}")  # fmt: skip
        number = self.schedules
        if number is None:
            number = 1 + (run.program.has_atomics and count > 1)
        names, waits = explored(number, self.seed)[1:], self._waits(run)
        for schedule in names if has_ended or run.begun < count else ():
            other = self.run(schedule=schedule)
            how = f"workgroups in {described(schedule)}"
            self._compare(first, other, "order of workgroups", how, "ascending order")
            waits |= self._waits(other[0])
            if not has_ended and other[0].stopped and other[0].begun == count:
                self.findings.remove(FORWARD_PROGRESS)  # it hangs even if all have begun
        # Waiting invocations run before those that they wait for.
        for wait in [*waits.values()][:MAX_WAITS] if has_ended else ():
            self.run(schedule=f"first:{wait.group}:{wait.subgroup}")
        findings = tuple(finding.with_source(run.program.sources) for finding in self.findings)
        results, printed = self.results(memory), tuple(printing.texts)
        return Report(self.shader.name, findings, results, printed, run.executed)

    @staticmethod
    def _waits(run: Run) -> dict[Any, Wait]:
        return {} if run.waits is None else run.waits.found

    def run(
        self,
        subgroup_size: int | None = None,
        schedule: str = "",
        observers: Sequence[Observer] = (),
    ) -> _Outcome:
        """Run the shader on new memory, and add findings that are not known yet.

        ``observers`` are notified before the checks.
        """
        size = subgroup_size or self.subgroup_size
        limits = self.max_iterations, self.max_instructions
        settings = Settings(size, schedule or self.schedule, *limits)
        checks = [kind() for kind in (*CHECKS, *[Floats] * self.floats)]
        told = [*observers, *checks, Races(plain_barriers=self.plain_barriers)]
        memory = self.memory()
        run = Run(self.shader, memory, self.groups, self.push, settings, observers=told)
        with activity(lambda: f"{run.step.place}: {run.executed:,} instructions executed"):
            run.run()
        self.findings.update(run.findings, subgroup_size=subgroup_size or 0)
        return run, memory

    def memory(self) -> dict[tuple[int, int], Any]:
        """Return the memory of each binding; bindings of the same bytes share it.

        For an array of blocks, the value is a list.
        """
        invocations = prod(self.groups) * prod(self.shader.local_size)
        places, alike = self.shader.places, defaultdict[object, list[Any]](list)
        for place in places:
            for number, each in enumerate(self.arguments(place)):
                alike[each.key].append((place, number, each))
        bound = []
        for parts in alike.values():
            blocks = [block for place, *_ in parts for block in places[place]]
            try:
                bound.append((blocks, parts[0][2].layout, parts[0][2].memory(blocks, invocations)))
            except MemoryError as error:
                message = f"{self.shader.name} {blocks[0].point}: the host has no memory for it"
                raise OutOfDeviceMemoryError(message) from error
        self._share(bound)
        elements: dict[tuple[int, int], dict[int, MemoryVariable]] = {place: {} for place in places}
        for parts, (*_, memory) in zip(alike.values(), bound, strict=True):
            for place, number, _ in parts:
                elements[place][number] = copy(memory)  # each has its own name
        tensor_memory = TensorMemory(self.tensors, self.shader.capabilities, self.addresses)
        tensor_memory.follow(self.shader)
        return {addresses.PLACE: tensor_memory} | {
            place: places[place][0].bound_to([memories[n] for n in range(len(memories))])
            for place, memories in elements.items()
        }

    def _share(self, bound: Sequence[tuple[Sequence[Block], Layout, MemoryVariable]]) -> None:
        """Let memories share bytes as their arrays do, and track accesses to written memory."""
        layouts = [layout for _, layout, _ in bound]
        readonly = [all(block.readonly for block in blocks) for blocks, *_ in bound]
        near = overlaps(layouts) if not all(readonly) else {}
        done: set[int] = set()
        for first, (_, _, memory) in enumerate(bound):
            if first in done:
                continue
            starts, rest = {first: 0}, [first]
            for one in rest:  # the list grows in the loop
                for other in near.get(one, ()):
                    distance = layouts[one].distance(layouts[other])
                    if distance is not None and other not in starts:
                        starts[other] = starts[one] + distance
                        rest.append(other)
                    elif distance is None and not (readonly[one] and readonly[other]):
                        self._refuse_sharing(bound[one][0][0], bound[other][0][0])
            done.update(starts)
            if all(readonly[each] for each in starts):
                continue
            memory.share({bound[each][2]: start for each, start in starts.items() if each != first})
            for each in starts:
                bound[each][2].follow(self.shader)
                bound[each][2].shadow = memory.shadow

    def _refuse_sharing(self, one: Block, other: Block) -> NoReturn:
        message = f"shares bytes with {one.point}, must not: one of them is not contiguous, or has "
        message += "other levels or channels, and one is written"
        raise BindingError(self.shader.name, other.point, message, "SH-06")

    def arguments(self, place: tuple[int, int]) -> Sequence[Argument]:
        """Return the arguments of a binding; without an argument, it gets distinct values."""
        return self.given.get(place) or [BufferArgument(None)]

    def stored(self, memory: Mapping[tuple[int, int], Any]) -> dict[str, Stored]:
        """Return everything in a memory that shaders store to, by the names of the results."""
        tensor_memory = memory[addresses.PLACE]
        stored = {
            n: Stored(None, TensorArgument(n, tensor_memory), tensor_memory) for n in self.tensors
        }
        for block in self.shader.blocks:
            if block.kind.startswith("storage"):
                memories = memory[block.place]
                memories = [memories] if block.length is None else memories
                pairs = zip(self.arguments(block.place), memories, strict=True)
                for number, (argument, each) in enumerate(pairs):
                    stored[result_name(block, number)] = Stored(block, argument, each)
        return stored

    def results(self, memory: Mapping[tuple[int, int], Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the content of storage blocks and of tensors with addresses, by name."""
        results = _Results((name, stored.numbers()) for name, stored in self.stored(memory).items())
        results.shader = self.shader
        return results

    def _compare(self, one: _Outcome, other: _Outcome, kind: str, how: str, before: str) -> None:
        """Report the first element that differs, unless a known fault may be the reason."""
        if any(
            finding.kind in ("data race", "loop", FORWARD_PROGRESS) for finding in self.findings
        ):
            return
        run, memory = one
        changed, compared = self.stored(other[1]), set()
        for name, stored in self.stored(memory).items():
            part = stored.memory.shadow, stored.memory.first, stored.memory.nbytes
            if stored.is_readonly or (stored.block and part in compared):
                continue
            compared.add(part)
            a, b = stored.numbers(), changed[name].numbers()
            if difference := first_difference(stored.block, a, b):
                at = stored.argument.offset(difference.at)
                where = stored.memory.element(at)
                message = f"'{where}' is {difference.other} with {how}, "
                message += f"and {difference.one} with {before}"
                when, _ = stored.memory.last_change(at)
                written = run.access_places[when]
                self.findings.add(Finding(kind, written, message, (), difference.count), where)


def result_name(block: Block, number: int) -> str:
    """Return the name of a result; elements of an array of blocks have their own names."""
    return block.point if block.length is None else f"{block.point}[{number}]"


def check_end(findings: Iterable[Finding]) -> None:
    """Raise a ModelError if a loop does not end, because the results are then meaningless."""
    for finding in findings:
        if finding.kind in ("loop", FORWARD_PROGRESS):
            raise ModelError(str(finding))
