"""Untrusted models: what their paths may lead to, and how much they may claim."""

import copy
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from models import SPLIT, resource
from onnx import TensorProto, helper
from onnx_models import model as onnx_model
from refusals import fault

from vkops.dxdispatch import load_model as load_file
from vkops.errors import ModelError
from vkops.onnx import Model, backend
from vkops.onnx.tensor_data import MAX_MODEL_BYTES
from vkops.onnx.value_info import TensorType
from vkops.plan.size_limits import MAX_DIMENSIONS
from vkops.runner import array_files

LEAVES = "which a model may leave only with --allow_paths"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A model's folder, and one beside it that is none of its business; the current one is empty."""
    for name in ("model", "secret", "here"):
        (tmp_path / name).mkdir()
    (tmp_path / "secret" / "x.bin").write_bytes(bytes(32))
    (tmp_path / "model" / "x.bin").write_bytes(bytes(32))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def refused(do, *arguments, **more):
    return fault(lambda: do(*arguments, **more), ModelError)


def reading(path):
    model = copy.deepcopy(SPLIT)
    model["resources"]["In"] = resource("FLOAT32", {"sourcePath": str(path)})
    return model


def writing(path):
    command = {"type": "writeFile", "resource": "A", "targetPath": str(path)}
    return {**SPLIT, "commands": [*SPLIT["commands"], command]}


def load(folders, model, **more):
    file = folders / "model" / "m.json"
    file.write_text(json.dumps(model))
    return load_file(file, **more)


# -- what is read ----------------------------------------------------------------------------------


OUTSIDE = {
    "parents": "../secret/x.bin",
    "parents, later": "./a/../../secret/x.bin",
    "absolute": "{}/secret/x.bin",
    "a link": "link.bin",
    "a linked folder": "dir/x.bin",
    "links to links": "chain/../secret/x.bin",
    "nothing there": "../nothing.bin",
    "a process": "/proc/self/environ",
    "a device": "/dev/zero",
}
"""Names that lead out of the model's folder."""

NO_FILES = ("nothing there", "a process", "a device")


def outside(folders, way):
    (folders / "model" / "a").mkdir()
    (folders / "model" / "link.bin").symlink_to(folders / "secret" / "x.bin")
    (folders / "model" / "dir").symlink_to(folders / "secret")
    (folders / "model" / "chain").symlink_to("dir")
    return OUTSIDE[way].format(folders)


def leaves(place, name, folder, quote=json.dumps):
    """What is said of a path that leads out of a folder."""
    return f"{place}: {quote(name)} is outside of the folder {quote(str(folder))}, {LEAVES}"


@pytest.mark.parametrize("way", OUTSIDE)
def test_sources_outside_are_read_only_if_paths_are_allowed(folders, way):
    name = outside(folders, way)
    said = refused(load, folders, reading(name))
    place = f"{folders}/model/m.json: resources.In.initialValues.sourcePath"
    assert said == leaves(place, name, folders / "model")
    if way in NO_FILES:
        said = refused(load, folders, reading(name), allow_paths=True)
        assert "no file" in said or "is empty" in said
    else:
        model = load(folders, reading(name), allow_paths=True)
        assert b"".join(model.resources["In"].values.pieces()) == bytes(32)


def test_links_and_parents_within_the_folder_are_read(folders):
    (folders / "model" / "deep").mkdir()
    (folders / "model" / "deep" / "link.bin").symlink_to("../x.bin")
    (folders / "linked").symlink_to("model")
    for name in ("deep/../x.bin", "deep/link.bin", folders / "model" / "x.bin"):
        assert load(folders, reading(name)).resources["In"].size == 32
    file = folders / "linked" / "m.json"  # the folder itself may be a link: the user chose it
    assert load_file(file).resources["In"].size == 32


def test_folders_of_sources(folders):
    """Folders that begin alike are different, and the current one is not the model's."""
    (folders / "model2").mkdir()
    (folders / "model2" / "x.bin").write_bytes(bytes(32))
    assert LEAVES in refused(load, folders, reading("../model2/x.bin"))
    chosen = {"input_path": folders / "secret"}
    assert load(folders, reading("x.bin"), **chosen).resources["In"].size == 32
    said = refused(load, folders, reading("../model/x.bin"), **chosen)
    assert said.endswith(leaves("", "../model/x.bin", folders / "secret"))
    Path("own.bin").write_bytes(bytes(32))
    model = json.dumps(str(folders / "model"))
    said = refused(load, folders, reading("own.bin"))
    assert said.endswith(f'no file "own.bin" in {model}')
    assert load(folders, reading("own.bin"), allow_paths=True).resources["In"].size == 32
    said = refused(load, folders, reading("no.bin"), allow_paths=True)
    assert said.endswith(f'no file "no.bin" in {model} or "."')


def test_a_link_created_after_loading_is_not_followed(folders):
    model = load(folders, reading("x.bin"))
    (folders / "model" / "x.bin").unlink()
    (folders / "model" / "x.bin").symlink_to(folders / "secret" / "x.bin")
    with pytest.raises(ModelError, match="cannot be read: Too many levels of symbolic links"):
        list(model.resources["In"].values.pieces())


@pytest.mark.posix("named pipes", tests_only=True)
def test_a_pipe_is_refused(folders):
    os.mkfifo(folders / "model" / "pipe.bin")
    assert 'no file "pipe.bin"' in refused(load, folders, reading("pipe.bin"))


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000, "/".join("a" * 3000), "", "circle.bin"])
def test_names_that_no_file_can_have(folders, name):
    (folders / "model" / "circle.bin").symlink_to("circle.bin")
    said = refused(load, folders, reading(name))
    assert "no file" in said or "not a file name" in said
    assert len(said) < 500


def test_huge_sparse_files_are_refused(folders):
    os.truncate(folders / "model" / "x.bin", 1 << 40)
    said = refused(load, folders, reading("x.bin"))
    assert said.endswith("got 1099511627776 bytes, must be 0 to 68719476736")
    path = folders / "model" / "x.npy"
    np.save(path, np.zeros((2, 3), np.float32, order="F"))
    header = path.read_bytes()[:128].replace(b"(2, 3), }" + b" " * 12, b"(2, 99999999999), }  ")
    path.write_bytes(header)
    os.truncate(path, 1 << 41)
    assert "bytes column by column, must be 1073741824" in refused(load, folders, reading("x.npy"))


# -- what is written -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../out.bin", "/etc/out.bin", "dir/out.bin", "link.bin", "a/../../o"]
)
def test_a_target_outside_is_refused(folders, name):
    Path("dir").symlink_to(folders / "secret")
    Path("link.bin").symlink_to(folders / "secret" / "x.bin")
    said = refused(load, folders, writing(name))
    place = f"{folders}/model/m.json: commands[1].targetPath"
    assert said == leaves(place, name, folders / "here")
    assert load(folders, writing(name), allow_paths=True).commands[1].target == Path(
        os.path.realpath(name) if name == "link.bin" else folders / "here" / name
    )


def test_output_path_takes_the_place_of_the_current_folder(folders):
    loaded = load(folders, writing("a/../out.bin"), output_path=folders / "new")
    assert loaded.commands[1].target == folders / "new" / "out.bin"
    said = refused(load, folders, writing("../out.bin"), output_path=folders / "new")
    assert f"the folder {json.dumps(str(folders / 'new'))}, {LEAVES}" in said


# -- the command line ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subcommand", "option"), [("check", "--allow_paths"), ("explain", "--allow-paths")]
)
def test_allow_paths_on_the_command_line(folders, command, subcommand, option):
    file = folders / "model" / "m.json"
    file.write_text(json.dumps(reading("../secret/x.bin")))
    status, _, err = command(subcommand, file)
    assert (status, err.endswith(f"{LEAVES}\n")) == (1, True)
    assert command(subcommand, file, option)[0] == 0


# -- ONNX ------------------------------------------------------------------------------------------


def joined(external=(), dims=(4,)):
    """A model that joins its input with an initializer, whose data are elsewhere."""
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims)
    if external:
        weights.data_location = TensorProto.EXTERNAL
        for key, value in external:
            weights.external_data.add(key=key, value=str(value))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    node = helper.make_node("Concat", ["x", "w"], ["y"], axis=0)
    return onnx_model([node], [x], ["y"], initializer=[weights])


def stored(folders, *external, dims=(4,)):
    path = folders / "model" / "m.onnx"
    path.write_bytes(joined(external, dims).SerializeToString())
    return path


def test_external_data_beside_the_model(folders):
    values = np.arange(8, dtype=np.float32)
    (folders / "model" / "x.bin").write_bytes(values.tobytes())
    for location, more, expected in (
        ("x.bin", ("length", 16), values[:4]),
        ("./x.bin", ("offset", 16), values[4:]),
    ):
        model = Model(stored(folders, ("location", location), more))
        np.testing.assert_array_equal(model.constants["w"], expected)


@pytest.mark.parametrize("way", OUTSIDE)
def test_external_data_outside(folders, way):
    name = outside(folders, way)
    path = stored(folders, ("location", name), ("length", 16))
    said = refused(Model, path)
    assert said == leaves(f"{path}: external data of tensor 'w'", name, folders / "model", repr)
    assert refused(backend.prepare, str(path)) == said
    dispatchables = {"d": {"type": "onnx", "sourcePath": "m.onnx"}}
    model = {**SPLIT, "dispatchables": dispatchables, "commands": []}
    assert said in refused(load, folders, model)
    if way not in NO_FILES:
        np.testing.assert_array_equal(Model(path, allow_paths=True).constants["w"], np.zeros(4))
        assert "d" in load(folders, model, allow_paths=True).dispatchables
    else:
        assert "external data of tensor 'w'" in refused(Model, path, allow_paths=True)


@pytest.mark.parametrize(
    "external",
    [
        [("location", "x.bin"), ("offset", 20), ("length", 16)],
        *([("location", "x.bin"), ("offset", n)] for n in (2**62, -4, "1e3", "9" * 5000, "\u0663")),
        *([("location", "x.bin"), ("length", n)] for n in (2**60, -1)),
        *([("location", name)] for name in ("", "a\0b", "none.bin")),
        [("offset", 4)],
    ],
)
def test_missing_external_data_are_refused(folders, external, message):
    text = refused(Model, stored(folders, *external))
    message(text, "m.onnx: external data of tensor 'w': ", folders=folders)


@pytest.mark.posix("named pipes", tests_only=True)
def test_external_data_in_a_pipe_or_an_endless_file(folders):
    os.mkfifo(folders / "model" / "pipe")
    said = refused(Model, stored(folders, ("location", "pipe")))
    assert "'pipe' cannot be read: not a regular file" in said
    os.truncate(folders / "model" / "x.bin", MAX_MODEL_BYTES + 1)
    said = refused(Model, stored(folders, ("location", "x.bin")))
    assert said.endswith("got 2147483648 bytes of 'x.bin', must be 16, as its type and dims say")
    said = refused(Model, stored(folders, ("location", "x.bin"), dims=[2**27, 4]))
    assert said.endswith(f"the model has more than {MAX_MODEL_BYTES} bytes with it")


def test_external_data_need_a_folder(folders, message):
    proto = joined([("location", "x.bin")])
    for source in (proto, proto.SerializeToString()):
        message(refused(Model, source), "external data of tensor 'w': ")


def test_external_data_of_constants_in_nodes(folders):
    tensor = joined([("location", "/etc/passwd")]).graph.initializer[0]
    proto = text("g () => (float[4] y) { y = Constant <value_int = 1> () }")
    attribute = proto.graph.node[0].attribute[0]
    attribute.Clear()
    attribute.name, attribute.type = "value", onnx.AttributeProto.TENSOR
    attribute.t.CopyFrom(tensor)
    path = folders / "model" / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    assert "'/etc/passwd' is outside of the folder" in refused(Model, path)


@pytest.mark.posix("named pipes", tests_only=True)
def test_a_model_that_is_not_a_regular_file(folders):
    os.mkfifo(folders / "model" / "m.onnx")
    said = refused(Model, folders / "model" / "m.onnx")
    assert said.endswith("cannot be read: not a regular file")
    (folders / "big.onnx").touch()
    os.truncate(folders / "big.onnx", 1 << 40)
    assert refused(Model, folders / "big.onnx").endswith(f"longer than {MAX_MODEL_BYTES} bytes")


IMPORTS = 'opset_import: ["" : 18, "f" : 1]'


def text(body, *functions):
    definitions = "".join(f'<domain: "f", {IMPORTS}> {function}\n' for function in functions)
    return onnx.parser.parse_model(f"<ir_version: 9, {IMPORTS}>\n{body}\n{definitions}")


def test_functions_that_double_again_and_again(message):
    proto = text(
        "g (float[2] x) => (float[2] y) { y = f.f59 (x) }",
        "f0 (a) => (b) { b = Identity (a) }",
        *(f"f{i} (a) => (b) {{ m = f.f{i - 1} (a) b = f.f{i - 1} (m) }}" for i in range(1, 60)),
    )
    message(refused(Model, proto), str(2**59), "1000000")
    del proto.functions[5:]
    proto.graph.node[0].op_type = "f4"
    assert len(Model(proto).nodes) == 16


def test_functions_that_call_themselves():
    bodies = "a (u) => (v) { v = f.b (u) }", "b (u) => (v) { v = f.a (u) }"
    proto = text("g (float[2] x) => (float[2] y) { y = f.a (x) }", *bodies)
    said = refused(Model, proto, check=False)
    assert said in ("function 'a' calls itself", "function 'b' calls itself")


def doubled(times):
    """A list of ones, doubled so often."""
    lines = [f"c{i + 1} = Concat <axis = 0> (c{i}, c{i})" for i in range(times)]
    return "c0 = Constant <value_ints = [1]> ()\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("s = Constant <value_ints = [1099511627776]> () c = ConstantOfShape (s) i = Cast <to = 7> (c) y = Gather (x, i)",
         "node 2, which makes 'i' (Cast-13): the elements of a tensor of shape (1099511627776,) are needed before "
         "the model runs: 4398046511116 bytes with those needed before, must be 268435456 at most"),
        (doubled(40) + "\ny = Reshape (x, c40)",
         "the elements of a tensor of shape (1099511627776,) are needed"),
        (doubled(17) + "\ny = Reshape (x, c17)", f"shape: got 131072 elements, must be {MAX_DIMENSIONS} at most"),
        ("s = Constant <value_ints = [30000, 1]> () t = Constant <value_ints = [1, 30000]> () "
         "a = ConstantOfShape (s) b = ConstantOfShape (t) c = Add (a, b) y = Reshape (x, c)",
         "result: got shape (30000, 30000), must have 268435456 bytes at most"),
    ],
)  # fmt: skip
def test_elements_needed_before_a_run_are_bounded(nodes, said):
    model = Model(text(f"g (float[2] x) => (float y) {{ {nodes} }}"), check=False)
    assert said in refused(model.lower, {"x": TensorType(np.dtype(np.float32), (2,))}, {})


# -- files of the command line ---------------------------------------------------------------------

NOT_NUMBERS = "is not a .npy or .npz file of numbers or text"


def test_archives_that_hold_more_than_memory(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(tmp_path / "small.npz", x=np.zeros(8))
    with zipfile.ZipFile(tmp_path / "small.npz") as small:
        header = small.read("x.npy")[:128]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", header.replace(b"(8,), }" + b" " * 12, b"(9999999999999,), }"))
    assert refused(array_files.read, str(path), ["x"], "the model").endswith(NOT_NUMBERS)
    assert refused(array_files._check_memory, "x.npz", 2 * 10**18).startswith("x.npz, and ")


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_nothing_is_unpickled(tmp_path, name):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    array = np.array([Trap()], object)
    save = np.save if name == "x.npy" else np.savez
    save(tmp_path / name, array, allow_pickle=True)
    said = refused(array_files.read, str(tmp_path / name), ["x"], "the model")
    assert said.endswith(NOT_NUMBERS)
    assert not (tmp_path / "sprung").exists()
