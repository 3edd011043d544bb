"""Let bodies attract each other on the device, and compare with NumPy.

Usage: python examples/n_body.py [STEPS]

A step is two dispatches: of velocities, for which a workgroup loads the bodies into shared memory
tile by tile, and of positions. One step is recorded, and run again and again.
"""

import sys

import numpy as np

import vkops

SOURCE = """#version 450
#define TILE 64
layout(local_size_x = TILE) in;
layout(std430, binding = 0) BODIES buffer Bodies { vec4 bodies[]; };  // position and mass
layout(std430, binding = 1) VELOCITIES buffer Velocities { vec4 velocities[]; };
layout(push_constant) uniform Push { float dt; };
#ifdef MOVE
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < bodies.length()) bodies[i].xyz += dt * velocities[i].xyz;
}
#else
shared vec4 tile[TILE];
void main() {
    uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationID.x, count = bodies.length();
    vec3 position = bodies[min(i, count - 1)].xyz, acceleration = vec3(0);
    for (uint start = 0; start < count; start += TILE) {
        tile[own] = start + own < count ? bodies[start + own] : vec4(0);
        barrier();
        for (uint k = 0; k < TILE; ++k) {
            vec3 away = tile[k].xyz - position;
            float squared = dot(away, away) + 0.01;
            acceleration += tile[k].w / (squared * sqrt(squared)) * away;
        }
        barrier();
    }
    if (i < count) velocities[i].xyz += dt * acceleration;
}
#endif
"""


def step_with_numpy(bodies, velocities, dt):
    away = bodies[None, :, :3] - bodies[:, None, :3]
    squared = (away**2).sum(axis=2) + 0.01
    velocities[:, :3] += dt * ((bodies[:, 3] / squared**1.5)[:, None, :] @ away)[:, 0]
    bodies[:, :3] += dt * velocities[:, :3]


device = vkops.Device()
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50
random = np.random.default_rng(0)
bodies = random.normal(size=(300, 4)).astype(np.float32)
bodies[:, 3] = 1 / len(bodies)
velocities = np.zeros_like(bodies)
dt = 0.01

attract = device.compile_shader(
    SOURCE, defines={"ATTRACT": 1, "BODIES": "readonly", "VELOCITIES": ""}
)
move = device.compile_shader(SOURCE, defines={"MOVE": 1, "BODIES": "", "VELOCITIES": "readonly"})
on_device = device.tensor(bodies), device.tensor(velocities)
with device.record() as step:
    for shader in (attract, move):
        shader(*on_device, dt=dt, threads=len(bodies))
for _ in range(steps):
    step.run()

expected = bodies.astype(float), velocities.astype(float)
for _ in range(steps):
    step_with_numpy(*expected, dt)
difference = np.abs(on_device[0].numpy() - expected[0]).max()
equal = difference < 1e-4
print(
    f"{steps} steps of {len(bodies)} bodies by {device.name}: at most {difference:.1e} from NumPy's"
)
sys.exit(not equal)
