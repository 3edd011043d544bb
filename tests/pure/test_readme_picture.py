"""The picture of README.md: that which the script draws, with the colours of the parts."""

import re
from xml.etree import ElementTree

import readme_picture
from processes import ROOT


def test_the_picture_is_up_to_date():
    text = (ROOT / "docs/graph.svg").read_text(encoding="utf-8")
    assert text == readme_picture.picture()
    assert "docs/graph.svg" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_elements_keep_their_colours():
    root = ElementTree.fromstring(readme_picture.picture())
    texts = [each.text for each in root.iter() if re.fullmatch(r"\d+", each.text or "")]
    colours = [each.get("fill") for each in root.iter() if each.tag.endswith("rect")]
    before, after = (dict(zip(texts[n:][:24], colours[n:], strict=False)) for n in (0, 24))
    assert before == after
    assert texts[24:30] == ["4", "5", "0", "1", "2", "3"]
    assert {before[number] for number in texts[24:26]} == {readme_picture.COLOURS[2]}
