"""The WGSL of a strided read: shapes and strides are constants, the origin a uniform."""

from __future__ import annotations

from math import prod

from vkops.bench.peers.pieces import Output, Source

GROUP = 64
"""Invocations of a workgroup."""

_WORDS = {4: "u32", 8: "vec2<u32>", 16: "vec4<u32>"}


def kernel(output: Output, element_size: int, across: int) -> str:
    """One invocation per element, or per word of smaller ones; ``across`` workgroups in x."""
    word = _WORDS.get(element_size, "u32")
    per_word = max(1, 4 // element_size)
    count = prod(output.shape)
    lines = [
        f"@group(0) @binding(0) var<storage, read_write> result: array<{word}>;",
        "@group(0) @binding(1) var<uniform> origin: u32;",
    ]
    lines += [
        f"@group(0) @binding({number + 2}) var<storage, read> source{number}: array<{word}>;"
        for number in range(len(output.sources))
    ]
    lines += [f"fn element(number: u32) -> {word} {{", "var rest = number;"]
    for axis in reversed(range(len(output.shape))):
        size = output.shape[axis]
        lines.append(f"let c{axis} = rest % {size}u; rest /= {size}u;")
    end = 0
    for number, source in enumerate(output.sources):
        start, end = end, end + source.length
        last = number == len(output.sources) - 1
        condition = "" if last else f"if (c{output.axis} < {end}u) "
        lines.append(f"{condition}{{ {_read(number, source, output, start, element_size)} }}")
    lines += [
        "}",
        f"@compute @workgroup_size({GROUP})",
        "fn main(@builtin(global_invocation_id) id: vec3<u32>) {",
        f"let number = id.y * {across * GROUP}u + id.x;",
        f"if (number >= {-(-count // per_word)}u) {{ return; }}",
    ]
    if per_word == 1:
        lines.append("result[number] = element(number);")
    else:
        lines += [
            "var word = 0u;",
            f"for (var k = 0u; k < {per_word}u; k++) {{",
            f"let wanted = number * {per_word}u + k;",
            f"if (wanted < {count}u) {{ word |= element(wanted) << (k * {8 * element_size}u); }}",
            "}",
            "result[number] = word;",
        ]
    lines.append("}")
    return "\n".join(lines)


def _read(number: int, source: Source, output: Output, start: int, element_size: int) -> str:
    """The source's element at the coordinates; negative strides work as numbers wrap."""
    terms = ["origin"]
    for axis, stride in enumerate(source.strides):
        at = f"(c{axis} - {start}u)" if axis == output.axis and start else f"c{axis}"
        terms.append(f"{at} * {stride % 2**32}u")
    address = " + ".join(terms)
    if element_size >= 4:
        return f"return source{number}[{address}];"
    per_word, bits = 4 // element_size, 8 * element_size
    return (
        f"let at = {address}; return (source{number}[at / {per_word}u] "
        f">> (at % {per_word}u * {bits}u)) & {2**bits - 1}u;"
    )
