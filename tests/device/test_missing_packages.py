"""Commands without the packages that they need: one line that says how to install them."""

import os

import pytest
from processes import OWN_SITE, ROOT, outcome

pytestmark = OWN_SITE

MODEL = "examples/channel_shuffle.onnx"
BLOCKER = """
import os, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in os.environ["BLOCKED"].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""
ONNX = f"{MODEL}: ONNX models need the package {{}}: pip install 'vkops[onnx]'"
KOMPUTE = (
    "Failed to create {}: devices need the wheel of Kompute (kp) that scripts/wheels builds on Linux "
    "(No module named {!r}): pip install --force-reinstall --find-links DIST kp, where DIST is the folder "
    "of the wheel"
)


@pytest.fixture
def vkops(tmp_path):
    """Run a command in a process that does not have a package: its status and its errors."""
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(tmp_path), str(ROOT / "scripts")])

    def run(blocked, *arguments):
        package = "benchmarks" if arguments[0] == "bench" else "vkops"
        command = ("-m", package, *(arguments[1:] if arguments[0] == "bench" else arguments))
        status, _, errors = outcome(*command, cwd=ROOT, PYTHONPATH=path, BLOCKED=blocked)
        return status, errors

    return run


@pytest.mark.parametrize(
    ("blocked", "arguments", "message"),
    [
        ("onnx", ["run", MODEL], ONNX.format("onnx")),
        ("onnx", ["explain", MODEL], ONNX.format("onnx")),
        ("onnx", ["debug", "validate", MODEL], ONNX.format("onnx")),
        ("ml_dtypes", ["check", MODEL], ONNX.format("ml_dtypes")),
        ("onnx", ["check", "examples/channel_shuffle.json"],
         "Failed to parse the model: examples/channel_shuffle.json: dispatchables.shuffle.sourcePath: "
         + ONNX.format("onnx")),
        ("onnx,onnxruntime", ["bench", "--peer", "onnxruntime"],
         "peer onnxruntime: onnxruntime and onnx not installed: pip install 'vkops[peers]'"),
        ("torch", ["bench", "--peer", "torch"],
         "peer torch: torch not installed: pip install 'vkops[peers]'"),
        ("matplotlib", ["bench", "--plot", "x.png"],
         "plot: matplotlib is not installed: pip install matplotlib"),
        ("PIL", ["run", MODEL, "--input", "x:docs/performance.png"],
         "x:docs/performance.png: needs the package Pillow to be read or written: pip install 'vkops[pictures]'"),
        ("vkops_native", ["run", "examples/split.json"], KOMPUTE.format("adapter", "vkops_native")),
        ("kp", ["run", "examples/split.json"], KOMPUTE.format("a device", "kp")),
        ("jinja2", ["explain", "examples/split.json"],
         "The package jinja2 is not installed, which vkops needs: pip install vkops"),
        ("rapidjson", ["check", "examples/split.json"],
         "The package rapidjson is not installed, which vkops needs: pip install vkops"),
    ],
)  # fmt: skip
def test_a_missing_package_is_one_line(vkops, blocked, arguments, message):
    status, said = vkops(blocked, *arguments)
    if "VK_LAYER_KHRONOS_validation is not installed" in said:
        pytest.skip("needs the validation layer")
    assert (status, said) == (1, message + "\n")


def test_a_missing_package_in_python(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    code = """
import vkops
for use in ("from vkops.onnx import Session", "import vkops.dask"):
    try:
        exec(use)
    except vkops.MissingPackageError as error:
        print(error.name, error, isinstance(error, ImportError))
"""
    _, printed, errors = outcome("-c", code, PYTHONPATH=str(tmp_path), BLOCKED="onnx,dask")
    assert errors == ""
    assert printed.splitlines() == [
        "onnx ONNX models need the package onnx: pip install 'vkops[onnx]' True",
        "dask Dask arrays of tensors need the package dask: pip install 'vkops[dask]' True",
    ]
