"""Plant faults in vkops, one at a time, and count how many of them the tests find: scripts/mutate.

A fault is another comparison, operator, number, condition or result, or a call that is left out, at
any place of the folders named; the same seed plants the same faults in the same tree. The first
time, all tests run once, to know which of them reach which fault (``build/mutate`` keeps that).
Each fault is then planted in a copy of the tree, where the tests that reach it run until one fails;
there is a copy for each of ``PROCESSES`` faults at a time.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import os
import queue
import random
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, count, product
from pathlib import Path
from typing import Any

import mutate_probe

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "build" / "mutate"
FOLDERS = ("plan", "dml", "gpu", "runtime", "shaders", "interpreter", "onnx")
GROUPS: dict[str, dict[str, str]] = {
    "tests/pure": {},
    "tests/device": {"VKOPS_TEST_ADAPTERS": "llvmpipe", "VKOPS_EXPECT": "llvmpipe"},
}
PYTEST = (sys.executable, "-m", "pytest", "-q", "--hypothesis-profile", "repeatable")
PROCESSES = 2
INTERRUPTS = "tests/device/test_faults_signals.py"
"""It interrupts programs at each of their steps, which are more with records."""
ENOUGH_TESTS = 100
"""Of those that reach a fault, of as many functions as there are: half of them reach the fewest
places, as they are about few."""
FIRST_TESTS = 16
"""Of these, which find most faults, so that no other files of tests are imported."""
ENOUGH_SECONDS = 45
"""That these tests took, without a fault."""
SECONDS = 300
"""For one run; a fault that makes a loop endless is found."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CACHE = ".cache"
"""Of compiled shaders, in each copy: what a fault puts there is not for others."""
CACHED = ("vkops/shaders/", "vkops/system/", "vkops/gpu/adapters/")
"""Faults here are tested with an empty cache, as what is cached would hide some of them."""

OTHER: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """Text of one file that is replaced by another: lines from 1, columns in bytes."""

    file: str
    first: tuple[int, int]
    last: tuple[int, int]
    before: str
    after: str

    def planted_in(self, text: str) -> str:
        """Return the file's text with the fault."""
        lines = text.encode().splitlines(keepends=True)
        (first, begin), (last, end) = self.first, self.last
        changed = lines[first - 1][:begin] + f"({self.after})".encode() + lines[last - 1][end:]
        return b"".join([*lines[: first - 1], changed, *lines[last:]]).decode()

    def __str__(self) -> str:
        return f"{self.file}:{self.first[0]}: {self.before} -> {self.after}"


def faults_of(file: str, text: str) -> Iterator[Fault]:
    """Yield all faults that can be planted in the text of a module."""
    for node in _code(ast.parse(text)):
        for old, new in _changes(node):
            first = old.lineno, old.col_offset
            last = old.end_lineno or 0, old.end_col_offset or 0
            yield Fault(file, first, last, ast.unparse(old), ast.unparse(new))


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each expression of a node that another with another meaning may replace."""
    match node:
        case ast.Compare(left, [operator], others) if type(operator) in OTHER:
            yield node, ast.Compare(left, [OTHER[type(operator)]()], others)
        case ast.BinOp(left, operator, right) if type(operator) in OTHER:
            if not any(isinstance(side, ast.JoinedStr) for side in (left, right)):
                yield node, ast.BinOp(left, OTHER[type(operator)](), right)
        case ast.BoolOp(operator, values):
            yield node, ast.BoolOp(OTHER[type(operator)](), values)
        case ast.Constant(bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(int(value)):
            yield node, ast.Constant(value + 1)
        case ast.If(test) | ast.IfExp(test) | ast.While(test):
            if not isinstance(test, (ast.Compare, ast.BoolOp)):
                yield test, ast.UnaryOp(ast.Not(), test)
        case ast.Expr(ast.Call() as call):
            yield call, ast.Constant(None)
        case ast.Return(ast.expr() as result) if not isinstance(result, ast.Constant):
            yield result, ast.Constant(None)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run: no annotations, imports, patterns, texts, types."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(
                child, (ast.JoinedStr, ast.pattern, ast.Raise, ast.Import, ast.ImportFrom)
            ):
                continue
            if isinstance(child, ast.keyword) and child.arg == "strict":  # it only checks lengths
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.AST):
                yield child
                yield from _code(child)


def tracked_files() -> list[str]:
    """Return the names of the files that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    return [name for name in listed.stdout.decode().split("\0") if (ROOT / name).is_file()]


def chosen_faults(folders: Sequence[str], count: int, seed: int) -> list[Fault]:
    """Return a sample of the faults that can be planted in folders of vkops."""
    starts = tuple(f"vkops/{folder}/" for folder in folders)
    names = [each for each in tracked_files() if each.startswith(starts) and each.endswith(".py")]
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in names}
    faults = [fault for name, text in texts.items() for fault in faults_of(name, text)]
    return random.Random(seed).sample(faults, min(count, len(faults)))


def places_of(faults: Sequence[Fault]) -> dict[str, dict[Fault, int]]:
    """Number the faults of each file, and after them all the calls and results of these files."""
    places: dict[str, dict[Fault, int]] = {fault.file: {} for fault in faults}
    for number, fault in enumerate(faults):
        places[fault.file][fault] = number
    numbers = count(len(faults))
    for file, own in sorted(places.items()):
        for fault in faults_of(file, (ROOT / file).read_text(encoding="utf-8")):
            if fault.after == "None" and fault not in own:
                own[fault] = next(numbers)
    return places


def runs_at_import(text: str, line: int) -> bool:
    """Return whether a line of a module is outside the bodies of all functions."""
    return not any(
        node.body[0].lineno <= line <= (node.end_lineno or 0) for node, _ in _functions(text)
    )


def names_from(text: str, line: int) -> set[str]:
    """Return what a module's statement at a line defines, and constants that are made of it."""
    statements = [
        each
        for node in ast.parse(text).body
        for each in (node.body if isinstance(node, ast.ClassDef) else [node])
    ]
    constants = [each for each in statements if not isinstance(each, FUNCTIONS)]
    own = [each for each in statements if each.lineno <= line <= (each.end_lineno or 0)]
    names, more = set[str](), {name for each in own for name in _defined(each)}
    while more - names:
        names |= more
        more = {name for each in constants if names & _used(each) for name in _defined(each)}
    return names


def functions_that_use(text: str, names: Set[str]) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions of a module that have or mention one of the names."""
    return [node for node, own in _functions(text) if names & own]


@cache
def _functions(text: str) -> list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, set[str]]]:
    """Return the functions of a module, with the names that they have or mention."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS)]
    return [(node, {node.name, *_used(node)}) for node in nodes]


def _defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement of a module or a class defines."""
    match node:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
            return {name}
        case ast.Assign(targets):
            return {name for each in targets for name in _names(each)}
        case ast.AnnAssign(target):
            return _names(target)
    return set()


def _used(node: ast.AST) -> set[str]:
    """Return the names and the attributes that a node reads."""
    attributes = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return attributes | _names(node)


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def with_probes(text: str, places: Mapping[Fault, int]) -> str:
    """Return a module's text in which each of its places is recorded before it runs."""
    lines = text.encode().splitlines(keepends=True)
    insertions = [(place.last, (0, 0), "))") for place in places]
    for place, number in places.items():  # those that end later begin first
        outer = (-place.last[0], -place.last[1])
        insertions.append((place.first, outer, f"(_reached({number}) or ("))
    for (line, column), _, inserted in sorted(insertions, reverse=True):
        before, after = lines[line - 1][:column], lines[line - 1][column:]
        lines[line - 1] = before + inserted.encode() + after
    imported = "; from mutate_probe import reached as _reached"
    return re.sub(
        r"(?m)^(from __future__ import annotations)$",
        rf"\1{imported}",
        b"".join(lines).decode(),
        count=1,
    )


class Copies:
    """Copies of the tree, and the tests that reach each fault; both are kept."""

    def __init__(self, groups: Sequence[str], faults: Sequence[Fault]) -> None:
        self._groups = groups
        digest = hashlib.sha256("\n".join([*groups, *map(str, faults)]).encode())
        for name in tracked_files():
            if name.startswith(("vkops/", "tests/", "shaders/")):
                digest.update((ROOT / name).read_bytes())
        self.folder: Path = KEPT / digest.hexdigest()[:16]
        self._probe: Path = self.folder / "scripts"
        self._places, self._tests = places_of(faults), defaultdict[int, set[str]](set)
        record = self.folder / "reached"
        if not record.exists():
            self._make()
            (self._probe / mutate_probe.RECORD.name).rename(record)
        for line in record.read_text(encoding="utf-8").splitlines():
            place, _, test = line.partition(" ")
            self._tests[int(place)].add(test)
        self._counts = Counter(test for tests in self._tests.values() for test in tests)
        self._seconds = defaultdict[str, float](float)
        durations = self._probe / mutate_probe.DURATIONS.name
        for line in durations.read_text(encoding="utf-8").splitlines():
            seconds, _, test = line.partition(" ")
            self._seconds[test] += float(seconds)
        failed = self.folder / ".pytest_cache/v/cache/lastfailed"
        self._failed: set[str] = set(json.loads(failed.read_bytes())) if failed.exists() else set()
        self._free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(PROCESSES):
            self._copy_to(self.folder / f"copy{number}")
            shutil.copytree(self.folder / CACHE, self.folder / f"copy{number}" / CACHE)
            self._free.put(self.folder / f"copy{number}")

    def _copy_to(self, folder: Path) -> None:
        """Make a new copy of the tree."""
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, folder], check=True)
        for name in tracked_files():
            shutil.copy(ROOT / name, folder / name)
        for name in (".venv", "build"):
            (folder / name).symlink_to(ROOT / name)
        # By hashes, as a fault and its end may be in the same second.
        compiling = ["compileall", "-q", "--invalidation-mode", "checked-hash", "vkops"]
        subprocess.run([sys.executable, "-m", *compiling], cwd=folder, check=True)

    def _make(self) -> None:
        """Copy the tree, and run all tests there, whose places record which tests reach them."""
        self._copy_to(self.folder)
        for file, places in self._places.items():
            path = self.folder / file
            path.write_text(with_probes(path.read_text("utf-8"), places), "utf-8")
        shutil.copy(mutate_probe.__file__, self._probe)
        (self.folder / CACHE).mkdir()
        for group in self._groups:
            print(
                f"mutate: running {group} once, to know which tests reach which fault", flush=True
            )
            options = ["-p", "mutate_probe", "-n", str(PROCESSES), f"--ignore={INTERRUPTS}", group]
            self.run(self.folder, group, options)

    @staticmethod
    def run(
        folder: Path, group: str, arguments: Sequence[str], seconds: float | None = None
    ) -> bool:
        """Run pytest in a copy, and return whether all tests pass in time."""
        path = os.pathsep.join([str(folder), str(folder / "scripts")])
        ours = {"PYTHONPATH": path, "VKOPS_CACHE_DIR": str(folder / CACHE)}
        with contextlib.suppress(subprocess.TimeoutExpired):
            return not subprocess.run(
                [*PYTEST, *arguments], cwd=folder, env=os.environ | GROUPS[group] | ours,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds, check=False,
            ).returncode  # fmt: skip
        return False

    def tests_that_reach(self, fault: Fault) -> list[str]:
        """Return tests that reach a fault and, if it runs at the import, what uses its names.

        The fastest are first.
        """
        reached = self._tests[self._places[fault.file][fault]]
        text, line = (ROOT / fault.file).read_text("utf-8"), fault.first[0]
        if "" in reached or runs_at_import(text, line):
            reached = reached | self._tests_that_use(fault.file, text, names_from(text, line))
        reached = (reached & self._seconds.keys()) - self._failed
        chosen = sorted(reached, key=lambda test: (self._counts[test], test))
        functions, ranks = Counter[str](), dict[str, int]()
        for test in chosen:
            function = test.partition("[")[0]
            ranks[test] = functions[function]
            functions[function] += 1
        chosen.sort(key=ranks.__getitem__)
        narrow, wide = chosen[: ENOUGH_TESTS // 2], chosen[ENOUGH_TESTS // 2 :]
        random.Random(str(fault)).shuffle(wide)
        wide.sort(key=ranks.__getitem__)
        chosen = sorted((narrow + wide)[:ENOUGH_TESTS], key=self._seconds.__getitem__)
        ends = accumulate(self._seconds[test] for test in chosen)
        enough = sum(end <= ENOUGH_SECONDS for end in ends)
        return chosen[: max(1, enough)]

    def _tests_that_use(self, file: str, text: str, names: Set[str]) -> set[str]:
        """Return tests that mention names of a module, and those that reach what uses them.

        Where nothing in the module uses them, these are all tests that reach the module.
        """
        places = self._places[file]
        functions = functions_that_use(text, names)
        lines = {n for each in functions for n in range(each.lineno, (each.end_lineno or 0) + 1)}
        numbers = (
            [number for place, number in places.items() if names & _used(ast.parse(place.before))]
            or [number for place, number in places.items() if place.first[0] in lines]
            or [*places.values()]
        )
        own = {
            f"{name}::{each.name}"
            for name in {test.partition("::")[0] for test in self._seconds}
            for each in functions_that_use((ROOT / name).read_text("utf-8"), names)
        }
        mentions = {test for test in self._seconds if test.partition("[")[0] in own}
        return mentions.union(*(self._tests[number] for number in numbers))

    def is_found(self, fault: Fault, tests: Sequence[str]) -> bool:
        """Plant a fault in a copy, and return whether one of the tests fails."""
        folder = self._free.get()
        path = folder / fault.file
        text = path.read_text(encoding="utf-8")
        path.write_text(fault.planted_in(text), encoding="utf-8")
        is_cached = fault.file.startswith(CACHED)
        if is_cached:
            shutil.rmtree(folder / CACHE, ignore_errors=True)
        try:
            for part, group in product((tests[:FIRST_TESTS], tests[FIRST_TESTS:]), self._groups):
                chosen = [test for test in part if test.startswith(group)]
                options = ("-p", "no:cacheprovider", "-x", "-n", "0")
                if chosen and not self.run(folder, group, [*options, *chosen], SECONDS):
                    return True
        finally:
            path.write_text(text, encoding="utf-8")
            if is_cached:
                shutil.rmtree(folder / CACHE, ignore_errors=True)
                shutil.copytree(self.folder / CACHE, folder / CACHE)
            self._free.put(folder)
        return False


def main() -> None:
    """Plant the faults that the command line asks for; print those that no test finds.

    An interrupt ends it, with the counts so far.
    """
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="of vkops, such as plan dml")
    parser.add_argument("--faults", type=int, default=300, help="how many faults are planted")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--pure", action="store_true", help="run only tests/pure")
    parser.add_argument("--list", action="store_true", help="only list the faults")
    options = parser.parse_args()
    faults = chosen_faults(options.folders, options.faults, options.seed)
    if options.list:
        print(*faults, sep="\n")
        return
    copies = Copies(["tests/pure"] if options.pure else [*GROUPS], faults)
    tests = [copies.tests_that_reach(fault) for fault in faults]
    planted, reached, found = Counter[str](), Counter[str](), Counter[str]()
    with ThreadPoolExecutor(PROCESSES) as pool:
        with contextlib.suppress(KeyboardInterrupt):  # the counts so far are printed
            for number, is_found in enumerate(pool.map(copies.is_found, faults, tests)):
                fault, count = faults[number], len(tests[number])
                for name in (fault.file.split("/")[1], "all"):
                    planted[name] += 1
                    reached[name] += bool(count)
                    found[name] += is_found
                if not is_found:
                    why = f"{count} tests pass" if count else "no test reaches it"
                    print(f"{number + 1} of {len(faults)}: {why}: {fault}", flush=True)
        pool.shutdown(cancel_futures=True)
    for name in sorted(planted):
        counts = f"{planted[name]} planted, {reached[name]} reached by tests, {found[name]} found"
        print(f"{name}: {counts} ({found[name] / planted[name]:.0%})")


if __name__ == "__main__":
    main()
