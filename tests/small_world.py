"""All operators on small tensors, one by one: what is true there is hardly false elsewhere.

Strides are all that reach a second element of the largest tensor (1 to n - 1 for n elements). Those
beyond give the first element alone, whatever they are, and have a world of their own.

Run as a program, this file runs all cases of an operator and prints how many: ADAPTER OPERATOR.
"""

import sys
from functools import partial
from itertools import chain, islice, product
from random import Random

import operator_table
from operator_cases import KINDS, Runner, join, packed, slice1, slice_, split

import vkops

SAMPLES = 20_000  # operators of ranks 4 to 8


def cuts():
    """(sizes, axis, parts) of every shape up to rank 4 with at most 4 elements a dimension."""
    for rank in range(1, 5):
        for sizes in shapes(rank, 4):
            for axis in range(rank):
                for parts in compositions(sizes[axis]):
                    yield sizes, axis, [(*sizes[:axis], n, *sizes[axis + 1 :]) for n in parts]


def shapes(rank, most):
    return product(range(1, most + 1), repeat=rank)


def compositions(n):
    """Every way to write n as a sum, the order of which counts."""
    if n == 0:
        yield ()
    for first in range(1, n + 1):
        for rest in compositions(n - first):
            yield (first, *rest)


def worlds(per_dimension, signs, beyond):
    """(sizes, per dimension what a slice does there), up to rank 2 of 5 and rank 3 of 3.

    Up to rank 2 of 3 once more, with strides that reach no second element: the size of the
    dimension, and those in ``beyond``.
    """
    within = {n: [s * sign for s in range(1, max(2, n)) for sign in signs] for n in range(1, 6)}
    others = {n: [*(n * sign for sign in signs), *beyond] for n in range(1, 4)}
    for known, ranks in ((within, {1: 5, 2: 5, 3: 3}), (others, {1: 3, 2: 3})):
        for sizes in chain.from_iterable(shapes(*each) for each in ranks.items()):
            for steps in product(*(per_dimension(n, known[n]) for n in sizes)):
                yield sizes, steps


def slice_steps(n, strides):
    """(copied elements, offset, stride)."""
    for offset, stride in product(range(n), strides):
        for size in range(1, 2 + (n - 1 - offset) // stride):
            yield size, offset, stride


def slice1_steps(n, strides):
    """(copied elements, the window's offset, its size, signed stride)."""
    for offset, stride in product(range(n), strides):
        for window in range(1, n - offset + 1):
            for size in range(1, 2 + (window - 1) // abs(stride)):
                yield size, offset, window, stride


# -- from numbers to operators --------------------------------------------------------------------


def splits(kind, sizes, axis, parts):
    return split(packed(kind, sizes), [packed(kind, part) for part in parts], axis)


def joins(kind, sizes, axis, parts):
    return join([packed(kind, part) for part in parts], packed(kind, sizes), axis)


def slices(make, kind, sizes, steps):
    counts, *attributes = zip(*steps, strict=True)
    return make(packed(kind, sizes), packed(kind, counts), *attributes)


WORLDS = {
    "SPLIT": (splits, cuts),
    "JOIN": (joins, cuts),
    "SLICE": (partial(slices, slice_), lambda: worlds(slice_steps, [1], [2**31 - 1])),
    "SLICE1": (
        partial(slices, slice1),
        lambda: worlds(slice1_steps, [1, -1], [2**31 - 1, -(2**31)]),
    ),
}


def cases(operator):
    """Every case of an operator, in all element sizes; its types take turns."""
    if operator == "RANKS_4_TO_8":
        for number in range(SAMPLES):
            yield lambda number=number: operator_table.random_case(Random(number), range(4, 9))
        return
    make, world = WORLDS[operator]
    for number, numbers in enumerate(world()):
        for kinds in KINDS.values():
            kind = kinds[number % len(kinds)]
            yield lambda kind=kind, numbers=numbers: make(kind, *numbers)


def prove(device, operator, every=1):
    """Run every case, or one in so many; how many there were."""
    runner = Runner(device)
    for case in islice(cases(operator), 0, None, every):
        runner.run(case())
    runner.compare()
    return runner.count


if __name__ == "__main__":
    with vkops.Device(int(sys.argv[1])) as device:
        print(prove(device, sys.argv[2]))
