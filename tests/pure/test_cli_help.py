"""Help at several widths, and shell completion."""

import os
import re

import click
import pytest
from processes import finished, python
from reference_pages import PARTS

from vkops.cli import main
from vkops.cli.main import app
from vkops.cli.options import COMPLETE


def commands(command=app, path=()):
    """Yield each command with the words that name it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))


COMMANDS = dict(commands())


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_fits_and_names_are_whole(path, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*path, "--help"]) == 0
    seen = capsys.readouterr().out
    assert [line for line in seen.splitlines() if len(line) > width] == []
    assert width < 80 or "..." not in seen.partition("Commands:")[2]  # no summary is cut
    words = set(seen.replace(",", " ").split())
    for option in COMMANDS[path].params:
        if isinstance(option, click.Option) and not option.hidden:
            assert set(option.opts) <= words
            assert option.help


def test_the_reference_has_all_commands():
    text = PARTS["commands"]()
    assert re.findall("^## (.*)", text, re.M) == [" ".join(("vkops", *path)) for path in COMMANDS]


def completions(words, monkeypatch, capsys):
    """What bash offers for the last word, with its kind."""
    monkeypatch.setenv(COMPLETE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert main([]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vkops de", ["devices", "debug"]),
        ("vkops shader di", ["disasm", "diff"]),
        ("vkops run --dispatch_r", ["--dispatch_repeat"]),
        ("vkops completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_completion(line, expected, monkeypatch, capsys):
    entries = completions(line.split(" "), monkeypatch, capsys)
    assert sorted(entry.partition(",")[2] for entry in entries) == sorted(expected)


PATHS = {
    (*path, option.opts[-1]): "dir" if option.metavar == "FOLDER" else "file"
    for path, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, click.Option) and re.search("FILE|FOLDER", option.metavar or "")
}


def test_commands_and_options_that_take_paths_are_found():
    assert {("run",), ("devices",), ("shader", "diff"), ("debug", "trace")} <= {*COMMANDS}
    assert {("run", "--input"), ("run", "--input_path"), ("shader", "run", "--bind")} <= {*PATHS}


@pytest.mark.parametrize("words", PATHS, ids=" ".join)
def test_paths_are_completed(words, monkeypatch, capsys):
    line = ["vkops", *words, "x"]
    assert completions(line, monkeypatch, capsys) == [f"{PATHS[words]},x"]


def test_bash_takes_a_colon_for_a_word(monkeypatch, capsys):
    for words, expected in (("x : y", "x:y"), ("x :", "x:"), ("input : 0 : y", "input:0:y")):
        line = f"vkops run m.onnx --input {words}".split(" ")
        assert completions(line, monkeypatch, capsys) == [f"file,{expected}"]


@pytest.mark.posix("bash", tests_only=True)
def test_bash_takes_the_completion_script():
    script = python("-m", "vkops", "completion", "bash")
    command = ["bash", "-c", 'eval "$0"; complete -p vkops', script]
    status, printed, errors = finished(*command, env={"PATH": os.defpath})
    assert (status, errors) == (0, "")
    assert printed.endswith(" vkops\n")
