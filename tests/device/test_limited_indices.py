"""Random shaders whose indices leave arrays that are not buffers: they reach the last element.

Each has variables of random types in shared, private, local and push constant memory. Random paths
to their elements, with indices from a buffer, are read and written, also by functions with array
parameters. A model in Python says which values the variables have in the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

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


@dataclass(frozen=True)
class Sequence:
    """An array, a vector or a matrix."""

    glsl: str
    count: int
    element: object


@dataclass(frozen=True)
class Struct:
    """A struct; its members are called m0, m1 and so on."""

    glsl: str
    members: tuple


class Program:
    """A random shader, and the results it must have."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.declared, self.functions, self.body = [], [], []
        self.indices, self.results = [], []
        self.pushed = []
        self.variables = {}
        for storage in ("shared", "private", "local", "push"):
            for number in range(self.random.randint(1, 2) if storage != "push" else 1):
                self._declare(storage, f"{storage}_{number}")
        for _ in range(self.random.randint(4, 12)):
            self.random.choice((self._load, self._load, self._store, self._call))()
        for name, (type_, values, storage) in self.variables.items():
            if storage != "push":
                for path, value in leaves(type_, values):
                    self._result(name + path, value)

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
            return Sequence({"uint": "u", "float": ""}[element] + f"vec{count}", count, element)
        if kind == "matrix":
            columns, rows = self.random.randint(2, 4), self.random.randint(2, 4)
            return Sequence(f"mat{columns}x{rows}", columns, Sequence(f"vec{rows}", rows, "float"))
        if kind == "struct":
            members = tuple(self._type(depth - 1) for _ in range(self.random.randint(1, 3)))
            name = f"S{len(self.declared)}"
            listed = " ".join(f"{glsl(m)} m{i};" for i, m in enumerate(members))
            self.declared.append(f"struct {name} {{ {listed} }};")
            return Struct(name, members)
        return self._array(self._type(depth - 1))

    def _array(self, element):
        count = self.random.choice((1, 2, 3, 4, 5))
        base, bracket, dimensions = glsl(element).partition("[")
        return Sequence(f"{base}[{count}]{bracket}{dimensions}", count, element)

    def _declare(self, storage, name):
        depth = 1 if storage == "push" else 3
        type_ = self._array(self._type(depth)) if storage != "push" else self._array("uint")
        values = made(type_)
        if len([*leaves(type_, values)]) > MOST_NUMBERS:
            self._declare(storage, name)
            return
        self.variables[name] = type_, values, storage
        if storage == "push":
            self.declared.append(f"layout(push_constant) uniform Push {{ {glsl(type_)} {name}; }};")
            values[:] = self.pushed = [self.random.randrange(100) for _ in values]
            return
        prefix = "shared " if storage == "shared" else ""
        (self.body if storage == "local" else self.declared).append(
            f"{prefix}{glsl(type_)} {name};"
        )
        for path, _ in leaves(type_, values):
            value = self.random.randrange(1000)
            self.body.append(f"{name}{path} = {value};")
            assign(values, constant_path(path), value)

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

    def _path(self, type_, stop=lambda type_: isinstance(type_, str)):
        text, places = "", []
        while not stop(type_):
            if isinstance(type_, str):
                return None
            if isinstance(type_, Struct):
                number = self.random.randrange(len(type_.members))
                text, type_ = f"{text}.m{number}", type_.members[number]
            else:
                index, number = self._index(type_.count)
                text, type_ = f"{text}[{index}]", type_.element
            places.append(number)
        return text, places, type_

    def _variable(self, *, written):
        names = [
            n for n, (*_, storage) in self.variables.items() if storage != "push" or not written
        ]
        name = self.random.choice(names)
        return name, *self.variables[name]

    def _load(self):
        name, type_, values, _ = self._variable(written=False)
        path, places, _ = self._path(type_)
        self._result(name + path, element(values, places))

    def _store(self):
        name, type_, values, _ = self._variable(written=True)
        path, places, _ = self._path(type_)
        value = self.random.randrange(1000)
        self.body.append(f"{name}{path} = {value};")
        assign(values, places, value)

    def _call(self):
        """Pass an array of numbers to a function that reads it, or writes it."""
        written = self.random.random() < 0.5
        name, type_, values, storage = self._variable(written=written)
        choice = self._path(type_, lambda t: isinstance(t, Sequence) and isinstance(t.element, str))
        if choice is None:
            return
        path, places, array = choice
        if storage == "push":
            written = False
        index, number = self._index(array.count)
        function = f"f{len(self.functions)}"
        if written:
            value = self.random.randrange(1000)
            self.functions.append(
                f"void {function}(inout {array.glsl} a, uint i) {{ a[i] = {value}; }}"
            )
            self.body.append(f"{function}({name}{path}, {index});")
            assign(values, [*places, number], value)
        else:
            self.functions.append(
                f"uint {function}({array.glsl} a, uint i) {{ return uint(a[i]); }}"
            )
            self._result(f"{function}({name}{path}, {index})", element(values, [*places, number]))

    def _result(self, text, value):
        self.body.append(f"results[{len(self.results)}] = uint({text});")
        self.results.append(value)


def glsl(type_):
    return type_ if isinstance(type_, str) else type_.glsl


def made(type_):
    if isinstance(type_, str):
        return 0
    if isinstance(type_, Struct):
        return [made(member) for member in type_.members]
    return [made(type_.element) for _ in range(type_.count)]


def leaves(type_, values, path=""):
    if isinstance(type_, str):
        yield path, values
    elif isinstance(type_, Struct):
        for number, member in enumerate(type_.members):
            yield from leaves(member, values[number], f"{path}.m{number}")
    else:
        for number in range(type_.count):
            yield from leaves(type_.element, values[number], f"{path}[{number}]")


def constant_path(path):
    return [int(part.strip("m]")) for part in path.replace("[", ".").split(".")[1:]]


def element(values, places):
    for place in places:
        values = values[place]
    return values


def assign(values, places, value):
    element(values, places[:-1])[places[-1]] = value


def check(device, seed):
    program = Program(seed)
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
        pushed = program.pushed if shader.shader.module.push_nbytes else []
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
    assert re.search(rf"{limit} = OpConstant %22 {last}\n", listing)
