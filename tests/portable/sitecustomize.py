"""Hides from vkops all that Python does not have on Windows: ``scripts/test --driver none-portable``.

Python runs this file at its start, because its folder is in PYTHONPATH; its children do, too. The modules of
vkops get ``os`` and ``signal`` without the names that the types of Python's own modules do not list for
Windows, cannot open folders, and cannot import modules of POSIX. Tests and packages keep all that.
"""

import ast
import builtins
import importlib.util
import os
import signal
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

ROOT = Path(__file__).parents[2]
OURS = f"{ROOT / 'vkops'}{os.sep}"
HIDDEN = "PORTABLE_TEST_HIDDEN"  # the names, which the first process finds for all
OF_POSIX = (
    "fcntl", "grp", "posix", "posixpath", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty",
)  # fmt: skip


def declared(body, platform):
    """The names that a module of types declares for a platform."""
    for node in body:
        if isinstance(node, ast.If):
            known = SimpleNamespace(platform=platform, version_info=sys.version_info)
            test = compile(ast.Expression(node.test), "types", "eval")
            yield from declared(node.body if eval(test, {"sys": known}) else node.orelse, platform)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.AnnAssign, ast.Assign)):
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                yield target.id


def hidden_names():
    """``os.fork`` and its like, by the types that come with mypy."""
    mypy = importlib.util.find_spec("mypy")
    assert mypy is not None
    types = Path(mypy.origin).with_name("typeshed") / "stdlib"
    for module, file in ((os, "os/__init__.pyi"), (signal, "signal.pyi")):
        body = ast.parse((types / file).read_text(encoding="utf-8")).body
        here, there = (set(declared(body, platform)) for platform in (sys.platform, "win32"))
        yield from (f"{module.__name__}.{name}" for name in sorted((here - there) & {*dir(module)}))


class Restricted(ModuleType):
    """A module without the hidden names."""

    def __init__(self, module):
        super().__init__(module.__name__)
        self._module = module

    def __getattr__(self, name):
        if f"{self.__name__}.{name}" in hidden:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return getattr(self._module, name)

    def __dir__(self):
        return [name for name in dir(self._module) if f"{self.__name__}.{name}" not in hidden]


def open_file(path, *args, dir_fd=None, **kwargs):
    """``os.open`` of Windows, which opens no folders."""
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", os.fspath(path))
    return os.open(path, *args, **kwargs)


if HIDDEN not in os.environ:
    os.environ[HIDDEN] = ",".join(hidden_names())
hidden = {*os.environ[HIDDEN].split(",")}
modules = {module.__name__: Restricted(module) for module in (os, signal)}
modules["os"].open = open_file
imported = builtins.__import__


def restricted_import(name, globals=None, locals=None, fromlist=(), level=0):
    first = name.partition(".")[0]
    if level == 0 and str((globals or {}).get("__file__", "")).startswith(OURS):
        if first in OF_POSIX:
            raise ModuleNotFoundError(f"No module named {first!r}", name=first)
        if first in modules and (name == first or not fromlist):
            return modules[first]
    return imported(name, globals, locals, fromlist, level)


builtins.__import__ = restricted_import
