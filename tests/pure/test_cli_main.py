"""The command line: statuses, one-line errors, and what works without Vulkan."""

import json
import os
import re
import subprocess
import sys

import pytest
from processes import ROOT, finished, outcome
from refusals import NO_FILE

import vkops
from vkops.cli import main
from vkops.errors import DeviceError
from vkops.gpu import DeviceInfo, Driver
from vkops.gpu.adapters.adapter_limits import Limits

SPLIT, SHUFFLE = (str(ROOT / "examples" / n) for n in ("split.json", "channel_shuffle.onnx"))
SOURCE = "import sys; from vkops.cli import main; sys.exit(main())"


def in_process(*arguments, **more):
    command = [sys.executable, "-c", SOURCE, *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=300, **more)
    return done.returncode, done.stderr


def test_version(command):
    assert command("--version") == (0, f"vkops {vkops.__version__}\n", "")


@pytest.mark.parametrize("option", [[], ["-h"], ["--help"]])
def test_help_lists_commands_and_options_that_have_an_effect(option, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    status, seen, _ = command(*option)
    assert status == 0
    assert all(re.search(rf"^\W*{name}\b", seen, re.M) for name in ("run", "check", "devices"))
    status, seen, _ = command("run", *option)
    assert (status, "--dispatch_iterations" in seen, "--enable_dred" in seen) == (0, True, False)


LEVELS = "1.0, 2.0, 2.1, 3.0, 3.1, 4.0, 4.1, 5.0, 5.1, 5.2, 6.0, 6.1, 6.2, 6.3, 6.4"
UNUSABLE = "an argument has characters that no shell can pass"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["xyz"], r"No such command 'xyz'\."),
        (["run", "m.json", "-i"], r"Option '-i' requires an argument\."),
        (["run", "m.json", "--no_such"], r"No such option\W+--no_such\b.*"),
        *((["run", "m.json", *text.split()], "Invalid value for '-.*")
          for text in ("-i -1", "-r 0", "-v 3", "-w x")),
        (["run", "m.json", "--dml_feature_level", "7.0"],
         f"Invalid value for '--dml_feature_level': got '7.0', must be {LEVELS}"),
        (["run", "m.json", "-q", "copy"],
         r"Invalid value for '-q' / '--queue_type': 'copy' is not one of 'direct', 'compute'\."),
        (["run", "m.json", "--post_dispatch_barriers", "all"],
         r"Invalid value for '--post_dispatch_barriers': 'all' is not one of "
         r"'none', 'uav', 'uav\+aliasing'\."),
        (["\0"], UNUSABLE), (["run", "a\0b"], UNUSABLE), pytest.param(["run", "--print", "\ud800"], UNUSABLE, marks=pytest.mark.posix("arguments of bytes", tests_only=True)),
    ],
)  # fmt: skip
def test_usage_errors(arguments, reason, command):
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    assert re.fullmatch(f"Failed to parse command-line arguments: {reason}\n", err)


def test_check_prints_the_levels(command):
    status, out, err = command("check", SPLIT)
    assert (status, err) == (0, "")
    assert re.search(r"split\W+SPLIT\W+3_0\W+accepted", out)
    # Hyphens will do, too.
    status, out, err = command("check", SPLIT, "--dml-feature-level", "2.1")
    assert status == 1
    assert re.search(r"split\W+SPLIT\W+3_0\W+refused", out)
    assert err.startswith("Failed to execute the model: ERROR creating dispatchable 'split': ")


def test_check_prints_warnings(command, tmp_path):
    file = tmp_path / "m.json"
    file.write_text('{"resources": {}, "dispatchables": {}, "commands": [], "commands": 1}')
    status, _, err = command("check", file)
    assert (status, err) == (
        0,
        f'Warning: {file}: member "commands" is given more than once in an object; '
        "the first one counts\n",
    )


PRINT_MODULES = (
    "import sys; from vkops.cli import main; main(); print('MODULES', *sys.modules, sep='\\n')"
)
DEVICES = ("kp", "vkops.gpu.run.vulkan_device", "vkops.runtime", "vkops.tensors")
TOOLS = ("jinja2", "onnx", "psutil", "rich.progress", "vkops.explain", "vkops.shaders")


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ["numpy", "rich", "vkops_native", "vkops.dml", "vkops.gpu", *DEVICES, *TOOLS]),
        (["rule", "SPLIT-05"], ["numpy", "rich", "vkops_native", "vkops.dml", *DEVICES, *TOOLS]),
        (["check", SPLIT],
         ["vkops_native", "vkops.gpu", "vkops.dml.operators.tile", *DEVICES, *TOOLS]),
        (["devices"], ["numpy", "vkops.dml", *DEVICES]),
        (["explain", SPLIT, "--html", "page.html"], ["vkops_native", "kp", "onnx", "vkops.runtime"]),
        (["explain", SHUFFLE, "--html", "page.html"], ["vkops_native", "kp"]),
    ],
    ids=lambda value: value[0],
)  # fmt: skip
def test_commands_import_only_what_they_need(arguments, absent, tmp_path):
    """Each of these takes longer to import than what the command does."""
    nowhere = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
    _, printed, _ = outcome("-c", PRINT_MODULES, *arguments, cwd=tmp_path, **nowhere)
    assert (tmp_path / "page.html").exists() == ("explain" in arguments)
    modules = printed.partition("MODULES\n")[2].split()
    assert "vkops.cli.main" in modules
    assert sorted({*absent} & {*modules}) == []


@pytest.mark.parametrize("subcommand", ["run", "check"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("m.txt", "Expected a .json or .onnx file"),
        ("m", "Expected a .json or .onnx file"),
        ("none.json", "Failed to parse the model: none.json: cannot be read: " + NO_FILE),
        ("none.onnx", f"none.onnx: cannot be read: {NO_FILE}"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read(command, subcommand, name, message, find_devices):
    """Nothing is opened, no device either."""
    find_devices(no_driver)
    assert command(subcommand, name) == (1, "", message + "\n")


@pytest.fixture
def find_devices(monkeypatch):
    """Return a function that replaces ``vkops.devices``."""
    return lambda function: monkeypatch.setattr(vkops, "devices", function, raising=False)


def no_driver(*arguments, **options):
    raise DeviceError("no Vulkan driver\nthat works")


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        (no_driver, "create adapter: no Vulkan driver that works"),
        (list, "create adapter: No adapter found that contains the substring 'good'."),
        (lambda: [INFO], "create a device: no Vulkan driver that works"),
    ],
    ids=["no driver", "no such adapter", "it does not open"],
)
def test_devices_that_cannot_be_used(devices, said, monkeypatch, command, find_devices):
    find_devices(devices)
    monkeypatch.setattr(vkops, "Device", no_driver, raising=False)
    assert command("run", "-a", "good", SPLIT) == (1, "", f"Failed to {said}\n")


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (MemoryError(), 1, "Out of memory"),
        (FileNotFoundError(2, "No such file or directory", "x"),
         1, "[Errno 2] No such file or directory: 'x'"),
    ],
)  # fmt: skip
def test_other_errors_are_one_line(error, status, line, find_devices, command):
    def fail():
        raise error

    find_devices(fail)
    assert command("run", "-s") == (status, "", line + "\n")


def test_dependencies(command):
    status, seen, _ = command("run", "-S")
    assert status == 0
    assert re.search(r"^numpy: \d+\.\d+", seen, re.MULTILINE)
    assert re.search(r"^python-rapidjson: \d+\.\d+", seen, re.MULTILINE)


def test_closed_standard_output():
    reader, writer = os.pipe()
    os.close(reader)
    done = in_process("check", SPLIT, stdout=writer)
    os.close(writer)
    assert done == (141, "")  # as of a program that SIGPIPE ends


@pytest.mark.posix("devices that are full", tests_only=True)
def test_full_standard_output():
    with open("/dev/full", "w") as full:
        done = in_process("check", SPLIT, stdout=full)
    assert done == (1, "[Errno 28] No space left on device\n")


def test_names_that_the_terminal_cannot_show(tmp_path):
    file = tmp_path / "m.json"
    file.write_text('{"resources": {"é": 1}}', encoding="utf-8")
    done = in_process("check", str(file), env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done == (1, f"Failed to parse the model: {file}: 'dispatchables' is missing\n")
    file.write_text('{"resources": {"é": 1}, "dispatchables": {}, "commands": []}')
    assert main(["check", str(file)]) == 1


DRIVERS = [
    Driver("good", "/etc/good.json", "libgood.so", ("Good GPU [1]",), ""),
    Driver("bad", "/etc/bad.json", "libbad.so", (), "it ended its process (status -11)"),
]
INFO = DeviceInfo(
    index=0, name="Good GPU [1]", type="INTEGRATED_GPU", driver="good 1.0", api_version="1.3.0",
    driver_version="1.0.2", vendor_id=1, device_id=2, dedicated_memory=1 << 31,
    shared_memory=3000, unified_memory=True, limits=Limits(),
)  # fmt: skip


def test_devices_are_printed_in_one_line():
    assert repr(INFO) == (
        "DeviceInfo(index=0, name='Good GPU [1]', type='INTEGRATED_GPU', driver='good 1.0', "
        "api_version='1.3.0')"
    )


@pytest.fixture
def one_good_driver(monkeypatch, find_devices):
    monkeypatch.setattr(vkops.gpu, "drivers", lambda: DRIVERS)
    find_devices(lambda: [INFO])
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.usefixtures("one_good_driver")
def test_devices(command, find_devices):
    status, seen, _ = command("devices", "-v")
    assert status == 0
    assert re.search(r"0\W+Good GPU \[1\]\W+INTEGRATED_GPU\W+1\.3\.0\W+good 1\.0 \(1\.0\.2\)", seen)
    assert "2.00 GB" in seen
    assert re.search(r"good\W+yes\W+Good GPU \[1\]", seen)
    assert re.search(r"bad\W+no\W+it ended its process \(status -11\)", seen)
    assert re.search(r"Limits of 'Good GPU \[1\]' ", seen)
    status, out, _ = command("devices", "--json")
    printed = json.loads(out)
    assert status == 0
    assert printed["devices"][0]["name"] == "Good GPU [1]"
    drivers = [(each["name"], each["usable"], each["reason"]) for each in printed["drivers"]]
    assert drivers == [("good", True, ""), ("bad", False, "it ended its process (status -11)")]
    find_devices(no_driver)
    status, out, err = command("devices")
    assert (status, err) == (1, "no Vulkan driver that works\n")
    assert "Vulkan devices" not in out
    assert re.search(r"bad\W+no", out)


@pytest.mark.usefixtures("one_good_driver")
def test_show_adapters(command):
    assert command("run", "--show_adapters")[:2] == (
        0,
        "Good GPU [1]\n-Version: 1.0.2\n-Hardware: true\n-Integrated: true\n"
        "-Dedicated Adapter Memory: 2.00 GB\n-Dedicated System Memory: 0 bytes\n"
        "-Shared System Memory: 2.93 KB\n\n",
    )


@pytest.mark.posix("a shell that closes streams", tests_only=True)
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(closed):
    """Nobody reads what it says; the status still tells."""
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", SOURCE, "check"]
    for model, status in ((SPLIT, 0), ("no such model.json", 1)):
        got, _, said = finished(*command, model)
        assert (got, "Traceback" in said) == (status, False)
