"""The files around the Docker images agree with each other and with the project; nothing is built.

Whether the images can be built, and what is in them, scripts/docker-check tests.
"""

from __future__ import annotations

import re
import subprocess
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker/Dockerfile"
EXTRAS = ("dev", "dask", "docs", "onnx", "plot")  # the extras that the images install


STAGES = set(re.findall(r"^FROM .* AS (\w+)$", DOCKERFILE.read_text(), re.M))


def workflow() -> dict:
    return yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())


def test_pip_gets_its_settings_as_secrets():
    """Every installation with pip mounts the secrets under the names that pip looks for."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    runs = re.findall(r"^RUN .*(?:scripts/wheels|bin/pip|scripts/setup).*", text, re.M)
    assert len(runs) == 3
    for run in runs:
        assert "--mount=type=secret,id=pip.conf," in run
        assert "--mount=type=secret,id=certificates," in run


def test_compose_builds_targets_that_exist():
    services = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
    assert {"test", "demo", "shell", "gpu"} <= set(services)
    for name, service in services.items():
        build = service["build"]
        assert (ROOT / "docker" / build["context"] / build["dockerfile"]).resolve() == DOCKERFILE
        assert service["image"] == f"vkops:{build['target']}", name
        assert build["target"] in STAGES
        (command,) = service["command"] if build["target"] == "test" else ["docker/Dockerfile"]
        assert command == "bash" or (ROOT / command).exists()


def test_the_workflow_tests_every_driver_that_scripts_test_knows():
    done = subprocess.run(
        [ROOT / "scripts/test", "--help"], capture_output=True, text=True, check=True, timeout=10
    )
    known = re.findall(r"\b(?:none|swiftshader|lavapipe)(?:-[a-z0-9]+)*\b", done.stdout)
    matrix = workflow()["jobs"]["drivers"]["strategy"]["matrix"]
    assert sorted(matrix["driver"]) == sorted(set(known))
    options = " ".join([*matrix["options"], *(more["options"] for more in matrix["include"])])
    assert [option for option in options.split() if option not in done.stdout] == []
    assert {more["driver"] for more in matrix["include"]} <= set(known)


def test_the_workflow_has_time_limits_and_may_only_read():
    parsed = workflow()
    assert parsed["permissions"] == {"contents": "read"}
    assert "group" in parsed["concurrency"]
    for name, job in parsed["jobs"].items():
        assert "permissions" not in job, name
        assert 0 < job["timeout-minutes"] <= 60, name
        for step in job["steps"]:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1"))
            assert step.get("with", {}).get("target", "runtime") in STAGES


def test_the_workflow_builds_the_images_that_it_runs():
    for name, job in workflow()["jobs"].items():
        built = {step["with"]["tags"] for step in job["steps"] if "tags" in step.get("with", {})}
        run = " ".join(step.get("run", "") for step in job["steps"])
        assert set(re.findall(r" (vkops(?::\w+)?) ", run)) <= built, name


def test_constraints_hold_every_dependency():
    """After a change of pyproject.toml: scripts/docker-check --constraints."""
    lines = (ROOT / "docker/constraints.txt").read_text().splitlines()[1:]
    pinned = dict(re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups() for line in lines)
    pinned = {canonicalize_name(name): version for name, version in pinned.items()}
    wanted = [Requirement(line) for line in metadata.requires("vkops")]
    wanted = [
        r for r in wanted if not r.marker or any(r.marker.evaluate({"extra": e}) for e in EXTRAS)
    ]
    assert len(wanted) > 15
    built_here = {"kp", "vkops"}
    assert [
        str(r)
        for r in wanted
        if r.name not in built_here
        and not r.specifier.contains(pinned.get(canonicalize_name(r.name), "0"))
    ] == []


def test_files_that_git_ignores_are_not_in_the_build():
    ignored = (ROOT / ".gitignore").read_text().split()
    patterns = (ROOT / "docker/Dockerfile.dockerignore").read_text().splitlines()
    assert [p for p in ignored if f"**/{p.rstrip('/')}" not in patterns] == []


def test_pages_name_targets_and_services_that_exist():
    pages = [(ROOT / p).read_text() for p in ("docker/README.md", "docs/tutorials/ci.md")]
    targets = [name for page in pages for name in re.findall(r"--target (\S+)", page)]
    assert {"gpu", "test"} <= set(targets) <= STAGES
    services = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
    named = re.findall(r"compose.yaml run --rm (\S+)", pages[0])
    assert sorted(named) == sorted(services)


def test_an_unknown_option_of_docker_check():
    script = ROOT / "scripts/docker-check"
    done = subprocess.run([script, "--frobnicate"], capture_output=True, text=True, timeout=10)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "docker-check: unknown option --frobnicate; see scripts/docker-check --help\n",
    )


def test_links_of_the_readme():
    page = ROOT / "docker/README.md"
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []
