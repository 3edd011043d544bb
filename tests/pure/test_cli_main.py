"""The command line: statuses, one-line errors, and what works without Vulkan."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vkops
from vkops.cli import main
from vkops.errors import DeviceError
from vkops.gpu import DeviceInfo, Driver
from vkops.gpu.adapters.adapter_limits import Limits

ROOT = Path(__file__).parents[2]
SPLIT = str(ROOT / "examples" / "split.json")
SOURCE = "import sys; from vkops.cli import main; sys.exit(main())"


def in_process(*arguments, code=SOURCE, **more):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, text=True, timeout=60, **more
    )


def usage_error(capsys, *arguments):
    assert main(arguments) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    return seen.err.rstrip("\n")


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"vkops {vkops.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_the_commands(arguments, capsys):
    assert main(arguments) == 0
    seen = capsys.readouterr().out
    for name in ("run", "check", "devices"):
        assert re.search(rf"^\W*{name}\b", seen, re.MULTILINE)


@pytest.mark.parametrize("arguments", [["run"], ["run", "-h"], ["run", "--help"]])
def test_help_of_run_shows_what_has_an_effect(arguments, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(arguments) == 0
    seen = capsys.readouterr().out
    assert "--dispatch_iterations" in seen
    assert "--enable_dred" not in seen


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["xyz"], "No such command 'xyz'."),
        (["run", "m.json", "-i"], "Option '-i' requires an argument."),
        (
            ["run", "m.json", "--dml_feature_level", "7.0"],
            "Invalid value for '--dml_feature_level': got '7.0', must be 1.0, 2.0, 2.1, 3.0, 3.1, "
            "4.0, 4.1, 5.0, 5.1, 5.2, 6.0, 6.1, 6.2, 6.3, 6.4",
        ),
        (
            ["run", "m.json", "-q", "copy"],
            "Invalid value for '-q' / '--queue_type': 'copy' is not one of 'direct', 'compute'.",
        ),
        (
            ["run", "m.json", "--post_dispatch_barriers", "all"],
            "Invalid value for '--post_dispatch_barriers': 'all' is not one of "
            "'none', 'uav', 'uav+aliasing'.",
        ),
    ],
)
def test_usage_errors(arguments, reason, capsys):
    assert usage_error(capsys, *arguments) == f"Failed to parse command-line arguments: {reason}"


@pytest.mark.parametrize("argument", ["\0", "a\0b", "\ud800"])
def test_arguments_that_no_shell_can_pass(argument, capsys):
    reason = "an argument has characters that no shell can pass"
    for arguments in ([argument], ["run", argument], ["run", "--print", argument]):
        seen = usage_error(capsys, *arguments)
        assert seen == f"Failed to parse command-line arguments: {reason}"


def test_an_unknown_option(capsys):
    seen = usage_error(capsys, "run", "m.json", "--no_such")
    assert re.search(r"arguments: No such option\W+--no_such\b", seen)


@pytest.mark.parametrize("arguments", [["-i", "-1"], ["-r", "0"], ["-v", "3"], ["-w", "x"]])
def test_numbers_out_of_range(arguments, capsys):
    seen = usage_error(capsys, "run", "m.json", *arguments)
    assert seen.startswith("Failed to parse command-line arguments: Invalid value for '-")


def test_check_prints_the_levels(capsys):
    assert main(["check", SPLIT]) == 0
    seen = capsys.readouterr()
    assert re.search(r"split\W+SPLIT\W+3_0\W+accepted", seen.out)
    assert seen.err == ""


def test_check_at_a_level_that_is_too_low(capsys):
    assert main(["check", SPLIT, "--dml-feature-level", "2.1"]) == 1  # hyphens will do, too
    seen = capsys.readouterr()
    assert re.search(r"split\W+SPLIT\W+3_0\W+refused", seen.out)
    assert seen.err.count("\n") == 1
    assert seen.err.startswith("Failed to execute the model: ERROR creating dispatchable 'split': ")


def test_check_prints_warnings(capsys, tmp_path):
    file = tmp_path / "m.json"
    file.write_text('{"resources": {}, "dispatchables": {}, "commands": [], "commands": 1}')
    assert main(["check", str(file)]) == 0
    assert capsys.readouterr().err == (
        f'Warning: {file}: member "commands" is given more than once in an object; '
        "the first one counts\n"
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
        (
            ["check", SPLIT],
            ["vkops_native", "vkops.gpu", "vkops.dml.operators.tile", *DEVICES, *TOOLS],
        ),
        (["devices"], ["numpy", "vkops.dml", *DEVICES]),
    ],
    ids=lambda value: value[0],
)
def test_commands_import_only_what_they_need(arguments, absent):
    """Each of these takes longer to import than what the command does."""
    nowhere = {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"}
    done = in_process(
        *arguments, code=PRINT_MODULES, stdout=subprocess.PIPE, env={**os.environ, **nowhere}
    )
    modules = done.stdout.partition("MODULES\n")[2].split()
    assert "vkops.cli.main" in modules
    assert sorted({*absent} & {*modules}) == []


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("m.txt", "Expected a .json or .onnx file"),
        ("m", "Expected a .json or .onnx file"),
        ("none.json", "Failed to parse the model: none.json: cannot be read: No such file or directory"),
        ("none.onnx", "none.onnx: cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read(command, name, message, capsys, monkeypatch):
    """Nothing is opened, no device either."""
    monkeypatch.setattr(vkops, "devices", no_driver, raising=False)
    assert main([command, name]) == 1
    assert capsys.readouterr() == ("", message + "\n")


def no_driver():
    raise DeviceError("no Vulkan driver\nthat works")


def test_run_without_a_driver_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(vkops, "devices", no_driver, raising=False)
    assert main(["run", SPLIT]) == 1
    assert capsys.readouterr() == (
        "",
        "Failed to create adapter: no Vulkan driver that works\n",
    )


def test_unknown_adapter(monkeypatch, capsys):
    monkeypatch.setattr(vkops, "devices", list, raising=False)
    assert main(["run", "-a", "Imaginary", SPLIT]) == 1
    assert capsys.readouterr().err == (
        "Failed to create adapter: No adapter found that contains the substring 'Imaginary'.\n"
    )


def test_device_that_does_not_open(monkeypatch, capsys):
    def refuse(*arguments, **options):
        raise DeviceError("lost")

    monkeypatch.setattr(vkops, "devices", lambda: [INFO], raising=False)
    monkeypatch.setattr(vkops, "Device", refuse, raising=False)
    assert main(["run", "-a", "good", SPLIT]) == 1
    assert capsys.readouterr().err == "Failed to create a device: lost\n"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (MemoryError(), 1, "Out of memory"),
        (FileNotFoundError(2, "No such file or directory", "x"),
         1, "[Errno 2] No such file or directory: 'x'"),
    ],
)  # fmt: skip
def test_other_errors_are_one_line(error, status, line, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr(vkops, "devices", fail, raising=False)
    assert main(["run", "-s"]) == status
    assert capsys.readouterr().err == line + "\n"


def test_dependencies(capsys):
    assert main(["run", "-S"]) == 0
    seen = capsys.readouterr().out
    assert re.search(r"^numpy: \d+\.\d+", seen, re.MULTILINE)
    assert re.search(r"^python-rapidjson: \d+\.\d+", seen, re.MULTILINE)


def test_closed_standard_output():
    reader, writer = os.pipe()
    os.close(reader)
    done = in_process("check", SPLIT, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "Standard output was closed\n")


@pytest.mark.posix("devices that are full", tests_only=True)
def test_full_standard_output():
    with open("/dev/full", "w") as full:
        done = in_process("check", SPLIT, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, "[Errno 28] No space left on device\n")


def test_names_that_the_terminal_cannot_show(tmp_path):
    file = tmp_path / "m.json"
    file.write_text('{"resources": {"é": 1}}', encoding="utf-8")
    done = in_process(
        "check",
        str(file),
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 1
    assert done.stderr == f"Failed to parse the model: {file}: 'dispatchables' is missing\n"
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
def one_good_driver(monkeypatch):
    monkeypatch.setattr(vkops.gpu, "drivers", lambda: DRIVERS)
    monkeypatch.setattr(vkops, "devices", lambda: [INFO], raising=False)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.usefixtures("one_good_driver")
def test_devices(capsys):
    assert main(["devices"]) == 0
    seen = capsys.readouterr().out
    assert re.search(r"0\W+Good GPU \[1\]\W+INTEGRATED_GPU\W+1\.3\.0\W+good 1\.0 \(1\.0\.2\)", seen)
    assert re.search(r"good\W+yes\W+Good GPU \[1\]", seen)
    assert re.search(r"bad\W+no\W+it ended its process \(status -11\)", seen)


@pytest.mark.usefixtures("one_good_driver")
def test_devices_as_json(capsys):
    assert main(["devices", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["devices"][0]["name"] == "Good GPU [1]"
    assert [(d["name"], d["usable"], d["reason"]) for d in found["drivers"]] == [
        ("good", True, ""),
        ("bad", False, "it ended its process (status -11)"),
    ]


@pytest.mark.usefixtures("one_good_driver")
def test_devices_without_a_usable_driver(capsys, monkeypatch):
    monkeypatch.setattr(vkops, "devices", no_driver, raising=False)
    assert main(["devices"]) == 1
    seen = capsys.readouterr()
    assert "Vulkan devices" not in seen.out
    assert re.search(r"bad\W+no", seen.out)
    assert seen.err == "no Vulkan driver that works\n"


@pytest.mark.usefixtures("one_good_driver")
def test_show_adapters(capsys):
    assert main(["run", "--show_adapters"]) == 0
    assert capsys.readouterr().out == (
        "Good GPU [1]\n-Version: 1.0.2\n-Hardware: true\n-Integrated: true\n"
        "-Dedicated Adapter Memory: 2.00 GB\n-Dedicated System Memory: 0 bytes\n"
        "-Shared System Memory: 2.93 KB\n\n"
    )


@pytest.mark.posix("a shell that closes streams", tests_only=True)
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(closed):
    """Nobody reads what it says; the status still tells."""
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", SOURCE, "check"]
    for model, status in ((SPLIT, 0), ("no such model.json", 1)):
        done = subprocess.run([*command, model], capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert "Traceback" not in done.stderr
