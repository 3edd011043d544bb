"""Names of parametrised cases: the text of a lambda, or the values, where pytest has a position."""

import ast
import dis
import re
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np

MAX_NAME = 80
MAX_PYTEST_NAME = 100  # of texts that pytest uses as names
MAX_ELEMENTS = 8
FUNCTION, LAMBDA = type(lambda: None), (lambda: None).__name__
PLAIN = (type(None), bool, int, float, complex, str, bytes)


def pytest_make_parametrize_id(val):
    """Name a case; None leaves that to pytest."""
    is_long = isinstance(val, (str, bytes)) and len(val) > MAX_PYTEST_NAME
    is_named = isinstance(val, (list, tuple, dict, slice, np.ndarray)) or is_long
    return name_of(val) if is_named or getattr(val, "__name__", "") == LAMBDA else None


def name_of(value):
    """The text of a value, or None if it has a part whose text may differ from run to run."""
    text = _text(value)
    return text and text.replace(": ", ":")[:MAX_NAME]


def _text(value):
    if isinstance(value, int) and value.bit_length() > MAX_NAME:
        return f"{value.bit_length()} bits"
    if type(value) in PLAIN:
        return repr(value)
    if isinstance(value, np.ndarray):
        elements = _text(value.tolist()) if value.size <= MAX_ELEMENTS else None
        return f"{value.dtype}{elements or list(value.shape)}"
    if isinstance(value, dict):
        names = [_text(each) for each in value.values()]
        pairs = (f"{key!r}:{name}" for key, name in zip(value, names, strict=True))
        return None if None in names else f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        names = [_text(each) for each in value]
        return None if None in names else f"[{', '.join(names)}]"
    if isinstance(value, FUNCTION) and value.__name__ == LAMBDA:
        lambdas = _lambdas(value.__code__.co_filename)[value.__code__.co_firstlineno]
        same = [text for text, code in lambdas if _key(code) == _key(value.__code__)]
        text = lambdas[0][0] if len(lambdas) == 1 else same[0] if same else None
        return text and " ".join([text, *filter(None, map(_text, value.__defaults__ or ()))])
    if value is ...:
        return "..."
    if isinstance(value, Path):
        return f"Path({value.as_posix()!r})"
    if isinstance(value, slice):
        return f"slice{_text((value.start, value.stop, value.step))}"
    return getattr(value, "__name__", type(value).__name__)


@lru_cache
def _lambdas(file):
    """The lambdas of a file, by line: their texts and their code."""
    text = Path(file).read_text("utf-8")
    lines, found = text.encode().splitlines(), defaultdict(list)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Lambda):
            body = node.body
            part = lines[body.lineno - 1 : body.end_lineno]
            part[-1] = part[-1][: body.end_col_offset]
            part[0] = part[0][body.col_offset :]
            constants = compile(ast.Expression(node), file, "eval").co_consts
            code = next(each for each in constants if hasattr(each, "co_names"))
            found[node.lineno].append((" ".join(b" ".join(part).decode().split()), code))
    return found


def _key(code):
    """What tells the lambdas of a line apart: names, and constants with their types.

    Python 3.14 has small integers in instructions of their own.
    """
    loads = [
        each for each in dis.get_instructions(code) if re.search("CONST|SMALL_INT", each.opname)
    ]
    constants = [each.argval for each in loads if not isinstance(each.argval, type(code))]
    return code.co_names, [(type(each), each) for each in constants]
