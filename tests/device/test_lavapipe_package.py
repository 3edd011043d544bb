"""The driver of vkops_lavapipe, for which a package that names a driver of this machine stands in."""

import json
import os
import sys
from pathlib import Path

from adapters import own_loader
from processes import finished

from vkops.gpu.adapters.diagnosis import drivers

MODULE = """
from pathlib import Path
def manifest(): return str(Path(__file__).parent / "lvp_icd.json")
def programs(): return str(Path(__file__).parent)
"""
CODE = """
import json, os, subprocess, sys, vkops
variable = "import os; print(os.environ.get('VK_ADD_DRIVER_FILES'))"
print(json.dumps({
    "names": [device.name for device in vkops.devices()],
    "drivers": [[driver.path, driver.source, driver.built] for driver in vkops.gpu.drivers()],
    "inherited": subprocess.check_output([sys.executable, "-c", variable], text=True).strip(),
}))
"""


@own_loader
def test_the_package_is_enough_where_the_system_has_no_driver(tmp_path):
    (usable,) = [driver for driver in drivers() if driver.usable][:1]
    package = tmp_path / "vkops_lavapipe"
    package.mkdir()
    manifest = {**json.loads(Path(usable.path).read_bytes())}
    manifest["ICD"]["library_path"] = usable.library
    (package / "lvp_icd.json").write_text(json.dumps(manifest))
    (package / "__init__.py").write_text(MODULE)
    (package / "__about__.py").write_text('__version__, MESA, DATE = "9.8.7", "9.8", "2025-01-02"')
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "HOME": str(tmp_path)}
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"):
        environment.pop(variable, None)
    places = ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS")
    environment.update(dict.fromkeys(places, str(tmp_path)))  # no driver is there
    printed = json.loads(finished(sys.executable, "-c", CODE, env=environment)[1])
    assert printed["names"] == list(usable.adapters)
    assert printed["inherited"] == "None"
    about = ["vkops_lavapipe 9.8.7", "2025-01-02"]
    assert [driver[1:] for driver in printed["drivers"]] == [about]


def test_a_driver_of_the_system_has_a_folder_and_a_date():
    (usable,) = [driver for driver in drivers() if driver.usable][:1]
    assert usable.source == str(Path(usable.path).parent)
    if usable.built != "1970-01-01":  # of a file whose time was removed
        assert 2015 < int(usable.built[:4]) < 2100
