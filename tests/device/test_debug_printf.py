"""``vkops debug printf``: what shaders print, under the layer that is installed.

Each run costs a second; what the layer says is parsed in tests/pure/test_debug_messages.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from models import dispatch, model, resource
from processes import outcome, without_notice

import vkops
from vkops.cli import main
from vkops.debug import layer
from vkops.gpu.adapters import layer_messages

pytestmark = [pytest.mark.posix("named pipes"), pytest.mark.system("VkLayer_khronos_validation")]

HEAD = """#version 450

#extension GL_EXT_debug_printf : require
#include "told.glsl"
layout(local_size_x = 4, local_size_y = 2) in;
layout(std430, binding = 0) buffer Numbers { uint numbers[]; };
"""
SHADER = (
    HEAD
    + r"""
void main() {
    uint i = gl_GlobalInvocationID.x + 4u * gl_NumWorkGroups.x * gl_GlobalInvocationID.y;
    debugPrintfEXT("x %u", i);
    debugPrintfEXT("x %u", i + 100u);
    for (uint k = 0u; k < 2u; ++k)
        debugPrintfEXT("loop (%d), %x %f: %v3u", int(i) - 3, k + 254u, 0.5, gl_GlobalInvocationID);
    debugPrintfEXT("a | \"b\" 100%% [x]\nnext line %u", i);
    tell(i);
    numbers[i] = i;
}
"""
)
TOLD = """void tell(uint i) {
    if (i == 5u) debugPrintfEXT("included %u", i);
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, adapter):
    """A folder to be in, with SHADER as a.comp; children run on this adapter."""
    (tmp_path / "a.comp").write_text(SHADER)
    (tmp_path / "told.glsl").write_text(TOLD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("VKOPS_EXPECT", raising=False)
    return tmp_path


@pytest.fixture
def printf(folder, adapter, refuse, capfd):
    """Run it: status, rows of the table, standard output, standard error."""

    def run(*arguments):
        status = main(["debug", "printf", *arguments, "-a", adapter.name])
        seen = capfd.readouterr()
        refuse(status, seen.err)
        rows = [
            tuple(cell.strip() for cell in line.split("│")[1:-1])
            for line in seen.out.splitlines()
            if line.startswith("│")
        ]
        return status, rows, seen.out, without_notice(seen.err)

    return run


def test_lines_and_texts_of_one_invocation(printf):
    status, rows, _, err = printf("a.comp", "--out", "uint32:8", "--invocation", "1,1")
    assert (status, err) == (0, "")
    assert [row[0] for row in rows] == ["1, 1, 0"] * 5 + ["", "1, 1, 0"]
    assert [row[1:] for row in rows] == [
        ("a.comp:10", "x 5"),
        ("a.comp:11", "x 105"),
        ("a.comp:13", "loop (2), fe 0.500000: 1, 1, 0"),
        ("a.comp:13", "loop (2), ff 0.500000: 1, 1, 0"),
        ("a.comp:14", 'a | "b" 100% [x]'),
        ("", "next line 5"),
        ("told.glsl:2", "included 5"),
    ]


def test_as_many_rows_as_asked_for(printf):
    status, rows, out, _ = printf("a.comp", "--out", "uint32:8", "--rows", "3")
    assert (status, len(rows)) == (0, 3)
    assert "\n38 more (--rows shows them)\n" in out  # 8 invocations print 5, one 6
    status, rows, out, _ = printf("a.comp", "--out", "uint32:8", "--invocation", "2,0,1")
    assert (status, rows) == (0, [])
    assert out.endswith("\nNothing was printed by invocation 2,0,1\n")


@pytest.mark.usefixtures("shared_memory")
def test_a_model_of_several_dispatches(printf, folder):
    numbers = {"DataType": "UINT32", "Sizes": [4]}
    text = (
        HEAD
        + 'void main() { if (gl_LocalInvocationIndex == 0u) debugPrintfEXT("at %u", numbers[0]); }'
    )
    (folder / "b.comp").write_text(text)
    copy = {
        "type": "ELEMENT_WISE_IDENTITY",
        "desc": {"InputTensor": numbers, "OutputTensor": numbers},
    }
    look = {"type": "glsl", "sourcePath": "b.comp", "compilerArgs": ["-g"]}
    document = model(
        {"X": resource("UINT32", [7, 8, 9, 10]), "Y": resource("UINT32", [9, 10, 11, 12])},
        {"look": look, "copy": copy},
        dispatch("look", Numbers="X") | {"threadGroupCount": [2, 1, 1]},
        dispatch("copy", InputTensor="Y", OutputTensor="X"),
        dispatch("look", Numbers="X") | {"threadGroupCount": [1, 1, 1]},
    )
    (folder / "m.json").write_text(json.dumps(document))
    status, rows, _, err = printf("m.json")
    assert (status, err) == (0, "")
    assert [sorted(rows[:2]), rows[2:]] == [  # workgroups run in any order
        [("0, 0, 0", "b.comp:7", "at 7"), ("4, 0, 0", "b.comp:7", "at 7")],
        [("0, 0, 0", "b.comp:7", "at 9")],
    ]
    status, rows, _, _ = printf("m.json", "--kernels")
    assert status == 0
    assert [row[0] for row in rows] == ["look", "look", "copy", "look"]
    assert [row[1] for row in rows[2:]] == ["0, 0, 0", "0, 0, 0"]
    # The layer 1.3 finds a statement after it, which can be in the file that includes this one.
    assert re.match(r"(region\.glsl|copy\.comp):\d+", rows[2][2])
    assert re.fullmatch(r"record 0: dst \d+, src \d+, position 0", rows[2][3])


def test_a_python_program(printf, folder, adapter):
    """Its arguments are its own, and lines are those of its shaders in its text."""
    (folder / "own.py").write_text(
        "import sys, numpy, vkops\n"
        'SHADER = """#version 450\n#extension GL_EXT_debug_printf : require\n'
        "layout(local_size_x = 2) in;\nlayout(std430, binding = 0) buffer Y { uint y[]; };\n"
        "void main() {\n    uint i = gl_GlobalInvocationID.x;\n"
        '    debugPrintfEXT("at %u", i);\n    y[i] = i;\n}"""\n'
        f"with vkops.Device({adapter.index}) as device:\n"
        "    device.compile_shader(SHADER)(device.tensor(numpy.zeros(2, 'u4')), threads=2)\n"
        "print(sys.argv[1:])\nsys.exit(4)\n"
    )
    status, rows, out, err = printf("own.py", "--flat")
    assert (status, err) == (4, "")
    assert f"['--flat', '-a', '{adapter.name}']\n" in out
    assert sorted(rows) == [("0, 0, 0", "own.py:8", "at 0"), ("1, 0, 0", "own.py:8", "at 1")]


def test_a_shader_that_prints_nothing(printf, folder):
    (folder / "quiet.comp").write_text(
        HEAD + "void main() { if (gl_LocalInvocationIndex == 0u) numbers[0] = 3u; }"
    )
    status, rows, out, err = printf("quiet.comp", "--out", "uint32:1")
    assert (status, rows, err) == (0, [], "")
    assert out.endswith("Output 'Numbers' [1]: 3\nNothing was printed\n")


def test_lost_messages(printf, folder, monkeypatch):
    """Its buffer is so large that filling it takes a minute: here it is small."""
    small = Path(shutil.copytree(layer_messages.FOLDER, folder / "settings"))
    text = (layer_messages.FOLDER / "printf.txt").read_text()
    assert text.count("= 16777216") == 1
    (small / "printf.txt").write_text(text.replace("16777216", "1024"))
    monkeypatch.setattr(layer_messages, "FOLDER", small)
    status, rows, _, err = printf("a.comp", "--out", "uint32:512", "--groups", "64")
    assert 0 < len(rows) < 100
    assert status == 1
    assert err.splitlines()[-1] == (
        "Messages were lost: a dispatch printed more than the layer's buffer holds; print less"
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["none.json"], "Failed to parse the model: none.json: cannot be read: No such file or directory"),
        (["none.comp"], "none.comp: No such file or directory"),
        (["a.comp", "--out", "uint32:0"], "uint32:0: must be "),
        (["a.txt"], "a.txt: must be a .json, .onnx, .comp, .hlsl, .slang, .spv, .py file"),
        (["a.comp", "--invocation", "a"], "Failed to parse command-line arguments: "),
        (["a.comp", "--invocation", "1,2,3,4"], "Failed to parse command-line arguments: "),
        (["a.comp", "--invocation=-1"], "Failed to parse command-line arguments: "),
        (["a.comp", "--bogus"], "Failed to parse command-line arguments: No such option '--bogus'"),
    ],
)  # fmt: skip
def test_errors_of_the_program(printf, target, message):
    status, rows, _, err = printf(*target)
    assert status in (1, 2)
    assert err.startswith(message)
    assert (err.count("\n"), rows) == (1, [])


@pytest.mark.parametrize(
    "command", [["printf", "a.comp", "--out", "uint32:8"], ["validate", "true"]]
)
def test_without_the_layer(folder, monkeypatch, capfd, command):
    monkeypatch.setenv("VK_LAYER_PATH", str(folder))
    assert main(["debug", *command]) == 1
    assert capfd.readouterr().err == (
        "debug: VK_LAYER_KHRONOS_validation is not installed (Debian and Ubuntu: apt install "
        "vulkan-validationlayers) [DEV-08]\n"
    )


def test_a_run_that_a_signal_ends(printf, folder, monkeypatch):
    """As a driver's crash does; what was printed before is shown."""
    (folder / "sitecustomize.py").write_text(
        "import atexit, os\n"
        "def die(): os.kill(os.getpid(), 11)\n"
        "os.register_at_fork(after_in_child=lambda: atexit.register(die))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    status, rows, _, err = printf("a.comp", "--out", "uint32:8", "--invocation", "0")
    assert status == 128 + signal.SIGSEGV
    assert err.count("\n") == 1
    assert "SIGSEGV" in err
    assert len(rows) == 6


@pytest.mark.parametrize("name", ["printf", "validate"])
def test_interrupted(folder, adapter, name):
    """As the terminal does: all processes of the group get the signal, and one says so."""
    command = [sys.executable, "-m", "vkops", "debug", name, "a.comp", "--out", "uint32:8"]
    command += ["-a", adapter.name, "-i", "1000000000"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Running on")
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err == "Interrupted\n"


RUNNING = """
import sys
import numpy as np, vkops
arguments = {"printf": True} if sys.argv[2] == "argument" else {}
device = vkops.Device(int(sys.argv[1]), **arguments)
other = vkops.Device(int(sys.argv[1]), printf=False)
text = '''#version 450
#extension GL_EXT_debug_printf : require
layout(local_size_x = 2) in;
layout(std430, binding = 0) buffer Numbers { uint numbers[]; };
void main() { uint i = gl_GlobalInvocationID.x; debugPrintfEXT("%u\\\\nis %u", i, numbers[i]++); }'''
shader, silent = (each.compile_shader(text) for each in (device, other))
x = device.tensor(np.uint32([10, 20]))
print("before")
shader(x, threads=2)
print("between")
silent(other.tensor(np.uint32([10, 20])), threads=2)
for _ in range(40):  # the layer reads what shaders print in a thread of its own
    shader(x[1:].copy(), groups=1)
print("after", x.tolist())
"""


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_a_program_that_goes_on_prints(adapter, how, refuse):
    flag = "1" if how == "variable" else "0"
    status, said, errors = outcome("-c", RUNNING, adapter.index, how, VKOPS_PRINTF=flag)
    refuse(status, errors)
    assert status == 0
    first = ["before", "0", "is 10", "1", "is 20", "between", "0", "is 21"]
    lines = [line for line in said.splitlines() if not line.startswith(layer._NOISE)]
    assert lines[: len(first)] == first
    assert lines.count("is 21") >= 40  # an invocation out of bounds may print anything
    assert lines[-1] == "after [11, 21]"
    assert "printf" not in errors


@pytest.mark.parametrize("printf", [1, "yes"])
def test_what_is_not_a_flag(adapter, printf):
    with pytest.raises(
        vkops.DeviceError, match=r"printf: got .*, must be True or False \[DEV-14\]"
    ):
        vkops.Device(adapter.index, printf=printf)
