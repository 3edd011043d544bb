"""The instructions of a SPIR-V module, read from its disassembly: names, decorations, types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from vkops.errors import printable
from vkops.shaders import tools
from vkops.shaders.tools import Instruction


class Scalar(NamedTuple):
    """A number in the push constants, or a specialization constant.

    ``location`` is its offset in bytes, or the constant's SpecId. ``default`` is text.
    """

    name: str
    type: str
    location: int
    default: str = ""


@dataclass(frozen=True)
class Instructions:
    """All instructions of a module, and lookups in them."""

    spirv: bytes

    @cached_property
    def _instructions(self) -> list[Instruction]:
        return tools.instructions(tools.disassemble(self.spirv))

    def _all(self, op: str) -> list[Instruction]:
        return [i for i in self._instructions if i.op == op]

    @cached_property
    def _by_id(self) -> dict[str, Instruction]:
        return {i.result: i for i in self._instructions if i.result}

    @cached_property
    def _names(self) -> dict[tuple[str, ...], str]:
        """Names by (id,), and those of members by (id, number)."""
        names = self._all("OpName") + self._all("OpMemberName")
        return {i.operands[:-1]: printable(tools.unquoted(i.operands[-1])) for i in names}

    def _name(self, id_: str) -> str:
        return self._names.get((id_,), "")

    @cached_property
    def _decorations(self) -> dict[tuple[str, ...], dict[str, tuple[str, ...]]]:
        """Decorations by (id,), and those of members by (id, number)."""
        found: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}
        for op, width in (("OpDecorate", 1), ("OpMemberDecorate", 2)):
            for i in self._all(op):
                name, *values = i.operands[width:]
                found.setdefault(i.operands[:width], {})[name] = tuple(values)
        return found

    def _decorated(self, *target: str) -> Mapping[str, tuple[str, ...]]:
        return self._decorations.get(target, {})

    @cached_property
    def _variables(self) -> list[tuple[str, str, str]]:
        """Id, storage class and type of each variable."""
        return [
            (i.result, i.operands[1], self._by_id[i.operands[0]].operands[1])
            for i in self._all("OpVariable")
        ]

    def _value(self, id_: str) -> str:
        """The value of a constant as text; the default value of a specialization constant."""
        constant = self._by_id[id_]
        if constant.op.endswith(("True", "False")):
            return str(int(constant.op.endswith("True")))
        if constant.op not in ("OpConstant", "OpSpecConstant"):
            return "0"
        return constant.operands[1]

    # -- types ------------------------------------------------------------------------------------

    def _type_name(self, id_: str) -> str:
        """The name of a scalar type in GLSL."""
        kind = self._by_id[id_]
        if kind.op == "OpTypeBool":
            return "bool"
        name = {"OpTypeFloat": "float", "OpTypeInt": "uint"}.get(kind.op, kind.op)
        if kind.op == "OpTypeInt" and kind.operands[1] == "1":
            name = "int"
        return name if kind.operands[0] == "32" else f"{name}{kind.operands[0]}"

    def _nbytes(self, id_: str) -> int:
        """Size of a type, packed where no layout is declared; 0 for a runtime array."""
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
        declared = self._decorated(array).get("ArrayStride")
        return int(declared[0]) if declared else self._nbytes(self._by_id[array].operands[0])

    def _layout(self, struct: str) -> tuple[int, int]:
        """Size of a struct without the runtime array at its end, and the stride of that array."""
        end = stride = 0
        for number, member in enumerate(self._by_id[struct].operands):
            decorations = self._decorated(struct, str(number))
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
        """The numbers that a type consists of; ``matrix`` is the decorations of a matrix."""
        kind = self._by_id[id_]
        match kind.op:
            case "OpTypeStruct":
                for number, member in enumerate(kind.operands):
                    decorations = self._decorated(id_, str(number))
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
