"""Decisions, read from bytes."""

from __future__ import annotations


class Choices:
    """Makes decisions of bytes, and the first or least choice once these are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, n):
        """An integer from 0 to n - 1, of as few bytes as there can be."""
        count = ((n - 1).bit_length() + 7) // 8
        taken = self.bytes(count)
        return int.from_bytes(taken, "little") % n

    def bytes(self, count):
        """So many bytes; fewer at the end."""
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def pick(self, options):
        """One of a sequence."""
        return options[self.below(len(options))]

    def one_in(self, n):
        """Whether something that is seldom the case is the case."""
        return self.below(n) == n - 1

    def some(self, most, make):
        """A list of up to so many things."""
        return [make() for _ in range(self.below(most + 1))]
