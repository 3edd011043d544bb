"""What holds for every operator of the table: its rules, and the builder of graphs."""

import contextlib
import re
from dataclasses import replace
from inspect import signature
from random import Random

import numpy as np
import pytest
from byte_arrays import described
from dml_functions import FUNCTIONS
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from operator_table import OPERATORS, kinds, packed
from processes import ROOT

from vkops import dml
from vkops.dml import BufferTensorDesc, Graph, operator_desc
from vkops.dml.graph_builder import parameter_name
from vkops.dml.levels import class_name
from vkops.errors import InvalidDescError
from vkops.plan import execute


def test_every_operator_has_a_module_and_is_in_the_table():
    operators = ROOT / "vkops" / "dml" / "operators"
    declared = {
        name
        for module in operators.glob("*.py")
        for name in re.findall(r"^class ([A-Z]\w+OperatorDesc)\(", module.read_text("utf-8"), re.M)
    }
    assert declared == set(map(class_name, dml.OPERATORS)), "the modules, and levels.json"
    assert {name: desc.operator for name, desc in dml.OPERATORS.items()} == {
        name: name for name in dml.OPERATORS
    }
    assert set(OPERATORS) == set(dml.OPERATORS), "tests/operator_table.py, and levels.json"
    descriptors = {desc.__name__ for desc in dml.OPERATORS.values()}
    named = {name for name in dml.__all__ if name.endswith("OperatorDesc")} - {"OperatorDesc"}
    assert named == descriptors, "vkops/dml/__init__.pyi, and levels.json"
    functions = {name for name in dml.__all__ if name in FUNCTIONS}
    assert functions == set(FUNCTIONS), "vkops/dml/__init__.pyi, and expressions.py"


def test_every_operator_has_an_example():
    texts = [path.read_text("utf-8") for path in (ROOT / "examples").glob("*.json")]
    pattern = re.compile(r'"type": "(?:DML_OPERATOR_)?(\w+)"')
    named = {name for text in texts for name in pattern.findall(text)}
    if "SCATTER_ELEMENTS" in named:  # another name of the operator
        named.add("SCATTER")
    assert set(dml.OPERATORS) - named == set(), "operators without a model in examples/"


FUNCTION_OF = {operator: name for name, operator in FUNCTIONS.items()}


@pytest.mark.parametrize("name", OPERATORS)
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_builder_infers_what_a_descriptor_says(name, random):
    """A function makes a random descriptor again; of older operators, the builder does."""
    entry, function = OPERATORS[name], FUNCTION_OF.get(name)
    desc = packed(entry.make(random, random.choice(kinds(name)), (2, 3, 4), 1).desc)
    graph, inputs = Graph(), []
    attributes = {f.name: getattr(desc, f.name) for f in desc.FIELDS if f.role == "attribute"}
    arguments = attributes.copy()
    for field in desc.FIELDS:
        value = getattr(desc, field.name)
        if field.role == "input" and value is not None:
            known = [graph.input(tensor) for tensor in (value if type(value) is tuple else [value])]
            inputs += known
            arguments[parameter_name(field.name)] = known if type(value) is tuple else known[0]
    sizes = [tensor.sizes for _, tensor in desc.outputs]
    if function is None:
        if name == "DIAGONAL_MATRIX":  # nothing else tells the data type
            attributes["output_data_type"] = desc.output_tensor.data_type
        free = sizes if entry.free_sizes else None
        results = graph.add(type(desc), inputs, output_sizes=free, **attributes)
    else:
        along = [size[getattr(desc, "axis", 0)] for size in sizes]
        others = {"graph": graph, "output_axis_sizes": along, "output_length": along[0]}
        others |= dict.fromkeys(["output_sizes", "output_gradient_sizes"], sizes[0])
        parameters = signature(getattr(dml, function)).parameters
        arguments |= {key: value for key, value in others.items() if key in parameters}
        result = getattr(dml, function)(**arguments)
        assert isinstance(result, list) is (name == "SPLIT")
        results = result if name == "SPLIT" else [result]
    if name == "SLICE1":  # the descriptor may take fewer elements than the window has
        assume([x.desc.sizes for x in results] == sizes)
    assert graph.desc(results).nodes == (desc,)


def test_the_rules_of_tensors_are_checked_once_for_all_levels(monkeypatch):
    """Some take long: whether two elements of an output share an address."""
    checked = []
    monkeypatch.setattr(operator_desc, "check_tensor", lambda *args, **kwargs: checked.append(args))
    tensor = BufferTensorDesc(dml.TensorDataType.INT64, (2, 3))
    desc = dml.ElementWiseIdentityOperatorDesc(tensor, tensor)
    assert str(desc.minimum_feature_level()) == "4_1"
    desc.validate("5_0")
    desc.lower()
    assert len(checked) == 2


@pytest.mark.parametrize("name", OPERATORS)
def test_broken_descriptors(name, message):
    entry = OPERATORS[name]
    for rule, field, fields in entry.broken:
        desc = entry.make(Random(0), kinds(name)[0], (2, 3, 4), 1).desc
        with pytest.raises(InvalidDescError) as caught:
            replace(desc, **{**entry.valid, **fields}).validate()
        error = caught.value
        assert (error.operator, error.rule, error.field) == (name, rule, field)
        message(error)


@pytest.mark.parametrize("name", OPERATORS)
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=40)  # the campaign of tests/small_world.py runs many more
def test_plans_do_what_numpy_does(name, random):
    sizes = tuple(random.randint(1, 5) for _ in range(random.randint(1, 5)))
    axis = random.randrange(len(sizes))
    case = OPERATORS[name].make(random, random.choice(kinds(name)), sizes, axis)
    plan = case.desc.lower()
    random_bytes = [np.random.default_rng(0).integers(0, 256, n, np.uint8) for n in plan.inputs]
    inputs = [case.fill(number, data) for number, data in enumerate(random_bytes)]
    outputs = execute(plan, inputs)
    expected = [np.zeros(output.nbytes, np.uint8) for output in plan.outputs]
    arrays = [described(t, bytes_) for (_, t), bytes_ in zip(case.desc.inputs, inputs, strict=True)]
    results = zip(case.desc.outputs, expected, case.expect(arrays), strict=True)
    for (_, tensor), target, result in results:
        described(tensor, target)[...] = result
    assert all(map(np.array_equal, outputs, expected))


@pytest.mark.parametrize("rank", [1, 8])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_output_of_another_rank_is_no_fault(name, rank):
    """Some operators infer sizes from those of an output, which callers choose."""
    desc = OPERATORS[name].make(Random(0), kinds(name)[0], (2, 3, 4), 1).desc
    field = next(field for field in desc.FIELDS if field.role == "output")
    other = BufferTensorDesc(desc.data_type, (2,) * rank)
    changed = replace(desc, **{field.name: [other] if field.kind.name == "tensor_array" else other})
    for check in (changed.infer, changed.validate):
        with contextlib.suppress(InvalidDescError):
            check()
