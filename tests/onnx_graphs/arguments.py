"""Arguments of nodes: fitting tensors, and integers that are given or computed in many ways."""

import numpy as np
from onnx import TensorProto

from onnx_graphs.elements import schema_of
from onnx_graphs.graph import MAX_ELEMENTS, Graph
from vkops.onnx.operators import arithmetic


def has_axes(array):
    return array.ndim > 0


def is_small(array):
    """Whether a node may make a larger tensor of it."""
    return array.size <= MAX_ELEMENTS // 4


def _largest(array):
    return max(map(abs, array.tolist()), default=0)


class GraphBuilder(Graph):
    """A graph that is built node by node, and arguments for its next node."""

    def tensor(self, operator, fits=lambda array: True, shape=None, dtype=None):
        """Return a tensor for an operator's first input: an existing tensor or a new one."""
        dtypes = self.dtypes(operator) if dtype is None else [dtype]
        if self.chance(0.7) and (found := self.found(fits, dtypes)):
            return self.rng.choice(found[-8:])
        while True:
            sizes = self.shape() if shape is None else shape
            array = self.elements(self.kind(dtypes), sizes)
            if fits(array):
                break
        if self.chance(0.65):
            return self.input(array, self.elements(array.dtype, sizes))
        return self.default(array) if self.chance(0.1) else self.constant(array)

    def found(self, fits, dtypes):
        """The tensors of these types that fit."""
        arrays = {name: v for name, v in self.values.items() if isinstance(v, np.ndarray)}
        return [name for name, v in arrays.items() if v.dtype in dtypes and fits(v)]

    def ints(self, values, dtype=np.int64):
        """Return a tensor of these integers, given or computed."""
        array = np.array(values, dtype)
        is_list = array.ndim == 1 and array.dtype == np.int64
        if is_list and array.size <= arithmetic.MAX_ELEMENTS and self.chance(0.5):
            ways = (self._sum, self._product, self._quotient, self._cast, self._measured)
            return self.rng.choice((*ways, self._joined))(array)
        return self._given(array)

    def _given(self, array):
        ways = (self.constant, self.constant, self.constant, self.input, self.default)
        return self.rng.choice(ways)(array)

    def _sum(self, array):
        more = np.array([self.rng.randint(-9, 9) for _ in array], np.int64)
        if self.chance(0.5):
            return self.node("Sub", [self._given(array + more), self._given(more)])
        return self.node("Add", [self._given(array - more), self._given(more)])

    def _product(self, array):
        factor = self.rng.choice((1, -1))
        return self.node("Mul", [self._given(array * factor), self._given(np.array([factor]))])

    def _quotient(self, array):
        divisor = self.rng.randint(1, 5)
        rest = np.array([self.rng.randrange(divisor) for _ in array], np.int64)
        rest = np.where(array < 0, -rest, rest)  # towards zero
        if _largest(array) >> 60:
            return self.constant(array)
        whole = self._given(array * divisor + rest)
        return self.node("Div", [whole, self.constant(np.int64(divisor))])

    def _cast(self, array):
        kinds = [np.int32, np.float32, np.float64][2 if _largest(array) >> 20 else 0 :]
        if _largest(array) >> 50:
            return self.constant(array)
        constant = self.constant(array.astype(self.rng.choice(kinds)))
        return self.node("Cast", [constant], to=TensorProto.INT64)

    def _measured(self, array):
        """Return a tensor that is made of sizes of existing tensors, where these fit."""
        names = self.found(lambda _: True, self.dtypes("Shape"))
        shapes = {name: self.values[name].shape for name in names}
        for name, sizes in shapes.items():
            if sizes == tuple(array):
                return self.node("Shape", [name])
        parts = [self._size(size, shapes) for size in array.tolist()]
        return self.node("Concat", parts, axis=0) if parts else self.constant(array)

    def _size(self, size, shapes):
        """Return a tensor of one size, taken from one of these shapes where it is there."""
        names = [name for name, sizes in shapes.items() if size in sizes]
        if not names or self.chance(0.3):
            return self.constant(np.array([size]))
        name = self.rng.choice(names)
        axis = shapes[name].index(size)
        if self.opset >= 15 and self.chance(0.5):
            end = axis + 1 if axis + 1 < len(shapes[name]) else None
            return self.node("Shape", [name], start=axis, end=end)
        return self.node("Gather", [self.node("Shape", [name]), self.constant(np.array([axis]))])

    def _joined(self, array):
        at = self.rng.randrange(array.size + 1)
        return self.node("Concat", [self.ints(array[:at]), self.ints(array[at:])], axis=0)

    def argument(self, operator, since, name, values, attributes, dtype=np.int64):
        """Add an attribute in versions before ``since``; return the name of an input in later ones."""
        if schema_of(operator, self.opset).since_version < since:
            attributes[name] = values
            return None
        return self.ints(values, dtype)

    def axis(self, rank):
        axis = self.rng.randrange(rank)
        return axis - rank if self.chance(0.3) else axis

    def axes(self, rank, count=None):
        chosen = self.rng.sample(range(rank), self.rng.randint(1, rank) if count is None else count)
        return [axis - rank if self.chance(0.3) else axis for axis in chosen]

    def cut(self, whole, count):
        """Return sizes whose sum is a size."""
        edges = sorted(self.rng.randint(0, whole) for _ in range(count - 1))
        return [b - a for a, b in zip([0, *edges], [*edges, whole], strict=True)]
