"""DxDispatch models: the values of the examples and of tests/broken_models, changed and moved."""

import copy
import json
from pathlib import Path

import models

from fuzz import target
from fuzz.choices import Choices
from fuzz.mutate import places
from fuzz.target import TESTS
from fuzz.targets.json_text import prepared, sound, texts
from vkops import dml
from vkops.errors import ModelError
from vkops.models.json_reader import parse

EVERYTHING = json.loads((TESTS / "every_field.json").read_text("utf-8"))
MEMBERS = {key for _, key in places(EVERYTHING) if isinstance(key, str)}
FIELDS = {field.dml_name for desc in dml.OPERATORS.values() for field in desc.FIELDS}
NAMES = [*sorted(MEMBERS | FIELDS), "UInt16", "In", "A", "Out", "", "\u0000", "a.b"]
WORDS = [
    *NAMES, "INT32", "FLOAT16", "UNKNOWN", "INT4", "JOIN", "SLICE1", "SPLIT", "ELEMENT_WISE_IDENTITY",
    "DML_OPERATOR_SLICE", "onnx", "OWNED_BY_DML", "DML_TENSOR_FLAG_OWNED_BY_DML", "deferred", "nan",
    "inf", "-inf", "dispatch", "print", "writeFile", "data/thirds.npy", "data/words.bin", "../m.json",
    "NEAREST_NEIGHBOR", "channel_shuffle.onnx", "/etc/passwd", ".", "x.npy", "x.png", "DmlCompileGraph", "\ud800", "\n",
]  # fmt: skip
NUMBERS = [
    0, 1, 2, 3, 4, 8, 16, -1, 0.5, -0.0, 1e300, 2**16, 2**31, 2**32 - 1, 2**32, 2**36, 2**53, 2**63,
    2**64 - 1, 2**64, 10**400,
]  # fmt: skip


def parsed(texts):
    """The models among texts that are models."""
    for text in texts:
        try:
            value = parse(text, "m.json").value
        except ModelError:
            continue
        if isinstance(value, dict):
            yield value


def grown(choices, depth=0):
    """A value out of nowhere."""
    kind = choices.below(8)
    if kind < 3:
        return choices.pick(NUMBERS)
    if kind < 5:
        return choices.pick(WORDS)
    if kind == 5 or depth > 3:
        return choices.pick([None, True, False, [], {}])
    if kind == 6:
        return choices.some(9, lambda: grown(choices, depth + 1))
    return {choices.pick(NAMES): grown(choices, depth + 1) for _ in range(choices.below(6))}


def changed(choices, bases):
    """A model with values deleted, replaced, moved and added."""
    model = copy.deepcopy(choices.pick(bases))
    for _ in range(1 + choices.below(4)):
        all_places = places(model)
        if not all_places:
            break
        holder, key = choices.pick(all_places)
        kind = choices.below(7)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            holder[key] = grown(choices)
        elif kind == 2:
            holder[key] = choices.pick(NUMBERS)
        elif kind == 3:
            holder[key] = choices.pick(WORDS)
        elif kind == 4:
            other, at = choices.pick(all_places)
            holder[key] = copy.deepcopy(other[at])
        elif kind == 5 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif isinstance(holder, dict):
            holder[choices.pick(NAMES)] = copy.deepcopy(holder[key])
    return model


class Target(target.Target):
    def __init__(self):
        self.sound = [models.SPLIT, *parsed(sound())]
        self.bases = [*self.sound, *parsed(texts())]
        self.file = Path("m.json")

    def check(self, data):
        choices = Choices(data)
        self.file.write_text(json.dumps(changed(choices, choices.pick((self.sound, self.bases)))))
        prepared(self.file, len(data))
