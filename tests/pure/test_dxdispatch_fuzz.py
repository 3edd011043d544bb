"""Damaged models are refused in one line, or are sound after all; nothing else happens."""

import copy
import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vkops.dml import FeatureLevel
from vkops.dxdispatch import load_model, prepare
from vkops.dxdispatch.json_reader import parse
from vkops.errors import ModelError

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.json"))
MODELS = [parse(file.read_bytes(), file.name).value for file in FILES]

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-2, 9),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(
        ["INT32", "FLOAT16", "UNKNOWN", "INT4", "JOIN", "SLICE1", "OWNED_BY_DML", "deferred", "nan"]
    ),
    st.lists(st.integers(-1, 5), max_size=9),
    st.dictionaries(st.sampled_from(["name", "value", "valueCount", "Desc"]), st.integers(0, 9)),
)
slow = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def places(value, path=()):
    """Yield the path of every node below a value."""
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in members:
        yield (*path, key)
        if isinstance(child, (dict, list)):
            yield from places(child, (*path, key))


def is_refused_or_sound(file):
    try:
        for level in (FeatureLevel.LATEST, FeatureLevel("1_0")):
            prepare(load_model(file, input_path=EXAMPLES), level)
    except ModelError as error:
        lines = str(error).splitlines()
    else:
        return
    assert len(lines) == 1


@slow
@given(model=st.sampled_from(MODELS), data=st.data())
def test_nodes_replaced_by_junk(model, data, tmp_path):
    model = copy.deepcopy(model)
    for _ in range(data.draw(st.integers(1, 3))):
        *head, last = data.draw(st.sampled_from(list(places(model))))
        target = model
        for key in head:
            target = target[key]
        change = data.draw(st.sampled_from(["delete", "replace", "move"]))
        if change == "delete":
            del target[last]
        elif change == "replace":
            target[last] = data.draw(JUNK)
        elif isinstance(target[last], list) and target[last]:
            target[last].append(target[last][0])
    file = tmp_path / "m.json"
    file.write_text(json.dumps(model))
    is_refused_or_sound(file)


@slow
@given(source=st.sampled_from(FILES), data=st.data())
def test_bytes_changed(source, data, tmp_path):
    raw = bytearray(source.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(raw) - 1))
        change = data.draw(st.sampled_from(["change", "delete", "insert", "cut", "repeat"]))
        if change == "change":
            raw[at] = data.draw(st.integers(0, 255))
        elif change == "delete" and len(raw) > 1:
            del raw[at]
        elif change == "insert":
            raw[at:at] = data.draw(st.binary(min_size=1, max_size=4))
        elif change == "cut":
            del raw[at + 1 :]
        else:
            raw[at:at] = raw[at : at + data.draw(st.integers(1, 40))]
    file = tmp_path / "m.json"
    file.write_bytes(raw)
    is_refused_or_sound(file)
