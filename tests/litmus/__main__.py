"""Compare the debugger's data races and forward progress with litmus tests.

Usage: scripts/test --litmus [--record] [FOLDER...]

FOLDER is a checkout of KhronosGroup/Vulkan-MemoryModel or of hernanponcedeleon/Dat3M. Their tests are translated to
SPIR-V and run. Without a folder, random tests are: scripts/test --litmus [COUNT [SEED]]. Each run is compared with the
memory model in model.py, and each test with the verdict of its authors. --record writes all verdicts to verdicts.tsv.
What disagrees must be one of the differences in EXPLAINED.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from litmus import alloy, dat3m, programs, progress
from litmus.comparison import NO_TURNS, judge
from litmus.generation import generated
from litmus.program import NotExpressibleError, Test

DEFAULTS = 100, 1
"""How many random tests, and the seed."""
VERDICTS = Path(__file__).with_name("verdicts.tsv")

EXPLAINED = {
    "basic/unreachable-3.1.1.spvasm": "it reaches OpUnreachable, which Dat3M counts among data races",
}
"""Disagreements with a verdict, by the name of the test."""

Row = tuple[str, str, str, str]
"""The source, the test, what it claims, and what was made of it."""


def khronos(folder: Path) -> Iterator[Row]:
    """Run the tests of Khronos's Alloy model."""
    for path in sorted((folder / "alloy/tests").glob("*.test")):
        yield from _rows("Khronos", alloy.read(path))


def dat3m_tests(folder: Path) -> Iterator[Row]:
    """Run the litmus tests of Dat3M."""
    tables = {name: dat3m.expected(folder, name) for name in (dat3m.RESULTS, dat3m.RACES)}
    for path in sorted((folder / "litmus/VULKAN").rglob("*.litmus")):
        relative = str(path.relative_to(folder))
        verdicts = {name: table[relative] for name, table in tables.items() if relative in table}
        try:
            yield from _rows("Dat3M", dat3m.read(path, path.read_text(), verdicts))
        except NotExpressibleError as error:
            yield "Dat3M", f"{path.parent.name}/{path.stem}", "", str(error)


def dat3m_programs(folder: Path) -> Iterator[Row]:
    """Run the SPIR-V programs of Dat3M."""
    expected = programs.expected(folder)
    for path in sorted((folder / programs.PROGRAMS).rglob("*.spvasm")):
        name = str(path.relative_to(folder / programs.PROGRAMS))
        source = "Dat3M, SPIR-V"
        if name not in expected:
            yield source, name, "", "Dat3M has no verdict on data races or results"
            continue
        try:
            for each, result, text in programs.verdicts(path.read_text(), expected[name]):
                yield source, name, each.text, result
                if result == "disagrees":
                    print(f"  {name}: {text or 'nothing was found'}")
        except NotExpressibleError as error:
            yield source, name, "", str(error).splitlines()[0]


def dat3m_progress(folder: Path) -> Iterator[Row]:
    """Run the litmus tests and the programs of Dat3M that have verdicts on forward progress."""
    source = "Dat3M, progress"
    for path, verdicts in progress.expected(folder).items():
        if "OBE" not in verdicts:
            name = path.removeprefix("litmus/VULKAN/").removesuffix(".litmus")
            yield source, name, "", "Dat3M says only whether it ends if all are fair"
            continue
        test = dat3m.read(folder / path, (folder / path).read_text(), {})
        executions = progress.Executions(test)
        for model in (m for m, ends in verdicts.items() if executions.end(m) != ends):
            print(f"  THE MODEL DISAGREES: {test.name}: {model}")
            yield source, test.name, "the model", "disagrees"
        for isolation in progress.isolations(test):
            kinds = progress.found(test, isolation)
            result = "agrees" if progress.agrees(verdicts, kinds) else "disagrees"
            yield source, test.name, progress.claim(verdicts, isolation.name), result
            if result == "disagrees":
                print(f"  {test.name}: {isolation.name}: {', '.join(kinds) or 'nothing was found'}")
    for name, claim, result, text in progress.programs(folder):
        yield source, name, claim, result
        if result == "disagrees":
            print(f"  {name}: {claim}: {text or 'nothing was found'}")


def _rows(source: str, test: Test) -> Iterator[Row]:
    verdict = judge(test, 2 if test.claims or source == "random" else 1)
    for text in verdict.differences:
        print(f"  THE MODEL DISAGREES: {text}")
        yield source, test.name, "the model", "disagrees"
    if verdict.reason:
        yield source, test.name, "", verdict.reason
        return
    for claim, result in verdict.claims:
        yield source, test.name, claim.text, result
    if not verdict.claims:  # those of forward progress; here, only data races are compared
        yield source, test.name, "the model", "agrees"


def random_tests(count: int, seed: int) -> Iterator[Row]:
    """Run random tests."""
    for number in range(count):
        yield from _rows("random", generated(Random(f"{seed} {number}"), f"{seed}-{number}"))


def main(arguments: list[str]) -> int:
    """Run what the arguments name."""
    is_recorded = "--record" in arguments
    names = [each for each in arguments if each != "--record"]
    if any(each.startswith("-") for each in names):
        print(__doc__)
        return 2
    every: list[Row] = []
    start = time.monotonic()
    if all(each.isdecimal() for each in names):
        count, seed, *_ = [*map(int, names), *DEFAULTS[len(names) :]]
        every += random_tests(count, seed)
        names = []
    for folder in map(Path, names):
        if (folder / "alloy/tests").is_dir():
            every += khronos(folder)
        if (folder / "litmus/VULKAN").is_dir():
            every += [*dat3m_tests(folder), *dat3m_programs(folder), *dat3m_progress(folder)]
    if not every:
        print(f"no tests in {', '.join(names)}\n\n{__doc__}")
        return 2
    if is_recorded:
        lines = ["\t".join(("source", "test", "claim", "verdict")), *map("\t".join, every)]
        VERDICTS.write_text("\n".join([*lines, ""]))
    return int(not _show(every, time.monotonic() - start))


def _show(rows: list[Row], seconds: float) -> bool:
    """Print how many tests agree; return whether no disagreement is without an explanation."""
    good = True
    for source in dict.fromkeys(row[0] for row in rows):
        results: dict[str, set[str]] = {}
        for _, name, _, result in (row for row in rows if row[0] == source):
            results.setdefault(name, set()).add(result)
        counts = Counter(_summary(name, result) for name, result in results.items())
        print(f"{source}: {len(results)} tests, {counts['agrees']} agree, {seconds:.0f} s in all")
        for text, number in counts.most_common():
            print(f"  {number:5} {text}")
        for name in (n for n, result in results.items() if _summary(n, result) == "disagrees"):
            print(f"  DISAGREES: {name}")
            good = False
    return good


def _summary(name: str, results: set[str]) -> str:
    if "disagrees" in results:
        return f"explained: {EXPLAINED[name]}" if name in EXPLAINED else "disagrees"
    if "agrees" in results:
        return "agrees"
    text = min(results)
    return text if text == NO_TURNS else f"not expressible: {text.partition(': line')[0][:90]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
