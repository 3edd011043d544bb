"""Objects in a notebook: what a kernel of Jupyter sends to the browser."""

from __future__ import annotations

import re
from base64 import b64decode
from zlib import decompress

import nbclient
import nbformat
import numpy as np
import onnx
import pytest
from browser import needs_chromium, probe
from documents import Document

import vkops
import vkops.onnx
from vkops.tensors.tensor import _INTERNAL

SHADER = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, set = 1, binding = 2) buffer Target { float target[]; };
layout(push_constant) uniform Push { uint factor; };
void main() { target[gl_GlobalInvocationID.x] = factor * source[gl_GlobalInvocationID.x]; }"""
START = f"""
import numpy as np, vkops, vkops.debug
device = vkops.Device(INDEX)
x = device.tensor(np.arange(24, dtype=np.int32).reshape(2, 3, 4))
picture = device.image(np.uint8([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [9, 8, 7]]]))
shader = device.compile_shader({SHADER!r}, name="<b>scale</b> & more")
with device.record() as program:
    vkops.flip(x).copy()
"""
CELLS = {
    "x": ("Tensor (2, 3, 4) int32", "<td>11</td>"),
    "picture": ("vkops.Image of 2 x 2 x 3 uint8", "data:image/png;base64,"),
    "device": ("<details>", "max_compute_work_group_size", "iB</td>"),
    "device.tensor(np.float32([0.1, 1e9]))": ("<td>0.1</td><td>1e+09</td>",),
    "device.limits": ("<td>max_compute_work_group_size</td>", "<td>features</td>"),
    "vkops.profile()": ("&lt;vkops.Profile of a block that has not ended&gt;",),
    "shader": (
        "Shader &lt;b&gt;scale&lt;/b&gt; &amp; more",
        "<td>1.2</td><td>Target</td><td>storage</td><td>float32</td><td>reads and writes</td>",
        "<td>Push constants</td><td>uint factor (4 bytes)</td>",
        "<td>64 x 1 x 1 invocations</td>",
    ),
    "shader.shader": ("<td>0</td><td>Source</td><td>storage</td><td>uint32</td><td>reads</td>",),
    "program": ("Recorded program of 1 step<", "copy_view"),
    "vkops.dml.SplitOperatorDesc(*SPLIT, axis=0).lower()": ("<iframe", "class=&quot;plan&quot;"),
    "with vkops.profile() as p: vkops.flip(x).copy()\np": (
        "devices worked",
        "<td>copy_view</td>",
        "<td>Cell In[12], line 1</td>",
    ),
    "vkops.debug.check(RACE, [np.zeros(1, np.uint32)], groups=1)": (
        ": 1 finding<",
        "<td>data race</td>",
        "<pre>    4 | void main() { a[0] = gl_GlobalInvocationID.x; }</pre>",
    ),
    "vkops.debug.check(shader.shader, groups=1, push=[2])": ("nothing was found",),
}
SPLIT = """
D = lambda n: vkops.dml.BufferTensorDesc(vkops.dml.TensorDataType.INT32, [n])
SPLIT = D(4), [D(1), D(3)]
RACE = '''#version 450
layout(local_size_x = 2) in;
layout(binding = 0) buffer A { uint a[]; };
void main() { a[0] = gl_GlobalInvocationID.x; }'''
"""


@pytest.fixture(scope="module")
def outputs(adapter):
    """The HTML that a kernel sends for each cell."""
    make = nbformat.v4
    cells = [make.new_code_cell(START.replace("INDEX", str(adapter.index)) + SPLIT)]
    cells += map(make.new_code_cell, CELLS)
    notebook = make.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [cell.outputs[-1].data for cell in notebook.cells[1:]]
    return dict(zip(CELLS, shown, strict=True))


@pytest.mark.parametrize("cell", CELLS)
def test_what_a_cell_shows(outputs, cell):
    page = outputs[cell]["text/html"]
    for text in CELLS[cell]:
        assert text in page
    assert "<b>scale" not in page
    assert len(page) < (60_000 if "<iframe" in page else 8_000)
    Document(page)
    assert "\\x03" not in outputs[cell]["text/plain"]  # SPIR-V


def pixels(page):
    """The width, the height and the rows of a PNG file in a page."""
    data = b64decode(re.search(r"base64,([^']+)'", page)[1])
    width, height, depth, colour = *np.frombuffer(data[16:24], ">u4"), data[24], data[25]
    assert depth == 8
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    length = int.from_bytes(data[33:37], "big")
    rows = np.frombuffer(decompress(data[41 : 41 + length]), np.uint8).reshape(height, -1)
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.uint8([[1, 2], [3, 4]]), [[[1], [2]], [[3], [4]]]),
        (np.float32([[0, 0.5], [2, np.nan]]), [[[0], [128]], [[255], [0]]]),
        (np.uint16([[0, 65535]]), [[[0], [255]]]),
        (np.int16([[-32768, 32767]]), [[[0], [255]]]),
    ],
)
def test_pictures(device, array, expected):
    assert pixels(device.image(array)._repr_html_()).tolist() == expected


def test_parts_of_large_and_deep_images(device):
    large = np.arange(1100, dtype=np.uint16).astype(np.uint8)[None].repeat(3, 0)
    assert (pixels(device.image(large)._repr_html_()) == large[:, ::3, None]).all()
    layers = np.arange(16, dtype=np.uint8).reshape(2, 2, 2, 2)
    shown = pixels(device.image(layers, dims=2, layers=True)._repr_html_())
    assert (shown == layers[0]).all()


def test_public_names(device):
    assert {"limits", "info", "tensor", "name"} <= {*dir(device)}
    assert "numpy" in dir(device.tensor([1]))
    inner = {
        name for each in (device, device.tensor([1])) for name in object.__dir__(each)
    } & _INTERNAL
    assert inner == _INTERNAL  # there is none that was renamed
    assert not inner & {*dir(device), *dir(device.tensor([1]))}
    assert {*dir(vkops)} == {*vkops.__all__, "__doc__", "__version__", "__array_api_version__"}


def test_what_cannot_be_read_now(device):
    x = device.tensor([1, 2])
    with device.record():
        shown = vkops.flip(x).copy()
        page = shown._repr_html_()
    assert page.startswith("<pre>")


IN_A_NOTEBOOK = (
    """<!DOCTYPE html><body style="background: COLOUR"><div>FIGURE</div><p>below</p></body>"""
)


@needs_chromium
@pytest.mark.parametrize(("colour", "paper"), [("#111111", "#15181d"), ("#ffffff", "#fff")])
def test_a_plan_has_the_colours_of_the_notebook_and_the_height_of_its_figure(
    colour, paper, tmp_path
):
    desc = vkops.dml.BufferTensorDesc(vkops.dml.TensorDataType.INT32, [6])
    plan = vkops.dml.SplitOperatorDesc(desc, [desc], axis=0).lower()
    page = tmp_path / "notebook.html"
    page.write_text(IN_A_NOTEBOOK.replace("COLOUR", colour).replace("FIGURE", plan._repr_html_()))
    program = """
      const inner = document.querySelector("iframe").contentDocument;
      const style = inner.defaultView.getComputedStyle(inner.body);
      const frame = document.querySelector("iframe").getBoundingClientRect();
      return {
        background: style.backgroundColor,
        paper: style.getPropertyValue("--paper").trim(),
        unused: frame.height - inner.body.offsetHeight,
        hidden: inner.documentElement.scrollHeight - frame.height,
      };
    """
    probed = probe(page, tmp_path, program)
    assert probed == {"background": "rgba(0, 0, 0, 0)", "paper": paper, "unused": 0, "hidden": 0}


def test_objects_say_what_they_are(device):
    desc = vkops.dml.BufferTensorDesc(vkops.dml.TensorDataType.INT32, [5])
    copy = vkops.dml.ElementWiseIdentityOperatorDesc(desc, desc)
    compiled = device.compile_operator(device.create_operator(copy))
    name = f"<vkops.CompiledOperator ELEMENT_WISE_IDENTITY (inputs: 1, outputs: 1) on {device.info.label}>"
    assert repr(compiled) == name
    bound = compiled.bind([device.buffer(20)], [device.buffer(20)])
    assert repr(bound) == f"<vkops.BoundOperator of {name}>"
    graph = vkops.dml.Graph()
    graph.output(vkops.dml.identity(graph.input(desc)))
    assert repr(graph) == "<Graph (inputs: 1, nodes: 1, outputs: 1)>"
    model = """<ir_version: 9, opset_import: ["" : 18]>
    m (float[N] x) => (float[N] y) { y = Identity (x) }"""
    session = vkops.onnx.Session(onnx.parser.parse_model(model), device)
    shown = "<vkops.onnx.Model of opset 18 (inputs: 1, nodes: 1, outputs: 1)>"
    assert repr(session.model) == shown
    assert repr(session) == f"<vkops.onnx.Session of {shown} on {device.info.label}>"
