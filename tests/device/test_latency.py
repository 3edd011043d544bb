"""What the smallest operators cost beyond Kompute's own evaluation of a shader that does nothing.

Ratios of medians taken in turns, in a process of its own: coverage would be measured, too. The best
of three processes counts, as other programs may run beside one. Only the first and ``waited`` wait.
"""

import json

import pytest
from processes import python

pytestmark = pytest.mark.measured

MEASURE = """
import json, sys
from statistics import median
from time import perf_counter_ns
import kp, numpy as np, vkops
from vkops import dml, shaders

device = vkops.Device(int(sys.argv[1]))
manager = kp.Manager(device.info.index)
nothing = np.zeros(0, np.uint32)
tensor = manager.tensor_t(np.zeros(64, np.uint32), kp.TensorTypes.host)
spirv = shaders.compile("#version 450\\nlayout(local_size_x = 1) in;\\nvoid main() {}")
algorithm = manager.algorithm([tensor], spirv, [1, 1, 1], nothing, nothing)
empty = manager.sequence().record(kp.OpAlgoDispatch(algorithm))

x = device.tensor(np.arange(12, dtype=np.float32).reshape(1, 1, 6, 2))
parts = vkops.split(x, [2, 1, 3], 2)
descs = [dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, t.shape) for t in (x, *parts)]
desc = dml.SplitOperatorDesc(descs[0], descs[1:], axis=2)
bound = device.compile_operator(device.create_operator(desc)).bind([x], parts)

def waited():
    bound.dispatch()
    device.synchronize()

works = {
    "empty": empty.eval,
    "waited": waited,
    "bound": bound.dispatch,
    "split": lambda: vkops.split(x, [2, 1, 3], 2),
    "join": lambda: vkops.join(parts, 2),
    "slice": lambda: vkops.slice(x, [0, 0, 1, 0], [1, 1, 3, 2]),
}
rounds = []
for _ in range(9):
    times = {}
    for name, work in works.items():
        samples = []
        for _ in range(150):
            start = perf_counter_ns()
            work()
            samples.append(perf_counter_ns() - start)
        device.synchronize()
        times[name] = median(samples)
    rounds.append(times)
print(json.dumps({n: median(t[n] / t["empty"] for t in rounds) for n in works}))
"""


def test_small_operators_cost_little_more_than_an_empty_dispatch(adapter):
    tries = [json.loads(python("-c", MEASURE, adapter.index)) for _ in range(3)]
    assert min(ratios["waited"] for ratios in tries) < 2.2, tries
    assert min(ratios["bound"] for ratios in tries) < 1.1, tries
    assert min(max(r["split"], r["join"], r["slice"]) for r in tries) < 3, tries


OPERATOR = """
import json, sys
from time import process_time
import numpy as np, vkops

device = vkops.Device(int(sys.argv[1]))
x, y = device.tensor(np.ones(64, np.float32)), device.tensor(np.ones(64, np.float32))
shader = device.compile_shader('''#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Y { float y[]; };
layout(binding = 2) writeonly buffer Z { float z[]; };
void main() { uint i = gl_GlobalInvocationID.x; z[i] = x[i] + y[i]; }''')

def add():
    return x + y

def call():
    return shader(x, y, vkops.empty(64, dtype="float32", device=device), groups=1)

best = {add: 1e9, call: 1e9}
for _ in range(12):
    for work in best:
        work()
        device.synchronize()
        start = process_time()
        for _ in range(300):
            work()
        best[work] = min(best[work], process_time() - start)
print(json.dumps(best[add] / best[call]))
"""


def test_an_operator_costs_what_a_call_of_a_shader_costs(adapter):
    """Of the process's own time; both make a tensor for the result."""
    ratios = [json.loads(python("-c", OPERATOR, adapter.index)) for _ in range(2)]
    assert min(ratios) < 1.3, ratios
