"""The type stub of DirectMLX's functions, vkops/dml/expressions.pyi, which this script writes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import Parameter
from pathlib import Path

from vkops.dml.function_table import FUNCTIONS
from vkops.dml.functions import GraphFunction


def stub(functions: Mapping[str, GraphFunction]) -> str:
    """Return a type stub of functions, which have the first sentences of their docstrings."""
    texts = [_stub_of(name, function) for name, function in sorted(functions.items())]
    types = {word for text in texts for word in re.findall(r"[:|>\[] ?([A-Z]\w+)", text)}
    imports = [
        _listed(f"from {module} import ", sorted(types & set(names.split())))
        for module, names in _TYPES.items()
    ]
    return "\n".join(["from collections.abc import Sequence", "", *imports, "", *texts])


def _stub_of(function_name: str, function: GraphFunction) -> str:
    signature = function.signature
    parameters = [
        f"{name}: {each.annotation}{'' if each.default is Parameter.empty else ' = ...'}"
        for name, each in signature.parameters.items()
    ]
    end = f" -> {signature.return_annotation}:"
    head = _listed(f"def {function_name}", parameters, "(", f"){end}")
    return "\n".join([head, f'    """{function.summary}"""', ""])


def _listed(start: str, items: Sequence[str], opening: str = "", closing: str = "") -> str:
    """A statement on one line, or on several as the formatter has it."""
    listed = ", ".join(items)
    line = f"{start}{opening}{listed}{closing}"
    if len(line) <= 100:
        return line
    lines = "".join(f"    {item},\n" for item in items)
    if opening and len(listed) <= 96:
        lines = f"    {listed}\n"
    return f"{start}(\n{lines}{closing or ')'}"


_TYPES = {
    "vkops.dml.enums": "AxisDirection DepthSpaceOrder InterpolationMode PaddingMode TensorDataType",
    "vkops.dml.fields": "ScaleBias Size2D",
    "vkops.dml.graph_builder": "Expression Graph",
}
"""The types that stubs name, by the module to import them from."""


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "vkops/dml/expressions.pyi"
    path.write_text(stub(FUNCTIONS), "utf-8")
