"""Users' shaders of vkops, measured against Kompute alone and wgpu on the same device.

Each library has a module with a class ``Contender``, whose members are those of ``Library``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Runs = Mapping[str, Callable[[], Any]]
"""The functions that are timed, by the names of the variants."""

TINY = 64
LARGE = 16 << 20
BODIES = 256
STEPS = 100
GROUP = 64
"""Invocations of a workgroup of bodies."""

Groups = tuple[int, int, int]
ONE_GROUP: Groups = (1, 1, 1)
LARGE_GROUPS: Groups = (1 << 15, LARGE >> 23, 1)
"""Workgroups of 256 elements of the large workload: most devices allow 65,535 in a dimension."""

FACTOR = 0.5

AXPY_GLSL = f"""#version 450
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer X {{ float x[]; }};
layout(std430, binding = 1) buffer Y {{ float y[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.y * gl_NumWorkGroups.x * 256u + gl_GlobalInvocationID.x;
    if (i < y.length()) y[i] = {FACTOR} * x[i] + y[i];
}}"""

AXPY_WGSL = f"""
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {{
    let i = id.y * groups.x * 256u + id.x;
    if (i < arrayLength(&y)) {{ y[i] = {FACTOR} * x[i] + y[i]; }}
}}"""

# A body is its position, its mass, its velocity and a number that is not used.
NBODY_GLSL = f"""#version 450
layout(local_size_x = {GROUP}) in;
struct Body {{ vec4 position; vec4 velocity; }};
layout(std430, binding = 0) readonly buffer Before {{ Body before[]; }};
layout(std430, binding = 1) writeonly buffer After {{ Body after[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x;
    if (i >= before.length()) return;
    Body body = before[i];
    vec3 force = vec3(0.0);
    for (uint k = 0u; k < before.length(); ++k) {{
        vec4 other = before[k].position;
        vec3 way = other.xyz - body.position.xyz;
        float near = inversesqrt(dot(way, way) + 0.01);
        force += other.w * near * near * near * way;
    }}
    body.velocity.xyz += 0.001 * force;
    body.position.xyz += 0.001 * body.velocity.xyz;
    after[i] = body;
}}"""

NBODY_WGSL = f"""
struct Body {{ position: vec4f, velocity: vec4f }};
@group(0) @binding(0) var<storage, read> before: array<Body>;
@group(0) @binding(1) var<storage, read_write> after: array<Body>;
@compute @workgroup_size({GROUP})
fn main(@builtin(global_invocation_id) id: vec3u) {{
    let i = id.x;
    if (i >= arrayLength(&before)) {{ return; }}
    var body = before[i];
    var force = vec3f(0.0);
    for (var k = 0u; k < arrayLength(&before); k++) {{
        let other = before[k].position;
        let way = other.xyz - body.position.xyz;
        let near = inverseSqrt(dot(way, way) + 0.01);
        force += other.w * near * near * near * way;
    }}
    body.velocity += vec4f(0.001 * force, 0.0);
    body.position += vec4f(0.001 * body.velocity.xyz, 0.0);
    after[i] = body;
}}"""


class Library(Protocol):
    """A library that runs shaders. Each method prepares a workload and returns what is timed."""

    def axpy(self, x: Array, y: Array, groups: Groups) -> tuple[Runs, Callable[[], Array]]:
        """Prepare y = FACTOR * x + y; the function returns y."""

    def nbody(self, bodies: Array) -> tuple[Runs, Callable[[], Array]]:
        """Prepare STEPS steps, each of which depends on the one before; and what returns them."""

    def compilation(self) -> Runs:
        """Prepare what makes a shader ready that this process made ready before."""


def axpy(x: Array, y: Array) -> Array:
    """The result of one run."""
    return np.asarray(np.float32(FACTOR) * x + y, np.float32)


def nbody(bodies: Array, steps: int) -> Array:
    """The result of some steps, in double precision."""
    position, mass = bodies[:, :3].astype(np.float64), bodies[:, 3].astype(np.float64)
    velocity = bodies[:, 4:7].astype(np.float64)
    for _ in range(steps):
        way = position[None] - position[:, None]
        near = ((way**2).sum(-1) + 0.01) ** -1.5
        velocity = velocity + 0.001 * ((mass * near)[..., None] * way).sum(1)
        position = position + 0.001 * velocity
    result: Array = bodies.copy()
    result[:, :3], result[:, 4:7] = position, velocity
    return result
