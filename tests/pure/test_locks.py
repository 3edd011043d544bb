"""Locks are released when an interrupt comes, in any version of Python."""

import ast
from pathlib import Path

import pytest
from interrupts import interrupted_at

import vkops
from vkops.system.threads import new_lock

PACKAGE = Path(vkops.__file__).parent


def jumps_back_on_a_condition(loop):
    """Whether the next round of a loop begins with a conditional jump."""
    if isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant):
        return True
    ends = [loop.body[-1], *(inner for inner in ast.walk(loop) if isinstance(inner, ast.Continue))]
    return any(isinstance(end, (ast.If, ast.Continue)) for end in ends)


def loops_under_locks(text):
    """The lines of such loops in ``with`` statements whose context is called a lock."""
    return [
        loop.lineno
        for block in ast.walk(ast.parse(text))
        if isinstance(block, ast.With) and any("lock" in ast.unparse(item) for item in block.items)
        for loop in ast.walk(block)
        if isinstance(loop, (ast.For, ast.While)) and jumps_back_on_a_condition(loop)
    ]


@pytest.mark.parametrize(
    "loop", ["while x: f()", "for y in x:\n  if y: f()", "while 1:\n  if y: continue\n  f()"]
)
def test_loops_are_found(loop):
    indented = loop.replace("\n", "\n  ")
    assert loops_under_locks(f"with lock:\n  {indented}") == [2]


def test_no_loop_under_a_lock_jumps_back_on_a_condition():
    """Python 3.12 and 3.13 leave such a jump out of the ``with`` statement: an interrupt there keeps the lock."""
    jumps = {
        path.name: loops_under_locks(path.read_text(encoding="utf-8"))
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: lines for name, lines in jumps.items() if lines} == {}


def test_a_lock_is_free_after_an_interrupt_at_any_moment():
    """Python 3.14 serves signals between ``__enter__`` of a lock of C and the block."""
    lock, number, was_interrupted = new_lock(), 0, True

    def work():
        with lock:
            pass

    while was_interrupted:
        number += 1
        was_interrupted = interrupted_at(number, work)
        assert not lock._is_owned(), f"interrupt {number}"
    assert number > 2
