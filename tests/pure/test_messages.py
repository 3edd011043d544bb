"""Every line of tests/messages.txt is the message of a test that exists."""

from messages import FILE, UNUSED


def test_no_line_is_unused(pytestconfig):
    assert pytestconfig.stash[UNUSED] == [], "pytest --rewrite-messages removes their lines"


def test_lines_are_sorted_by_test():
    tests = [line.partition(": ")[0] for line in FILE.read_text("utf-8").splitlines()]
    assert tests == sorted(tests)


def test_lines_are_not_named_by_position():
    """Where pytest has no name for a value, tests/case_names.py makes one of its text."""
    assert "<lambda>" not in FILE.read_text("utf-8")
