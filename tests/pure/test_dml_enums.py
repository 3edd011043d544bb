"""Feature levels in all their spellings, and the feature queries."""

import copy
import itertools
import math
import pickle

import pytest

from vkops import VkopsError, dml
from vkops.arguments.values import ArgumentName, member


@pytest.mark.parametrize(
    "spelling",
    ["5_1", "5.1", "LEVEL_5_1", "DML_FEATURE_LEVEL_5_1", 0x5100, dml.FeatureLevel.LEVEL_5_1],
)
def test_spellings_of_a_level(spelling):
    assert dml.FeatureLevel(spelling) is dml.FeatureLevel.LEVEL_5_1
    assert dml.FeatureLevel.of(spelling) is dml.FeatureLevel.LEVEL_5_1


@pytest.mark.parametrize(
    "spelling", ["5_3", "5", "", "5_1 ", "５_1", "51", "level_5_1", 5, 0, None]
)
def test_no_spelling_of_a_level(spelling):
    with pytest.raises(ValueError, match="is not a valid FeatureLevel"):
        dml.FeatureLevel(spelling)
    with pytest.raises(VkopsError, match=r"\[DEV-04\]"):
        dml.FeatureLevel.of(spelling)


def test_a_level_prints_as_its_name():
    level = dml.FeatureLevel.LEVEL_4_1
    assert str(level) == f"{level}" == "4_1"
    assert f"{level:#x}" == "0x4100"
    assert dml.FeatureLevel.LATEST is max(dml.FeatureLevel)


@pytest.mark.parametrize(
    "value", [dml.TensorDataType.INT4, dml.FeatureLevel.LEVEL_5_0, dml.ExecutionFlags(3)]
)
def test_members_survive_copies(value):
    assert pickle.loads(pickle.dumps(value)) is value
    assert copy.deepcopy(value) is value


@pytest.mark.parametrize(("flags", "valid"), [(0, True), (7, True), (8, False), (-1, False)])
def test_unknown_execution_flags_are_refused(flags, valid):
    """DEV-10."""
    argument = ArgumentName("", "flags", "DEV-10")
    if valid:
        assert member(dml.ExecutionFlags, flags, argument) == flags
        return
    with pytest.raises(VkopsError) as caught:
        member(dml.ExecutionFlags, flags, argument)
    assert str(caught.value) == (
        f"flags: got {flags}, must be one of NONE, ALLOW_HALF_PRECISION_COMPUTATION, "
        "DISABLE_META_COMMANDS, DESCRIPTORS_VOLATILE (ExecutionFlags or its value) [DEV-10]"
    )


def test_data_type_query():
    for data_type, level in itertools.product(dml.TensorDataType, dml.FeatureLevel):
        answer = dml.check_feature_support(dml.FeatureQueryTensorDataTypeSupport(data_type), level)
        expected = data_type.size_bits >= 8 and (data_type.size_bits < 64 or level >= 0x3000)
        assert answer.is_supported == expected, (data_type, level)


@pytest.mark.parametrize(
    ("asked", "level", "answer"),
    [
        (["1_0", "6_4", "3_1"], "6_4", "6_4"),
        ([0x1000, 0x6400, 0x3100], "6_3", "3_1"),
        (["DML_FEATURE_LEVEL_1_0"], "6_4", "1_0"),
    ],
)
def test_feature_levels_query(asked, level, answer):
    got = dml.check_feature_support(dml.FeatureQueryFeatureLevels(asked), level)
    assert str(got.max_supported_feature_level) == answer


# What DirectML 1.15.4 writes for the value of DIAGONAL_MATRIX and PADDING.
CONVERTED = {
    "UINT8": {300.7: 44, -1: 255, -5.5: 251, 3e9: 0, math.nan: 0, math.inf: 0},
    "INT16": {70000: 4464, -129.9: -129, 3e9: 0, -math.inf: 0},
    "INT32": {-300.7: -300, 2.0**31: -(2**31), math.nan: -(2**31), -3e38: -(2**31)},
    "UINT32": {-1: 2**32 - 1, 3e9: 3_000_000_000, 2.0**32: 0, 1e20: 0, math.nan: 0},
    "INT64": {-5.5: -5, 2.0**63: -(2**63), math.inf: -(2**63)},
    "UINT64": {-1: 2**64 - 1, 2.0**63: 2**63, 1.5 * 2.0**63: 3 * 2**62, 2.0**64: 2**63, math.nan: 2**63},
    "FLOAT16": {65519: 65504, 65520: math.inf, -70000: -math.inf},
    "FLOAT64": {3e38: 3e38},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "element"),
    [(kind, *pair) for kind, values in CONVERTED.items() for pair in values.items()],
)
def test_elements_of_floats_that_are_out_of_range(kind, value, element):
    data_type = dml.TensorDataType[kind]
    assert data_type.convert(value) == data_type.pack(element)
