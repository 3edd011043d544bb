"""The file of compiled pipelines: what reaches the driver, what is stored, and when nothing is."""

import hashlib
import os
import struct
from types import SimpleNamespace

import pytest

from vkops.gpu.adapters import forks, pipeline_cache
from vkops.gpu.adapters.pipeline_cache import PipelineCache

IDS = {"vendor_id": 0x10DE, "device_id": 0x2684, "driver_version": 0x92D04C00}
UUID = bytes(range(16))
NAME = "000010de-00002684-92d04c00-000102030405060708090a0b0c0d0e0f"


def opened(**changed):
    """The cache of an adapter of the native module."""
    properties = {**IDS, "pipeline_cache_uuid": UUID, **changed}
    return PipelineCache(SimpleNamespace(**properties))


def header(*, size=32, version=1, vendor=0x10DE, device=0x2684, uuid=UUID):
    """VkPipelineCacheHeaderVersionOne."""
    return struct.pack("<4I", size, version, vendor, device) + uuid


HEADER = header()


class Device:
    """A device of the native module with pipelines of one byte each."""

    def __init__(self, pipelines=b"", start=HEADER):
        self.pipelines, self.start, self.given = pipelines, start, None

    def pipeline_cache(self, other):
        self.given = other
        return self.start + bytes(sorted({*self.pipelines, *other[32:]}))


def save(device, **changed):
    """Save the pipelines of a device that has made one; return the content that it was given."""
    cache = opened(**changed)
    cache.changed = True
    cache.save(device)
    return device.given


@pytest.fixture(autouse=True)
def folder(own_cache):
    return own_cache / "pipelines"


@pytest.fixture
def file(folder):
    save(Device(b"ab"))
    return folder / NAME


def test_the_next_process_loads_what_one_has_saved(file):
    content = HEADER + b"ab"
    assert file.read_bytes() == hashlib.sha256(NAME.encode() + b"\n" + content).digest() + content
    assert opened().load() == content


def test_processes_at_once_keep_the_pipelines_of_each_other():
    first, second = opened(), opened()
    assert (first.load(), second.load()) == (b"", b"")
    for cache, pipelines in ((first, b"ab"), (second, b"bc")):
        cache.changed = True
        cache.save(Device(pipelines))
    assert opened().load() == HEADER + b"abc"


WRONG_HEADERS = {
    "nothing": b"",
    "part of a header": HEADER[:31],
    "a header alone": HEADER,
    "short": header(size=31) + b"ab",
    "long": header(size=36) + b"ab",
    "version 0": header(version=0) + b"ab",
    "version 2": header(version=2) + b"ab",
    "vendor": header(vendor=0x1002) + b"ab",
    "device": header(device=0x2685) + b"ab",
    "UUID": header(uuid=UUID[::-1]) + b"ab",
    "order of bytes": struct.pack(">4I", 32, 1, 0x10DE, 0x2684) + UUID + b"ab",
}


@pytest.mark.parametrize("content", WRONG_HEADERS.values(), ids=WRONG_HEADERS)
def test_a_header_of_another_driver_never_reaches_this_one(file, content):
    """The hash is correct: another version of vkops, or a driver that errs, has stored it."""
    good = file.read_bytes()
    pipeline_cache._CACHE.store(NAME, content)
    assert opened().load() == b""
    assert save(Device(b"ab")) == b""
    assert file.read_bytes() == good


@pytest.mark.parametrize(
    "change",
    [{name: number + 1} for name, number in IDS.items()] + [{"pipeline_cache_uuid": UUID[::-1]}],
    ids=lambda change: next(iter(change)),
)
def test_each_driver_has_a_file_of_its_own(folder, file, change):
    assert opened(**change).load() == b""
    cache = opened(**change)
    save(Device(b"xy", start=cache._header), **change)
    assert opened(**change).load() == cache._header + b"xy"
    assert opened().load() == HEADER + b"ab"
    assert len({*folder.iterdir()}) == 2


@pytest.mark.parametrize(
    "device",
    [Device(), Device(b"ab", start=header(vendor=1)), Device(b"ab", start=b"")],
    ids=["a header alone", "another header", "no header"],
)
def test_nothing_is_stored_without_pipelines_of_this_driver(folder, device):
    """lavapipe's content is a header alone."""
    assert save(device) == b""
    assert not folder.exists()


def test_nothing_is_stored_without_new_pipelines(folder, file):
    device = Device(b"abc")
    opened().save(device)
    assert device.given is None
    before = file.stat().st_mtime_ns
    assert save(Device(b"b")) == HEADER + b"ab"  # compiled before
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, KeyboardInterrupt])
def test_errors_of_the_driver_and_interrupts_are_silent(folder, error):
    def fail(_):
        raise error

    save(SimpleNamespace(pipeline_cache=fail, given=None))
    assert not folder.exists()


def test_no_memory_for_the_file(file, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(pipeline_cache._CACHE, "load", fail)
    assert opened().load() == b""


def test_a_forked_process_leaves_the_driver_alone(folder, monkeypatch):
    monkeypatch.setattr(forks.state, "forked", True)
    assert save(Device(b"ab")) is None
    assert not folder.exists()


def test_a_cache_that_is_too_large_is_emptied_and_filled_anew(file, monkeypatch):
    monkeypatch.setattr(pipeline_cache, "MAX_BYTES", 36)
    assert save(Device(b"cd")) == HEADER + b"ab"
    assert opened().load() == HEADER + b"abcd"
    assert save(Device(b"e")) == HEADER + b"abcd"
    assert (opened().load(), file.stat().st_size) == (b"", 32)
    assert save(Device(b"e")) == b""
    assert opened().load() == HEADER + b"e"


def test_the_files_of_old_drivers_are_removed(folder):
    count = pipeline_cache.MAX_FILES
    for version in range(count + 3):
        save(Device(b"ab"), driver_version=version)
        for path in folder.iterdir():
            os.utime(path, (int(path.name[18:26], 16),) * 2)
    kept = sorted(int(path.name[18:26], 16) for path in folder.iterdir())
    assert kept == [*range(3, count + 3)]
