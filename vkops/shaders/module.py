"""The declarations of a SPIR-V module, and changed versions of the module.

Terms and rules are those of the SPIR-V specification.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from vkops.errors import ShaderCompileError
from vkops.shaders import tools
from vkops.shaders.cache import is_spirv
from vkops.shaders.instructions import Instructions, Scalar

_HEADER_WORDS = 5
_OP_DECORATE = 3 << 16 | 71  # with a target, a decoration and no operands
_BLOCK, _BUFFER_BLOCK = 2, 3


class Block(NamedTuple):
    """A storage or uniform block, which a buffer is bound to.

    ``instance`` is the name of the block's instance, ``""`` if it has none. ``nbytes`` is the least
    size of the buffer, ``stride`` that of each element of a runtime array at the end.
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
        """The name by which a buffer is bound to it."""
        return self.name or self.instance or str(self.binding)

    def is_called(self, point: str) -> bool:
        """Whether ``point`` is its name, its instance's name, or its binding."""
        return point != "" and point in (self.name, self.instance, str(self.binding))


@dataclass(frozen=True)
class Module(Instructions):
    """A SPIR-V module with one compute entry point.

    Raises:
        ShaderCompileError: the bytes are not such a module, or spirv-dis is missing.
    """

    @classmethod
    def read(cls, spirv: bytes, name: str = "SPIR-V") -> Module:
        """Read the bytes of a .spv file; errors call it ``name``."""
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

    # -- declarations -----------------------------------------------------------------------------

    @cached_property
    def entry_point(self) -> str:
        """The name of its entry point."""
        return tools.unquoted(self._all("OpEntryPoint")[0].operands[2])

    @cached_property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities that the device must have."""
        return tuple(i.operands[0] for i in self._all("OpCapability"))

    @property
    def instructions(self) -> int:
        """Number of instructions in its functions, without debug information."""
        ops = [i.op for i in self._instructions]
        return sum(op not in ("OpLine", "OpNoLine") for op in ops[ops.index("OpFunction") :])

    @property
    def loops(self) -> int:
        """Number of loops."""
        return len(self._all("OpLoopMerge"))

    @cached_property
    def local_size(self) -> tuple[int, int, int]:
        """Invocations of a workgroup, with the default values of specialization constants."""
        for target, decorations in self._decorations.items():
            if decorations.get("BuiltIn") == ("WorkgroupSize",):
                x, y, z = (int(self._value(part)) for part in self._by_id[target[0]].operands[1:])
                return x, y, z
        for mode in self._all("OpExecutionMode"):
            if mode.operands[1] == "LocalSize":
                x, y, z = map(int, mode.operands[2:])
                return x, y, z
        return 1, 1, 1

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, by set and binding.

        The name of a struct that several variables share is the name of none of them.
        """
        found = []
        types = [pointee for _, _, pointee in self._variables]
        for variable, kind, pointee in self._variables:
            decorations = self._decorated(variable)
            if "Binding" not in decorations:
                continue
            if kind == "StorageBuffer" or "BufferBlock" in self._decorated(pointee):
                kind = "storage"
            else:
                kind = "uniform" if kind == "Uniform" else "image or sampler"
            if self._by_id[pointee].op in ("OpTypeArray", "OpTypeRuntimeArray"):
                kind = f"array of {kind} blocks"
            members = self._by_id[pointee].operands if kind in ("storage", "uniform") else ()
            flags = [self._decorated(pointee, str(n)) for n in range(len(members))]
            nbytes, stride = self._computed._layout(pointee) if members else (0, 0)
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
        """The numbers in the push constants, in order."""
        return tuple(
            scalar
            for _, kind, pointee in self._variables
            if kind == "PushConstant"
            for scalar in self._computed._scalars(pointee, "", 0)
        )

    @property
    def push_nbytes(self) -> int:
        """Size of the push constants in bytes."""
        pushed = [t for _, kind, t in self._variables if kind == "PushConstant"]
        return max(map(self._computed._nbytes, pushed), default=0)

    @cached_property
    def specialization_constants(self) -> tuple[Scalar, ...]:
        """The specialization constants, by SpecId."""
        found = [
            Scalar(
                self._name(i.result),
                self._type_name(i.operands[0]),
                int(self._decorated(i.result)["SpecId"][0]),
                self._value(i.result),
            )
            for i in self._instructions
            if "SpecId" in self._decorated(i.result)
        ]
        return tuple(sorted(found, key=lambda constant: constant.location))

    @property
    def shared_nbytes(self) -> int:
        """Bytes of shared memory that a workgroup uses."""
        shared = [t for _, kind, t in self._variables if kind == "Workgroup"]
        return sum(map(self._computed._nbytes, shared))

    @cached_property
    def _computed(self) -> Module:
        """The module with all constants computed from the specialization constants."""
        return (
            Module(tools.with_constants_computed(self.spirv))
            if self._all("OpSpecConstantOp")
            else self
        )

    # -- changed modules --------------------------------------------------------------------------

    def specialize(self, values: Mapping[int, str]) -> Module:
        """Return the module with other values of specialization constants, by SpecId."""
        return Module(tools.specialized(self.spirv, values)) if values else self

    def with_storage_blocks(self) -> Module:
        """Return the module with uniform blocks made storage blocks of the same layout.

        Kompute binds only storage buffers. BufferBlock is a decoration of SPIR-V up to 1.3.
        """
        uniform = {int(block.type[1:]) for block in self.blocks if block.kind == "uniform"}
        if not uniform:
            return self
        words = array("I", self.spirv)
        at = _HEADER_WORDS
        while at < len(words):
            if words[at] == _OP_DECORATE and words[at + 2] == _BLOCK and words[at + 1] in uniform:
                words[at + 2] = _BUFFER_BLOCK
            at += words[at] >> 16
        return Module(words.tobytes())
