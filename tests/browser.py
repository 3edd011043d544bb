"""Debian's Chromium without a display, which runs the script of a page."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

CHROMIUM = shutil.which("chromium")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")

PROBE = """<script>
  addEventListener("load", () => {
    const probed = (() => { PROGRAM })();
    const result = document.createElement("pre");
    result.id = "result";
    result.textContent = JSON.stringify(probed);
    document.body.append(result);
  });
</script></body>"""


def chromium(html, folder, *arguments):
    """The standard output and the standard error of Chromium, whose profile is in a folder."""
    done = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000",
         "--enable-logging=stderr", *arguments, html.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def probe(html, folder, program):
    """What the body of a JavaScript function returns, on a narrow page that complains of nothing."""
    text = html.read_text("utf-8")
    copy = html.with_name(f"probed-{html.name}")
    copy.write_text(text.replace("</body>", PROBE.replace("PROGRAM", program)), "utf-8")
    dom, said = chromium(copy, folder, "--dump-dom", "--window-size=400,800")
    assert "CONSOLE" not in said
    return json.loads(unescape(re.search(r'<pre id="result">(.*)</pre>', dom)[1]))
