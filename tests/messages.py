"""The whole texts of errors, one a line in ``messages.txt``.

A test asserts the rule and the field of an error, and passes its text to the fixture ``message``, which
compares it with the line of this test. ``pytest --rewrite-messages`` writes the lines of the tests that it
runs, and removes those of tests that are gone; what has changed is then one difference to review.
"""

import json
import os
import re
from collections import defaultdict
from pathlib import Path

import pytest
from refusals import NO_FILE

TESTS = Path(__file__).parent
FILE = TESTS / "messages.txt"


def read():
    """The messages of each test, by its identifier, in the order in which it makes them."""
    result = defaultdict(list)
    for line in FILE.read_text("utf-8").splitlines():
        test, _, text = line.partition(": ")
        result[test].append(with_slashes(text))
    return result


def with_slashes(text):
    """A text with slashes in place of the backslashes of Windows' paths, which messages may quote."""
    return text if os.sep == "/" else re.sub(r"\\+", "/", text)


LINES = read()
UNUSED = pytest.StashKey[list[str]]()
SKIPPED = pytest.StashKey[bool]()


def pytest_addoption(parser):
    parser.addoption(
        "--rewrite-messages", action="store_true", help="write tests/messages.txt; without -n"
    )


def pytest_configure(config):
    if config.getoption("--rewrite-messages") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--rewrite-messages needs one process: leave out -n")


def find_unused(config, items):
    """Find lines of no test, among the files that are collected whole and those that are gone."""
    users = {_name(item) for item in items if "message" in item.fixturenames}
    whole = {_name(item).partition("::")[0] for item in items}
    if config.getoption("lf", False) or any("::" in argument for argument in config.args):
        whole = set()
    files = {test: test.partition("::")[0] for test in LINES if test not in users}
    config.stash[UNUSED] = [
        test for test, file in files.items() if file in whole or not (TESTS / file).exists()
    ]


def pytest_sessionfinish(session):
    if session.config.getoption("--rewrite-messages"):
        for test in session.config.stash.get(UNUSED, []):
            del LINES[test]
        lines = (f"{test}: {text}\n" for test in sorted(LINES) for text in LINES[test])
        FILE.write_text("".join(lines), "utf-8")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Remember which tests skip themselves: they do not make all their messages."""
    report = yield
    item.stash[SKIPPED] = report.skipped
    return report


@pytest.fixture
def message(request):
    """Compare the text of an error, or any other line, with that of this test in ``messages.txt``.

    It must have the parts given, such as a field and a rule, in this order. Values that differ between
    machines are given by name, and stand in the file as ``{name}``.
    """
    test = _name(request.node)
    texts = []

    def check(error, *parts, **values):
        text = str(error)
        pattern = ".*".join(re.escape(with_slashes(part)) for part in parts)
        assert re.search(pattern, with_slashes(text)), (text, parts)
        for name, value in values.items():
            for shown in (json.dumps(str(value))[1:-1], str(value)):
                text = text.replace(shown, f"{{{name}}}")
        text = with_slashes(text.replace(NO_FILE, "No such file or directory"))
        assert text.isprintable()
        texts.append(text)
        assert text in LINES[test][len(texts) - 1 : len(texts)] or rewrite, (
            f"differs from {FILE.name}: {LINES[test]}"
        )

    rewrite = request.config.getoption("--rewrite-messages")
    yield check
    if rewrite:
        LINES[test] = texts
    if request.node.stash.get(SKIPPED, False):
        return
    assert LINES[test] == texts, f"{FILE.name} has lines that this test does not make"


def _name(item):
    """The identifier of a test, without the adapter it runs on: ``pure/test_x.py::test_y[z]``."""
    name = item.nodeid.removeprefix("tests/")
    if hasattr(item, "callspec") and "adapter" in item.callspec.params:
        adapter = item.callspec.params["adapter"].name.split()[0]
        # pytest numbers adapters of the same name.
        name = re.sub(rf"\[{re.escape(adapter)}\d*(?:-|\]$)", "[", name).removesuffix("[")
        # Behind the parameters of fixtures, where their modules are run on their own.
        name = re.sub(rf"-{re.escape(adapter)}\d*\]$", "]", name)
    return name
