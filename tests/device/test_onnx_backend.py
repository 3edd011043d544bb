"""ONNX's own backend tests of all models whose operators vkops has."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import onnx
import onnx.backend.test
import pytest
from adapters import wanted
from onnx.backend.test.loader import load_model_tests
from onnx_backend_excluded import EXCLUDED

from vkops.errors import ModelError
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
    for operator in (
        "split",
        "concat",
        "slice",
        "constant_pad",
        "transpose",
        "depthtospace",
        "eyelike",
        "gather_elements",
        "gathernd",
        "identity",
        "onehot",
        "range",
        "reversesequence",
        "scatter_elements",
        "scatter_with",
        "scatternd",
        "tensorscatter",
        "tril",
        "triu",
    ):
        assert any(name.startswith(f"test_{operator}") for name in ours), operator


def test_every_exclusion_is_needed():
    for pattern in EXCLUDED:
        assert any(re.search(pattern, name) for name in NAMES), pattern
