"""The command: ``python -m fuzz``, in the folder tests."""

import argparse
import signal
import sys
import traceback
from pathlib import Path

from fuzz.campaign import campaign, input_of, replay
from fuzz.target import TESTS
from fuzz.targets import GROUPS

OUT = TESTS.parent / "build" / "fuzz"


def shares(group, cases):
    """How many cases each target of a group has of so many."""
    counts = {name: int(cases * share / sum(group.values())) for name, share in group.items()}
    counts[next(iter(group))] += cases - sum(counts.values())
    return counts


def run(arguments):
    group = GROUPS.get(arguments.target, {arguments.target: 1})
    reports = []
    for name, cases in shares(group, arguments.cases).items():
        reports.append(campaign(name, cases, arguments.first, arguments.out))
        print(reports[-1], flush=True)
    findings = sum(len(report.findings) for report in reports)
    seconds = sum(report.seconds for report in reports)
    print(f"{sum(r.cases for r in reports)} cases, {seconds:.0f} s, {findings} kinds of faults")
    return 1 if findings else 0


def again(arguments):
    """Try what a file holds, or the input of a number."""
    name, given = arguments.target, arguments.input
    data = input_of(name, int(given)) if given.isdecimal() else Path(given).read_bytes()
    outcome = replay(name, data)
    if isinstance(outcome, BaseException):
        traceback.print_exception(outcome)
        return 1
    print(outcome)
    return 0


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz vkops.")
    commands = parser.add_subparsers(required=True)
    targets = [name for names in GROUPS.values() for name in names]
    command = commands.add_parser("run", help="try many inputs")
    command.add_argument("target", choices=[*GROUPS, *targets])
    command.add_argument("--cases", type=int, default=10_000)
    command.add_argument("--first", type=int, default=0, help="number of the first case")
    command.add_argument("--out", type=Path, default=OUT, help="where inputs with faults go")
    command.set_defaults(call=run)
    command = commands.add_parser("replay", help="try one input")
    command.add_argument("target", choices=targets)
    command.add_argument("input", help="a file, or the number of a case")
    command.set_defaults(call=again)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # its child goes, too
    return arguments.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
