"""The drivers under test.

VKOPS_TEST_ADAPTERS names them (substrings, separated by commas); one that is missing fails the run.
Without it, every adapter found is tested. VKOPS_TEST_TUNING=gpu gives CPU drivers the settings of GPUs.
"""

import os
import re
import subprocess
from dataclasses import replace
from importlib.util import find_spec

import pytest
from adapters import LAYERS, UNDER_LAYER, refused_by_layer, wanted, without_validation
from arrays import small_memory
from imitated import faulty  # noqa: F401
from processes import IS_FREE_THREADED
from refusals import RefusedError

import vkops
from vkops.gpu.adapters.adapter import VALIDATION_LAYER, select
from vkops.gpu.adapters.kompute import loader
from vkops.gpu.copies.rule import SHADERS
from vkops.gpu.kernels import encoding

if len(vkops.devices()) == 1:  # it is meant, and not a word of it is due on standard error
    os.environ.setdefault("VKOPS_EXPECT", vkops.devices()[0].name)

# The extra "test" leaves out notebooks: their packages cannot be had for Pythons without a global lock.
if IS_FREE_THREADED and not find_spec("nbclient"):
    collect_ignore = ["test_notebooks.py"]

if os.environ.get("VKOPS_TEST_TUNING") == "gpu":
    encoding.CPU = encoding.GPU


@pytest.fixture(params=["as on CPUs", "as on GPUs"])
def either_device(request, device):
    """A device for which kernels are written as for CPUs, or as for GPUs."""
    tuning = device.tuning
    device.tuning = replace(tuning, is_cpu=request.param == "as on CPUs")
    yield device
    device.tuning = tuning


@pytest.fixture(params=["direct", "staged"])
def any_device(request, device, staged_device):
    """A device with mapped memory, and one with staging buffers."""
    return staged_device if request.param == "staged" else device


@pytest.fixture(params=["direct", "staged", "on the host"])
def make(request, device, staged_device):
    """Makes tensors of arrays, on memory of a kind."""
    home = staged_device if request.param == "staged" else device
    on_host = request.param == "on the host"
    return lambda array: vkops.Tensor.from_array(home, array, on_host=on_host)


def output_is_spoilt():
    """Whether the tests run under the validation layer, and it prints where it logs, as 1.4 does."""
    if not UNDER_LAYER:
        return False
    versions = dict(layer.split(" ") for layer in loader()["layers"])
    version = versions.get(VALIDATION_LAYER, "0")
    return tuple(map(int, version.split("."))) >= (1, 4)


@pytest.fixture
def cap(request):
    """What the process prints; where the layer prints, too, only what Python does."""
    return request.getfixturevalue("capsys" if output_is_spoilt() else "capfd")


@pytest.fixture(scope="session", autouse=True)
def children_without_the_layer():
    """What children print is compared; those that ask for the layer themselves have it."""
    if not output_is_spoilt():
        yield
        return
    ours, start = os.environ[LAYERS], subprocess.Popen.__init__

    def start_without(self, *args, env=None, **options):
        env = dict(os.environ if env is None else env)
        if env.get(LAYERS) == ours:
            env[LAYERS] = without_validation()
        start(self, *args, env=env, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", start_without)
        yield


def is_right(refusal, limits):
    """Whether a device with these limits lacks what it refuses a shader for."""
    text = str(refusal)
    most = {
        "local_size_x": limits.max_workgroup,
        "storage blocks": limits.max_per_stage_descriptor_storage_buffers,
    }
    sizes = rf"({'|'.join(most)}): got (\d+), must be (\d+) at most .* \[SH-08\]"
    if size := re.search(sizes, text):
        return int(size[2]) > int(size[3]) == most[size[1]]
    features = {*limits.features, *limits.subgroup_operations}
    is_for_features = refusal.rule == "SH-02" or text.startswith("samples: needs ")
    return is_for_features and features.isdisjoint(re.findall(r"\w+", text))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Tests with the mark ``features`` may end with a refusal if that is right."""
    try:
        return (yield)
    except RefusedError:
        return True
    except vkops.InvalidDescError as error:
        if pyfuncitem.get_closest_marker("features") is None:
            raise
        adapter = pyfuncitem.callspec.params.get("adapter") or select(None)
        if not is_right(error, adapter.limits):
            raise
        return True


def pytest_generate_tests(metafunc):
    if "adapter" in metafunc.fixturenames:
        chosen = wanted()
        metafunc.parametrize(
            "adapter", chosen, ids=[f.name.split()[0] for f in chosen], scope="session"
        )


@pytest.fixture(scope="session")
def device(adapter):
    """The device under test."""
    with vkops.Device(adapter.index) as opened:
        yield opened


@pytest.fixture
def change_device(device, monkeypatch):
    """Return a function that changes the device for one test.

    It may have other features, settings (``device.tuning``) or bytes of the largest range of memory
    (``device.pool.max_range``), and ``fits`` says which arrays it has memory for.
    """

    def change(*, features=None, max_range=None, fits=None, **tuning):
        monkeypatch.setattr(device, "tuning", replace(device.tuning, **tuning))
        if features is not None:
            monkeypatch.setattr(device.vulkan, "features", features)
        if max_range:
            monkeypatch.setattr(device.pool, "max_range", max_range)
        if fits:
            monkeypatch.setattr("vkops.gpu.run.open_device.MAX_UNCHECKED_BYTES", 0)
            monkeypatch.setattr(device, "fits", fits)

    return change


@pytest.fixture(scope="session")
def shared_memory(device):
    """Skips what holds only where the host sees device memory: views without copies, and their cost."""
    if not device.mapped:
        pytest.skip("the host does not see the memory of this device")


@pytest.fixture(scope="session")
def is_time(device):
    """Whether a time that a device measured is right: None of a device without timestamps."""
    if device.info.limits.timestamp_valid_bits:
        return lambda time: time > 0
    return lambda time: time is None


@pytest.fixture(scope="session")
def staged_device(adapter):
    """The same, moving data through staging memory as discrete GPUs must."""
    with vkops.Device(adapter.index, staged=True) as opened:
        yield opened


@pytest.fixture(params=[False, True], ids=["mapped", "staged"])
def small_buffers(adapter, monkeypatch, request):
    """A device whose buffers have 4 KiB."""
    monkeypatch.setattr("vkops.gpu.memory.pools.FIRST_NBYTES", 4096)
    with vkops.Device(adapter.index, staged=request.param) as device:
        small_memory(device, 4096)
        yield device


@pytest.fixture(scope="module")
def by_shaders(device, staged_device):
    """For tests of dispatches, whatever VKOPS_COPY is: nothing is copied with regions."""
    devices = [device, staged_device]
    before = [each.tuning for each in devices]
    for each in devices:
        each.tuning = replace(each.tuning, copies=SHADERS)
    yield
    for each, tuning in zip(devices, before, strict=True):
        each.tuning = tuning


@pytest.fixture(scope="session")
def refuse(adapter):
    """Ends a test if the validation layer cannot look into the driver's shaders, and says only that."""

    def check(status, text):
        reason = refused_by_layer(adapter.name).rpartition(" requires ")[2]
        if reason and reason in " ".join(text.split()):
            assert status == 1
            raise RefusedError

    return check
