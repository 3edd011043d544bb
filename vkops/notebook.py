"""How notebooks show objects of vkops: as HTML, whose texts are escaped."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from struct import pack
from zlib import compress, crc32

from vkops.errors import import_late


def repr_html(self: object) -> str:
    """Return what a notebook shows of an object: the method ``_repr_html_`` of several classes."""
    text: str = import_late("vkops.explain.notebooks").html(self)
    return text


def place_of(file: str, line: int) -> str:
    """Return how a line of a program is named: as IPython does, if the file is one of its cells."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    named = shell.compile.format_code_name(file) if shell else None
    return f"{' '.join(named)}, line {line}" if named else f"{file}:{line}"


def table_html(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a title; notebooks have a style for tables, in dark mode, too."""
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    caption = f"<caption style='text-align:left;white-space:nowrap'>{escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def picture_html(title: str, size: tuple[int, int], channels: int, rows: Iterable[bytes]) -> str:
    """Return a picture with a title: rows of pixels with channels of 8 bits, as a PNG file."""
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    chunks = {
        b"IHDR": pack(">IIBBBBB", *size, 8, colour, 0, 0, 0),
        b"IDAT": compress(b"".join(b"\0" + row for row in rows)),
        b"IEND": b"",
    }
    data = b"\x89PNG\r\n\x1a\n"
    for kind, content in chunks.items():
        data += pack(">I", len(content)) + kind + content + pack(">I", crc32(kind + content))
    source = f"data:image/png;base64,{b64encode(data).decode()}"
    style = f"image-rendering:pixelated;width:{max(size[0], min(160, 16 * size[0]))}px"
    return (
        f"<figure style='margin:0'><figcaption>{escape(title)}</figcaption>"
        f"<img style='{style}' alt='{escape(title)}' src='{source}'></figure>"
    )
