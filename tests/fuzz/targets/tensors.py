"""Tensor's methods and indexing with any arguments, against NumPy's array."""

import ml_dtypes
import numpy as np
from arrays import NAMES, equal, numbered

from fuzz import hostile, target
from fuzz.choices import Choices

TYPES = (*NAMES, ml_dtypes.bfloat16)


def array(choices):
    """A small array of any type, whose elements differ where they can."""
    shape = tuple(choices.some(4, lambda: choices.below(5)))
    return numbered(shape, choices.pick(TYPES))


STRICTER = (
    "RESHAPE shape: ",  # -2 is a size to NumPy where there are no elements
    "must be at least 0 [ARRAY-06]",  # so is -1 of no elements
    "which is outside of axis",  # NumPy does not look at indices where the result is empty
    "must be at least 2 [ARRAY-13]",  # NumPy makes a square matrix of a vector in tril and triu
)
"""How vkops refuses what NumPy takes."""


# -- arguments -------------------------------------------------------------------------------------


def small(choices):
    return choices.below(7) - 3


def some(choices):
    return tuple(choices.some(4, lambda: small(choices)))


def stepped(choices):
    return slice(*(None if choices.one_in(3) else small(choices) for _ in range(3)))


PARTS = [
    small, small, small, lambda _: None, lambda _: ..., lambda choices: np.int64(small(choices)),
    stepped, stepped, lambda choices: choices.some(3, lambda: small(choices)),
]  # fmt: skip
"""Of an index."""


def part(choices):
    return choices.pick(PARTS)(choices)


def index(choices):
    return tuple(choices.some(4, lambda: part(choices))) if choices.one_in(2) else part(choices)


def odd_index(choices):
    kind = choices.below(3)
    if kind == 0:
        return slice(hostile.value(choices), hostile.value(choices), hostile.value(choices))
    return hostile.value(choices) if kind == 1 else (index(choices), hostile.value(choices))


METHODS = [
    ("index", [index]), ("transpose", [some]), ("reshape", [some]), ("broadcast_to", [some]),
    ("flip", [some]), ("flip", [small]), ("expand_dims", [some]), ("squeeze", [some]),
    ("squeeze", [small]), ("swapaxes", [small, small]), ("moveaxis", [some, some]),
    ("rot90", [small, lambda c: (small(c), small(c))]), ("ravel", [lambda c: c.pick("CF")]),
    ("T", []), ("copy", []), ("pack", []),
]  # fmt: skip
"""With what makes each argument."""


def of_tensor(x, name, arguments):
    if name == "index":
        return x[arguments[0]]
    return x.T if name == "T" else getattr(x, name)(*arguments)


def of_array(x, name, arguments):
    """What NumPy's function of the name makes; it has none of some names."""
    if name == "pack":
        return x
    return getattr(np, name)(x, *arguments) if hasattr(np, name) else of_tensor(x, name, arguments)


def odd_arguments(choices, name, count):
    """A pair of values for two arguments; of anything but a pair, two of it."""
    value = odd_index(choices) if name == "index" else hostile.value(choices)
    is_pair = count == 2 and type(value) is tuple and len(value) == 2
    return value if is_pair else [value] * count


def compared(tensor, array, name, arguments):
    """What both make of the same arguments, which are refused by both or by none."""
    expected = error = None
    try:
        expected = np.asarray(of_array(array, name, arguments), array.dtype)
    except Exception as refusal:
        error = refusal
    try:
        result = of_tensor(tensor, name, arguments)
    except Exception as refusal:
        if error is None and not any(text in str(refusal) for text in STRICTER):
            raise target.WrongResultError(f"{refusal}; NumPy makes {expected!r}") from refusal
        raise
    if error is not None:
        raise target.WrongResultError(f"made {result}, NumPy says: {error}")
    try:
        equal(result, expected)
    except AssertionError as difference:
        text = f"{name} {arguments!r} of {array!r}: got {result!r}, must be {expected!r}"
        raise target.WrongResultError(text) from difference
    return result, expected


class Target(target.Target):
    # Python's own words for indices, iteration and numbers; NumPy's for types.
    refusals = (*target.Target.refusals, IndexError, TypeError)

    def __init__(self):
        self.devices = [target.opened(), target.opened(staged=True)]

    def check(self, data):
        choices = Choices(data)
        whole = array(choices)
        tensor, wanted = choices.pick(self.devices).tensor(whole), whole
        for _ in range(1 + choices.below(4)):
            name, makers = choices.pick(METHODS)
            if choices.one_in(6):
                of_tensor(tensor, name, odd_arguments(choices, name, len(makers))).numpy()
                return
            tensor, wanted = compared(tensor, wanted, name, [make(choices) for make in makers])
