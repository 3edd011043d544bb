"""A program that compiles as slangc does, with the library of slangpy: LIBRARY and arguments.

It imports nothing of vkops, and runs in a process of its own: the compiler may crash.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


def main(library: str, *arguments: str) -> int:
    """Compile; the arguments are those of slangc, with -depfile FILE and -o FILE at the end."""
    api = ctypes.CDLL(library)
    for function in (api.spCreateSession, api.spCreateCompileRequest, api.spGetCompileRequestCode):
        function.restype = ctypes.c_void_p
    for text in (api.spGetDiagnosticOutput, api.spGetDependencyFilePath):
        text.restype = ctypes.c_char_p
    request = ctypes.c_void_p(
        api.spCreateCompileRequest(ctypes.c_void_p(api.spCreateSession(None)))
    )
    *options, _, dependencies, _, output = arguments
    words = [option.encode() for option in options]
    status = api.spProcessCommandLineArguments(
        request, (ctypes.c_char_p * len(words))(*words), len(words)
    )
    status = status if status < 0 else api.spCompile(request)
    sys.stderr.buffer.write(api.spGetDiagnosticOutput(request) or b"")
    if status < 0:
        return 1
    size = ctypes.c_size_t()
    code = api.spGetCompileRequestCode(request, ctypes.byref(size))
    Path(output).write_bytes(ctypes.string_at(code, size.value))
    read = range(api.spGetDependencyFileCount(request))
    names = [api.spGetDependencyFilePath(request, n).replace(b" ", b"\\ ") for n in read]
    Path(dependencies).write_bytes(b"out: " + b" ".join(names))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
