"""Many cases of a target, in child processes, whatever becomes of these."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fuzz import worker
from fuzz.target import TESTS, scratch
from fuzz.targets import target_class

CORPUS = TESTS / "fuzz" / "corpus"  # inputs that are kept, by target
SECONDS = 90  # after which a case that no signal reaches is ended
MAX_CRASHES = 20  # of a target, after which it is given up
BATCH = 50_000  # cases of one process


@dataclass
class Finding:
    """Something that went wrong: how often, and the first case of it."""

    kind: str
    number: int
    text: str
    times: int = 0
    file: Path | None = None


@dataclass
class Report:
    """What became of the cases of a target."""

    name: str
    counts: Counter = field(default_factory=Counter)
    seconds: float = 0
    peak: int = 0  # kilobytes that a process took at most
    crashes: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)

    @property
    def cases(self):
        return sum(self.counts.values())

    def __str__(self):
        head = (
            f"{self.name}: {self.cases} cases, {self.counts['accepted']} accepted, "
            f"{self.counts['refused']} refused, {self.seconds:.0f} s, {self.peak >> 10} MB"
        )
        lines = [
            f"  {f.times} x {f.kind}: number {f.number}\n"
            f"    {f.text.strip().splitlines()[-1] if f.text.strip() else ''}\n"
            f"    python -m fuzz replay {self.name} {f.file or f.number}"
            for f in self.findings.values()
        ]
        return "\n".join([head, *lines])


def campaign(name, cases, first=0, out=None):
    """Try the inputs of so many numbers from ``first`` on; faults' inputs are saved in ``out``."""
    report, start = Report(name), time.monotonic()
    end = first + cases
    while first < end and report.crashes < MAX_CRASHES:
        first = _batch(report, first, min(BATCH, end - first), out)
    report.seconds = time.monotonic() - start
    return report


LIMITS = {"VKOPS_MEMORY_LIMIT": str(1 << 30)}
"""Variables of a child: a driver with much memory would take long for what others refuse."""


def _batch(report, first, count, out):
    """Run a child; returns the number to go on with."""
    with tempfile.TemporaryDirectory(prefix="vkops-fuzz-") as folder:
        at, found, errors = (Path(folder, name) for name in ("at", "found", "errors"))
        at.write_bytes(struct.pack("q", first - 1))
        found.touch()
        command = [sys.executable, "-W", "error", "-m", "fuzz.worker"]
        command += [report.name, str(first), str(count), folder]
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        variables = {**os.environ, **LIMITS, "PYTHONPATH": path}
        with (
            open(errors, "wb") as stream,
            subprocess.Popen(command, cwd=TESTS, stderr=stream, env=variables) as child,
        ):
            try:
                _watch(child, at)
            finally:
                child.kill()
        last = struct.unpack("q", at.read_bytes())[0]
        for line in map(json.loads, found.read_text().splitlines()):
            if "kind" in line:
                _note(report, **line, out=out)
            else:
                report.counts.update(line["counts"])
                report.peak = max(report.peak, line["peak"])
        if last < first:
            raise RuntimeError(f"{report.name} did not begin: {errors.read_text(errors='replace')}")
        if status := child.returncode:
            kind = f"crash ({signal.Signals(-status).name if status < 0 else f'status {status}'})"
            _note(report, kind, last, errors.read_text(errors="replace")[-6000:], out)
            report.counts["accepted or refused"] += last - first  # the child counted, and is gone
            report.counts["faults"] += 1
            report.crashes += 1
        return last + 1


def _watch(child, at):
    """Wait for a child, but not for ever for one case."""
    before, since = None, time.monotonic()
    while True:
        try:
            child.wait(1)
            return
        except subprocess.TimeoutExpired:
            now = at.read_bytes()
        if now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since > SECONDS:
            os.kill(child.pid, signal.SIGABRT)  # faulthandler says where it is
            time.sleep(5)
            child.kill()


def _note(report, kind, number, text, out):
    finding = report.findings.setdefault(kind, Finding(kind, number, text))
    finding.times += 1
    if out is not None and finding.times == 1:
        out = Path(out).resolve()
        out.mkdir(parents=True, exist_ok=True)
        finding.file = out / f"{report.name}-{number}{target_class(report.name).suffix}"
        finding.file.write_bytes(input_of(report.name, number))


def clean_campaign(name, cases, out):
    """Run a campaign that must try all its cases and find nothing."""
    report = campaign(name, cases, out=out)
    assert not report.findings, str(report)
    assert report.cases == cases
    return report


# -- single inputs ---------------------------------------------------------------------------------


def input_of(name, number):
    """The input of a number."""
    with scratch():
        return worker.made(target_class(name)(), number)


def replay(name, data):
    """Try an input in this process: "accepted", "refused", or the exception that is a fault."""
    with scratch():
        return worker.attempt(target_class(name)(), data)


def replay_corpus(name):
    """Try what once went wrong: no fault must be left."""
    for path in sorted((CORPUS / name).glob("*")):
        outcome = replay(name, path.read_bytes())
        assert outcome in ("accepted", "refused"), (path.name, outcome)
