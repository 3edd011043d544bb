"""DxDispatch models that run: what is in their resources after all, against the NumPy executor."""

import json
from pathlib import Path

import models
import numpy as np

from fuzz import target
from fuzz.choices import Choices
from fuzz.targets.json_text import prepared, sound
from fuzz.targets.json_tree import changed, parsed
from vkops.models.operator import DmlDispatchable
from vkops.plan import execute
from vkops.runner.model_execution import run

MAX_BYTES = 4 << 20


class Target(target.Target):
    def __init__(self):
        self.device = target.opened()
        self.bases = [models.SPLIT, *parsed(sound())]
        self.file = Path("m.json")

    def check(self, data):
        model = changed(Choices(data), self.bases)
        names = _with_files(model)
        self.file.write_text(json.dumps(model))
        ready = prepared(self.file)
        buffers = ready.model.resources.buffers
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
        values = b"".join(buffer.values.pieces())
        content[buffer.name][: len(values)] = np.frombuffer(values, np.uint8)

    def taken(tensors):
        """The bytes that each tensor is bound to; a resource is padded to whole words."""
        sources = [tensor.source for tensor in tensors]
        return [each and content[each.resource.name][each.offset :] for each in sources]

    owned = {
        name: [array if array is None else array.copy() for array in taken(dispatchable.owned)]
        for name, dispatchable in ready.model.dispatchables.items()
    }
    for bound in ready.dispatches:
        inputs = zip(owned[bound.dispatchable.name], taken(bound.inputs), strict=True)
        inputs = [b if a is None else a for a, b in inputs]
        execute(bound.dispatchable.desc.lower(), inputs, taken(bound.outputs))
    return content
