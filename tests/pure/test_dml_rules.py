"""Every rule of vkops.dml: a case that keeps it and one that breaks it, with the error's text."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from case_names import name_of
from operator_table import OPERATORS

import vkops.dml
from vkops import FeatureLevelError, InvalidDescError, InvalidDescTypeError, dml
from vkops.dml.fields import FLOAT
from vkops.rules import GROUPS, RULES, STATUSES

F32 = dml.TensorDataType.FLOAT32
SIX_BY_TWO = (1, 1, 6, 2)


def tensor(*sizes, data_type=F32, **fields):
    return dml.BufferTensorDesc(data_type, sizes, **fields)


def split(outputs=((1, 1, 2, 2), (1, 1, 4, 2)), axis=2, source=SIX_BY_TWO, level="6_4", **fields):
    """Validate a SPLIT; fields go to every output, and to the input where they are its own."""
    pieces = [piece if not isinstance(piece, tuple) else tensor(*piece) for piece in outputs]
    whole = tensor(*source, **fields) if isinstance(source, tuple) else source
    dml.SplitOperatorDesc(whole, pieces, axis).validate(level)


def join(inputs=((1, 1, 2, 2), (1, 1, 4, 2)), axis=2, output=SIX_BY_TWO, level="6_4", **kwargs):
    pieces = [piece if not isinstance(piece, tuple) else tensor(*piece) for piece in inputs]
    dml.JoinOperatorDesc(pieces, tensor(*output), axis).validate(level, **kwargs)


def sliced(
    kind, offsets=(0, 0), sizes=(2, 2), strides=(1, 1), source=(4, 4), target=(2, 2), level="6_4"
):
    kind(tensor(*source), tensor(*target), offsets, sizes, strides).validate(level)


slice_, slice1 = partial(sliced, dml.SliceOperatorDesc), partial(sliced, dml.Slice1OperatorDesc)


def identity(source, target, level="6_4", scale_bias=None):
    dml.ElementWiseIdentityOperatorDesc(source, target, scale_bias).validate(level)


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
    """A rule, the field that its error names, what keeps it and what breaks it."""

    rule: str
    field: str
    kept: Callable[[], object]
    broken: Callable[[], object]
    error: type[InvalidDescError] = InvalidDescError


CASES = [
    # T: tensors
    Case("T-01", "input_tensor", lambda: split(source=tensor(1, 1, 6, 2)), lambda: split(source="tensor"), InvalidDescTypeError),
    Case("T-01", "output_tensors[1]", lambda: split(), lambda: split(outputs=[tensor(1, 1, 6, 2), 7]), InvalidDescTypeError),
    Case("T-02", "input_tensor.data_type", lambda: both(4, data_type=dml.TensorDataType.FLOAT64), lambda: both(4, data_type=dml.TensorDataType.UNKNOWN)),
    Case("T-02", "data_type", lambda: tensor(4, data_type=13), lambda: tensor(4, data_type=14), InvalidDescTypeError),
    Case("T-02", "data_type", lambda: tensor(4, data_type=1), lambda: tensor(4, data_type=dml.TensorFlags.OWNED_BY_DML), InvalidDescTypeError),
    Case("T-02", "data_type", lambda: dml.TensorDataType.FLOAT16.element_size, lambda: dml.TensorDataType.UNKNOWN.element_size),
    Case("T-03", "input_tensor.sizes", lambda: both(1, 1, 1, 1, 1, 1, 1, 1), lambda: both(1, 1, 1, 1, 1, 1, 1, 1, 1)),
    Case("T-03", "input_tensor.sizes", lambda: both(1), lambda: both()),
    Case("T-04", "input_tensor.sizes[1]", lambda: both(1, 2), lambda: both(1, 0)),
    Case("T-04", "input_tensor.sizes[0]", lambda: both(1, 2), lambda: both(2**32, 1)),
    Case("T-04", "sizes[1]", lambda: tensor(1, 2), lambda: tensor(1, 2.0), InvalidDescTypeError),
    Case("T-04", "sizes", lambda: tensor(1, 2), lambda: dml.BufferTensorDesc(F32, "12"), InvalidDescTypeError),
    Case("T-04", "sizes", lambda: tensor(1, 2), lambda: dml.BufferTensorDesc(F32, range(10**7)), InvalidDescTypeError),
    Case("T-06", "input_tensor.strides", lambda: copy_from(strides=(4, 1)), lambda: copy_from(strides=(4, 1, 1))),
    Case("T-07", "input_tensor.strides[1]", lambda: copy_from(strides=(1, 4)), lambda: copy_from(strides=(0, -1))),
    Case("T-07", "input_tensor.strides[0]", lambda: copy_from(sizes=(1, 4), strides=(2**32 - 1, 1)), lambda: copy_from(sizes=(1, 4), strides=(2**32, 1))),
    Case("T-07", "strides[0]", lambda: tensor(4, strides=[1]), lambda: tensor(4, strides=[None]), InvalidDescTypeError),
    Case("T-09", "output_tensor.strides", lambda: copy_to(strides=(1, 4)), lambda: copy_to(strides=(4, 0))),
    Case("T-09", "output_tensor.strides", lambda: copy_to(sizes=(4, 1), strides=(1, 0)), lambda: copy_to(strides=(3, 1))),
    Case("T-09", "output_tensor.strides", lambda: copy_to(sizes=(9,) * 6, strides=(1, 9, 81, 729, 6561, 59049)), lambda: copy_to(sizes=(22, 22, 23, 23, 24), strides=(39367847, 35420129, 38239141, 36310931, 34512341))),
    Case("T-12", "output_tensor.total_tensor_size_in_bytes", lambda: copy_to(total_tensor_size_in_bytes=68), lambda: copy_to(total_tensor_size_in_bytes=60)),
    Case("T-12", "input_tensor.total_tensor_size_in_bytes", lambda: copy_from(total_tensor_size_in_bytes=2**34 - 4), lambda: copy_from(total_tensor_size_in_bytes=2**34 - 3)),
    Case("T-12", "input_tensor.total_tensor_size_in_bytes", lambda: both(2**32 - 4, data_type=dml.TensorDataType.UINT8), lambda: both(2**32 - 1, data_type=dml.TensorDataType.INT8)),
    Case("T-12", "output_tensor.total_tensor_size_in_bytes", lambda: copy_to(total_tensor_size_in_bytes=70), lambda: copy_to(total_tensor_size_in_bytes=63)),
    Case("T-12", "total_tensor_size_in_bytes", lambda: tensor(4, total_tensor_size_in_bytes=16), lambda: tensor(4, total_tensor_size_in_bytes="16"), InvalidDescTypeError),
    Case("T-13", "input_tensor.sizes", lambda: both(65535, 65537), lambda: both(65536, 65536)),
    Case("T-13", "input_tensor.sizes", lambda: copy_from(sizes=(2, 2), strides=(2**32 - 3, 1)), lambda: copy_from(sizes=(2, 2), strides=(2**32 - 2, 1))),
    Case("T-15", "output_tensor.guaranteed_base_offset_alignment", lambda: copy_to(guaranteed_base_offset_alignment=16), lambda: copy_to(guaranteed_base_offset_alignment=8)),
    Case("T-15", "output_tensor.guaranteed_base_offset_alignment", lambda: copy_to(guaranteed_base_offset_alignment=2**31), lambda: copy_to(guaranteed_base_offset_alignment=2**32)),
    Case("T-15", "input_tensor.guaranteed_base_offset_alignment", lambda: copy_from(guaranteed_base_offset_alignment=0), lambda: copy_from(guaranteed_base_offset_alignment=24)),
    Case("T-15", "guaranteed_base_offset_alignment", lambda: tensor(4, guaranteed_base_offset_alignment=16), lambda: tensor(4, guaranteed_base_offset_alignment=True), InvalidDescTypeError),
    Case("T-17", "output_tensor.flags", lambda: copy_from(flags=dml.TensorFlags.OWNED_BY_DML), lambda: copy_to(flags=1)),
    Case("T-17", "flags", lambda: tensor(4, flags=0), lambda: tensor(4, flags=2), InvalidDescTypeError),
    Case("T-18", "output_tensor", lambda: identity(tensor(4), tensor(4), scale_bias=None), lambda: identity(tensor(4), None), InvalidDescTypeError),
    Case("T-19", "input_tensor.data_type", lambda: both(4, data_type=dml.TensorDataType.INT64), lambda: both(4, data_type=dml.TensorDataType.INT4)),
    Case("T-19", "data_type", lambda: dml.TensorDataType.INT8.element_size, lambda: dml.TensorDataType.UINT4.element_size),
    # DEV: feature levels and queries
    Case("DEV-04", "feature_level", lambda: both(4, level=0x6400), lambda: both(4, level="7_0")),
    Case("DEV-04", "feature_level", lambda: both(4, level="DML_FEATURE_LEVEL_3_0"), lambda: both(4, level=10**5000)),
    Case("DEV-04", "feature_level", lambda: both(4, level=dml.FeatureLevel.LEVEL_3_0), lambda: both(4, level=4096.0), InvalidDescTypeError),
    Case("DEV-04", "feature_level", lambda: both(4, level=0x3000), lambda: both(4, level=dml.TensorDataType.FLOAT32), InvalidDescTypeError),
    Case("DEV-05", "data_type", lambda: dml.FeatureQueryTensorDataTypeSupport(1), lambda: dml.FeatureQueryTensorDataTypeSupport("FLOAT32"), InvalidDescTypeError),
    Case("DEV-06", "requested_feature_levels", lambda: dml.check_feature_support(dml.FeatureQueryFeatureLevels(["3_0", "5_0"]), "4_0"), lambda: dml.check_feature_support(dml.FeatureQueryFeatureLevels(["4_1", "5_0"]), "4_0"), FeatureLevelError),
    Case("DEV-06", "requested_feature_levels", lambda: dml.FeatureQueryFeatureLevels(("3_0",)), lambda: dml.FeatureQueryFeatureLevels("3_0"), InvalidDescTypeError),
    Case("DEV-07", "requested_feature_levels", lambda: dml.FeatureQueryFeatureLevels(["1_0"]), lambda: dml.FeatureQueryFeatureLevels([])),
    Case("DEV-07", "query", lambda: dml.check_feature_support(dml.FeatureQueryTensorDataTypeSupport(F32)), lambda: dml.check_feature_support(F32), InvalidDescTypeError),
    Case("DEV-12", "", lambda: slice1((0,) * 4, (1,) * 4, (1,) * 4, (1,) * 4, (1,) * 4, level="2_1"), lambda: slice1((0,) * 4, (1,) * 4, (1,) * 4, (1,) * 4, (1,) * 4, level="2_0"), FeatureLevelError),
    Case("DEV-13", "input_tensor.sizes", lambda: split(((4,), (2,)), 0, (6,), level="3_0"), lambda: split(((4,), (2,)), 0, (6,), level="2_1"), FeatureLevelError),
    # SPLIT, JOIN, SLICE, SLICE1 and ELEMENT_WISE_IDENTITY; operator_table.py has their other rules
    Case("SPLIT-01", "output_tensors[1]", lambda: split(), lambda: split([tensor(1, 1, 6, 2), None]), InvalidDescTypeError),
    Case("SPLIT-01", "output_tensors", lambda: split(), lambda: dml.SplitOperatorDesc(tensor(4), tensor(4), 0), InvalidDescTypeError),
    Case("SPLIT-02", "axis", lambda: split(axis=2), lambda: split(axis="2"), InvalidDescTypeError),
    Case("JOIN-01", "input_tensors[0]", lambda: join(), lambda: join([None]), InvalidDescTypeError),
    Case("JOIN-09", "alternative_levels[0]", lambda: join(alternative_levels=("JOIN",)), lambda: join(alternative_levels=["SPLIT"]), InvalidDescTypeError),
    Case("SLICE-04", "strides[0]", lambda: slice_((0,), (1,), (2**31 - 1,), (4,), (1,)), lambda: slice_((0,), (1,), (2**32,), (4,), (1,))),
    Case("SLICE1-03", "input_window_strides[0]", lambda: slice1((0,), (1,), (-(2**31),), (4,), (1,)), lambda: slice1((0,), (1,), (2**31,), (4,), (1,))),
    Case("IDENT-02", "bias", lambda: dml.ScaleBias(1, 2.5), lambda: dml.ScaleBias(1, "2.5"), InvalidDescTypeError),
    Case("IDENT-02", "scale_bias", lambda: both(2), lambda: identity(tensor(2), tensor(2), scale_bias=(2, 10)), InvalidDescTypeError),
]  # fmt: skip


def name(case):
    return f"{case.rule}-{case.field}-{name_of(case.broken)}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_kept(case):
    case.kept()


@pytest.mark.parametrize("case", CASES, ids=name)
def test_broken(case, message):
    with pytest.raises(InvalidDescError) as caught:
        case.broken()
    error = caught.value
    assert (type(error), error.rule, error.field) == (case.error, case.rule, case.field)
    assert str(error).startswith(" ".join(filter(None, (error.operator, error.field))) + ":")
    assert str(error).endswith(f" [{error.rule}]")
    message(error)


SOURCE = Path(vkops.__file__).parent
QUOTED = re.compile(r'["[]([A-Z0-9]+-\d\d)["\]]')


def rules_named_in(paths):
    return {rule for path in paths for rule in QUOTED.findall(path.read_text("utf-8"))}


def test_every_rule_in_the_source_has_a_case():
    # test_dml_binding.py, test_dml_graph.py and test_dml_functions.py have those of these modules.
    others = "basic_indexing", "binding_rules", "expressions", "graph_builder", "graph_desc"
    raised = rules_named_in(p for p in (SOURCE / "dml").rglob("*.py") if p.stem not in others)
    tested = {case.rule for case in CASES}
    tested |= {rule for entry in OPERATORS.values() for rule, _, _ in entry.broken}
    assert raised - {"G-04"} == tested, "the errors of tests/operator_table.py"


def test_rules_in_the_source_are_those_of_the_table():
    named = rules_named_in(SOURCE.rglob("*.py"))
    enforced = {rule.id for rule in RULES.values() if rule.enforced}
    assert named == enforced, "the rules that errors name, and the enforced ones of rules.json"


def test_rules_are_numbered_without_gaps():
    for name, group in GROUPS.items():
        numbers = range(1, len(group.rules) + 1)
        assert [rule.id for rule in group.rules] == [f"{name}-{number:02}" for number in numbers]


def test_every_rule_says_what_directml_does():
    assert {rule.status for rule in RULES.values()} == set(STATUSES)
    accepted = {rule.id for rule in RULES.values() if rule.status == "bound" and rule.enforced}
    assert accepted == {"RES-15", "GND-05", "PAD-14", "UNF-07"}


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "size"),
    [
        (dml.TensorDataType.FLOAT32, (2, 3), None, 24),
        (dml.TensorDataType.UINT8, (5,), None, 8),
        (dml.TensorDataType.UINT8, (2, 3), (4, 1), 8),
        (dml.TensorDataType.FLOAT16, (3,), None, 8),
        (dml.TensorDataType.FLOAT64, (3,), (2,), 40),
        (dml.TensorDataType.INT4, (9,), None, 8),
        (dml.TensorDataType.UINT4, (3, 3), None, 8),
        # beyond 32 bits (T-11), and yet within T-13
        (dml.TensorDataType.FLOAT64, (2**31, 1), None, 2**34),
        # refused by validate: nothing is implied
        (dml.TensorDataType.FLOAT32, (2, -3), None, 0),
        (dml.TensorDataType.FLOAT32, (2, 3), (1,), 0),
        (dml.TensorDataType.UNKNOWN, (2, 3), None, 0),
    ],
)
def test_minimum_implied_size(data_type, sizes, strides, size):
    """T-10."""
    desc = dml.BufferTensorDesc(data_type, sizes, strides)
    assert desc.minimum_implied_size == desc.total_tensor_size_in_bytes == size


def test_tensor_desc_is_a_value():
    import pickle

    desc = dml.BufferTensorDesc(1, [2, 3], [3, 1])
    same = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (2, 3), (3, 1), 0, 24)
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


@pytest.mark.parametrize("operator", dml.OPERATORS)
def test_docstrings_say_the_source_all_fields_and_the_errors(operator):
    kind = dml.OPERATORS[operator]
    assert f"Source: DML_{operator}_OPERATOR_DESC.\n" in kind.__doc__
    assert "\nRaises:\n" in kind.__doc__
    for field in kind.FIELDS:
        assert f"\n    {field.name}: " in kind.__doc__
    has_floats = any(FLOAT in (field.kind, field.kind.entry) for field in kind.FIELDS)
    assert ("InvalidDescOverflowError" in kind.__doc__) == has_floats


def test_plans_are_made_of_valid_descriptors_only():
    desc = dml.ElementWiseIdentityOperatorDesc(tensor(4, 4, strides=(0, -1)), tensor(4, 4))
    with pytest.raises(InvalidDescError, match="T-07"):
        desc.lower()
