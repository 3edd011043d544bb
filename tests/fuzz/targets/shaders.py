"""Shaders: SPIR-V with other words, and GLSL with other words; pipelines are made of what passes."""

import struct

from fuzz import hostile, target
from fuzz.choices import Choices
from fuzz.mutate import mutated, with_other_words
from fuzz.target import EXAMPLES
from vkops import shaders

TEXTS = [
    (EXAMPLES / "scale.comp").read_bytes(),
    b"""#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint N = 3u;
layout(std430, binding = 0) readonly buffer From { uint x[]; } from;
layout(std430, binding = 1) buffer To { uvec4 head; uint y[]; } to;
layout(binding = 2) uniform Block { uvec4 four; };
layout(push_constant) uniform Push { uint factor; float other; };
shared uint room[16];
void main() {
  uint i = gl_GlobalInvocationID.x;
  room[i % 16u] = from.x[i] * factor;
  barrier();
  if (i < N) to.y[i] = room[15u - i % 16u] + four.x;
}
""",
]
SPIRV = b"\x03\x02\x23\x07"
LARGE = 1 << 16


class Target(target.Target):
    def __init__(self):
        self.device = target.opened()
        self.modules = [shaders.compile(text.decode()) for text in TEXTS]
        self.buffer = self.device.buffer(LARGE)

    def make(self, random):
        if random.random() < 0.3:
            return with_other_words(random, random.choice(TEXTS), TEXTS)
        module = random.choice(self.modules)
        if random.random() < 0.1:
            return mutated(random, module, self.modules)
        words = list(struct.unpack(f"<{len(module) // 4}I", module))
        for _ in range(random.choice((1, 1, 2))):
            at = random.randrange(3, len(words))
            word = words[at]
            words[at] = random.choice(
                (random.randrange(40), word + 1, word ^ 1, 1 << random.randrange(32), words[at - 1])
            )
        return struct.pack(f"<{len(words)}I", *(word & 0xFFFFFFFF for word in words))

    def check(self, data):
        choices = Choices(data[::-1])
        source = data if data.startswith(SPIRV) else data.decode(errors="replace")
        constants = {}
        if choices.one_in(10):
            constants = {choices.pick([0, 1, "N", ""]): hostile.value(choices)}
        shader = self.device.compile_shader(source, constants=constants)
        buffers = {block.point: self.buffer for block in shader.shader.blocks}
        groups = hostile.value(choices) if choices.one_in(10) else [1]
        pushed = [0] * len(shader.shader.push_constants)
        # Not dispatched: what passes may write anywhere, or never end.
        with shader.bound(buffers, groups, pushed):
            pass
