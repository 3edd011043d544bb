"""Untrusted models on a device: nothing is written outside of the folder of outputs."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from models import SPLIT

import vkops
from vkops.cli import main
from vkops.errors import ShaderCompileError

LEAVES = "which a model may leave only with --allow_paths"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run SPLIT, which writes one of its parts inside first, and then where it is told to."""
    for name in ("here", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def run(target, *options):
        model = copy.deepcopy(SPLIT)
        model["commands"] += [
            {"type": "writeFile", "resource": "A", "targetPath": path}
            for path in ("inside.npy", str(target))
        ]
        Path("m.json").write_text(json.dumps(model))
        return main(["run", "m.json", *options]), capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    "target", ["../elsewhere/x.npy", "{}/elsewhere/new/x.npy", "dir/x.npy", "link.npy"]
)
def test_nothing_is_written_where_one_target_is_outside(run, tmp_path, target):
    Path("dir").symlink_to(tmp_path / "elsewhere")
    Path("link.npy").symlink_to(tmp_path / "elsewhere" / "x.npy")
    target = target.format(tmp_path)
    status, said = run(target)
    assert status == 1
    assert said.endswith(
        f'm.json: commands[2].targetPath: "{target}" is outside of the folder '
        f'"{tmp_path}/here", {LEAVES}\n'
    )
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not Path("inside.npy").exists()
    assert run(target, "--allow-paths") == (0, "")
    (written,) = (tmp_path / "elsewhere").rglob("x.npy")
    np.testing.assert_array_equal(np.load(written), np.zeros(4, np.float32))


def test_output_path_is_the_users_own(run, tmp_path):
    assert run("deep/x.npy", "--output_path", str(tmp_path / "elsewhere")) == (0, "")
    assert sorted(p.name for p in (tmp_path / "elsewhere").rglob("*.npy")) == [
        "inside.npy",
        "x.npy",
    ]


def test_compile_shader_takes_the_choice(tmp_path):
    (tmp_path / "x.glsl").write_text("uint value() { return 1; }\n")
    (tmp_path / "deep").mkdir()
    path = tmp_path / "deep" / "s.comp"
    path.write_text(
        "#version 450\n#extension GL_GOOGLE_include_directive : require\n"
        '#include "../x.glsl"\nlayout(binding = 0) buffer Data { uint data[]; };\n'
        "void main() { data[0] = value(); }\n"
    )
    with vkops.Device() as device:
        with pytest.raises(ShaderCompileError, match="is outside of the folder"):
            device.compile_shader(path)
        assert device.compile_shader(path, allow_paths=True)
