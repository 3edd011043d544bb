"""Random litmus tests: messages that are passed by flags, most of them with something that is missing."""

from __future__ import annotations

from random import Random

from litmus.program import DEVICE, SUBGROUP, WORKGROUP, Instruction, Invocation, Test

_PLACES = (
    [(0, 0), (0, 0), (1, 0)],
    [(0, 0), (1, 0), (0, 1)],
    [(0, 0), (0, 1), (0, 2)],
    [(0, 0), (0, 1), (1, 1)],
)
"""The subgroups and workgroups of invocations."""


def generated(random: Random, name: str) -> Test:
    """Return a test of two or three invocations."""
    test = Test(name)
    count = random.choice((2, 2, 3))
    classes = random.choice(((0,), (0, 1)))
    storage = {variable: random.choice(classes) for variable in "xyf"}
    for subgroup, workgroup in random.choice(_PLACES)[:count]:
        invocation = Invocation(subgroup, workgroup)
        for _ in range(random.randint(2, 4)):
            invocation.code.append(_instruction(random, storage, classes, len(invocation.code)))
        test.invocations.append(invocation)
    if random.random() < 0.2:
        _wait_together(random, test, classes)
    return test


def _instruction(
    random: Random, storage: dict[str, int], classes: tuple[int, ...], number: int
) -> Instruction:
    kind = random.choices(("plain", "atomic", "fence"), (4, 5, 2))[0]
    common = {"scope": random.choices((DEVICE, WORKGROUP, SUBGROUP), (5, 3, 1))[0]}
    if kind == "plain":
        how = random.choices(("coherent", "public", "private"), (5, 4, 1))[0]
        return Instruction(
            random.choice(("load", "store")), variable := random.choice("xxy"), storage[variable],
            is_coherent=how == "coherent", is_private=how == "private", register=f"r{number}",
            value=number + 1, **common,
        )  # fmt: skip
    does = "fence" if kind == "fence" else random.choice(("load", "store", "change"))
    orders = {
        "fence": ((1, 0), (0, 1), (1, 1)), "load": ((1, 0), (1, 0), (0, 0)),
        "store": ((0, 1), (0, 1), (0, 0)), "change": ((1, 0), (0, 1), (1, 1), (0, 0)),
    }[does]  # fmt: skip
    acquires, releases = random.choice(orders)
    common |= _ordering(random, classes, bool(acquires), bool(releases))
    if kind == "fence":
        return Instruction("fence", **common)
    variable = random.choice("fffx")
    return Instruction(
        does,
        variable,
        storage[variable],
        is_atomic=True,
        register=f"r{number}",
        value=number + 1,
        **common,
    )


def _ordering(
    random: Random, classes: tuple[int, ...], acquires: bool, releases: bool
) -> dict[str, object]:
    if not (acquires or releases):
        return {}
    semantics = classes if random.random() < 0.7 else (random.choice(classes),)
    return {
        "acquires": acquires, "releases": releases, "semantics": frozenset(semantics),
        "makes_available": releases and random.random() < 0.6,
        "makes_visible": acquires and random.random() < 0.6,
    }  # fmt: skip


def _wait_together(random: Random, test: Test, classes: tuple[int, ...]) -> None:
    """Let all invocations of a workgroup wait in a control barrier."""
    workgroup = random.choice(test.invocations).workgroup
    ordering = _ordering(
        random, classes, *random.choice(((True, True), (True, True), (False, False)))
    )
    barrier = Instruction(
        "barrier", scope=random.choice((DEVICE, WORKGROUP)), instance="0", **ordering
    )
    for invocation in test.invocations:
        if invocation.workgroup == workgroup:
            invocation.code.insert(random.randint(0, len(invocation.code)), barrier)
