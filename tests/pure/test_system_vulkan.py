"""Names and places of Vulkan on each operating system; Windows' registry is a stand-in."""

import sys
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from vkops.gpu.adapters import loader_files
from vkops.system import vulkan

PACKAGES = (
    "libvulkan1", "mesa-vulkan-drivers", "vulkan-validationlayers", "glslang-tools", "spirv-tools",
    "renderdoccmd", "librenderdoc",
)  # fmt: skip
ADAPTERS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
COMPONENTS = r"SYSTEM\CurrentControlSet\Control\Class\{5c4c3332-344d-483c-8739-259e934c9cc8}"
DRIVERS = r"SOFTWARE\Khronos\Vulkan\Drivers"


class Registry(ModuleType):
    """``winreg`` with keys in a dict: the values of each by name, its subkeys by their paths."""

    HKEY_LOCAL_MACHINE = "machine"
    HKEY_CURRENT_USER = "user"

    def __init__(self, keys):
        super().__init__("winreg")
        self.keys = keys

    def _subkeys(self, root, path):
        return sorted(
            {
                p[len(path) + 1 :].split("\\")[0]
                for r, p in self.keys
                if (r, p[: len(path) + 1]) == (root, f"{path}\\")
            }
        )

    @contextmanager
    def OpenKey(self, root, path):  # noqa: N802
        if (root, path) not in self.keys and not self._subkeys(root, path):
            raise FileNotFoundError(2, "The system cannot find the file specified")
        yield root, path

    def QueryInfoKey(self, key):  # noqa: N802
        return len(self._subkeys(*key)), len(self.keys.get(key, {})), 0

    def EnumKey(self, key, number):  # noqa: N802
        return self._subkeys(*key)[number]

    def EnumValue(self, key, number):  # noqa: N802
        return (*list(self.keys[key].items())[number], 4)

    def QueryValueEx(self, key, name):  # noqa: N802
        if name not in self.keys.get(key, {}):
            raise FileNotFoundError(2, "The system cannot find the file specified")
        return self.keys[key][name], 1


@pytest.fixture
def registry(monkeypatch):
    def install(keys):
        monkeypatch.setitem(sys.modules, "winreg", Registry(keys))

    return install


def test_drivers_of_adapters_and_of_software_on_windows(registry):
    registry(
        {
            ("machine", rf"{ADAPTERS}\0000"): {"VulkanDriverName": r"C:\nv\nv_icd.json"},
            ("machine", rf"{ADAPTERS}\0001"): {"DriverDesc": "a display without Vulkan"},
            ("machine", rf"{COMPONENTS}\0002"): {"VulkanDriverName": [r"C:\a.json", r"C:\b.json"]},
            ("machine", DRIVERS): {r"C:\swift.json": 0, r"C:\disabled.json": 1, r"C:\a.json": 0},
            ("user", DRIVERS): {r"C:\own.json": 0},
        }
    )
    names = [r"C:\nv\nv_icd.json", r"C:\a.json", r"C:\b.json", r"C:\swift.json", r"C:\own.json"]
    assert vulkan.places("win32") == list(map(Path, names))


def test_drivers_that_the_registry_lists_are_diagnosed(registry, tmp_path, monkeypatch):
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"):
        monkeypatch.delenv(variable, raising=False)
    manifest = tmp_path / "icd.json"
    registry({("machine", DRIVERS): {str(manifest): 0}})
    places = vulkan.places
    monkeypatch.setattr(vulkan, "places", lambda: places("win32"))
    assert loader_files.manifests() == [manifest]


@pytest.mark.parametrize(
    ("system", "folders"),
    [
        ("linux", "~/.config /etc/xdg /etc ~/.local/share /usr/local/share /usr/share"),
        (
            "darwin",
            "~/.config /etc/xdg /usr/local/etc /opt/homebrew/etc /etc ~/.local/share "
            "/opt/homebrew/share /usr/local/share /usr/share",
        ),
        ("freebsd14", "~/.config /etc/xdg /etc ~/.local/share /usr/local/share /usr/share"),
    ],
)
def test_folders_of_other_systems(monkeypatch, system, folders):
    for variable in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, "/home/me")
    expected = [Path(f.replace("~", "/home/me"), "vulkan", "icd.d") for f in folders.split()]
    assert vulkan.places(system) == expected


@pytest.mark.parametrize("package", PACKAGES)
def test_each_system_has_a_way_to_install_everything(package):
    assert package in vulkan.how_to_install(package, "linux")
    for system in ("win32", "darwin"):
        how = vulkan.how_to_install(package, system)
        assert "Debian" not in how
        assert "Ubuntu" not in how
        assert len(how) > 10
