"""Play the Game of Life on the device with two boards in turns, and compare with NumPy.

Usage: python examples/game_of_life.py [GENERATIONS]

Two generations are recorded once, from the first board to the second and back, and run again and
again.
"""

import sys

import numpy as np

import vkops

SOURCE = """#version 450
layout(local_size_x = 16, local_size_y = 8) in;
layout(std430, binding = 0) readonly buffer Board { uint board[]; };
layout(std430, binding = 1) writeonly buffer Next { uint next[]; };
layout(push_constant) uniform Push { int width, height; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy), size = ivec2(width, height);
    if (any(greaterThanEqual(at, size))) return;
    uint alive = board[at.y * width + at.x], neighbours = 0;
    for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x) {
            ivec2 other = at + ivec2(x, y);  // opposite edges are neighbours
            other += size * ivec2(lessThan(other, ivec2(0)));
            other -= size * ivec2(greaterThanEqual(other, size));
            neighbours += board[other.y * width + other.x];
        }
    neighbours -= alive;
    next[at.y * width + at.x] = uint(neighbours == 3 || (alive == 1 && neighbours == 2));
}
"""


def next_with_numpy(board):
    turns = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    neighbours = sum(np.roll(board, turn, axis=(0, 1)) for turn in turns)
    return ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(np.uint32)


device = vkops.Device()
generations = int(sys.argv[1]) if len(sys.argv) > 1 else 100
pairs = -(-generations // 2)
expected = (np.random.default_rng(0).random((60, 100)) < 0.3).astype(np.uint32)
height, width = expected.shape

life = device.compile_shader(SOURCE)
first, second = device.tensor(expected), device.tensor(np.zeros_like(expected))
with device.record() as two_generations:
    for board, following in ((first, second), (second, first)):
        life(board, following, width=width, height=height, threads=(width, height))
for _ in range(pairs):
    two_generations.run()

for _ in range(2 * pairs):
    expected = next_with_numpy(expected)
board = first.numpy()
print("\n".join("".join(" o"[cell] for cell in row) for row in board[:20, :80]))
equal = np.array_equal(board, expected)
print(f"{2 * pairs} generations by {device.name}: {'as NumPy' if equal else 'WRONG'}")
sys.exit(not equal)
