""".npy and .npz files: as initial values of a DxDispatch model, and as inputs of an ONNX model."""

import io
import json
from pathlib import Path

import models
import numpy as np

from fuzz import target
from fuzz.mutate import mutated
from vkops.dml import FeatureLevel
from vkops.dxdispatch import load_model, prepare
from vkops.runner import array_files

HEADS = [
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }",
    b"{'descr': '|O', 'fortran_order': True, 'shape': (%s), }",
    b"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (%s), }",
    b"{'descr': '<U4', 'fortran_order': False, 'shape': (%s), }",
    b"[" * 3000 + b"%s",
]
SIZES = [
    b"", b"2,", b"8,", b"0, 3", b"-1,", b"1 << 40,", b"9" * 30 + b",", b"65536, 65536, 65536",
    b"2L,",
]  # fmt: skip


def files():
    """Sound files, some of which vkops has no use for."""
    arrays = [np.arange(8), np.ones((2, 3), "f4", order="F"), np.array(3), np.zeros((0, 2))]
    arrays += [np.array(["a"]), *map(np.arange(8).astype, ("f2", ">i4", "u1", "?", "c8"))]

    def saved(save, *given, **named):
        save(stream := io.BytesIO(), *given, **named)
        return stream.getvalue()

    return [
        *(saved(np.save, array) for array in arrays),
        saved(np.savez, x=np.arange(3), y=np.ones(2)),
        saved(np.savez_compressed, x=np.zeros(1000)),
    ]


class Target(target.Target):
    suffix = ".npy"

    def __init__(self):
        self.files = files()
        self.paths = Path("x.npy"), Path("x.npz")
        values = {"sourcePath": "x.npy"}
        resources = {**models.SPLIT["resources"], "In": {"initialValues": values}}
        model = {**models.SPLIT, "resources": resources}
        Path("m.json").write_text(json.dumps(model))

    def make(self, random):
        data = random.choice(self.files)
        if random.random() < 0.3:
            head = random.choice(HEADS) % random.choice(SIZES) + b"\n"
            magic = b"\x93NUMPY" + bytes((random.choice((1, 1, 2, 3, 9)), 0))
            width = 2 if magic[6] == 1 else 4
            data = magic + len(head).to_bytes(width, "little") + head + random.randbytes(32)
        return mutated(random, data, self.files) if random.random() < 0.8 else data

    def check(self, data):
        kind = len(data) % 4
        if kind < 2:
            self._as_initial_values(data)
        else:
            self._as_inputs(data, self.paths[kind - 2])

    def _as_initial_values(self, data):
        self.paths[0].write_bytes(data)
        model = prepare(load_model("m.json"), FeatureLevel.LATEST).model
        resource = model.resources["In"]
        if resource.size < 1 << 20:
            result = b"".join(resource.values.pieces())
            target.require(
                len(result) == resource.values.nbytes, "not the bytes that were promised"
            )

    def _as_inputs(self, data, path):
        path.write_bytes(data)
        name = "" if path.suffix == ".npz" else "x:"
        for _, array in array_files.read(f"{name}{path}", ["x"], "the model"):
            target.require(not array.dtype.hasobject, "a pickle was loaded")
