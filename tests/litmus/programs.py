"""Runs the SPIR-V programs of Dat3M (dartagnan/src/test/resources/spirv/vulkan) in the debugger.

Comments at the start of each say how many invocations run, what blocks hold, and what is claimed of
their results. The expected verdicts are in the tables of Dat3M's own tests in Java.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from spirv import assembled

from litmus.executions import WORD
from litmus.program import NotExpressibleError
from vkops.debug.shader_check import Case
from vkops.errors import VkopsError
from vkops.interpreter.findings import Findings
from vkops.shaders.shader import load

_ARGUMENTS = (0, 1, 3)
"""Values of arguments that Dat3M leaves open."""

PROGRAMS = Path("dartagnan/src/test/resources/spirv/vulkan")
TABLES = Path("dartagnan/src/test/java/com/dat3m/dartagnan/spirv/vulkan")
_ROW = re.compile(r'(//\s*)?\{"([\w./-]+\.spvasm)",(?: \d+,)?(?: (true|false),)? (\w+|\?\?)\}')
_NUMBERED = re.compile(r"(%\w+)\s*=\s*(\{[{}\d,\s-]*\}|-?\d+)")
_CAPABILITIES = {
    "VulkanMemoryModel": "VulkanMemoryModel|MemoryModel Logical Vulkan", "DeviceGroup": "BuiltIn DeviceIndex",
    "VulkanMemoryModelDeviceScope": "MemoryModel Logical Vulkan", "GroupNonUniform": "Subgroup",
    "Int64": "OpTypeInt 64", "Int16": "OpTypeInt 16", "Int8": "OpTypeInt 8",
}  # fmt: skip
"""Capabilities that some programs use and do not declare, by what uses them."""


@dataclass(frozen=True)
class Expected:
    """A verdict on a program.

    Attributes:
        is_racy: whether it has a data race, of a table of races; else None.
        holds: whether what it claims of its results holds, of a table of assertions; else None.
        is_filtered: whether only executions count in which the filter of the program holds.
    """

    is_racy: bool | None
    holds: bool | None
    is_filtered: bool = False

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.is_racy is None:
            return "its results hold" if self.holds else "its results do not hold"
        return ("a data race" if self.is_racy else "no data race") + ", filtered" * self.is_filtered


def expected(folder: Path) -> dict[str, list[Expected]]:
    """Return the verdicts on each program, by its path in the folder of programs."""
    verdicts: defaultdict[str, list[Expected]] = defaultdict(list)
    for table in sorted((folder / TABLES).rglob("*Test.java")):
        for comment, name, is_filtered, result in _ROW.findall(table.read_text()):
            if comment or result not in ("PASS", "FAIL"):
                continue  # Dat3M does not check these
            path = str(table.parent.relative_to(folder / TABLES) / name)
            is_right = result == "PASS"
            racy, holds = (not is_right, None) if "Races" in table.name else (None, is_right)
            if "Liveness" not in table.name:
                verdicts[path].append(Expected(racy, holds, is_filtered == "true"))
    return dict(verdicts)


class Dat3MProgram:
    """A program of Dat3M."""

    def __init__(self, text: str) -> None:
        comments = "\n".join(re.findall(r"(?m)^;\s*(@.*)$", text))
        config = re.search(r"@Config:\s*(\d+),\s*(\d+),\s*(\d+)(?:,\s*(\d+))?", comments)
        sizes = [int(each or 1) for each in config.groups()] if config else [1] * 4
        self.lanes, self.subgroups, self.groups, families = sizes
        if families > 1:
            raise NotExpressibleError("several queue families")
        if self.subgroups > 1 and self.lanes & (self.lanes - 1):
            raise NotExpressibleError("subgroups of a size that is no power of two")
        self.inputs = {
            name: _nested(value)
            for line in re.findall(r"@Input:(.*)", comments)
            for name, value in _NUMBERED.findall(line)
        }
        self.outputs = re.findall(r"@Output:\s*(.*)", comments)
        self.filters = re.findall(r"@Filter:\s*(.*)", comments)
        self.text = text

    @property
    def subgroup_size(self) -> int:
        """The size of subgroups that has all invocations of one of these in each."""
        return 1 << (self.lanes - 1).bit_length()

    def spirv(self) -> bytes:
        """Return the module, for workgroups of the size in its comments."""
        text = self.text
        size = self.lanes * self.subgroups
        for name, number in re.findall(r"OpDecorate (%\w+) SpecId (\d+)\b", text):
            if (value := self._constant(name, int(number))) is not None:
                pattern = rf"(?m)^(\s*{re.escape(name)} = OpSpecConstant %\w+) \d+"
                text = re.sub(pattern, rf"\g<1> {value}", text)
        if "BuiltIn WorkgroupSize" not in text and not re.search(
            r"OpExecutionMode\w* %\w+ LocalSize", text
        ):
            mode = r"\g<0>\nOpExecutionMode \g<1> LocalSize " + f"{size} 1 1"
            text = re.sub(r"(?m)^\s*OpEntryPoint GLCompute (%\w+) .*$", mode, text)
        text = re.sub(
            r"(?m)^\s*OpSource .*$\n?", "", text
        )  # of languages that spirv-as does not know
        text = re.sub(r"(?m)^\s*OpDecorate %\w+ Coherent$\n?", "", text)  # not of this memory model
        first = [
            f"OpCapability {name}" for name, use in _CAPABILITIES.items() if re.search(use, text)
        ]
        for kind in ("OpCapability", "OpExtension", "OpExtInstImport"):  # in this order
            first += [line.strip() for line in re.findall(rf"(?m)^.*\b{kind}\b.*$", text)]
            text = re.sub(rf"(?m)^.*\b{kind}\b.*$\n?", "", text)
        first.sort(key=lambda line: not line.startswith("OpCapability"))
        text = "\n".join([*dict.fromkeys(first), text])
        try:
            return assembled(text, "spv1.6")
        except subprocess.CalledProcessError as error:
            message = error.stderr.decode().splitlines()[0]
            raise NotExpressibleError(f"spirv-as: {message}") from error

    def _constant(self, name: str, number: int) -> int | None:
        """Return the value of a specialization constant, if comments say it."""
        if number < 3:
            return (self.lanes * self.subgroups, 1, 1)[number]
        if name in self.inputs:
            return int(self.inputs[name])
        if re.search(rf"= OpTypeArray %\w+ {name}\b", self.text):
            return 64  # the length of an array in shared memory, which the host chooses
        return None

    def run(self, *, orders: Sequence[str] = ("ascending", "descending")) -> Iterator[Outcome]:
        """Run it with workgroups in some orders."""
        has_arguments = "ArgumentPodPushConstant" in self.text
        for order, argument in product(orders, _ARGUMENTS[: None if has_arguments else 1]):
            case, names = self._case(argument)
            case.findings = Findings()
            try:
                _, memory = case.run(schedule=order)
            except VkopsError as error:
                raise NotExpressibleError(str(error)) from error
            arrays = case.results(memory)
            results = {
                name: _shaped(self.inputs[name], arrays[block].ravel().tolist())
                for name, block in names.items()
                if name in self.inputs and block in arrays
            }
            yield Outcome({finding.kind: str(finding) for finding in case.findings}, results)

    def _case(self, argument: int) -> tuple[Case, dict[str, str]]:
        """Return what to run, and the names of blocks by those of variables."""
        try:
            entry = re.search(r'OpEntryPoint GLCompute %\w+ "(\w+)"', self.text)
            shader = load(self.spirv(), entry=entry[1] if entry else "main", name="program")
        except VkopsError as error:
            raise NotExpressibleError(str(error)) from error
        names = {}
        given = {}
        for block in shader.blocks:
            pattern = rf"OpDecorate (%\w+) Binding {block.binding}\b"
            for name in re.findall(pattern, self.text):
                names[name] = block.point
                if name in self.inputs:
                    values = np.array(_flat(self.inputs[name]), np.int64).astype(np.uint32)
                    given[block.point] = values
        size = shader.push.nbytes if shader.push else 0
        try:
            case = Case.of(
                shader, given, groups=self.groups, subgroup_size=self.subgroup_size,
                push=self._pushed(size, argument), max_iterations=64,
            )  # fmt: skip
        except VkopsError as error:
            raise NotExpressibleError(str(error)) from error
        return case, names

    def _pushed(self, nbytes: int, argument: int) -> bytes:
        """Return what clspv has the host push: sizes as comments say, offsets of 0, and arguments."""
        pushed = np.full(nbytes // 4, argument, np.uint32)
        constants = dict(re.findall(r"(%\w+) = OpConstant %uint (\d+)", self.text))
        values = {
            "PushConstantGlobalSize": (self.lanes * self.subgroups * self.groups, 1, 1),
            "PushConstantEnqueuedLocalSize": (self.lanes * self.subgroups, 1, 1),
            "PushConstantNumWorkgroups": (self.groups, 1, 1),
        }
        for name, offset in re.findall(r" (PushConstant\w+) (%\w+) %\w+", self.text):
            at = int(constants[offset]) // 4
            pushed[at : at + 3] = values.get(name, (0, 0, 0))
        return pushed.tobytes()


@dataclass(frozen=True)
class Outcome:
    """The findings of one run, by their kinds, and the values of blocks at its end."""

    findings: Mapping[str, str]
    results: Mapping[str, Any]


def _nested(text: str) -> Any:
    return eval(text.replace("{", "[").replace("}", "]"))


def _flat(value: Any) -> list[int]:
    return [each for part in value for each in _flat(part)] if isinstance(value, list) else [value]


def _shaped(like: Any, numbers: list[int]) -> Any:
    """Return numbers in the form of nested lists."""
    if isinstance(like, list):
        return [_shaped(part, numbers) for part in like]
    return int(numbers.pop(0)) & WORD if numbers else 0


def holds(condition: str, results: Mapping[str, Any]) -> bool | None:
    """Return whether a condition on results holds; None if it is about others."""
    words = re.sub(r"%(\w+)", r"results['%\1']", condition)
    words = re.sub(r"(?<== )-(\d+)", lambda match: str(2**32 - int(match[1])), words)
    try:
        return bool(eval(words, {"results": results}))
    except (KeyError, IndexError, TypeError):
        return None


def verdicts(text: str, expectations: Sequence[Expected]) -> Iterator[tuple[Expected, str, str]]:
    """Yield each verdict with "agrees", "disagrees", or why it is not compared; and what was found."""
    program = Dat3MProgram(text)
    outcomes = list(program.run())
    for each in expectations:
        counted = outcomes
        if each.is_filtered:
            counted = [o for o in outcomes if all(holds(f, o.results) for f in program.filters)]
        texts = [text for outcome in counted for text in outcome.findings.values()]
        if not counted:
            result = "no order has the results that are meant"
        elif each.is_racy is not None:
            is_racy = any(
                {"data race", "plain barrier"} & outcome.findings.keys() for outcome in counted
            )
            result = "agrees" if is_racy == each.is_racy else "disagrees"
            if not is_racy and any("loop" in outcome.findings for outcome in counted):
                result = "a loop that waits for an invocation of the subgroup"
        else:
            against = [
                o for o in counted for claim in program.outputs if _contradicts(claim, o, each)
            ]
            result = "disagrees" if against else "agrees"
        yield each, result, "; ".join(dict.fromkeys(texts))


def _contradicts(claim: str, outcome: Outcome, expected: Expected) -> bool:
    """Whether a run shows that a claim of results holds or not, other than it is expected."""
    kind, _, condition = claim.partition("(")
    result = holds(f"({condition}", outcome.results)
    if result is None or outcome.findings:
        return False  # results of a faulty run say nothing
    kind = kind.strip()
    if kind == "exists":
        return result and not expected.holds
    if kind == "forall":
        return not result and bool(expected.holds)
    return result and bool(expected.holds)
