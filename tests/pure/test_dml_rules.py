"""Every rule of vkops.dml: a case that keeps it and one that breaks it, with the error's text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from operator_table import OPERATORS

import vkops.dml
from vkops import FeatureLevelError, InvalidDescError, InvalidDescTypeError
from vkops.cli.rule_commands import markdown_lines
from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    FeatureLevel,
    FeatureQueryFeatureLevels,
    FeatureQueryTensorDataTypeSupport,
    JoinOperatorDesc,
    ScaleBias,
    Slice1OperatorDesc,
    SliceOperatorDesc,
    SplitOperatorDesc,
    TensorDataType,
    TensorFlags,
    check_feature_support,
)
from vkops.rules import GROUPS, RULES

F32 = TensorDataType.FLOAT32
SIX_BY_TWO = (1, 1, 6, 2)


def tensor(*sizes, data_type=F32, **fields):
    return BufferTensorDesc(data_type, sizes, **fields)


def split(outputs=((1, 1, 2, 2), (1, 1, 4, 2)), axis=2, source=SIX_BY_TWO, level="6_4", **fields):
    """Validate a SPLIT; fields go to every output, and to the input where they are its own."""
    pieces = [piece if not isinstance(piece, tuple) else tensor(*piece) for piece in outputs]
    whole = tensor(*source, **fields) if isinstance(source, tuple) else source
    SplitOperatorDesc(whole, pieces, axis).validate(level)


def join(inputs=((1, 1, 2, 2), (1, 1, 4, 2)), axis=2, output=SIX_BY_TWO, level="6_4", **kwargs):
    pieces = [piece if not isinstance(piece, tuple) else tensor(*piece) for piece in inputs]
    whole = tensor(*output) if isinstance(output, tuple) else output
    JoinOperatorDesc(pieces, whole, axis).validate(level, **kwargs)


def slice_(offsets=(0, 0), sizes=(2, 2), strides=(1, 1), source=(4, 4), target=(2, 2), level="6_4"):
    source, target = (tensor(*t) if isinstance(t, tuple) else t for t in (source, target))
    SliceOperatorDesc(source, target, offsets, sizes, strides).validate(level)


def slice1(offsets=(0, 0), sizes=(2, 2), strides=(1, 1), source=(4, 4), target=(2, 2), level="6_4"):
    source, target = (tensor(*t) if isinstance(t, tuple) else t for t in (source, target))
    Slice1OperatorDesc(source, target, offsets, sizes, strides).validate(level)


def identity(source, target, level="6_4", scale_bias=None):
    ElementWiseIdentityOperatorDesc(source, target, scale_bias).validate(level)


def copy_to(sizes=(4, 4), **fields):
    """Validate an identity whose output has the given fields."""
    identity(tensor(*sizes), tensor(*sizes, **fields))


def copy_from(sizes=(4, 4), **fields):
    """Validate an identity whose input has the given fields."""
    identity(tensor(*sizes, **fields), tensor(*sizes))


def both(*sizes, data_type=F32, level="6_4"):
    """Validate an identity of two equal tensors."""
    identity(tensor(*sizes, data_type=data_type), tensor(*sizes, data_type=data_type), level)


class Case(NamedTuple):
    kept: Callable[[], object]
    broken: Callable[[], object]
    text: str
    error: type[InvalidDescError] = InvalidDescError


E = "ELEMENT_WISE_IDENTITY"
TYPES_1_0 = "FLOAT32, FLOAT16, UINT32, UINT16, INT32, INT16"
TYPES_3_0 = "FLOAT32, FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, INT8"
LEVELS = "1_0, 2_0, 2_1, 3_0, 3_1, 4_0, 4_1, 5_0, 5_1, 5_2, 6_0, 6_1, 6_2, 6_3, 6_4"
DATA_TYPES = ", ".join(TensorDataType.__members__)

CASES = [
    # T: tensors
    Case(
        lambda: split(source=tensor(1, 1, 6, 2)),
        lambda: split(source="tensor"),
        "SPLIT input_tensor: got 'tensor', must be a BufferTensorDesc [T-01]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: split(),
        lambda: split(outputs=[tensor(1, 1, 6, 2), 7]),
        "SPLIT output_tensors[1]: got 7, must be a BufferTensorDesc [T-01]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: both(4, data_type=TensorDataType.FLOAT64),
        lambda: both(4, data_type=TensorDataType.UNKNOWN),
        f"{E} input_tensor.data_type: got UNKNOWN, must be a data type [T-02]",
    ),
    Case(
        lambda: tensor(4, data_type=13),
        lambda: tensor(4, data_type=14),
        f"data_type: got 14, must be one of {DATA_TYPES} (TensorDataType or its value) [T-02]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: tensor(4, data_type=1),
        lambda: tensor(4, data_type=TensorFlags.OWNED_BY_DML),
        f"data_type: got OWNED_BY_DML, must be one of {DATA_TYPES} "
        "(TensorDataType or its value) [T-02]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: TensorDataType.FLOAT16.element_size,
        lambda: TensorDataType.UNKNOWN.element_size,
        "data_type: UNKNOWN has no size in whole bytes [T-02]",
    ),
    Case(
        lambda: both(1, 1, 1, 1, 1, 1, 1, 1),
        lambda: both(1, 1, 1, 1, 1, 1, 1, 1, 1),
        f"{E} input_tensor.sizes: got 9 dimensions, must be 1 to 8 [T-03]",
    ),
    Case(
        lambda: both(1),
        lambda: both(),
        f"{E} input_tensor.sizes: got 0 dimensions, must be 1 to 8 [T-03]",
    ),
    Case(
        lambda: both(1, 2),
        lambda: both(1, 0),
        f"{E} input_tensor.sizes[1]: got 0, must be 1 to 4294967295 [T-04]",
    ),
    Case(
        lambda: both(1, 2),
        lambda: both(2**32, 1),
        f"{E} input_tensor.sizes[0]: got 4294967296, must be 1 to 4294967295 [T-04]",
    ),
    Case(
        lambda: tensor(1, 2),
        lambda: tensor(1, 2.0),
        "sizes[1]: got 2.0, must be an integer [T-04]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: tensor(1, 2),
        lambda: BufferTensorDesc(F32, "12"),
        "sizes: got '12', must be a sequence of integers [T-04]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: tensor(1, 2),
        lambda: BufferTensorDesc(F32, range(10**7)),
        "sizes: got range(0, 10000000), must be a sequence of integers, 1048576 at most [T-04]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: copy_from(strides=(4, 1)),
        lambda: copy_from(strides=(4, 1, 1)),
        f"{E} input_tensor.strides: got length 3, must be 2, "
        "one entry for each of the sizes [T-06]",
    ),
    Case(
        lambda: copy_from(strides=(1, 4)),
        lambda: copy_from(strides=(4, -1)),
        f"{E} input_tensor.strides[1]: got -1, must be 0 to 4294967295 [T-07]",
    ),
    Case(
        lambda: copy_from(sizes=(1, 4), strides=(2**32 - 1, 1)),
        lambda: copy_from(sizes=(1, 4), strides=(2**32, 1)),
        f"{E} input_tensor.strides[0]: got 4294967296, must be 0 to 4294967295 [T-07]",
    ),
    Case(
        lambda: tensor(4, strides=[1]),
        lambda: tensor(4, strides=[None]),
        "strides[0]: got None, must be an integer [T-07]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: copy_to(strides=(1, 4)),
        lambda: copy_to(strides=(4, 0)),
        f"{E} output_tensor.strides: got [4, 0], "
        "by which two elements of an output share one address [T-09]",
    ),
    Case(
        lambda: copy_to(sizes=(4, 1), strides=(1, 0)),
        lambda: copy_to(strides=(3, 1)),
        f"{E} output_tensor.strides: got [3, 1], "
        "by which two elements of an output share one address [T-09]",
    ),
    Case(
        lambda: copy_to(sizes=(9,) * 6, strides=(1, 9, 81, 729, 6561, 59049)),
        lambda: copy_to(
            sizes=(22, 22, 23, 23, 24),
            strides=(39367847, 35420129, 38239141, 36310931, 34512341),
        ),
        f"{E} output_tensor.strides: got [39367847, 35420129, 38239141, 36310931, 34512341], "
        "which take too long to check that no two elements share one address [T-09]",
    ),
    Case(
        lambda: copy_to(total_tensor_size_in_bytes=68),
        lambda: copy_to(total_tensor_size_in_bytes=60),
        f"{E} output_tensor.total_tensor_size_in_bytes: got 60, "
        "must be 64 (what the sizes and strides imply) or more [T-12]",
    ),
    Case(
        lambda: copy_from(total_tensor_size_in_bytes=2**63 - 4),
        lambda: copy_from(total_tensor_size_in_bytes=2**63),
        f"{E} input_tensor.total_tensor_size_in_bytes: got 9223372036854775808, "
        "must be at most 9223372036854775807 [T-12]",
    ),
    Case(
        lambda: tensor(4, total_tensor_size_in_bytes=16),
        lambda: tensor(4, total_tensor_size_in_bytes="16"),
        "total_tensor_size_in_bytes: got '16', must be an integer [T-12]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: both(65535, 65537, data_type=TensorDataType.UINT8),
        lambda: both(65536, 65536, data_type=TensorDataType.UINT8),
        f"{E} input_tensor.sizes: span 4294967296 elements with the strides, "
        "must be 4294967295 at most [T-13]",
    ),
    Case(
        lambda: copy_from(sizes=(2, 2), strides=(2**32 - 3, 1)),
        lambda: copy_from(sizes=(2, 2), strides=(2**32 - 2, 1)),
        f"{E} input_tensor.sizes: span 4294967296 elements with the strides, "
        "must be 4294967295 at most [T-13]",
    ),
    Case(
        lambda: copy_to(total_tensor_size_in_bytes=72),
        lambda: copy_to(total_tensor_size_in_bytes=70),
        f"{E} output_tensor.total_tensor_size_in_bytes: got 70, must be a multiple of 4 [T-14]",
    ),
    Case(
        lambda: copy_to(guaranteed_base_offset_alignment=4),
        lambda: copy_to(guaranteed_base_offset_alignment=2),
        f"{E} output_tensor.guaranteed_base_offset_alignment: got 2, "
        "must be 0 or a power of two from 4 (the element size) to 2147483648 [T-15]",
    ),
    Case(
        lambda: copy_to(guaranteed_base_offset_alignment=2**31),
        lambda: copy_to(guaranteed_base_offset_alignment=2**32),
        f"{E} output_tensor.guaranteed_base_offset_alignment: got 4294967296, "
        "must be 0 or a power of two from 4 (the element size) to 2147483648 [T-15]",
    ),
    Case(
        lambda: copy_from(guaranteed_base_offset_alignment=0),
        lambda: copy_from(guaranteed_base_offset_alignment=24),
        f"{E} input_tensor.guaranteed_base_offset_alignment: got 24, "
        "must be 0 or a power of two from 4 (the element size) to 2147483648 [T-15]",
    ),
    Case(
        lambda: tensor(4, guaranteed_base_offset_alignment=16),
        lambda: tensor(4, guaranteed_base_offset_alignment=True),
        "guaranteed_base_offset_alignment: got True, must be an integer [T-15]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: copy_from(flags=TensorFlags.OWNED_BY_DML),
        lambda: copy_to(flags=1),
        f"{E} output_tensor.flags: got OWNED_BY_DML, which only an input tensor may have [T-17]",
    ),
    Case(
        lambda: tensor(4, flags=0),
        lambda: tensor(4, flags=2),
        "flags: got 2, must be NONE or OWNED_BY_DML (TensorFlags or its value) [T-17]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: identity(tensor(4), tensor(4), scale_bias=None),
        lambda: identity(tensor(4), None),
        f"{E} output_tensor: got None, must be a BufferTensorDesc [T-18]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: both(4, data_type=TensorDataType.INT64),
        lambda: both(4, data_type=TensorDataType.INT4),
        f"{E} input_tensor.data_type: got INT4, "
        "which no data-movement operator takes at any level [T-19]",
    ),
    Case(
        lambda: TensorDataType.INT8.element_size,
        lambda: TensorDataType.UINT4.element_size,
        "data_type: UINT4 has no size in whole bytes [T-19]",
    ),
    # DEV: feature levels and queries
    Case(
        lambda: both(4, level=0x6400),
        lambda: both(4, level="7_0"),
        f"{E} feature_level: got '7_0', must be one of {LEVELS} [DEV-04]",
    ),
    Case(
        lambda: both(4, level="DML_FEATURE_LEVEL_3_0"),
        lambda: both(4, level=10**5000),
        f"{E} feature_level: got an integer of 16610 bits, must be one of {LEVELS} [DEV-04]",
    ),
    Case(
        lambda: both(4, level=FeatureLevel.LEVEL_3_0),
        lambda: both(4, level=4096.0),
        f"{E} feature_level: got 4096.0, must be a feature level, its name or its value [DEV-04]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: both(4, level=0x3000),
        lambda: both(4, level=TensorDataType.FLOAT32),
        f"{E} feature_level: got FLOAT32, must be a feature level, its name or its value [DEV-04]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: FeatureQueryTensorDataTypeSupport(1),
        lambda: FeatureQueryTensorDataTypeSupport("FLOAT32"),
        f"data_type: got 'FLOAT32', must be one of {DATA_TYPES} "
        "(TensorDataType or its value) [DEV-05]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: check_feature_support(FeatureQueryFeatureLevels(["3_0", "5_0"]), "4_0"),
        lambda: check_feature_support(FeatureQueryFeatureLevels(["4_1", "5_0"]), "4_0"),
        "requested_feature_levels: got 4_1, 5_0, "
        "must name one that is supported at feature level 4_0 [DEV-06]",
        FeatureLevelError,
    ),
    Case(
        lambda: FeatureQueryFeatureLevels(("3_0",)),
        lambda: FeatureQueryFeatureLevels("3_0"),
        "requested_feature_levels: got '3_0', must be a sequence of feature levels [DEV-06]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: FeatureQueryFeatureLevels(["1_0"]),
        lambda: FeatureQueryFeatureLevels([]),
        "requested_feature_levels: got no levels, must be at least 1 [DEV-07]",
    ),
    Case(
        lambda: check_feature_support(FeatureQueryTensorDataTypeSupport(F32)),
        lambda: check_feature_support(F32),
        "query: got FLOAT32, must be a FeatureQueryTensorDataTypeSupport "
        "or a FeatureQueryFeatureLevels [DEV-07]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: slice1((0,) * 4, (1,) * 4, (1,) * 4, (1,) * 4, (1,) * 4, level="2_1"),
        lambda: slice1((0,) * 4, (1,) * 4, (1,) * 4, (1,) * 4, (1,) * 4, level="2_0"),
        "SLICE1: not available at feature level 2_0; allowed from 2_1 [DEV-12]",
        FeatureLevelError,
    ),
    Case(
        lambda: split(((4,), (2,)), 0, (6,), level="3_0"),
        lambda: split(((4,), (2,)), 0, (6,), level="2_1"),
        "SPLIT input_tensor.sizes: got 1 dimension, must be 4 at feature level 2_1; "
        "allowed from 3_0 [DEV-13]",
        FeatureLevelError,
    ),
    Case(
        lambda: both(1, 1, 1, 1, 1, level="2_1"),
        lambda: both(1, 1, 1, level="2_1"),
        f"{E} input_tensor.sizes: got 3 dimensions, must be 4 to 5 at feature level 2_1; "
        "allowed from 3_0 [DEV-13]",
        FeatureLevelError,
    ),
    Case(
        lambda: split([tensor(1, 1, 6, 2)], level="1_0"),
        lambda: split([tensor(1, 1, 6, 2, data_type=TensorDataType.INT8)], level="1_0"),
        "SPLIT output_tensors[0].data_type: got INT8, must be one of "
        f"{TYPES_1_0} at feature level 1_0; allowed from 2_1 [DEV-13]",
        FeatureLevelError,
    ),
    Case(
        lambda: both(3, data_type=TensorDataType.UINT64, level="4_1"),
        lambda: both(3, data_type=TensorDataType.UINT64, level="4_0"),
        f"{E} input_tensor.data_type: got UINT64, must be one of {TYPES_3_0} "
        "at feature level 4_0; allowed from 4_1 [DEV-13]",
        FeatureLevelError,
    ),
    # SPLIT, JOIN, SLICE, SLICE1 and ELEMENT_WISE_IDENTITY; operator_table.py has their other rules
    Case(
        lambda: split(),
        lambda: split([tensor(1, 1, 6, 2), None]),
        "SPLIT output_tensors[1]: got None, must be a BufferTensorDesc [SPLIT-01]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: split(),
        lambda: SplitOperatorDesc(tensor(4), tensor(4), 0),
        re.compile(
            r"SPLIT output_tensors: got BufferTensorDesc\(.*…, "
            r"must be a sequence of BufferTensorDesc \[SPLIT-01\]"
        ),
        InvalidDescTypeError,
    ),
    Case(
        lambda: split(axis=2),
        lambda: split(axis="2"),
        "SPLIT axis: got '2', must be an integer [SPLIT-02]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: join(),
        lambda: join([None]),
        "JOIN input_tensors[0]: got None, must be a BufferTensorDesc [JOIN-01]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: join([(2,), (4,)], 0, (6,), level="3_1", alternative_levels=["JOIN"]),
        lambda: join([(2,), (4,)], 0, (6,), level="3_1"),
        "JOIN input_tensors[0].sizes: got 1 dimension, must be 4 to 5 at feature level 3_1; "
        "allowed from 4_1 [DEV-13]",
        FeatureLevelError,
    ),
    Case(
        lambda: join(alternative_levels=("JOIN",)),
        lambda: join(alternative_levels=["SPLIT"]),
        "JOIN alternative_levels[0]: got 'SPLIT', must be one of 'JOIN' [JOIN-09]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: slice_((0,), (1,), (2**32 - 1,), (4,), (1,)),
        lambda: slice_((0,), (1,), (2**32,), (4,), (1,)),
        "SLICE strides[0]: got 4294967296, must be 0 to 4294967295 [SLICE-04]",
    ),
    Case(
        lambda: both(1, 1, 1, 1, 1, level="1_0"),
        lambda: slice_(level="2_1"),
        "SLICE input_tensor.sizes: got 2 dimensions, must be 4 to 5 at feature level 2_1; "
        "allowed from 3_0 [DEV-13]",
        FeatureLevelError,
    ),
    Case(
        lambda: slice1((0,), (1,), (-(2**31),), (4,), (1,)),
        lambda: slice1((0,), (1,), (2**31,), (4,), (1,)),
        "SLICE1 input_window_strides[0]: got 2147483648, "
        "must be -2147483648 to 2147483647 [SLICE1-03]",
    ),
    Case(
        lambda: ScaleBias(1, 2.5),
        lambda: ScaleBias(1, "2.5"),
        "bias: got '2.5', must be a number [IDENT-02]",
        InvalidDescTypeError,
    ),
    Case(
        lambda: both(2),
        lambda: identity(tensor(2), tensor(2), scale_bias=(2, 10)),
        f"{E} scale_bias: got (2, 10), must be a ScaleBias or None [IDENT-02]",
        InvalidDescTypeError,
    ),
]


def name(case):
    text = case.text.pattern if isinstance(case.text, re.Pattern) else case.text
    return re.sub(r"[^\w\[\]. -]", "", text)[-60:]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_kept(case):
    case.kept()


@pytest.mark.parametrize("case", CASES, ids=name)
def test_broken(case):
    with pytest.raises(InvalidDescError) as caught:
        case.broken()
    error = caught.value
    assert type(error) is case.error
    if isinstance(case.text, re.Pattern):
        assert case.text.fullmatch(str(error))
    else:
        assert str(error) == case.text
    assert str(error).endswith(f"[{error.rule}]")
    assert str(error).startswith(" ".join(filter(None, (error.operator, error.field))) + ":")


SOURCE = Path(vkops.__file__).parent
QUOTED = re.compile(r'["[]([A-Z0-9]+-\d\d)["\]]')


def rules_named_in(paths):
    return {rule for path in paths for rule in QUOTED.findall(path.read_text("utf-8"))}


def test_every_rule_in_the_source_has_a_case():
    # test_dml_binding.py, test_dml_graph.py and test_dml_functions.py have those of these modules.
    others = (
        "basic_indexing.py",
        "binding_rules.py",
        "expressions.py",
        "graph_builder.py",
        "graph_desc.py",
    )
    raised = rules_named_in(p for p in (SOURCE / "dml").rglob("*.py") if p.name not in others)
    texts = [c.text.pattern if isinstance(c.text, re.Pattern) else c.text for c in CASES]
    texts += [text for entry in OPERATORS.values() for text in entry.broken]
    tested = {rule for text in texts for rule in re.findall(r"[A-Z0-9]+-\d\d", text)[-1:]}
    assert raised - {"G-04"} == tested, (
        "the errors of tests/operator_table.py, and the rules raised"
    )


def test_rules_in_the_source_are_those_of_the_table():
    named = rules_named_in(SOURCE.rglob("*.py"))
    enforced = {rule.id for rule in RULES.values() if rule.enforced}
    assert named == enforced, "the rules that errors name, and the enforced ones of rules.json"


def test_rules_are_numbered_without_gaps():
    for name, group in GROUPS.items():
        numbers = range(1, len(group.rules) + 1)
        assert [rule.id for rule in group.rules] == [f"{name}-{number:02}" for number in numbers]


def test_the_documentation_has_the_table():
    text = (SOURCE.parent / "docs" / "rules.md").read_text("utf-8")
    made = "\n".join(markdown_lines()) + "\n"
    assert text[-len(made) :] == made, "docs/rules.md is not that of rules.json: run scripts/docs"


@pytest.mark.parametrize("count", [1, 2, 7])
def test_split_into_any_number_of_outputs(count):
    split([(1, 1, 1, 2)] * (count - 1) + [(1, 1, 8 - count, 2)], source=(1, 1, 7, 2))


def test_equal_tensors_may_differ_in_layout():
    """T-20: only data type, rank and sizes are compared."""
    piece = tensor(
        1, 1, 2, 2, strides=(64, 32, 1, 2), total_tensor_size_in_bytes=400,
        guaranteed_base_offset_alignment=256,
    )  # fmt: skip
    split([piece, (1, 1, 4, 2)], flags=TensorFlags.OWNED_BY_DML)


def test_broadcast_input():
    """T-08: stride 0 on an input repeats elements; one element holds them all."""
    source = tensor(4, 4, strides=(0, 0))
    assert source.total_tensor_size_in_bytes == 4
    identity(source, tensor(4, 4))


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "size"),
    [
        (TensorDataType.FLOAT32, (2, 3), None, 24),
        (TensorDataType.UINT8, (5,), None, 8),
        (TensorDataType.UINT8, (2, 3), (4, 1), 8),
        (TensorDataType.FLOAT16, (3,), None, 8),
        (TensorDataType.FLOAT64, (3,), (2,), 40),
        (TensorDataType.INT4, (9,), None, 8),
        (TensorDataType.UINT4, (3, 3), None, 8),
        # beyond 32 bits (T-11), and yet within T-13
        (TensorDataType.FLOAT64, (2**31, 1), None, 2**34),
        # refused by validate: nothing is implied
        (TensorDataType.FLOAT32, (2, -3), None, 0),
        (TensorDataType.FLOAT32, (2, 3), (1,), 0),
        (TensorDataType.UNKNOWN, (2, 3), None, 0),
    ],
)
def test_minimum_implied_size(data_type, sizes, strides, size):
    """T-10."""
    desc = BufferTensorDesc(data_type, sizes, strides)
    assert desc.minimum_implied_size == desc.total_tensor_size_in_bytes == size


def test_tensor_desc_is_a_value():
    import pickle

    desc = BufferTensorDesc(1, [2, 3], [3, 1])
    same = BufferTensorDesc(TensorDataType.FLOAT32, (2, 3), (3, 1), 0, 24)
    assert desc == same
    assert hash(desc) == hash(same)
    assert pickle.loads(pickle.dumps(desc)) == desc
    assert repr(desc) == (
        "BufferTensorDesc(data_type=<TensorDataType.FLOAT32: 1>, sizes=(2, 3), strides=(3, 1), "
        "flags=<TensorFlags.NONE: 0>, total_tensor_size_in_bytes=24, "
        "guaranteed_base_offset_alignment=0)"
    )
    with pytest.raises(AttributeError):
        desc.sizes = (1,)
