"""``vkops debug validate`` with the installed layer, for right and wrong programs."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import VULKAN, wait_for_end

from vkops.cli import main

pytestmark = [pytest.mark.posix("named pipes"), pytest.mark.system("VkLayer_khronos_validation")]

EXAMPLES = Path(__file__).parents[2] / "examples"
SILENT = "The validation layer reported nothing"

SHADER = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) buffer Target { uint target[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint x = source[i + READ];
    if (i == 2u)
        target[i + WRITE] = x;
    target[i] = x;
}
"""

# A program without vkops; its arguments choose its errors.
PROGRAM = """
import sys
import vulkan as vk
instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(
    pApplicationInfo=vk.VkApplicationInfo(apiVersion=vk.VK_MAKE_VERSION(1, 1, 0))), None)
adapter = next(a for a in vk.vkEnumeratePhysicalDevices(instance)
               if vk.vkGetPhysicalDeviceProperties(a).deviceName == sys.argv[1])
queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
device = vk.vkCreateDevice(adapter, vk.VkDeviceCreateInfo(pQueueCreateInfos=[queue]), None)
STORAGE = vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT

def race():
    buffer = vk.vkCreateBuffer(device, vk.VkBufferCreateInfo(size=256, usage=STORAGE), None)
    needs = vk.vkGetBufferMemoryRequirements(device, buffer)
    number = next(n for n in range(32) if needs.memoryTypeBits >> n & 1)
    memory = vk.vkAllocateMemory(device, vk.VkMemoryAllocateInfo(
        allocationSize=needs.size, memoryTypeIndex=number), None)
    vk.vkBindBufferMemory(device, buffer, memory, 0)
    pool = vk.vkCreateCommandPool(device, vk.VkCommandPoolCreateInfo(queueFamilyIndex=0), None)
    commands, = vk.vkAllocateCommandBuffers(device, vk.VkCommandBufferAllocateInfo(
        commandPool=pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1))
    vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
    vk.vkCmdFillBuffer(commands, buffer, 0, 256, 1)
    vk.vkCmdFillBuffer(commands, buffer, 0, 256, 2)  # no barrier between
    vk.vkEndCommandBuffer(commands)
    vk.vkDestroyCommandPool(device, pool, None)
    vk.vkDestroyBuffer(device, buffer, None)
    vk.vkFreeMemory(device, memory, None)

def leak():
    vk.vkCreateCommandPool(device, vk.VkCommandPoolCreateInfo(queueFamilyIndex=0), None)

for word in sys.argv[2:]:
    {"race": race, "leak": leak}.get(word, lambda: None)()
vk.vkDestroyDevice(device, None)
vk.vkDestroyInstance(instance, None)
sys.exit(7 if "seven" in sys.argv else 0)
"""


@pytest.fixture
def validate(refuse, tmp_path, monkeypatch, capfd):
    """Run the command; return its status, its unwrapped output, and standard error."""
    np.save(tmp_path / "a.npy", np.arange(4, dtype=np.uint32))
    (tmp_path / "a.comp").write_text(SHADER)
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "4000")
    monkeypatch.delenv("VKOPS_EXPECT", raising=False)

    def run(*arguments):
        status = main(["debug", "validate", *arguments])
        seen = capfd.readouterr()
        refuse(status, seen.out)
        return status, seen.out, seen.err

    return run


def shader(adapter, read, write):
    wrong = ["-D", f"READ={read}u", "-D", f"WRITE={write}u"]
    return ["a.comp", "--bind", "a.npy", "--out", "uint32:4", "-a", adapter.name, *wrong]


def found(out):
    """Return the first lines of the paragraphs: severity, id and location."""
    return re.findall(r"^(?:Error|Warning) \S+.*?(?= *$)", out, re.MULTILINE)


def test_a_shader_within_its_buffers(validate, adapter):
    status, out, err = validate(*shader(adapter, 0, 0))
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == SILENT
    assert "Output 'Target' [4]: 0, 1, 2, 3" in out


@pytest.mark.parametrize(
    ("read", "write", "line", "invocation"),
    [(0, 1000, 9, "2, 0, 0"), (1000, 0, 7, "[0-3], 0, 0")],
    ids=["write", "read"],
)
def test_accesses_out_of_bounds(validate, adapter, read, write, line, invocation):
    status, out, err = validate(*shader(adapter, read, write))
    assert status == 1
    assert re.fullmatch(r"The validation layer has \d+ messages?\n", err)
    (head,) = found(out)
    place = re.fullmatch(
        rf"Error VUID-vkCmdDispatch-\S+ in a\.comp at a\.comp:(\d+)( or shortly before)? "
        rf"by invocation {invocation}(?: \(4 times\))?",
        head,
    )
    assert place, head
    assert int(place[1]) == line or (place[2] and line <= int(place[1]) <= line + 2)
    assert "access out of bounds" in out


@pytest.mark.parametrize("example", ["split.json", "shader.json"])
def test_examples_are_clean(validate, adapter, example):
    status, out, err = validate(str(EXAMPLES / example), "-a", adapter.name)
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == SILENT


def program(adapter, *words):
    return [sys.executable, "program.py", adapter.name, *words]


@VULKAN
def test_another_program(validate, adapter):
    status, out, err = validate(*program(adapter, "--help"))  # its own option, not ours
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if not line.startswith("Known, ")] == [SILENT]


@VULKAN
@pytest.mark.parametrize(
    ("word", "id"),
    [("leak", "VUID-vkDestroyDevice-device-"), ("race", "SYNC-HAZARD-WRITE-AFTER-WRITE")],
)
def test_wrong_use_by_another_program(validate, adapter, word, id):
    status, out, err = validate(*program(adapter, word, "seven"))
    assert (status, err) == (1, "The validation layer has 1 message\n")
    (head,) = found(out)
    assert id in head


@pytest.mark.parametrize(("offset", "end"), [(0, 0), (0, 3), (1000, 0)])
def test_a_python_program(validate, adapter, tmp_path, offset, end):
    """Its own status is that of the command unless the layer has messages, which have lines."""
    source = SHADER.replace("WRITE", str(offset)).replace("READ", "0")
    (tmp_path / "own.py").write_text(
        "import sys, numpy, vkops\n"
        f"with vkops.Device({adapter.index}) as device:\n"
        f"    shader = device.compile_shader({source!r})\n"
        "    x = device.tensor(numpy.arange(4, dtype='u4'))\n"
        "    shader(x, y := device.tensor(numpy.zeros(4, 'u4')), threads=4)\n"
        "    print(sys.argv[1:], y.numpy())\n"
        f"sys.exit({end})\n"
    )
    status, out, err = validate("own.py", "--rows", "-h")
    assert "['--rows', '-h'] [0 1 2 3]\n" in out
    if offset:
        assert (status, err) == (1, "The validation layer has 1 message\n")
        (head,) = found(out)
        assert re.search(r" at <source>:(9|10|11)( or shortly before)? by invocation 2, 0, 0", head)
    else:
        assert (status, err) == (end, "")
        assert (SILENT in out) == (end == 0)


@VULKAN
def test_status_of_another_program(validate, adapter):
    status, out, err = validate(*program(adapter, "seven"))
    assert (status, err) == (7, "")
    assert SILENT not in out
    assert validate("sh", "-c", "exit 5")[::2] == (5, "")
    assert validate("sh", "-c", "kill -KILL $$")[::2] == (
        128 + signal.SIGKILL,
        "sh: killed by SIGKILL\n",
    )


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_also_end_the_program(name):
    script = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    command = [sys.executable, "-m", "vkops", "debug", "validate", sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        child = int(process.stdout.readline())
        process.send_signal(signal.Signals[name])
        assert process.wait(60) == 128 + signal.Signals[name]
    wait_for_end(child)


@VULKAN
def test_children_of_children_are_seen(validate, adapter):
    command = " ".join(f"'{word}'" for word in program(adapter, "leak"))
    status, out, err = validate("sh", "-c", f'sh -c "{command}"; true')
    assert (status, err) == (1, "The validation layer has 1 message\n")
    (head,) = found(out)
    assert "VUID-vkDestroyDevice-device-" in head


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["true"], "the validation layer was not loaded: the program does not use Vulkan"),
        (["./none"], "./none: cannot be started: No such file or directory"),
        (["./a.npy"], "./a.npy: cannot be started: Permission denied"),
        (["a.comp", "-DREAD=0u", "-DWRITE=0u", "--out", "uint32:x"], "uint32:x: must be "),
    ],
)
def test_programs_that_cannot_be_validated(validate, adapter, command, message):
    status, out, err = validate(*command, "-a", adapter.name)
    assert status == 1
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert SILENT not in out


@VULKAN
def test_invalid_spirv_of_another_program(validate, adapter, tmp_path):
    """vkops refuses invalid SPIR-V, so another program passes it to Vulkan."""
    text = PROGRAM.replace(
        "def leak():",
        "def code():\n"
        "    words = [0x07230203, 0x00010000, 0, 1, 0, 0x0002FFFF, 0]\n"
        "    code = b''.join(w.to_bytes(4, 'little') for w in words)\n"
        "    info = vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)\n"
        "    module = vk.vkCreateShaderModule(device, info, None)\n"
        "    vk.vkDestroyShaderModule(device, module, None)\n\ndef leak():",
    ).replace('"leak": leak', '"leak": leak, "code": code')
    (tmp_path / "program.py").write_text(text)
    status, out, _ = validate(*program(adapter, "code"))
    assert status != 0
    assert any("spirv" in head.lower() or "pCode" in head for head in found(out))
