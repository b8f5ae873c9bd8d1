"""setup/system where a part is missing: what it would install, asks for, or leaves alone.

A fake dnf notes its arguments; that RHEL has packages of these names is not proved here.
"""

import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT

TOOLS = ("sh", "sed", "tr", "uniq", "mktemp", "tail", "rm", "cat", "chmod", "dirname", "grep", "tee")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder for PATH: small tools, no Python, no compiler, no likwid; dnf writes its arguments into `called`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        real = next(place for place in (Path("/usr/bin", tool), Path("/bin", tool)) if place.exists())
        (folder / tool).symlink_to(real)
    add(folder, "dnf", f'printf "%s\\n" "$@" >{tmp_path}/called')
    add(folder, "id", "echo 0")
    return folder


def add(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def system(bare: Path, *parts: str, **environment: str) -> str:
    done = subprocess.run(
        [ROOT / "setup/system", *parts], env={"PATH": str(bare)} | environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_dnf_is_asked_for_the_names_of_rhel(bare: Path) -> None:
    said = system(bare, "run", "emulated")
    called = (bare.parent / "called").read_text().split()
    packages = ["python3.11", "gcc", "glibc-devel", "kernel-headers", "likwid"]
    packages += ["openmpi", "openmpi-devel", "util-linux", "qemu-kvm"]
    assert called == ["install", "-y", "--setopt=strict=0", *packages]
    assert f"will run: dnf {' '.join(called)}" in said


@pytest.mark.parametrize("environment", [{"SYSTEM": "no"}, {"OFFLINE": "."}])
def test_the_system_is_left_alone(bare: Path, environment: dict[str, str]) -> None:
    assert "left alone: not installed: python3.11 " in system(bare, "run", **environment)
    assert not (bare.parent / "called").exists()


def test_who_may_not_is_given_the_line_for_the_administrator(bare: Path) -> None:
    add(bare, "id", "echo 1000")
    said = system(bare, "run")
    assert "ask your administrator" in said
    assert "dnf install -y --setopt=strict=0 python3.11" in said
    assert not (bare.parent / "called").exists()


def test_the_size_and_each_package_are_shown(bare: Path) -> None:
    add(bare, "dnf", "echo Total download size: 3 M; echo '  Installing       : likwid-5.2.2-1.el9.x86_64   1/1'")
    (*_, size, package) = system(bare, "run").splitlines()
    assert (size, package) == ("setup: downloading 3 M", "setup: unpacking likwid-5.2.2-1.el9.x86_64")


def test_an_installation_that_fails_is_told_and_does_not_end_the_run(bare: Path) -> None:
    add(bare, "dnf", "echo Unable to find a match; exit 1")
    said = system(bare, "run")
    assert "Unable to find a match" in said
    assert "going on without" in said


def test_nothing_is_asked_where_nothing_is_missing(bare: Path) -> None:
    for tool in ("python3", "likwid-pin", "mpirun", "mpicc", "flock", "cc"):
        add(bare, tool, "exit 0")
    assert system(bare, "run") == ""
    assert not (bare.parent / "called").exists()


def kernels(folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "setup/kernels"],
        cwd=folder,
        env={"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_static_kernels_stand_in_for_a_compiler(bare: Path, tmp_path: Path) -> None:
    (bare / "cp").symlink_to("/bin/cp")
    static = tmp_path / "kernels/build/static"
    static.mkdir(parents=True)
    none = kernels(tmp_path, str(bare))
    assert none.returncode == 1
    assert "make bundle" in none.stderr
    add(static, "coherence", "exit 0")
    (static / "hashes.tsv").write_text("coherence\t0123\n")
    done = kernels(tmp_path, str(bare))
    assert done.returncode == 0, done.stderr
    assert (static.parent / "hashes.tsv").read_text() == "coherence\t0123\n"


@pytest.mark.parametrize(
    "tool, command", [("micromamba", "create"), ("mamba", "env create"), ("conda", "env create")]
)  # fmt: skip
@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_conda_is_asked_once_for_the_environment(bare: Path, tool: str, command: str, lock: str) -> None:
    """A fake conda notes its arguments and makes what the script looks for; that conda-forge has the packages is not
    proved here."""
    folder, called = bare.parent / "house", bare.parent / "called"
    (folder / "made").mkdir(parents=True)
    (folder / lock).write_text("some==1\n")
    add(folder / "made", "python", f'echo python "$@" >>{called}')
    add(folder / "made", "snakemake", "exit 1")
    (bare / "cp").symlink_to("/bin/cp")
    add(bare, tool, f'echo {tool} "$@" >>{called}; cp -r made .venv && cp -r made .venv/bin')

    def venv() -> list[str]:
        called.unlink(missing_ok=True)
        done = subprocess.run(
            [ROOT / "setup/venv", lock], env={"PATH": str(bare), "ENV": "conda"}, cwd=folder, capture_output=True,
            text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return called.read_text().splitlines()

    more = [f"python -m pip --no-color install -r {lock}"] if "dev" in lock else []
    packages = [*more, "python -m pip --no-color install --no-deps -e ."]
    asked = f"{tool} {command} --yes --prefix {folder}/.venv --file environment.yml"
    assert venv() == [asked, *packages]
    assert venv() == packages, "what is there is not made again"


@pytest.mark.parametrize("environment", [{}, {"ENV": "conda"}])
def test_the_environment_of_another_checkout_is_left_alone(bare: Path, environment: dict[str, str]) -> None:
    other, mine = bare.parent / "other", bare.parent / "mine"
    for folder in (other / ".venv/bin", other / "setup", mine):
        folder.mkdir(parents=True)
    (other / "setup/venv").touch()
    add(other / ".venv/bin", "python", f"touch {bare.parent}/called")
    (mine / ".venv").symlink_to(other / ".venv")
    done = subprocess.run(
        [ROOT / "setup/venv", "requirements.lock"], env={"PATH": str(bare), **environment}, cwd=mine,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and not (bare.parent / "called").exists()
    what = f".venv is a symbolic link to the environment of {other}"
    assert done.stderr == f"setup: {what}: remove the link (rm .venv), and call this again\n"


def test_without_any_conda_it_says_so(bare: Path) -> None:
    done = subprocess.run(
        [ROOT / "setup/venv", "requirements.lock"], env={"PATH": str(bare), "ENV": "conda"}, cwd=bare.parent,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "none of micromamba, mamba and conda is on the PATH" in done.stderr
