"""Random shaders whose indices leave arrays that are not buffers: they reach the last element.

Each has variables of random types in shared, private, local and push constant memory. Random paths
to their elements, with indices from a buffer, are read and written, also by functions with array
parameters. A model in Python says which values the variables have in the end.
"""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from spirv import VOID, assembled, entry_point, head, tool

from vkops import shaders
from vkops.shaders.limited_indices import with_limited_indices

pytestmark = pytest.mark.usefixtures("clamped")

MOST_NUMBERS = 60
"""Numbers in a variable: lavapipe takes a minute to compile a shader with hundreds."""

ENDS = (0, 1, 2, 3, 4, 5, 7, 100, 200, 255, 40_000, 65_535, 1 << 20, (1 << 31) - 1)
HEAD = """#version 450
layout(std430, binding = 0) readonly buffer Indices { int indices[]; };
layout(std430, binding = 1) writeonly buffer Results { uint results[]; };
"""


@pytest.fixture
def clamped(device):
    """Skips on devices that vkops does not change modules for."""
    features = device.vulkan.features
    if device.info.type != "CPU" or "robustBufferAccess2" not in features:
        pytest.skip("modules are not changed for this device")


class Composite(NamedTuple):
    """A struct, an array, a vector or a matrix: its parts, and how one is written, such as [0] or .m0."""

    glsl: str
    parts: list
    place: str = "[{}]"


class RandomShader:
    """A random shader, and the results it must have.

    Attributes:
        values: the numbers in variables, by the text of their paths with constant indices.
    """

    def __init__(self, seed):
        self.random = Random(seed)
        self.declared, self.functions, self.body = [], [], []
        self.indices, self.results = [], []
        self.types, self.values = {}, {}
        for storage in ("shared", "private", "local", "push"):
            for number in range(self.random.randint(1, 2) if storage != "push" else 1):
                self._declare(storage, f"{storage}_{number}")
        for _ in range(self.random.randint(4, 12)):
            self.random.choice((self._load, self._load, self._store, self._call))()
        for path, value in self.values.items():
            if not path.startswith("push"):
                self._result(path, value)

    @property
    def text(self):
        body = "\n  ".join(self.body)
        declared = "\n".join([*self.declared, *self.functions])
        return f"{HEAD}{declared}\nvoid main() {{\n  {body}\n}}\n"

    # -- types and variables -----------------------------------------------------------------------

    def _type(self, depth):
        kind = self.random.choice(("array", "array", "struct", "vector", "matrix", "scalar"))
        if depth == 0 or kind == "scalar":
            return self.random.choice(("uint", "float"))
        if kind == "vector":
            element, count = self.random.choice(("uint", "float")), self.random.randint(2, 4)
            return Composite(f"{'u' if element == 'uint' else ''}vec{count}", [element] * count)
        if kind == "matrix":
            columns, rows = self.random.randint(2, 4), self.random.randint(2, 4)
            column = Composite(f"vec{rows}", ["float"] * rows)
            return Composite(f"mat{columns}x{rows}", [column] * columns)
        if kind == "struct":
            members = [self._type(depth - 1) for _ in range(self.random.randint(1, 3))]
            name = f"S{len(self.declared)}"
            listed = " ".join(f"{glsl(m)} m{i};" for i, m in enumerate(members))
            self.declared.append(f"struct {name} {{ {listed} }};")
            return Composite(name, members, ".m{}")
        return self._array(self._type(depth - 1))

    def _array(self, element):
        count = self.random.choice((1, 2, 3, 4, 5))
        base, bracket, dimensions = glsl(element).partition("[")
        return Composite(f"{base}[{count}]{bracket}{dimensions}", [element] * count)

    def _declare(self, storage, name):
        type_ = self._array("uint" if storage == "push" else self._type(3))
        paths = leaves(type_, name)
        if len(paths) > MOST_NUMBERS:
            self._declare(storage, name)
            return
        self.types[name] = type_
        numbers = [self.random.randrange(1000) for _ in paths]
        self.values |= zip(paths, numbers, strict=True)
        if storage == "push":
            self.declared.append(f"layout(push_constant) uniform Push {{ {glsl(type_)} {name}; }};")
            self.pushed = numbers
            return
        prefix = "shared " if storage == "shared" else ""
        (self.body if storage == "local" else self.declared).append(
            f"{prefix}{glsl(type_)} {name};"
        )
        self.body += [f"{path} = {n};" for path, n in zip(paths, numbers, strict=True)]

    # -- accesses ----------------------------------------------------------------------------------

    def _index(self, count):
        """An index in GLSL, and the element that it must reach."""
        if self.random.random() < 0.3:
            number = self.random.randrange(count)
            return str(number), number
        value = self.random.choice((*ENDS, *range(count)))
        value *= self.random.choice((1, 1, -1))
        self.indices.append(value)
        kind = self.random.choice(("int", "uint"))
        return f"{kind}(indices[{len(self.indices) - 1}])", min(value & 0xFFFFFFFF, count - 1)

    def _path(self, *, written, is_end=lambda type_: isinstance(type_, str)):
        """A random part of a variable: its path, the constant path that it must reach, and its type."""
        names = [name for name in self.types if not (written and name.startswith("push"))]
        text = place = self.random.choice(names)
        type_ = self.types[text]
        while not is_end(type_):
            if isinstance(type_, str):
                return self._path(written=written, is_end=is_end)
            count = len(type_.parts)
            if type_.place == "[{}]":
                index, number = self._index(count)
            else:
                index = number = self.random.randrange(count)
            text, place = text + type_.place.format(index), place + type_.place.format(number)
            type_ = type_.parts[number]
        return text, place, type_

    def _load(self):
        text, place, _ = self._path(written=False)
        self._result(text, self.values[place])

    def _store(self):
        text, place, _ = self._path(written=True)
        self.values[place] = self.random.randrange(1000)
        self.body.append(f"{text} = {self.values[place]};")

    def _call(self):
        """Pass an array of numbers to a function that reads it, or writes it."""
        written = self.random.random() < 0.5
        text, place, array = self._path(written=written, is_end=is_list)
        index, number = self._index(len(array.parts))
        function, place = f"f{len(self.functions)}", f"{place}[{number}]"
        if written:
            value = self.values[place] = self.random.randrange(1000)
            head, code = f"void {function}(inout {array.glsl} a, uint i)", f"a[i] = {value};"
            self.body.append(f"{function}({text}, {index});")
        else:
            head, code = f"uint {function}({array.glsl} a, uint i)", "return uint(a[i]);"
            self._result(f"{function}({text}, {index})", self.values[place])
        self.functions.append(f"{head} {{ {code} }}")

    def _result(self, text, value):
        self.body.append(f"results[{len(self.results)}] = uint({text});")
        self.results.append(value)


def glsl(type_):
    return getattr(type_, "glsl", type_)


def is_list(type_):
    """Whether it is an array or a vector of numbers."""
    return not isinstance(type_, str) and type_.place == "[{}]" and isinstance(type_.parts[0], str)


def leaves(type_, path):
    """The paths of all numbers in a variable."""
    if isinstance(type_, str):
        return [path]
    parts = enumerate(type_.parts)
    return [leaf for n, part in parts for leaf in leaves(part, path + type_.place.format(n))]


def check(device, seed):
    program = RandomShader(seed)
    plain = shaders.compile(program.text, target_env="vulkan1.2", cache=False)
    for optimize in (False, True):
        spirv = tool("spirv-opt", "-O", spirv=plain) if optimize else plain
        shaders.validate(with_limited_indices(spirv), target_env="vulkan1.2")
        shader = device.compile_shader(spirv)
        results = device.tensor(np.full(len(program.results) + 4, 77, np.uint32))
        indices = np.array([0, *program.indices], np.int64).astype(np.int32)[1:]
        bound = {"Results": results}
        if shader.shader.block("Indices"):
            bound["Indices"] = device.tensor(indices if indices.size else np.zeros(1, np.int32))
        pushed = program.pushed if shader.shader.push_nbytes else []
        shader.dispatch(bound, 1, np.uint32(pushed).tobytes())
        expected = [*program.results, 77, 77, 77, 77]
        assert results.numpy().tolist() == expected, (seed, optimize, program.text, program.indices)


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_shaders(device, first):
    for seed in range(first, first + (20 if first == 0 else 1000)):
        check(device, seed)


def test_a_specialization_constant_that_is_too_large(device):
    text = """#version 450
    layout(constant_id = 0) const uint I = 1;
    layout(std430, binding = 0) buffer Data { uint data[]; };
    shared uint before[64], room[4], after[64];
    void main() {
        for (uint i = 0; i < 64; ++i) before[i] = after[i] = 0;
        for (uint i = 0; i < 4; ++i) room[i] = i;
        room[I] = 7;
        for (uint i = 0; i < 64; ++i) data[i] = before[i] + after[i];
        for (uint i = 0; i < 4; ++i) data[64 + i] = room[i];
    }"""
    for number, expected in ((1, [0, 7, 2, 3]), (4, [0, 1, 2, 7]), (60, [0, 1, 2, 7])):
        x = device.tensor(np.full(68, 9, np.uint32))
        device.compile_shader(text, constants={"I": number})(x, groups=1)
        assert x.numpy().tolist() == [*[0] * 64, *expected]


@pytest.mark.parametrize(("bits", "size"), [(8, 200), (16, 40_000), (64, 5), (16, 5)])
@pytest.mark.parametrize("signed", [0, 1])
def test_indices_of_other_sizes(bits, size, signed):
    """Indices are signed, whatever their type: those that would be negative are limited, too."""
    types = f"""{VOID}%uint = OpTypeInt 32 0
        %size = OpConstant %uint {size}
        %array = OpTypeArray %uint %size
        %to_array = OpTypePointer Workgroup %array
        %to_uint = OpTypePointer Workgroup %uint
        %shared = OpVariable %to_array Workgroup
        %float = OpTypeFloat 32
        %three = OpConstant %float 3
        %22 = OpTypeInt {bits} {signed}\n"""
    code = """%12 = OpConvertFToS %22 %three
        %place = OpAccessChain %to_uint %shared %12
        OpStore %place %size\n"""
    spirv = assembled(head("Int8", "Int16", "Int64") + types + entry_point(code))
    limited = with_limited_indices(spirv)
    shaders.validate(limited, target_env="vulkan1.2")
    listing = tool("spirv-dis", "--raw-id", spirv=limited).decode()
    (limit,) = re.findall(r"UMin %12 (%\d+)", listing)
    last = min(size, 1 << bits - 1) - 1
    assert f"{limit} = OpConstant %22 {last}" in map(str.strip, listing.splitlines())
