"""The rule by which Vulkan's own copies are used instead of shaders."""

from dataclasses import replace

import numpy as np
import pytest

from vkops.gpu.adapters.adapter import DeviceInfo
from vkops.gpu.copies import rule
from vkops.gpu.copies.encoded import choose
from vkops.gpu.copies.rule import MESA_22, SHADERS, CopyRule, rule_for
from vkops.plan import CopyPlan, Fill, Output, Read, Region, View
from vkops.plan.algebra import optimize
from vkops.plan.execute import execute
from vkops.plan.movements import concat, copy, split


def rows(count, nbytes):
    """A plan that copies ``count`` rows of ``nbytes`` bytes to a packed output."""
    source, target = View((count, nbytes), (2 * nbytes, 1)), View.packed((count, nbytes))
    return CopyPlan(1, (2 * count * nbytes,), (Output(count * nbytes, (copy(source, target),)),))


def columns(nbytes, count, joined):
    """A plan that splits rows of 16 MiB into ``count`` columns of so many bytes, or joins them."""
    rows = (1 << 24) // (nbytes * count)
    part, whole = View.packed((rows, nbytes)), View.packed((rows, nbytes * count))
    if joined:
        regions = concat([Read(number, part) for number in range(count)], whole, 1)
        outputs = [Output(rows * nbytes * count, tuple(regions))]
        inputs = [rows * nbytes] * count
    else:
        regions = split(Read(0, whole), [part] * count, 1)
        outputs = [Output(rows * nbytes, (region,)) for region in regions]
        inputs = [rows * nbytes * count]
    return CopyPlan(1, tuple(inputs), tuple(outputs))


def is_copied(plan, chosen):
    """Whether copies execute a plan, or else shaders; never both."""
    copies, rest = choose(optimize(plan), chosen)
    assert (copies is None) != (rest is None)
    return copies is not None


@pytest.mark.parametrize(
    ("plan", "is_on_cpu"),
    [
        (rows(1, 64 << 20), True),
        (rows(4, 64 << 10), True),
        (rows(64, 4 << 10), True),
        (rows(64, (4 << 10) - 1), False),
        (rows(1 << 20, 16), False),
        (columns(4096, 4, joined=False), True),
        (columns(2048, 4, joined=True), False),
    ],
)
def test_runs(plan, is_on_cpu):
    assert is_copied(plan, MESA_22) == is_on_cpu
    assert not is_copied(plan, SHADERS)


@pytest.mark.parametrize(("words", "expected"), [(1 << 10, True), ((1 << 10) - 1, False)])
def test_constants(words, expected):
    fill = Region(View.packed((words,)), Fill(b"abcd"))
    assert is_copied(CopyPlan(4, (), (Output(4 * words, (fill,)),)), MESA_22) == expected


@pytest.mark.parametrize(("mebibytes", "divided"), [(2, True), (1, False)])
def test_a_plan_is_divided_if_copies_move_much(mebibytes, divided):
    """The plan of the rest has all outputs, with what is left of their regions."""
    n = mebibytes << 20
    run = copy(View.packed((n,)), View.packed((n,)))
    strided = copy(View((500,), (3,)), View((500,), (1,), n))
    backwards = copy(View((999,), (-1,), 998), View.packed((999,)))
    plan = CopyPlan(
        1, (n,), (Output(n, (run,)), Output(n + 500, (run, strided)), Output(1000, (backwards,)))
    )
    plan = optimize(plan)
    copies, rest = choose(plan, CopyRule(64 << 10))
    assert (copies is not None) == divided
    if copies is None:
        assert rest is plan
        return
    assert [len(output.regions) for output in rest.outputs] == [0, 1, 1]
    data = np.random.default_rng(1).integers(0, 256, n, np.uint8)
    expected, left = (execute(each, [data]) for each in (plan, rest))
    np.testing.assert_array_equal(left[1][n:], expected[1][n:])
    np.testing.assert_array_equal(left[2], expected[2])


def test_a_plan_with_too_many_copies_is_left_to_shaders():
    plan = columns(4096, 4, joined=False)
    assert is_copied(plan, replace(MESA_22, max_copies=4096))
    assert not is_copied(plan, replace(MESA_22, max_copies=4095))


INFO = DeviceInfo(**dict.fromkeys(DeviceInfo.__dataclass_fields__, 0))


@pytest.mark.parametrize(
    ("kind", "driver", "threads", "expected"),
    [
        ("DISCRETE_GPU", "NVIDIA 550", "64", SHADERS),
        ("INTEGRATED_GPU", "Mesa 25.0.7", "2", SHADERS),
        ("CPU", "Mesa 22.3.6", "3", MESA_22),
        ("CPU", "Mesa 22.3.6", "4", SHADERS),
        ("CPU", "Mesa 25.0.7", "2", SHADERS),
        ("CPU", "SwiftShader driver 5.0.0", "2", MESA_22),
    ],
)
def test_the_rule_of_an_adapter(monkeypatch, kind, driver, threads, expected):
    monkeypatch.delenv(rule.COPY, raising=False)
    monkeypatch.setenv("LP_NUM_THREADS", threads)
    info = replace(INFO, type=kind, driver=driver)
    assert rule_for(info) == expected
    for setting, always in (("shader", SHADERS), ("regions", rule.REGIONS)):
        monkeypatch.setenv(rule.COPY, setting)
        assert rule_for(info) == always
        assert rule_for(info, validated=True).max_copies == rule.MAX_VALIDATED_COPIES
