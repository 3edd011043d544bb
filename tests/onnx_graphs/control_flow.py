"""Nodes with graphs of their own, which read tensors of the graph around them."""

import numpy as np
from onnx import TensorProto, helper

from onnx_graphs.arguments import has_axes


def branches(g, operator):
    """One of two tensors, as they are or in a sequence."""
    dtype = g.kind(g.dtypes("Identity"))
    names = [g.tensor("Identity", dtype=dtype) for _ in range(2)]
    graphs = [
        helper.make_graph(
            [helper.make_node("Identity", [name], [out])], out, [], [_any(g, name, out)]
        )
        for name, out in zip(names, ("then", "else"), strict=True)
    ]
    condition = g.constant(np.array(g.chance(0.5)))
    g.node(operator, [condition], reads=names, then_branch=graphs[0], else_branch=graphs[1])


def loop(g, operator):
    """A tensor that grows by another one, or by itself, in each iteration."""
    first = g.tensor("Identity", lambda array: has_axes(array) and array.size <= 100)
    shape, dtype = g.values[first].shape, g.values[first].dtype
    second = g.tensor("Identity", lambda array: array.shape == shape, shape, dtype)
    added = g.rng.choice((second, "state"))
    grows = dtype in g.dtypes("Concat")
    nodes = [
        helper.make_node("Concat", [added, "state"], ["made"], axis=0)
        if grows
        else helper.make_node("Identity", [added], ["made"]),
        helper.make_node("Identity", ["going"], ["goes_on"]),
    ]
    count, flag = (
        helper.make_tensor_value_info(name, kind, [])
        for name, kind in (("i", TensorProto.INT64), ("going", TensorProto.BOOL))
    )
    goes_on = helper.make_tensor_value_info("goes_on", TensorProto.BOOL, [])
    inputs, outputs = [count, flag, _any(g, first, "state")], [goes_on, _any(g, first, "made")]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    times, goes = g.ints(g.rng.randint(0, 4)), g.constant(np.array(g.chance(0.9)))
    g.node(operator, [times, goes, first], reads=[second], body=body)


def _any(g, name, new_name):
    """Declare a tensor of the type and rank of another one."""
    info = g.info(name, is_free=True)
    info.name = new_name
    return info
