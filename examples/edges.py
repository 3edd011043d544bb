"""Find the edges of a picture with a kernel from a file of Slang, and compare with NumPy.

Usage: python examples/edges.py [PICTURE.png [RESULT.png]]

Slang is compiled by `slangc`, or the package of `pip install 'vkops[slang]'`. The entry point is
generic: its name has the types that it is made for.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import vkops


def edges_with_numpy(picture):
    height, width, _ = picture.shape
    padded = np.pad(picture, [(1, 1), (1, 1), (0, 0)], "edge")
    x = [[padded[i : i + height, j : j + width] for j in range(3)] for i in range(3)]
    horizontal = x[0][2] + 2 * x[1][2] + x[2][2] - x[0][0] - 2 * x[1][0] - x[2][0]
    vertical = x[2][0] + 2 * x[2][1] + x[2][2] - x[0][0] - 2 * x[0][1] - x[0][2]
    return np.hypot(horizontal, vertical)


device = vkops.Device()
if len(sys.argv) > 1:
    pixels = np.asarray(Image.open(sys.argv[1]).convert("RGBA"))
else:
    pixels = np.random.default_rng(0).integers(0, 256, (60, 90, 4), np.uint8)
height, width, _ = pixels.shape

source = Path(__file__).with_name("edges.slang")
find = device.compile_shader(source, entry="find<Horizontal, Vertical>")
edges = find(pixels, out=(pixels.shape, np.float32), threads=(width, height)).numpy()
if len(sys.argv) > 2:
    shown = np.clip(255 * edges[..., :3], 0, 255).astype(np.uint8)
    Image.fromarray(shown).save(sys.argv[2])
equal = np.allclose(edges, edges_with_numpy(pixels / 255), atol=1e-5)
print(f"edges of {height} x {width} pixels by {device.name}: {'as NumPy' if equal else 'WRONG'}")
sys.exit(not equal)
