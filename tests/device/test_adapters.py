"""What the loader offers, how one is chosen, and what is said when there is none."""

import dataclasses
import re
import warnings

import processes
import pytest
from adapters import LAYERS, manifest, own_loader, refused_by_layer, without_validation
from processes import ROOT, VULKAN, outcome
from refusals import fault

import vkops
from vkops.cli import main
from vkops.gpu.adapters import adapter as adapters
from vkops.gpu.adapters.adapter import LIST_DRIVERS
from vkops.gpu.adapters.diagnosis import drivers
from vkops.gpu.adapters.kompute import load_kompute, load_native
from vkops.gpu.adapters.loader_files import manifests


def python(code, **environment):
    """Run code in a process with other variables: (status, last line of stdout, stderr)."""
    status, printed, errors = outcome("-c", code, **environment)
    return status, printed.strip(), errors.strip()


LIST = "import sys; from vkops.cli.main import main; sys.exit(main(['devices']))"
OPEN = (
    "import vkops\ntry:\n    vkops.Device()\nexcept vkops.DeviceError as error:\n    print(error)\n"
)


def test_devices(adapter):
    assert adapter in vkops.devices()
    assert adapter.max_buffer >= 1 << 27
    assert adapter.dedicated_memory > 0
    assert vkops.Device(adapter.index).info == adapter


def test_limits(adapter, device, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["devices", "-v"]) == 0
    shown = capsys.readouterr().out
    assert device.limits == adapter.limits
    rows = dict(adapter.limits.rows())
    assert rows.keys() == {field.name for field in dataclasses.fields(adapter.limits)}
    size = device.limits.max_compute_work_group_size
    assert rows["max_compute_work_group_size"] == f"{size[0]} x {size[1]} x {size[2]}"
    assert f"heap {adapter.limits.memory_types[0].heap}: " in rows["memory_types"]
    for name in ("max_compute_shared_memory_size", "subgroup_size"):
        assert any(name in line and rows[name] in line for line in shown.splitlines())


@VULKAN
def test_features_are_where_vulkan_has_them():
    """The native module's table has the members of structures by their places."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import vulkan

    by_type = {
        getattr(vulkan, name): name.removeprefix("VK_STRUCTURE_TYPE").replace("_", "").lower()
        for name in dir(vulkan)
        if name.startswith("VK_STRUCTURE_TYPE_")
    }
    by_name = {name.removeprefix("Vk").lower(): name for name in vulkan.ffi.list_types()[0]}
    text = (ROOT / "vkops/native/features.hpp").read_text()
    compared = 0
    for number, texts in re.findall(r'(1000\d{6}),(?:  //.*)?\s*((?:"[^"]*"\s*)+)', text):
        name = by_name.get(by_type.get(int(number)))  # newer ones are not there
        if name is None:
            continue
        members = [member for member, _ in vulkan.ffi.typeof(name).fields][2:]
        if members == ["features"]:
            members = [member for member, _ in vulkan.ffi.typeof("VkPhysicalDeviceFeatures").fields]
        place = 0
        for word in "".join(re.findall(r'"([^"]*)"', texts)).split():
            if not word.isdecimal():
                assert members[place] == word
            place += int(word) if word.isdecimal() else 1
        compared += 1
    assert compared > 25


def test_no_such_adapter_lists_those_there_are(adapter):
    assert adapters.select(adapter.name[2:8].upper()).name == adapter.name
    said = fault(lambda: vkops.Device("no such thing"), vkops.DeviceError)
    assert said.startswith("no adapter whose name contains 'no such thing'; available devices: ")
    assert f"[{adapter.index}] {adapter.name}" in said


def test_a_gpu_comes_before_a_cpu_driver(monkeypatch, adapter):

    cpu = dataclasses.replace(adapter, type="CPU")
    gpu = dataclasses.replace(adapter, index=1, type="DISCRETE_GPU")
    virtual = dataclasses.replace(adapter, index=2, type="VIRTUAL_GPU")
    monkeypatch.setattr(adapters, "_infos", lambda _: [cpu, virtual, gpu])
    assert adapters.select(None) is gpu


@own_loader
def test_no_driver(tmp_path):
    nothing = {"VK_DRIVER_FILES": str(tmp_path), "VK_ICD_FILENAMES": str(tmp_path)}
    assert python(OPEN, **nothing)[:2] == (0, "no Vulkan driver: VK_DRIVER_FILES names none")
    hide = (
        "from vkops.gpu.adapters import loader_files\n"
        "loader_files.vulkan.places = loader_files.packaged = lambda: []\n"
    )
    hidden = dict.fromkeys([*nothing, "VK_ADD_DRIVER_FILES"], "")
    broken = "import vkops_native\ndef refuse(*_): raise vkops_native.Error\nvkops_native.Instance = refuse\n"
    assert python(hide + broken + OPEN, **hidden)[:2] == (
        0,
        "no Vulkan driver is installed; a driver that needs no GPU: pip install 'vkops[lavapipe]', "
        "or Debian and Ubuntu: apt install mesa-vulkan-drivers",
    )


@pytest.mark.parametrize("argument", ["debug", "printf"])
def test_no_validation_layer(adapter, monkeypatch, tmp_path, argument):
    monkeypatch.setenv("VK_LAYER_PATH", str(tmp_path))
    text = r"^debug: VK_LAYER_KHRONOS_validation is not installed .*\[DEV-08\]$"
    with pytest.raises(vkops.DeviceError, match=text):
        vkops.Device(adapter.index, **{argument: True})


PUSHED = """
import numpy as np, vkops
device = vkops.Device(debug=True)
for kind, count in (("uint8_t", 1), ("uint8_t", 3), ("uint16_t", 3), ("uint8_t", 7)):
    if not device.features >= {"storagePushConstant8", "storagePushConstant16", "shaderInt8"}:
        break
    numbers = range(1, count + 1)
    members = " ".join(f"{kind} m{k};" for k in numbers)
    shader = device.compile_shader(f'''#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Y {{ uint y[]; }};
layout(push_constant) uniform Push {{ {members} }};
void main() {{ y[0] = {" + ".join(f"uint(m{k})" for k in numbers)}; }}''')
    y = device.tensor(np.zeros(1, np.uint32))
    shader(y, **{f"m{k}": k for k in numbers}, groups=(1, 1, 1))
    assert y.numpy() == sum(numbers)
"""


@pytest.mark.system("VkLayer_khronos_validation")
def test_validation_layer_finds_nothing_wrong_with_push_constants_of_any_size(monkeypatch):
    monkeypatch.delenv("VK_LAYER_SETTINGS_PATH", raising=False)
    assert python(PUSHED)[:2] == (0, "")


@pytest.mark.system("VkLayer_khronos_validation")
@pytest.mark.posix("/proc", tests_only=True)
def test_a_device_gets_the_layers_that_the_environment_names_when_it_is_opened(adapter):
    code = (
        "import vkops\n"
        "from pathlib import Path\n"
        "def layered():\n"
        "    return 'libVkLayer_khronos_validation' in Path('/proc/self/maps').read_text()\n"
        f"devices = [vkops.Device({adapter.index})]\n"
        "found = [layered()]\n"
        f"devices.append(vkops.Device({adapter.index}, debug=True))\n"
        "found.append(layered())\n"
        "print(found, devices[0].info == devices[1].info, devices[0].shares_memory_with(devices[1]))\n"
    )
    variables = {LAYERS: without_validation(), "VK_LAYER_SETTINGS_PATH": ""}
    assert python(code, **variables)[:2] == (0, "[False, True] True False")


OPENED_AT_ONCE = """
import os, sys, threading
import vkops
from vkops.gpu.adapters.adapter import instances
from vkops.gpu.run.vulkan_device import PrintedOutput
sys.setswitchinterval(1e-6)
index, before, found = int(sys.argv[1]), dict(os.environ), []
def prints(vulkan):
    return [*map(type, vulkan.submission_observers)] == [PrintedOutput]
def opens(debug, printf):
    barrier.wait()
    with vkops.Device(index, debug=debug, printf=printf) as device:
        found.append((debug, printf, device.vulkan.validated, prints(device.vulkan)))
for _ in range(3):
    instances.cache_clear()
    kinds = [(False, False), (True, False), (False, True)] * 2
    barrier = threading.Barrier(len(kinds))
    threads = [threading.Thread(target=opens, args=kind) for kind in kinds]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert dict(os.environ) == before, os.environ
print(sorted(set(found)), len(found))
"""


@pytest.mark.system("VkLayer_khronos_validation")
def test_threads_that_open_devices_with_and_without_the_layer(adapter):
    """Each gets what it asked for, and the environment is as it was."""
    variables = {LAYERS: without_validation(), "VK_LAYER_SETTINGS_PATH": ""}
    if refused_by_layer(adapter.name):
        pytest.skip("the layer lets no shader print on this driver")
    status, said, errors = outcome("-c", OPENED_AT_ONCE, adapter.index, **variables)
    kinds = [(False, False), (False, True), (True, False)]
    expected = [(debug, printf, debug or printf, printf) for debug, printf in kinds]
    assert status == 0, errors
    assert said.splitlines()[-1] == f"{expected} 18"


@pytest.mark.system("VkLayer_khronos_validation")
def test_features_that_are_newer_than_the_validation_layer_are_not_enabled(adapter):
    """It would report the structures that it does not know as faults of vkops."""
    native, module = adapters.native_adapters()[adapter.index], load_native()
    load_kompute()  # the module has devices once Kompute's own is imported
    opened = [
        module.Device(native, header, 1, 1, 16, b"", False) for header in (0, 239, 254, 255, 276)
    ]
    every, *under = [set(each.features) for each in opened]
    newer = {
        "cooperativeMatrix": 255,
        "shaderExpectAssume": 276,
        "shaderFloatControls2": 276,
        "shaderMaximalReconvergence": 276,
        "shaderQuadControl": 276,
        "shaderSubgroupRotate": 276,
        "shaderSubgroupRotateClustered": 276,
    }
    assert newer.keys() <= {*module.FEATURES}
    robust = {"robustBufferAccess", "robustBufferAccess2"}
    for header, features in zip((239, 254, 255, 276), under, strict=True):
        assert features == every - robust - {
            name for name, first in newer.items() if first > header
        }


@own_loader
def test_drivers_are_diagnosed_one_by_one(tmp_path, monkeypatch, adapter):
    works = next(d for d in drivers() if adapter.name in d.adapters)
    assert works.usable
    folder = tmp_path / "vulkan" / "icd.d"
    folder.mkdir(parents=True)
    manifest(folder, "absent", "libvulkan_absent.so")
    for name, text in (("empty", ""), ("no_icd", "{}")):
        (folder / f"{name}.json").write_text(text)
    paths = [works.path, str(folder)]
    monkeypatch.setenv("VK_DRIVER_FILES", ":".join(paths))
    good, absent, empty, no_icd = drivers()
    assert good.adapters == works.adapters
    assert not absent.usable
    assert "libvulkan_absent.so: cannot open shared object file" in absent.reason
    for driver in (empty, no_icd):
        assert not driver.usable
        assert driver.reason.startswith("its manifest cannot be read: ")


@own_loader
def test_manifests_are_looked_for_where_the_loader_does(tmp_path, monkeypatch):
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.delenv(variable, raising=False)
    for place in ("data", "added"):
        (tmp_path / place / "vulkan" / "icd.d").mkdir(parents=True)
        (tmp_path / place / "vulkan" / "icd.d" / f"{place}.json").write_text("{}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("VK_ADD_DRIVER_FILES", str(tmp_path / "added" / "vulkan" / "icd.d"))
    names = [path.name for path in manifests()]
    assert names[0] == "added.json"
    assert "data.json" in names


@own_loader
def test_names_of_manifests_that_no_file_can_have(adapter):
    """They are those of drivers that are missing."""
    for name in ("x" * 5000, "x" * 5000 + ".json", "x/" * 2500):
        files = {"VK_DRIVER_FILES": name, "VK_ICD_FILENAMES": name}
        said = python(OPEN, **files)[1]
        assert said.startswith("no Vulkan ")
        assert "\n" not in said
        status, listed, problem = python(LIST, **files)
        assert (status, problem) == (1, said.removesuffix(LIST_DRIVERS))
        assert "Traceback" not in listed


@pytest.mark.posix("named pipes")
def test_a_named_pipe_in_the_place_of_a_manifest(tmp_path, adapter):
    """The loader would wait for ever."""
    import os

    pipe = str(tmp_path / "pipe.json")
    os.mkfifo(pipe)
    files = dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), pipe)
    said = f"the driver's manifest {pipe!r} is not a regular file"
    assert python(OPEN, **files)[:2] == (0, said)
    assert python(LIST, **files) == (1, "", said)


LABELS = """
import sys
import numpy as np, vkops
from vkops.gpu.adapters import adapter
index, native = int(sys.argv[1]), adapter.native_adapters
both = [native()[index]] * 2  # as with two GPUs of one kind
adapter.native_adapters = lambda _: both
devices = [vkops.Device(info.index) for info in vkops.devices()]
x, y = (device.tensor(np.ones(4, np.float32)) for device in devices)
shader = devices[0].compile_shader('''#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer X { float x[]; };
void main() { x[0] = 1; }''')
def said(use):
    try:
        return use()
    except vkops.VkopsError as error:
        return str(error)
print(said(lambda: vkops.concat([x, y])))
print(said(lambda: shader(y, threads=4)))
print(devices[1], y.buffer, " ".join(repr(y).split()))
print(said(lambda: vkops.Device(1, expect="none")))
devices[1].close()
print(said(y.numpy))
"""


def test_adapters_of_one_name_are_told_apart_by_their_index(adapter):
    """In messages and representations; an adapter with a name of its own has no index there."""
    lines = processes.python("-c", LABELS, adapter.index).splitlines()
    first, second = (f"{adapter.name!r} [{index}]" for index in (0, 1))
    assert f"is on <vkops.Device {second} at" in lines[0]
    assert f"must be on <vkops.Device {first} at" in lines[0]
    assert f"on {second}>, must be on {first}; tensor.to(device)" in lines[1]
    assert lines[2].count(second) == 3
    assert lines[3].startswith(f"{second} ({adapter.type}) would be used where")
    assert lines[4] == f"the device {second} is closed"
    assert f"{adapter.name!r} at" in repr(vkops.Device(adapter.index))


@own_loader
def test_drivers_that_fail_alike_are_one_line(tmp_path, monkeypatch, capsys):
    """They are named together, and what `vkops devices` says does not refer to itself."""
    for name in ("one", "three", "two"):
        manifest(tmp_path, name, "/nowhere/driver.so")
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    status, listed, problem = python(LIST)
    assert status == 1
    assert problem.startswith("no Vulkan ")
    assert "vkops devices" not in problem
    assert sum("one, three, two" in line for line in listed.splitlines()) == 1
    assert listed.count("cannot open shared object file") == 1


def test_the_expected_adapter(adapter, monkeypatch):
    name = adapter.name.split()[0]
    for expected in (name, name.upper(), name.lower()):
        assert adapters.choose(adapter.index, expected) == adapter
    if "llvmpipe" in adapter.name:
        assert adapters.choose(adapter.index, "lavapipe") == adapter
    refused = f"{adapter.name!r} ({adapter.type}) would be used where"
    with pytest.raises(vkops.DeviceError, match=re.escape(f"{refused} 'no such' is expected")):
        vkops.Device(adapter.index, expect="no such")
    monkeypatch.setenv("VKOPS_EXPECT", "nor this")
    with pytest.raises(vkops.DeviceError, match=r"'nor this' is expected \(VKOPS_EXPECT\)$"):
        vkops.Device(adapter.index)
    assert adapters.choose(adapter.index, "") == adapter  # what is said here counts


@pytest.mark.parametrize("kind", ["CPU", "OTHER", "INTEGRATED_GPU", "DISCRETE_GPU", "VIRTUAL_GPU"])
def test_a_gpu_is_expected(monkeypatch, adapter, kind):

    monkeypatch.setattr(adapters, "_infos", lambda _: [dataclasses.replace(adapter, type=kind)])
    if kind.endswith("GPU"):
        assert adapters.choose(None, "gpu").type == kind
    else:
        with pytest.raises(vkops.errors.DeviceError, match=rf"\({kind}\) would be used"):
            adapters.choose(None, "gpu")


def test_a_cpu_driver_by_default_is_said_once(adapter):
    twice = "import vkops; a = vkops.Device(); b = vkops.Device(); print(a.info.type)"
    status, kind, said = python(twice, VKOPS_EXPECT="")
    assert status == 0
    assert said.count("is a CPU driver") == (kind == "CPU")
    assert python(twice, VKOPS_EXPECT=adapter.name)[2] == ""
    assert python(f"import vkops; vkops.Device({adapter.index})", VKOPS_EXPECT="")[2] == ""


def test_the_environment_chooses_an_adapter(adapter):
    """By an index or part of a name, for devices that name none."""
    code = "import vkops; print(vkops.Device().name, vkops.flip([1]).device.name, sep=', ')"
    for chosen in (adapter.index, adapter.name[2:8]):
        result = python(code, VKOPS_ADAPTER=str(chosen), VKOPS_EXPECT="")
        assert result == (0, f"{adapter.name}, {adapter.name}", "")
    said = python(OPEN, VKOPS_ADAPTER="no such")[1]
    start = "no adapter whose name contains 'no such' (VKOPS_ADAPTER); available devices: "
    assert said.startswith(start)
