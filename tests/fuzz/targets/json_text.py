"""DxDispatch models: the bytes of the examples and of tests/broken_models, changed."""

import re
from pathlib import Path

import broken_models

from fuzz import target
from fuzz.mutate import mutated, with_other_words
from fuzz.target import EXAMPLES
from vkops.dml import FeatureLevel
from vkops.dxdispatch import load_model, prepare

LEVELS = (FeatureLevel.LATEST, FeatureLevel("1_0"))


def sound():
    """Models that run."""
    return _usable(file.read_bytes() for file in sorted(EXAMPLES.glob("*.json")))


def texts():
    """Models, most of which are broken in one place."""
    return [*sound(), *_usable(case.text for case in broken_models.CASES.values())]


def _usable(texts):
    """Short texts whose shaders no compiler has to be started for."""
    shader = re.compile(rb"glsl|spirv", re.IGNORECASE)
    return [text for text in texts if len(text) < 1 << 14 and not shader.search(text)]


class Target(target.Target):
    suffix = ".json"

    def __init__(self):
        self.sound, self.texts = sound(), texts()
        self.file = Path("m.json")

    def make(self, random):
        base = random.choice(random.choice((self.sound, self.texts)))
        change = random.choice((mutated, with_other_words, with_other_words))
        return change(random, base, self.texts)

    def check(self, data):
        self.file.write_bytes(data)
        prepared(self.file, len(data))


def prepared(file, number=0):
    """Load and check a model, at one level or another."""
    return prepare(load_model(file), LEVELS[number % 4 == 1])
