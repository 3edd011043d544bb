"""``--sarif``: findings in SARIF 2.1.0, as GitHub takes them."""

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from checked_shaders import FAULTY
from processes import ROOT

from vkops.debug import Finding, check, sarif, write_sarif
from vkops.errors import ModelError
from vkops.interpreter.values import SourceLine


def record(required, **members):
    return {
        "type": "object",
        "properties": members,
        "required": required.split(),
        "additionalProperties": False,
    }


def array(items):
    return {"type": "array", "items": items}


TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 1}
URI = {"type": "string", "format": "uri-reference", "pattern": r"^[!#-;=?-\[\]_a-z~%]+$"}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = record("text", text=TEXT)
PLACE = {
    "physicalLocation": record(
        "artifactLocation region",
        artifactLocation=record("uri", uri=URI, uriBaseId={"const": "%SRCROOT%"}),
        region=record("startLine", startLine=COUNT, snippet=record("text", text=TEXT)),
    )
}
RULE = record(
    "id shortDescription fullDescription help",
    id={"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=record("level", level=LEVEL),
)
RESULT = record(
    "ruleId message locations partialFingerprints",
    ruleId=TEXT,
    level=LEVEL,
    message=MESSAGE,
    locations={**array(record("physicalLocation", **PLACE)), "minItems": 1, "maxItems": 1},
    relatedLocations=array(record("id physicalLocation", id=COUNT, message=MESSAGE, **PLACE)),
    partialFingerprints={"type": "object", "additionalProperties": TEXT, "minProperties": 1},
    occurrenceCount=COUNT,
    properties={"type": "object"},
)
RUN = record(
    "tool results",
    tool=record("driver", driver=record("name rules", name=TEXT, version=TEXT, rules=array(RULE))),
    automationDetails=record("id", id={"type": "string", "pattern": "/$"}),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    originalUriBaseIds={"type": "object", "additionalProperties": record("", description=MESSAGE)},
    results=array(RESULT),
)
LOG = record(
    "$schema version runs",
    **{"$schema": {"type": "string", "pattern": "sarif-schema-2.1.0.json$"}},
    version={"const": "2.1.0"},
    runs={**array(RUN), "minItems": 1, "maxItems": 1},
)
"""The requirements of SARIF's specification and GitHub's documentation on members that vkops writes."""


def validate(*files):
    """Compare files with this schema."""
    schema = files[0].with_name("schema.json")
    schema.write_text(json.dumps(LOG))
    argv = [sys.executable, "-m", "check_jsonschema", "--schemafile", schema, *files]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def results(file):
    (run,) = json.loads(file.read_bytes())["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert {each["ruleId"] for each in run["results"]} <= {each["id"] for each in rules}
    return run["results"]


def place(location):
    physical = location["physicalLocation"]
    region = physical["region"]
    text = region.get("snippet", {"text": ""})["text"].strip()
    return physical["artifactLocation"]["uri"], region["startLine"], text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a repository, which is the current one."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(command, folder):
    """Run ``vkops debug`` there."""
    return partial(command, "debug")


HEAD = """#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint part[64];
"""
PUT = "void put(uint i) {\n  part[i] = i;\n}\n"
MAIN = """#include "put.glsl"
void main() {
  put(gl_LocalInvocationIndex);
  data[gl_GlobalInvocationID.x] = part[63 - gl_LocalInvocationIndex];
}
"""


def test_a_finding_has_both_places_a_rule_and_a_text(command, folder):
    (folder / "a b").mkdir()
    (folder / "a b/put.glsl").write_text(PUT)
    (folder / "a b/100%.comp").write_text(HEAD + MAIN)
    status, out, _ = command("check", "a b/100%.comp", "--sarif", "new/all.sarif")
    assert status == 1
    assert out == command("check", "a b/100%.comp")[1]
    assert "    9 |   data[gl_GlobalInvocationID.x] = " in out
    assert "\na b/put.glsl:2 |   part[i] = i;\n" in out
    validate(folder / "new/all.sarif")
    (one,) = results(folder / "new/all.sarif")
    assert (one["ruleId"], one["level"], one["occurrenceCount"]) == ("data-race", "error", 64)
    assert one["message"]["text"].startswith("data race: 'part[63]' in shared memory: the first")
    assert one["message"]["text"].endswith("64 times; see [the other line](1)")
    (first,), (second,) = one["locations"], one["relatedLocations"]
    line = "data[gl_GlobalInvocationID.x] = part[63 - gl_LocalInvocationIndex];"
    assert place(first) == ("a%20b/100%25.comp", 9, line)
    assert (second["id"], *place(second)) == (1, "a%20b/put.glsl", 2, "part[i] = i;")
    assert one["properties"] == {"invocations": [[0, 0, 0], [63, 0, 0]]}


def test_addresses_are_relative_to_the_repository_wherever_a_command_runs(
    command, folder, monkeypatch
):
    (folder / "shaders/test").mkdir(parents=True)
    text = HEAD + "void main() { data[gl_GlobalInvocationID.x + 1] = 0; }\n"
    (folder / "shaders/x.comp").write_text(text)
    outside = folder.parent / f"outside {folder.name}.comp"
    outside.write_text(text)
    uris = []
    for start, file in (
        (".", "shaders/x.comp"),
        ("shaders/test", "../x.comp"),
        ("shaders/test", folder / "shaders/x.comp"),
        (".", outside),
    ):
        monkeypatch.chdir(folder / start)
        command("check", file, "--sarif", folder / "x.sarif")
        validate(folder / "x.sarif")
        uris.append(results(folder / "x.sarif")[0]["locations"][0]["physicalLocation"])
    inside = {"uri": "shaders/x.comp", "uriBaseId": "%SRCROOT%"}
    assert [each["artifactLocation"] for each in uris] == [*[inside] * 3, {"uri": outside.as_uri()}]
    monkeypatch.chdir(folder / "shaders")
    (folder / ".git").rmdir()
    command("check", "x.comp", "--sarif", folder / "x.sarif")
    assert place(results(folder / "x.sarif")[0]["locations"][0])[0] == "x.comp"


def test_a_fingerprint_stays_if_lines_move_and_differs_for_equal_lines(command, folder):
    def fingerprints(text):
        (folder / "x.comp").write_text(HEAD + text)
        command("check", "x.comp", "--sarif", "x.sarif")
        return [
            each["partialFingerprints"]["vkopsFinding/v1"] for each in results(folder / "x.sarif")
        ]

    one = "void main() {\n  data[gl_GlobalInvocationID.x + 64] = 0;\n}\n"
    first = fingerprints(one)
    assert fingerprints(f"\n// more\n{one}") == first
    assert fingerprints(one.replace("64", "65")) != first
    twice = one.replace("}", "  data[gl_GlobalInvocationID.x + 64] = 0;\n}")
    assert fingerprints(twice) == [*first, first[0].removesuffix(":1") + ":2"]


def test_without_findings_there_are_no_results(command, folder):
    (folder / "x.comp").write_text(HEAD + "void main() { data[gl_GlobalInvocationID.x] = 0; }\n")
    assert command("check", "x.comp", "--sarif", "x.sarif")[0] == 0
    validate(folder / "x.sarif")
    assert results(folder / "x.sarif") == []


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("data[gl_GlobalInvocationID.x + 64] = 0;", ["out-of-bounds"]),
        ("while (data[0] != 1) memoryBarrierBuffer();", ["loop"]),
    ],
)
def test_a_model_has_the_findings_of_its_dispatches(command, folder, body, kinds):
    """After a loop that does not end, the others are not run."""
    (folder / "x.comp").write_text(HEAD + f"void main() {{ {body} }}\n")
    shader = {"type": "glsl", "sourcePath": "x.comp"}
    dispatch = {"type": "dispatch", "threadGroupCount": [1, 1, 1], "bindings": {"Data": "D"}}
    values = {"initialValuesDataType": "UINT32", "initialValues": {"valueCount": 64, "value": 0}}
    model = {
        "resources": {"D": values},
        "dispatchables": {"one": shader, "two": shader},
        "commands": [{**dispatch, "dispatchable": name} for name in ("one", "two")],
    }
    (folder / "m.json").write_text(json.dumps(model))
    status, out, _ = command("check", "m.json", "--sarif", "m.sarif")
    assert status == 1, out
    assert out.count(f"x.comp:6: {kinds[0].replace('-', ' ')}: ") == (1 if kinds == ["loop"] else 2)
    validate(folder / "m.sarif")
    assert [each["ruleId"] for each in results(folder / "m.sarif")] == kinds  # of equal ones, one


def test_a_text_has_the_line_of_python_that_runs_it(folder):
    text = HEAD + "void main() { data[gl_GlobalInvocationID.x + 1] = 0; }\n"
    report = check(text, {"Data": np.zeros(64, np.uint32)}, name="ahead")
    write_sarif(folder / "x.sarif", report.findings)
    validate(folder / "x.sarif")
    (one,) = results(folder / "x.sarif")
    file, _, line = place(one["locations"][0])
    assert Path(file).name == Path(__file__).name
    assert line == 'report = check(text, {"Data": np.zeros(64, np.uint32)}, name="ahead")'
    assert one["message"]["text"] == report.findings[0].text
    assert "ahead:6: out of bounds: index 64" in one["message"]["text"]
    assert one["relatedLocations"] == []


def test_a_file_that_python_runs_has_both_lines(folder):
    (folder / "x.comp").write_text(
        HEAD + "void main() { data[gl_GlobalInvocationID.x + 1] = 0; }\n"
    )
    report = check(Path("x.comp"), {"Data": np.zeros(64, np.uint32)})
    write_sarif("x.sarif", report.findings)
    (one,) = results(folder / "x.sarif")
    assert place(one["locations"][0])[:2] == ("x.comp", 6)
    (call,) = one["relatedLocations"]
    assert place(call)[2].startswith("report = check(Path(")
    assert one["message"]["text"].endswith("; see [the call](1)")


def test_every_kind_of_finding_has_a_rule():
    table = re.findall(
        r"^\| (`[^|]*`) \|", (ROOT / "docs/tutorials/debugging.md").read_text(), re.MULTILINE
    )
    described = {kind for row in table for kind in re.findall("`([^`]+)`", row)}
    assert described == {*sarif.RULES}
    kinds = {kind for case in FAULTY.values() for _, kind in case.findings}
    assert kinds <= {*sarif.RULES}


def test_a_file_that_cannot_be_written_is_left_as_it_is(command, folder, message):
    (folder / "x.comp").write_text(
        HEAD + "void main() { data[gl_GlobalInvocationID.x + 1] = 0; }\n"
    )
    (folder / "folder").mkdir()
    status, out, err = command("check", "x.comp", "--sarif", "folder")
    assert status == 1
    assert "out of bounds" in out
    assert err == "folder: cannot be written: not a regular file\n"
    (folder / "x.sarif").write_text("before")
    broken = Finding("a new kind", SourceLine("x.comp", 1), "", (), 1)
    with pytest.raises(KeyError):
        write_sarif(folder / "x.sarif", [broken])
    assert (folder / "x.sarif").read_text() == "before"
    assert [each.name for each in folder.glob("*.part")] == []
    with pytest.raises(ModelError) as error:
        write_sarif("x.comp/x.sarif", [])
    message(error.value)
