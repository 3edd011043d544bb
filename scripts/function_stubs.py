"""The type stub that this script writes, of the functions of arithmetic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import signature
from pathlib import Path

from vkops.kernels.ufuncs import FUNCTIONS

_DEFAULT = re.compile(r"= (?:\(None, None\)|[^,)]+)")


def stub() -> str:
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
    for name, function in sorted(FUNCTIONS.items()):
        declared = _DEFAULT.sub("= ...", f"{signature(function)}".replace("'", ""))
        parameters = declared[1 : declared.rindex(") ->")].split(", ")
        result = "tuple[Tensor, Tensor]" if name == "divmod" else "Tensor"
        head = _listed(f"def {name}(", parameters, f") -> {result}:")
        summary = str(function.__doc__).partition("\n")[0]
        texts += [head, f'    """{summary}"""', ""]
    return "\n".join(texts)


def _listed(start: str, items: Sequence[str], end: str) -> str:
    """A statement on one line, or on several as the formatter has it."""
    listed = ", ".join(items)
    if len(start + listed + end) <= 100:
        return start + listed + end
    lines = f"    {listed}\n" if len(listed) <= 96 else "".join(f"    {item},\n" for item in items)
    return f"{start}\n{lines}{end}"


if __name__ == "__main__":
    package = Path(__file__).parents[1] / "vkops"
    (package / "kernels/ufuncs.pyi").write_text(stub(), "utf-8")
