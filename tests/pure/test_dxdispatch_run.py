"""Runs on a device made of NumPy: what is dispatched, written, timed, and in which order."""

import json
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from vkops.dml import FeatureLevel
from vkops.dxdispatch import load_model, prepare
from vkops.errors import DeviceError, ModelError, OutOfDeviceMemoryError
from vkops.plan import execute
from vkops.runner import RunOptions, run


class FakeBuffer:
    def __init__(self, nbytes):
        self.nbytes = nbytes
        self.data = np.full(nbytes, 0xAA, np.uint8)

    def write(self, data, offset=0):
        assert offset + len(data) <= self.nbytes
        self.data[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    def read(self, offset=0, nbytes=None):
        end = self.nbytes if nbytes is None else offset + nbytes
        assert end <= self.nbytes
        return self.data[offset:end].tobytes()


class FakeOperator:
    def __init__(self, desc, device):
        self.desc, self.device, self.owned = desc, device, {}

    def initialize(self, inputs):
        self.owned = {i: x[0].data[x[1] :].copy() for i, x in enumerate(inputs) if x is not None}

    def bind(self, inputs, outputs):
        return SimpleNamespace(dispatch=partial(self.dispatch, inputs, outputs))

    def dispatch(self, inputs, outputs, progress):
        self.device.dispatches += 1
        if self.device.failure is not None:
            raise self.device.failure
        views = [
            self.owned[i] if x is None else x[0].data[x[1] : x[1] + x[2]]
            for i, x in enumerate(inputs)
        ]
        execute(self.desc.lower(), views, [b.data[o : o + n] for b, o, n in outputs])


class FakeDevice:
    name = "Fake"

    def __init__(self, failure=None):
        self.failure, self.dispatches = failure, 0

    def buffer(self, nbytes):
        if nbytes > 1 << 20:
            raise OutOfDeviceMemoryError(f"{nbytes} bytes are too many")
        return FakeBuffer(nbytes)

    def host_buffer(self, nbytes):
        if nbytes > 1 << 30:
            raise OutOfDeviceMemoryError(f"{nbytes} bytes are too many for the host")
        return FakeBuffer(nbytes)

    def create_operator(self, desc):
        return desc

    def compile_operator(self, operator, flags):
        return FakeOperator(operator, self)


@pytest.fixture
def run_model(tmp_path, monkeypatch, capsys):
    """Run a model given as Python objects; return what it printed on either stream."""
    monkeypatch.chdir(tmp_path)

    def run_model(model, device=None, **options):
        Path("m.json").write_text(json.dumps(model))
        prepared = prepare(load_model("m.json"), FeatureLevel.LATEST)
        try:
            run(prepared, device or FakeDevice(), RunOptions(**options))
        finally:
            run_model.seen = capsys.readouterr()
        return run_model.seen

    return run_model


def resource(data_type, initial, **more):
    return {"initialValuesDataType": data_type, "initialValues": initial, **more}


def printing(verbose=False, **resources):
    commands = [{"type": "print", "resource": name, "verbose": verbose} for name in resources]
    return {"resources": resources, "dispatchables": {}, "commands": commands}


def tensor(*sizes, **more):
    return {"DataType": "INT32", "Sizes": list(sizes), **more}


ROTATE = {  # one step of a rotation: the first element goes to the end
    "resources": {
        "A": resource("INT32", [1, 2, 3, 4, 5, 6, 7, 8]),
        "B": resource("INT32", [0] * 8),
    },
    "dispatchables": {
        "rotate": {
            "type": "SLICE1",
            "InputTensor": tensor(8),
            "OutputTensor": tensor(8),
            "InputWindowOffsets": [0],
            "InputWindowSizes": [8],
            "InputWindowStrides": [-1],
        }
    },
    "commands": [
        {
            "type": "dispatch",
            "dispatchable": "rotate",
            "bindings": {"InputTensor": "A", "OutputTensor": "B"},
        },
        {"type": "print", "resource": "B"},
    ],
}


def test_write_file(run_model, tmp_path):
    model = {
        "resources": {
            "A": resource("FLOAT16", [1, 2, 3]),
            "B": resource("INT32", [1, 2, 3, 4, 5, 6]),
        },
        "dispatchables": {},
        "commands": [
            {"type": "writeFile", "resource": "A", "targetPath": "new/folder/a.npy"},
            {"type": "writeFile", "resource": "A", "targetPath": "a.dat"},
            {"type": "writeFile", "resource": "B", "targetPath": "b.NPY", "dimensions": [2, 3]},
            {"type": "writeFile", "resource": "B", "targetPath": "part.npy", "dimensions": [1]},
            {"type": "writeFile", "resource": "B", "targetPath": "scalar.npy", "dimensions": []},
        ],
    }
    seen = run_model(model)
    assert seen.err == ""
    assert seen.out.splitlines()[:2] == [
        f"Resource 'A' written to '{tmp_path}/new/folder/a.npy'",
        f"Resource 'A' written to '{tmp_path}/a.dat'",
    ]
    assert np.load("new/folder/a.npy").tolist() == [1, 2, 3, 0]  # the padding belongs to it
    assert (
        Path("new/folder/a.npy")
        .read_bytes()
        .startswith(
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f2', 'fortran_order': False, 'shape': (4,), }"
        )
    )
    assert Path("a.dat").read_bytes() == np.array([1, 2, 3, 0], "<f2").tobytes()
    assert np.load("b.NPY").tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.load("part.npy").tolist() == [1]
    assert np.load("scalar.npy").tolist() == 1


def test_a_failing_write_is_told_and_the_run_goes_on(run_model, tmp_path):
    Path("file").write_bytes(b"x")
    model = printing(A=resource("INT32", [1]))
    model["commands"].insert(
        0, {"type": "writeFile", "resource": "A", "targetPath": "file/below.bin"}
    )
    seen = run_model(model)
    assert seen.err == (
        f"Failed to write resource to file '{tmp_path}/file/below.bin': File exists\n"
    )
    assert seen.out == "Resource 'A': 1\n"


def test_memory_past_the_data_is_zero(run_model):
    model = printing(A=resource("INT32", [1], sizeInBytes=10))
    model["commands"] = [{"type": "writeFile", "resource": "A", "targetPath": "a.bin"}]
    run_model(model)
    assert Path("a.bin").read_bytes() == b"\x01" + bytes(9)


def test_dispatch_line(run_model):
    lines = run_model(ROTATE).out.splitlines()
    assert lines[0] == "Compile Op"
    assert re.fullmatch(r"Dispatch 'rotate': 1 iterations, \d+\.\d{4} ms median \(CPU\)", lines[1])
    assert lines[2:] == ["Resource 'B': 8, 7, 6, 5, 4, 3, 2, 1"]


def test_timing_verbosity(run_model):
    ms = r"\d+\.\d{4} ms"
    device = FakeDevice()
    seen = run_model(
        ROTATE, device, timing_verbosity=2, dispatch_iterations=4, dispatch_repeat=3,
        warmup_samples=2,
    ).out.splitlines()  # fmt: skip
    assert device.dispatches == 12
    statistics = rf"{ms} average, {ms} min, {ms} median, {ms} max"
    expected = [
        "Compile Op",
        rf"Initialize 'rotate': {ms}",
        "Dispatch 'rotate': 4 iterations",
        rf"CPU Timings \(Cold\) : 2 samples, {statistics}",
        rf"CPU Timings \(Hot\)  : 2 samples, {statistics}",
        "The timings of each iteration: ",
        *(rf"iteration {i}: {ms} \(CPU\)" for i in range(4)),
        "Resource 'B': .*",
    ]
    assert len(seen) == len(expected)
    for line, pattern in zip(seen, expected, strict=True):
        assert re.fullmatch(pattern, line)


def test_no_iterations_no_line(run_model):
    device = FakeDevice()
    seen = run_model(ROTATE, device, dispatch_iterations=0).out.splitlines()
    assert device.dispatches == 0
    assert seen == ["Compile Op", "Resource 'B': " + ", ".join("0" * 8)]


def test_time_limit_and_interval(run_model):
    device = FakeDevice()
    run_model(ROTATE, device, milliseconds_to_run=60, dispatch_interval=20)
    assert 1 <= device.dispatches <= 4  # at 0, 20, 40 and perhaps 60 ms
    device = FakeDevice()
    run_model(ROTATE, device, milliseconds_to_run=0)
    assert device.dispatches == 1


def test_print_commands(run_model):
    model = {**ROTATE, "commands": [{"resource": "A", "type": "print", "more": [1.5, None, "é"]}]}
    assert run_model(model, print_commands=True).out.split("\n")[1:] == [
        '[StartCmd][   0]\t: {"resource":"A","type":"print","more":[1.5,null,"é"]}',
        "Resource 'A': 1, 2, 3, 4, 5, 6, 7, 8",
        "[EndCmd][   0]\t: hr=0x0        ",
        "",
        "",
    ]


def test_print_commands_tells_of_failure(run_model):
    with pytest.raises(ModelError) as caught:
        run_model(ROTATE, FakeDevice(DeviceError("lost\nthe device")), print_commands=True)
    assert str(caught.value) == "Failed to execute dispatchable: lost the device"
    end = "hr=0x80004005 Failed to execute dispatchable: lost the device"
    assert f"[EndCmd][   0]\t: {end}\n\n" in run_model.seen.out


def test_resources_keep_their_content_between_commands(run_model):
    back = {
        "type": "dispatch",
        "dispatchable": "rotate",
        "bindings": {"InputTensor": "B", "OutputTensor": "A"},
    }
    model = {**ROTATE, "commands": [*ROTATE["commands"], back, {"type": "print", "resource": "A"}]}
    assert run_model(model).out.splitlines()[-1] == "Resource 'A': 1, 2, 3, 4, 5, 6, 7, 8"


def test_owned_inputs_are_taken_at_initialisation(run_model):
    rotate = {
        **ROTATE["dispatchables"]["rotate"],
        "InputTensor": tensor(8, Flags="OWNED_BY_DML"),
        "dmlCompileType": "DmlCompileGraph",
        "bindings": {"InputTensor": "A"},
    }
    dispatch = {"type": "dispatch", "dispatchable": "rotate", "bindings": {"OutputTensor": "B"}}
    commands = [dispatch, {"type": "print", "resource": "B"}]
    seen = run_model({**ROTATE, "dispatchables": {"rotate": rotate}, "commands": commands}).out
    assert seen.startswith("Compiling op using IDMLDevice1::CompileGraph\n")
    assert seen.endswith("Resource 'B': 8, 7, 6, 5, 4, 3, 2, 1\n")


def test_what_does_not_fit_fails_before_any_value_is_made(run_model):
    model = printing(A=resource("FLOAT64", {"value": 0, "valueCount": 2**30}))
    with pytest.raises(
        OutOfDeviceMemoryError, match=r'^"A": 8589934592 bytes are too many for the host$'
    ):
        run_model(model)


def test_what_does_not_fit_on_the_device_stays_on_the_host(run_model):
    out, _ = run_model(printing(A=resource("UINT8", {"value": 7, "valueCount": 2**21})))
    assert out.count(" 7") == 2**21


def test_errors_of_the_device_are_placed(run_model):
    class Refusing(FakeDevice):
        def create_operator(self, desc):
            raise DeviceError("no")

    with pytest.raises(ModelError, match=r"^ERROR creating dispatchable 'rotate': no$"):
        run_model(ROTATE, Refusing())

    class Late(FakeDevice):
        def compile_operator(self, operator, flags):
            raise DeviceError("late")

    with pytest.raises(ModelError, match=r"^ERROR while initializing 'rotate': late$"):
        run_model(ROTATE, Late())
