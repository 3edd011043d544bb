"""The work that a call does, as a number that does not depend on the machine."""

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


def calls(function, files=None):
    """Count the functions of Python that a call calls, itself included, and what generators yield.

    ``files`` is a set that gets the names of the files that they are in.
    """
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        if event == "call":
            count += 1
            if files is not None:
                files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count
