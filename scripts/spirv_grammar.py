"""Write vkops/shaders/grammar.json from the grammar of SPIR-V.

Usage: scripts/spirv_grammar.py /usr/include/spirv/unified1

The folder is that of SPIRV-Headers (Debian: spirv-headers). vkops/shaders/grammar.py explains the
result.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "vkops/shaders/grammar.json"
KINDS = {
    "IdResultType": "t", "IdResult": "r", "IdRef": "i", "IdScope": "i", "IdMemorySemantics": "i",
    "LiteralString": "s", "MemoryAccess": "m", "LiteralSpecConstantOpInteger": "o",
    "PairIdRefIdRef": "i", "PairIdRefLiteralInteger": "in", "PairLiteralIntegerIdRef": "ni",
    # A bit mask, and an id for each bit that has an operand.
    "ImageOperands": "n*i", "TensorOperands": "n*i", "TensorAddressingOperands": "n*i",
    # A number, and literals.
    "LiteralContextDependentNumber": "*n", "LoopControl": "*n",
}  # fmt: skip

VENDORS = ("ALTERA", "AMD", "AMDX", "ARM", "INTEL", "NV", "QCOM")
"""The ends of the names of instructions that need a vendor's capability, which vkops refuses."""


def pattern(instruction: dict[str, Any]) -> str:
    """Return the kinds of an instruction's operands."""
    name, kinds = instruction["opname"], ""
    for operand in instruction.get("operands", []):
        kind = KINDS.get(operand["kind"], "n")
        if operand["kind"] in ("Decoration", "ExecutionMode"):
            # Enumerants with ids belong to the instructions whose names say so.
            rest = "i" if "Id" in name else "s" if name.endswith("String") else "n"
            kind = f"n*{rest}"
        kinds += ("*" if operand.get("quantifier") == "*" else "") + kind
    return kinds


def enumerants(grammar: dict[str, Any], kind: str) -> dict[str, int]:
    """Return the values of an enumeration by name, without other names of the same values."""
    (operand_kind,) = (each for each in grammar["operand_kinds"] if each["kind"] == kind)
    values: dict[int, str] = {}
    for each in operand_kind["enumerants"]:
        values.setdefault(each["value"], each["enumerant"])
    return {name: value for value, name in values.items()}


def converted(grammar: dict[str, Any], glsl: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the parts that vkops uses of the grammars of SPIR-V and of GLSL.std.450."""
    patterns: dict[str, dict[str, int]] = defaultdict(dict)
    known = set()
    for instruction in grammar["instructions"]:
        if instruction["opcode"] not in known and not instruction["opname"].endswith(VENDORS):
            known.add(instruction["opcode"])
            patterns[pattern(instruction)][instruction["opname"]] = instruction["opcode"]
    return {
        "capabilities": enumerants(grammar, "Capability"),
        "execution modes": enumerants(grammar, "ExecutionMode"),
        "instructions": dict(sorted(patterns.items())),
        "built-in variables": enumerants(grammar, "BuiltIn"),
        "functions": {each["opname"]: each["opcode"] for each in glsl["instructions"]},
    }


def text(data: dict[str, dict[str, Any]]) -> str:
    """Return the text of the file, in lines of 120 characters."""
    lines = json.dumps(data, separators=(", ", ":")).replace("}, ", "},\n").replace(":{", ":{\n")
    return "\n".join(textwrap.fill(line, 120) for line in lines.splitlines()) + "\n"


if __name__ == "__main__":
    names = ("spirv.core", "extinst.glsl.std.450")
    files = [Path(sys.argv[1], f"{name}.grammar.json") for name in names]
    grammars = (json.loads(file.read_text("utf-8")) for file in files)
    TARGET.write_text(text(converted(*grammars)), "utf-8")
