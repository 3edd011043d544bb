"""A reader of DxDispatch's JSON text, and ``Node``, whose errors name the position in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import rapidjson

from vkops.errors import ModelError, did_you_mean
from vkops.system.files import open_regular

# The Python objects of a text of this size take a few GiB; tensors belong in .npy or raw files.
MAX_TEXT_BYTES = 64 << 20
# Models nest about ten levels deep. RapidJSON is recursive and could exhaust the stack.
MAX_DEPTH = 256
MAX_WARNINGS = 100

_PARSE_MODE = rapidjson.PM_COMMENTS | rapidjson.PM_TRAILING_COMMAS
_PARSE_ERROR = re.compile(r"Parse error at offset (\d+): (.*)", re.DOTALL)
_REASONS = {  # clearer texts for errors of RapidJSON
    "Unspecific syntax error": "a comment that does not end",
    "Invalid encoding in string": "a control character, or a bad escape, in a string",
    "Invalid integer value": "an integer of too many digits",
    "Number too big to be stored in double": "a number beyond the range of a double",
}
_LONG_INTEGER = re.compile(rb"(?<!\d)-?\d{4301,}")  # Python does not convert more digits
_BLANK = re.compile(rb"[ \t\r\n]+|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# Strings and comments, up to the end of the text if they are not closed, and brackets. A string
# always matches, even one that ends in a backslash, so that the search never restarts inside it.
_TOKENS = re.compile(
    rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)|([\[{])|([\]}])', re.DOTALL
)
_PLAIN_NAME = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)
_COMMENT_PREFIXES = ("$", "_", "#", "/")  # the beginnings of the names of members that are comments

EnumT = TypeVar("EnumT", bound=Enum)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Document:
    """The file a node comes from, and the warnings about it (each once, in order).

    ``fields`` are the names of members that readers have asked for, by the id of the object.
    """

    file: str
    warnings: dict[str, None] = field(default_factory=dict)
    fields: dict[int, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """A JSON value and its path; getters return the value or raise a ModelError with the path."""

    value: Any = field(repr=False)
    path: str
    document: Document = field(repr=False)

    def error(self, message: str) -> ModelError:
        """Return the error ``FILE: PATH: message``."""
        return ModelError(": ".join(filter(None, (self.document.file, self.path, message))))

    def wrong(self, allowed: str) -> ModelError:
        """Return the error for a value of the wrong kind or out of range."""
        return self.error(f"got {describe(self.value)}, must be {allowed}")

    def warn(self, message: str) -> None:
        """Add a warning about something that is allowed but is probably a mistake."""
        warnings = self.document.warnings
        if len(warnings) < MAX_WARNINGS:
            warnings[str(self.error(message))] = None
        else:
            warnings[f"{self.document.file}: more than {MAX_WARNINGS} warnings"] = None

    # -- objects -----------------------------------------------------------------------------------

    def object(self) -> dict[str, Any]:
        """Return an object."""
        return self._checked(dict, "an object")

    def __getitem__(self, name: str) -> Node:
        step = name if _PLAIN_NAME.fullmatch(name) else f"[{quote(name)}]"
        dot = "." if self.path and not step.startswith("[") else ""
        return Node(self.object()[name], f"{self.path}{dot}{step}", self.document)

    def optional(self, *names: str) -> Node | None:
        """Return the first of these members that is present, or None."""
        members = self.object()
        self.known(*names)
        return next((self[name] for name in names if name in members), None)

    def required(self, *names: str) -> Node:
        """Return the first of these members that is present."""
        child = self.optional(*names)
        if child is None:
            raise self.error(f"'{names[0]}' is missing")
        return child

    def members(self) -> Iterator[tuple[str, Node]]:
        """Yield the members of an object whose names are chosen by the model, in order."""
        self.known(*self.object())
        for name in self.object():
            yield name, self[name]

    def known(self, *names: str) -> None:
        """Record names that members may have; ``optional`` and ``required`` also record them."""
        fields = self.document.fields
        fields[id(self.value)] = _union(fields.get(id(self.value), frozenset()), names)

    def warn_of_unknown_fields(self) -> None:
        """Warn of members, at any depth, that no reader has asked for: DxDispatch ignores them."""
        if isinstance(self.value, list):
            for index, value in enumerate(self.value):
                if isinstance(value, dict | list):
                    self.item(index).warn_of_unknown_fields()
        elif id(self.value) in self.document.fields:
            known = self.document.fields[id(self.value)]
            for name, value in self.object().items():
                if name not in known and not name.startswith(_COMMENT_PREFIXES):
                    listed = f"; the fields here are {', '.join(sorted(known))}"
                    near = did_you_mean(name, known, quote) or listed
                    self[name].warn(f"unknown field{near}")
                elif isinstance(value, dict | list):
                    self[name].warn_of_unknown_fields()

    # -- arrays ------------------------------------------------------------------------------------

    def array(self) -> list[Any]:
        """Return an array."""
        return self._checked(list, "an array")

    def item(self, index: int) -> Node:
        """Return an element of an array."""
        return Node(self.array()[index], f"{self.path}[{index}]", self.document)

    def items(self) -> Iterator[Node]:
        """Yield the elements of an array one by one, because there may be millions."""
        return map(self.item, range(len(self.array())))

    def one_or_more(self) -> Iterator[Node]:
        """Yield the elements of an array, or the value itself as the only one."""
        return self.items() if isinstance(self.value, list) else iter([self])

    def uints(self) -> tuple[int, ...]:
        """Return an array of unsigned integers of 32 bits."""
        return tuple(item.uint() for item in self.items())

    # -- single values -----------------------------------------------------------------------------

    def _checked(self, kind: type[_T], allowed: str) -> _T:
        if not isinstance(self.value, kind):
            raise self.wrong(allowed)
        return self.value

    def string(self) -> str:
        """Return a string."""
        return self._checked(str, "a string")

    def boolean(self) -> bool:
        """Return true or false."""
        return self._checked(bool, "true or false")

    def integer(self, low: int, high: int) -> int:
        """Return an integer between ``low`` and ``high``, both included."""
        if type(self.value) is not int:
            raise self.wrong(f"an integer from {low} to {high}")
        if not low <= self.value <= high:
            raise self.wrong(f"{low} to {high}")
        return self.value

    def uint(self, bits: int = 32) -> int:
        """Return an unsigned integer of ``bits`` bits."""
        return self.integer(0, 2**bits - 1)

    def optional_uint(self, name: str, bits: int = 32) -> int:
        """Return a member, an unsigned integer of ``bits`` bits; 0 if it is missing."""
        child = self.optional(name)
        return child.uint(bits) if child else 0

    def enum(self, kind: type[EnumT], prefix: str) -> EnumT:
        """Return the enum member of that name, which may begin with ``prefix``."""
        member = kind.__members__.get(self.string().removeprefix(prefix))
        if member is None:
            raise self.wrong(", ".join(kind.__members__))
        return member

    def choice(self, *allowed: str) -> str:
        """Return one of the strings allowed."""
        if self.string() not in allowed:
            raise self.wrong(" or ".join(map(quote, allowed)))
        return self.string()


@lru_cache(maxsize=256)  # there are few sets, for millions of objects
def _union(fields: frozenset[str], more: tuple[str, ...]) -> frozenset[str]:
    return fields.union(more)


def quote(text: str, max_characters: int = 60) -> str:
    """Return a text as a JSON string on one line; a long one is cut."""
    text = text if len(text) <= max_characters else text[: max_characters - 3] + "..."
    # File names may hold bytes that are not UTF-8 (lone surrogates in Python).
    return str(rapidjson.dumps(text.encode(errors="backslashreplace").decode()))


def describe(value: Any) -> str:
    """Return a JSON value as text for error messages."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return "an array" if value else "an empty array"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, int) and abs(value) >= 10**40:
        return "an integer of more than 40 digits"
    return str(rapidjson.dumps(value))


def read_text(file: Path) -> bytes:
    """Read a file of JSON text; ModelError if it cannot be read or is too long."""
    try:
        with open_regular(file) as stream:
            raw = stream.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"{file}: cannot be read: not a file name") from error
    if len(raw) > MAX_TEXT_BYTES:
        raise ModelError(
            f"{file}: longer than {MAX_TEXT_BYTES >> 20} MiB; "
            "keep large initial values in .npy or raw files ('sourcePath')"
        )
    return raw


def parse(raw: bytes, file: str) -> Node:
    """Parse JSON with comments and trailing commas; text after the root object is ignored.

    If several members have the same name, the first one counts, as in RapidJSON, with a warning.

    Raises:
        ModelError: with line and column, when the text is not a JSON object.
    """
    document = Document(file)
    start = 0
    while blank := _BLANK.match(raw, start):
        start = blank.end()
    if raw[start : start + 1] != b"{":
        raise ModelError(f"{_place(raw, start, file)}: {_not_an_object(raw, start)}")
    text = raw[: _end_of_root(raw, start, file)]
    # Without NM_NAN python-rapidjson 1.25 refuses trailing commas. Therefore it accepts NaN and
    # Infinity here, and the getters refuse them.
    decoder = _Decoder(parse_mode=_PARSE_MODE, number_mode=rapidjson.NM_NAN)
    decoder.document = document
    try:
        text.decode()
        return Node(decoder(text), "", document)
    except UnicodeDecodeError as error:
        offset, reason = error.start, f"not UTF-8 (byte 0x{raw[error.start]:02X})"
    except ValueError as error:
        if match := _PARSE_ERROR.match(str(error)):
            offset, reason = int(match[1]), match[2].rstrip(".!")
        else:  # Python's own error, which in some versions has no offset
            long_integer = _LONG_INTEGER.search(raw, start)
            offset, reason = (long_integer.start() if long_integer else start), str(error)
    raise ModelError(f"{_place(raw, offset, file)}: {_REASONS.get(reason, reason)}")


class _Decoder(rapidjson.Decoder):
    """Builds dictionaries with the first of equal names, and warns of the others."""

    document: Document

    def start_object(self) -> list[Any]:
        return []

    def end_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            members = {}
            for name, value in pairs:
                if name in members:
                    Node(members, "", self.document).warn(
                        f"member {quote(name)} is given more than once in an object; "
                        "the first one counts"
                    )
                members.setdefault(name, value)
        return members


def _not_an_object(raw: bytes, start: int) -> str:
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"), start):
        return "starts with a byte order mark; save it as UTF-8 without one"
    if start == len(raw):
        return "the document is empty"
    return "the document must be an object"


def _end_of_root(raw: bytes, start: int, file: str) -> int:
    """Return the offset where the root object ends; ModelError if it is nested too deeply."""
    depth = 0
    for token in _TOKENS.finditer(raw, start):
        depth += (token[1] is not None) - (token[2] is not None)
        if depth > MAX_DEPTH:
            place = _place(raw, token.start(), file)
            raise ModelError(f"{place}: nested too deeply, must be {MAX_DEPTH} levels at most")
        if depth == 0 and token[2]:
            return token.end()
    return len(raw)


def _place(raw: bytes, offset: int, file: str) -> str:
    line_start = raw.rfind(b"\n", 0, offset) + 1
    column = len(raw[line_start:offset].decode("utf-8", "replace")) + 1
    return f"{file}:{raw.count(bytes([10]), 0, offset) + 1}:{column}"
