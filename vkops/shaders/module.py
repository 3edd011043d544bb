"""What a SPIR-V module declares, read from its disassembly; and the module, changed.

Terms and rules are those of the SPIR-V specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from vkops.errors import ShaderCompileError
from vkops.shaders import tools
from vkops.shaders.cache import is_spirv

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


class Scalar(NamedTuple):
    """A number in the push constants, or a specialization constant: its type, and where it is.

    ``place`` is an offset in bytes, or the constant's id (SpecId). ``default`` is text.
    """

    name: str
    type: str
    place: int
    default: str = ""


@dataclass(frozen=True)
class _Instruction:
    result: str
    op: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """A SPIR-V module with one compute entry point.

    Raises:
        ShaderCompileError: it is none, or spirv-dis is missing.
    """

    spirv: bytes

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

    # -- the module, changed ----------------------------------------------------------------------

    def specialize(self, values: Mapping[int, str]) -> Module:
        """The same with other values of specialization constants, by their ids, as literals."""
        chosen = {
            result: values[int(decorations["SpecId"][0])]
            for result, decorations in self._decorations.items()
            if "SpecId" in decorations and int(decorations["SpecId"][0]) in values
        }

        def change(i: _Instruction) -> _Instruction:
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

        def change(i: _Instruction) -> _Instruction:
            if i.op == "OpDecorate" and i.operands[1] == "Block" and i.operands[0] in uniform:
                return replace(i, operands=(i.operands[0], "BufferBlock"))
            return i

        return self._assemble(map(change, self._instructions))

    def _assemble(self, instructions: Iterable[_Instruction]) -> Module:
        text = "".join(
            f"{f'{i.result} = ' if i.result else ''}{' '.join((i.op, *i.operands))}\n"
            for i in instructions
        )
        minor, major = self.spirv[_VERSION_WORD][1:3]
        return Module(tools.assemble(text, f"spv{major}.{minor}"))

    # -- reading ----------------------------------------------------------------------------------

    @cached_property
    def _frozen(self) -> Module:
        """The same with everything computed that follows from specialization constants."""
        return Module(tools.frozen(self.spirv)) if self._all("OpSpecConstantOp") else self

    @cached_property
    def _instructions(self) -> tuple[_Instruction, ...]:
        found = map(tools.words, tools.INSTRUCTION.findall(tools.disassemble(self.spirv)))
        return tuple(_Instruction(result, op, tuple(rest)) for result, op, *rest in found)

    def _all(self, op: str) -> list[_Instruction]:
        return [i for i in self._instructions if i.op == op]

    @cached_property
    def _by_id(self) -> dict[str, _Instruction]:
        return {i.result: i for i in self._instructions if i.result}

    @cached_property
    def _names(self) -> dict[tuple[str, ...], str]:
        """Names by (id,), and those of members by (id, number)."""
        names = self._all("OpName") + self._all("OpMemberName")
        return {i.operands[:-1]: tools.printable(tools.unquoted(i.operands[-1])) for i in names}

    def _name(self, id_: str) -> str:
        return self._names.get((id_,), "")

    @cached_property
    def _decorations(self) -> dict[str, dict[str, tuple[str, ...]]]:
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for i in self._all("OpDecorate"):
            found.setdefault(i.operands[0], {})[i.operands[1]] = i.operands[2:]
        return found

    @cached_property
    def _member_decorations(self) -> dict[tuple[str, int], dict[str, tuple[str, ...]]]:
        found: dict[tuple[str, int], dict[str, tuple[str, ...]]] = {}
        for i in self._all("OpMemberDecorate"):
            key = i.operands[0], int(i.operands[1])
            found.setdefault(key, {})[i.operands[2]] = i.operands[3:]
        return found

    @cached_property
    def _variables(self) -> list[tuple[str, str, str]]:
        """Id, storage class and type of each variable."""
        return [
            (i.result, i.operands[1], self._by_id[i.operands[0]].operands[1])
            for i in self._all("OpVariable")
        ]

    def _value(self, id_: str) -> str:
        """A constant as its text says it: by default, where it can be specialised."""
        constant = self._by_id[id_]
        if constant.op.endswith(("True", "False")):
            return str(int(constant.op.endswith("True")))
        if constant.op not in ("OpConstant", "OpSpecConstant"):
            return "0"
        return constant.operands[1]

    # -- types ------------------------------------------------------------------------------------

    def _type_name(self, id_: str) -> str:
        """A scalar's type as GLSL calls it."""
        kind = self._by_id[id_]
        if kind.op == "OpTypeBool":
            return "bool"
        name = {"OpTypeFloat": "float", "OpTypeInt": "uint"}.get(kind.op, kind.op)
        if kind.op == "OpTypeInt" and kind.operands[1] == "1":
            name = "int"
        return name if kind.operands[0] == "32" else f"{name}{kind.operands[0]}"

    def _nbytes(self, id_: str) -> int:
        """Bytes of a type, packed where no layout is declared; an array without end has none."""
        kind = self._by_id[id_]
        match kind.op:
            case "OpTypeBool":
                return 4
            case "OpTypeInt" | "OpTypeFloat":
                return int(kind.operands[0]) // 8
            case "OpTypeVector" | "OpTypeMatrix":
                return self._nbytes(kind.operands[0]) * int(kind.operands[1])
            case "OpTypeArray":
                return self._stride(id_) * int(self._value(kind.operands[1]))
            case "OpTypeStruct":
                return self._layout(id_)[0]
        return 0

    def _stride(self, array: str) -> int:
        declared = self._decorations.get(array, {}).get("ArrayStride")
        return int(declared[0]) if declared else self._nbytes(self._by_id[array].operands[0])

    def _layout(self, struct: str) -> tuple[int, int]:
        """Bytes of a struct up to its end, or to an array without end, whose stride comes next."""
        end = stride = 0
        for number, member in enumerate(self._by_id[struct].operands):
            decorations = self._member_decorations.get((struct, number), {})
            offset = int(decorations["Offset"][0]) if "Offset" in decorations else end
            nbytes = self._nbytes(member)
            if self._by_id[member].op == "OpTypeMatrix" and "MatrixStride" in decorations:
                column, columns = self._by_id[member].operands
                rows = self._by_id[column].operands[1]
                vectors = rows if "RowMajor" in decorations else columns
                nbytes = int(decorations["MatrixStride"][0]) * int(vectors)
            end = max(end, offset + nbytes)
            if self._by_id[member].op == "OpTypeRuntimeArray":
                stride = self._stride(member)
        return end, stride

    def _scalars(
        self, id_: str, name: str, offset: int, matrix: Mapping[str, tuple[str, ...]] = {}
    ) -> Iterator[Scalar]:
        """The numbers that a type is made of, with their offsets; ``matrix`` is how one lies."""
        kind = self._by_id[id_]
        match kind.op:
            case "OpTypeStruct":
                for number, member in enumerate(kind.operands):
                    decorations = self._member_decorations[id_, number]
                    at = offset + int(decorations["Offset"][0])
                    own = self._names.get((id_, str(number)), str(number))
                    path = f"{name}.{own}" if name else own
                    yield from self._scalars(member, path, at, decorations)
            case "OpTypeVector":
                step = self._nbytes(kind.operands[0])
                for n in range(int(kind.operands[1])):
                    yield from self._scalars(kind.operands[0], f"{name}[{n}]", offset + n * step)
            case "OpTypeArray":
                for n in range(int(self._value(kind.operands[1]))):
                    at = offset + n * self._stride(id_)
                    yield from self._scalars(kind.operands[0], f"{name}[{n}]", at, matrix)
            case "OpTypeMatrix":
                column, count = self._by_id[kind.operands[0]], int(kind.operands[1])
                steps = int(matrix["MatrixStride"][0]), self._nbytes(column.operands[0])
                across, down = steps[::-1] if "RowMajor" in matrix else steps
                for c in range(count):
                    for r in range(int(column.operands[1])):
                        at = offset + c * across + r * down
                        yield from self._scalars(column.operands[0], f"{name}[{c}][{r}]", at)
            case _:
                yield Scalar(name, self._type_name(id_), offset)
