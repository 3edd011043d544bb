"""Draw the Mandelbrot set into an image on the device, compare with NumPy, and write a PNG file.

Usage: python examples/mandelbrot.py [FILE.png] [HEIGHT]

The shader stores colours in an image of bytes: `rgba8` converts numbers from 0 to 1. `precise`
keeps the device from fusing operations, so that the numbers of iterations are those of NumPy.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import vkops

SOURCE = """#version 450
layout(local_size_x = 16, local_size_y = 8) in;
layout(binding = 0, rgba8) writeonly uniform image2D Picture;
layout(push_constant) uniform Push { vec2 corner; float pixel; int limit; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(Picture)))) return;
    precise vec2 c = corner + pixel * vec2(at), z = vec2(0);
    precise float size = 0;
    int n = 0;
    for (; n < limit; ++n) {
        precise float real = z.x * z.x - z.y * z.y;
        precise float twice = 2 * z.x * z.y;
        z = vec2(real + c.x, twice + c.y);
        size = z.x * z.x + z.y * z.y;
        if (size > 4) break;
    }
    float t = float(n) / float(limit);
    vec3 colour = n == limit ? vec3(0) : vec3(sqrt(t), t, 0.5 - 0.5 * t);
    imageStore(Picture, at, vec4(colour, 1));
}
"""


def iterations_with_numpy(corner, pixel, height, width, limit):
    x = (np.float32(corner[0]) + pixel * np.arange(width, dtype=np.float32))[None]
    y = (np.float32(corner[1]) + pixel * np.arange(height, dtype=np.float32))[:, None]
    a, b = np.zeros((2, height, width), np.float32)
    counts = np.full((height, width), limit)
    for n in range(limit):
        a, b = a * a - b * b + x, 2 * a * b + y
        counts[(a * a + b * b > 4) & (counts == limit)] = n
        a, b = (np.where(counts == limit, each, 0) for each in (a, b))
    return counts


device = vkops.Device()
file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("mandelbrot.png")
height = int(sys.argv[2]) if len(sys.argv) > 2 else 480
width, limit = height * 3 // 2, 100
pixel = np.float32(2.5 / height)
corner = -2.3, -1.25

draw = device.compile_shader(SOURCE)
shape = (height, width, 4)
push = {"corner": corner, "pixel": pixel, "limit": limit}
picture = draw(out=(shape, np.uint8), threads=(width, height), **push).numpy()
Image.fromarray(picture).save(file)

share = iterations_with_numpy(corner, pixel, height, width, limit) / limit
colours = [np.sqrt(share), share, 0.5 - 0.5 * share]
colours = [np.where(share == 1, 0, each) for each in colours]
expected = np.stack([*colours, np.ones_like(share)], axis=-1) * 255
equal = np.abs(picture - expected).max() <= 1
inside = (share == 1).mean()
print(f"{height} x {width} pixels, {inside:.1%} of them in the set: {file.resolve()}")
print(f"drawn by {device.name}: {'as NumPy' if equal else 'WRONG'}")
sys.exit(not equal)
