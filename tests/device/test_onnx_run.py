"""``vkops run`` on ONNX models: .onnx files, and ``onnx`` dispatchables of DxDispatch models."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
import pytest
from adapters import memory_used, wanted

import vkops
from vkops.cli import main
from vkops.errors import DeviceError, ModelError
from vkops.onnx import Model, Session, backend

CONCAT = """<ir_version: 8, opset_import: ["" : 13]>
both (float[N, 2] x0, float[N, 2] x1) => (float[M, 2] y) { y = Concat <axis = 0> (x0, x1) }"""

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
        first, *lines = out.splitlines()
        assert first == f"Running on '{adapter}'"
        return [re.sub(r"\d+\.\d{4} ms", "T ms", line) for line in lines], seen.err

    return run


def values(start, count):
    return {
        "initialValuesDataType": "FLOAT32",
        "initialValues": {"valueStart": start, "valueDelta": 1, "valueCount": count},
    }


def bound(name, *shape):
    return {"name": name, "shape": list(shape)}


def model(*commands, **resources):
    """A DxDispatch model around concat.onnx; commands are bindings, or names to print."""
    return {
        "resources": {
            "a": values(1, 6),
            "b": values(7, 6),
            "c": {**values(0, 12), "initialValues": {"value": 0, "valueCount": 12}},
            "later": {"initialValuesDataType": "FLOAT32", "initialValues": "deferred"},
            **resources,
        },
        "dispatchables": {"concat": {"type": "onnx", "sourcePath": "concat.onnx"}},
        "commands": [
            {"type": "print", "resource": command}
            if isinstance(command, str)
            else command
            if "type" in command
            else {"type": "dispatch", "dispatchable": "concat", "bindings": command}
            for command in commands
        ],
    }


def test_each_dispatch_has_its_own_shapes(folder, vkops_run):
    """Each binding has its shape; larger resources keep the rest; deferred ones take any shape."""
    small = {"x0": bound("a", 1, 2), "x1": bound("b", 1, 2), "y": bound("c", 2, 2)}
    large = {"x0": bound("a", 3, 2), "x1": bound("b", 3, 2), "y": "c"}
    write = {"type": "writeFile", "resource": "later", "targetPath": "later.npy"}
    made = model(small, "c", large, "c", {**large, "y": "later"}, "later", write)
    lines, errors = vkops_run(made)
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
    np.testing.assert_array_equal(
        np.load("later.npy"), np.arange(1, 13, dtype=np.float32).reshape(6, 2)
    )


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
    made = model({"x0": "a", "x1": "b", "y": "later"}, "later")
    made["dispatchables"]["concat"]["freeDimensionNameOverrides"] = {"N": 2}
    assert vkops_run(made)[0][-1] == "Resource 'later': 1, 2, 3, 4, 7, 8, 9, 10"
    assert vkops_run("m.json", "-f", "N:1")[0][-1] == "Resource 'later': 1, 2, 7, 8"
    shapes = ("-b", "x0:1,2", "-b", "x1:2,2")
    assert vkops_run("m.json", *shapes, status=1)[1].endswith(
        "input 'x1': got shape (2, 2), must be (N, 2), N being 1\n"
    )


def test_bindings_are_printed(vkops_run):
    lines, _ = vkops_run(model({"x0": bound("a", 1, 2), "y": "later"}), "-p")
    assert lines[:-1] == [
        "Input Tensor 'x0':",
        "  Resource  = explicit (Vulkan)",
        "  Data Type = FLOAT",
        "  Shape     = [1,2]",
        "",
        "Input Tensor 'x1':",
        "  Resource  = implicit (Vulkan)",
        "  Data Type = FLOAT",
        "  Shape     = [1,2]",
        "",
        "Output Tensor 'y':",
        "  Resource  = deferred (Vulkan)",
        "  Data Type = FLOAT",
        "  Shape     = [2,2]",
        "",
    ]


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
    assert lines[1:] == ["Outputs written to 'out/all.npz'", "b written to 'b.npy'"]
    with np.load("out/all.npz") as made:
        assert {name: array.tolist() for name, array in made.items()} == {
            "a": [[0, 1], [4, 5]],
            "b": [[2, 3], [6, 7]],
            "f": [False] * 6,
            "w": ["a", "bc", "a", "bc"],
        }
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
    with np.load("out.npz") as made:
        found = {name: array.tolist() for name, array in made.items() if name != "allow_pickle"}
        assert found == {"file": [1, 2], "s[0]": [1], "s[1]": [2], "s[2]": [1, 2]}
        brain = made["allow_pickle"].view(ml_dtypes.bfloat16)
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
        (["concat.onnx", "--input", "x0:many.onnx"], "x0:many.onnx"),
        (["concat.onnx", "--input", "x0:x.npy"], "input 'x0'"),
        (["concat.onnx", "--output", "y.txt"], "y.txt"),
        (["concat.onnx", "--output", "q:y.npy"], "q:y.npy"),
        (["many.onnx", "--output", "y.npy"], "y.npy"),
        (["sizes.onnx", "-f", "N:3"], "node 0, which makes 'y' (Reshape-13) shape[1]"),
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


# -- sessions --------------------------------------------------------------------------------------


def opened(text, device):
    return Session(onnx.parser.parse_model(text), device)


def test_a_graph_is_one_submission_without_intermediate_memory(device):
    text = """<ir_version: 8, opset_import: ["" : 18]>
    chain (float[64, 64] x) => (float[64, 64] y) {
      a, b = Split <axis = 0, num_outputs = 2> (x)
      c = Transpose (a)
      d = Transpose (b)
      e = Concat <axis = 1> (d, c)
      f = Transpose (e)
      y = Identity (f)
    }"""
    session = opened(text, device)
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    given = {"x": device.tensor(x)}
    (plan,) = session.specialize(given).plans
    assert [len(output.regions) for output in plan.outputs] == [2]
    before = memory_used(device)
    (y,) = session.run(given)
    assert memory_used(device) - before <= y.nbytes + 256
    np.testing.assert_array_equal(y.numpy(), np.concatenate([x[32:], x[:32]]))


def test_a_graph_of_too_many_regions_runs_in_stages(device):
    """Interleaving again and again: more submissions, the same result."""
    lines = []
    for i in range(12):
        lines += [
            f"e{i} = Slice (x{i}, zero, end, axis, two)",
            f"o{i} = Slice (x{i}, one, end, axis, two)",
            f"u{i} = Unsqueeze (o{i}, last)",
            f"v{i} = Unsqueeze (e{i}, last)",
            f"w{i} = Concat <axis = 1> (u{i}, v{i})",
            f"p{i} = Transpose (w{i})",
            f"x{i + 1} = Reshape (w{i}, flat)" if i % 2 else f"x{i + 1} = Reshape (p{i}, flat)",
        ]
    body = "\n".join(lines)
    text = f"""<ir_version: 8, opset_import: ["" : 13]>
    mixed (int16[8192] x0) => (int16[N] y) <int64[1] zero = {{0}}, int64[1] one = {{1}},
      int64[1] two = {{2}}, int64[1] axis = {{0}}, int64[1] last = {{1}}, int64[1] flat = {{-1}},
      int64[1] end = {{100000}}> {{ {body} y = Identity (x12) }}"""
    session = opened(text, device)
    x = np.arange(8192, dtype=np.int16)
    (y,) = session.run({"x0": x})
    for i in range(12):
        pair = np.stack([x[1::2], x[::2]], axis=1)
        x = pair.reshape(-1) if i % 2 else pair.T.reshape(-1)
    np.testing.assert_array_equal(y.numpy(), x)


def test_specialisations_are_kept_and_bounded(device):
    session = opened(CONCAT, device)
    for rows in range(1, 101):
        x = np.ones((rows, 2), np.float32)
        (y,) = session.run({"x0": x, "x1": x})
        assert y.shape == (2 * rows, 2)
    once = session.specialize({"x0": x, "x1": x})
    assert session.specialize({"x0": x, "x1": x}) is once
    assert len(session._specializations) == 64


def test_constants_are_on_the_device_once(device):
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[N] x) => (float[M] y) { y = Concat <axis = 0> (x, weights) }"""
    proto = onnx.parser.parse_model(text)
    weights = np.arange(1 << 18, dtype=np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    session = Session(Model(proto), device)
    before = memory_used(device)
    for n in range(1, 20):
        (y,) = session.run({"x": np.zeros(n, np.float32)})
        np.testing.assert_array_equal(y.numpy()[n:], weights)
        del y
    assert memory_used(device) - before < 2 * weights.nbytes
    del session, proto
    assert memory_used(device) == before


def test_results_on_the_device_can_be_inputs(device):
    session = opened(CONCAT, device)
    x = np.float32([[1, 2]])
    (once,) = session.run({"x0": x, "x1": x})
    (twice,) = session.run({"x0": once, "x1": once})
    assert isinstance(twice, vkops.Tensor)
    np.testing.assert_array_equal(twice.numpy(), np.float32([[1, 2]] * 4))


PASSED_ON = """<ir_version: 8, opset_import: ["" : 18]>
g (float[4] x) => (float[4] y, float[4] c, float[4] t, float[4] u) <float[4] w = {1, 2, 3, 4},
    int64[1] s = {-1}, int64[1] e = {-9999}, int64[1] a = {0}> {
  y = Identity (x)
  c = Identity (w)
  t = Slice (x, s, e, a, s)
  u = Identity (t)
}"""


def test_outputs_do_not_share_memory(device):
    session = opened(PASSED_ON, device)
    x = device.tensor(np.float32([5, 6, 7, 8]))
    results = session.run({"x": x})
    for result in results:
        result[...] = 0
    assert x.numpy().tolist() == [5, 6, 7, 8]
    again = [result.numpy().tolist() for result in session.run({"x": x})]
    assert again == [[5, 6, 7, 8], [1, 2, 3, 4], [8, 7, 6, 5], [8, 7, 6, 5]]


def test_targets_that_are_inputs_or_each_other(device):
    session = opened(PASSED_ON, device)
    x = device.tensor(np.float32([5, 6, 7, 8]))
    results = session.run({"x": x}, targets={2: x})
    assert results[2] is x
    assert [r.numpy().tolist() for r in results[2:]] == [[8, 7, 6, 5]] * 2
    made = device.tensor(np.zeros(4, np.float32))
    y, _, t, u = session.run({"x": np.float32([1, 2, 3, 4])}, targets={3: made})
    assert [r.numpy().tolist() for r in (y, t, u)] == [[1, 2, 3, 4], [4, 3, 2, 1], [4, 3, 2, 1]]
    assert t.buffer is not u.buffer


def test_targets_that_are_views(device):
    """Results are written to the tensors that targets are views of, an input's included."""
    session = opened(PASSED_ON, device)
    x = device.tensor(np.float32([5, 6, 7, 8]))
    base = device.tensor(np.zeros((4, 3), np.float32))
    session.run({"x": x[::-1]}, targets={0: base[:, 1], 2: x[:]})
    assert base.numpy()[:, 1].tolist() == [8, 7, 6, 5]
    assert x.numpy().tolist() == [5, 6, 7, 8]
    assert not base.numpy()[:, [0, 2]].any()


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({4: np.zeros(4, "f4")}, "targets: got output 4, must be 0 to 3"),
        ({0: np.zeros(3, "f4")}, "targets[0]: is float32 (3,), must be float32 (4,)"),
        ({0: np.zeros(4, "i4")}, "targets[0]: is int32 (4,), must be float32 (4,)"),
        ({0: None}, "targets[0]: got None, must be a vkops.Tensor by the index of an output"),
        ([], "targets: got [], must be a dict of tensors by index"),
    ],
)
def test_targets_that_do_not_fit(device, targets, message):
    if isinstance(targets, dict):
        targets = {
            n: array if array is None else device.tensor(array) for n, array in targets.items()
        }
    with pytest.raises(ModelError) as caught:
        opened(PASSED_ON, device).run({"x": np.zeros(4, np.float32)}, targets=targets)
    assert str(caught.value) == message


def test_targets_of_empty_outputs(device):
    target = device.tensor(np.zeros((0, 2), np.float32))
    empty = np.zeros((0, 2), np.float32)
    (y,) = opened(CONCAT, device).run({"x0": empty, "x1": empty}, targets={0: target})
    assert y is target


TWO = """<ir_version: 8, opset_import: ["" : 18]>
two (float[N] x) => (float[K] a, float[M] b) { a, b = Split <num_outputs = 2> (x) }"""


def test_tensors_between_stages_are_freed_when_nothing_reads_them_any_more(adapter, monkeypatch):
    """64 tensors of 256 KiB, each made of the one before by itself, on a device of 2 MiB."""
    for name in ("MAX_STEPS", "STEPS_PER_REGION"):  # no tensor is composed
        monkeypatch.setattr(f"vkops.plan.graph.{name}", 0)
    monkeypatch.setattr("vkops.gpu.memory.heaps.FIRST_HEAP", 1 << 18)
    nodes = "".join(
        f"a{i}, b{i} = Split <axis = 0, num_outputs = 2> (x{i})\n"
        f"x{i + 1} = Concat <axis = 0> (b{i}, a{i})\n"
        for i in range(64)
    )
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    turns (float[65536] x0) => (float[65536] x64, float[65536] x1) {{ {nodes} }}"""
    x = np.arange(65536, dtype=np.float32)
    with vkops.Device(adapter.index) as device:
        memory = device.executor.memory
        memory._available = lambda: (2 << 20) - memory.reserved
        session = opened(text, device)
        assert len(session.specialize({"x0": x}).plans) > 64
        last, first = session.run({"x0": x})
        assert (last.numpy() == x).all()
        assert (first.numpy() == np.roll(x, 32768)).all()


def test_sessions_take_the_calling_convention_of_onnx_runtime(device, tmp_path):
    onnx.save(onnx.parser.parse_model(TWO), tmp_path / "two.onnx")
    session = Session(tmp_path / "two.onnx", device)
    feed = {"x": np.float32([1, 2, 3])}

    def run(*arguments, **more):
        return [result.numpy().tolist() for result in session.run(*arguments, **more)]

    everything = [[1, 2], [3]]
    for arguments in ((feed,), (None, feed), ([], feed), (["a", "b"], feed), (None, feed, None)):
        assert run(*arguments) == everything
    assert run(output_names=["b"], input_feed=feed) == [[3]]
    assert run(("b", "a"), feed) == [[3], [1, 2]]
    assert [(e.name, e.shape, e.type) for e in session.get_inputs()] == [
        ("x", ["N"], "tensor(float)")
    ]
    assert [entry.name for entry in session.get_outputs()] == ["a", "b"]
    assert Session(onnx.parser.parse_model(TWO)).device is Session(tmp_path / "two.onnx").device


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "input_feed: got None, must be a dict of arrays by input name"),
        (([1, 2],), "input_feed: got [1, 2], must be a dict of arrays by input name"),
        ((None, [1, 2]), "input_feed: got [1, 2], must be a dict of arrays by input name"),
        (("a", {"x": [1]}), "output_names: got 'a', must be a list of names, or None"),
        ((["a", "c"], {"x": [1]}), "output_names[1]: got 'c', the model has 'a', 'b'"),
        (([None], {"x": [1]}), "output_names[0]: got None, the model has 'a', 'b'"),
        (({"x": [1]}, 3), "progress: got 3, must be a function or None"),
        ((None, {"x": None}), "input 'x': got None, must be a tensor"),
        ((None, {1: [1]}), "input 1: the model has no such input; it has 'x'"),
    ],
)
def test_wrong_arguments_of_run_are_refused(device, arguments, message):
    with pytest.raises(ModelError) as caught:
        opened(TWO, device).run(*arguments)
    assert str(caught.value) == message


def test_devices_and_inputs_of_the_wrong_kind(device):
    with pytest.raises(vkops.InvalidDescTypeError) as caught:
        opened(TWO, 0.5)
    assert str(caught.value) == (
        "device: got 0.5, must be a Device, the index of an adapter, or part of its name [B-02]"
    )
    assert opened(TWO, device.name).device.info == device.info
    with pytest.raises(ModelError) as caught:
        opened(TWO, device).specialize(None)
    assert str(caught.value) == "inputs: got None, must be a dict of arrays by input name"


def test_the_backend_refuses_when_it_prepares():
    proto = onnx.parser.parse_model(
        TWO.replace("a, b = Split <num_outputs = 2> (x)", "a = Add (x, x) b = Identity (x)")
    )
    with pytest.raises(ModelError, match="A: depends on graph input 'x'; vkops moves data"):
        backend.prepare(proto)
    assert not backend.is_compatible(proto)


# -- the backend -----------------------------------------------------------------------------------


def test_backend_devices():
    infos = vkops.devices()
    assert backend.supports_device("VULKAN")
    assert all(backend.supports_device(f"VULKAN:{info.index}") for info in infos)
    assert backend.supports_device("CPU") == any(info.type == "CPU" for info in infos)
    for device in ("CUDA", "VULKAN:99", "VULKAN:x", "VULKAN:" + "9" * 5000, "CPU:1", "", 1, None):
        assert not backend.supports_device(device)
        with pytest.raises(DeviceError, match=r"no device .*; available: VULKAN, VULKAN:0 "):
            backend.prepare(onnx.parser.parse_model(CONCAT), device)


def test_backend_takes_inputs_in_order_by_name_and_with_defaults():
    text = """<ir_version: 8, opset_import: ["" : 13]>
    with_default (float[2] a, float[2] b) => (float[4] y) <float[2] b = {3, 4}> {
      y = Concat <axis = 0> (a, b)
    }"""
    rep = backend.prepare(onnx.parser.parse_model(text))
    a, b = np.float32([1, 2]), np.float32([5, 6])
    assert rep.run(a).y.tolist() == [1, 2, 3, 4]
    assert rep.run([a, b]).y.tolist() == [1, 2, 5, 6]
    assert rep.run({"b": b, "a": a})[0].tolist() == [1, 2, 5, 6]
    with pytest.raises(ModelError, match="got 3 inputs, must be 2"):
        rep.run([a, b, b])
    with pytest.raises(ModelError, match="input 'a': is missing"):
        rep.run({"b": b})


def test_backend_run_model_and_is_compatible():
    model = onnx.parser.parse_model(CONCAT)
    x = np.float32([[1, 2]])
    (y,) = backend.run_model(model, [x, x])
    assert y.tolist() == [[1, 2], [1, 2]]
    y[0, 0] = 7  # it is the caller's own
    assert backend.is_compatible(model)
    other = onnx.parser.parse_model(CONCAT.replace("Concat <axis = 0>", "Add"))
    other.graph.node[0].op_type = "Max"
    assert not backend.is_compatible(other)


def test_backend_run_node():
    node = onnx.helper.make_node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2)
    a, b = backend.run_node(node, [np.arange(3)], opset_version=18)
    assert (a.tolist(), b.tolist()) == ([0, 1], [2])
    node = onnx.helper.make_node("Split", ["x"], ["a", "b"], axis=0)
    assert backend.run_node(node, {"x": np.arange(4)}, opset_version=13).b.tolist() == [2, 3]
    node = onnx.helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)
    parts = [np.float32([1]), np.float32([2, 3])]
    assert backend.run_node(node, [parts]).y.tolist() == [1, 2, 3]
    node = onnx.helper.make_node("Identity", ["s"], ["y"])
    assert backend.run_node(node, [[]]).y == []
    with pytest.raises(ModelError, match="inputs: got 0 inputs, must be 1: "):
        backend.run_node(node, [])


def test_importing_vkops_does_not_import_onnx():
    code = "import sys, vkops, vkops.cli, vkops.dxdispatch; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
