"""What a SPIR-V module declares, read from its disassembly; and the module, changed.

Terms and rules are those of the SPIR-V specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from vkops.errors import ShaderCompileError
from vkops.shaders import tools
from vkops.shaders.cache import is_spirv
from vkops.shaders.instructions import Instruction, Instructions, Scalar

_VERSION_WORD = slice(4, 8)


class Block(NamedTuple):
    """A storage or uniform block: one buffer that a shader is given.

    ``instance`` is the block's name within the shader, ``""`` where it has none. ``nbytes`` is
    what it holds at least, ``stride`` the bytes of each further element of an array without end.
    """

    name: str
    instance: str
    kind: str  # storage or uniform
    set: int
    binding: int
    readonly: bool
    nbytes: int
    stride: int
    type: str  # id of the struct

    @property
    def point(self) -> str:
        """What it is called where a buffer is bound to it."""
        return self.name or self.instance or str(self.binding)

    def is_called(self, point: str) -> bool:
        """Whether that is its name, its instance's, or its binding."""
        return point != "" and point in (self.name, self.instance, str(self.binding))


@dataclass(frozen=True)
class Module(Instructions):
    """A SPIR-V module with one compute entry point.

    Raises:
        ShaderCompileError: it is none, or spirv-dis is missing.
    """

    @classmethod
    def read(cls, spirv: bytes, name: str = "SPIR-V") -> Module:
        """Make one of the bytes of a .spv file; ``name`` is what errors call it."""
        if not is_spirv(spirv):
            raise ShaderCompileError(f"{name}: {len(spirv)} bytes that are not SPIR-V", file=name)
        module = cls(spirv)
        stages = [i.operands[0] for i in module._all("OpEntryPoint")]
        if stages != ["GLCompute"]:
            raise ShaderCompileError(
                f"{name}: has {len(stages)} entry points ({', '.join(stages)}), must have one, of "
                "a compute shader",
                file=name,
            )
        return module

    # -- what it declares -------------------------------------------------------------------------

    @cached_property
    def entry_point(self) -> str:
        """The name of its entry point."""
        return tools.unquoted(self._all("OpEntryPoint")[0].operands[2])

    @cached_property
    def capabilities(self) -> tuple[str, ...]:
        """What the device must be able to do."""
        return tuple(i.operands[0] for i in self._all("OpCapability"))

    @property
    def instructions(self) -> int:
        """How many instructions its functions have, without debug information."""
        ops = [i.op for i in self._instructions]
        return sum(op not in ("OpLine", "OpNoLine") for op in ops[ops.index("OpFunction") :])

    @property
    def loops(self) -> int:
        """How many loops it has."""
        return len(self._all("OpLoopMerge"))

    @cached_property
    def local_size(self) -> tuple[int, int, int]:
        """Invocations of a workgroup; by default, where specialization constants say it."""
        for variable, decorations in self._decorations.items():
            if decorations.get("BuiltIn") == ("WorkgroupSize",):
                x, y, z = (int(self._value(part)) for part in self._by_id[variable].operands[1:])
                return x, y, z
        for mode in self._all("OpExecutionMode"):
            if mode.operands[1] == "LocalSize":
                x, y, z = map(int, mode.operands[2:])
                return x, y, z
        return 1, 1, 1

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, by set and binding.

        Where several variables have one struct, its name means none of them.
        """
        found = []
        types = [pointee for _, _, pointee in self._variables]
        for variable, kind, pointee in self._variables:
            decorations = self._decorations.get(variable, {})
            if "Binding" not in decorations:
                continue
            declared = self._decorations.get(pointee, {})
            if kind == "StorageBuffer" or "BufferBlock" in declared:
                kind = "storage"
            else:
                kind = {"Uniform": "uniform"}.get(kind, "image or sampler")
            if self._by_id[pointee].op in ("OpTypeArray", "OpTypeRuntimeArray"):
                kind = f"array of {kind} blocks"
            members = self._by_id[pointee].operands if kind in ("storage", "uniform") else ()
            flags = [self._member_decorations.get((pointee, n), {}) for n in range(len(members))]
            nbytes, stride = self._frozen._layout(pointee) if members else (0, 0)
            found.append(
                Block(
                    self._name(pointee) if types.count(pointee) == 1 else "",
                    self._name(variable),
                    kind,
                    int(decorations.get("DescriptorSet", ("0",))[0]),
                    int(decorations["Binding"][0]),
                    kind == "uniform"
                    or "NonWritable" in decorations
                    or (bool(flags) and all("NonWritable" in f for f in flags)),
                    nbytes,
                    stride,
                    pointee,
                )
            )
        return tuple(sorted(found, key=lambda block: (block.set, block.binding)))

    @cached_property
    def push_constants(self) -> tuple[Scalar, ...]:
        """The numbers in the push constants, one after the other."""
        return tuple(
            scalar
            for _, kind, pointee in self._variables
            if kind == "PushConstant"
            for scalar in self._frozen._scalars(pointee, "", 0)
        )

    @property
    def push_nbytes(self) -> int:
        """Bytes of the push constants."""
        pushed = [t for _, kind, t in self._variables if kind == "PushConstant"]
        return max(map(self._frozen._nbytes, pushed), default=0)

    @cached_property
    def specialization_constants(self) -> tuple[Scalar, ...]:
        """The constants that have a SpecId, by it."""
        found = [
            Scalar(
                self._name(i.result),
                self._type_name(i.operands[0]),
                int(self._decorations[i.result]["SpecId"][0]),
                self._value(i.result),
            )
            for i in self._instructions
            if "SpecId" in self._decorations.get(i.result, {})
        ]
        return tuple(sorted(found, key=lambda constant: constant.place))

    @property
    def shared_nbytes(self) -> int:
        """Bytes of shared memory that a workgroup takes."""
        shared = [t for _, kind, t in self._variables if kind == "Workgroup"]
        return sum(map(self._frozen._nbytes, shared))

    @cached_property
    def _frozen(self) -> Module:
        """The same with everything computed that follows from specialization constants."""
        return Module(tools.frozen(self.spirv)) if self._all("OpSpecConstantOp") else self

    # -- the module, changed ----------------------------------------------------------------------

    def specialize(self, values: Mapping[int, str]) -> Module:
        """The same with other values of specialization constants, by their ids, as literals."""
        chosen = {
            result: values[int(decorations["SpecId"][0])]
            for result, decorations in self._decorations.items()
            if "SpecId" in decorations and int(decorations["SpecId"][0]) in values
        }

        def change(i: Instruction) -> Instruction:
            if i.result not in chosen:
                return i
            if i.op == "OpSpecConstant":
                return replace(i, operands=(i.operands[0], chosen[i.result]))
            return replace(i, op=f"OpSpecConstant{'True' if int(chosen[i.result]) else 'False'}")

        return self._assemble(map(change, self._instructions)) if chosen else self

    def with_storage_blocks(self) -> Module:
        """The same with uniform blocks made storage blocks, of the same layout.

        Storage buffers are all that Kompute binds. BufferBlock is a word of SPIR-V up to 1.3.
        """
        uniform = {block.type for block in self.blocks if block.kind == "uniform"}
        if not uniform:
            return self

        def change(i: Instruction) -> Instruction:
            if i.op == "OpDecorate" and i.operands[1] == "Block" and i.operands[0] in uniform:
                return replace(i, operands=(i.operands[0], "BufferBlock"))
            return i

        return self._assemble(map(change, self._instructions))

    def _assemble(self, instructions: Iterable[Instruction]) -> Module:
        text = "".join(
            f"{f'{i.result} = ' if i.result else ''}{' '.join((i.op, *i.operands))}\n"
            for i in instructions
        )
        minor, major = self.spirv[_VERSION_WORD][1:3]
        return Module(tools.assemble(text, f"spv{major}.{minor}"))
