"""ONNX's own backend tests of all models whose operators vkops has."""

import re
import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import onnx.backend.test
import pytest
from adapters import wanted
from onnx.backend.test.loader import load_model_tests
from onnx_backend_excluded import EXCLUDED
from onnx_models import CONCAT, TWO

import vkops
from vkops.errors import DeviceError, ModelError
from vkops.onnx import backend
from vkops.onnx.backend import VkopsBackend
from vkops.onnx.operators import OPERATORS

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")


class Tested(VkopsBackend):
    """The backend on the adapter under test, whatever device the tests ask for."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return super().prepare(model, f"VULKAN:{wanted()[0].index}", **kwargs)

    @classmethod
    def supports_device(cls, device):
        return device != "CUDA"


def is_ours(case):
    model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
    used = {node.op_type for node in model.graph.node}
    return bool(used) and used <= OPERATORS.keys()


def reason(name):
    """Return the error text of an excluded test; None for all others."""
    return next((text for pattern, text in EXCLUDED.items() if re.search(pattern, name)), None)


def refused(run, text):
    def test(self):
        with pytest.raises(ModelError, match=re.escape(text)):
            run(self)

    return test


for pooling in ("averagepool", "lppool", "maxpool"):  # it takes seconds to make their cases
    sys.modules[f"onnx.backend.test.case.node.{pooling}"] = ModuleType(pooling)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the cases overflow on purpose
    NAMES = {c.name for kind in KINDS for c in load_model_tests(kind=kind) if is_ours(c)}
    CASES = onnx.backend.test.BackendTest(Tested, __name__).test_cases

for group in CASES.values():
    for attribute in [name for name in vars(group) if name.startswith("test_")]:
        name = attribute.removesuffix("_cpu")
        if name not in NAMES:
            delattr(group, attribute)
        elif (text := reason(name)) is not None:
            setattr(group, attribute, refused(getattr(group, attribute), text))
del group  # pytest would collect it a second time

globals().update(CASES)


def test_every_operator_that_moves_data_has_cases():
    tested = {name for group in CASES.values() for name in vars(group) if name.startswith("test_")}
    assert len(tested) == len(NAMES)
    ours = {name for name in NAMES if reason(name) is None}
    assert len(ours) > 130
    moving = (
        "split concat slice constant_pad transpose depthtospace eyelike gather_elements gathernd "
        "identity onehot range reversesequence scatter_elements scatter_with scatternd "
        "tensorscatter tril triu"
    )
    for operator in moving.split():
        assert any(name.startswith(f"test_{operator}") for name in ours), operator


def test_every_exclusion_is_needed():
    for pattern in EXCLUDED:
        assert any(re.search(pattern, name) for name in NAMES), pattern


# -- the backend's own functions --------------------------------------------------------------------


def test_the_backend_refuses_when_it_prepares():
    proto = onnx.parser.parse_model(
        TWO.replace("a, b = Split <num_outputs = 2> (x)", "a = Add (x, x) b = Identity (x)")
    )
    with pytest.raises(ModelError, match="A: depends on graph input 'x'; vkops moves data"):
        backend.prepare(proto)
    assert not backend.is_compatible(proto)


def test_backend_devices():
    infos = vkops.devices()
    assert backend.supports_device("VULKAN")
    assert all(backend.supports_device(f"VULKAN:{info.index}") for info in infos)
    assert backend.supports_device("CPU") == any(info.type == "CPU" for info in infos)
    for device in ("CUDA", "VULKAN:99", "VULKAN:x", "VULKAN:" + "9" * 5000, "CPU:1", "", 1, None):
        assert not backend.supports_device(device)
        with pytest.raises(DeviceError, match=r"no device .*; available: VULKAN, VULKAN:0 "):
            backend.prepare(onnx.parser.parse_model(CONCAT), device)


def test_backend_takes_inputs_in_order_by_name_and_with_defaults():
    text = """<ir_version: 8, opset_import: ["" : 13]>
    with_default (float[2] a, float[2] b) => (float[4] y) <float[2] b = {3, 4}> {
      y = Concat <axis = 0> (a, b)
    }"""
    rep = backend.prepare(onnx.parser.parse_model(text))
    a, b = np.float32([1, 2]), np.float32([5, 6])
    assert rep.run(a).y.tolist() == [1, 2, 3, 4]
    assert rep.run([a, b]).y.tolist() == [1, 2, 5, 6]
    assert rep.run({"b": b, "a": a})[0].tolist() == [1, 2, 5, 6]
    with pytest.raises(ModelError, match="got 3 inputs, must be 2"):
        rep.run([a, b, b])
    with pytest.raises(ModelError, match="input 'a': is missing"):
        rep.run({"b": b})


def test_backend_run_model_and_is_compatible():
    model = onnx.parser.parse_model(CONCAT)
    x = np.float32([[1, 2]])
    (y,) = backend.run_model(model, [x, x])
    assert y.tolist() == [[1, 2], [1, 2]]
    y[0, 0] = 7  # it is the caller's own
    assert backend.is_compatible(model)
    other = onnx.parser.parse_model(CONCAT.replace("Concat <axis = 0>", "Add"))
    other.graph.node[0].op_type = "Max"
    assert not backend.is_compatible(other)


def test_backend_run_node():
    node = onnx.helper.make_node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2)
    a, b = backend.run_node(node, [np.arange(3)], opset_version=18)
    assert (a.tolist(), b.tolist()) == ([0, 1], [2])
    node = onnx.helper.make_node("Split", ["x"], ["a", "b"], axis=0)
    assert backend.run_node(node, {"x": np.arange(4)}, opset_version=13).b.tolist() == [2, 3]
    node = onnx.helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)
    parts = [np.float32([1]), np.float32([2, 3])]
    assert backend.run_node(node, [parts]).y.tolist() == [1, 2, 3]
    node = onnx.helper.make_node("Identity", ["s"], ["y"])
    assert backend.run_node(node, [[]]).y == []
    with pytest.raises(ModelError, match="inputs: got 0 inputs, must be 1: "):
        backend.run_node(node, [])
