"""The LRU cache of movements and specialised models: whole after anything that comes in between."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from vkops.tensors.memo import Memo


class Value(int):
    """A value whose hash, equality and size can run code, as a signal handler can at any moment."""

    interrupt = staticmethod(lambda: None)

    def __hash__(self):
        Value.interrupt()
        return int(self) % 5

    def __eq__(self, other):
        Value.interrupt()
        return int(self) == int(other)


def size(value):
    Value.interrupt()
    return 1 + int(value) % 3


@pytest.fixture
def memo():
    yield Memo(12, size)
    Value.interrupt = staticmethod(lambda: None)


def check(memo):
    values = memo.values()
    assert sum(1 + int(value) % 3 for value in values) <= 12
    assert memo.get(Value(1), lambda: Value(1)) == 1
    assert memo.get(Value(1), lambda: pytest.fail("it was kept")) == 1


def test_the_values_used_last_are_kept(memo):
    made = []
    for number in [0, 3, 6, 9, 0, 12, 15, 0, 3]:
        memo.get(number, lambda number=number: made.append(number) or number)
    assert made == [0, 3, 6, 9, 12, 15]


def test_a_value_that_is_too_large_is_not_kept():
    memo = Memo(2, lambda value: value)
    assert [memo.get(3, lambda: 3), memo.values()] == [3, []]


def test_re_entry_at_every_moment(memo):
    random, depth = Random(0), [0]

    def enter():
        if depth[0] < 3 and random.random() < 0.1:
            depth[0] += 1
            number = random.randrange(20)
            assert memo.get(Value(number), lambda: Value(number)) == number
            depth[0] -= 1

    Value.interrupt = staticmethod(enter)
    for _ in range(500):
        number = random.randrange(20)
        assert memo.get(Value(number), lambda number=number: Value(number)) == number
    Value.interrupt = staticmethod(lambda: None)
    check(memo)


def test_interrupts_at_every_moment(memo):
    random, came = Random(0), 0

    def interrupt():
        if random.random() < 0.1:
            raise KeyboardInterrupt

    for _ in range(2000):
        number = random.randrange(20)
        Value.interrupt = staticmethod(interrupt)
        try:
            assert memo.get(Value(number), lambda number=number: Value(number)) == number
        except KeyboardInterrupt:
            came += 1
        Value.interrupt = staticmethod(lambda: None)
        assert memo.get(Value(number), lambda number=number: Value(number)) == number
    check(memo)
    assert came > 200


def test_threads(memo):
    def work(seed):
        random = Random(seed)
        for _ in range(2000):
            number = random.randrange(20)
            assert memo.get(number, lambda number=number: number) == number

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    check(memo)
