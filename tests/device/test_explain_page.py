"""The pages of ``vkops explain`` in Chromium, which brings SwiftShader, too."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from matplotlib.image import imread

from vkops.cli import main

CHROMIUM = shutil.which("chromium")
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")


def chromium(html, *arguments):
    """Return the standard output and the standard error of Chromium."""
    done = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={html.parent / 'profile'}", "--virtual-time-budget=2000",
         "--enable-logging=stderr", *arguments, html.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


@pytest.fixture(
    params=["split.json", "gather.json", "transpose.json", "channel_shuffle.onnx", "large"]
)
def html(request, tmp_path):
    """A page."""
    model = EXAMPLES / request.param
    if request.param == "large":
        model = tmp_path / "large.json"
        desc = {
            "InputTensors": [{"DataType": "FLOAT32", "Sizes": [4096, n]} for n in (3000, 1000, 96)],
            "OutputTensor": {"DataType": "FLOAT32", "Sizes": [4096, 4096]},
            "Axis": 1,
        }
        dispatchables = {"columns": {"type": "JOIN", "desc": desc}}
        model.write_text(
            json.dumps({"resources": {}, "dispatchables": dispatchables, "commands": []})
        )
    file = tmp_path / "page.html"
    assert main(["explain", str(model), "--html", str(file)]) == 0
    return file


def colours(image):
    """The different colours of a screenshot's pixels."""
    pixels = (imread(image)[..., :3] * 255).round().astype(int)
    assert pixels.shape[1] in (1280, 400)
    codes = pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]
    return set(codes.ravel().tolist()), codes


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_screenshot(html, width, scheme):
    image = html.with_name("page.png")
    preferred = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    _, said = chromium(html, f"--screenshot={image}", f"--window-size={width},1600", preferred)
    assert "CONSOLE" not in said
    found, codes = colours(image)
    assert len(found) > 20
    corner = codes[0, 0]
    assert corner == (0xFFFFFF if scheme == "light" else 0x15181D)
    assert (codes != corner).mean() > 0.02


def test_the_script_and_the_width_on_a_phone(html):
    """Pointing at the first output cell lights it and its source."""
    text = html.read_text("utf-8")
    probe = """<script>
      const cell = document.querySelector("[data-s]");
      cell?.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
      document.title = [
        document.querySelectorAll(".lit").length,
        document.querySelector("figcaption").textContent,
        document.documentElement.scrollWidth <= innerWidth,
      ].join("|");
    </script></body>"""
    html.write_text(text.replace("</body>", probe), "utf-8")
    dom, said = chromium(html, "--dump-dom", "--window-size=400,800")
    assert "CONSOLE" not in said
    lit, caption, fits = re.search(r"<title>(.*)</title>", dom)[1].split("|")
    assert fits == "true"
    if 'data-s="0.?1"' in text:
        wanted = "OutputTensor element 0 is an element of InputTensor that IndicesTensor selects"
        assert (lit, caption) == ("1", wanted)
    elif "data-s" in text.partition("<script>")[0]:
        assert lit == "2"
        assert re.fullmatch(r"\S+ element 0 is \S+ element 0", caption)
    else:
        assert (lit, caption) == ("0", "")
