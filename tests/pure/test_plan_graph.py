"""Composition and fusion against running one thing after the other, on random regions."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instructions import instructions
from regions import make_region
from strategies import boxes, input_bytes

from vkops.plan import CopyPlan, Fill, Output, Pipeline, Progression, Read, Region, View, execute
from vkops.plan.algebra import coalesce, coalesce_region, narrow
from vkops.plan.compose import Writers
from vkops.plan.graph import ELEMENTS_PER_COST, SUBMISSION_COST, RegionGraph
from vkops.plan.indexing import IndexTensor, gather
from vkops.plan.movements import copy

STRIDES = [-24, -9, -7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 12, 24]


@st.composite
def tensors(draw, sources):
    """Regions that cover a packed tensor: boxes, each from one of the sources, or a constant.

    The targets' strides can be negative.
    """
    shape = tuple(draw(st.lists(st.integers(1, 8), min_size=1, max_size=4)))
    regions = []
    for box in boxes(draw, shape):
        sizes = tuple(end - start for start, end in box)
        target = View.packed(shape).window(
            tuple(start for start, _ in box), sizes, (1,) * len(sizes)
        )
        target = target.flip(tuple(draw(st.sets(st.sampled_from(range(len(sizes)))))))
        if draw(st.integers(0, 6)) == 0:
            fill = Fill(bytes([draw(st.integers(0, 255))]))
            regions.append(Region(target, fill))
            continue
        number = draw(st.sampled_from(sorted(sources)))
        view = draw(_box_of(sizes, sources[number]))
        regions.append(copy(view, target, number))
    return prod(shape), tuple(regions)


@st.composite
def _box_of(draw, sizes, elements):
    """A view of these sizes of so many elements."""
    strides, low, high = [], 0, 0
    for size in sizes:
        fitting = [stride for stride in STRIDES if high - low + (size - 1) * abs(stride) < elements]
        stride = draw(st.sampled_from(fitting))
        step = (size - 1) * stride
        strides.append(stride)
        low, high = low + min(0, step), high + max(0, step)
    return View(sizes, tuple(strides), draw(st.integers(-low, elements - 1 - high)))


def composed(writer, reader):
    """What a region reads of another one's source, as regions."""
    return tuple(Writers([coalesce_region(writer)]).compose(reader))


def test_reading_what_nothing_writes_is_refused():
    writer, reader = (
        make_region((4,), 0, (2,), (0, 0, (1,))),
        make_region((8,), 0, (1,), (0, 0, (1,))),
    )
    with pytest.raises(ValueError, match="reads 4 elements that nothing writes"):
        composed(writer, reader)


def test_writers_whose_dimensions_do_not_nest():
    # 0 2 4 and 3 5 7: no address has a row and a column.
    writer, reader = (
        make_region((2, 3), 0, (3, 2), (0, 0, (3, 1))),
        make_region((3,), 0, (1,), (0, 3, (2,))),
    )
    plan = CopyPlan(1, (6,), (Output(3, composed(writer, reader)),))
    (made,) = execute(plan, [np.arange(6, dtype=np.uint8)])
    assert made.tolist() == [3, 4, 5]


# -- graphs ----------------------------------------------------------------------------------------


def test_the_step_of_a_plan_reads_constants_like_other_tensors():
    both = [copy(View((4,), (1,)), View((4,), (1,), 4 * number), number) for number in (0, 1)]
    constant = Progression("u1", 1, 1, 4)
    pipeline = Pipeline.of(CopyPlan(1, (4,), (Output(8, tuple(both)),), (constant,)))
    (step,) = pipeline.steps
    assert (step.plan.inputs, step.plan.constants) == ((4, 4), ())
    assert (step.reads, pipeline.constants) == ((0, 1), {1: constant})


def leaf(graph, elements=1):
    return graph.leaf(elements, 1)


def make(graph, regions):
    regions = tuple(regions)
    return graph.make(regions, sum(prod(region.sizes) for region in regions), 1)


def run(graph, stages, elements, leaves):
    """Run stages with NumPy; returns all that is there then."""
    held = dict(leaves)
    for stage in stages:
        for number, regions in stage.items():
            inputs = [held.get(i, np.empty(0, np.uint8)) for i in range(len(elements))]
            sizes = tuple(array.size for array in inputs)
            plan = CopyPlan(1, sizes, (Output(elements[number], regions),))
            assert all(r.source.input in held for r in regions if isinstance(r.source, Read))
            (held[number],) = execute(plan, inputs)
    return held


@given(st.data())
@settings(max_examples=100)
def test_fused_graphs_are_their_tensors_one_by_one(data):
    graph, elements, whole, leaves = RegionGraph(), {}, {}, {}
    random = np.random.default_rng(0)
    for _ in range(data.draw(st.integers(1, 3))):
        number = leaf(graph)
        elements[number] = data.draw(st.integers(1, 60))
        leaves[number] = whole[number] = random.integers(0, 256, elements[number], np.uint8)
    for _ in range(data.draw(st.integers(1, 8))):
        size, regions = data.draw(tensors(elements))
        number = make(graph, regions)
        elements[number] = size
        sizes = tuple(elements[i] for i in range(number))
        plan = CopyPlan(1, sizes, (Output(size, regions),))
        (whole[number],) = execute(plan, [whole[i] for i in range(number)])
    numbers = data.draw(st.lists(st.sampled_from(sorted(elements)), min_size=1, max_size=4))
    result = run(graph, graph.fuse(numbers), elements, leaves)
    for number in numbers:
        np.testing.assert_array_equal(result[number], whole[number])


def test_stored_tensors_that_no_result_needs_are_not_made():
    """Gathers store what they read; then nothing is left of the result but a constant."""
    graph = RegionGraph()
    x, places = graph.leaf(4, 4), graph.leaf(4, 4)
    one, two = View.packed((1,)), View.packed((2,))
    y = x
    for _ in range(3):
        y = graph.make([gather(Read(y, one), IndexTensor(places, "i4", one), one, 0)], 4, 4)
    padded = graph.make([copy(one, one, y), Region(one.shift(1), Fill(bytes(4)))], 8, 4)
    constant = graph.make([copy(one.shift(1), one, padded)], 4, 4)
    (step,) = graph.lower([constant])
    assert (step.reads, step.makes) == ((), (constant,))
    steps = [(x + 2,), (x + 3,), (y, constant)]
    assert [step.makes for step in graph.lower([constant, y])] == steps
    whole = graph.make([copy(two, two, padded)], 8, 4)
    assert [step.makes for step in graph.lower([whole])] == [(x + 2,), (x + 3,), (whole,)]


def test_a_thousand_slices_are_one_copy():
    graph = RegionGraph()
    number = leaf(graph)
    for left in range(2000, 1000, -1):
        view = View.packed((4, left)).narrow(1, 1, left - 1)
        number = make(graph, [copy(view, View.packed(view.sizes), number)])
    (stage,) = graph.fuse([number])
    assert stage == {number: (make_region((4, 1000), 0, (1000, 1), (0, 1000, (2000, 1))),)}


def columns(count, rows=3):
    """A tensor joined from columns, and cut into them again; of one row, they are its elements."""
    graph = RegionGraph()
    leaves = [leaf(graph) for _ in range(count)]
    whole, column = View.packed((rows, count)), View.packed((rows, 1))
    places = [whole.narrow(1, i, 1) for i in range(count)]
    joined = make(graph, [copy(column, *at) for at in zip(places, leaves, strict=True)])
    parts = [make(graph, [copy(place, column, joined)]) for place in places]
    return graph, leaves, parts


def test_columns_joined_and_cut_again_are_the_columns():
    graph, leaves, parts = columns(100)
    (stage,) = graph.fuse(parts)
    for part, leaf in zip(parts, leaves, strict=True):
        assert stage[part] == (make_region((3,), 0, (1,), (leaf, 0, (1,))),)


@pytest.mark.parametrize("rows", [1, 3])
def test_fusing_takes_work_in_proportion(rows):
    """Four times as many columns: 16 times the pairs, but only those that meet are looked at."""

    def work(count):
        graph, _, parts = columns(count, rows)
        return instructions(lambda: graph.fuse(parts))

    assert work(400) < 5 * work(100)


def test_regions_that_explode_are_cut_by_an_intermediate():
    """Each tensor interleaves two views of the one before: regions would double every time."""
    graph, elements = RegionGraph(), {}
    number = first = leaf(graph)
    n = elements[first] = 1 << 14
    half = View((n // 2,), (2,))
    for _ in range(20):
        back = View((n // 2,), (-1,), n - 1)
        forwards = copy(View((n // 2,), (1,), 3), half, number)
        backwards = copy(back, View((n // 2,), (2,), 1), number)
        number = make(graph, [forwards, backwards])
        elements[number] = n
    stages = graph.fuse([number])
    assert 1 < len(stages) < 20
    most = max(len(made) for stage in stages for made in stage.values())
    assert most <= SUBMISSION_COST + n // ELEMENTS_PER_COST  # instead of one for each element
    leaves = {first: np.random.default_rng(0).integers(0, 256, n, np.uint8)}
    want = leaves[first]
    for _ in range(20):
        got = np.empty_like(want)
        got[::2], got[1::2] = want[3 : 3 + n // 2], want[::-1][: n // 2]
        want = got
    np.testing.assert_array_equal(run(graph, stages, elements, leaves)[number], want)


def test_a_tensor_of_many_regions_is_made_when_many_read_it():
    """To look through it once or twice is cheap; a hundred times is not."""
    graph, n = RegionGraph(), 4000
    x = leaf(graph, n)
    # Every pair of elements is turned: as many regions, and no two of them merge.
    pairs = [(make_region((2,), i, (1,), (x, n - 1 - i, (-1,)))) for i in range(0, 400, 2)]
    rest = make_region((n - 400,), 400, (1,), (x, 0, (1,)))
    moved = (r.source_view._replace(offset=(r.target.offset * 7) % 3000 + 1) for r in pairs)
    parts = [r.with_views(r.target, view) for r, view in zip(pairs, moved, strict=True)]
    mixed = make(graph, [*parts, rest])
    whole = View.packed((n,))
    readers = [make(graph, [copy(whole, whole, mixed)]) for _ in range(200)]
    few = graph.fuse(readers[:3])
    assert [sorted(stage) for stage in few] == [readers[:3]]
    many = graph.fuse(readers)
    assert len(many) == 2
    assert list(many[0]) == [mixed]
    assert sum(len(regions) for regions in many[1].values()) < 100 * 201


def test_results_are_made_together_where_nothing_waits_for_them():
    graph = RegionGraph()
    x = leaf(graph)
    view = View.packed((4,))
    a = make(graph, [copy(view, view, x)])
    b = make(graph, [copy(View((4,), (-1,), 3), view, a)])
    (stage,) = graph.fuse([a, b])
    assert sorted(stage) == [a, b]


def test_a_leaf_needs_no_stage():
    graph = RegionGraph()
    assert graph.fuse([leaf(graph)]) == []


# -- elements of other sizes -----------------------------------------------------------------------


@given(st.data())
def test_narrow_keeps_meaning(data):
    elements, regions = data.draw(tensors({0: 60}))
    size = data.draw(st.sampled_from([2, 4, 8]))
    wide = tuple(
        Region(r.target, Fill(bytes(range(size)))) if isinstance(r.source, Fill) else r
        for r in regions
    )
    small = data.draw(st.sampled_from([s for s in (1, 2, 4, 8) if s <= size]))
    plan = CopyPlan(size, (60 * size,), (Output(elements * size, wide),))
    narrowed = CopyPlan(small, plan.inputs, (Output(elements * size, narrow(wide, size, small)),))
    inputs = input_bytes(plan)
    np.testing.assert_array_equal(execute(plan, inputs)[0], execute(narrowed, inputs)[0])
    assert coalesce(narrowed).outputs[0].nbytes == elements * size
