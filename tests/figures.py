"""Baselines of figures: which have become worse than those in a file."""

import json
import os

TOLERANCE = 1.05  # how much worse a figure may become


def check(path, figures, better_if_more=()):
    """Compare nested mappings of figures with those of a file, and fail with a table of changes.

    With VKOPS_WRITE_BASELINES=1, write the file instead: a line for each inner mapping.
    """
    measured = dict(_flat(figures))
    if os.environ.get("VKOPS_WRITE_BASELINES") == "1":
        lines = [f"{json.dumps(name)}: {json.dumps(values)}" for name, values in figures.items()]
        path.write_text("{\n " + ",\n ".join(lines) + "\n}\n")
    known = dict(_flat(json.loads(path.read_text())))
    worse = [
        f"{' '.join(name)}: {known[name]:,.6g} before, {figure:,.6g} now"
        for name, figure in measured.items()
        if name in known and _is_worse(known[name], figure, name[-1] in better_if_more)
    ]
    assert not worse, "\n".join(["worse by more than 5 %:", *worse])
    assert measured.keys() == known.keys(), f"write {path.name} again with VKOPS_WRITE_BASELINES=1"


def _is_worse(before, now, better_if_more):
    return before > now * TOLERANCE if better_if_more else now > before * TOLERANCE


def _flat(figures, path=()):
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from _flat(value, (*path, name))
        else:
            yield (*path, name), value
