"""The tables of an explanation, as texts: the terminal and the page show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from vkops.explain.facts import Movement, Section, numbers, place_text, size_text, source_text

MOST_ROWS = 20
"""Rows of a table that are shown."""


class Rows(NamedTuple):
    """A table: its headings, the first of its rows, and how many there are beside them."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int

    @property
    def rest(self) -> str:
        """What stands below the rows, if there are more."""
        return f"and {self.more:,} more" if self.more else ""


def node_rows(section: Section) -> Rows:
    """The nodes of a model, and how each is done."""
    rows = ((node.label, "; ".join(node.makes), node.fate) for node in section.nodes)
    return _rows(("Node", "Makes", "Result"), rows, len(section.nodes))


def tensor_rows(section: Section) -> Rows:
    """The tensors; with notes, where one has a note."""
    headings = ["Tensor", "Type", "Sizes", "Strides", "Bytes"]
    with_notes = any(tensor.note for tensor in section.tensors)
    rows = (
        (
            tensor.name,
            tensor.type,
            numbers(tensor.sizes),
            numbers(tensor.strides),
            size_text(tensor.nbytes),
            *((tensor.note,) if with_notes else ()),
        )
        for tensor in section.tensors
    )
    return _rows([*headings, *["Note"] * with_notes], rows, len(section.tensors))


def region_rows(movement: Movement) -> Rows:
    """Where regions read and write; all figures count elements."""
    regions = movement.regions

    def rows() -> Iterator[Sequence[str]]:
        for i, (output, region) in enumerate(regions):
            name = movement.outputs[output].name
            yield (
                str(i),
                " × ".join(map(str, region.sizes)),
                source_text(region, movement.inputs),
                place_text(name, region.target),
            )

    return _rows(("Region", "Elements", "From", "To"), rows(), len(regions))


def _rows(headings: Sequence[str], rows: Iterator[Sequence[str]], total: int) -> Rows:
    return Rows(headings, list(islice(rows, MOST_ROWS)), max(0, total - MOST_ROWS))
