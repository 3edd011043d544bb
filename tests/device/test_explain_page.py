"""The pages of ``vkops explain`` in Chromium, which brings SwiftShader, too."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from browser import chromium, needs_chromium, probe
from matplotlib.image import imread
from models import model, tensor

from vkops.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = needs_chromium


LARGE = {
    "space_to_depth": {
        "InputTensor": tensor(8, 3, 224, 224), "OutputTensor": tensor(8, 12, 112, 112), "BlockSize": 2,
    },
    "element_wise_identity": {  # windows of an image
        "InputTensor": tensor(16, 2, 2, 4, 4, 3, Strides=[192, 96, 12, 24, 3, 1]),
        "OutputTensor": tensor(16, 2, 2, 4, 4, 3),
    },
    "join": {
        "InputTensors": [tensor(4096, n) for n in (3000, 1000, 96)],
        "OutputTensor": tensor(4096, 4096), "Axis": 1,
    },
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
    """Write the page of an example, or of a large model, and return its path."""

    def page(name):
        path = EXAMPLES / name
        if name in LARGE:
            path = tmp_path / f"{name}.json"
            document = model({}, {name: {"type": name.upper(), "desc": LARGE[name]}})
            path.write_text(json.dumps(document))
        file = tmp_path / "page.html"
        assert main(["explain", str(path), "--html", str(file)]) == 0
        return file

    return page


def colours(image):
    """The different colours of a screenshot's pixels."""
    pixels = (imread(image)[..., :3] * 255).round().astype(int)
    assert pixels.shape[1] in (1280, 400)
    codes = pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]
    return set(codes.ravel().tolist()), codes


@pytest.mark.parametrize("name", ["split.json", "space_to_depth"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_screenshot(write, name, width, scheme):
    html = write(name)
    image = html.with_name("page.png")
    preferred = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    options = f"--screenshot={image}", f"--window-size={width},1600", preferred
    _, said = chromium(html, html.parent, *options)
    assert "CONSOLE" not in said
    shown, codes = colours(image)
    assert len(shown) > 20
    corner = codes[0, 0]
    assert corner == (0xFFFFFF if scheme == "light" else 0x15181D)
    assert (codes != corner).mean() > 0.02


PROBE = """
  const said = [];
  const place = (name) => [...document.querySelectorAll("[data-tensor]")]
    .find((tensor) => tensor.getAttribute("aria-label").startsWith(`${name}:`));
  const say = () => {
    const lit = [...document.querySelectorAll(".lit")].map((cell) => cell.textContent);
    said.push([document.querySelector("figcaption").textContent, lit]);
  };
  const at = (name, i, type) => {
    place(name).querySelectorAll(".cells i")[i].dispatchEvent(new PointerEvent(type, {bubbles: true}));
    say();
  };
  const slice = (name, index) => {
    const input = place(name).querySelector("input");
    input.value = index;
    input.dispatchEvent(new Event("input"));
  };
  const whole = (name, x, y, type) => {
    const canvas = place(name).querySelector("canvas");
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const where = {clientX: left + x * width, clientY: top + y * height, bubbles: true};
    canvas.dispatchEvent(new PointerEvent(type, where));
    say();
  };
  PROGRAM;
  return {said, fits: document.documentElement.scrollWidth <= innerWidth};
"""


def point(html, program):
    """Run a program on a narrow page; return what the caption said, and the lit cells."""
    probed = probe(html, html.parent, PROBE.replace("PROGRAM", program))
    assert probed["fits"]
    return [(caption, lit) for caption, lit in probed["said"]]


@pytest.mark.parametrize(
    ("name", "program", "expected"),
    [
        (
            "split.json",
            'at("OutputTensors[1]", 4, "pointerover"); at("InputTensor", 5, "pointerover")',
            [
                ("OutputTensors[1][1, 1] (element 4, at byte 16) is "
                 "InputTensor[1, 3] (element 9, at byte 36)", ["9", "9"]),
                ("InputTensor[0, 5] (element 5, at byte 20) goes to "
                 "OutputTensors[2][0, 0] (element 0, at byte 0)", ["5", "5"]),
            ],
        ),
        (
            "tile.json",
            'at("InputTensor", 4, "pointerover")',
            [("InputTensor[0, 0, 1, 1] (element 4, at byte 16) goes to OutputTensor[0, 0, 1, 1] "
              "(element 10, at byte 40) and 8 more", ["4", "4"])],
        ),
        (
            "gather.json",
            'at("OutputTensor", 3, "pointerover"); at("IndicesTensor", 2, "pointerover");'
            'at("InputTensor", 1, "pointerover")',
            [
                ("OutputTensor[1, 1] (element 3, at byte 12) is element 1 + 2 × IndicesTensor[0, 1] "
                 "of InputTensor", ["1", "a[b1]"]),
                ("IndicesTensor[0, 2] (element 2, at byte 8) is an index for "
                 "OutputTensor[2, 0] (element 4, at byte 16)", ["2", "a[b2]"]),
                ("InputTensor[0, 1] (element 1, at byte 4) goes to any element of OutputTensor for "
                 "which IndicesTensor selects it", ["1"]),
            ],
        ),
        (
            "scatter.json",
            'at("UpdatesTensor", 4, "pointerover"); at("OutputTensor", 2, "pointerover");'
            'at("IndicesTensor", 1, "pointerover")',
            [
                ("UpdatesTensor[1, 1] (element 4, at byte 16) goes to element "
                 "1 + 3 × IndicesTensor[1, 1] of OutputTensor", ["4", "4"]),
                ("OutputTensor[0, 2] (element 2, at byte 8) is InputTensor[0, 2] "
                 "(element 2, at byte 8), unless IndicesTensor selects it", ["2", "a2"]),
                ("IndicesTensor[0, 1] (element 1, at byte 4) says where UpdatesTensor[0, 1] "
                 "(element 1, at byte 4) goes", ["1", "1"]),
            ],
        ),
        (
            "padding1.json",
            'at("OutputTensor", 0, "pointerover")',
            [("OutputTensor[0, 0, 0, 0] (element 0, at byte 0) is the constant 0x41100000", ["="])],
        ),
        (
            "reverse_subsequences.json",
            'at("OutputTensor", 5, "pointerover")',
            [("OutputTensor[0, 0, 1, 1] (element 5, at byte 20) is an element of InputTensor, whose "
              "sequence has the length SequenceLengthsTensor[0, 0, 1, 0] (element 1, at byte 4)",
              ["1", "a[b1]"])],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "(" not in value else "",
)  # fmt: skip
def test_pointing_at_an_element_tells_its_source(write, name, program, expected):
    assert point(write(name), program) == expected


def indices(caption):
    """The indices that a caption names, and the first address."""
    places = [
        [int(n) for n in text.split(", ")] for text in re.findall(r"\w\[([\d, ]+)\]", caption)
    ]
    return places, int(re.search(r"element ([\d,]+)", caption)[1].replace(",", ""))


def test_the_parts_of_a_large_tensor(write):
    """Tapping the whole zooms there, and shows the source in the other tensor, whatever its slice."""
    program = (
        'whole("OutputTensor", 0.5, 0.6, "pointermove"); whole("OutputTensor", 0.5, 0.6, "click");'
        'slice("OutputTensor", 7); at("OutputTensor", 1, "click")'
    )
    pointed, tapped, in_slice = point(write("space_to_depth"), program)
    assert [len(lit) for _, lit in (tapped, in_slice)] == [2, 2]
    for batch, (caption, lit) in ((0, pointed), (0, tapped), (7, in_slice)):
        (output, source), address = indices(caption)
        n, channel, row, column = output
        assert n == batch
        assert address == ((n * 12 + channel) * 112 + row) * 112 + column
        block, plane = divmod(channel, 3)
        assert source == [n, plane, 2 * row + block // 2, 2 * column + block % 2]
        read = ((n * 3 + plane) * 224 + source[2]) * 224 + source[3]
        assert set(lit) <= {str(read)}  # the elements that are pointed at may not be zoomed


def test_large_tensors_of_several_regions(write):
    ((caption, lit),) = point(write("join"), 'whole("OutputTensor", 0.9, 0.5, "click")')
    ((row, column), source), _ = indices(caption.replace("InputTensors[1]", "InputTensors"))
    assert source == [row, column - 3000]
    assert lit == [str(1000 * row + source[1]), f"b{1000 * row + source[1]}"]


def test_tensors_are_drawn_as_they_are_in_memory(write):
    """Windows of an image: element 48 of an image is in its third row, in the first window."""
    program = 'slice("InputTensor", 9); at("OutputTensor", 0, "pointerover"); whole("InputTensor", 0.2, 0.3, "click")'
    _, (caption, lit) = point(write("element_wise_identity"), program)
    (read, written), address = indices(caption)
    assert read == written
    assert read[0] == 9
    assert address == sum(np.multiply(read, [192, 96, 12, 24, 3, 1]))
    assert lit == [str(address)] * 2
