"""Command lines that need no device: status 0, 1 or 2, and one line at most on standard error."""

import io
import sys
from contextlib import redirect_stdout
from pathlib import Path

from fuzz import target
from fuzz.choices import Choices
from vkops.cli import main

COMMANDS = [
    ["check"], ["explain"], ["check"], ["explain"], ["shader"], ["shader", "list"],
    ["shader", "info"], ["shader", "compile"], [], ["debug"], ["nothing"], ["run", "--help"],
]  # fmt: skip
WORDS = [
    "split.json", "join.json", "channel_shuffle.onnx", "transpose.json", "nowhere.json", "data", "",
    "--dml_feature_level", "1.0", "5_0", "-b", "x:5,6,2,2", "x:", "x:-1", "x:99999999999", ":", "-f",
    "N:2", "N:0", "N:", "-F", "--input_path", "data", ".", "--html", "page.html", "/dev/full",
    "--help", "-h", "--version", "--", "-", "-x", "--no-such", "\ud800.json", "a\nb.json", "\0.json",
    "x" * 5000 + ".json", "--dml-feature-level=6.4", "=", "--input_path=", "m.json", "words.onnx",
    "scale.comp", "-o", "out.spv", "-D", "A=1", "-I", "%s%n", "\x1b[31m.json", "🂡.json",
]  # fmt: skip


class Target(target.Target):
    commands = COMMANDS
    words = WORDS
    refusals = ()

    def __init__(self):
        Path("words.onnx").write_bytes(b"words")
        Path("m.json").write_text("{")

    def arguments(self, choices):
        """A command line."""
        return [*choices.pick(self.commands), *choices.some(5, lambda: choices.pick(self.words))]

    def check(self, data):
        arguments = self.arguments(Choices(data))
        before, sys.stderr = sys.stderr, io.StringIO()
        try:
            with redirect_stdout(io.StringIO()):
                status = main(arguments)
            said = sys.stderr.getvalue()
        finally:
            sys.stderr = before
        lines = [line for line in said.splitlines() if not line.startswith("Warning: ")]
        where = f"{arguments}: status {status}, {said!r}"
        target.require(status in (0, 1, 2), where)
        target.require(len(lines) == (status != 0), where)
        target.require("Traceback" not in said, where)
