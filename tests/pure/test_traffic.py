"""The memory traffic of plans: what is said about it, and whether it has become worse."""

import json
import tracemalloc
from pathlib import Path

import figures
import numpy as np
import pytest
from kernel_plans import window

from vkops.bench import WORKLOADS, traffic
from vkops.debug import traffic as counts
from vkops.debug.traffic import MAX_BYTES, IndexValues, plan_traffic
from vkops.explain.traffic import ratio_text, wasteful
from vkops.gpu.kernels.encoding import GPU
from vkops.plan import CopyPlan, Output, View
from vkops.plan.indexing import IndexTensor, gather_nd
from vkops.plan.movements import copy
from vkops.plan.region import Read

MIB = 1 << 20


def one(plan, **options):
    (part,) = plan_traffic(plan, GPU, **options)
    return part


def test_a_copy_moves_what_it_must():
    part = one(window(4, [MIB], [1]))
    assert (part.kernel, part.must_load, part.must_store) == ("copy_16", 4 * MIB, 4 * MIB)
    for kind in (part.traffic.loads, part.traffic.stores):
        assert {*kind.segments.values()} == {4 * MIB}
        assert kind.memory == 4 * MIB
    assert [*wasteful(part)] == []


def test_columns_of_a_matrix():
    """Elements lie 4,000 bytes apart: each is in a segment of its own."""
    part = one(window(4, [1000, 1024], [1, 1001]), cache=1 << 10)
    assert part.traffic.loads.segments[32, 32] == 8 * part.must_load
    assert part.traffic.loads.segments[64, 128] == 32 * part.must_load
    assert part.traffic.stores.segments[64, 128] < 1.01 * part.must_store
    (sentence,) = wasteful(part)
    assert sentence == (
        "each load of 64 invocations touches 64.0 segments of 128 bytes, and 2 would hold its "
        "bytes: neighbouring invocations read 4,004 bytes apart"
    )


def test_a_cache_keeps_what_neighbours_read():
    plan = window(4, [1000, 1000], [1, 1001])
    moved = [one(plan, cache=cache).traffic.loads.memory for cache in (1, 1 << 20, 1 << 30)]
    assert moved == sorted(moved, reverse=True)
    assert moved[0] == 32 * 4_000_000
    assert moved[-1] < 1.01 * 4_000_000


def test_large_plans_are_estimated(monkeypatch):
    plan = window(4, [8 * MIB], [1])
    exact = one(plan).traffic
    monkeypatch.setattr(counts, "MAX_GROUPS_COUNTED", 1024)
    estimate = one(plan).traffic
    assert (exact.is_estimate, estimate.is_estimate) == (False, True)
    assert estimate.loads.segments == exact.loads.segments


def test_tensors_of_two_gibibytes_need_no_memory():
    tracemalloc.start()
    (part,) = plan_traffic(window(4, [1 << 28], [1]), GPU)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert part.traffic.is_estimate
    assert part.traffic.loads.segments[64, 128] == part.must_load == 1 << 30
    assert peak < 200 << 20


@pytest.mark.parametrize("dtype", ["i4", "u8"])
def test_unknown_indices_are_random_ones_inside_their_terms(dtype):
    words, sizes = int(dtype[1]) // 4, (5, 300)
    indices = IndexTensor(1, dtype, View.packed((1000, 2)))
    region = gather_nd(Read(0, View.packed(sizes)), indices, View.packed((1000,)), 0)
    plan = CopyPlan(4, (6000, 8000 * words), (Output(4000, (region,)),))
    result = IndexValues(plan, [0, 6144], {}).at(6144 // 4 + np.arange(2000 * words))
    numbers = result.reshape(1000, 2, words)
    assert not numbers[..., 1:].any()
    assert len({*numbers[:, 1, 0].tolist()}) > 250
    assert numbers[..., 0].max(0).tolist() == [4, 299]


def test_tensors_that_no_device_has_in_one_buffer():
    view = View((MAX_BYTES,), (1,))
    plan = CopyPlan(1, (MAX_BYTES,), (Output(MAX_BYTES, (copy(view, view),)),))
    assert plan_traffic(plan, GPU) == []


@pytest.mark.parametrize(
    ("nbytes", "must", "text"),
    [(9.994, 1, "9.99"), (99.9, 10, "9.99"), (995, 10, "99.5"), (999, 1, "999"), (1000, 1, ">999")],
)
def test_ratios(nbytes, must, text):
    assert ratio_text(nbytes, must) == text


def test_the_traffic_of_a_model(command):
    status, out, _ = command("explain", "examples/split.json", "--traffic")
    assert (status, "32/64/128 bytes" in out) == (0, True)
    assert "copy_4  loads" in out


def test_the_traffic_of_workloads(command):
    status, out, _ = command("bench", "W11", "W16", "--traffic", "--json")
    printed = json.loads(out)
    assert (status, [*printed]) == (0, ["W11", "W16"])
    (part,) = printed["W16"]
    assert part["stores"]["subgroups of 64"]["128"] == part["stores"]["must_move"] == 4 * MIB
    status, out, _ = command("bench", "W16", "--traffic")
    assert (status, "1.00/1.00/1.00" in out) == (0, True)
    *_, loads, _, _, _, work = out.splitlines()
    assert loads.startswith("W16      loads")
    assert work.split()[:2] == ["W16", "copy_16"]


def test_the_traffic_of_workloads_has_not_become_worse(monkeypatch):
    """Of the first workgroups of each; bytes moved for each byte that must move."""
    monkeypatch.setattr(counts, "MAX_GROUPS_COUNTED", 256)
    all_ratios = {}
    for name, parts in traffic.count(WORKLOADS, scale=1, cache=1 << 20):
        for number, part in enumerate(parts):
            for verb, kind, must in (
                ("loads", part.traffic.loads, part.must_load),
                ("stores", part.traffic.stores, part.must_store),
            ):
                ratios = {
                    f"{segment} bytes by {size}": round(moved / max(must, 1), 3)
                    for (size, segment), moved in kind.segments.items()
                }
                all_ratios.setdefault(f"{name} {number} {verb}", ratios)
    figures.check(Path(__file__).with_name("traffic.json"), all_ratios)


def test_a_figure_that_has_become_worse(tmp_path, monkeypatch):
    monkeypatch.delenv("VKOPS_WRITE_BASELINES", raising=False)
    path = tmp_path / "f.json"
    path.write_text('{"a": {"b": 100, "more": 100}}')
    figures.check(path, {"a": {"b": 105, "more": 96}}, ("more",))
    with pytest.raises(AssertionError, match=r"^worse by more than 5 %:\na b: 100 before, 106 now"):
        figures.check(path, {"a": {"b": 106, "more": 100}})
    with pytest.raises(AssertionError, match="a more: 100 before, 95 now"):
        figures.check(path, {"a": {"b": 100, "more": 95}}, ("more",))
    with pytest.raises(AssertionError, match="with VKOPS_WRITE_BASELINES"):
        figures.check(path, {"a": {"b": 100}})
