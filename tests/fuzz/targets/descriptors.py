"""Descriptors of all operators, with fields of any value."""

from fuzz import hostile, target
from fuzz.choices import Choices
from vkops import dml

TYPES = [*dml.TensorDataType]


def tensor(choices):
    """A descriptor of a tensor, often a sound one."""
    sizes = choices.some(5, lambda: 1 + choices.below(3)) or [2]
    strides = choices.some(5, lambda: choices.below(5)) if choices.one_in(4) else None
    fields = [choices.pick(TYPES), sizes, strides]
    if choices.one_in(6):
        fields += [choices.pick([dml.TensorFlags.OWNED_BY_DML, 0, 1]), hostile.integer(choices)]
    if choices.one_in(6):
        fields[choices.below(len(fields))] = hostile.value(choices)
    return dml.BufferTensorDesc(*fields)


def integers(choices):
    return choices.some(5, lambda: choices.below(5) - 1)


FIELDS = {
    "tensor": tensor,
    "tensor_array": lambda choices: choices.some(3, lambda: tensor(choices)),
    "uint": lambda choices: choices.below(4),
    "int": lambda choices: choices.below(4),
    "float": lambda choices: choices.below(300) / 2,
    "scalar": lambda choices: choices.pick([choices.below(300), choices.below(300) / 2]),
    "enum": lambda choices: choices.pick([*TYPES, choices.below(5)]),
    "uint_array": integers,
    "int_array": integers,
    "scale_bias": lambda choices: None if choices.one_in(2) else dml.ScaleBias(1, 0),
    "bool": lambda choices: choices.one_in(2),
    "float_array": lambda choices: choices.some(5, lambda: choices.below(99) / 16 - 1),
    "size_2d": lambda choices: dml.Size2D(choices.below(4), choices.below(4)),
}


def operator(choices):
    """A descriptor of an operator whose fields fit their kinds, or not."""
    cls = choices.pick(list(dml.OPERATORS.values()))
    fields = [
        hostile.value(choices) if choices.one_in(8) else FIELDS[field.kind.name](choices)
        for field in cls.FIELDS
    ]
    return cls(*fields)


def _operator(choices):
    desc = operator(choices)
    level = hostile.value(choices) if choices.one_in(4) else dml.FeatureLevel.LATEST
    alternatives = hostile.value(choices) if choices.one_in(4) else ()
    desc.minimum_feature_level(alternatives)
    desc.validate(level, alternatives)
    plan = desc.lower()
    for given, (_, found) in zip(plan.inputs, desc.inputs, strict=True):
        target.require(given <= found.total_tensor_size_in_bytes, "the plan reads beyond its input")
    repr(desc) and hash(desc)


def _type(choices):
    return choices.pick(TYPES)


def _tensor(choices):
    integers, integer = hostile.integers, hostile.integer
    makers = (_type, integers, integers, lambda _: dml.TensorFlags.NONE, integer, integer)
    fields = [hostile.value(choices) if choices.one_in(3) else make(choices) for make in makers]
    desc = dml.BufferTensorDesc(*fields[: 2 + choices.below(5)])
    target.require(desc.minimum_implied_size >= 0, "a tensor has less than no bytes")


def _query(choices):
    make = choices.pick(
        [dml.FeatureQueryTensorDataTypeSupport, dml.FeatureQueryFeatureLevels, lambda value: value]
    )
    dml.check_feature_support(make(hostile.value(choices)), hostile.value(choices))


def _pair(choices):
    choices.pick([dml.ScaleBias, dml.Size2D])(hostile.value(choices), hostile.value(choices))


CALLS = [_operator, _operator, _operator, _operator, _tensor, _tensor, _query, _pair]


class Target(target.Target):
    def check(self, data):
        choices = Choices(data)
        choices.pick(CALLS)(choices)
