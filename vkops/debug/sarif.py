"""Findings in SARIF 2.1.0, the format in which GitHub and editors read the results of checks."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from vkops.errors import ModelError
from vkops.interpreter.findings import Finding
from vkops.interpreter.values import SourceLine
from vkops.system.output_files import write_output

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
"""The base of relative URIs: the folder of the repository, as GitHub defines it."""

Result = Mapping[str, Any]


class SarifRule(NamedTuple):
    """The description of a kind of finding in SARIF: a title, the fault, and a remedy."""

    title: str
    fault: str
    cure: str
    level: str = "error"


RULES: Mapping[str, SarifRule] = {
    "data race": SarifRule(
        "Accesses of an element that nothing orders",
        "Two invocations access an element, one of them writes it, and nothing orders them.",
        "Put barrier() between accesses of a workgroup. Between workgroups, use atomic operations "
        "and memoryBarrierBuffer(), or several dispatches.",
    ),
    "plain barrier": SarifRule(
        "A barrier that does not order buffers",
        "Two invocations access an element of a buffer or an image, and only a plain barrier() is "
        "between them, which orders shared memory.",
        "Put memoryBarrierBuffer() or memoryBarrierImage() before barrier().",
        "warning",
    ),
    "forward progress": SarifRule(
        "A wait that need not end",
        "An invocation waits for another one that need not begin or go on while it waits: of a "
        "workgroup that need not have begun, of another subgroup, or of its own subgroup.",
        "Let workgroups take their numbers from an atomic counter, wait only for lower ones, and "
        "do not wait within a subgroup.",
    ),
    "barrier": SarifRule(
        "A barrier that not all invocations reach",
        "Some invocations of a workgroup have returned, or are in another branch.",
        "Move the barrier out of the branch, or let all invocations reach it.",
    ),
    "out of bounds": SarifRule(
        "An index out of bounds",
        "An index of a buffer, an array or a vector is not one of its elements.",
        "Compare the index with the number of elements before it is used.",
    ),
    "never written": SarifRule(
        "A value that was never written",
        "A variable, shared memory or a buffer is used before anything is stored in it.",
        "Store a value first, or give the buffer values.",
    ),
    "division by zero": SarifRule(
        "A division of an integer by zero",
        "The result of an integer divided by zero is undefined.",
        "Compare the divisor with 0 before the division.",
    ),
    "shift": SarifRule(
        "A shift by too many bits",
        "The result is undefined if a number is shifted by as many bits as it has, or more.",
        "Limit the number of bits.",
    ),
    "undefined result": SarifRule(
        "A use of an undefined result",
        "Vulkan or GLSL leave the result undefined for these operands, and it is used.",
        "Handle these operands apart.",
    ),
    "restrict": SarifRule(
        "Restricted memory that is shared",
        "An element is accessed through two blocks or references, one of which is declared "
        "restrict, and one access writes.",
        "Bind other memory, or remove restrict.",
    ),
    "workgroups": SarifRule(
        "Too many workgroups",
        "The device reads numbers of workgroups from a tensor, and one is above its limit.",
        "Limit the numbers where they are computed.",
    ),
    "early access": SarifRule(
        "A pinned array that is used too early",
        "A call uses a pinned array while a transfer with wait=False uses it, for which nobody has "
        "waited.",
        "Call event.wait(), or await the event, before the array is used.",
    ),
    "loop": SarifRule(
        "A loop that does not end",
        "No invocation has left a loop in many iterations, or they undo in turns what others do.",
        "End the loop after a number of iterations; do not wait for a workgroup that may not run.",
    ),
    "order of workgroups": SarifRule(
        "A result that depends on the order of workgroups",
        "Results differ when workgroups run in another order, which no device guarantees.",
        "Let workgroups take numbers by atomicAdd() where their order matters.",
    ),
    "subgroup size": SarifRule(
        "A result that depends on the size of subgroups",
        "Results differ with subgroups of another size, or an operation needs a larger one.",
        "Use gl_SubgroupSize, or require a size of the device.",
    ),
    "floats": SarifRule(
        "NaN or infinity made of finite numbers",
        "The result of an instruction on finite numbers is NaN or infinity.",
        "Handle these operands apart, if the result is used.",
        "warning",
    ),
    "results": SarifRule(
        "A device and the interpreter that disagree",
        "What the device has written differs from what the interpreter has written.",
        "Trace the element by `vkops debug trace --compare`.",
    ),
    "not checked": SarifRule(
        "A dispatch that was not checked",
        "The dispatch is too long, or bound to what the interpreter does not support.",
        "Check it with less work, or raise the limit by VKOPS_CHECK_INSTRUCTIONS.",
        "note",
    ),
}
"""The rules, by the kind of finding."""


def write_sarif(path: str | os.PathLike[str], findings: Iterable[Finding]) -> None:
    r"""Write findings in SARIF 2.1.0, whole or not at all.

    Files below the folder of the repository, in which there is ``.git``, or else below the current
    folder, have relative addresses. The finding of a shader without a file is at the line of Python
    that ran it.

    Raises:
        ModelError: the file cannot be written.

    >>> import vkops.debug
    >>> report = vkops.debug.check("#version 450\nvoid main() { int x; int y = 1 / x; }")
    >>> vkops.debug.write_sarif("x.sarif", report.findings)  # doctest: +SKIP
    """
    root = repository()
    write_results(path, (result(each, root) for each in findings))


def repository() -> Path:
    """Return the folder of the repository around the current folder, or the current folder."""
    folder = Path.cwd()
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def write_results(path: str | os.PathLike[str], results: Iterable[Result]) -> None:
    """Write results of ``result`` to a file; equal ones only once."""
    try:
        write_output(Path(path), [json.dumps(log(Path(path).stem, results), indent=2).encode()])
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror or error}") from error


def log(name: str, results: Iterable[Result]) -> dict[str, Any]:
    """Return a log; ``name`` distinguishes it from other logs of a pull request."""
    from vkops import __version__

    driver = {
        "name": "vkops",
        "version": __version__,
        "rules": [_rule(kind, rule) for kind, rule in RULES.items()],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"vkops/{name}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The folder of the repository."}}},
        "results": [*_numbered(results)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(kind: str, rule: SarifRule) -> dict[str, Any]:
    title, fault, cure, level = rule
    return {
        "id": _id(kind),
        "shortDescription": {"text": f"{title}."},
        "fullDescription": {"text": fault},
        "help": {"text": f"{fault} {cure}"},
        "defaultConfiguration": {"level": level},
    }


def _id(kind: str) -> str:
    return kind.replace(" ", "-")


def _numbered(results: Iterable[Result]) -> Iterator[Result]:
    """Yield different results; the fingerprints of results with equal lines get numbers."""
    counts: Counter[str] = Counter()
    for each in {json.dumps(each): each for each in results}.values():
        ((name, digest),) = each["partialFingerprints"].items()
        counts[digest] += 1
        yield {**each, "partialFingerprints": {name: f"{digest}:{counts[digest]}"}}


def result(finding: Finding, root: Path) -> Result:
    """Return a finding as a result of a log, with addresses relative to ``root``."""
    place, text = finding.place, f"{finding.kind}: {finding.details}"
    related = {"the other line": finding.other, "the call": finding.caller}
    if finding.caller and not (place.line and os.path.isfile(place.file)):
        place, text, related = finding.caller, finding.text, {}
    linked = [(what, where) for what, where in related.items() if where and where.line]
    text += "".join(f"; see [{what}]({n})" for n, (what, _) in enumerate(linked, 1))
    texts = dict(finding.texts)
    known = _uri(place.file, root), texts.get(finding.place), re.sub(r"\d+", "", finding.message)
    digest = sha256(json.dumps([finding.kind, *known]).encode()).hexdigest()[:32]
    return {
        "ruleId": _id(finding.kind),
        "level": RULES[finding.kind].level,
        "message": {"text": text},
        "locations": [_location(place, texts, root)],
        "relatedLocations": [
            {"id": n, "message": {"text": f"{what.capitalize()}."}, **_location(where, texts, root)}
            for n, (what, where) in enumerate(linked, 1)
        ],
        "partialFingerprints": {"vkopsFinding/v1": digest},
        "occurrenceCount": max(finding.count, 1),
        "properties": _properties(finding),
    }


def _properties(finding: Finding) -> dict[str, Any]:
    known: Sequence[tuple[str, Any]] = (
        ("invocations", finding.invocations),
        ("schedule", finding.schedule),
        ("subgroupSize", finding.subgroup_size),
    )
    return {name: value for name, value in known if value}


def _location(place: SourceLine, texts: Mapping[SourceLine, str], root: Path) -> dict[str, Any]:
    uri = _uri(place.file, root)
    base = {} if uri.startswith("file:") else {"uriBaseId": _ROOT}
    snippet = {"snippet": {"text": texts[place]}} if place in texts else {}
    region = {"startLine": max(place.line, 1), **snippet}  # GitHub requires a line
    return {"physicalLocation": {"artifactLocation": {"uri": uri, **base}, "region": region}}


def _uri(file: str, root: Path) -> str:
    """Return the URI of a file, relative to a folder if the file is in it."""
    path = Path(os.path.abspath(file))
    return quote(path.relative_to(root).as_posix()) if path.is_relative_to(root) else path.as_uri()
