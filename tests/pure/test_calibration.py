"""The measured costs of copies: how they are computed, chosen by, cached and described."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from vkops.gpu.adapters.adapter import DeviceInfo
from vkops.gpu.adapters.kompute import ImageLimits
from vkops.gpu.copies import calibration
from vkops.gpu.copies.copy_costs import COPY, UNMEASURED, CopyCosts, has_long_runs, on_cpu
from vkops.gpu.copies.region_copies import RegionCopy
from vkops.gpu.kernels.encoding import GPU
from vkops.plan import CopyPlan, Fill, Output, Read, Region, View
from vkops.plan.algebra import optimize
from vkops.plan.movements import concat, copy, split
from vkops.system import disk_cache

CARD = DeviceInfo(
    *(0, "Card", "DISCRETE_GPU", "driver 1", "1.3.0", "1.0.0", 1, 2),
    *(8 << 30, 16 << 30, False, 1 << 31, 32),
)
COSTS = CopyCosts(shader=0.004, unaligned=0.005, copy=0.003, region=900.0, command=4000.0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache, for this process and on disk."""
    monkeypatch.setenv("VKOPS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(calibration, "_in_process", {})
    return tmp_path / "copy-costs"


# -- measuring -------------------------------------------------------------------------------------


class Shader:
    """Stands for an encoded plan and for its dispatch."""

    def __init__(self, plan, _tuning):
        (output,) = plan.outputs
        (region,) = output.regions
        self.nbytes = output.nbytes
        self.aligned = region.source_view.offset % 16 == 0

    def bind(self, _inputs, _outputs):
        return [self]


def device_with(costs, dispatch=3000.0, noise=()):
    """A device that takes exactly so long; ``noise`` is added to the times, one after the other."""
    more = iter(noise)

    def run(work):
        if isinstance(work, RegionCopy):
            count, nbytes = len(work.regions), int(work.regions[:, 2].sum())
            time = costs.command + costs.region * (count - 1) + costs.copy * nbytes
        else:
            time = dispatch + (costs.shader if work.aligned else costs.unaligned) * work.nbytes
        return time + next(more, 0.0)

    return run


def measured(run, buffer="a buffer"):
    return calibration.measure(run, SimpleNamespace(buffer=buffer), GPU)


@pytest.mark.parametrize(
    "costs",
    [
        COSTS,
        CopyCosts(shader=0.0005, unaligned=0.001, copy=0.0006, region=2000.0, command=6000.0),
        CopyCosts(shader=0.2, unaligned=0.5, copy=0.07, region=350.0, command=20e3),
    ],
    ids=["card", "fast", "slow"],
)
def test_costs_are_those_of_the_device(monkeypatch, costs):
    """A region's includes its few bytes."""
    monkeypatch.setattr(calibration, "EncodedPlan", Shader)
    found = measured(device_with(costs, noise=[1e6, 2e6, 3e6]))
    for name in ("shader", "unaligned", "copy", "command"):
        assert getattr(found, name) == pytest.approx(getattr(costs, name), rel=0.01), name
    region = costs.region + costs.copy * calibration.REGION_BYTES
    assert found.region == pytest.approx(region, rel=0.01)


def test_regions_are_within_the_memory_and_disjoint(monkeypatch):
    monkeypatch.setattr(calibration, "EncodedPlan", Shader)
    half = calibration.HEAP_BYTES // 2

    def run(work):
        if isinstance(work, RegionCopy):
            sources, targets, nbytes = work.regions.astype(int).T
            assert (sources[1:] >= (sources + nbytes)[:-1]).all()
            assert (sources + nbytes).max() <= half
            assert (targets - sources == half).all()
        return 1.0

    measured(run)


def test_of_times_that_make_no_sense_nothing_follows(monkeypatch):
    """All takes equally long, as with timestamps that hardly ever advance."""
    monkeypatch.setattr(calibration, "EncodedPlan", Shader)
    found = measured(lambda _work: 0.0)
    assert found == UNMEASURED
    assert not found.can_save(1 << 40)


def test_where_no_buffer_is_possible_shaders_copy(monkeypatch):
    assert measured(lambda _work: pytest.fail("nothing is to be run"), buffer=None) == UNMEASURED


# -- choosing --------------------------------------------------------------------------------------


def rows(count, nbytes, size=16):
    """A plan that copies ``count`` rows of ``nbytes`` bytes to a packed output."""
    width = nbytes // size
    target = View.packed((count, width))
    source = View((count, width), (2 * width, 1))
    output = Output(count * nbytes, (copy(source, target),))
    return CopyPlan(size, (2 * count * nbytes,), (output,))


@pytest.mark.parametrize(
    ("count", "nbytes", "by_copies"),
    [(1, 64 << 20, True), (4, 16 << 20, True), (16384, 4096, False), (1 << 20, 16, False)],
)
def test_few_large_regions_are_copied_and_many_small_ones_are_not(count, nbytes, by_copies):
    chosen, saved = COSTS.choose(rows(count, nbytes))
    assert bool(chosen) == by_copies
    assert (saved > 0) == by_copies


def test_elements_that_are_no_vectors_have_costs_of_their_own():
    count, nbytes = 16, 1 << 21
    saved = {size: COSTS.choose(rows(count, nbytes, size))[1] for size in (16, 1)}
    moved = count * nbytes
    assert saved[16] == pytest.approx(moved * 0.001 - count * 900)
    assert saved[1] == pytest.approx(moved * 0.002 - count * 900)


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
    return optimize(CopyPlan(1, tuple(inputs), tuple(outputs)))


@pytest.mark.parametrize(
    ("nbytes", "count", "joined", "mesa_22", "mesa_25"),
    [
        (16, 16, False, True, False),  # vectors
        (64, 2, False, True, False),
        (128, 2, False, True, True),
        (1008, 2, False, True, False),  # not in rows of the image
        (4096, 4, True, True, True),
        (21, 3, False, False, False),  # no vectors
        (34, 3, False, False, False),
        (100, 5, True, True, True),  # joined
        (170, 3, False, True, True),  # far apart
    ],
)
def test_rows_that_two_threads_copy_by_images(nbytes, count, joined, mesa_22, mesa_25):
    """As measured: see "Copies with regions and by images" in docs/performance.md."""
    plan = columns(nbytes, count, joined)
    for int64, expected in ((False, mesa_22), (True, mesa_25)):
        costs = replace(on_cpu(2, int64=int64), images=ImageLimits(alignment=64, side=16384))
        chosen, _ = costs.choose(plan)
        assert bool(chosen) == expected, int64
        assert all(found.rectangles for found in chosen.values())


def test_many_threads_leave_all_to_shaders():
    for int64 in (False, True):
        costs = replace(on_cpu(16, int64=int64), images=ImageLimits(alignment=64, side=16384))
        assert costs.choose(columns(4096, 4, joined=False)) == ({}, 0.0)
        assert costs.choose(rows(1, 64 << 20)) == ({}, 0.0)


def test_measured_costs_choose_no_images():
    (region,) = (plan := rows(4096, 64)).outputs[0].regions
    found = replace(COSTS, shader=1e9).estimate(region, plan, 0)
    assert (found.copies, found.rectangles) == (4096, None)


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        (rows(1, 1 << 20), True),
        (rows(1, 1 << 19), False),
        (rows(1 << 10, 1 << 10), True),
        (rows(1 << 16, 16), False),
        (rows(1 << 10, 1 << 10, size=1), True),
        (
            CopyPlan(4, (), (Output(1 << 20, (Region(View.packed((1 << 18,)), Fill(bytes(4))),)),)),
            True,
        ),
    ],
)
def test_plans_for_which_costs_are_measured(plan, found):
    assert has_long_runs(plan) == found


# -- the cache -------------------------------------------------------------------------------------


def costs_of(info, answers):
    return calibration.costs_of(info, lambda: answers.pop(0))


def test_costs_are_measured_once_for_an_adapter_and_its_driver(monkeypatch, folder):
    other = replace(COSTS, copy=0.001)
    answers = [COSTS, other]
    assert costs_of(CARD, answers) == COSTS
    assert costs_of(replace(CARD, index=3), answers) == COSTS
    assert len([*folder.iterdir()]) == 1
    monkeypatch.setattr(calibration, "_in_process", {})  # another process
    assert costs_of(CARD, answers) == COSTS
    for change in ({"driver_version": "2.0.0"}, {"name": "Board"}, {"unified_memory": True}):
        assert costs_of(replace(CARD, **change), [other]) == other
    assert answers == [other]


def test_costs_under_the_validation_layer_are_others(monkeypatch):
    costs_of(CARD, [COSTS])
    monkeypatch.setenv("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
    assert calibration.known_costs(CARD) is None


@pytest.mark.parametrize(
    "entry",
    [
        *(b"", b"garbage", b"\xff", b"null", b"5", b"{}", b"[1, 2, 3, 4]"),
        *(b"[1, 2, 3, 4, 5, 6]", b"[1, 2, 3, 4, null]", b"[1, 2, 3, 4, [5]]", b"[1, 2, 3, 4, -5]"),
        *(b"[1, 2, 3, 4, NaN]", b"[1, 2, 3, 4, 1e999]", b"[1, 2, 3, 4, 1%s]" % (b"0" * 400)),
        b"[" * 3000,
    ],
)
def test_an_entry_that_makes_no_sense_is_measured_again_and_replaced(monkeypatch, folder, entry):
    calibration._on_disk.store(calibration._key(CARD), entry)
    assert calibration.known_costs(CARD) is None
    assert costs_of(CARD, [COSTS]) == COSTS
    monkeypatch.setattr(calibration, "_in_process", {})
    assert calibration.known_costs(CARD) == COSTS


@pytest.mark.parametrize("damage", [lambda e: e[:-1], lambda e: e[:40], lambda e: bytes(len(e))])
def test_a_damaged_entry_is_measured_again(monkeypatch, folder, damage):
    costs_of(CARD, [COSTS])
    (path,) = folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    monkeypatch.setattr(calibration, "_in_process", {})
    assert costs_of(CARD, [replace(COSTS, copy=1.0)]).copy == 1.0


@pytest.mark.posix("modes of folders", tests_only=True)
def test_a_folder_that_others_can_change_is_not_used(monkeypatch, folder, caplog):
    disk_cache._warn_once.cache_clear()
    costs_of(CARD, [COSTS])
    folder.chmod(0o777)
    monkeypatch.setattr(calibration, "_in_process", {})
    assert costs_of(CARD, [replace(COSTS, copy=1.0)]).copy == 1.0
    assert [record.message for record in caplog.records] == [
        f"the cache of copy costs {str(folder)!r} is not used: other users may write to it"
    ]


# -- in words --------------------------------------------------------------------------------------


def test_costs_in_words(monkeypatch):
    monkeypatch.setattr(calibration, "native_state", lambda: "active")
    monkeypatch.setattr("vkops.gpu.adapters.adapter.threads", lambda: 2)
    monkeypatch.delenv(COPY, raising=False)
    words = calibration.costs_in_words
    assert words(CARD) == (
        "not measured yet: the first large plan with long contiguous runs does that, if the device "
        "has timestamps"
    )
    costs_of(CARD, [COSTS])
    assert words(CARD) == (
        "0.004 ns per byte for shaders (0.005 if not aligned to 16 bytes); for copies 0.003 ns per "
        "byte, 900 ns per region and 4,000 ns per command (measured)"
    )
    costs_of(replace(CARD, name="Board"), [UNMEASURED])
    assert words(replace(CARD, name="Board")) == (
        "none, shaders copy everything: nothing could be measured"
    )
    assert words(replace(CARD, type="CPU")) == (
        "0.33 ns per byte for shaders (0.3 if not aligned to 16 bytes, 0.6 if scattered, too); for "
        "copies 0.0714 ns per byte, 350 ns per region and 20,000 ns per command (constants of CPU "
        "drivers, for 2 threads)"
    )
    monkeypatch.setenv(COPY, "shader")
    assert words(CARD) == "none: VKOPS_COPY=shader"
    monkeypatch.setenv(COPY, "auto")
    monkeypatch.setattr(calibration, "native_state", lambda: "switched off by VKOPS_NATIVE=0")
    assert words(CARD) == (
        "none, shaders copy everything: native operations switched off by VKOPS_NATIVE=0"
    )
