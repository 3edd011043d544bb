"""Runs on a device made of NumPy: what is dispatched, written, timed and printed, in which order."""

import copy
import json
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from models import SPLIT, dispatch, model, resource, zeros
from refusals import fault

from vkops import console
from vkops.cli import main
from vkops.dml import FeatureLevel
from vkops.dxdispatch import load_model, prepare
from vkops.errors import DeviceError, ModelError, OutOfDeviceMemoryError
from vkops.plan import execute
from vkops.runner import printed_values
from vkops.runner.dispatch_timing import RunOptions, report
from vkops.runner.model_execution import run
from vkops.runner.printed_values import MAX_SHAPED_VALUES, format_values, shaped, text_of


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

    def __init__(self, failure=None, device_times=()):
        self.failure, self.dispatches = failure, 0
        self.device_times = iter(device_times)

    def buffer(self, nbytes, most=1 << 20, where=""):
        if nbytes > most:
            raise OutOfDeviceMemoryError(f"{nbytes} bytes are too many{where}")
        return FakeBuffer(nbytes)

    def host_buffer(self, nbytes):
        return self.buffer(nbytes, 1 << 30, " for the host")

    def synchronize(self):
        pass

    def measure_dispatches(self):
        return lambda: next(self.device_times, None)

    def create_operator(self, desc):
        return desc

    def compile_operator(self, operator, flags):
        return FakeOperator(operator, self)


@pytest.fixture
def run_model(tmp_path, monkeypatch, capsys):
    """Run a model given as Python objects; return what it printed on either stream."""
    monkeypatch.chdir(tmp_path)

    def run_model(made, device=None, **options):
        Path("m.json").write_text(json.dumps(made))
        prepared = prepare(load_model("m.json"), FeatureLevel.LATEST)
        try:
            run(prepared, device or FakeDevice(), RunOptions(**options))
        finally:
            run_model.seen = capsys.readouterr()
        return run_model.seen

    return run_model


def printing(verbose=False, **resources):
    commands = [{"type": "print", "resource": name, "verbose": verbose} for name in resources]
    return model(resources, {}, *commands)


def writing(name, target, **more):
    return {"type": "writeFile", "resource": name, "targetPath": target, **more}


def tensor(*sizes, **more):
    return {"DataType": "INT32", "Sizes": list(sizes), **more}


PRINT_B = {"type": "print", "resource": "B"}
ROTATE = model(  # one step of a rotation: the first element goes to the end
    {"A": resource("INT32", [1, 2, 3, 4, 5, 6, 7, 8]), "B": zeros(8, "INT32")},
    {"rotate": {
        "type": "SLICE1", "InputTensor": tensor(8), "OutputTensor": tensor(8),
        "InputWindowOffsets": [0], "InputWindowSizes": [8], "InputWindowStrides": [-1],
    }},
    dispatch("rotate", InputTensor="A", OutputTensor="B"),
    PRINT_B,
)  # fmt: skip


def test_write_file(run_model, tmp_path):
    data = model(
        {
            "A": resource("FLOAT16", [1, 2, 3]),
            "B": resource("INT32", [1, 2, 3, 4, 5, 6]),
            "C": resource("INT32", [1], sizeInBytes=10),
        },
        {},
        writing("A", "new/folder/a.npy"),
        writing("A", "a.dat"),
        writing("B", "b.NPY", dimensions=[2, 3]),
        writing("B", "part.npy", dimensions=[1]),
        writing("B", "scalar.npy", dimensions=[]),
        writing("C", "c.bin"),
    )
    seen = run_model(data)
    assert seen.err == ""
    assert seen.out.splitlines()[:2] == [
        f"Resource 'A' written to '{tmp_path / 'new' / 'folder' / 'a.npy'}'",
        f"Resource 'A' written to '{tmp_path / 'a.dat'}'",
    ]
    assert np.load("new/folder/a.npy").tolist() == [1, 2, 3, 0]  # the padding belongs to it
    header = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f2', 'fortran_order': False, 'shape': (4,), }"
    assert Path("new/folder/a.npy").read_bytes().startswith(header)
    assert Path("a.dat").read_bytes() == np.array([1, 2, 3, 0], "<f2").tobytes()
    assert np.load("b.NPY").tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.load("part.npy").tolist() == [1]
    assert np.load("scalar.npy").tolist() == 1
    assert Path("c.bin").read_bytes() == b"\x01" + bytes(9)


def test_a_failing_write_is_reported_and_the_run_continues(run_model, tmp_path):
    Path("file").write_bytes(b"x")
    data = printing(A=resource("INT32", [1]))
    data["commands"].insert(0, writing("A", "file/below.bin"))
    with pytest.raises(FileExistsError) as caught:
        Path("file").mkdir()
    exists = caught.value.strerror
    failed = f"Failed to write resource to file '{tmp_path / 'file' / 'below.bin'}': {exists}\n"
    assert run_model(data) == ("Resource 'A': 1\n", failed)


def timed(text):
    """The lines of a text, with T in place of times."""
    return re.sub(r"\d+\.\d{4} ms", "T ms", text).splitlines()


def test_timing_verbosity(run_model):
    device = FakeDevice()
    options = {"dispatch_iterations": 4, "dispatch_repeat": 3, "warmup_samples": 2}
    statistics = "2 samples, T ms average, T ms min, T ms median, T ms max"
    *lines, last = timed(run_model(ROTATE, device, timing_verbosity=2, **options).out)
    assert device.dispatches == 12
    assert lines == [
        "Compile Op",
        "Initialize 'rotate': T ms",
        "Dispatch 'rotate': 4 iterations",
        f"CPU Timings (Cold) : {statistics}",
        f"CPU Timings (Hot)  : {statistics}",
        "The timings of each iteration: ",
        *(f"iteration {i}: T ms (CPU)" for i in range(4)),
    ]
    assert last.startswith("Resource 'B': ")


def test_times_that_the_device_measured(run_model):
    def run(**options):
        device = FakeDevice(device_times=[3, 1, 2, 4])
        return run_model(ROTATE, device, dispatch_iterations=4, **options).out

    times = "4 iterations, T ms median (CPU), 2.000000 ms median (GPU)"
    assert timed(run())[1] == f"Dispatch 'rotate': {times}"
    options = {"timing_verbosity": 2, "warmup_samples": 2, "max_gpu_time_measurements": 3}
    seen = run(**options).splitlines()
    expected = [
        "GPU Timings (Cold) : 1 samples, 1.0000 ms average, 1.0000 ms min, 1.0000 ms median, "
        "1.0000 ms max",
        "GPU Timings (Hot)  : 2 samples, 3.0000 ms average, 2.0000 ms min, 4.0000 ms median, "
        "4.0000 ms max",
        "GPU samples buffer has 1 samples overwritten.",
    ]
    assert [line for line in seen if line.startswith("GPU")] == expected
    iterations = [line for line in seen if line.startswith("iteration")]
    assert [line.partition("(CPU)")[2] for line in iterations] == [
        "", ", 1.0000 ms (GPU)", ", 2.0000 ms (GPU)", ", 4.0000 ms (GPU)"
    ]  # fmt: skip
    assert "GPU" not in run(max_gpu_time_measurements=0)


def test_without_iterations_no_times_are_printed(run_model):
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
    data = {**ROTATE, "commands": [{"resource": "A", "type": "print", "more": [1.5, None, "é"]}]}
    assert run_model(data, print_commands=True).out.split("\n")[1:] == [
        '[StartCmd][   0]\t: {"resource":"A","type":"print","more":[1.5,null,"é"]}',
        "Resource 'A': 1, 2, 3, 4, 5, 6, 7, 8",
        "[EndCmd][   0]\t: hr=0x0        ",
        "",
        "",
    ]


def test_print_commands_reports_failure(run_model):
    device = FakeDevice(DeviceError("lost\nthe device"))
    text = fault(lambda: run_model(ROTATE, device, print_commands=True), ModelError)
    assert text == "Failed to execute dispatchable: lost the device"
    assert f"[EndCmd][   0]\t: hr=0x80004005 {text}\n\n" in run_model.seen.out


def test_resources_keep_their_content_between_commands(run_model):
    back = dispatch("rotate", InputTensor="B", OutputTensor="A")
    data = {**ROTATE, "commands": [*ROTATE["commands"], back, {"type": "print", "resource": "A"}]}
    assert run_model(data).out.splitlines()[-1] == "Resource 'A': 1, 2, 3, 4, 5, 6, 7, 8"


def test_owned_inputs_are_taken_at_initialisation(run_model):
    rotate = {
        **ROTATE["dispatchables"]["rotate"],
        "InputTensor": tensor(8, Flags="OWNED_BY_DML"),
        "dmlCompileType": "DmlCompileGraph",
        "bindings": {"InputTensor": "A"},
    }
    dispatched = dispatch("rotate", OutputTensor="B")
    seen = run_model(model(ROTATE["resources"], {"rotate": rotate}, dispatched, PRINT_B)).out
    assert seen.startswith("Compiling op using IDMLDevice1::CompileGraph\n")
    assert seen.endswith("Resource 'B': 8, 7, 6, 5, 4, 3, 2, 1\n")


def test_resources_that_do_not_fit(run_model):
    """On the device, they are on the host; there, they fail before values are made."""
    large = resource("UINT8", {"value": 7, "valueCount": 2**21})
    out, _ = run_model(printing(A=large), flat=True)
    assert out.count(" 7") == 2**21
    too_many = r'^"A": 8589934592 bytes are too many for the host$'
    with pytest.raises(OutOfDeviceMemoryError, match=too_many):
        run_model(printing(A=zeros(2**30, "FLOAT64")))


def test_errors_of_the_device_name_the_dispatchable(run_model):
    def refuse(*arguments):
        raise DeviceError("no")

    for method, step in (("create_operator", "creating dispatchable"),
                         ("compile_operator", "while initializing")):  # fmt: skip
        device = FakeDevice()
        setattr(device, method, refuse)
        with pytest.raises(ModelError, match=rf"^ERROR {step} 'rotate': no$"):
            run_model(ROTATE, device)


# -- what is printed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data_type", "initial", "text"),
    [
        ("FLOAT32", [0.1, 1e6, 999999, 10 / 3, "inf", "-inf", "nan", -0.0, 1e-5, 123456.7],
         "0.1, 1e+06, 999999, 3.33333, inf, -inf, nan, -0, 1e-05, 123457"),
        ("FLOAT64", [1 / 3, 1e300, 100000, 1000000], "0.333333, 1e+300, 100000, 1e+06"),
        ("FLOAT16", [0.1, 1, 65504, 2, 3], "0.0999756, 1, 65504, 2, 3"),
        ("INT8", [-128, 65, 127], "-128, 65, 127"),
        ("UINT8", [0, 65, 255], "0, 65, 255"),
        ("INT16", [-32768, 5], "-32768, 5"),
        ("UINT64", [2**64 - 1, 1000000], "18446744073709551615, 1000000"),
        ("INT64", [-(2**63)], "-9223372036854775808"),
        ("UINT16", {"valueStart": 0, "valueDelta": 1, "valueCount": 1001},
         "[1001]:\n[   0,    1,    2, ...,  998,  999, 1000]"),
    ],
)  # fmt: skip
def test_print(run_model, data_type, initial, text):
    roomy = {"sizeInBytes": 4096} if isinstance(initial, list) else {}  # padding is not printed
    seen = run_model(printing(A=resource(data_type, initial, **roomy))).out
    assert seen.replace("':", "'") == f"Resource 'A' {text}\n"


@pytest.mark.parametrize("flat", [False, True])
def test_print_in_the_shape_of_a_bound_tensor(run_model, flat):
    example = Path(__file__).parents[2] / "examples" / "split.json"
    out, _ = run_model(json.loads(example.read_text().partition("\n")[2]), flat=flat)
    shaped = "Resource 'Right' [2, 1]:\n[[16],\n [26]]\n"
    assert out.endswith("Resource 'Right': 16, 26\n" if flat else shaped)


def test_verbose_print(run_model):
    ten = resource("INT16", {"valueStart": -1, "valueDelta": 1, "valueCount": 10})
    seen = run_model(printing(A=resource("FLOAT32", [0, 1]), B=ten, verbose=True)).out
    first, second, rest = seen.split("\n\n")
    assert first == "Resource 'A':\n[0] 0 (0x       0)\n[1] 1 (0x3F800000)"
    lines = second.splitlines()
    assert lines[:3] == ["Resource 'B':", "[ 0] -1 (0xFFFF)", "[ 1] 0 (0x   0)"]
    assert lines[-1] == "[ 9] 8 (0x   8)"
    assert rest == ""


def test_printing_does_not_depend_on_the_size_of_pieces(run_model, monkeypatch):
    sequence = resource("INT32", {"valueStart": 0, "valueDelta": 7, "valueCount": 100})
    documents = [printing(A=sequence), printing(A=sequence, verbose=True)]
    whole = [run_model(m).out for m in documents]
    monkeypatch.setattr(printed_values, "_FLAT_AT_ONCE", 3)
    assert [run_model(m).out for m in documents] == whole
    assert whole[0].count(", ") == 99


def test_statistics():
    def statistics(samples, warmup_samples, verbosity):
        return list(report("x", samples, {}, warmup_samples, verbosity))

    assert statistics([9, 4, 1, 3, 2], 1, 0) == [
        "Dispatch 'x': 5 iterations, 3.0000 ms median (CPU)"  # of 1 2 3 4, the upper middle
    ]
    assert statistics([9, 4, 1], 2, 1) == [
        "Dispatch 'x': 3 iterations",
        "CPU Timings (Cold) : 2 samples, 6.5000 ms average, 4.0000 ms min, "
        "9.0000 ms median, 9.0000 ms max",
        "CPU Timings (Hot)  : 1 samples, 1.0000 ms average, 1.0000 ms min, "
        "1.0000 ms median, 1.0000 ms max",
    ]
    # One sample alone is hot, whatever the warm-up; no warm-up, nothing cold.
    assert len(statistics([9], 5, 1)) == len(statistics([9, 8], 0, 1)) == 2


NAME = "a\x1b]0;b\x07\x9b2J\u202ec\nd"
"""It would set a terminal's title, clear the screen, turn the text around, and begin a line."""
SHOWN = r"a\x1b]0;b\x07\x9b2J\u202ec\nd"


def test_names_do_not_control_the_terminal(capsys):
    console.info(f"Dispatch '{NAME}'")
    console.command_started(1, NAME)
    console.command_completed(1)
    for verbose in (False, True):
        label = f"Resource '{console.bounded(NAME)}'"
        printed_values.print_flat(label, np.dtype(np.uint8), 1, lambda *_: b"\7", verbose=verbose)
    assert capsys.readouterr().out == (
        f"Dispatch '{SHOWN}'\n[StartCmd][   1]\t: {SHOWN}\n[EndCmd][   1]\t: hr=0x0        \n\n"
        f"Resource '{SHOWN}': 7\nResource '{SHOWN}':\n[0] 7 (0x 7)\n\n"
    )
    console.complain(NAME)
    assert capsys.readouterr().err == SHOWN.replace(r"\nd", " d") + "\n"


@pytest.mark.parametrize("strides", [[1], [1, 1]])  # right, and an error that has the name
def test_names_in_messages_of_the_command_line(tmp_path, monkeypatch, capsys, strides):
    monkeypatch.chdir(tmp_path)
    split = copy.deepcopy(SPLIT["dispatchables"]["split"])
    split["desc"]["InputTensor"]["Strides"] = strides
    Path("m.json").write_text(json.dumps(model(SPLIT["resources"], {NAME: split})))
    main(["check", "m.json"])
    said = "".join(capsys.readouterr())
    assert r"\x1b]0;b" in said
    assert all(c.isprintable() or c == "\n" for c in said)


def test_names_are_bounded_in_length(run_model):
    """Each line is, whatever a model names its resources and dispatchables."""
    name = "n" * 100_000
    document = model(
        {name: ROTATE["resources"]["A"], "B": ROTATE["resources"]["B"]},
        {name: ROTATE["dispatchables"]["rotate"]},
        dispatch(name, InputTensor=name, OutputTensor="B"),
        {"type": "print", "resource": name},
        writing(name, "a.npy"),
    )
    out, err = run_model(document, print_commands=True, timing_verbosity=1)
    assert err == ""
    assert max(map(len, out.splitlines())) < 2300
    assert sum(name[:1000] in line for line in out.splitlines()) == 7


def test_progress_shows_names_as_they_are(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with console.progress("{0} [b]x[/b]") as progress:
        progress(1, 2)
    assert "{0} [b]x[/b]" in capsys.readouterr().err


SHAPES = [(), (0, 3), (2, 3), (1001,), (40, 50), (1200, 2), (5, 7, 40), (30, 6, 30), (1, 1, 1, 9)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_text_is_that_of_numpy(shape, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    data, taken = array.tobytes(), []

    def read(offset, nbytes):
        taken.append(nbytes)
        return data[offset : offset + nbytes]

    expected = np.array2string(array, max_line_width=60, precision=6, separator=", ")
    assert shaped(array.dtype, shape, read) == expected
    assert text_of(array) == expected
    assert sum(taken) <= MAX_SHAPED_VALUES * 4  # whatever the tensor holds


def test_a_tensor_of_eight_dimensions_is_short():
    assert text_of(np.zeros((10,) * 8, np.uint8)).count("0") == 2**8


def test_strings_are_quoted():
    assert format_values(np.array(["", "a\n"])) == ["''", r"'a\n'"]
