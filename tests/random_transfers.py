"""Random programs of transfers and dispatches on an imitated device that has a queue for transfers.

The layer holds submissions back by chance, so that those of one queue overtake those of the other where
no semaphore forbids it: tests/device/test_transfer_queue.py runs some programs. Run more of them with

    python tests/random_transfers.py COUNT [FIRST]
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

PROGRAM = """
import random
double = device.compile_shader('''#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < data.length()) data[i] = data[i] * 3u + i; }''')
SIZE = 40_000  # elements: more bytes than are copied as a part of the commands

def one(seed):
    chance = random.Random(seed)
    layer().reorder(seed * 2 + 1)
    tensors, arrays, programs, pinned = [], [], [], device.pinned(SIZE, "uint32")

    def made(array):
        tensors.append(device.tensor(array)), arrays.append(array.copy())
    def check(k):
        assert (tensors[k].numpy() == arrays[k]).all(), (seed, k)
    def work(k):
        double(tensors[k], threads=SIZE)
        with np.errstate(over="ignore"):
            arrays[k] = arrays[k] * np.uint32(3) + np.arange(SIZE, dtype=np.uint32)
    made(np.arange(SIZE, dtype=np.uint32))
    event = device.event()
    for step in range(chance.randint(5, 25)):
        k = chance.randrange(len(tensors))
        other = chance.randrange(len(tensors))
        what = chance.choice("upload upload set set part work work work copy read read free pinned fetch run".split())
        value = np.random.default_rng(seed * 100 + step).integers(0, 1 << 32, SIZE, np.uint32)
        if what == "upload":
            made(value)
        elif what == "set":
            tensors[k][...] = value
            arrays[k] = value
        elif what == "part":
            first = chance.randrange(SIZE // 4)
            tensors[k][first : first + 20_000] = value[:20_000]
            arrays[k][first : first + 20_000] = value[:20_000]
        elif what == "work":
            work(k)
        elif what == "copy":
            tensors[k] = vkops.roll(tensors[other], 7)
            arrays[k] = np.roll(arrays[other], 7)
        elif what == "read":
            check(k)
        elif what == "free" and len(tensors) > 1:
            tensors.pop(k), arrays.pop(k)
        elif what == "pinned":
            event.wait()  # NumPy does not know that the device reads the array
            pinned[...] = value
            event = tensors[k].set(pinned, wait=chance.random() < 0.5) or event
            arrays[k] = value
        elif what == "fetch":
            tensors[k].numpy(out=pinned)
            assert (pinned == arrays[k]).all(), (seed, k, "pinned")
        elif what == "run":
            with device.record() as program:
                work(k)
            program.run(times=1)
    for k in range(len(tensors)):
        check(k)
"""


def environment(kind="discrete", **variables):
    """The variables of a process with such a device."""
    import imitated

    return imitated.environment(
        kind, VKOPS_TRANSFER_FAMILY="1", VKOPS_TRANSFER_QUEUE="1", **variables
    )


if __name__ == "__main__":
    import subprocess

    import imitated

    count, first = int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])
    code = (
        imitated.START
        + PROGRAM
        + f"""
for seed in range({first}, {first + count}):
    one(seed)
print({count}, "programs,", layer().reordered(), "submissions held back")
"""
    )
    command = [sys.executable, "-c", code, "0", "direct"]
    sys.exit(subprocess.run(command, env=environment()).returncode)
