"""Feature levels in all their spellings, and the feature queries."""

import copy
import itertools
import pickle

import pytest

from vkops import VkopsError, dml
from vkops.arguments.values import Place, member


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
    place = Place("", "flags", "DEV-10")
    if valid:
        assert member(dml.ExecutionFlags, flags, place) == flags
        return
    with pytest.raises(VkopsError) as caught:
        member(dml.ExecutionFlags, flags, place)
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
