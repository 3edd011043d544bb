"""``vkops shader stats``: with Mesa's driver for AMD GPUs, and without it."""

import json
import os
import re
from pathlib import Path

import figures
import pytest
from imitated import environment

from vkops import shaders
from vkops.cli.main import main
from vkops.debug import driver_compiler
from vkops.errors import DeviceError
from vkops.gpu.adapters import loader_files

INSTALLED = any(path.match(driver_compiler._MANIFEST) for path in loader_files.installed())


def reason():
    """Why the driver cannot compile here; empty if it can."""
    if not INSTALLED:
        return "needs Mesa's driver for AMD GPUs"
    try:
        driver_compiler.compile_for("navi21", [])
    except DeviceError as error:
        if "only for GPUs that are there" in str(error):
            return "Mesa's driver for AMD GPUs compiles only for GPUs that are there from 26 on"
    return ""


REASON = reason()
needs_driver = pytest.mark.skipif(bool(REASON), reason=REASON)

SHADER = """#version 450
layout(local_size_x = 64) in;
layout(std430, set = 1, binding = 2) buffer Data { uint data[]; };
layout(binding = 1) uniform Four { uvec4 four; };
layout(push_constant) uniform Push { uint factor; };
void main() { data[gl_GlobalInvocationID.x] *= factor + four.x; }"""


@pytest.fixture
def stats(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("a.comp").write_text(SHADER)

    def stats(*arguments):
        status = main(["shader", "stats", *arguments])
        seen = capsys.readouterr()
        return status, seen.out, seen.err

    return stats


@needs_driver
def test_a_shader_and_a_kernel(stats):
    status, out, err = stats("a.comp", "copy_16", "--gpu", "navi21,vega10", "--json", "f.json")
    assert (status, err) == (0, "")
    written = json.loads(Path("f.json").read_text())
    assert [*written] == ["navi21", "vega10"]
    for gpu, of_gpu in written.items():
        assert [*of_gpu] == ["a.comp", "copy_16"]
        assert f"{gpu}: " in out
        for values in of_gpu.values():
            assert values["VGPRs"] > 0
            assert f" {values['Instructions']:,.0f} " in out
    few, many = (written["navi21"][name]["Instructions"] for name in ("a.comp", "copy_16"))
    assert few < many / 3


@needs_driver
def test_shaders_of_one_name_in_two_folders(stats):
    for folder, text in (("one", SHADER), ("two", SHADER.replace("*=", "+= 7 *"))):
        Path(folder).mkdir()
        Path(folder, "a.comp").write_text(text)
    status, _, _ = stats("one/a.comp", "two/a.comp", "--gpu", "navi21", "--json", "f.json")
    assert status == 0
    assert [*json.loads(Path("f.json").read_text())["navi21"]] == ["one/a.comp", "two/a.comp"]


@needs_driver
@pytest.mark.system("cc")
def test_drivers_and_layers_that_other_programs_use_do_not_matter(stats, monkeypatch):
    for variable, value in environment("minimum", VK_DRIVER_FILES="none.json").items():
        monkeypatch.setenv(variable, value)
    assert stats("a.comp", "--gpu", "navi21")[0] == 0


@needs_driver
def test_machine_code(stats):
    _, out, _ = stats("a.comp", "--gpu", "navi21", "--isa")
    assert "buffer_load_dword" in out
    assert "s_endpgm" in out


@needs_driver
def test_a_baseline(stats):
    command = ["a.comp", "--gpu", "navi21"]
    stats(*command, "--json", "f.json")
    same = stats(*command, "--baseline", "f.json", "--fail-on-regression")
    assert same[0] == 0
    assert same[1].endswith("No figure has changed since 'f.json' was written\n")
    baseline = json.loads(Path("f.json").read_text())
    baseline["navi21"]["a.comp"]["Instructions"] /= 2
    Path("f.json").write_text(json.dumps(baseline))
    status, out, _ = stats(*command, "--baseline", "f.json")
    assert (status, "Instructions" in out, "worse" in out) == (0, True, True)
    assert stats(*command, "--baseline", "f.json", "--fail-on-regression")[0] == 1


CRASH = 'import os, sys; print(\'["X", "Y"]\', flush=True); os.abort()'
ERRORS = {
    "removed": ("navi21", {"_CHILD": "print('radv: RADV_FORCE_FAMILY=<family> has been removed.')"},
                "compiles only for GPUs that are there, as all of Mesa from 26 on do: use one of Mesa 22 to 25\n"),
    "unknown GPU": ("navi21,navi99", {}, "has no GPU 'navi99'; there are polaris10"),
    "no GPU": ("navi21,", {}, "has no GPU ''; there are polaris10"),
    "crash": ("navi21", {"_CHILD": CRASH}, "a.comp: navi21: the driver ended the process (killed by SIGABRT)"),
    "hang": ("navi21", {"_CHILD": "import time; time.sleep(60)", "_SECONDS": 1},
             "navi21: the driver has not compiled the shaders within 1 s\n"),
    "no driver": ("navi21", {"_MANIFEST": "none*.json"}, "Mesa's driver for AMD GPUs is not installed ("),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line(stats, monkeypatch, name):
    if REASON and (name in ("unknown GPU", "no GPU") or (name != "no driver" and not INSTALLED)):
        pytest.skip(REASON)
    gpus, settings, said = ERRORS[name]
    for setting, value in settings.items():
        monkeypatch.setattr(driver_compiler, setting, value)
    status, out, err = stats("a.comp", "--gpu", gpus)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert said in err


COMPARED = ("VGPRs", "Spilled VGPRs", "Scratch size", "Subgroups per SIMD", "Instructions")


@needs_driver
def test_the_kernels_have_not_become_worse():
    """For each version of Mesa there can be a baseline, as figures differ between them."""
    names = [name for name in shaders.VARIANTS if not name.endswith("_wide")]
    result = driver_compiler.compile_for("navi21", [shaders.load(shaders.spirv(n)) for n in names])
    (version,) = re.findall(r"\d+\.\d+\.\d+", result.driver)
    path = Path(__file__).with_name(f"statistics-{version}.json")
    if not path.exists() and "VKOPS_WRITE_BASELINES" not in os.environ:
        pytest.skip(f"there are no figures of {result.driver}")
    statistics = {
        name: {figure: program.figures[figure] for figure in COMPARED if figure in program.figures}
        for name, program in zip(names, result.programs, strict=True)
    }
    figures.check(path, statistics, better_if_more=("Subgroups per SIMD",))
