"""``vkops explain``: the data, the tables in the terminal and the HTML page.

tests/device/test_explain_page.py shows the page in a browser.
"""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from documents import Document
from hypothesis import given, settings
from hypothesis import strategies as st
from models import SPLIT, dispatch, model, tensor, zeros
from operator_table import OPERATORS, indexed_operators, kinds
from processes import ROOT, cpu_time
from regions import make_region

from vkops.dml import FeatureLevel
from vkops.explain import Explanation, Tensor, explain
from vkops.explain.page import page
from vkops.explain.sections import operator_section
from vkops.explain.tables import dispatch_rows, region_rows
from vkops.models.descriptors import with_dml_names
from vkops.onnx.free_dimensions import Overrides
from vkops.plan import Fill
from vkops.rules import GROUPS

EXAMPLES = ROOT / "examples"


def only(path, **more):
    """The one section of what is told of an example, and its one movement."""
    (section,) = explain(str(EXAMPLES / path), **more).sections
    (movement,) = section.movements
    return section, movement


# -- the data ----------------------------------------------------------------------------------


def test_split():
    section, movement = only("split.json", feature_level=FeatureLevel.LEVEL_5_0)
    assert (section.name, section.kind) == ("split", "SPLIT")
    assert section.tensors == (
        Tensor("InputTensor", "INT32", (2, 6), (6, 1), 4, 48),
        Tensor("OutputTensors[0]", "INT32", (2, 2), (2, 1), 4, 16),
        Tensor("OutputTensors[1]", "INT32", (2, 3), (3, 1), 4, 24),
        Tensor("OutputTensors[2]", "INT32", (2, 1), (1, 1), 4, 8),
    )
    details = dict(section.details)
    assert details["Axis"] == "1"
    assert details["Lowest feature level"] == "3_0; accepted at 5_0"
    assert movement.regions == [
        (0, make_region((2, 2), 0, (2, 1), (0, 0, (6, 1)))),
        (1, make_region((2, 3), 0, (3, 1), (0, 2, (6, 1)))),
        (2, make_region((2,), 0, (1,), (0, 5, (6,)))),
    ]
    assert (movement.inputs, movement.outputs) == (section.tensors[:1], section.tensors[1:])
    assert (movement.plan.element_size, movement.moved_size) == (4, 4)
    assert (movement.plan.bytes_read, movement.plan.bytes_written) == (48, 48)
    assert [(run.driver, run.kernels) for run in movement.dispatches] == [
        ("CPU driver", ("copy_4",)),
        ("GPU", ("copy_4",)),
    ]


def test_a_window():
    _, movement = only("slice1_backwards.json")
    plan = movement.plan
    assert movement.regions == [(0, make_region((3,), 0, (1,), (0, 9, (-2,))))]
    assert (movement.inputs[0].nbytes, plan.bytes_read, plan.bytes_written) == (12, 3, 3)


@pytest.mark.parametrize(
    ("example", "group"),
    [
        ("split", "SPLIT"),
        ("slice1_backwards", "SLICE1"),
        ("transpose", "IDENT"),
        ("space_to_depth", "SD"),
        ("depth_to_space", "SD"),
    ],
)
def test_rules_are_those_of_tensors_levels_and_the_operator(example, group):
    section, _ = only(f"{example}.json")
    assert set(section.rules) == {
        rule.id
        for name in (group, "T", "DEV")
        for rule in GROUPS[name].rules
        if rule.enforced and (name != "DEV" or rule.id in ("DEV-12", "DEV-13"))
        if not rule.operators or section.kind in rule.operators.split()
    }


def dispatchables(load, **descs):
    """The sections of a model of operators, each by its name and its descriptor."""
    named = {name: {"type": kind, "desc": desc} for name, (kind, desc) in descs.items()}
    load(model({}, named))
    return explain("m.json").sections


def test_widened_and_repeated(load):
    desc = {"InputTensor": tensor(8, 4, Strides=[0, 1]), "OutputTensor": tensor(8, 4)}
    (section,) = dispatchables(load, many=("ELEMENT_WISE_IDENTITY", desc))
    (movement,) = section.movements
    plan = movement.plan
    assert (movement.moved_size, plan.bytes_read, plan.bytes_written) == (16, 16, 128)


def test_copies_and_kernels_of_each_kind_of_driver(load):
    """Four rows of 64 KiB, and many columns of 256 bytes."""

    def part(rows, columns, taken):
        window = {"Offsets": [0, 0], "Sizes": [rows, taken], "Strides": [1, 1]}
        tensors = {"InputTensor": tensor(rows, columns), "OutputTensor": tensor(rows, taken)}
        return "SLICE", {**tensors, **window}

    explained = dispatchables(load, rows=part(4, 1 << 15, 1 << 14), columns=part(1024, 1 << 10, 64))
    rows, columns = ([dispatch_rows(movement) for movement in each.movements] for each in explained)
    for (cpu, by_cores), gpu in (*rows, *columns):
        assert cpu == "CPU driver"
        assert re.fullmatch(r"1 dispatch, copy_16, \d+ workgroups?", by_cores)
        assert gpu == ("GPU", "1 dispatch, copy_16, 256 workgroups")


def test_channel_shuffle_as_a_file():
    section, movement = only(
        "channel_shuffle.onnx", overrides=Overrides(shapes={"x": (1, 6, 4, 4)})
    )
    assert (section.name, section.kind) == ("channel_shuffle", "ONNX model, opset 13")
    assert section.details == (("Nodes", "7"), ("Shapes", "x [1, 6, 4, 4]"))
    assert [(node.makes, node.result) for node in section.nodes] == [
        (("shape [4]",), "known on the host: 1, 6, 4, 4"),
        (("batch [1]",), "known on the host: 1"),
        (("image [2]",), "known on the host: 4, 4"),
        (("grouped_shape [5]",), "known on the host: 1, 3, -1, 4, 4"),
        (("grouped [1, 3, 2, 4, 4]",), "nothing to move"),
        (("mixed [1, 2, 3, 4, 4]",), "copied"),
        (("y [1, 6, 4, 4]",), "nothing to move"),
    ]
    assert section.nodes[0].label == "node 0, which makes 'shape' (Shape-13)"
    assert movement.regions == [(0, make_region((2, 3, 16), 0, (48, 16, 1), (0, 0, (16, 32, 1))))]
    assert (movement.moved_size, movement.dispatches[0].kernels) == (16, ("copy_16",))


def test_an_onnx_model_has_a_section_for_each_shape_that_is_bound():
    sections = explain(str(EXAMPLES / "channel_shuffle.json")).sections
    shapes = [dict(section.details)["Shapes"] for section in sections]
    assert shapes == ["x [1, 6, 1, 2]", "x [2, 6, 1, 1]"]


ODD = """<ir_version: 8, opset_import: ["" : 13]>
odd (float[2] x, int64[1] n) => (float[2] same, float[5] y, float[M] z)
<float[3] three = {7, 8, 9}, float[1] one = {2}> {
  same = Identity (x)
  y = Concat <axis = 0> (x, three)
  z = Expand (one, n)
}"""


@pytest.fixture
def odd(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(ODD), "odd.onnx")
    text = ODD.replace(", int64[1] n)", ")").replace("(one, n)", "(one, four)")
    text = text.replace("<float[3]", "<int64[1] four = {4}, float[3]")
    onnx.save(onnx.parser.parse_model(text), "known.onnx")


@pytest.mark.usefixtures("odd")
def test_shapes_that_depend_on_values():
    (section,) = explain("odd.onnx").sections
    assert dict(section.details)["No plan yet"] == "Shapes depend on what input 'n' holds"
    assert [node.label for node in section.nodes][-1] == "node 2, which makes 'z' (Expand-13)"
    assert section.movements == ()


@pytest.mark.usefixtures("odd")
def test_constants_and_outputs_that_are_inputs():
    (section,) = explain("known.onnx").sections
    details = dict(section.details)
    assert details["Constants"] == "1 tensor, sent to the device once"
    assert details["Output same"] == "is x, nothing is copied"
    results = [node.result for node in section.nodes]
    assert results == ["nothing to move", "copied", "known on the host: 2.0, 2.0, 2.0, 2.0"]
    (movement,) = section.movements
    assert [t.note for t in movement.inputs] == ["known on the host", ""]
    sources = [region.source for _, region in movement.regions]
    assert sources[-1] == Fill(np.float32(2).tobytes())
    assert (movement.plan.bytes_read, movement.plan.bytes_written) == (20, 36)


def test_sequences_and_broken_arguments(tmp_path, command):
    head = '<ir_version: 8, opset_import: ["" : 13]> s (float[5] x) => '
    node = "(seq(float[M]) s) <int64 two = {2}> { s = SplitToSequence <axis = 0> (x, two) }"
    file = tmp_path / "s.onnx"
    onnx.save(onnx.parser.parse_model(head + node), file)
    (section,) = explain(str(file)).sections
    assert [tensor.name for tensor in section.tensors] == ["x", "s[0]", "s[1]", "s[2]"]
    assert section.nodes[0].makes == ("s [2], [2], [1]",)
    onnx.save(onnx.parser.parse_model(head + node.replace("axis = 0", "axis = 1")), file)
    first, second = (command(name, file) for name in ("check", "explain"))
    assert (first[0], first[2]) == (second[0], second[2]) == (1, second[2])


def test_deferred_inputs_have_no_shape_yet(load, tmp_path):
    shutil.copy(EXAMPLES / "channel_shuffle.onnx", tmp_path)
    resources = {"A": {"initialValues": "deferred"}, "B": zeros(12)}
    onnx = {"type": "onnx", "sourcePath": "channel_shuffle.onnx"}
    load(model(resources, {"d": onnx}, dispatch("d", x="A", y="B")))
    (section,) = explain("m.json").sections
    assert section.details == (
        ("No plan yet", "Input 'x' is 'A', whose shape is known only when it has been computed"),
    )


# -- the command -----------------------------------------------------------------------------------

TRANSPOSE = """\
transpose: ELEMENT_WISE_IDENTITY
Lowest feature level  4_1; accepted at 5_0
Rules checked         DEV-12, DEV-13, IDENT-01, IDENT-02, T-01, T-02, T-03, T-04, T-06, T-07, T-09,
                      T-12, T-13, T-15, T-17, T-18, T-19
┏━━━━━━━━━━━━━━┳━━━━━━━┳━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━━┓
┃ Tensor       ┃ Type  ┃ Sizes ┃ Strides ┃ Memory   ┃ Note         ┃
┡━━━━━━━━━━━━━━╇━━━━━━━╇━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━━┩
│ InputTensor  │ INT64 │ 3, 2  │ 1, 3    │ 48 bytes │ OWNED_BY_DML │
│ OutputTensor │ INT64 │ 3, 2  │ 2, 1    │ 48 bytes │              │
└──────────────┴───────┴───────┴─────────┴──────────┴──────────────┘
Plan: 1 region, 48 bytes read, 48 bytes written; elements of 8 bytes
┏━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ Region ┃ Elements ┃ From element                   ┃ To element                      ┃
┡━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│ 0      │ 3 × 2    │ InputTensor at 0, strides 1, 3 │ OutputTensor at 0, strides 2, 1 │
└────────┴──────────┴────────────────────────────────┴─────────────────────────────────┘
CPU driver  1 dispatch, copy_elements_8, 1 workgroup
GPU         1 dispatch, copy_elements_8, 1 workgroup
"""


def test_the_tables_in_the_terminal(command, monkeypatch):
    # On Windows, rich leaves the last column of an old console free.
    monkeypatch.setenv("COLUMNS", "101" if os.name == "nt" else "100")
    status, out, err = command("explain", EXAMPLES / "transpose.json")
    assert (status, re.sub(r" +\n", "\n", out), err) == (0, TRANSPOSE, "")


def test_a_feature_level_that_is_too_low(command, tmp_path):
    html = tmp_path / "page.html"
    options = (EXAMPLES / "split.json", "--dml_feature_level", "2.1")
    status, out, err = command("explain", *options, "--html", html)
    assert "Lowest feature level  3_0; refused at 2_1" in out
    assert not html.exists()
    checked, _, said = command("check", *options)
    assert (status, err) == (checked, said) == (1, said)


@pytest.mark.parametrize("name", ["m.txt", "none.json", "none.onnx", "bad.json", "wrong.json"])
def test_errors_are_those_of_check(name, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text('{"resources": {}}')
    Path("wrong.json").write_text(json.dumps(SPLIT).replace('"Axis": 0', '"Axis": 1'))
    status, out, err = command("check", name)
    assert (status, err != "") == (1, True)
    assert command("explain", name) == (1, out, err)


def test_overrides_are_those_of_check(command):
    model = EXAMPLES / "channel_shuffle.onnx"
    status, _, err = command("explain", model, "-f", "Z:3")
    said = "no free dimension 'Z' in the ONNX model; it has 'H', 'N', 'W'"
    assert (status, said in err) == (1, True)
    status, out, _ = command("explain", model, "-f", "N:2", "-f", "H:3", "-f", "W:4")
    assert (status, "x [2, 6, 3, 4]" in out) == (0, True)


def test_a_page_that_cannot_be_written(command, tmp_path):
    status, _, err = command("explain", EXAMPLES / "split.json", "--html", tmp_path)
    assert (status, err) == (1, f"{tmp_path}: cannot be written: not a regular file\n")


# -- operators with indices ------------------------------------------------------------------------


def test_indices_select_elements():
    """Which elements they are is not known: the regions' texts say in words what moves them."""
    _, movement = only("gather.json")
    source = "InputTensor at 0, strides 0, 1, moved by IndicesTensor at 0, strides 1, 0"
    assert region_rows(movement).rows == [("0", "4 × 2", source, "OutputTensor at 0, strides 2, 1")]
    assert (movement.plan.bytes_read, movement.plan.bytes_written) == (4 * 8 + 4 * 4, 4 * 8)

    _, movement = only("scatter.json")
    assert region_rows(movement).rows[1][2:] == (
        "UpdatesTensor at 0, strides 3, 1",
        "OutputTensor at 0, strides 0, 1, moved by IndicesTensor at 0, strides 3, 1",
    )

    _, movement = only("padding1.json")
    assert "constant 0x41100000" in [source for _, _, source, _ in region_rows(movement).rows]

    _, movement = only("gather_nd1.json")  # indices of 8 bytes
    assert movement.element_size("input", 1) == 8

    _, movement = only("reverse_subsequences.json")
    source = (
        "InputTensor at 0, strides 4, 0, reversed up to SequenceLengthsTensor at 0, strides 1, 0"
    )
    assert region_rows(movement).rows[0][2] == source


@pytest.mark.parametrize("name", indexed_operators())
@settings(max_examples=8)
@given(random=st.randoms(use_true_random=False), large=st.booleans())
def test_any_operator_with_indices_can_be_drawn(name, random, large):
    sizes = (40, 60) if large else (2, 3, 4)
    desc = OPERATORS[name].make(random, random.choice(kinds(name)), sizes, 1).desc
    section = operator_section("any", desc, FeatureLevel.LATEST)
    text = page(Explanation("m.json", (section,)))
    tensors = [with_dml_names(path) for path, _ in (*desc.inputs, *desc.outputs)]
    assert [found for found in tensors if f"{found}: " not in text] == []


# -- the page --------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", sorted(p.name for p in EXAMPLES.glob("*.[jo][sn]*")))
def test_pages_of_the_examples(example):
    explanation = explain(str(EXAMPLES / example))
    text = page(explanation)
    document = Document(text)
    assert "://" not in text
    assert not [a for _, a in document.found if {"src", "onclick", "onload"} & a.keys()]
    assert document.all("html") == [{"lang": "en"}]
    labels = [a["aria-label"] for a in document.all("div") if a.get("role") == "group"]
    assert all(labels)
    movements = [each for section in explanation.sections for each in section.movements]
    assert len(labels) == sum(len(each.inputs) + len(each.outputs) for each in movements)


def test_rules_are_links_to_their_texts():
    text = page(explain(str(EXAMPLES / "split.json")))
    document = Document(text)
    links = [a["href"].removeprefix("#") for a in document.all("a")]
    assert "SPLIT-06" in links
    assert links == [a["id"] for a in document.all("div") if "id" in a]
    assert "Along the axis, the outputs' sizes add up to the input's. " in document.texts
    assert "A tensor is a <code>BufferTensorDesc</code>" in text


HOSTILE = "<script>alert(1)</script>\"'&\n\x1b[31m</style>"


@pytest.mark.posix("names of any bytes", tests_only=True)
def test_hostile_names(load, tmp_path, command):
    named = dict.fromkeys([HOSTILE, "long" * 10**5], SPLIT["dispatchables"]["split"])
    file = tmp_path / os.fsdecode(b"<b>\xff.json")
    file.write_text(json.dumps(model({}, named)))
    html = tmp_path / "page.html"
    status, printed, _ = command("explain", file, "--html", html)
    assert (status, "\x1b" in printed) == (0, False)
    assert "alert(1)" in printed
    text = html.read_text("utf-8")
    document = Document(text)
    assert (len(document.all("script")), len(document.all("style"))) == (3, 1)
    assert document.all("b")  # of vkops' own
    assert "<b>\\udcff.json" in "".join(document.texts)
    assert len(text) < 100_000


def test_large_models_have_small_pages(load):
    split = {
        "InputTensor": tensor(1, 1, 1, 1 << 28),
        "OutputTensors": [tensor(1, 1, 1, 1 << 18)] * 1024,
        "Axis": 3,
    }
    join = {
        "InputTensors": [tensor(1, 1, 512, i % 3 + 1) for i in range(1000)],
        "OutputTensor": tensor(1, 1, 512, 1999),
        "Axis": 3,
    }
    kinds = {"split": {"type": "SPLIT", "desc": split}, "join": {"type": "JOIN", "desc": join}}
    many = dict.fromkeys((f"s{i}" for i in range(1000)), SPLIT["dispatchables"]["split"])
    load(model({}, {**kinds, **many}))
    with cpu_time(below=20):
        explanation = explain("m.json")
        text = page(explanation)
    assert len(explanation.sections[0].movements[0].regions) == 1024
    Document(text)
    assert len(text) < 1 << 20
    assert "And 962 more dispatchables." in text
