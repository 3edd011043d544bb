"""Random ONNX models of nodes that move data, run by vkops and by ONNX Runtime's DirectML provider.

Where they make different bytes, ONNX's reference evaluator decides. Models do not have what the provider makes of bytes
that it should not read, and differently each time: empty tensors, with which it leaves other outputs of a graph
unwritten; and ReverseSequence of tensors with more axes, for which it reads lengths behind the last one.
"""

from __future__ import annotations

import pickle
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, checker, helper
from onnx.printer import to_text
from onnx_graphs.arguments import GraphBuilder
from onnx_graphs.elements import schema_of
from onnx_graphs.nodes import ADD_NODE
from onnx_graphs.reference import difference

import vkops
from directml import dll
from directml.comparison import Outcome
from directml.differences import FAULT, Difference
from vkops.onnx import Model, Session

OPERATORS = [
    "Concat", "ConstantOfShape", "DepthToSpace", "Expand", "EyeLike", "Flatten", "Gather",
    "GatherElements", "GatherND", "Identity", "OneHot", "Pad", "Range", "Reshape", "Resize",
    "ReverseSequence", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Squeeze",
    "Tile", "Transpose", "Trilu", "Unsqueeze", "Upsample",
]  # fmt: skip
OPSETS = [7, 8, 9, 10, 11, 12, 13, 15, 16, 18, 19, 21]
KINDS = [np.dtype(name) for name in (*"efdbhiq", *"BHIQ", "?")]
FLOATS = KINDS[:2]  # all that the provider resamples
ENDED = "it ends the process"

FAULT_OF_PROVIDER, NOT_RUN, OPEN = "fault of the provider", "not run", "left open by ONNX"

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Ran(Outcome):
    """A model that both were asked to run.

    Attributes:
        model: the model.
        values: what the reference evaluator makes of each tensor.
        answer: the outputs of the provider, or why it does not run the model.
        is_right: whether vkops makes what the reference evaluator makes.
    """

    model: ModelProto = field(default_factory=ModelProto)
    values: Values = field(default_factory=dict)
    answer: Any = None
    is_right: bool = True


class Builder(GraphBuilder):
    """A graph whose integers are initializers, and whose types are those of the provider."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.opset = random.choice(OPSETS)
        self.is_free = self.chance(0.3)

    def dtypes(self, operator, output=False):
        kinds = FLOATS if operator in ("Resize", "Upsample") else KINDS
        return [dtype for dtype in super().dtypes(operator, output) if dtype in kinds]

    def ints(self, values, dtype=np.int64):
        return self.initializer(np.array(values, dtype))

    def constant(self, array):
        return self.initializer(np.asarray(array))

    default = constant

    def declare(self, name):
        if self.is_free:
            super().declare(name)
        else:
            self.infos[name] = self.info(name)


def random_model(random: Random, operator: str) -> tuple[ModelProto, Values, Values]:
    """A model of nodes of an operator, and of up to three others in a third of them; its inputs; and all its tensors."""
    while True:
        graph = Builder(random)
        names = [operator, *random.sample(OPERATORS, random.choice((0, 0, random.randint(1, 3))))]
        if not all(schema_of(name, graph.opset) for name in names):
            continue
        for name in names:
            ADD_NODE[name](graph, name)
        has_data = all(value.size for name, value in graph.values.items() if name)
        more_axes = any(_has_more_axes(node, graph.values) for node in graph.nodes)
        has_operator = any(node.op_type == operator for node in graph.nodes)
        if graph.inputs and has_data and has_operator and not more_axes:
            break
    read = {name for node in graph.nodes for name in node.input}
    ends = [name for node in graph.nodes for name in node.output if name not in read]
    outputs = [graph.info(name, is_free=graph.is_free) for name in ends]
    proto = helper.make_graph(
        graph.nodes, "random", list(graph.infos.values()), outputs, graph.initializers
    )
    opsets = [helper.make_opsetid("", graph.opset)]
    version = max(8, helper.find_min_ir_version_for(opsets))
    model = helper.make_model(proto, opset_imports=opsets, ir_version=version)
    checker.check_model(model)
    return model, graph.inputs, graph.values


def _has_more_axes(node: NodeProto, values: Values) -> bool:
    return node.op_type == "ReverseSequence" and prod(values[node.input[0]].shape[2:]) > 1


def models(count: int, seed: int) -> Iterator[Outcome]:
    """Run models by both."""
    made = []
    for number in range(count):
        operator = OPERATORS[number % len(OPERATORS)]
        made.append((operator, *random_model(Random(f"provider {seed} {number}"), operator)))
    answers = ask([(model, inputs) for _, model, inputs, _ in made])
    device = vkops.Device()
    for (operator, model, inputs, values), answer in zip(made, answers, strict=True):
        expected = [values[output.name] for output in model.graph.output]
        ours = [np.asarray(each) for each in Session(Model(model), device).run(inputs)]
        wrong = [f"vkops: {text}" for text in map(difference, ours, expected) if text]
        texts = list(wrong)
        if isinstance(answer, str):
            texts.append(f"the provider does not run it: {answer}")
        else:
            made_by_it = map(difference, answer, expected)
            texts += [f"the provider: {text}" for text in made_by_it if text]
        text = f"{'; '.join(texts)}; {to_text(model)}"
        yield Ran(
            operator, not texts, text, model=model, values=values, answer=answer, is_right=not wrong
        )


def ask(cases: Sequence[tuple[ModelProto, Values]]) -> list[Any]:
    """What the provider makes of models: for each a list of arrays, or why it does not run the model.

    At some models its process ends, or loses the device, perhaps by what ran before. They run again in a new process.
    """
    subprocess.run([dll.REPOSITORY / "scripts/directml", "provider"], check=True)
    source, target = dll.FOLDER / "provider.cases", dll.FOLDER / "provider.results"
    packed = [(model.SerializeToString(), _packed(inputs)) for model, inputs in cases]
    source.write_bytes(pickle.dumps(packed))
    target.write_bytes(b"")
    target.chmod(0o666)
    answers: list[Any] = []
    while len(answers) < len(cases):
        before, size = len(answers), target.stat().st_size
        script = str(dll.REPOSITORY / "scripts/directml")
        command = [script, "provider", "provider", str(before)]
        result = subprocess.run(command, capture_output=True, check=False)
        if target.stat().st_size == size:
            raise RuntimeError(f"no answer: {result.stdout[-500:]} {result.stderr[-500:]}")
        answers = _read(target)
        if len(answers) == before:
            with target.open("ab") as file:
                pickle.dump(ENDED, file)
            answers.append(ENDED)
    source.unlink()
    target.unlink()
    return answers


def _packed(arrays: Values) -> dict[str, tuple[str, Any, bytes]]:
    return {name: (each.dtype.str, each.shape, each.tobytes()) for name, each in arrays.items()}


def _read(path: Path) -> list[Any]:
    """The answers in a file of results."""
    answers: list[Any] = []
    with path.open("rb") as file:
        while file.peek(1):
            answer = pickle.load(file)
            if isinstance(answer, list):
                answer = [np.frombuffer(data, kind).reshape(shape) for kind, shape, data in answer]
            if answer is not None:
                answers.append(answer)
    return answers


# -- what differs ----------------------------------------------------------------------------------


def _negative_pads(node: NodeProto, values: Values) -> bool:
    pads = _argument(node, "pads", 1, values) if node.op_type == "Pad" else []
    return min(pads[: len(pads) // 2], default=0) < 0


def _half_value(node: NodeProto, values: Values) -> bool:
    has_value = any(each.name == "value" for each in node.attribute)
    return node.op_type == "Pad" and has_value and values[node.input[0]].dtype == np.float16


def _large_k(node: NodeProto, values: Values) -> bool:
    return node.op_type == "Trilu" and any(
        abs(int(k)) >= 2**31 for k in _argument(node, "", 1, values)
    )


def _fractions(node: NodeProto, values: Values) -> bool:
    is_old = node.op_type == "Upsample" or (node.op_type == "Resize" and len(node.input) == 2)
    return is_old and any(scale % 1 for scale in _argument(node, "scales", 1, values))


def _policy(node: NodeProto, values: Values) -> bool:
    return _text(node, "keep_aspect_ratio_policy") in ("not_larger", "not_smaller")


def _outside(node: NodeProto, values: Values) -> bool:
    is_cropped = _text(node, "coordinate_transformation_mode") == "tf_crop_and_resize"
    return is_cropped and any(not 0 <= edge <= 1 for edge in _argument(node, "", 1, values))


def _fractional_length(node: NodeProto, values: Values) -> bool:
    is_aligned = _text(node, "coordinate_transformation_mode") == "align_corners"
    return is_aligned and any(length * scale % 1 for length, _, scale in _resized(node, values))


def _almost(node: NodeProto, values: Values) -> bool:
    """Whether the last bits of a coordinate decide where it is rounded to."""
    if node.op_type != "Resize" or len(node.input) < 3:
        return False
    shift = 0.0 if _text(node, "coordinate_transformation_mode") == "asymmetric" else 0.5
    for _, made, scale in _resized(node, values):
        halves = 2 * ((np.arange(made) + shift) / scale - shift)
        distances = abs(halves - halves.round())
        if ((distances > 0) & (distances < 1e-5)).any():
            return True
    return False


def _resized(node: NodeProto, values: Values) -> list[tuple[int, int, float]]:
    """For each axis that may be resized, its old and new size, and its scale."""
    old, new = (values[name].shape for name in (node.input[0], node.output[0]))
    axes = _argument(node, "axes", len(node.input), values) or range(len(old))
    scales = _argument(node, "scales", 2, values) or [new[axis] / old[axis] for axis in axes]
    return [(old[axis], new[axis], scale) for axis, scale in zip(axes, scales, strict=True)]


def _text(node: NodeProto, name: str) -> str:
    """An attribute that is a text; empty if it is left out."""
    texts = [each.s.decode() for each in node.attribute if each.name == name]
    return texts[0] if texts else ""


def _argument(node: NodeProto, name: str, number: int, values: Values) -> Sequence[Any]:
    """An attribute of old versions of an operator, which is an input of newer ones."""
    for attribute in node.attribute:
        if attribute.name == name:
            return helper.get_attribute_value(attribute)
    given = len(node.input) > number and node.input[number]
    return values[node.input[number]].reshape(-1).tolist() if given else []


CAUSES: dict[str, tuple[str, Callable[[NodeProto, Values], bool]]] = {
    "negative pads before the elements of an axis": (FAULT_OF_PROVIDER, _negative_pads),
    "the attribute value of Pad in FLOAT16 becomes NaN": (FAULT_OF_PROVIDER, _half_value),
    "Trilu reads 32 bits of k": (FAULT_OF_PROVIDER, _large_k),
    "keep_aspect_ratio_policy of Resize is not followed": (FAULT_OF_PROVIDER, _policy),
    "tf_crop_and_resize repeats the edges outside of the tensor": (FAULT_OF_PROVIDER, _outside),
    "align_corners rounds lengths that scales make": (FAULT_OF_PROVIDER, _fractional_length),
    "coordinates of Resize that FLOAT32 rounds to whole numbers or halves": (OPEN, _almost),
    "elements that fractional scales of Upsample and version 10 of Resize read": (OPEN, _fractions),
}
REFUSALS = {
    "fallback to CPU EP|Provider type for": "it has no kernel for the version, types or mode of a node",
    "80070057": "DirectML or its kernel refuses a node: invalid parameter",
    "ShapeInferenceError": "ONNX Runtime refuses a valid model",
    "unordered_map": "it fails inside",
}
"""Texts that are in its errors."""


def name_of(ran: Ran) -> Difference | None:
    """The difference that explains a model that is not the same; vkops has none."""
    if not ran.is_right:
        return None
    if ran.answer == ENDED:
        graph = ran.model.graph
        outputs = {output.name for output in graph.output}
        known = {tensor.name for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Range" and node.output[0] in outputs and known >= {*node.input}:
                return _named("a FILL_VALUE_SEQUENCE that makes an output of a graph", FAULT)
        return None
    if isinstance(ran.answer, str):
        names = (name for text, name in REFUSALS.items() if re.search(text, ran.answer))
        return next((_named(name, NOT_RUN) for name in names), None)
    wrong = [
        (output.name, array)
        for output, array in zip(ran.model.graph.output, ran.answer, strict=True)
        if difference(array, ran.values[output.name])
    ]
    causes = [_cause(ran, name, array) for name, array in wrong]
    return causes[0] if all(causes) else None


_DIFFERENCES: dict[str, Difference] = {}


def _named(name: str, kind: str) -> Difference:
    """The one difference of this name."""
    return _DIFFERENCES.setdefault(name, Difference(name, kind, lambda _: False))


def _cause(ran: Ran, name: str, array: Any) -> Difference | None:
    """Why an output is wrong: by its elements, or by a node that it is made of."""
    expected = ran.values[name]
    if array.shape == expected.shape and array.dtype == expected.dtype == np.float16:
        theirs, right = (each.reshape(-1).view("u2") for each in (array, expected))
        if not difference(theirs, np.where(np.isnan(expected.reshape(-1)), right | 0x200, right)):
            return _named("signalling NaN of FLOAT16 become quiet", FAULT)
    needed = {name}
    for node in reversed(ran.model.graph.node):
        if needed & {*node.output}:
            needed |= {*node.input}
            for text, (kind, matches) in CAUSES.items():
                if matches(node, ran.values):
                    return _named(text, kind)
    return None
