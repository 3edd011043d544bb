"""Arrays in .npy and .npz files: every type and byte order, and every name."""

import io
import zipfile

import numpy as np
import pytest
from refusals import fault

from vkops.errors import ModelError
from vkops.runner import array_files

KINDS = [*"?bBhHiIlLqQefdgFDG", "S3", "U3", "V4"]
REFUSED = ["M8[s]", "m8[s]", [("a", ">i4"), ("b", "u1")], [("a", "f4", 2)]]


def write(path, array):
    with open(path, "wb") as file:
        (np.save if path.suffix == ".npy" else np.savez)(file, array)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("byte_order", "<>")
@pytest.mark.parametrize("memory_order", "CF")
@pytest.mark.parametrize("kind", KINDS)
def test_types_and_orders(tmp_path, suffix, byte_order, memory_order, kind):
    native = np.arange(6).astype("S1" if kind == "V4" else kind).astype(kind).reshape(2, 3)
    array = native.astype(native.dtype.newbyteorder(byte_order), order=memory_order)
    write(tmp_path / f"x{suffix}", array)
    [(_, found)] = array_files.read(str(tmp_path / f"x{suffix}"), ["x"], "the model")
    assert found.dtype == native.dtype
    assert found.dtype.isnative
    assert found.tobytes() == native.tobytes()


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("kind", REFUSED, ids=str)
def test_other_types_are_refused(tmp_path, suffix, kind):
    path = tmp_path / f"x{suffix}"
    write(path, np.zeros(2, kind))
    said = fault(lambda: array_files.read(str(path), ["x"], "the model"), ModelError)
    assert said == f"{path}: is not a .npy or .npz file of numbers or text"


def test_an_array_whose_last_bytes_look_like_an_archive(tmp_path):
    archive = io.BytesIO()
    np.savez(archive, y=np.arange(3))
    for data in (b"PK\5\6" + bytes(18), archive.getvalue()):
        path = tmp_path / "x.npy"
        np.save(path, np.frombuffer(data, np.uint8))
        [(name, found)] = array_files.read(str(path), ["x"], "the model")
        assert (name, found.tobytes()) == ("x", data)


NAMES = [
    "file", "allow_pickle", "args", "kwds", "self", "arr_0", "a/b", "/a", "../a", "é", "\n", "",
]  # fmt: skip


def written(path, names):
    arrays = {name: np.array(number) for number, name in enumerate(names)}
    array_files.write_or_print({path: ""}, arrays, flat=False)
    return arrays


def test_archives_take_every_name(tmp_path):
    path = tmp_path / "x.npz"
    arrays = written(path, [*NAMES, "b.npy", "n" * 60_000])
    assert dict(array_files.read(str(path), [], "the model")) == arrays
    with np.load(path) as loaded:
        assert dict(loaded) == arrays


@pytest.mark.parametrize("names", [["a\0b"], ["x.npy", "x"], ["n" * 65_532]])
def test_names_that_archives_cannot_hold(tmp_path, names):
    path = tmp_path / "x.npz"
    expected = f"{path}: a .npz file cannot hold an output named {names[0]!r}"
    said = fault(lambda: written(path, names), ModelError)
    assert said == str(ModelError(expected))  # long ones are cut
    assert list(tmp_path.iterdir()) == []


def test_archives_with_names_that_numpy_confuses(tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(["x.npy", "x.npy.npy"]):
            np.save(stream := io.BytesIO(), number)
            archive.writestr(name, stream.getvalue())
    assert dict(array_files.read(str(path), [], "the model")) == {"x": 0, "x.npy": 1}


@pytest.mark.parametrize("texts", [["a:x.npy", "b:x.npy"], ["x.npz", "x.npz"]])
def test_an_output_for_each_file(texts):
    said = fault(lambda: array_files.targets(["a", "b"], texts, "the model"), ModelError)
    assert said == f"{texts[1]}: another output is written to that file"
