"""The kinds of arguments of shaders: one module for each."""

import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from refusals import fault

from vkops.errors import BindingError
from vkops.runtime import shader_arguments
from vkops.runtime.shader_arguments import COUNTED, RESOLVERS
from vkops.shaders.module import DESCRIPTOR_TYPES

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
FILE = r"\n\+\+\+ vkops/runtime/shader_arguments/texels\.py\n((?:\+.*\n)+)```"

TEXELS = """#version 450
layout(local_size_x = 8) in;
layout(binding = 0, r32ui) uniform uimageBuffer B;
layout(binding = 1) uniform usamplerBuffer T;
void main() {
    const int i = int(gl_GlobalInvocationID.x);
    imageStore(B, i, imageLoad(B, i) + 10 * texelFetch(T, i));
}"""


def test_each_kind_of_block_has_one_module():
    kinds = Counter(kind for module in shader_arguments._MODULES for kind in module.KINDS)
    assert kinds == Counter(DESCRIPTOR_TYPES.keys())
    assert RESOLVERS.keys() == COUNTED.keys() == kinds.keys()


def test_the_kind_in_contributing(device, monkeypatch):
    """Nothing but the file on the page is needed for it."""
    (lines,) = re.findall(FILE, PAGE.read_text("utf-8"))
    module = ModuleType("texels")
    exec(re.sub(r"(?m)^\+", "", lines), module.__dict__)
    for kind, counted in module.KINDS.items():
        assert COUNTED[kind] == counted
        monkeypatch.setitem(RESOLVERS, kind, module.resolved)
    shader = device.compile_shader(TEXELS, name="x")
    x = device.tensor(np.arange(9, dtype=np.uint32))
    y = device.tensor(np.arange(100, 109, dtype=np.uint32))
    expected = np.arange(100, 109, dtype=np.uint32)
    for start in (0, 1):  # the second time, copies are bound
        shader(y[start : start + 8], x[start : start + 8], threads=8)
        expected[start : start + 8] += 10 * np.arange(start, start + 8, dtype=np.uint32)
        np.testing.assert_array_equal(y.numpy(), expected)
    text = fault(lambda: shader(x, x.view(np.float32), threads=8), BindingError)
    assert text.startswith("x T: got float32, must be ")
    assert text.endswith("[SH-14]")
    with pytest.raises(BindingError, match=r"x B: nothing is bound to it \[SH-04\]"):
        shader.dispatch({"T": x})
