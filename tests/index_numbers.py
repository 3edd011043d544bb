"""Numbers for index tensors, and the places that they select, as NumPy counts them."""

import numpy as np


def any_numbers(random, sizes, n, dtype):
    """Indices of which most are among ``n`` places, counted from either end."""
    inside = random.integers(-n if np.dtype(dtype).kind == "i" else 0, n, sizes)
    beyond = random.choice([n, -n - 1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)], sizes)
    return np.where(random.random(sizes) < 0.8, inside, beyond)


def distinct_numbers(random, sizes, axis, n, dtype):
    """Indices of which none selects a place twice along an axis; some are outside."""
    whole = (*sizes[:axis], n, *sizes[axis + 1 :])
    numbers = np.argsort(random.random(whole), axis).take(range(sizes[axis]), axis)
    return from_either_end(random, numbers, n, dtype)


def distinct_tuples(random, count, sizes, dtype):
    """Index tuples of which no two select the same place; some are outside."""
    chosen = random.permutation(int(np.prod(sizes)))[:count]
    columns = zip(np.unravel_index(chosen, sizes), sizes, strict=True)
    return np.stack([from_either_end(random, column, n, dtype) for column, n in columns], -1)


def from_either_end(random, numbers, n, dtype):
    """The same places, some counted from the end where the data type has a sign, some outside."""
    signed = np.dtype(dtype).kind == "i"
    numbers = numbers - n * (random.random(numbers.shape) < 0.4 * signed)
    return np.where(random.random(numbers.shape) < 0.1, n, numbers)


def wrapped(numbers, n):
    """Indices counted from the start: -1 or ``n`` where they are outside."""
    if numbers.dtype.kind == "u":
        numbers = np.minimum(numbers.astype(np.uint64), np.uint64(n))
    numbers = np.clip(numbers.astype(np.int64), -n - 1, n)
    return np.where(numbers < 0, numbers + n, numbers)


def clamped(numbers, n):
    """Indices counted from the start, the nearest place for those that are outside."""
    return np.clip(wrapped(numbers, n), 0, n - 1)
