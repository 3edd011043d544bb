"""Translates one execution of a litmus test to a compute shader in SPIR-V.

The shader executes the instructions one after the other in the order of the execution, each in a
branch for the invocation that it is of. So an interpreter that executes blocks in their order makes
the same execution; with another order it is still the same program for that path of each invocation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from spirv import VOID, assembled, bound, head

from litmus.executions import Execution
from litmus.program import (
    DEVICE,
    QUEUE_FAMILY,
    SUBGROUP,
    WORKGROUP,
    Instruction,
    NotExpressibleError,
    Test,
)

BUFFER, SHARED, IMAGE = "buffer", "shared", "image"
STORAGES = (BUFFER, IMAGE, SHARED)
_SEMANTICS = {BUFFER: 0x40, SHARED: 0x100, IMAGE: 0x800}
_SCOPES = {DEVICE: 1, WORKGROUP: 2, SUBGROUP: 3, QUEUE_FAMILY: 5}
_ACQUIRE, _RELEASE, _BOTH, _AVAILABLE, _VISIBLE = 0x2, 0x4, 0x8, 0x2000, 0x4000
_ATOMICS = {
    "": "Exchange", "add": "IAdd", "sub": "ISub", "and": "And", "or": "Or", "xor": "Xor",
}  # fmt: skip

TYPES = """%uint = OpTypeInt 32 0
%bool = OpTypeBool
%vector = OpTypeVector %uint 4
%place = OpTypeVector %uint 3
%pair = OpTypeVector %uint 2
%array = OpTypeRuntimeArray %uint
%block = OpTypeStruct %array
%block_pointer = OpTypePointer StorageBuffer %block
%element = OpTypePointer StorageBuffer %uint
%picture = OpTypeImage %uint 2D 0 0 0 2 R32ui
%picture_pointer = OpTypePointer UniformConstant %picture
%texel = OpTypePointer Image %uint
%shared_pointer = OpTypePointer Workgroup %uint
%number_pointer = OpTypePointer Input %uint
%place_pointer = OpTypePointer Input %place
%local = OpVariable %number_pointer Input
%group = OpVariable %place_pointer Input
"""


@dataclass(frozen=True)
class Layout:
    """Where the invocations of a test are in a dispatch.

    Attributes:
        numbers: the number of each invocation in the dispatch.
        subgroup_size: how many invocations a subgroup has.
        group_size: how many invocations a workgroup has; others do nothing but wait in barriers.
        groups: how many workgroups there are.
    """

    numbers: tuple[int, ...]
    subgroup_size: int
    group_size: int
    groups: int


def layout(test: Test) -> Layout:
    """Return where the invocations of a test are."""
    if test.waits or any(each.kind == "device" for each in test.instructions):
        raise NotExpressibleError("operations outside of shaders")
    if len({each.queue_family for each in test.invocations}) > 1:
        raise NotExpressibleError("several queue families")
    stored = {(each.variable, each.storage) for each in test.instructions if each.variable}
    if len(stored) > len({variable for variable, _ in stored}):
        raise NotExpressibleError("a variable of two storage classes")
    groups: dict[int, dict[int, list[int]]] = {}
    for who, each in enumerate(test.invocations):
        groups.setdefault(each.workgroup, {}).setdefault(each.subgroup, []).append(who)
    together = max(len(members) for parts in groups.values() for members in parts.values())
    size = 1 << (together - 1).bit_length()
    group_size = size * max(len(parts) for parts in groups.values())
    numbers = {
        who: group * group_size + part * size + lane
        for group, parts in enumerate(groups.values())
        for part, members in enumerate(parts.values())
        for lane, who in enumerate(members)
    }
    placed = tuple(numbers[who] for who in range(len(test.invocations)))
    return Layout(placed, size, group_size, len(groups))


def storages(test: Test) -> Iterator[dict[int, str]]:
    """Yield all ways to give the storage classes of a test to buffers, images and shared memory."""
    used: dict[int, set[str]] = {}
    for each in test.instructions:
        for which in each.semantics:
            used.setdefault(which, set())
        if each.variable:
            used.setdefault(each.storage, set()).add(each.variable)
    if len(used) > len(STORAGES):
        raise NotExpressibleError("more than three storage classes")
    for chosen in permutations(STORAGES, len(used)):
        which = dict(zip(sorted(used), chosen, strict=True))
        in_shared = set().union(*(names for n, names in used.items() if which[n] == SHARED))
        places = {i.workgroup for i in test.invocations if in_shared & _accessed(i.code)}
        others = set().union(*(names for n, names in used.items() if which[n] != SHARED))
        shares = {test.location(name) for name in in_shared}
        is_alone = not shares & {test.location(name) for name in others}
        is_one = len(shares) == len(in_shared)
        if (
            len(places) <= 1
            and is_alone
            and is_one
            and not any(test.initial.get(n) for n in in_shared)
        ):
            yield which


def _accessed(code: Sequence[Any]) -> set[str]:
    return {each.variable for each in code if isinstance(each, Instruction)}


class Translation:
    """A shader for one execution, and the memory that it is run with.

    Attributes:
        text: the assembly; the line of each event is its number and 1.
        buffers: an array for each block and each image, by its name. Those of variables that share
            a location share memory. "results" has what each event has read.
    """

    def __init__(self, test: Test, execution: Execution, storage: dict[int, str]) -> None:
        self._test, self._storage, self._layout = test, storage, layout(test)
        self._constants: dict[int, str] = {}
        self._variables = {c.variable: storage[c.storage] for c in test.instructions if c.variable}
        memory = {
            test.location(name): np.full(1, test.initial.get(test.location(name), 0), np.uint32)
            for name in self._variables
        }
        self.buffers = {
            f"v_{name}": memory[test.location(name)].reshape((1, 1) if where == IMAGE else 1)
            for name, where in self._variables.items()
            if where != SHARED
        }
        self.buffers["results"] = np.zeros(max(len(execution.events), 1), np.uint32)
        body = self._body(execution)
        self.text = self._module(body)

    def assembled(self) -> bytes:
        """Return the module."""
        return assembled(self.text, "spv1.5")

    def _number(self, value: int) -> str:
        return self._constants.setdefault(value, f"%n{value}")

    def _module(self, body: str) -> str:
        names = [*self.buffers]
        shared = [name for name, where in self._variables.items() if where == SHARED]
        variables = "".join(
            f"%{name} = OpVariable %picture_pointer UniformConstant\n"
            if self._variables.get(name[2:]) == IMAGE
            else f"%{name} = OpVariable %block_pointer StorageBuffer\n"
            for name in names
        )
        nothing = "%nothing = OpConstantNull %uint\n" if shared else ""
        variables += nothing + "".join(
            f"%v_{name} = OpVariable %shared_pointer Workgroup %nothing\n" for name in shared
        )
        constants = "".join(
            f"{name} = OpConstant %uint {n}\n" for n, name in self._constants.items()
        )
        interface = " ".join(
            ["%local", "%group", *(f"%{n}" for n in names), *(f"%v_{n}" for n in shared)]
        )
        decorations = (
            "OpDecorate %local BuiltIn LocalInvocationIndex\nOpDecorate %group BuiltIn WorkgroupId\n"
            "OpDecorate %array ArrayStride 4\nOpDecorate %block Block\nOpMemberDecorate %block 0 Offset 0\n"
        )
        begin = head(
            "VulkanMemoryModel", "VulkanMemoryModelDeviceScope", "GroupNonUniform",
            model="Logical Vulkan", interface=interface, local=self._layout.group_size,
        )  # fmt: skip
        own_names = "".join(f'OpName %v_{name} "v_{name}"\n' for name in shared)
        source = '%file = OpString "test"\n'
        return f"{begin}{source}{own_names}{bound(*names)}{decorations}{VOID}{TYPES}{constants}{variables}{body}"

    def _body(self, execution: Execution) -> str:
        size = self._layout.group_size
        lines = [
            "%main = OpFunction %void None %function\n%label = OpLabel",
            f"%lane = OpLoad %uint %local\n%groups = OpLoad %place %group\n"
            f"%own_group = OpCompositeExtract %uint %groups 0\n"
            f"%before = OpIMul %uint %own_group {self._number(size)}\n"
            f"%own = OpIAdd %uint %before %lane\n"
            f"%own_subgroup = OpUDiv %uint %own {self._number(self._layout.subgroup_size)}",
        ]
        done: set[str] = set()
        for number, event in enumerate(execution.events):
            if event.code.kind == "barrier":
                if event.code.instance in done:
                    continue
                done.add(event.code.instance)
                condition, code = self._barrier(event.code.instance)
            else:
                place = self._number(self._layout.numbers[event.who])
                condition = f"OpIEqual %bool %own {place}"
                code = self._access(number, event.code, event.written)
            lines.append(
                f"%is{number} = {condition}\nOpSelectionMerge %end{number} None\n"
                f"OpBranchConditional %is{number} %do{number} %end{number}\n%do{number} = OpLabel\n"
                f"OpLine %file {number + 1} 0\n{code}OpBranch %end{number}\n%end{number} = OpLabel"
            )
        return "\n".join([*lines, "OpReturn", "OpFunctionEnd", ""])

    def _semantics(self, code: Instruction) -> str:
        if not (code.acquires or code.releases):
            return self._number(0)
        bits = _BOTH if code.acquires and code.releases else _ACQUIRE if code.acquires else _RELEASE
        bits |= sum(_SEMANTICS[self._storage[each]] for each in code.semantics)
        bits |= _AVAILABLE * code.makes_available | _VISIBLE * code.makes_visible
        return self._number(bits)

    def _scope(self, code: Instruction) -> str:
        return self._number(_SCOPES[code.scope])

    def _barrier(self, instance: str) -> tuple[str, str]:
        """Return a condition for those that wait in a barrier, and the barrier."""
        test = self._test
        both = {
            (who, code)
            for who, invocation in enumerate(test.invocations)
            for code in invocation.code
            if isinstance(code, Instruction) and code.instance == instance
        }
        members, codes = {who for who, _ in both}, {code for _, code in both}
        if len(codes) > 1:
            raise NotExpressibleError("a barrier with other semantics for each invocation")
        code = codes.pop()
        one = test.invocations[min(members)]
        group = {w for w, i in enumerate(test.invocations) if i.workgroup == one.workgroup}
        near = {w for w in group if test.invocations[w].subgroup == one.subgroup}
        place = self._layout.numbers[min(members)]
        if members == group:
            condition = (
                f"OpIEqual %bool %own_group {self._number(place // self._layout.group_size)}"
            )
        elif members == near:
            subgroup = self._number(place // self._layout.subgroup_size)
            condition = f"OpIEqual %bool %own_subgroup {subgroup}"
        else:
            raise NotExpressibleError("a barrier of another group than a workgroup or a subgroup")
        execution = self._number(2 if members == group else 3)
        barrier = f"OpControlBarrier {execution} {self._scope(code)} {self._semantics(code)}\n"
        return condition, barrier

    def _access(self, number: int, code: Instruction, written: int) -> str:
        if code.kind == "fence":
            return f"OpMemoryBarrier {self._scope(code)} {self._semantics(code)}\n"
        zero, where = self._number(0), self._storage[code.storage]
        pointer, before = f"%v_{code.variable}", ""
        if where == IMAGE and code.is_atomic:
            before = f"%t{number} = OpImageTexelPointer %texel {pointer} %nowhere{number} {zero}\n"
            before = f"%nowhere{number} = OpCompositeConstruct %pair {zero} {zero}\n{before}"
            pointer = f"%t{number}"
        elif where == BUFFER:
            before = f"%t{number} = OpAccessChain %element {pointer} {zero} {zero}\n"
            pointer = f"%t{number}"
        value, read = self._number(written), f"%r{number}"
        if code.is_atomic:
            how = f"{self._scope(code)} {self._semantics(code)}"
            if code.kind == "store":
                access = f"OpAtomicStore {pointer} {how} {value}\n"
            elif code.kind == "load":
                access = f"{read} = OpAtomicLoad %uint {pointer} {how}\n"
            else:
                name = _ATOMICS.get(code.operation)
                if name is None:
                    raise NotExpressibleError(f"an atomic {code.operation}")
                operand = code.value if isinstance(code.value, int) else written
                access = f"{read} = OpAtomic{name} %uint {pointer} {how} {self._number(operand)}\n"
        elif where == IMAGE:
            access = self._texel(number, code, value)
        else:
            flag = "MakePointerAvailable" if code.kind == "store" else "MakePointerVisible"
            operands = "" if code.is_private else "NonPrivatePointer"
            if code.is_coherent:
                operands = f"NonPrivatePointer|{flag} {self._scope(code)}"
            if code.kind == "store":
                access = f"OpStore {pointer} {value} {operands}\n"
            else:
                access = f"{read} = OpLoad %uint {pointer} {operands}\n"
        if code.reads:
            access += (
                f"OpNoLine\n%o{number} = OpAccessChain %element %results {zero} {self._number(number)}\n"
                f"OpStore %o{number} {read}\n"
            )
        return before + access

    def _texel(self, number: int, code: Instruction, value: str) -> str:
        zero = self._number(0)
        flag = "MakeTexelAvailable" if code.kind == "store" else "MakeTexelVisible"
        operands = "" if code.is_private else "NonPrivateTexel"
        if code.is_coherent:
            operands = f"{flag}|NonPrivateTexel {self._scope(code)}"
        at = f"%at{number} = OpCompositeConstruct %pair {zero} {zero}\n"
        picture = f"%i{number} = OpLoad %picture %v_{code.variable}\n"
        if code.kind == "store":
            texel = f"%x{number} = OpCompositeConstruct %vector {' '.join([value] * 4)}\n"
            write = f"OpImageWrite %i{number} %at{number} %x{number} {operands}\n"
            return at + picture + texel + write
        read = f"%x{number} = OpImageRead %vector %i{number} %at{number} {operands}\n"
        return f"{at}{picture}{read}%r{number} = OpCompositeExtract %uint %x{number} 0\n"
