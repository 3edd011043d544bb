"""Mesa's own cache is used only where it is this user's, and there is room for it."""

import os

import psutil
import pytest

from vkops.gpu.adapters import mesa_cache
from vkops.system import files

DISABLED = "MESA_SHADER_CACHE_DISABLE"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that Mesa puts its cache in; no variable of Mesa's is set but the one naming it."""
    monkeypatch.setenv("MESA_SHADER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(DISABLED, "")
    monkeypatch.delenv(DISABLED)
    return tmp_path


@pytest.mark.posix("modes of folders")
@pytest.mark.parametrize("name", ["mesa_shader_cache", "mesa_shader_cache_db"])
@pytest.mark.parametrize(
    ("mode", "disabled"), [(0o700, None), (0o755, None), (0o775, "true"), (0o777, "true")]
)
def test_a_folder_that_others_may_write_to_is_not_used(folder, name, mode, disabled):
    mesa_cache.disable_if_unsafe()
    assert DISABLED not in os.environ
    (folder / name).mkdir()
    (folder / name).chmod(mode)
    mesa_cache.disable_if_unsafe()
    assert os.environ.get(DISABLED) == disabled


def test_another_width_of_vectors_does_not_use_it(folder, monkeypatch):
    """Mesa would run code from the cache whose subgroups have another size."""
    monkeypatch.delenv(mesa_cache.WIDTH, raising=False)
    mesa_cache.disable_if_unsafe()
    assert DISABLED not in os.environ
    monkeypatch.setenv(mesa_cache.WIDTH, "128")
    mesa_cache.disable_if_unsafe()
    assert os.environ[DISABLED] == "true"


@pytest.mark.posix("modes of folders")
@pytest.mark.parametrize("named", ["relative", "account", "cache home", "empty"])
def test_the_folder_that_mesa_uses_is_the_one_that_is_checked(tmp_path, monkeypatch, named):
    """Mesa takes a relative XDG_CACHE_HOME, and asks the list of users for the home, not HOME."""
    import pwd

    for name in ("MESA_SHADER_CACHE_DIR", "MESA_GLSL_CACHE_DIR", "XDG_CACHE_HOME", DISABLED):
        monkeypatch.setenv(name, "")
        if not (name == "XDG_CACHE_HOME" and named == "empty"):
            monkeypatch.delenv(name)
    used = tmp_path / "used" / ".cache"
    (used / "mesa_shader_cache").mkdir(parents=True)
    (used / "mesa_shader_cache").chmod(0o777)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    account = tmp_path / ("used" if named in ("account", "empty") else "account")
    monkeypatch.setattr(pwd, "getpwuid", lambda _: type("", (), {"pw_dir": str(account)}))
    if named == "relative":
        monkeypatch.setenv("XDG_CACHE_HOME", "used/.cache")
    elif named == "cache home":
        monkeypatch.setenv("XDG_CACHE_HOME", str(used))
    mesa_cache.disable_if_unsafe()
    assert os.environ[DISABLED] == "true"


@pytest.mark.posix("named pipes")
@pytest.mark.parametrize("place", ["mesa_shader_cache_db", "index", "a3/d4", "a link"])
def test_a_named_pipe_is_not_opened(folder, place):
    """Mesa would wait for ever for one in the place of an entry."""
    cache = folder / "mesa_shader_cache"
    (cache / "a3").mkdir(mode=0o700, parents=True)
    for name in ("index", "a3/d4"):
        (cache / name).write_bytes(bytes(10))
    mesa_cache.disable_if_unsafe()
    assert DISABLED not in os.environ
    os.mkfifo(folder / "pipe")
    if place == "a link":
        (cache / "a3" / "e5").symlink_to(folder / "pipe")
    else:
        (folder / "pipe").replace((folder if "mesa" in place else cache) / place)
    mesa_cache.disable_if_unsafe()
    assert os.environ[DISABLED] == "true"


@pytest.mark.posix("the list of users")
def test_a_user_who_is_not_in_the_list_of_users(tmp_path, monkeypatch):
    import pwd

    def missing(number):
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", missing)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.account_home() == tmp_path


@pytest.mark.posix("owners of folders")
def test_a_folder_of_another_user_is_not_used(folder, monkeypatch):
    (folder / "mesa_shader_cache").mkdir(mode=0o755)
    monkeypatch.setattr("vkops.system.files.os.geteuid", lambda: 4711)
    mesa_cache.disable_if_unsafe()
    assert os.environ[DISABLED] == "true"


@pytest.mark.posix("modes of folders")
def test_a_link_to_a_folder_of_ones_own_is_used(folder):
    (folder / "elsewhere").mkdir(mode=0o755)
    (folder / "mesa_shader_cache").symlink_to("elsewhere")
    mesa_cache.disable_if_unsafe()
    assert DISABLED not in os.environ
    (folder / "elsewhere").chmod(0o777)
    mesa_cache.disable_if_unsafe()
    assert os.environ[DISABLED] == "true"


def test_a_full_disk(folder, monkeypatch):
    monkeypatch.setattr(psutil, "disk_usage", lambda _: type("", (), {"free": 1}))
    mesa_cache.disable_if_unsafe()
    assert os.environ[DISABLED] == "true"
