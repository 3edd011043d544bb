"""Small ONNX models that cost as much as they can, and what checking each costs.

``python tests/model_costs.py [FAMILY ...]`` prints a row for each family and size: bytes of the
model, processor time and peak memory of a process of its own.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MAX_MEMORY = 8 << 30
"""Address space that a measured process may take."""

MAX_SECONDS = 120


def ints(name, values):
    return numpy_helper.from_array(np.asarray(values, np.int64), name)


def model(nodes, initializers=(), size=4096, output=None):
    """A model of nodes that take x and make y."""
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, [size])],
        [output or helper.make_tensor_value_info("y", kind, None)],
        list(initializers),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def named(step, count):
    """Names of the tensors before and after a step of a chain from x to y."""
    return (f"t{step}" if step else "x"), (f"t{step + 1}" if step + 1 < count else "y")


def doubled(count):
    """Each tensor is the one before, twice."""
    nodes = []
    for step in range(count):
        a, b = named(step, count)
        nodes.append(helper.make_node("Concat", [a, a], [b], axis=0))
    return model(nodes, size=2)


def doubled_and_cut(count):
    """Twice the tensor before, and every other element of that."""
    initializers = [ints("s", [1]), ints("e", [2**31]), ints("a", [0]), ints("d", [2])]
    nodes = []
    for step in range(count):
        a, b = named(step, count)
        nodes.append(helper.make_node("Concat", [a, a], [f"c{step}"], axis=0))
        nodes.append(helper.make_node("Slice", [f"c{step}", "s", "e", "a", "d"], [b]))
    return model(nodes, initializers, 4095)


def interleaved(count):
    """The tensor before, cut at an odd place, its halves interleaved."""
    initializers = [ints("n", [1365, 2731]), ints("r", [1365, 3]), ints("f", [-1])]
    nodes = []
    for step in range(count):
        a, b = named(step, count)
        nodes += [
            helper.make_node("Split", [a, "n"], [f"l{step}", f"h{step}"], axis=0),
            helper.make_node("Concat", [f"h{step}", f"l{step}"], [f"c{step}"], axis=0),
            helper.make_node("Slice", [f"c{step}", "s0", "e0"], [f"d{step}"]),
            helper.make_node("Reshape", [f"d{step}", "r"], [f"m{step}"]),
            helper.make_node("Transpose", [f"m{step}"], [f"p{step}"], perm=[1, 0]),
            helper.make_node("Reshape", [f"p{step}", "f"], [f"q{step}"]),
            helper.make_node("Concat", [f"q{step}", "one"], [b], axis=0),
        ]
    one = numpy_helper.from_array(np.zeros(1, np.float32), "one")
    initializers += [ints("s0", [1]), ints("e0", [2**31]), one]
    return model(nodes, initializers, 4096)


def shuffled(count):
    """The tensor before in 256 parts, put together in another order, again and again."""
    parts = 256
    order = np.random.default_rng(0).permutation(parts)
    sizes = [4096 // parts + (1 if i % 2 else -1) for i in range(parts)]
    nodes = []
    for step in range(count):
        a, b = named(step, count)
        made = [f"{step}.{i}" for i in range(parts)]
        nodes.append(helper.make_node("Split", [a, "n"], made, axis=0))
        nodes.append(helper.make_node("Concat", [made[i] for i in order], [b], axis=0))
    return model(nodes, [ints("n", sizes)])


def sequence(count):
    """So many parts of one tensor in a sequence, put together again."""
    nodes = [
        helper.make_node("SplitToSequence", ["x", "one"], ["s"], axis=0),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    return model(nodes, [numpy_helper.from_array(np.array(1), "one")], count)


def gathered(count):
    """Elements in a random order, again and again, by the same indices."""
    order = np.random.default_rng(0).permutation(65536)[:40000]
    nodes = []
    for step in range(count):
        nodes.append(helper.make_node("Gather", ["x", "i"], [f"g{step}"], axis=0))
    nodes.append(helper.make_node("Concat", [f"g{step}" for step in range(count)], ["y"], axis=0))
    return model(nodes, [ints("i", order)], 65536)


def computed(count):
    """Sums of large constants, on the host."""
    nodes = [helper.make_node("ConstantOfShape", ["n"], ["c0"], value=ints("", [1]))]
    for step in range(count):
        nodes.append(helper.make_node("Add", [f"c{step}", f"c{step}"], [f"c{step + 1}"]))
    nodes.append(helper.make_node("Identity", ["x"], ["y"]))
    return model(nodes, [ints("n", [1 << 22])])


def looked_up(count):
    """A shape made in a long chain of constants, needed at each step."""
    nodes = []
    for step in range(count):
        a, b = named(step, count)
        shape = f"s{step}" if step else "s"
        nodes += [
            helper.make_node("Concat", [shape, "one"], [f"l{step}"], axis=0),
            helper.make_node("Slice", [f"l{step}", "b", "e"], [f"s{step + 1}"]),
            helper.make_node("Reshape", [a, f"s{step + 1}"], [b]),
        ]
    return model(nodes, [ints("s", [4096]), ints("one", [1]), ints("b", [0]), ints("e", [1])])


def nothing(count):
    """Tensors without elements, joined and repeated."""
    nodes = [helper.make_node("Slice", ["x", "b", "b"], ["t1"])]
    for step in range(1, count):
        a, b = named(step, count)
        if step % 2:
            nodes.append(helper.make_node("Concat", [a, a, a], [b], axis=0))
        else:
            nodes.append(helper.make_node("Tile", [a, "many"], [b]))
    return model(nodes, [ints("b", [0]), ints("many", [2**40])])


def read_across(count):
    """Columns of two tensors side by side, read with a stride that goes along neither."""
    wide = 2 * count + 1
    nodes = [
        helper.make_node("Expand", ["x", "column"], ["a"]),
        helper.make_node("ConstantOfShape", ["rest"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Reshape", ["c", "flat"], ["f"]),
        helper.make_node("Slice", ["f", "b1", "e1", "a1", "d1"], ["y"]),
    ]
    initializers = [
        ints("column", [count, 1]),
        ints("rest", [count, wide - 1]),
        ints("flat", [-1]),
        ints("b1", [0]),
        ints("e1", [2**62]),
        ints("a1", [0]),
        ints("d1", [wide - 1]),
    ]
    return model(nodes, initializers, 1)


FAMILIES = {
    doubled: (50, 1000),
    doubled_and_cut: (100, 400),
    interleaved: (30, 120),
    shuffled: (8, 32),
    sequence: (16384, 65536, 262144),
    gathered: (2, 8, 32),
    computed: (8, 32, 64),
    looked_up: (250, 1000),
    nothing: (250, 1000),
    read_across: (1 << 12, 1 << 20, 1 << 28),
}


def measured(path, *command):
    """Processor time in seconds, peak memory in MB and the last line of a process."""
    before = os.times()

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))

    probe = (
        "import resource, sys; from vkops.cli import main; code = main(sys.argv[1:]);"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024;"
        "print(peak, code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *command, str(path)],
        capture_output=True,
        text=True,
        preexec_fn=limited,
        check=False,
    )
    after = os.times()
    seconds = (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )
    lines = done.stdout.splitlines()
    peak = lines[-1].split()[0] if lines and done.returncode == 0 else "?"
    said = (done.stderr.splitlines() or lines[-2:-1] or [""])[-1]
    return seconds, peak, said if done.returncode == 0 else f"exit {done.returncode}: {said}"


def main(names):
    folder = Path(os.environ.get("TMPDIR", "/tmp"))
    for family, sizes in FAMILIES.items():
        if names and family.__name__ not in names:
            continue
        for size in sizes:
            path = folder / f"{family.__name__}_{size}.onnx"
            onnx.save(family(size), path)
            seconds, peak, said = measured(path, "check")
            nbytes = path.stat().st_size
            path.unlink()
            row = f"{family.__name__} {size} | {nbytes} B | {seconds:.1f} s | {peak} MB"
            print(f"{row} | {said[:150]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
