"""``vkops explain``: the data, the tables in the terminal and the HTML page.

tests/device/test_explain_page.py shows the page in a browser.
"""

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import SPLIT, tensor, zeros
from operator_table import OPERATORS, indexed_operators, kinds
from processes import cpu_time, python
from regions import make_region

from vkops.cli import main
from vkops.dml import FeatureLevel
from vkops.explain import Explanation, Tensor, explain
from vkops.explain.page import page
from vkops.explain.tables import dispatch_rows, region_rows
from vkops.models.descriptors import with_dml_names
from vkops.models.json_reader import parse
from vkops.models.operator import DmlDispatchable
from vkops.onnx.free_dimensions import Overrides
from vkops.plan import Fill
from vkops.rules import GROUPS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
VOID = {"meta"}


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


def test_join_of_three():
    section, movement = only("join.json")
    assert [tensor.nbytes for tensor in section.tensors] == [8, 12, 8, 28]
    assert [region.source.input for _, region in movement.regions] == [0, 1, 2]
    assert [region.target.offset for _, region in movement.regions] == [0, 2, 5]


@pytest.mark.parametrize(
    ("example", "region", "nbytes"),
    [
        ("slice.json", make_region((2, 3), 0, (3, 1), (0, 1, (10, 1))), (40, 12, 12)),
        ("slice1_backwards.json", make_region((3,), 0, (1,), (0, 9, (-2,))), (12, 3, 3)),
        ("transpose.json", make_region((3, 2), 0, (2, 1), (0, 0, (1, 3))), (48, 48, 48)),
    ],
)
def test_one_region(example, region, nbytes):
    _, movement = only(example)
    assert movement.regions == [(0, region)]
    assert (
        movement.inputs[0].nbytes,
        movement.plan.bytes_read,
        movement.plan.bytes_written,
    ) == nbytes


@pytest.mark.parametrize("operator", ["SPLIT", "JOIN", "SLICE", "SLICE1", "IDENT"])
def test_rules_are_those_of_tensors_levels_and_the_operator(operator):
    example = {"IDENT": "transpose", "SLICE1": "slice1_backwards"}.get(operator, operator.lower())
    section, _ = only(f"{example}.json")
    checked = section.rules
    assert set(checked) == {
        rule.id
        for group in (operator, "T", "DEV")
        for rule in GROUPS[group].rules
        if rule.enforced and (group != "DEV" or rule.id in ("DEV-12", "DEV-13"))
    }


@pytest.mark.parametrize(
    ("operator", "sizes"), [("SPACE_TO_DEPTH", "SD-04"), ("DEPTH_TO_SPACE", "SD-03")]
)
def test_rules_of_operators_that_share_a_group(operator, sizes):
    section, _ = only(f"{operator.lower()}.json")
    checked = section.rules
    assert [rule for rule in checked if rule.startswith("SD")] == ["SD-01", "SD-02", sizes]


def test_widened_and_repeated(load):
    model = json.loads(json.dumps(SPLIT))
    identity = {"InputTensor": tensor(8, 4, Strides=[0, 1]), "OutputTensor": tensor(8, 4)}
    model["dispatchables"] = {"many": {"type": "ELEMENT_WISE_IDENTITY", "desc": identity}}
    model["commands"] = []
    load(model)
    (movement,) = explain("m.json").sections[0].movements
    assert (movement.moved_size, movement.plan.bytes_read, movement.plan.bytes_written) == (
        16,
        16,
        128,
    )


def test_copies_and_kernels_of_each_kind_of_driver(load):
    """Four rows of 64 KiB: both copy them. Many columns of 256 bytes: only the CPU driver does."""
    model = json.loads(json.dumps(SPLIT))
    rows = {"InputTensor": tensor(4, 1 << 15), "OutputTensor": tensor(4, 1 << 14)}
    columns = {"InputTensor": tensor(1024, 1 << 10), "OutputTensor": tensor(1024, 64)}
    model["dispatchables"] = {
        name: {
            "type": "SLICE",
            "desc": {
                **desc,
                "Offsets": [0, 0],
                "Sizes": desc["OutputTensor"]["Sizes"],
                "Strides": [1, 1],
            },
        }
        for name, desc in (("rows", rows), ("columns", columns))
    }
    model["commands"] = []
    load(model)
    texts = [
        [text for movement in section.movements for text in dispatch_rows(movement)]
        for section in explain("m.json").sections
    ]
    assert texts == [
        [
            ("CPU driver", "vkCmdCopyBuffer with 4 regions"),
            ("GPU", "vkCmdCopyBuffer with 4 regions"),
        ],
        [
            ("CPU driver", "vkCmdCopyBufferToImage with 1 region"),
            ("GPU", "1 dispatch, copy_16, 256 workgroups"),
        ],
    ]


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
    assert [dict(section.details)["Shapes"] for section in sections] == [
        "x [1, 6, 1, 2]",
        "x [2, 6, 1, 1]",
    ]


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


def test_sequences_and_broken_arguments(tmp_path, capsys):
    head = '<ir_version: 8, opset_import: ["" : 13]> s (float[5] x) => '
    node = "(seq(float[M]) s) <int64 two = {2}> { s = SplitToSequence <axis = 0> (x, two) }"
    file = tmp_path / "s.onnx"
    onnx.save(onnx.parser.parse_model(head + node), file)
    (section,) = explain(str(file)).sections
    assert [tensor.name for tensor in section.tensors] == ["x", "s[0]", "s[1]", "s[2]"]
    assert section.nodes[0].makes == ("s [2], [2], [1]",)
    onnx.save(onnx.parser.parse_model(head + node.replace("axis = 0", "axis = 1")), file)
    for command in ("check", "explain"):
        assert main([command, str(file)]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == second


def test_deferred_inputs_have_no_shape_yet(load, tmp_path):
    (tmp_path / "channel_shuffle.onnx").write_bytes(
        (EXAMPLES / "channel_shuffle.onnx").read_bytes()
    )
    model = {
        "resources": {"A": {"initialValues": "deferred"}, "B": zeros(12)},
        "dispatchables": {"d": {"type": "onnx", "sourcePath": "channel_shuffle.onnx"}},
        "commands": [{"type": "dispatch", "dispatchable": "d", "bindings": {"x": "A", "y": "B"}}],
    }
    load(model)
    (section,) = explain("m.json").sections
    assert section.details == (
        ("No plan yet", "Input 'x' is 'A', whose shape is known only when it has been computed"),
    )


# -- the command -----------------------------------------------------------------------------------

TRANSPOSE = """\
transpose: ELEMENT_WISE_IDENTITY
Lowest feature level  4_1; accepted at 5_0
Rules checked         DEV-12, DEV-13, IDENT-01, IDENT-02, T-01, T-02, T-03, T-04, T-06, T-07, T-09,
                      T-12, T-13, T-14, T-15, T-17, T-18, T-19
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
GPU         1 dispatch, copy_8, 1 workgroup
"""


def test_the_tables_in_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["explain", str(EXAMPLES / "transpose.json")]) == 0
    seen = capsys.readouterr()
    assert re.sub(r" +\n", "\n", seen.out) == TRANSPOSE
    assert seen.err == ""


def test_a_feature_level_that_is_too_low(capsys, tmp_path):
    html = tmp_path / "page.html"
    model = str(EXAMPLES / "split.json")
    assert main(["explain", model, "--dml_feature_level", "2.1", "--html", str(html)]) == 1
    explained = capsys.readouterr()
    assert "Lowest feature level  3_0; refused at 2_1" in explained.out
    assert not html.exists()
    assert main(["check", model, "--dml_feature_level", "2.1"]) == 1
    assert explained.err == capsys.readouterr().err


@pytest.mark.parametrize("name", ["m.txt", "none.json", "none.onnx", "bad.json", "wrong.json"])
def test_errors_are_those_of_check(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text('{"resources": {}}')
    wrong = json.loads(json.dumps(SPLIT))
    wrong["dispatchables"]["split"]["desc"]["Axis"] = 1
    Path("wrong.json").write_text(json.dumps(wrong))
    assert main(["check", name]) == 1
    expected = capsys.readouterr()
    assert main(["explain", name]) == 1
    assert capsys.readouterr() == expected
    assert expected.err.count("\n") == 1


def test_overrides_are_those_of_check(capsys):
    assert main(["explain", str(EXAMPLES / "channel_shuffle.onnx"), "-f", "Z:3"]) == 1
    assert (
        "no free dimension 'Z' in the ONNX model; it has 'H', 'N', 'W'" in capsys.readouterr().err
    )
    names = ["-f", "N:2", "-f", "H:3", "-f", "W:4"]
    assert main(["explain", str(EXAMPLES / "channel_shuffle.onnx"), *names]) == 0
    assert "x [2, 6, 3, 4]" in capsys.readouterr().out


def test_a_page_that_cannot_be_written(capsys, tmp_path):
    assert main(["explain", str(EXAMPLES / "split.json"), "--html", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"{tmp_path}: cannot be written: not a regular file\n"


@pytest.mark.parametrize("name", ["split.json", "channel_shuffle.onnx"])
def test_neither_vulkan_nor_kompute_is_loaded(name, tmp_path):
    code = (
        "import sys; from vkops.cli import main; status = main();"
        "print(sorted({'vkops_native', 'kp'} & set(sys.modules)), status)"
    )
    html = tmp_path / "page.html"
    arguments = ["explain", str(EXAMPLES / name), "--html", str(html)]
    assert python("-c", code, *arguments).endswith("[] 0\n")
    assert html.stat().st_size > 1000


# -- operators with indices ------------------------------------------------------------------------


def test_indices_select_elements():
    """Which elements they are is not known: the regions' texts say in words what moves them."""
    _, movement = only("gather.json")
    assert region_rows(movement).rows == [
        (
            "0",
            "4 × 2",
            "InputTensor at 0, strides 0, 1, moved by IndicesTensor at 0, strides 1, 0",
            "OutputTensor at 0, strides 2, 1",
        )
    ]
    assert (movement.plan.bytes_read, movement.plan.bytes_written) == (4 * 8 + 4 * 4, 4 * 8)

    _, movement = only("scatter.json")
    assert region_rows(movement).rows[1][2:] == (
        "UpdatesTensor at 0, strides 3, 1",
        "OutputTensor at 0, strides 0, 1, moved by IndicesTensor at 0, strides 3, 1",
    )

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
    dispatchable = DmlDispatchable("any", parse(b"{}", "m.json"), desc)
    (section,) = dispatchable.sections((), FeatureLevel.LATEST)
    text = page(Explanation("m.json", (section,)))
    tensors = [with_dml_names(path) for path, _ in (*desc.inputs, *desc.outputs)]
    assert [found for found in tensors if f"{found}: " not in text] == []


# -- the page --------------------------------------------------------------------------------------


class Document(HTMLParser):
    """The elements and texts of a page; every element must be closed in the right order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.found if tag == name]


@pytest.mark.parametrize("example", sorted(p.name for p in EXAMPLES.glob("*.[jo][sn]*")))
def test_pages_of_the_examples(example):
    text = page(explain(str(EXAMPLES / example)))
    document = Document(text)
    assert "://" not in text
    assert not [a for _, a in document.found if {"src", "onclick", "onload"} & a.keys()]
    assert document.all("html") == [{"lang": "en"}]
    labels = [a["aria-label"] for a in document.all("div") if a.get("role") == "group"]
    assert all(labels)
    assert len(labels) == sum(
        len(movement.inputs) + len(movement.outputs)
        for section in explain(str(EXAMPLES / example)).sections
        for movement in section.movements
    )


def test_rules_are_links_to_their_texts():
    text = page(explain(str(EXAMPLES / "split.json")))
    document = Document(text)
    links = [a["href"].removeprefix("#") for a in document.all("a")]
    assert "SPLIT-06" in links
    assert links == [a["id"] for a in document.all("div") if "id" in a]
    assert "Along the axis, the outputs' sizes add up to the input's. " in document.texts
    assert "A tensor is a <code>BufferTensorDesc</code>" in text


HOSTILE = "<script>alert(1)</script>\"'&\n\x1b[31m</style>"


def test_hostile_names(load, tmp_path, capsys):
    model = {
        "resources": {},
        "dispatchables": {
            HOSTILE: SPLIT["dispatchables"]["split"],
            "long" * 10**5: SPLIT["dispatchables"]["split"],
        },
        "commands": [],
    }
    file = tmp_path / os.fsdecode(b"<b>\xff.json")
    file.write_text(json.dumps(model))
    html = tmp_path / "page.html"
    assert main(["explain", str(file), "--html", str(html)]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
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
    model = {
        "resources": {},
        "dispatchables": {
            "split": {"type": "SPLIT", "desc": split},
            "join": {"type": "JOIN", "desc": join},
            **{f"s{i}": SPLIT["dispatchables"]["split"] for i in range(1000)},
        },
        "commands": [],
    }
    load(model)
    with cpu_time(below=20):
        explanation = explain("m.json")
        text = page(explanation)
    assert len(explanation.sections[0].movements[0].regions) == 1024
    Document(text)
    assert len(text) < 1 << 20
    assert "And 962 more dispatchables." in text


SPLIT_THEN_JOIN = """<ir_version: 8, opset_import: ["" : 18]>
g (float[60, 8] x) => (float[60, 8] y) {
  a, b, c = Split <axis = 0, num_outputs = 3> (x)
  y = Concat <axis = 0> (a, b, c)
}"""

TEN_SLICES = """<ir_version: 8, opset_import: ["" : 18]>
g (float[60, 40] x0) => (float[A, B] x10) <int64[2] one = {{1, 1}}, int64[2] last = {{-1, -1}}> {{
  {}
}}""".format("\n".join(f"x{i + 1} = Slice (x{i}, one, last)" for i in range(10)))


@pytest.mark.parametrize(
    ("text", "plan", "region"),
    [
        (SPLIT_THEN_JOIN, "1 region, ", ("480", "at 0, strides 1")),
        (TEN_SLICES, "1 region", ("40 × 20", "at 410, strides 40, 1")),
    ],
    ids=["split then join", "ten slices"],
)
def test_graphs_are_explained_as_one_plan(text, plan, region, capsys, tmp_path):
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    assert main(["explain", str(tmp_path / "m.onnx")]) == 0
    printed = " ".join(re.sub(r"[│┃]", " ", capsys.readouterr().out).split())
    assert f"Plan: {plan}" in printed
    assert all(part in printed for part in region)
