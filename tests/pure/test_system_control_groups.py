"""What the control groups of Linux leave to this process."""

import pytest

from vkops.system import control_groups


@pytest.fixture
def groups(tmp_path, monkeypatch):
    monkeypatch.setattr(control_groups, "_GROUPS", tmp_path)
    monkeypatch.setattr(control_groups, "_OWN_GROUPS", tmp_path / "own")
    return tmp_path


def limit(folder, allowed):
    folder.mkdir(exist_ok=True)
    (folder / "memory.max").write_text(allowed)
    (folder / "memory.current").write_text("1000\n")
    (folder / "memory.stat").write_text("anon 900\ninactive_file 100\n")


@pytest.mark.posix("names of any bytes")
@pytest.mark.parametrize("name", [b"plain", b"\xff\xfe", "\u2028".encode(), b"a:b", b"\x1b[31m"])
def test_groups_of_any_name(groups, name):
    limit(groups, "max\n")
    limit(groups / name.decode(errors="surrogateescape"), "5000\n")
    (groups / "own").write_bytes(b"0::/" + name + b"\n")
    assert list(control_groups.available_in_groups(1 << 40)) == [4100]


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"0", b"0:", b"::", b"x:y:z", b"\xff", b"0::/../..\n", b"1:memory"]
)
def test_what_is_no_list_of_groups(groups, text):
    (groups / "own").write_bytes(text)
    assert list(control_groups.available_in_groups(1 << 40)) == []


@pytest.mark.parametrize("wrong", [b"", b"-", b"\xff", b"1e9", b"9" * 5000, b"inactive_file"])
@pytest.mark.parametrize("file", ["memory.max", "memory.current", "memory.stat"])
def test_files_that_cannot_be_read(groups, file, wrong):
    limit(groups, "5000\n")
    (groups / file).write_bytes(wrong)
    (groups / "own").write_bytes(b"0::/\n")
    assert list(control_groups.available_in_groups(1 << 40)) == []
