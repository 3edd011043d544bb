"""Memory of the host that models take: little more than their tensors."""

import contextlib
import os
import tracemalloc
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from models import model, resource
from refusals import fault

from vkops import console
from vkops.dml import FeatureLevel, TensorDataType
from vkops.dxdispatch import prepare
from vkops.errors import ModelError, OutOfDeviceMemoryError
from vkops.gpu.memory import host_memory
from vkops.models.initial_values import read_array
from vkops.models.json_reader import Document, Node
from vkops.runner import array_files, printed_values
from vkops.runner.dispatch_timing import RunOptions
from vkops.runner.model_execution import run

SIZE = 64 << 20
COUNT = SIZE // 4


@contextlib.contextmanager
def peak():
    """Yield what holds, at the end, the most bytes that were taken at once."""
    measured = SimpleNamespace()
    tracemalloc.start()
    try:
        yield measured
        measured.nbytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class SparseBuffer:
    """Takes no memory, so that all that is measured is what the model takes beside its buffers."""

    def __init__(self, nbytes):
        self.nbytes = nbytes

    def write(self, data, offset=0):
        assert offset + len(data) <= self.nbytes

    def read(self, offset=0, nbytes=None):
        return bytes(nbytes)


def run_with(load, values, *commands, data_type="FLOAT32"):
    document = model({"A": resource(data_type, values)}, {}, *commands)
    prepared = prepare(load(document), FeatureLevel.LATEST)
    with peak() as measured:
        run(prepared, SimpleNamespace(buffer=SparseBuffer), RunOptions(flat=True))
    return measured.nbytes


@pytest.mark.parametrize(
    "values",
    [
        {"value": 1, "valueCount": COUNT},
        {"valueStart": 1, "valueDelta": 1, "valueCount": COUNT},
        {"sourcePath": "x.bin"},
        {"sourcePath": "C-little.npy"},
        {"sourcePath": "C-big.npy"},
        {"sourcePath": "F-little.npy"},  # column by column: it is read as a whole
    ],
)
def test_initial_values_are_made_in_pieces(load, tmp_path, values):
    name = values.get("sourcePath", "")
    if name.endswith(".npy"):
        dtype = ">f4" if "big" in name else "<f4"
        array = np.zeros((1024, COUNT // 1024), dtype, order=name[0])
        np.save(tmp_path / name, array)
    elif name:
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, SIZE)
    assert run_with(load, values) < (1.75 if name[:1] == "F" else 0.75) * SIZE


@pytest.mark.parametrize("target", ["out.npy", "out.bin"])
def test_files_are_written_in_pieces(load, tmp_path, target):
    command = {"type": "writeFile", "resource": "A", "targetPath": target}
    assert run_with(load, {"value": 1, "valueCount": COUNT}, command) < 0.75 * SIZE
    assert (tmp_path / target).stat().st_size in (SIZE, SIZE + 128)


@pytest.mark.parametrize("verbose", [False, True])
def test_values_are_printed_in_pieces(load, monkeypatch, verbose):
    """A text takes up to a hundred times the memory of the value that it is of."""
    monkeypatch.setattr(console.sys, "stdout", SimpleNamespace(write=len))
    monkeypatch.setattr(printed_values, "_FLAT_AT_ONCE", 1 << 9)
    command = {"type": "print", "resource": "A", "verbose": verbose}
    values = {"value": 1, "valueCount": 1 << 14}
    assert run_with(load, values, command, data_type="UINT8") < 1 << 19


@pytest.mark.parametrize("target", ["y:out.npy", "out.npz"])
def test_arrays_are_written_without_a_copy(tmp_path, target, capsys):
    name, _, path = target.rpartition(":")
    array = np.zeros(COUNT, np.float32)
    with peak() as found:
        array_files.write_or_print({tmp_path / path: name}, {"y": array}, flat=False)
    assert found.nbytes < 0.75 * SIZE
    loaded = np.load(tmp_path / path)
    np.testing.assert_array_equal(loaded if name else loaded["y"], array)


def test_strings_that_need_too_much_memory_are_refused(monkeypatch, message):
    """All characters of fixed width are as many as the longest string has."""
    array = np.array(["x" * 1000, "", "y"] * 100, object)
    assert array_files.without_objects(array).dtype == np.dtype("U1000")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=999_999))
    message(fault(lambda: array_files.without_objects(array), ModelError))


# -- what does not fit -----------------------------------------------------------------------------


def test_device_buffers_are_freed_before_host_buffers_are_allocated(load):
    """An error that is still around would keep them."""

    living = []

    class OnDevice(SparseBuffer):
        def __init__(self, nbytes):
            if len(living) == 2:
                raise OutOfDeviceMemoryError("full")
            super().__init__(nbytes)
            living.append(1)

        def __del__(self):
            if hasattr(self, "nbytes"):
                living.pop()

    def on_host(nbytes):
        assert not living
        return SparseBuffer(nbytes)

    loaded = load(model(dict.fromkeys("ABC", resource("UINT8", [1]))))
    device = SimpleNamespace(buffer=OnDevice, host_buffer=on_host)
    run(prepare(loaded, FeatureLevel.LATEST), device)


def test_host_memory_is_committed_when_it_is_allocated(monkeypatch):
    """What is promised only would be counted as left, and promised again."""
    process = psutil.Process()
    before = process.memory_info().rss
    taken = host_memory.take(SIZE)
    assert process.memory_info().rss - before > 0.9 * SIZE
    monkeypatch.setattr(host_memory, "available", lambda: taken.size)
    said = fault(lambda: host_memory.take(SIZE + 1), OutOfDeviceMemoryError)
    reason = "neither the device nor the host has that much memory available"
    assert said == f"{SIZE + 1} bytes: {reason}"


def test_memory_that_other_processes_take_meanwhile(monkeypatch):
    monkeypatch.setattr(host_memory, "_TAKEN_AT_ONCE", 1 << 20)
    available = iter([100 << 20, 100 << 20, 100 << 20, 0])
    monkeypatch.setattr(host_memory, "available", lambda: next(available))
    with pytest.raises(OutOfDeviceMemoryError, match=r"^8388608 bytes: neither the device nor "):
        host_memory.take(8 << 20)


@pytest.mark.parametrize("data_type", [TensorDataType.UINT8, TensorDataType.FLOAT32])
def test_wrong_values_are_searched_one_by_one(data_type):
    node = Node([[]] * 100_000, "x", Document("m.json"))
    with peak() as found:
        text = fault(lambda: read_array(node, data_type), ModelError)
    assert text.startswith("m.json: x[0]: got an empty array, ")
    assert found.nbytes < 1 << 20
