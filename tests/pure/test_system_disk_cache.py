"""Caches on disk: damaged entries, and folders that cannot be used."""

import errno
import os
import shutil

import platformdirs
import pytest

from vkops.system import disk_cache, files
from vkops.system.disk_cache import DiskCache

CACHE = DiskCache("own", "cache of tests", 1000)
DATA = bytes(range(100))
POSIX = pytest.mark.posix("named pipes, and owners of files", tests_only=True)


@pytest.fixture
def entry(own_cache):
    """Store two entries, and return the path of the one with the key "key"."""
    CACHE.store("other", b"of another key")
    CACHE.store("key", DATA)
    return own_cache / "own" / "key"


def sparse(entry):
    with open(entry, "wb") as file:
        file.truncate(40 << 30)


def of_another_user(entry):
    if not hasattr(files.os, "geteuid"):
        pytest.skip("needs POSIX: owners of files")
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(entry, 65534, -1)


DAMAGES = {
    "empty": lambda entry: entry.write_bytes(b""),
    "short": lambda entry: entry.write_bytes(entry.read_bytes()[:10]),
    "byte lost": lambda entry: entry.write_bytes(entry.read_bytes()[:-1]),
    "bit flipped": lambda entry: entry.write_bytes(entry.read_bytes()[:-1] + bytes([DATA[-1] ^ 1])),
    "longer": lambda entry: entry.write_bytes(entry.read_bytes() + b"c"),
    "zeros": lambda entry: entry.write_bytes(bytes(132)),
    "of another key": lambda entry: shutil.copy(entry.with_name("other"), entry),
}
OTHER_KINDS = {
    "pipe": lambda entry: (entry.unlink(), os.mkfifo(entry)),
    "device": lambda entry: (entry.unlink(), entry.symlink_to("/dev/zero")),
    "link": lambda entry: entry.symlink_to(entry.rename(entry.parent.parent / "elsewhere")),
    "40 GiB": sparse,
    "another user's": of_another_user,
}


@pytest.mark.parametrize(
    "kind", [*DAMAGES, *(pytest.param(kind, marks=POSIX) for kind in OTHER_KINDS)]
)
def test_an_entry_that_is_damaged_or_of_another_kind_is_replaced(entry, kind):
    good = entry.read_bytes()
    assert CACHE.load("key") == DATA
    {**DAMAGES, **OTHER_KINDS}[kind](entry)
    assert CACHE.load("key") is None
    CACHE.store("key", DATA)
    assert (entry.is_symlink(), entry.read_bytes()) == (False, good)
    assert CACHE.load("other") == b"of another key"


@pytest.mark.posix("owners and modes of folders")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda folder, _: folder.chmod(0o770), "other users may write to it"),
        (lambda folder, _: folder.chmod(0o777), "other users may write to it"),
        (lambda _, patch: patch.setattr(files.os, "geteuid", lambda: 4711), "it belongs to another user"),
        (lambda folder, _: folder.symlink_to(folder.rename(folder.with_name("elsewhere"))), "Not a directory"),
    ],
    ids=["group", "world", "owner", "link"],
)  # fmt: skip
def test_a_folder_that_others_can_change_is_not_used(entry, monkeypatch, caplog, change, reason):
    disk_cache._warn_once.cache_clear()
    good = entry.read_bytes()
    with monkeypatch.context() as patch:
        change(entry.parent, patch)
        for _ in range(2):
            assert CACHE.load("key") is None
            CACHE.store("key", b"new")
            CACHE.store("new", b"new")
        assert sorted(path.name for path in entry.parent.iterdir()) == ["key", "other"]
    assert entry.read_bytes() == good
    assert [(record.name, record.levelname, record.message) for record in caplog.records] == [
        ("vkops", "WARNING", f"the cache of tests {str(entry.parent)!r} is not used: {reason}")
    ]


@pytest.mark.posix("modes of files", tests_only=True)
def test_modes_of_folders_and_entries(own_cache):
    before = os.umask(0)
    try:
        CACHE.store("key", DATA)
    finally:
        os.umask(before)
    paths = (own_cache / "own" / "key", own_cache / "own", own_cache)
    modes = [oct(path.stat().st_mode & 0o777) for path in paths]
    assert modes == ["0o600", "0o700", "0o700"]


@pytest.mark.posix("/proc", tests_only=True)
@pytest.mark.parametrize("folder", ["/proc/vkops", "file", "file/below"])
def test_a_folder_that_cannot_exist(tmp_path, monkeypatch, folder):
    """/proc has no new folders, and a file is no folder, for root as well."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("VKOPS_CACHE_DIR", str(tmp_path / folder))
    CACHE.store("key", DATA)
    assert CACHE.load("key") is None


@pytest.mark.parametrize(
    ("function", "error"), [("_make_private", errno.EROFS), ("os.replace", errno.ENOSPC)]
)
def test_read_only_and_full_folders(own_cache, monkeypatch, function, error):
    def refuse(*_args, **_options):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(f"vkops.system.files.{function}", refuse)
    CACHE.store("key", DATA)
    assert CACHE.load("key") is None
    assert list(own_cache.glob("own/*")) == []


@pytest.mark.parametrize(("home", "count"), [("home", 1), ("~", 0)], ids=["home", "no home"])
def test_default_folder(monkeypatch, tmp_path, home, count):
    """A user without a home has none: the folder is not made below the current one."""
    monkeypatch.delenv("VKOPS_CACHE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / home if count else disk_cache.Path(home)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: folder / name)
    CACHE.store("key", DATA)
    assert len(list((tmp_path / home).glob("vkops/own/*"))) == count
    assert (tmp_path / home).exists() == (count > 0)
