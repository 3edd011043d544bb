"""The dispatches of kernels, run in the interpreter with the checks of ``vkops debug check``."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from vkops.debug import check
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.gpu.run.shader_dispatch import PreparedCall


def contents(call, memory):
    """Yield the bytes of each slot, one array for all that have the same."""
    parts = [(slot.start, slot.nbytes) for slot in call.slots]
    arrays = {}
    for held, (start, size) in zip(memory, parts, strict=True):
        content = held if isinstance(held, bytes) else held.read(start, size)
        yield arrays.setdefault((id(held), start, size), np.frombuffer(content, np.uint8).copy())


@contextmanager
def interpreted(subgroup_size):
    """Run kernels in the interpreter in place of the device, and require that nothing is found.

    Yields a list of their shaders.
    """
    shaders = []

    class Interpreted:
        def __init__(self, device, shader, pipeline, slots):
            self.shader, self.slots = shader, slots

        def run(self, device, memory, groups, push):
            before = [*contents(self, memory)]
            report = check(
                self.shader, before, groups=groups, push=push, subgroup_size=subgroup_size
            )
            assert report.ok, f"{self.shader.name}: {report}"
            for slot, held in zip(self.slots, memory, strict=True):
                if slot.is_written:
                    held.write(report.buffers[slot.block.name], slot.start)
            shaders.append(self.shader)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ElementwiseKernel, "_signature", lambda *_: None)  # calls kept from before
        patch.setattr("vkops.elementwise.kernel.PreparedCall", Interpreted)
        patch.setattr("vkops.elementwise.kernel.make_pipeline", lambda *_: None)
        yield shaders


@contextmanager
def checked(subgroup_sizes=(8, 32, 64), **options):
    """Require of all shaders that run meanwhile that nothing is found, and the same bytes.

    Yields a list of their names. ``options`` are those of ``check``.
    """
    names, run = [], PreparedCall.run

    def run_and_check(call, device, memory, groups, push):
        before = [*contents(call, memory)]
        run(call, device, memory, groups, push)
        expected, shader = [*contents(call, memory)], call.shader
        for size in subgroup_sizes:
            report = check(shader, before, groups=groups, push=push, subgroup_size=size, **options)
            assert report.ok, f"{shader.name}: {report}"
            for block, held in zip(shader.blocks, expected, strict=True):
                result = report.buffers.get(block.name, held)
                np.testing.assert_array_equal(result.view(np.uint8), held, err_msg=shader.name)
        names.append(shader.name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ElementwiseKernel, "_signature", lambda *_: None)  # calls kept from before
        patch.setattr(PreparedCall, "run", run_and_check)
        yield names
