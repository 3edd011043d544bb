"""``vkops run`` on ONNX models: .onnx files, and ``onnx`` dispatchables of DxDispatch models."""

import json
import re
from pathlib import Path

import ml_dtypes
import models
import numpy as np
import onnx
import pytest
from adapters import wanted
from models import resource, zeros
from onnx_models import CONCAT
from processes import outcome

from vkops.cli import main

MANY = """<ir_version: 8, opset_import: ["" : 18]>
many (float[N, 4] x, bool[3] flags, string[2] words)
    => (float[N, 2] a, float[N, 2] b, bool[6] f, string[4] w) {
  a, b = Split <axis = 1, num_outputs = 2> (x)
  f = Concat <axis = 0> (flags, flags)
  w = Concat <axis = 0> (words, words)
}"""

SIZES = """<ir_version: 8, opset_import: ["" : 13]>
reshaped (float[N] x, int64[2] shape) => (float[A, B] y) { y = Reshape (x, shape) }"""

PARTS = """<ir_version: 8, opset_import: ["" : 13]>
parts (float[N] x) => (seq(float[M]) y) { y = SplitToSequence (x) }"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, with the models in it."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("concat", CONCAT), ("many", MANY), ("sizes", SIZES), ("parts", PARTS)):
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")
    return tmp_path


@pytest.fixture
def vkops_run(folder, capsys):
    """Run a file or a model on the adapter under test: its lines, with times as T, and errors."""

    def run(*arguments, status=0):
        if isinstance(arguments[0], dict):
            (folder / "m.json").write_text(json.dumps(arguments[0]))
            arguments = ("m.json", *arguments[1:])
        adapter = wanted()[0].name
        assert main(["run", "--flat", "-a", adapter, *map(str, arguments)]) == status
        seen = capsys.readouterr()
        out = re.sub(r", [0-9.]+ ms median \(GPU\)", "", seen.out)  # which not all devices measure
        first, *lines = out.splitlines() or [""]
        assert first == f"Running on '{adapter}'" or (status and not first)
        return [re.sub(r"\d+\.\d{4} ms", "T ms", line) for line in lines], seen.err

    return run


def bound(name, *shape):
    return {"name": name, "shape": list(shape)}


def model(*commands):
    """A DxDispatch model around concat.onnx; commands are bindings, or names to print."""
    values = ({"valueStart": start, "valueDelta": 1, "valueCount": 6} for start in (1, 7))
    a, b, later = (resource("FLOAT32", each) for each in (*values, "deferred"))
    runs = [
        {"type": "print", "resource": each}
        if isinstance(each, str)
        else each
        if "type" in each
        else models.dispatch("concat", **each)
        for each in commands
    ]
    concat = {"type": "onnx", "sourcePath": "concat.onnx"}
    return models.model({"a": a, "b": b, "c": zeros(12), "later": later}, {"concat": concat}, *runs)


def test_each_dispatch_has_its_own_shapes(folder, vkops_run):
    """Each binding has its shape; larger resources keep the rest; deferred ones take any shape."""
    small = {"x0": bound("a", 1, 2), "x1": bound("b", 1, 2), "y": bound("c", 2, 2)}
    large = {"x0": bound("a", 3, 2), "x1": bound("b", 3, 2), "y": "c"}
    write = {"type": "writeFile", "resource": "later", "targetPath": "later.npy"}
    document = model(small, "c", large, "c", {**large, "y": "later"}, "later", write)
    lines, errors = vkops_run(document)
    dispatched = "Dispatch 'concat': 1 iterations, T ms median (CPU)"
    everything = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"
    assert lines == [
        f"{dispatched}; the first run, later ones are faster",
        "Resource 'c': 1, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0",
        dispatched,
        f"Resource 'c': {everything}",
        dispatched,
        f"Resource 'later': {everything}",
        f"Resource 'later' written to '{folder / 'later.npy'}'",
    ]
    assert errors == ""
    expected = np.arange(1, 13, dtype=np.float32).reshape(6, 2)
    np.testing.assert_array_equal(np.load("later.npy"), expected)


def test_a_deferred_output_can_be_an_input(vkops_run):
    first = {"x0": bound("a", 1, 2), "x1": bound("b", 1, 2), "y": "later"}
    second = {"x0": bound("a", 2, 2), "x1": "later", "y": "c"}
    lines, _ = vkops_run(model(first, second, "c"))
    assert lines[-1] == "Resource 'c': 1, 2, 3, 4, 1, 2, 7, 8, 0, 0, 0, 0"


def test_an_output_over_its_own_input(vkops_run):
    """All elements are read before any of them is written."""
    in_place = {"x0": bound("c", 1, 2), "x1": bound("a", 1, 2), "y": "c"}
    fill = {"x0": bound("a", 3, 2), "x1": bound("b", 3, 2), "y": "c"}
    lines, _ = vkops_run(model(fill, in_place, "c"))
    assert lines[-1] == "Resource 'c': 1, 2, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12"


def test_unbound_tensors_are_made_and_free_sizes_are_1(vkops_run):
    lines, _ = vkops_run(model({"y": "c"}, "c", {"x0": bound("a", 3, 2)}), "-f", "N:3")
    assert lines[1] == "Resource 'c': " + ", ".join(["0"] * 12)


def test_options_of_the_command_line_override_the_model(vkops_run):
    document = model({"x0": "a", "x1": "b", "y": "later"}, "later")
    document["dispatchables"]["concat"]["freeDimensionNameOverrides"] = {"N": 2}
    assert vkops_run(document)[0][-1] == "Resource 'later': 1, 2, 3, 4, 7, 8, 9, 10"
    assert vkops_run("m.json", "-f", "N:1")[0][-1] == "Resource 'later': 1, 2, 7, 8"
    _, said = vkops_run("m.json", "-b", "x0:1,2", "-b", "x1:2,2", status=1)
    assert said.endswith("input 'x1': got shape (2, 2), must be (N, 2), N being 1\n")


def test_bindings_are_printed(vkops_run):
    lines, _ = vkops_run(model({"x0": bound("a", 1, 2), "y": "later"}), "-p")
    assert lines[:-1] == [
        line
        for name, kind, shape in (
            ("Input Tensor 'x0'", "explicit", "[1,2]"),
            ("Input Tensor 'x1'", "implicit", "[1,2]"),
            ("Output Tensor 'y'", "deferred", "[2,2]"),
        )
        for line in (f"{name}:", f"  Resource  = {kind} (Vulkan)", "  Data Type = FLOAT",
                     f"  Shape     = {shape}", "")
    ]  # fmt: skip


# -- .onnx files -----------------------------------------------------------------------------------


def test_inputs_from_files_and_outputs_printed(folder, vkops_run):
    np.save("x0.npy", np.float32([[1, 2]]))
    np.savez("rest.npz", x1=np.float32([[3, 4]]))
    lines, _ = vkops_run("concat.onnx", "--input", "x0:x0.npy", "--input", "rest.npz")
    assert lines == [
        "Dispatch 'concat': 1 iterations, T ms median (CPU); the first run, later ones are faster",
        "Output 'y' [2, 2]: 1, 2, 3, 4",
    ]
    np.save("x.npy", np.float32([5, 6]))
    lines, _ = vkops_run("parts.onnx", "--input", "x.npy")
    assert lines[1:] == ["Output 'y[0]' [1]: 5", "Output 'y[1]' [1]: 6"]
    np.savez("in.npz", x=np.arange(6, dtype=np.float32), shape=np.int64([3, 2]))
    lines, _ = vkops_run("sizes.onnx", "--input", "in.npz")
    assert lines[1:] == ["Output 'y' [3, 2]: 0, 1, 2, 3, 4, 5"]
    lines, _ = vkops_run("concat.onnx", "-f", "N:5000")
    assert lines[1].endswith(", 0, and 10000 more (--output FILE.npz takes all)")


def test_outputs_to_files(folder, vkops_run):
    np.savez("in.npz", x=np.arange(8, dtype=np.float32).reshape(2, 4), words=np.array(["a", "bc"]))
    lines, _ = vkops_run(
        "many.onnx", "--input", "in.npz", "--output", "out/all.npz", "--output", "b:b.npy"
    )
    assert lines[1:] == [f"Outputs written to '{Path('out/all.npz')}'", "b written to 'b.npy'"]
    expected = {
        "a": [[0, 1], [4, 5]],
        "b": [[2, 3], [6, 7]],
        "f": [False] * 6,
        "w": ["a", "bc"] * 2,
    }
    with np.load("out/all.npz") as made:
        assert {name: array.tolist() for name, array in made.items()} == expected
    np.testing.assert_array_equal(np.load("b.npy"), np.float32([[2, 3], [6, 7]]))


NAMES = """<ir_version: 8, opset_import: ["" : 16]>
names (float16[2] x, bfloat16[2] brain)
    => (float16[2] file, bfloat16[2] allow_pickle, seq(float16[1]) s, float16[2] last) {
  file = Identity (x)
  allow_pickle = Identity (brain)
  s = SplitToSequence (x)
  last = Identity (x)
}"""


@pytest.fixture
def names(folder):
    """A model whose last output has a name of choice, and its inputs in files."""
    np.save("x.npy", np.array([1, 2], ">f2"))
    np.save("brain.npy", np.array([3, 4], ml_dtypes.bfloat16))
    assert np.load("brain.npy").dtype == "V2"  # the file knows only the size

    def names(last):
        model = onnx.parser.parse_model(NAMES)
        model.graph.node[-1].output[0] = model.graph.output[-1].name = last
        onnx.save(model, "names.onnx")
        return ["names.onnx", "--input", "x:x.npy", "--input", "brain:brain.npy"]

    return names


def test_arrays_of_any_byte_order_and_name(names, vkops_run):
    vkops_run(*names("s[2]"), "--output", "out.npz")
    with np.load("out.npz") as saved:
        lists = {name: array.tolist() for name, array in saved.items() if name != "allow_pickle"}
        assert lists == {"file": [1, 2], "s[0]": [1], "s[1]": [2], "s[2]": [1, 2]}
        brain = saved["allow_pickle"].view(ml_dtypes.bfloat16)
        assert brain.tolist() == [3, 4]


@pytest.mark.parametrize("more", [[], ["--output", "out.npz"]])
def test_outputs_with_the_same_name_are_refused(names, vkops_run, more):
    _, error = vkops_run(*names("s[1]"), *more, status=1)
    assert error == "output 's[1]': another output has the name 's[1]'\n"


@pytest.mark.parametrize("size", [2, 4])
def test_void_elements_are_not_numbers(folder, vkops_run, size):
    np.save("x.npy", np.ones((1, 2), f"u{size}").view(f"V{size}"))
    _, error = vkops_run("concat.onnx", "--input", "x0:x.npy", status=1)
    assert error == f"input 'x0': got type tensor(|V{size}), must be tensor(float)\n"


def test_random_inputs_are_the_same_again(folder, vkops_run):
    once = vkops_run("many.onnx", "--random", "-f", "N:3")
    assert once == vkops_run("many.onnx", "--random", "-f", "N:3")
    assert once != vkops_run("many.onnx", "--random", "--seed", "1", "-f", "N:3")
    assert len(once[0][1].split(", ")) == 1 + 6  # [3, 2] has a comma, too


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["none.onnx"], "none.onnx"),
        (["concat.onnx", "-f", "Q:3"], "dimension 'Q'"),
        (["concat.onnx", "-F", "Q:3"], "denotation 'Q'"),
        (["concat.onnx", "-b", "q:3"], "tensor 'q'"),
        (["concat.onnx", "-b", "x0:3,2"], "input 'x1'"),
        (["concat.onnx", "--input", "x.npy"], "x.npy"),
        (["concat.onnx", "--input", "q:x.npy"], "q:x.npy"),
        (["concat.onnx", "--input", "x0:x.npy"], "input 'x0'"),
        (["concat.onnx", "--output", "q:y.npy"], "q:y.npy"),
        (["many.onnx", "--output", "y.npy"], "y.npy"),
    ],
)  # fmt: skip
def test_errors_are_one_line(folder, vkops_run, arguments, named, message):
    np.save("x.npy", np.int64([[1, 2]]))
    lines, errors = vkops_run(*arguments, status=1)
    assert lines == []
    message(errors.removesuffix("\n"), *named.split())


def test_options_for_onnx_files_are_not_for_json(folder, capsys):
    (folder / "m.json").write_text(json.dumps(model()))
    assert main(["run", "m.json", "--random"]) == 1
    assert "--random are for .onnx files" in capsys.readouterr().err


def test_importing_vkops_does_not_import_onnx():
    code = "import sys, vkops, vkops.cli, vkops.dxdispatch; sys.exit('onnx' in sys.modules)"
    assert outcome("-c", code)[0] == 0
