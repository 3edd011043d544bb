"""If and Loop: their conditions and counts must be known before a model runs."""

from __future__ import annotations

import numpy as np

from vkops.onnx.lowering import LoweredTensor, LoweredValue
from vkops.onnx.onnx_node import Call
from vkops.onnx.operators.split_concat import joined
from vkops.onnx.value_info import ValueInfo

MAX_ITERATIONS = 4096
"""Iterations of one Loop: each adds its tensors to the graph that is lowered."""


def branch(call: Call) -> list[LoweredValue]:
    """Lower If: the graph of the branch that the condition chooses."""
    name = "then_branch" if call.boolean("cond", default=True) else "else_branch"
    outputs = call.graph(name)
    got, wanted = len(outputs), call.output_count
    call.require(got == wanted, name, f"{got} outputs", wanted)
    return outputs


def loop(call: Call) -> list[LoweredValue]:
    """Lower Loop: its body, once for each iteration."""
    count = call.array("M")
    if count is not None:
        call.require_single("M", count)
    is_conditional = call.optional("cond") is not None
    carried = list(call.values("v_initial"))
    outputs = call.attribute("body")().outputs
    wanted = 1 + call.output_count
    call.require(len(outputs) == wanted, "body", f"{len(outputs)} outputs", wanted)
    call.require(
        len(carried) < wanted, "v_initial", f"{len(carried)} values", f"{wanted - 1} at most"
    )
    declared = outputs[1 + len(carried) :]
    scanned: list[list[LoweredTensor]] = [[] for _ in declared]
    goes_on = call.boolean("cond", default=True)
    iteration = 0
    while goes_on and (count is None or iteration < count.item()):
        if iteration == MAX_ITERATIONS:
            call.refuse("M", f"there are more than {MAX_ITERATIONS} iterations")
        first = [call.lowering.constant(np.array(value)) for value in (iteration, True)]
        going, *results = call.graph("body", [*first, *carried])
        carried = results[: len(carried)]
        for entry, tensors, value in zip(declared, scanned, results[len(carried) :], strict=True):
            if not isinstance(value, LoweredTensor):
                call.refuse("body", f"output {entry.name!r} must be a tensor: it is stacked")
            tensors.append(value.reshape((1, *value.shape)))
        goes_on = not is_conditional or call.truth("body", going)
        iteration += 1
    stacked = [
        joined(call, "body", tensors, 0) if tensors else _none_of(call, entry)
        for tensors, entry in zip(scanned, declared, strict=True)
    ]
    return [*carried, *stacked]


def _none_of(call: Call, entry: ValueInfo) -> LoweredTensor:
    """Return the empty stack of an output of a body that never ran; free sizes become 0."""
    if entry.dtype is None:
        call.refuse("body", f"the type of output {entry.name!r} is not declared")
    sizes = [size if isinstance(size, int) else 0 for size in entry.shape or ()]
    return call.lowering.make(entry.dtype, (0, *sizes), ())
