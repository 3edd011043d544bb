"""The whole texts of errors, in a file beside each file of tests: ``test_x.messages.txt``.

A test asserts the rule and the field of an error, and passes its text to the fixture ``message``, which
compares it with the lines of this test, whatever its parameters: one line stands for all texts that
differ in numbers and quoted values alone. ``pytest --rewrite-messages`` writes the lines of the tests
that it runs; what has changed is then one difference to review.
"""

import json
import os
import re
from collections import defaultdict
from pathlib import Path

import pytest
from refusals import NO_FILE

SEEN = pytest.StashKey[dict[Path, dict[str, list[str]]]]()
"""The texts of the tests that ran, by file and function."""

INCOMPLETE = pytest.StashKey[set[str]]()
"""The functions of which some test did not make all its messages."""

SKIPPED = pytest.StashKey[bool]()


def lines_of(file):
    """The lines of each test of a file, by the name of its function."""
    result = defaultdict(list)
    if file.exists():
        for line in file.read_text("utf-8").splitlines():
            test, _, text = line.partition(": ")
            result[test].append(text)
    return result


def template(text):
    """What texts have in common that differ in numbers, paths and quoted values alone."""
    text = re.sub(r"'[^']*'", "''", with_slashes(text))
    text = re.sub(r"-?\b(\d+(\.\d+)?(e[-+]?\d+)?|inf|nan)\b", "0", text)
    return re.sub(r"0(, 0)+", "0", text)


def with_slashes(text):
    """A text with slashes in place of the backslashes of Windows' paths, which messages may quote."""
    return text if os.sep == "/" else re.sub(r"\\+", "/", text)


def pytest_addoption(parser):
    parser.addoption(
        "--rewrite-messages", action="store_true", help="write *.messages.txt; without -n"
    )


def pytest_configure(config):
    if config.getoption("--rewrite-messages") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--rewrite-messages needs one process: leave out -n")
    config.stash[SEEN] = defaultdict(lambda: defaultdict(list))
    config.stash[INCOMPLETE] = set()


def pytest_sessionfinish(session):
    config = session.config
    if not config.getoption("--rewrite-messages"):
        return
    is_part = config.getoption("keyword") or config.getoption("lf", False)
    is_part = is_part or any("[" in each for each in config.args)
    for file, tests in config.stash[SEEN].items():
        old = lines_of(file)
        for test, texts in tests.items():
            is_whole = not is_part and test not in config.stash[INCOMPLETE]
            lines = texts if is_whole else old[test] + texts
            examples = {template(text): text for text in reversed(lines)}
            kept = {template(text): text for text in old[test] if template(text) in examples}
            old[test] = sorted((examples | kept).values())
        lines = [f"{test}: {text}\n" for test in sorted(old) for text in old[test]]
        file.write_text("".join(lines), "utf-8")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Remember which tests skip themselves: they do not make all their messages."""
    report = yield
    item.stash[SKIPPED] = not report.passed
    return report


@pytest.fixture
def message(request):
    """Compare the text of an error, or any other line, with the lines of this test.

    It must have the parts given, such as a field and a rule, in this order. Values that differ between
    machines are given by name, and stand in the file as ``{name}``.
    """
    config = request.config
    file = Path(request.node.path).with_suffix(".messages.txt")
    test = request.node.originalname
    known = {template(text) for text in lines_of(file)[test]}

    def check(error, *parts, **values):
        text = str(error)
        pattern = ".*".join(re.escape(with_slashes(part)) for part in parts)
        assert re.search(pattern, with_slashes(text)), (text, parts)
        for name, value in values.items():
            for shown in (json.dumps(str(value))[1:-1], str(value)):
                text = text.replace(shown, f"{{{name}}}")
        text = with_slashes(text.replace(NO_FILE, "No such file or directory"))
        assert text.isprintable()
        config.stash[SEEN][file][test].append(text)
        rewrite = config.getoption("--rewrite-messages")
        assert rewrite or template(text) in known, f"{file.name} has no such line of {test}"

    yield check
    if request.node.stash.get(SKIPPED, True):
        config.stash[INCOMPLETE].add(test)
