"""Give Windows' Python what Wine 8 lacks: scripts/emulate installs this file as sitecustomize.

`platform` and shutil.copy2 call functions that end the process (propsys.VariantToString by the
module _wmi, and CopyFile2), folders with mode 0o700 (tempfile, pytest's tmp_path) give "Invalid
argument", and the C library has no functions for the parts of a complex number, which NumPy calls.
"""

import _imp
import _winapi
import ctypes
import os
import sys
from ctypes import c_size_t, c_uint32, c_uint64, c_void_p
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

sys.modules["_wmi"] = None  # type: ignore[assignment]
del _winapi.CopyFile2  # type: ignore[attr-defined]

mkdir = os.mkdir


def mkdir_of_any_mode(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
    """Make a folder, without its mode."""
    mkdir(path)


os.mkdir = mkdir_of_any_mode  # type: ignore[assignment]

PARTS = {
    b"crealf": "660f6ec1c3",  # movd xmm0, ecx; ret
    b"cimagf": "48c1e920660f6ec1c3",  # shr rcx, 32; movd xmm0, ecx; ret
    b"creal": "f20f1001c3",  # movsd xmm0, [rcx]; ret
    b"cimag": "f20f104108c3",  # movsd xmm0, [rcx + 8]; ret
}
"""Machine code: a complex64 is passed in RCX, a complex128 by a pointer there."""
COMMIT_AND_RESERVE, EXECUTE_READ_WRITE, READ_WRITE = 0x3000, 0x40, 4
PE_HEADER, IMPORT_DIRECTORY, IMPORT_DESCRIPTOR, FIRST_THUNK = 0x3C, 144, 20, 16
"""Offsets and sizes in the format of Windows' modules, in bytes."""


def write_functions_of_parts(path: str) -> None:
    """Give a loaded module its own functions in place of those that it imports in vain."""
    kernel: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.GetModuleHandleW.restype = kernel.VirtualAlloc.restype = c_size_t
    base = kernel.GetModuleHandleW(path)
    code = kernel.VirtualAlloc(None, c_size_t(4096), COMMIT_AND_RESERVE, EXECUTE_READ_WRITE)
    header = base + c_uint32.from_address(base + PE_HEADER).value
    library = base + c_uint32.from_address(header + IMPORT_DIRECTORY).value
    while names := c_uint32.from_address(library).value:
        functions = c_uint32.from_address(library + FIRST_THUNK).value
        for at in range(0, sys.maxsize, 8):
            name = c_uint64.from_address(base + names + at).value
            if not name:
                break
            # A name with the highest bit is a number; otherwise its text follows two bytes.
            part = None if name >> 63 else PARTS.get(ctypes.string_at(base + name + 2))
            if part:
                ctypes.memmove(code, bytes.fromhex(part), len(part) // 2)
                entry = base + functions + at
                kernel.VirtualProtect(
                    c_void_p(entry), c_size_t(8), READ_WRITE, ctypes.byref(c_uint32())
                )
                c_uint64.from_address(entry).value = code
                code += 16
        library += IMPORT_DESCRIPTOR


create_dynamic = _imp.create_dynamic


def create_dynamic_with_parts(spec: ModuleSpec, file: object = None) -> ModuleType:
    """Load an extension module; NumPy's gets functions for the parts of complex numbers."""
    module = create_dynamic(spec, file)
    if spec.name.endswith("._multiarray_umath"):
        write_functions_of_parts(str(spec.origin))
    return module


_imp.create_dynamic = create_dynamic_with_parts
