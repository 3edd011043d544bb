"""JSON as DxDispatch reads it, and a cursor whose every complaint names the place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import rapidjson

from vkops.errors import ModelError
from vkops.paths import open_regular

# Text this long makes at most a few GiB of Python objects; tensors belong in .npy or raw files.
MAX_TEXT_BYTES = 64 << 20

# Models nest about ten deep; the parser, which recurses, would use up the stack.
MAX_DEPTH = 256

_PARSE_MODE = rapidjson.PM_COMMENTS | rapidjson.PM_TRAILING_COMMAS
_PARSE_ERROR = re.compile(r"Parse error at offset (\d+): (.*)", re.DOTALL)
_REASONS = {  # where RapidJSON's words do not help
    "Unspecific syntax error": "a comment that does not end",
    "Invalid encoding in string": "a control character, or a bad escape, in a string",
    "Invalid integer value": "an integer of too many digits",
    "Number too big to be stored in double": "a number beyond the range of a double",
}
_LONG_INTEGER = re.compile(rb"(?<!\d)-?\d{4301,}")  # more digits than Python converts
# Strings and comments, up to the end where they lack one, and brackets. A string always matches,
# even one that ends in a backslash: else the search would start again at each quote in it.
_TOKENS = re.compile(
    rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)|([\[{])|([\]}])', re.DOTALL
)
_PLAIN_NAME = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)

MAX_WARNINGS = 100
"""Warnings of one file; those that follow are left out."""

_COMMENTS = ("$", "_", "#", "/")  # what names of members start with that only comment on a model
_MAX_SUGGESTION_CHARACTERS = 60

EnumT = TypeVar("EnumT", bound=Enum)


@dataclass(frozen=True)
class Source:
    """The file a node comes from, and the warnings that reading it gave (each once, in order).

    ``fields`` are the names of members that readers have asked an object for, by the object's id.
    """

    file: str
    warnings: dict[str, None] = field(default_factory=dict)
    fields: dict[int, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """One JSON value and its place; getters raise ModelError naming that place."""

    value: Any
    path: str
    source: Source

    def error(self, message: str) -> ModelError:
        """Return the error ``FILE: PATH: message``."""
        return ModelError(": ".join(filter(None, (self.source.file, self.path, message))))

    def warn(self, message: str) -> None:
        """Note something that is allowed, and most likely a mistake."""
        warnings = self.source.warnings
        if len(warnings) < MAX_WARNINGS:
            warnings[str(self.error(message))] = None
        else:
            warnings[f"{self.source.file}: more than {MAX_WARNINGS} warnings"] = None

    def known(self, *names: str) -> None:
        """Note fields that the object may have; ``optional`` and ``required`` do it themselves."""
        fields = self.source.fields
        fields[id(self.value)] = _united(fields.get(id(self.value), frozenset()), names)

    def warn_of_unknown_fields(self) -> None:
        """Warn of each field in here that no reader has asked for: DxDispatch ignores it."""
        if isinstance(self.value, list):
            for index, value in enumerate(self.value):
                if isinstance(value, dict | list):
                    self.item(index).warn_of_unknown_fields()
        elif id(self.value) in self.source.fields:
            known = self.source.fields[id(self.value)]
            for name, value in self.object().items():
                if name not in known and not name.startswith(_COMMENTS):
                    self[name].warn(f"unknown field; {_suggestion(name, known)}")
                elif isinstance(value, dict | list):
                    self[name].warn_of_unknown_fields()

    def wrong(self, allowed: str) -> ModelError:
        """Return the error for a value of the wrong kind or out of range."""
        return self.error(f"got {describe(self.value)}, allowed {allowed}")

    def members(self) -> Iterator[tuple[str, Node]]:
        """Yield the members of an object whose names the model chooses, in order."""
        self.known(*self.object())
        for name in self.object():
            yield name, self[name]

    def object(self) -> dict[str, Any]:
        """Return the value, an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value

    def __getitem__(self, name: str) -> Node:
        step = name if _PLAIN_NAME.fullmatch(name) else f"[{quote(name)}]"
        dot = "." if self.path and not step.startswith("[") else ""
        return Node(self.object()[name], f"{self.path}{dot}{step}", self.source)

    def optional(self, *names: str) -> Node | None:
        """Return the first member present, or None."""
        members = self.object()
        self.known(*names)
        return next((self[name] for name in names if name in members), None)

    def required(self, *names: str) -> Node:
        """Return the first member present."""
        child = self.optional(*names)
        if child is None:
            raise self.error(f"'{names[0]}' is missing")
        return child

    def array(self) -> list[Any]:
        """Return the value, an array."""
        if not isinstance(self.value, list):
            raise self.wrong("an array")
        return self.value

    def items(self) -> list[Node]:
        """Return the elements of an array."""
        return [self.item(i) for i in range(len(self.array()))]

    def one_or_more(self) -> list[Node]:
        """Return the items of an array, or the value itself as the only one."""
        return self.items() if isinstance(self.value, list) else [self]

    def item(self, index: int) -> Node:
        """Return one element of an array."""
        return Node(self.array()[index], f"{self.path}[{index}]", self.source)

    def string(self) -> str:
        """Return the value, a string."""
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def boolean(self) -> bool:
        """Return the value, true or false."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def integer(self, low: int, high: int) -> int:
        """Return the value, an integer between ``low`` and ``high``, both included."""
        if type(self.value) is not int:
            raise self.wrong(f"an integer from {low} to {high}")
        if not low <= self.value <= high:
            raise self.wrong(f"{low} to {high}")
        return self.value

    def uint(self, bits: int = 32) -> int:
        """Return the value, an unsigned integer of so many bits."""
        return self.integer(0, 2**bits - 1)

    def enum(self, kind: type[EnumT], prefix: str) -> EnumT:
        """Return the member named with or without ``prefix`` (``DML_TENSOR_DATA_TYPE_``)."""
        member = kind.__members__.get(self.string().removeprefix(prefix))
        if member is None:
            raise self.wrong(", ".join(kind.__members__))
        return member

    def choice(self, *allowed: str) -> str:
        """Return the value, one of the strings allowed."""
        if self.string() not in allowed:
            raise self.wrong(" or ".join(map(quote, allowed)))
        return self.string()


@lru_cache(maxsize=256)  # the same few for all objects of a kind, of which there can be millions
def _united(fields: frozenset[str], more: tuple[str, ...]) -> frozenset[str]:
    return fields.union(more)


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Say which field is meant, or else which ones there are."""
    if len(name) <= _MAX_SUGGESTION_CHARACTERS:
        names = {field.casefold(): field for field in sorted(known)}
        for close in get_close_matches(name.casefold(), names, n=1):
            return f"did you mean {quote(names[close])}?"
    return f"the fields here are {', '.join(sorted(known))}"


def quote(text: str, longest: int = 60) -> str:
    """Return text as a JSON string, cut when too long, so that it stays on one line."""
    text = text if len(text) <= longest else text[: longest - 3] + "..."
    # File names may hold bytes that are no UTF-8 (lone surrogates in Python).
    return str(rapidjson.dumps(text.encode(errors="backslashreplace").decode()))


def describe(value: Any) -> str:
    """Say in few words what a JSON value is."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return "an empty array" if not value else "an array"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, int) and abs(value) >= 10**40:
        return "an integer of more than 40 digits"
    return str(rapidjson.dumps(value))


def read_text(file: Path) -> bytes:
    """Read a file of JSON text; ModelError if that cannot be, or if it is too long to be one."""
    try:
        with open_regular(file) as stream:
            raw = stream.read(MAX_TEXT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{file}: cannot be read: {reason}") from error
    if len(raw) > MAX_TEXT_BYTES:
        raise ModelError(
            f"{file}: longer than {MAX_TEXT_BYTES >> 20} MiB; "
            "keep large initial values in .npy or raw files ('sourcePath')"
        )
    return raw


def parse(raw: bytes, file: str) -> Node:
    """Parse JSON with comments and trailing commas; what follows the root object is ignored.

    Of members with the same name the first counts, as in RapidJSON; a warning says so.

    Raises:
        ModelError: with line and column, when the text is no JSON object.
    """
    source = Source(file)
    start = _skip_blanks(raw)
    if raw[start : start + 1] != b"{":
        raise ModelError(f"{_place(raw, start, file)}: {_not_an_object(raw, start)}")
    _check_depth(raw, start, file)
    # Without NM_NAN python-rapidjson 1.25 forgets the trailing commas; so NaN and Infinity come
    # through here, and the getters refuse them.
    decoder = _Decoder(parse_mode=_PARSE_MODE, number_mode=rapidjson.NM_NAN)
    decoder.start(source)
    text, bad_text = raw, None
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        text, bad_text = raw[: error.start], error
    try:
        decoder(text)
    except _RootClosedError as closed:
        return Node(closed.root, "", source)
    except ValueError as error:
        if bad_text is not None:
            place = _place(raw, bad_text.start, file)
            byte = raw[bad_text.start]
            raise ModelError(f"{place}: not UTF-8 (byte 0x{byte:02X})") from error
        match = _PARSE_ERROR.match(str(error))
        if match:
            offset, reason = int(match[1]), match[2]
        else:  # Python's own error, which some of its versions leave without the offset
            long_integer = _LONG_INTEGER.search(raw, start)
            offset, reason = (long_integer.start() if long_integer else start), str(error)
        reason = reason.rstrip(".!")
        raise ModelError(f"{_place(raw, offset, file)}: {_REASONS.get(reason, reason)}") from error
    raise ModelError(f"{_place(raw, len(raw), file)}: the root object is not closed")


class _RootClosedError(Exception):
    """Ends parsing at the closing brace of the root object."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root


class _Decoder(rapidjson.Decoder):
    """Builds dicts, keeping the first of equal names."""

    def start(self, source: Source) -> None:
        self.source = source
        self.depth = 0

    def start_object(self) -> list[Any]:
        self.depth += 1
        return []

    def end_object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            members = {}
            for name, value in pairs:
                if name in members:
                    Node(members, "", self.source).warn(
                        f"member {quote(name)} is given more than once in an object; "
                        "the first one counts"
                    )
                members.setdefault(name, value)
        self.depth -= 1
        if self.depth == 0:
            raise _RootClosedError(members)
        return members


def _skip_blanks(raw: bytes) -> int:
    """Return the offset of the first byte that is neither white space nor comment."""
    offset = 0
    while True:
        while raw[offset : offset + 1] in (b" ", b"\t", b"\r", b"\n"):
            offset += 1
        if raw.startswith(b"//", offset):
            end = raw.find(b"\n", offset)
        elif raw.startswith(b"/*", offset):
            end = raw.find(b"*/", offset + 2) + 1
        else:
            return offset
        offset = end + 1 if end > 0 else len(raw)


def _not_an_object(raw: bytes, start: int) -> str:
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"), start):
        return "starts with a byte order mark; save it as UTF-8 without one"
    if start == len(raw):
        return "the document is empty"
    return "the document must be an object"


def _check_depth(raw: bytes, start: int, file: str) -> None:
    depth = 0
    for token in _TOKENS.finditer(raw, start):
        if token[1]:
            depth += 1
            if depth > MAX_DEPTH:
                place = _place(raw, token.start(), file)
                raise ModelError(f"{place}: nested too deeply, allowed {MAX_DEPTH} levels")
        elif token[2]:
            depth -= 1
            if depth == 0:  # what follows the root object is ignored
                return


def _place(raw: bytes, offset: int, file: str) -> str:
    line_start = raw.rfind(b"\n", 0, offset) + 1
    column = len(raw[line_start:offset].decode("utf-8", "replace")) + 1
    return f"{file}:{raw.count(bytes([10]), 0, offset) + 1}:{column}"
