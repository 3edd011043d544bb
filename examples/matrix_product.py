"""Multiply matrices on the device, in tiles that a workgroup shares, and compare with NumPy.

Usage: python examples/matrix_product.py [SIZE]

Matrices of float16 are multiplied where the device has such numbers; the sums are float32.
"""

import sys

import numpy as np

import vkops

SOURCE = """#version 450
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : enable
#define TILE 16
layout(local_size_x = TILE, local_size_y = TILE / 2) in;
layout(std430, binding = 0) readonly buffer A { T a[]; };
layout(std430, binding = 1) readonly buffer B { T b[]; };
layout(std430, binding = 2) writeonly buffer C { T c[]; };
layout(push_constant) uniform Push { uint rows, inner, columns; };
shared float left[TILE][TILE], right[TILE][TILE];

void main() {
    uint x = gl_LocalInvocationID.x, column = gl_GlobalInvocationID.x;
    float sums[2] = { 0, 0 };  // of two rows of the tile
    for (uint start = 0; start < inner; start += TILE) {
        for (uint half_ = 0; half_ < 2; ++half_) {
            uint y = gl_LocalInvocationID.y + half_ * TILE / 2, row = gl_WorkGroupID.y * TILE + y;
            bool has_left = row < rows && start + x < inner;
            bool has_right = start + y < inner && column < columns;
            left[y][x] = has_left ? float(a[row * inner + start + x]) : 0.0;
            right[y][x] = has_right ? float(b[(start + y) * columns + column]) : 0.0;
        }
        barrier();
        for (uint half_ = 0; half_ < 2; ++half_)
            for (uint k = 0; k < TILE; ++k)
                sums[half_] += left[gl_LocalInvocationID.y + half_ * TILE / 2][k] * right[k][x];
        barrier();
    }
    for (uint half_ = 0; half_ < 2; ++half_) {
        uint row = gl_WorkGroupID.y * TILE + gl_LocalInvocationID.y + half_ * TILE / 2;
        if (row < rows && column < columns) c[row * columns + column] = T(sums[half_]);
    }
}
"""


def multiply(device, a, b):
    """Return the product of two tensors of the same data type."""
    element = {"float16": "float16_t", "float32": "float"}[str(a.dtype)]
    shader = device.compile_shader(SOURCE, defines={"T": element})
    (rows, inner), columns = a.shape, b.shape[1]
    groups = -(-columns // 16), -(-rows // 16)
    sizes = {"rows": rows, "inner": inner, "columns": columns}
    return shader(a, b, **sizes, groups=groups, out=(rows, columns))


device = vkops.Device()
size = int(sys.argv[1]) if len(sys.argv) > 1 else 512
random = np.random.default_rng(0)
a, b = random.random((size, size // 2 + 1)), random.random((size // 2 + 1, size - 1))
has_half = {"shaderFloat16", "storageBuffer16BitAccess"} <= device.features
equal = True
for dtype, tolerance in ((np.float32, 1e-5), (np.float16, 1e-2))[: 2 if has_half else 1]:
    left, right = a.astype(dtype), b.astype(dtype)
    product = multiply(device, device.tensor(left), device.tensor(right)).numpy()
    close = np.allclose(product, left.astype(float) @ right.astype(float), rtol=tolerance)
    equal &= close
    print(
        f"{np.dtype(dtype)}: {product.shape} by {device.name}: {'as NumPy' if close else 'WRONG'}"
    )
sys.exit(not equal)
