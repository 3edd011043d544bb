"""Tensor's methods and indexing with any arguments, against NumPy's array."""

import ml_dtypes
import numpy as np
from arrays import NAMES, numbered

from fuzz import hostile, target
from fuzz.choices import Choices

TYPES = (*NAMES, ml_dtypes.bfloat16)


def array(choices):
    """A small array of any type, whose elements differ where they can."""
    shape = tuple(choices.some(4, lambda: choices.below(5)))
    return numbered(shape, choices.pick(TYPES))


def same(tensor, wanted, dtype):
    """Whether a tensor is an array; scalars of NumPy's forget their byte order."""
    wanted = np.asarray(wanted, dtype)
    got = tensor.numpy()
    return (
        tensor.dtype == dtype
        and got.shape == wanted.shape
        and np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(wanted).tobytes()
    )


STRICTER = (
    "RESHAPE shape: ",  # -2 is a size to NumPy where there are no elements
    "must be at least 0 [ARRAY-06]",  # so is -1 of no elements
    "which is outside of axis",  # NumPy does not look at indices where the result is empty
    "must be at least 2 [ARRAY-13]",  # NumPy makes a square matrix of a vector in tril and triu
)
"""How vkops refuses what NumPy takes."""


def compared(ours, theirs, plain):
    """What both make of the same arguments; plain ones are refused by both or by none.

    vkops may refuse what NumPy takes only where the arguments are odd.
    """
    wanted = error = None
    if plain:
        try:
            wanted = theirs()
        except Exception as refusal:
            error = refusal
    try:
        made = ours()
    except Exception as refusal:
        if plain and error is None and not any(t in str(refusal) for t in STRICTER):
            raise target.WrongResultError(f"{refusal}; NumPy makes {wanted!r}") from refusal
        raise
    if error is not None:
        raise target.WrongResultError(f"made {made}, NumPy says: {error}")
    return made, wanted


# -- arguments -------------------------------------------------------------------------------------


def small(choices):
    return choices.below(7) - 3


def some(choices):
    return tuple(choices.some(4, lambda: small(choices)))


def _part(choices):
    """Part of an index."""
    kind = choices.below(9)
    if kind == 8:
        return choices.some(3, lambda: small(choices))
    if kind < 3:
        return small(choices)
    if kind == 3:
        return None
    if kind == 4:
        return ...
    if kind == 5:
        return np.int64(small(choices))
    ends = [None if choices.one_in(3) else small(choices) for _ in range(3)]
    return slice(*ends)


def index(choices):
    return tuple(choices.some(4, lambda: _part(choices))) if choices.one_in(2) else _part(choices)


def odd_index(choices):
    kind = choices.below(3)
    if kind == 0:
        return slice(hostile.value(choices), hostile.value(choices), hostile.value(choices))
    return hostile.value(choices) if kind == 1 else (index(choices), hostile.value(choices))


def _pair(value):
    """Two arguments; of anything but a pair, two of it."""
    return value if type(value) is tuple and len(value) == 2 else (value, value)


METHODS = {
    "index": (index, *[lambda x, i: x[i]] * 2),
    "transpose": (some, *[lambda x, a: x.transpose(a)] * 2),
    "reshape": (some, *[lambda x, s: x.reshape(s)] * 2),
    "broadcast_to": (some, lambda x, s: x.broadcast_to(s), np.broadcast_to),
    "flip": (some, lambda x, a: x.flip(a), np.flip),
    "flip one": (small, lambda x, a: x.flip(a), np.flip),
    "expand_dims": (some, lambda x, a: x.expand_dims(a), np.expand_dims),
    "squeeze": (some, lambda x, a: x.squeeze(a), np.squeeze),
    "squeeze one": (small, lambda x, a: x.squeeze(a), np.squeeze),
    "swapaxes": (lambda c: (small(c), small(c)), *[lambda x, a: x.swapaxes(*_pair(a))] * 2),
    "moveaxis": (
        lambda c: (some(c), some(c)),
        lambda x, a: x.moveaxis(*_pair(a)),
        lambda x, a: np.moveaxis(x, *a),
    ),
    "rot90": (
        lambda c: (small(c), (small(c), small(c))),
        lambda x, a: x.rot90(*_pair(a)),
        lambda x, a: np.rot90(x, *a),
    ),
    "ravel": (lambda c: c.pick("CF"), *[lambda x, order: x.ravel(order)] * 2),
    "T": (lambda _: None, lambda x, _: x.T, lambda x, _: x.T),
    "copy": (lambda _: None, lambda x, _: x.copy(), lambda x, _: x),
    "pack": (lambda _: None, lambda x, _: x.pack(), lambda x, _: x),
}


class Target(target.Target):
    name = "tensors"
    share = 40
    # Python's own words for indices, iteration and numbers; NumPy's for types.
    refusals = (*target.Target.refusals, IndexError, TypeError)

    def __init__(self):
        self.devices = [target.opened(), target.opened(staged=True)]

    def check(self, data):
        choices = Choices(data)
        whole = array(choices)
        tensor, wanted = choices.pick(self.devices).tensor(whole), whole
        for _ in range(1 + choices.below(4)):
            name = choices.pick(list(METHODS))
            make, ours, theirs = METHODS[name]
            plain = not choices.one_in(6)
            if plain:
                given = make(choices)
            else:
                given = odd_index(choices) if name == "index" else hostile.value(choices)
            before = tensor, wanted
            tensor, wanted = compared(
                lambda t=tensor, g=given, o=ours: o(t, g),
                lambda a=wanted, g=given, t=theirs: np.asarray(t(a, g), whole.dtype),
                plain,
            )
            if not plain:
                tensor.numpy()
                return
            text = f"{name} {given!r} of {before[1]!r}: got {tensor!r}, must be {wanted!r}"
            target.require(same(tensor, wanted, whole.dtype), text)
