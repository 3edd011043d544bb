"""The type stub of DirectMLX's functions, vkops/dml/expressions.pyi, which this script writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import Parameter
from pathlib import Path

from vkops.dml.function_table import FUNCTIONS
from vkops.dml.functions import Function


def stub(functions: Mapping[str, Function]) -> str:
    """Return a type stub of functions, which have the first sentences of their docstrings."""
    texts = [_stub_of(name, function) for name, function in sorted(functions.items())]
    types = {word for text in texts for word in re.findall(r"[:|>\[] ?([A-Z]\w+)", text)}
    imports = [
        f"from {module} import (\n    {lines},\n)"
        for module, names in _TYPES.items()
        if (lines := ",\n    ".join(sorted(types & set(names.split()))))
    ]
    return "\n".join(["from collections.abc import Sequence", "", *imports, "", *texts])


def _stub_of(function_name: str, function: Function) -> str:
    lines = [f"def {function_name}("]
    for name, parameter in function.signature.parameters.items():
        end = "" if parameter.default is Parameter.empty else " = ..."
        lines.append(f"    {name}: {parameter.annotation}{end},")
    lines.append(f") -> {function.signature.return_annotation}:")
    return "\n".join([*lines, f'    """{function.summary}"""', ""])


_TYPES = {
    "vkops.dml.enums": "AxisDirection DepthSpaceOrder InterpolationMode PaddingMode TensorDataType",
    "vkops.dml.graph_builder": "Expression Graph",
    "vkops.dml.structs": "ScaleBias Size2D",
}
"""The types that stubs name, by the module to import them from."""


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "vkops/dml/expressions.pyi"
    path.write_text(stub(FUNCTIONS), "utf-8")
