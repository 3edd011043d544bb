"""A few thousand cases of the targets that need no device, the campaign, and how faults are found."""

import time

import numpy as np
import pytest
from fuzz import campaign as fuzzing
from fuzz import worker
from fuzz.__main__ import shares
from fuzz.target import Target, WrongResultError, require
from fuzz.targets import PURE, target_class
from onnx import TensorProto, helper
from onnx_models import PROTOBUF_IN_PYTHON, info, model
from refusals import fault

from vkops import dml
from vkops.errors import InvalidDescError, ModelError
from vkops.onnx import Model
from vkops.onnx.value_info import TensorType

pytestmark = pytest.mark.posix("alarms and limits of processes", tests_only=True)

CASES, ALL_CASES = 12_000, 1_000_000


@pytest.mark.parametrize(("name", "cases"), shares(PURE, CASES).items())
def test_nothing_but_right_results_and_errors_of_vkops(name, cases, tmp_path):
    assert fuzzing.clean_campaign(name, cases, tmp_path).counts["accepted"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cases"), shares(PURE, ALL_CASES).items())
def test_the_campaign(name, cases, tmp_path):
    fuzzing.clean_campaign(name, cases, tmp_path)


@pytest.mark.parametrize("name", PURE)
def test_what_once_went_wrong(name):
    fuzzing.replay_corpus(name)


# -- what it found, made small -----------------------------------------------------------------------


def one_node(operator, inputs=("x",), **attributes):
    node = helper.make_node(operator, inputs, ["y"], **attributes)
    return model([node], [info("x", np.zeros(3, np.float32))], ["y"])


def sparse(values, indices, dims):
    proto = one_node("Identity", ["s"])
    entry = proto.graph.sparse_initializer.add(dims=dims)
    entry.values.CopyFrom(values)
    entry.indices.CopyFrom(indices)
    entry.values.name = "s"
    return proto


def tensor(dims, values=(), kind=TensorProto.INT64):
    return TensorProto(dims=dims, data_type=kind, int64_data=values)


def type_that_is_none():
    proto = one_node("Identity")
    proto.graph.input[0].type.tensor_type.elem_type = 1000
    return proto


def output_that_nothing_makes():
    proto = one_node("Identity")
    proto.graph.output[0].name = "z"
    return proto


def attribute_whose_name_is_no_text():
    data = one_node("Identity", abcdefgh=1).SerializeToString()
    return data.replace(b"abcdefgh", b"abc\xff\xfffgh")


def two_functions_of_one_name():
    proto = one_node("f")
    proto.graph.node[0].domain = "d"
    proto.opset_import.add(domain="d", version=1)
    for _ in range(2):
        function = proto.functions.add(name="f", domain="d", input=["x"], output=["y"])
        function.opset_import.add(version=18)
    return proto


NO_TEXT = (
    "invalid start byte in field: onnx.AttributeProto.name"
    if PROTOBUF_IN_PYTHON  # which decodes all texts when it reads the model
    else "is not an attribute"
)

UNCHECKED = {
    "unknown name": (one_node("Identity", ["z"]), "inputs[0]: got 'z', which no earlier node makes"),
    "line break": (one_node("Spl\rit"), r"('Spl\rit'): vkops does not have"),
    "line break in attribute": (one_node("Identity", **{"a\vb": 1}), r"'a\x0bb': is not an attribute"),
    "index": (sparse(tensor([1], [7]), tensor([1], [9]), [3]), "'s': its values and indices do not fit"),
    "negative index": (sparse(tensor([1], [7]), tensor([1], [-1]), [3]), "indices must be 0 to 2"),
    "negative index of an axis": (sparse(tensor([1], [7]), tensor([1, 2], [0, -1]), [2, 3]), "indices must be 0 to 1, 0 to 2"),
    "index of an axis": (sparse(tensor([1], [7]), tensor([1, 2], [2, 0]), [2, 3]), "indices must be 0 to 1, 0 to 2"),
    "index that is no integer": (sparse(tensor([1], [7]), TensorProto(dims=[1], data_type=TensorProto.BOOL, int32_data=[1]), [1]), "'s': its values and indices do not fit"),
    "index of no dimensions": (sparse(tensor([1], [7]), tensor([], [1]), [3]), "got indices of shape (), must be (1,)"),
    "index of many": (sparse(tensor([0]), tensor([0, 2**31]), [3]), "got indices of shape (0, 2147483648)"),
    "dense size": (sparse(tensor([1], [7]), tensor([1], [1]), [2**40]), "2147483648 bytes at most"),
    "type": (sparse(tensor([1], [7], 0), tensor([1], [1]), [3]), "'s': got element type 0, which ONNX does not have"),
    "no type": (type_that_is_none(), "'x': got element type 1000, which ONNX does not have"),
    "no output": (output_that_nothing_makes(), "output 'z': no node makes it"),
    "no text": (attribute_whose_name_is_no_text(), NO_TEXT),
    "two functions": (two_functions_of_one_name(), "its functions: more than one is named 'f'"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNCHECKED)
def test_models_that_nobody_checked(name):
    made, text = UNCHECKED[name]
    assert text in fault(lambda: Model(made, check=False), ModelError)


def test_a_required_input_that_is_left_out():
    node = helper.make_node("Slice", ["x", "x", ""], ["y"])
    loaded = Model(model([node], [info("x", np.zeros(3, np.int64))], ["y"]), check=False)
    with pytest.raises(ModelError, match="ends: is missing"):
        loaded.lower({"x": TensorType(np.dtype(np.int64), (3,))}, {})


@pytest.mark.parametrize("count", [10**5000, -(10**5000)], ids=["more", "less"])
def test_numbers_that_python_does_not_print(count):
    desc = dml.BufferTensorDesc(dml.TensorDataType.INT8, [4])
    nodes = [dml.ElementWiseIdentityOperatorDesc(desc, desc)]
    for inputs, index in ((count, 0), (1, count)):
        edges = [dml.InputGraphEdgeDesc(0, index, 0)], [dml.OutputGraphEdgeDesc(0, 0, 0)]
        with pytest.raises(InvalidDescError, match="an integer of 16610 bits"):
            dml.GraphDesc(inputs, 1, nodes, *edges).validate()


# -- faults of every kind are found ----------------------------------------------------------------


class TwoLinesError(ModelError):
    def __str__(self):
        return "two\nlines"


class Faulty(Target):
    """Does what its input says."""

    name = "faulty"
    seconds = 1

    def make(self, random):
        return b"xx" + bytes([random.randrange(256)]) + b"xx"

    def check(self, data):
        if b"!" in data:
            raise KeyError("x")
        if b"?" in data:
            raise TwoLinesError
        if b"=" in data:
            require(False, "not the same")
        if b"~" in data:
            time.sleep(100)
        if b"." in data:
            raise ModelError("refused")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"!", KeyError),
        (b"?", WrongResultError),
        (b"=", WrongResultError),
        (b"~", worker.HangError),
    ],
)
def test_a_fault_is_told(data, kind):
    assert isinstance(worker.attempt(Faulty(), data), kind)
    assert worker.attempt(Faulty(), b"x") == "accepted"
    assert worker.attempt(Faulty(), b".") == "refused"


def test_a_worker_counts_and_ends_after_a_hang():
    told = []
    inputs = iter([b"x", b".", b"!", b"~", b"x"])
    target = Faulty()
    target.make = lambda random: next(inputs)
    worker.work(target, range(7, 12), told.append, bytearray(8))
    assert [line["number"] for line in told[:-1]] == [9, 10]
    assert told[-1]["counts"] == {"accepted": 1, "refused": 1, "faults": 2}
    assert next(inputs) == b"x"


def child(monkeypatch, code):
    """Let a campaign's child be other code, which is given a worker's arguments."""
    run = fuzzing.subprocess.Popen

    def start(command, **more):
        at = command.index("-m")
        return run([*command[:at], "-c", code, *command[at + 2 :]], **more)

    monkeypatch.setattr(fuzzing.subprocess, "Popen", start)


CRASH = """
import ctypes, json, struct, sys
name, first, count, folder = sys.argv[1:]
crashes = int(first) <= 3
with open(folder + "/at", "r+b") as at:
    at.write(struct.pack("q", 3 if crashes else int(first) + int(count) - 1))
if crashes:
    ctypes.string_at(0)
with open(folder + "/found", "a") as found:
    found.write('{"counts": {"accepted": %s}, "peak": 1024}\\n' % count)
"""


def test_a_crash_is_found_and_the_rest_is_tried(monkeypatch, tmp_path):
    child(monkeypatch, CRASH)
    report = fuzzing.campaign("descriptors", 10, out=tmp_path)
    (finding,) = report.findings.values()
    assert (finding.kind, finding.number) == ("crash (SIGSEGV)", 3)
    assert finding.file.read_bytes() == worker.made(target_class("descriptors")(), 3)
    assert f"python -m fuzz replay descriptors {finding.file}" in str(report)
    assert report.counts["accepted"] == 6


def test_a_case_that_no_signal_reaches_is_ended(monkeypatch, tmp_path):
    code = (
        "import signal, struct, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]);"
        "open(sys.argv[4] + '/at', 'r+b').write(struct.pack('q', 0)); import time; time.sleep(600)"
    )
    child(monkeypatch, code)
    monkeypatch.setattr(fuzzing, "SECONDS", 4)
    report = fuzzing.campaign("descriptors", 1, out=tmp_path)
    assert list(report.findings) == ["crash (SIGABRT)"]
