"""The type stubs that this script writes: of DirectMLX's functions, and of those of arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path

from vkops.dml.function_table import FUNCTIONS
from vkops.dml.functions import GraphFunction
from vkops.kernels.ufuncs import FUNCTIONS as ARITHMETIC

_DEFAULT = re.compile(r"= (?:\(None, None\)|[^,)]+)")


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


def arithmetic_stub() -> str:
    """Return the type stub of the functions of arithmetic, by all of their names."""
    texts = [
        "from collections.abc import Callable, Mapping",
        "from typing import Any",
        "",
        "from vkops.tensors.tensor import DeviceLike, Tensor",
        "",
        "FUNCTIONS: Mapping[str, Callable[..., Any]]",
        "",
    ]
    for name, function in sorted(ARITHMETIC.items()):
        declared = _DEFAULT.sub("= ...", f"{signature(function)}".replace("'", ""))
        parameters = declared[1 : declared.rindex(") ->")].split(", ")
        result = "tuple[Tensor, Tensor]" if name == "divmod" else "Tensor"
        head = _listed(f"def {name}", parameters, "(", f") -> {result}:")
        summary = str(function.__doc__).partition("\n")[0]
        texts += [head, f'    """{summary}"""', ""]
    return "\n".join(texts)


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
    package = Path(__file__).parents[1] / "vkops"
    (package / "dml/expressions.pyi").write_text(stub(FUNCTIONS), "utf-8")
    (package / "kernels/ufuncs.pyi").write_text(arithmetic_stub(), "utf-8")
