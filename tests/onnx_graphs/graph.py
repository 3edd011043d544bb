"""A graph to which inputs, constants and nodes are added."""

from __future__ import annotations

from math import prod
from random import Random

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from onnx_graphs import elements
from onnx_graphs.elements import NEWEST, OLDEST, STRING, TYPES, dtypes_of, elem_type, schema_of
from onnx_graphs.reference import evaluate
from vkops.onnx.element_types import dtype_of

MAX_ELEMENTS = 16384  # number of elements of the largest tensor


class Graph:
    """A graph, with the elements of each tensor."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.opset = rng.randint(rng.choice((OLDEST, OLDEST, NEWEST - 5)), NEWEST)
        self.nodes = []
        self.initializers = []
        self.defaults = []
        self.infos = {}
        self.inputs = {}
        self.others = {}
        self.values = {"": None}
        self.sequences = {}  # their tensors' types
        self.known = {}  # tensors that may be computed with, in order
        self.used = set()  # each operator alone, and with the types of its first input and output
        self.wanted = None  # the type to choose where it is possible

    def chance(self, probability):
        return self.rng.random() < probability

    def kind(self, dtypes):
        """Choose a type; types that only new versions list are chosen more often."""
        if self.wanted is not None and self.wanted in dtypes:  # None equals float64
            return self.wanted
        new = [dtype for dtype in dtypes if elem_type(dtype) > TensorProto.BFLOAT16]
        return self.rng.choice(new if new and self.chance(0.5) else dtypes)

    def elements(self, dtype, shape):
        return elements.random_elements(self.rng, dtype, shape)

    def shape(self, rank=None):
        rank = self.rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6)) if rank is None else rank
        sizes = [self.rng.choice((1, 1, 2, 2, 3, 4, 5, 6)) for _ in range(rank)]
        if rank and self.chance(0.06):
            sizes[self.rng.randrange(rank)] = 0
        if rank and self.chance(0.15):
            sizes[self.rng.randrange(rank)] = self.rng.choice((17, 64, 300, 2000))
        while prod(sizes) > MAX_ELEMENTS // 2 or (prod(sizes) > 200 and self.chance(0.5)):
            sizes[self.rng.randrange(rank)] = 1
        return tuple(sizes)

    def constant(self, array):
        """A tensor of known elements."""
        array = np.asarray(array)
        if self.chance(0.5) and array.dtype in dtypes_of("Constant", self.opset):
            return self.node("Constant", [], **self.constant_attribute(array))
        return self.initializer(array)

    def constant_attribute(self, array):
        text = {np.dtype("f4"): "float", np.dtype("i8"): "int", STRING: "string"}.get(array.dtype)
        kept = array.dtype != np.float32 or not np.isnan(array).any()  # attributes quieten NaNs
        if self.opset >= 12 and text and array.ndim < 2 and kept and self.chance(0.7):
            if array.ndim == 0:
                return {f"value_{text}": array.item()}
            if array.size:
                return {f"value_{text}s": array.tolist()}
        filled = array.dtype != STRING and array.size
        if self.opset >= 11 and filled and array.ndim and self.chance(0.3):
            return {"sparse_value": self.sparse(array)}
        return {"value": numpy_helper.from_array(array)}

    def sparse(self, array):
        flat = array.reshape(-1)
        filled = flat.view(np.uint8).reshape(flat.size, -1).any(axis=1)
        indices = np.flatnonzero(filled)
        values = numpy_helper.from_array(flat[indices], f"t{len(self.values)}")
        if self.chance(0.5):
            indices = np.stack(np.unravel_index(indices, array.shape), axis=1)
        places = numpy_helper.from_array(indices.astype(np.int64))
        return helper.make_sparse_tensor(values, places, list(array.shape))

    def initializer(self, array):
        name = self.add(array)
        self.known[name] = None
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def default(self, array):
        """Add an initializer that is also a graph input, and so may be given or not."""
        name = self.initializer(array)
        del self.known[name]
        self.defaults.append(name)
        self.declare(name)
        return name

    def input(self, array, other=None):
        """Add a graph input; ``other`` is a second value for it."""
        name = self.add(array)
        self.declare(name)
        self.inputs[name] = array
        self.others[name] = array if other is None else other
        return name

    def declare(self, name):
        shape, chance = self.values[name].shape, self.chance
        sizes = [f"N{n}" if chance(0.2) else None if chance(0.1) else n for n in shape]
        self.infos[name] = self.info(name, sizes)

    def info(self, name, sizes=None, *, is_free=False):
        """The declaration of a tensor, of any sizes if it is free, or of a sequence."""
        kind = elem_type(self.dtype(name))
        if name in self.sequences:
            return helper.make_tensor_sequence_value_info(name, kind, None)
        shape = self.values[name].shape if sizes is None else sizes
        return helper.make_tensor_value_info(name, kind, [None] * len(shape) if is_free else shape)

    def add(self, value):
        name = f"t{len(self.values)}"
        self.values[name] = value
        return name

    def node(self, operator, inputs, count=1, reads=(), **attributes):
        """Add a node and run it; return the name of its output, or a list of names.

        ``reads`` are further tensors that graphs in its attributes read.
        """
        inputs = list(inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        names = [f"t{len(self.values) + i}" for i in range(count)]
        node = helper.make_node(operator, inputs, names)
        for key, value in attributes.items():
            kind = AttributeProto.INTS if value == [] else None
            if value is not None:
                node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        read = [name for name in dict.fromkeys([*inputs, *reads]) if name]
        opsets = [helper.make_opsetid("", self.opset)]
        function = helper.make_function("random", operator, read, names, [node], opsets)
        results = evaluate(function, {name: self.values[name] for name in read})
        is_known = operator in ("EyeLike", "Shape", "Size") or self.known.keys() >= {*read}
        for name, value in zip(names, results, strict=True):
            if isinstance(value, np.ndarray) and value.dtype.kind in "US":
                value = value.astype(object)
            self.values[name] = value
            if isinstance(value, list):
                first = self.dtype(inputs[0]) if inputs else dtype_of(attributes["dtype"])
                self.sequences[name] = first
            elif is_known:
                self.known[name] = None
        self.nodes.append(node)
        types = [TYPES[self.dtype(name)] for name in (*inputs[:1], names[0])]
        self.used |= {(operator, used) for used in (None, *types)}
        return names[0] if count == 1 else names

    def dtypes(self, operator, output=False):
        return dtypes_of(operator, self.opset, output)

    def dtype(self, name):
        """The type of a tensor, or of a sequence's tensors."""
        return self.sequences[name] if name in self.sequences else self.values[name].dtype

    def sequences_for(self, operator):
        """Sequences that an operator may have as its input."""
        types = schema_of(operator, self.opset).inputs[0].types
        return [name for name, dtype in self.sequences.items() if f"seq({TYPES[dtype]})" in types]

    def numbers(self, array):
        """Return an operand that vkops can compute with: known, or a short list of integers."""
        is_list = array.ndim < 2 and array.dtype.kind in "iu" and array.size <= 1024
        if is_list and self.chance(0.4):
            return self.input(array)
        return self.constant(array)

    def known_integers(self, dtype):
        """Return a tensor whose elements are known before the graph runs, or None."""
        names = [name for name in self.known if self.values[name].dtype == dtype]
        return self.rng.choice(names) if names and dtype.kind in "iu" else None

    def input_sequence(self):
        """A graph input that is a sequence of tensors of any shapes."""
        dtype = self.rng.choice(self.dtypes("SequenceAt"))
        items = [self.elements(dtype, self.shape(2)) for _ in range(self.rng.randint(1, 4))]
        if self.chance(0.5):
            items = [self.elements(dtype, items[0].shape) for _ in items]
        name = self.add(items)
        self.sequences[name] = dtype
        self.infos[name] = self.info(name)
        self.inputs[name] = items
        self.others[name] = [self.elements(dtype, item.shape) for item in items]
        return name
