"""A disk that is full indeed: no crash, one line, and what lies there stays."""

import copy
import json
import os
import shutil
import sys

import pytest
from imitated import environment
from models import SPLIT
from processes import finished

ON_A_FULL_DISK = """
mount -t tmpfs -o size=64k none "$1" || exit
cd "$1"
echo old > out.npy
head -c 100000 /dev/zero 2>&1 > rest | grep -q 'No space left' || exit
shift
"$@" || echo "status $?"
ls
cat out.npy
"""


def on_a_full_disk(folder, *command, **variables):
    """Lines that a program prints there, its status unless 0, and what is there afterwards; its errors."""
    script = ["unshare", "--mount", "--map-root-user", "sh", "-c", ON_A_FULL_DISK, "sh", folder]
    _, printed, errors = finished(*script, *command, env={**os.environ, **variables})
    return printed, errors


@pytest.fixture
def full(tmp_path):
    if not shutil.which("unshare"):
        pytest.skip("needs Linux: a disk of its own")
    folder = tmp_path / "full"
    folder.mkdir()
    printed, errors = on_a_full_disk(folder, "true")
    if printed != "out.npy\nrest\nold\n":
        pytest.skip(f"no disk can be mounted here: {errors}")
    return folder


@pytest.fixture
def model(tmp_path, adapter):
    """A command that runs a model that writes a file."""
    model = copy.deepcopy(SPLIT)
    resource = next(iter(model["resources"]))
    write = {"type": "writeFile", "resource": resource, "targetPath": "out.npy"}
    model["commands"].append(write)
    (tmp_path / "m.json").write_text(json.dumps(model))
    return [sys.executable, "-m", "vkops", "run", str(tmp_path / "m.json"), "-a", adapter.name]


def test_an_output_on_a_full_disk(full, model):
    """As in DxDispatch the run goes on."""
    printed, errors = on_a_full_disk(full, *model)
    assert printed.splitlines()[-3:] == ["out.npy", "rest", "old"]
    reason = "No space left on device"
    assert errors == f"Failed to write resource to file '{full}/out.npy': {reason}\n"


@pytest.mark.system("cc")
def test_caches_on_a_full_disk(full, model, tmp_path):
    """Shaders, pipelines, and the cache of Mesa, whose version 22.3 would end the process."""
    elsewhere, variables = ["--output_path", str(tmp_path)], environment(XDG_CACHE_HOME=str(full))
    printed, errors = on_a_full_disk(full, *model, *elsewhere, **variables)
    assert errors == ""
    assert "status" not in printed
    assert (tmp_path / "out.npy").exists()
