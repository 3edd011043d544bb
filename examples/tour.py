"""Move data on this machine's Vulkan device, and compare each result with NumPy's.

Then run all models in this folder, and print a summary. Usage: python examples/tour.py
"""

import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import vkops
from vkops.cli import main

x = np.arange(2048 * 1024, dtype=np.float32).reshape(2048, 1024)  # 8 MiB
rows = np.random.default_rng(0).permutation(len(x))
edges = ((1, 1), (1, 1))

# What it is called, with vkops, and with NumPy.
MOVEMENTS = [
    ("split", lambda t: vkops.split(t, [512, 1536]), lambda a: np.split(a, [512])),
    ("join", lambda t: vkops.join([t, t], axis=1), lambda a: np.concatenate([a, a], axis=1)),
    ("slice", lambda t: vkops.slice(t, [2047, 5], [1024, 9], [-2, 1]), lambda a: a[::-2, 5:14]),
    ("transpose", lambda t: vkops.join([t.T, t.T]), lambda a: np.concatenate([a.T, a.T])),
    ("pad", lambda t: vkops.pad(t, edges, mode="reflect"), lambda a: np.pad(a, edges, "reflect")),
    ("roll", lambda t: vkops.roll(t, 100, axis=1), lambda a: np.roll(a, 100, axis=1)),
    ("tile", lambda t: vkops.tile(t, (2, 1)), lambda a: np.tile(a, (2, 1))),
    ("gather rows", lambda t: vkops.take(t, rows, axis=0), lambda a: a[rows]),
]


def arrays(result):
    """Return the arrays of a result, which is one tensor or several."""
    return [np.asarray(part) for part in (result if isinstance(result, list) else [result])]


device = vkops.Device()
tensor = device.tensor(x)
wrong = []
print("On a table of 2048 x 1024 numbers:")
for name, with_vkops, with_numpy in MOVEMENTS:
    pairs = zip(arrays(with_vkops(tensor)), arrays(with_numpy(x)), strict=True)
    equal = all(np.array_equal(ours, theirs) for ours, theirs in pairs)
    wrong += [] if equal else [name]
    print(f"  {name:<12} {'equal to the result of NumPy' if equal else 'WRONG'}")

models = sorted(Path(__file__).parent.glob("*.json"))
if find_spec("onnx") is None:  # pip install 'vkops[onnx]'
    models = [path for path in models if ".onnx" not in path.read_text()]
failed = []
for path in models:
    with TemporaryDirectory() as outputs, redirect_stdout(StringIO()):
        arguments = ["--dml_feature_level", "6.4", "-a", device.name, "--output_path", outputs]
        failed += [path.name] if main(["run", str(path), *arguments]) else []

gpu = "a CPU driver: there is no GPU" if device.info.type == "CPU" else device.info.type
print(f"""
Summary
  where    {device.name}, Vulkan {device.info.api_version} ({gpu})
  results  {len(MOVEMENTS) - len(wrong)} of {len(MOVEMENTS)} movements give the bytes of NumPy
  models   {len(models) - len(failed)} of {len(models)} example models ran, such as {models[0].name}
  next     examples/README.md explains the models; `vkops bench` measures the speed""")
for name in failed:
    print(f"  FAILED   {name}")
sys.exit(bool(wrong or failed))
