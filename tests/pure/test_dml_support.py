"""Every row of levels.json: operator × level × tensor × rank × data type."""

import dataclasses
import itertools
import json
import re
from functools import cache, partial
from importlib import resources

import pytest
from operator_table import DIRECTML as DATA
from operator_table import KINDS, PUBLISHED
from refusals import fault

from vkops import FeatureLevelError, InvalidDescError, dml
from vkops.dml.levels import SUPPORT, Support

LEVELS = [*DATA["feature_levels"]]
RANKS = range(1, 9)
ALL_TYPES = {kind.name for kind in KINDS}
UP_TO_32_BITS = {kind.name for kind in KINDS if kind.size_bits <= 32}


@cache
def describe(operator, rank, data_type, odd=None):
    """Make the smallest valid operator; the tensor of one field may be odd: (name, rank, type).

    All sizes and attributes are 1, except an axis, offsets, paddings, modes and batch dimensions,
    which are 0, and a second element of values.
    """
    unfolds = operator == "UNFOLD"
    entries = max(0, rank - 2) if unfolds else rank  # of each array

    def tensor(name):
        own_rank = 3 if unfolds and name == "OutputTensor" else rank
        own_type = "UINT32" if name in ("IndicesTensor", "SequenceLengthsTensor") else data_type
        field_rank, field_type = odd[1:] if odd and odd[0] == name else (own_rank, own_type)
        last = 2 if name == "ValuesTensor" else 1
        return dml.BufferTensorDesc(
            dml.TensorDataType[field_type], (*(1,) * (field_rank - 1), last)
        )

    values = {
        "tensor": tensor,
        "tensor_array": lambda name: [tensor(name)],
        "uint": lambda name: 0 if name in ("Axis", "BatchDimensionCount") else 1,
        "uint_array": lambda name: (int(not name.endswith(("ffsets", "Padding"))),) * entries,
        "int_array": lambda name: (1,) * entries,
        "int": lambda name: 1,
        "float": lambda name: 1,
        "scalar": lambda name: 1,
        "enum": lambda name: dml.TensorDataType[data_type] if name.endswith("DataType") else 0,
        "scale_bias": lambda name: None,
        "bool": lambda name: False,
        "float_array": lambda name: (0 if name.endswith("ffsets") else 1,) * rank,
        "size_2d": lambda name: dml.Size2D(1, 1),
    }
    cls = dml.OPERATORS[operator]
    return cls(*[values[field.kind.name](field.dml_name) for field in cls.FIELDS])


def published(operator, field, level):
    """The row of one tensor: lowest and highest rank, and data types; None if there is none yet."""
    rows = PUBLISHED[operator]
    older = [row for row in rows if LEVELS.index(row) <= LEVELS.index(level)]
    if not older:
        return None
    low, high, *types = rows[max(older, key=LEVELS.index)][field.dml_name]
    return low, high, set(types)


def data_field(operator):
    """The first tensor that holds no indices."""
    return next(field for field in dml.OPERATORS[operator].FIELDS if not field.holds_indices)


def accepts(desc, level, alternative_levels=()):
    try:
        desc.validate(level, alternative_levels)
    except InvalidDescError as error:
        if error.rule not in ("DEV-12", "DEV-13"):
            raise
        return False
    return True


def test_entries_name_the_lowest_level_whose_dll_confirms_them():
    """An entry holds up to the next one; the DLL of 3_1 contradicts that of JOIN (JOIN-09)."""
    table = json.loads(resources.files(dml).joinpath("levels.json").read_text("utf-8"))
    asked = [level for level in LEVELS if level in table["dlls"]]
    assert len(asked) == len(table["dlls"])
    for name, entries in table["operators"].items():
        for first, end in itertools.pairwise([*entries, "9_9"]):
            confirming = [level for level in asked if first <= level < end]
            if (name, first) == ("JOIN", "3_0"):
                confirming = []
            assert entries[first].get("dll") == next(iter(confirming), None), (name, first)


@pytest.mark.parametrize("operator", dml.OPERATORS)
def test_every_rank_and_type_is_accepted_as_the_row_says(operator):
    for level, rank, data_type in itertools.product(LEVELS, RANKS, ALL_TYPES):
        row = published(operator, data_field(operator), level)
        expected = row is not None and row[0] <= rank <= row[1] and data_type in row[2]
        accepted = accepts(describe(operator, rank, data_type), level)
        assert accepted == expected, (level, rank, data_type)


def test_every_rank_and_type_of_join_by_the_alternative_rows():
    for level, rank, data_type in itertools.product(LEVELS, RANKS, ALL_TYPES):
        row = published("JOIN", data_field("JOIN"), level)
        if LEVELS.index("3_1") <= LEVELS.index(level) < LEVELS.index("4_1"):
            row = (1, 8, UP_TO_32_BITS)
        expected = row[0] <= rank <= row[1] and data_type in row[2]
        assert accepts(describe("JOIN", rank, data_type), level, ["JOIN"]) == expected
        assert accepts(describe("SPLIT", rank, data_type), level, ["JOIN"]) == accepts(
            describe("SPLIT", rank, data_type), level
        )


@pytest.mark.parametrize(
    ("operator", "field"),
    [(o, f) for o in dml.OPERATORS for f in dml.OPERATORS[o].FIELDS if f.role != "attribute"],
    ids=lambda value: getattr(value, "dml_name", value),
)
def test_each_tensor_is_looked_up(operator, field):
    """One tensor outside the row, all others within it, is refused by name, level and remedy."""
    rows = {level: published(operator, field, level) for level in LEVELS}
    own_type = "UINT32" if field.holds_indices else "FLOAT32"
    path = f"{field.name}[0]" if field.kind.name == "tensor_array" else field.name
    for level, row in rows.items():
        if row is None:
            validate = partial(describe(operator, 4, "FLOAT32").validate, level)
            introduced = next(iter(PUBLISHED[operator]))
            assert fault(validate, FeatureLevelError) == (
                f"{operator}: not available at feature level {level}; "
                f"allowed from {introduced} [DEV-12]"
            )
            continue
        low, high, types = row
        bounds = f"{low}" if low == high else f"{low} to {high}"
        names = ", ".join(t.name for t in dml.TensorDataType if t.name in types)
        ranks = [
            (rank, own_type, f"sizes: got {rank} dimension{'s' * (rank > 1)}, must be {bounds}")
            for rank in {*RANKS} - {*range(low, high + 1)}
        ]
        data_types = [
            (low, data_type, f"data_type: got {data_type}, must be one of {names}")
            for data_type in sorted(ALL_TYPES - types)
        ]
        for rank, data_type, text in ranks + data_types:
            allowed = [
                level
                for level, row in rows.items()
                if row and row[0] <= rank <= row[1] and data_type in row[2]
            ]
            desc = describe(operator, low, "FLOAT32", (field.dml_name, rank, data_type))
            remedy = f"allowed from {allowed[0]}" if allowed else "no level allows it"
            kind = FeatureLevelError if allowed else InvalidDescError
            assert fault(partial(desc.validate, level), kind) == (
                f"{operator} {path}.{text} at feature level {level}; {remedy} [DEV-13]"
            )


@pytest.mark.parametrize("operator", dml.OPERATORS)
def test_minimum_feature_level_is_the_first_to_accept(operator):
    low, high, types = published(operator, data_field(operator), LEVELS[-1])
    for rank, data_type in itertools.product(range(low, high + 1), types):
        desc = describe(operator, rank, data_type)
        for alternative in ((), ("JOIN",)):
            minimum = desc.minimum_feature_level(alternative)
            accepted = [
                str(level) for level in dml.FeatureLevel if accepts(desc, level, alternative)
            ]
            assert accepted == LEVELS[LEVELS.index(str(minimum)) :]
    # No level takes types of four bits.
    assert fault(describe(operator, 4, "INT4").minimum_feature_level).endswith("[T-19]")


@pytest.mark.parametrize(("mode", "introduced"), [
    ("CONSTANT", "1_0"), ("EDGE", "1_0"), ("REFLECTION", "1_0"), ("SYMMETRIC", "3_0"),
    ("WRAP", "6_4"),
])  # fmt: skip
def test_modes_of_padding_have_levels(mode, introduced):
    desc = dataclasses.replace(
        describe("PADDING", 4, "FLOAT32"), padding_mode=dml.PaddingMode[mode]
    )
    assert str(desc.minimum_feature_level()) == introduced
    if introduced != "1_0":
        assert fault(lambda: desc.validate("2_1"), FeatureLevelError) == (
            f"PADDING padding_mode: got {mode}, which is not available at feature level 2_1; "
            f"allowed from {introduced} [PAD-03]"
        )


@pytest.mark.parametrize("operator", dml.OPERATORS)
def test_fields_are_directml_s(operator):
    def words(field):
        kind = "scalar_union" if field.kind.name == "scalar" else field.kind.name
        enum = field.enum and directml_name(field.enum)
        data_type = field.data_type and field.data_type.title().replace("_", "")
        further = (field.count, enum, data_type, "optional" if field.optional else None)
        return " ".join(filter(None, (field.dml_name, kind, field.role, *further)))

    fields = dml.OPERATORS[operator].FIELDS
    assert [words(field) for field in fields] == DATA["operators"][operator]
    assert [field.name for field in fields] == [
        field.name for field in dataclasses.fields(dml.OPERATORS[operator])
    ]


def directml_name(enum):
    return "DML_" + re.sub(r"(?<!^)(?=[A-Z])", "_", enum.__name__).upper()


def test_enumerations_are_directml_s():
    assert {t.name: [t.value, t.size_bits or None] for t in dml.TensorDataType} == DATA[
        "data_types"
    ]
    assert {str(level): level.value for level in dml.FeatureLevel} == DATA["feature_levels"]
    enums = (
        dml.TensorFlags, dml.ExecutionFlags, dml.PaddingMode, dml.DepthSpaceOrder, dml.InterpolationMode, dml.AxisDirection
    )  # fmt: skip
    assert {
        directml_name(enum): {name: int(member) for name, member in enum.__members__.items()}
        for enum in enums
    } == DATA["enums"]


@pytest.mark.parametrize(("rank", "data_type", "text"), [
    (4, "INT32", "input_tensor.data_type: got INT32, must be one of FLOAT32"),
    (5, "FLOAT32", "input_tensor.sizes: got 5 dimensions, must be 4"),
])  # fmt: skip
@pytest.mark.parametrize("level", ["1_0", LEVELS[-1]])
def test_what_no_level_allows_is_not_a_matter_of_levels(monkeypatch, level, rank, data_type, text):
    """The newest row of an operator need not take every type and rank."""
    only = Support({"1_0": {"ranks": [4, 4], "types": "FLOAT32"}})
    monkeypatch.setitem(SUPPORT, "SPLIT", only)
    desc = describe.__wrapped__("SPLIT", rank, data_type)  # not validated before
    assert fault(lambda: desc.validate(level)) == (
        f"SPLIT {text} at feature level {level}; no level allows it [DEV-13]"
    )
    assert "no level allows it" in fault(desc.minimum_feature_level)
