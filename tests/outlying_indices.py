"""Indices out of range as DirectML reads them: random cases, and a model of the results, in integers.

The model was compared with DirectML 1.15.4 under Wine.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import prod
from random import Random
from typing import NamedTuple

import numpy as np
from byte_arrays import DTYPES, WORDS, described, poisoned
from operator_table import OPERATORS, kinds

from vkops import dml

NAMES = ["GATHER", "GATHER_ELEMENTS", "GATHER_ND", "GATHER_ND1", "SCATTER", "SCATTER_ND"]
FAR = [7, 40, 1000, -40, 2**31 - 1, 2**31, 2**32 - 1, 2**32, -(2**32), 2**63 - 1, -(2**63)]


class OutlyingCase(NamedTuple):
    """An operator, and the bytes of its inputs and of its output before it runs."""

    desc: dml.OperatorDesc
    inputs: list[np.ndarray]
    before: np.ndarray

    def check(self, result):
        """Compare all bytes of the output; of several updates of an element, any may remain."""
        expected = self.before.copy()
        output = self.desc.outputs[0][1]
        if self.desc.operator.startswith("GATHER"):
            described(output, expected)[...] = np.reshape(
                self._read()[: prod(output.sizes)], output.sizes
            )
        else:
            written = _elements(expected, output)
            described(output, expected)[...] = described(self.desc.input_tensor, self.inputs[0])
            for address, values in self._writes().items():
                if address < written.size:
                    got = _elements(result, output)[address]
                    written[address] = got if got in values else values[-1]
        np.testing.assert_array_equal(result, expected)

    def _read(self):
        source = self.desc.input_tensor
        memory = _elements(self.inputs[0], source)
        size = source.data_type.element_size
        last = -(-source.total_tensor_size_in_bytes // size) - 1
        places = [min(address % 2**32, last) for address, _ in self._addresses(source)]
        words = [memory[place] if place < memory.size else 0 for place in places]
        return np.array(words, memory.dtype).view(DTYPES[source.data_type])

    def _writes(self):
        output, updates = self.desc.output_tensor, self.desc.updates_tensor
        new = described(updates, self.inputs[2]).view(WORDS[updates.data_type.element_size]).ravel()
        writes = defaultdict(list)
        for address, number in self._addresses(output):
            writes[address % 2**32].append(new[number])
        return writes

    def _addresses(self, tensor):
        """The address of each element along the indices, and its number, in row-major order."""
        desc = self.desc
        sizes, strides = tensor.sizes, tensor.effective_strides
        numbers = described(desc.indices_tensor, self.inputs[1])
        if numbers.dtype == np.uint64:
            numbers = numbers.view(np.int64)
        numbers = numbers.astype(object)

        def term(number, axis):
            return (number % 2**32 + sizes[axis] * (number < 0)) * strides[axis]

        if desc.operator == "GATHER":
            axis = desc.axis
            numbers = numbers.reshape(numbers.shape[numbers.ndim - desc.index_dimensions :])
            places = np.ndindex(*sizes[:axis], *numbers.shape, *sizes[axis + 1 :])
            for at, place in enumerate(places):
                before, after = place[:axis], place[axis + numbers.ndim :]
                number = numbers[place[axis : axis + numbers.ndim]]
                rest = _dot(before, strides) + _dot(after, strides[axis + 1 :])
                yield term(number, axis) + rest, at
        elif desc.operator in ("GATHER_ELEMENTS", "SCATTER"):
            for at, place in enumerate(np.ndindex(*numbers.shape)):
                others = [0 if d == desc.axis else stride for d, stride in enumerate(strides)]
                moved = term(numbers[place], desc.axis) if sizes[desc.axis] > 1 else 0
                yield moved + _dot(place, others), at
        else:
            batch = getattr(desc, "batch_dimension_count", 0)
            first = len(sizes) - desc.input_dimension_count
            numbers = numbers.reshape(numbers.shape[-desc.indices_dimension_count :])
            *shape, length = numbers.shape
            inner = first + batch + length
            for at, place in enumerate(np.ndindex(*shape, *sizes[inner:])):
                outer, rest = place[: len(shape)], place[len(shape) :]
                indexed = sum(term(n, first + batch + k) for k, n in enumerate(numbers[outer]))
                fixed = _dot(outer[:batch], strides[first:]) + _dot(rest, strides[inner:])
                yield indexed + fixed, at


def outlying_case(seed, *, element_size=None, most=4):
    """Any operator on strided tensors, with bytes behind their elements, and wild indices."""
    random = Random(seed)
    name = random.choice(NAMES)
    kind = random.choice([k for k in kinds(name) if element_size in (None, k.element_size)])
    sizes = tuple(random.randint(1, most) for _ in range(random.randint(1, 4)))
    desc = OPERATORS[name].make(random, kind, sizes, random.randrange(len(sizes))).desc
    desc = replace(
        desc,
        **{
            field: replace(
                tensor,
                total_tensor_size_in_bytes=tensor.total_tensor_size_in_bytes
                + random.choice((0, 0, 4, 20)),
            )
            for field in ("input_tensor", "output_tensor")
            for tensor in [getattr(desc, field)]
        },
    )
    inputs = [
        np.frombuffer(bytearray(random.randbytes(tensor.total_tensor_size_in_bytes)), np.uint8)
        for _, tensor in desc.inputs
    ]
    indices = desc.indices_tensor
    dtype = DTYPES[indices.data_type]
    numbers = [
        random.choice(FAR) if random.random() < 0.3 else random.randint(-4, 5)
        for _ in range(prod(indices.sizes))
    ]
    words = np.array([n % 256**dtype.itemsize for n in numbers], f"u{dtype.itemsize}").view(dtype)
    described(indices, inputs[1])[...] = words.reshape(indices.sizes)
    return OutlyingCase(desc, inputs, poisoned(desc.outputs[0][1].total_tensor_size_in_bytes))


def _elements(data, tensor):
    size = tensor.data_type.element_size
    return data[: data.size // size * size].view(WORDS[size])


def _dot(place, strides):
    return sum(at * stride for at, stride in zip(place, strides, strict=False))
