"""Arguments of functions with NumPy's names, valid and invalid ones."""

from hypothesis import strategies as st

axes = st.integers(-5, 5)
several = st.lists(axes, max_size=3).map(tuple) | axes
some = st.none() | several
cuts = st.integers(-1, 8) | st.lists(st.integers(-7, 7), max_size=4)
shapes = st.lists(st.integers(-1, 6), max_size=4).map(tuple)
diagonals = st.integers(-6, 6)


def broadcast(array):
    more = st.lists(st.sampled_from([0, 1, 2, 5]), max_size=3)
    same = st.tuples(*(st.sampled_from([n, 3] if n == 1 else [n]) for n in array.shape))
    shape = st.builds(lambda a, b: (*a, *b), more, same)
    return st.tuples(shape | shape.map(lambda sizes: sizes[1:]))


def repeats(array):
    def counts(axis):
        valid = axis is not None and -array.ndim <= axis < array.ndim
        n = array.shape[axis] if valid else array.size
        one = st.integers(0, 3)
        lists = st.lists(one, max_size=3) | st.lists(one, min_size=n, max_size=n)
        return st.tuples(one | lists if n <= 200 else one, st.just(axis))

    return (axes | st.none()).flatmap(counts)


def padding(array):
    widths = st.integers(0, 9) | st.integers(-1, 3)
    pairs = st.tuples(widths, widths)
    for_each = st.lists(pairs, min_size=array.ndim, max_size=array.ndim)
    width = widths | pairs | for_each | st.lists(st.tuples(widths), max_size=4)
    value = st.integers(0, 99) | st.tuples(st.integers(0, 99), st.integers(0, 99))
    modes = st.sampled_from(["edge", "reflect", "symmetric", "wrap"]).map(lambda m: (m, {}))
    constant = value.map(lambda v: ("constant", {"constant_values": v}))
    return st.builds(lambda width, mode: (width, *mode), width, constant | modes)


# Strategies of the arguments behind the array, or a function of the array that makes one of them all.
ARGUMENTS = {
    "array_split": [cuts, axes], "broadcast_to": broadcast, "diag": [diagonals],
    "diagflat": [diagonals], "diagonal": [diagonals, axes, axes], "dsplit": [cuts],
    "expand_dims": [several], "flip": [some], "fliplr": [], "flipud": [], "hsplit": [cuts],
    "moveaxis": [several, several], "pad": padding, "ravel": [st.sampled_from("CF")],
    "repeat": repeats, "rollaxis": [axes, axes], "rot90": [axes, st.tuples(axes, axes)],
    "split": [cuts, axes], "squeeze": [some], "swapaxes": [axes, axes],
    "tile": [st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=5)], "vsplit": [cuts],
    "reshape": lambda a: st.tuples(
        shapes | st.permutations([-1, *a.shape[1:]]), st.sampled_from("CF")
    ),
    "resize": [st.integers(-1, 20) | shapes],
    "roll": lambda a: st.tuples(
        st.integers(-9, 9) | st.lists(st.integers(-9, 9), max_size=3).map(tuple),
        some if a.ndim else axes | st.none(),  # NumPy fails where neither has anything
    ),
    "transpose": lambda a: st.tuples(st.permutations(range(a.ndim)) | several),
}  # fmt: skip
