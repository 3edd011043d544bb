"""DxDispatch models that run: what is in their resources after all, against the NumPy executor."""

from __future__ import annotations

import json
from pathlib import Path

import models
import numpy as np

from fuzz import target
from fuzz.choices import Choices
from fuzz.device import opened
from fuzz.targets.json_text import prepared, sound
from fuzz.targets.json_tree import changed, parsed
from vkops.dxdispatch.json_model import (
    BufferResource,
    DmlDispatchable,
    PrintCommand,
    WriteFileCommand,
)
from vkops.dxdispatch.model_checks import BoundDispatch
from vkops.plan import execute
from vkops.runner.model_execution import run

MAX_BYTES = 4 << 20


class Target(target.Target):
    name = "json_run"
    share = 8

    def __init__(self):
        self.device = opened()
        self.bases = [models.SPLIT, *parsed(sound())]
        self.file = Path("m.json")

    def check(self, data):
        model = changed(Choices(data), self.bases)
        names = _with_files(model)
        self.file.write_text(json.dumps(model))
        ready = prepared(self.file)
        found = ready.model.resources.values()
        buffers = [resource for resource in found if isinstance(resource, BufferResource)]
        if sum(buffer.size for buffer in buffers) > MAX_BYTES:
            return
        expected = _simulated(ready, buffers)
        run(ready, self.device)
        for name, file in names.items() if expected else ():
            got = np.fromfile(file, np.uint8)
            target.require(np.array_equal(got, expected[name]), f"resource {name!r} is wrong")


def _with_files(model):
    """Let a model write all its resources; says which into what file."""
    resources, commands = model.get("resources"), model.get("commands")
    if not isinstance(resources, dict) or not isinstance(commands, list):
        return {}
    names = {name: f"fuzz{i}.bin" for i, name in enumerate(resources)}
    for name, file in names.items():
        commands.append({"type": "writeFile", "resource": name, "targetPath": file})
    return names


def _simulated(ready, buffers):
    """The bytes of each resource in the end; none where not only operators run."""
    if not all(isinstance(d, DmlDispatchable) for d in ready.model.dispatchables.values()):
        return {}
    content = {}
    for buffer in buffers:
        content[buffer.name] = np.zeros(buffer.size, np.uint8)
        values = b"".join(buffer.values.chunks())
        content[buffer.name][: len(values)] = np.frombuffer(values, np.uint8)

    def taken(slots):
        """The bytes that each slot is bound to; a resource is padded to whole words."""
        return [
            slot and content[slot.resource.name][slot.offset :]
            for slot in slots
        ]  # fmt: skip

    owned = {
        name: [array if array is None else array.copy() for array in taken(slots)]
        for name, slots in ready.initial_inputs.items()
    }
    for command in ready.commands:
        if not isinstance(command, BoundDispatch):
            assert isinstance(command, (PrintCommand, WriteFileCommand))
            continue
        dispatchable = command.command.dispatchable
        inputs = taken(command.inputs)
        kept = owned.get(dispatchable.name, [None] * len(inputs))
        inputs = [b if a is None else a for a, b in zip(inputs, kept, strict=True)]
        execute(dispatchable.desc.lower(), inputs, taken(command.outputs))
    return content
