"""scripts/bench: ``vkops bench`` with more options, or what the first option names."""

from __future__ import annotations

import sys
from importlib import import_module

from vkops.cli.main import COMMANDS
from vkops.cli.supervision import program

_MODULES = {
    "--shaders": "benchmarks.shaders.__main__",
    "--launch": "benchmarks.launch",
    "--transfers": "benchmarks.transfers",
    "--debugger": "benchmarks.debugger",
}


def main() -> int:
    """Measure, and return the exit status."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in _MODULES:
        import_module(_MODULES[name]).main(sys.argv[2:])
        return 0
    COMMANDS["bench"] = "benchmarks.command"
    sys.argv.insert(1, "bench")
    return program()


if __name__ == "__main__":
    sys.exit(main())
