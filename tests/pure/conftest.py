"""Fixtures of the tests that need no Vulkan."""

import json
from pathlib import Path

import pytest

from vkops.cli import main
from vkops.dxdispatch import load_model


@pytest.fixture
def no_package(monkeypatch):
    """Look for programs as if vkops_lavapipe were not installed."""
    monkeypatch.setattr("vkops.lavapipe.package", lambda: None)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Use a new folder for the caches, and return it."""
    monkeypatch.setenv("VKOPS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def command(capsys):
    """Run ``vkops``: its status, standard output and standard error, which is one line at most."""

    def run(*arguments):
        status = main([*map(str, arguments)])
        out, err = capsys.readouterr()
        assert err.count("\n") == (err != "")
        return status, out, err

    return run


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load a model given as Python objects; the current folder is an empty one."""
    monkeypatch.chdir(tmp_path)

    def load(model, **more):
        Path("m.json").write_text(json.dumps(model))
        return load_model("m.json", **more)

    return load
