"""Initial values in all their forms, and files beside the model."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import fault

from vkops.dml import TensorDataType
from vkops.errors import ModelError
from vkops.models import initial_values
from vkops.models.folders import Folders
from vkops.models.initial_values import dtype_of
from vkops.models.json_reader import Document, Node
from vkops.system import output_files

TYPES = [t for t in TensorDataType if t.size_bits >= 8]


def read(initial, data_type=None, folder="."):
    members = {"initialValues": initial}
    if data_type is not None:
        members["initialValuesDataType"] = data_type
    node = Node(members, "resources.A", Document("m.json"))
    found_type, found = initial_values.read_values(node, Folders(Path(folder)))
    data = b"".join(found.pieces())
    assert len(data) == found.nbytes
    return found_type, data


def numbers(initial, data_type, **more):
    found_type, data = read(initial, data_type, **more)
    return np.frombuffer(data, dtype_of(found_type))


def refusal(*args, **more):
    return fault(lambda: read(*args, **more), ModelError)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("prefix", ["", "DML_TENSOR_DATA_TYPE_"])
def test_arrays_and_constants_of_every_type(data_type, prefix):
    found_type, data = read([1, 2, 100], prefix + data_type.name)
    assert found_type is data_type
    np.testing.assert_array_equal(np.frombuffer(data, dtype_of(data_type)), [1, 2, 100])
    values = numbers({"value": 3, "valueCount": 5}, prefix + data_type.name)
    np.testing.assert_array_equal(values, [3] * 5)


@pytest.mark.parametrize("data_type", [t for t in TYPES if t.name.startswith("FLOAT")])
def test_nan_and_infinity_are_read_in_any_case(data_type):
    values = numbers(["NaN", "INF", "-Inf", -0.5, 3], data_type.name)
    np.testing.assert_array_equal(values, [math.nan, math.inf, -math.inf, -0.5, 3])


@pytest.mark.parametrize("data_type", [t for t in TYPES if not t.name.startswith("FLOAT")])
def test_integers_are_checked_against_their_range(data_type):
    info = np.iinfo(dtype_of(data_type))
    low, high = int(info.min), int(info.max)
    assert numbers([low, high], data_type.name).tolist() == [low, high]
    for bad in (low - 1, high + 1):
        message = f"m.json: resources.A.initialValues[1]: got {bad}, must be {low} to {high}"
        assert refusal([0, bad], data_type.name) == message
        single = message.replace("[1]", ".value")
        assert refusal({"value": bad, "valueCount": 2}, data_type.name) == single


def test_floats_are_checked_against_their_range():
    assert numbers([65519, -65519], "FLOAT16").tolist() == [65504, -65504]
    assert refusal([1, 65520], "FLOAT16") == (
        "m.json: resources.A.initialValues[1]: got 65520, must be -65504 to 65504"
    )
    assert refusal([1e39], "FLOAT32") == (
        "m.json: resources.A.initialValues[0]: got 1e+39, must be -3.40282e+38 to 3.40282e+38"
    )
    assert refusal([10**400], "FLOAT64") == (
        "m.json: resources.A.initialValues[0]: got an integer of more than 40 digits, "
        "must be numbers that a double can hold"
    )


def test_list_is_packed_without_alignment():
    entries = [
        {"name": "a", "type": "UINT8", "value": 7},
        {"type": "DML_TENSOR_DATA_TYPE_INT64", "value": -2},
        {"type": "FLOAT32", "value": "inf"},
    ]
    expected = b"\x07" + (-2).to_bytes(8, "little", signed=True) + b"\x00\x00\x80\x7f"
    assert read(entries) == (TensorDataType.UNKNOWN, expected)
    assert read(entries, "UNKNOWN") == (TensorDataType.UNKNOWN, expected)


@given(
    data_type=st.sampled_from(TYPES),
    start=st.integers(0, 100),
    delta=st.integers(0, 100),
    count=st.integers(1, 200),
    tenths=st.integers(0, 9),
)
def test_sequence_is_repeated_addition(data_type, start, delta, count, tenths):
    dtype = dtype_of(data_type)
    step = delta + tenths / 10 if dtype.kind == "f" else delta
    values = numbers({"valueStart": start, "valueDelta": step, "valueCount": count}, data_type.name)
    value, expected = np.array([start], dtype), []
    for _ in range(count):
        expected.append(value)
        value = value + np.array([step], dtype)
    np.testing.assert_array_equal(values, np.concatenate(expected))


def test_values_do_not_depend_on_the_size_of_pieces(monkeypatch, tmp_path):
    sequence = {"valueStart": 0.1, "valueDelta": 0.1, "valueCount": 1000}
    whole = read(sequence, "FLOAT16")
    (tmp_path / "raw.bin").write_bytes(whole[1])
    np.save(tmp_path / "big_endian.npy", np.frombuffer(whole[1], "<f2").astype(">f2"))
    monkeypatch.setattr(initial_values, "PIECE_BYTES", 96)
    assert read(sequence, "FLOAT16") == whole
    assert read({"sourcePath": "raw.bin"}, "FLOAT16", folder=tmp_path) == whole
    assert read({"sourcePath": "big_endian.npy"}, folder=tmp_path) == whole
    assert initial_values.PIECE_BYTES % 8 == 0


def test_npy_files_determine_type_and_order(tmp_path):
    table = np.arange(12, dtype=np.int16).reshape(3, 4)
    for name, array in (("c.npy", table), ("fortran.npy", np.asfortranarray(table))):
        np.save(tmp_path / name, array)
        for expected in (None, "INT16", "UNKNOWN"):
            values = read({"sourcePath": name}, expected, folder=tmp_path)
            assert values == (TensorDataType.INT16, table.tobytes())
    assert refusal({"sourcePath": "c.npy"}, "INT32", folder=tmp_path) == (
        'm.json: resources.A.initialValues.sourcePath: "c.npy" holds INT16, '
        "'initialValuesDataType' says INT32"
    )


def test_npy_of_format_2(tmp_path):
    with open(tmp_path / "two.npy", "wb") as stream:
        np.lib.format.write_array(stream, np.arange(3.0), version=(2, 0))
    assert read({"sourcePath": "two.npy"}, folder=tmp_path)[0] is TensorDataType.FLOAT64


def test_a_file_that_shrinks_is_noticed(tmp_path):
    (tmp_path / "raw.bin").write_bytes(bytes(100))
    values = initial_values.raw_values(
        Node("raw.bin", "p", Document("m.json")), tmp_path / "raw.bin"
    )
    (tmp_path / "raw.bin").write_bytes(bytes(10))
    said = fault(lambda: list(values.pieces()), ModelError)
    assert said == f"{tmp_path / 'raw.bin'}: became shorter while it was read"


def test_output_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "deep" / "er" / "out.bin"
    output_files.write_output(target, [b"ab", b"cd"])
    assert target.read_bytes() == b"abcd"

    def failing():
        yield b"xx"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        output_files.write_output(target, failing())
    assert target.read_bytes() == b"abcd"
    assert list(target.parent.iterdir()) == [target]


def test_output_replaces_the_target_of_a_link_but_not_a_folder(tmp_path):
    (tmp_path / "real.bin").write_bytes(b"old")
    (tmp_path / "link.bin").symlink_to("real.bin")
    output_files.write_output(tmp_path / "link.bin", [b"new"])
    assert (tmp_path / "real.bin").read_bytes() == b"new"
    assert (tmp_path / "link.bin").is_symlink()
    with pytest.raises(OSError, match="not a regular file"):
        output_files.write_output(tmp_path, [b"new"])
