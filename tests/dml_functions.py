"""DirectMLX's functions, each with the operator that its docstring names."""

import re

from vkops.dml import expressions

FUNCTIONS = {
    name: re.search(r"DML_(\w+)_OPERATOR_DESC", function.__doc__)[1]
    for name, function in vars(expressions).items()
    if getattr(function, "__module__", "") == "vkops.dml"
}
