"""The work that a call does, as a number that does not depend on the machine."""

from __future__ import annotations

import sys


def instructions(function):
    """Count the bytecode instructions that a call executes."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
