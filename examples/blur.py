"""Blur a picture with a sampled image, and compare with NumPy.

Usage: python examples/blur.py [PICTURE.png [RESULT.png]]

Two passes, along the rows and along the columns, have the weights of a Gaussian on 9 texels. Each
reads the texels in pairs: a linear sampler reads between two of them, nearer to the heavier one.
"""

import sys

import numpy as np
from PIL import Image

import vkops

SOURCE = """#version 450
layout(local_size_x = 16, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D Picture;
layout(binding = 1, rgba8) writeonly uniform image2D Result;
layout(push_constant) uniform Push { vec2 direction; vec2 offsets; vec3 weights; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy), size = imageSize(Result);
    if (any(greaterThanEqual(at, size))) return;
    vec2 centre = (vec2(at) + 0.5) / size, step = direction / size;
    vec4 sum = weights[0] * textureLod(Picture, centre, 0);
    for (int i = 0; i < 2; ++i)
        sum += weights[i + 1] * (textureLod(Picture, centre + offsets[i] * step, 0)
                                 + textureLod(Picture, centre - offsets[i] * step, 0));
    imageStore(Result, at, sum);
}
"""
WEIGHTS = np.array([70, 56, 28, 8, 1]) / 256  # the middle of 9 numbers of Pascal's triangle


def blurred_with_numpy(picture):
    for axis in (1, 0):
        edges = [(4, 4) if n == axis else (0, 0) for n in range(picture.ndim)]
        padded, size = np.pad(picture, edges, "edge"), picture.shape[axis]
        parts = [np.take(padded, range(n, n + size), axis) for n in range(9)]
        picture = sum(WEIGHTS[abs(n - 4)] * part for n, part in enumerate(parts))
    return picture


def rings(height, width):
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    distance = np.hypot(x, y)
    colours = [np.sin(30 * distance) > 0, distance < 0.7, (x > 0) == (y > 0)]
    return 255 * np.stack(colours, axis=-1).astype(np.uint8)


device = vkops.Device()
pixels = (
    np.asarray(Image.open(sys.argv[1]).convert("RGB")) if len(sys.argv) > 1 else rings(120, 160)
)
height, width, _ = pixels.shape

pairs = WEIGHTS[1::2] + WEIGHTS[2::2]
offsets = (WEIGHTS[1::2] * [1, 3] + WEIGHTS[2::2] * [2, 4]) / pairs
push = {"offsets": offsets, "weights": [WEIGHTS[0], *pairs]}
blur = device.compile_shader(SOURCE)
picture = device.image(pixels)
for direction in ((1, 0), (0, 1)):
    picture = blur(picture, direction=direction, out="Picture", threads=(width, height), **push)

result = picture.numpy()
if len(sys.argv) > 2:
    Image.fromarray(result).save(sys.argv[2])
difference = np.abs(result - blurred_with_numpy(pixels)).max()
equal = difference <= 3  # samplers have weights of some 8 bits, and each pass rounds
print(f"{height} x {width} pixels, at most {difference:.2f} of 255 from NumPy")
print(f"blurred by {device.name}: {'as NumPy' if equal else 'WRONG'}")
sys.exit(not equal)
