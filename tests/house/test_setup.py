"""setup/system where a part is missing: what it would install, asks for, or leaves alone.

A fake dnf notes its arguments; that RHEL has packages of these names is not proved here.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sysconfig
import termios
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT
from tests.support.terminal import read_to_end

TOOLS = ("sh", "sed", "tr", "uniq", "mktemp", "tail", "rm", "cat", "chmod", "dirname", "grep", "tee", "date", "mkdir",
         "stty", "touch", "readlink", "ln", "nproc", "setsid", "sleep", "head", "rmdir")  # fmt: skip
DNF = ["install", "-y", "--setopt=strict=0"]
APT = ["install", "-y", "--no-install-recommends"]


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
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def apt(bare: Path) -> None:
    """Debian's tools instead of dnf; whatever lies in the folder is the distribution's."""
    (bare / "dnf").unlink()
    add(bare, "apt-get", f'case $* in *" update") ;; *) printf "%s\\n" "$@" >{bare.parent}/called ;; esac')
    add(bare, "apt-cache", 'echo "Package: $2"')
    add(bare, "dpkg", f"case $2 in {bare}/*) ;; *) exit 1 ;; esac")


def python(folder: Path, name: str, version: str, venv: str = "") -> None:
    """A Python of a version; `venv` is what `-m venv` does: nothing works, unless it is `complete`."""
    made = 'mkdir -p .venv/bin && cd .venv/bin && echo "exit {code}" >python; chmod 755 python; exit {code}'
    makes = {
        "complete": made.format(code=0),
        "no pip": made.format(code=1),  # as Debian's does without the wheels: a folder is left
        "": "exit 1",
    }[venv]
    add(folder, name, f'case $* in *version_info*) echo {version} ;; "-m venv"*) {makes} ;; *) exit 1 ;; esac')


def system(bare: Path, *parts: str, path: str = "", os_release: str = "", code: int = 0, **environment: str) -> str:
    """What setup/system says, called in the folder above `bare`; it ends with `code`."""
    (bare.parent / "os-release").write_text(os_release)
    clean = {"PATH": path or str(bare), "OS_RELEASE": str(bare.parent / "os-release")}
    done = subprocess.run(
        [ROOT / "setup/system", *parts],
        env=clean | environment,
        stdin=subprocess.DEVNULL,
        cwd=bare.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stderr


def installed(bare: Path) -> list[str]:
    """What was installed, without the words of the command."""
    called = (bare.parent / "called").read_text().split()
    return [word for word in called if word not in (*DNF, *APT) and not word.startswith(("-", "D"))]


def test_dnf_is_asked_for_the_names_of_rhel(bare: Path) -> None:
    output = system(bare, "python", "run", "emulated", os_release='PLATFORM_ID="platform:el9"')
    called = (bare.parent / "called").read_text().split()
    packages = ["python3.11", "gcc", "glibc-devel", "kernel-headers", "likwid"]
    packages += ["openmpi", "openmpi-devel", "util-linux", "qemu-kvm"]
    assert called == [*DNF, *packages]
    assert f"will run: dnf {' '.join(called)}" in output


UBUNTU_22, DEBIAN_12 = 'ID=ubuntu\nVERSION_ID="22.04"', 'ID=debian\nVERSION_ID="12"'
ROCKY_9, ROCKY_10 = 'ID=rocky\nPLATFORM_ID="platform:el9"', 'ID=rocky\nPLATFORM_ID="platform:el10"'


@pytest.mark.parametrize(
    ("pythons", "os_release", "packages"),
    [
        ({}, DEBIAN_12, ["python3", "python3-venv"]),
        ({"python3": ("3.11", "")}, DEBIAN_12, ["python3.11-venv"]),
        ({"python3": ("3.12", "")}, 'ID=ubuntu\nVERSION_ID="24.04"', ["python3.12-venv"]),
        ({"python3": ("3.13", "no pip")}, 'ID=debian\nVERSION_ID="13"', ["python3.13-venv"]),
        ({"python3": ("3.11", ""), "python3.12": ("3.12", "no pip")}, DEBIAN_12, ["python3.11-venv"]),
        # for which Snakemake's packages have no wheels
        (
            {"python3": ("3.14", "")},
            'ID=ubuntu\nVERSION_ID="26.04"',
            ["python3.14-venv", "gcc", "libc6-dev", "python3.14-dev"],
        ),
        ({}, UBUNTU_22, ["python3.11", "python3.11-venv"]),
        ({"python3": ("3.10", "complete")}, UBUNTU_22, ["python3.11", "python3.11-venv"]),
        ({"python3": ("3.10", ""), "python3.12": ("3.12", "")}, UBUNTU_22, ["python3.12-venv"]),
        ({"python3": ("3.9", "complete"), "python3.11": ("3.11", "")}, "ID=other", ["python3.11-venv"]),
        ({"python3": ("3.9", "complete")}, "", ["python3.11", "python3.11-venv"]),
    ],
)
def test_apt_is_asked_for_what_makes_python_whole(
    bare: Path, pythons: dict[str, tuple[str, str]], os_release: str, packages: list[str]
) -> None:
    apt(bare)
    for name, (version, venv) in pythons.items():
        python(bare, name, version, venv)
    assert f"install -y --no-install-recommends {' '.join(packages)} \n" in system(
        bare, "python", os_release=os_release
    )
    assert installed(bare) == packages


def test_no_package_is_installed_where_an_environment_cannot_be_made(bare: Path) -> None:
    """As in a clone that is read-only or on a full disk; here a file is in the way, which stops root, too."""
    apt(bare)
    python(bare, "python3", "3.11")
    (bare.parent / ".venv").write_text("")
    assert "no .venv can be made in" in system(bare, "python", os_release=DEBIAN_12, code=1)
    assert not (bare.parent / "called").exists()


def test_where_no_python_is_the_version_that_comes_is_looked_up(bare: Path) -> None:
    apt(bare)
    add(bare, "apt-cache", "printf 'Package: python3\\nVersion: 3.14.3-1\\n\\nPackage: python3\\nVersion: 3.11.2\\n'")
    system(bare, "python", os_release=DEBIAN_12)
    assert installed(bare) == ["python3", "python3-venv", "gcc", "libc6-dev", "python3.14-dev"]


@pytest.mark.parametrize(
    ("pythons", "os_release", "packages"),
    [
        ({}, ROCKY_9, ["python3.11"]),
        ({"python3": ("3.9", "complete")}, ROCKY_9, ["python3.11"]),
        ({"python3": ("3.6", "")}, 'PLATFORM_ID="platform:el8"', ["python3.11"]),
        ({}, ROCKY_10, ["python3"]),
    ],
)
def test_dnf_is_asked_for_a_python_that_is_new_enough(
    bare: Path, pythons: dict[str, tuple[str, str]], os_release: str, packages: list[str]
) -> None:
    add(bare, "rpm", "exit 0")
    for name, (version, venv) in pythons.items():
        python(bare, name, version, venv)
    system(bare, "python", os_release=os_release)
    assert installed(bare) == packages


@pytest.mark.parametrize(
    "pythons",
    [
        {"python3": ("3.11", "complete")},
        {"python3": ("3.9", "complete"), "python3.11": ("3.11", "complete")},
        {"python3": ("3.12", "no pip"), "python3.13": ("3.13", "complete")},
    ],
)
def test_no_package_is_asked_for_where_one_python_works(bare: Path, pythons: dict[str, tuple[str, str]]) -> None:
    for name, (version, venv) in pythons.items():
        python(bare, name, version, venv)
    assert system(bare, "python") == ""
    assert (bare.parent / ".venv/bin/python").exists()
    assert not (bare.parent / "called").exists()


def test_a_python_in_usr_local_hides_none_of_the_system(bare: Path) -> None:
    """One that was built without the wheels of pip comes first on the PATH."""
    apt(bare)
    local = bare.parent / "local"
    python(local, "python3", "3.12", "no pip")
    python(bare, "python3", "3.11", "complete")
    assert system(bare, "python", path=f"{local}:{bare}") == ""
    (bare.parent / ".venv/bin/python").unlink()
    python(bare, "python3", "3.11", "")
    system(bare, "python", path=f"{local}:{bare}", os_release=DEBIAN_12)
    assert installed(bare) == ["python3.11-venv"], "what completes the system's, not the local one"


def test_an_environment_without_pip_is_made_again(bare: Path) -> None:
    add(bare.parent / ".venv", "unused", "")
    left = bare.parent / ".venv/bin"
    add(left, "python", "exit 1")
    add(left, "python3", f"touch {bare.parent}/used")
    python(bare, "python3", "3.11", "complete")
    assert system(bare, "python", path=f"{left}:{bare}") == ""
    assert (left / "python").read_text() == "exit 0\n"
    assert not (bare.parent / "used").exists()


def test_venv_names_the_package_where_no_python_can(bare: Path) -> None:
    apt(bare)
    python(bare, "python3", "3.11", "")
    done = subprocess.run(
        [ROOT / "setup/venv", "requirements.lock"],
        env={"PATH": str(bare)},
        cwd=bare.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith("can make an environment with pip; to be installed: python3.11-venv\n")


def test_the_system_is_left_alone(bare: Path) -> None:
    for output in (system(bare, "python", "run", SYSTEM="no"), system(bare, "python", "run", OFFLINE=".")):
        assert "left alone: not installed: python3 " in output
        assert not (bare.parent / "called").exists()


def test_who_may_not_is_given_the_line_for_the_administrator(bare: Path) -> None:
    add(bare, "id", "echo 1000")
    output = system(bare, "run")
    assert "ask your administrator" in output and "go on without what is missing" in output
    assert "dnf install -y --setopt=strict=0 gcc" in output
    output = system(bare, "python", "run", os_release=ROCKY_9, code=1)
    assert "dnf install -y --setopt=strict=0 python3.11 gcc" in output
    assert output.endswith("setup: nothing goes on without a Python of 3.11 or newer that has venv and pip\n")
    assert not (bare.parent / "called").exists()


def test_all_that_is_installed_is_one_line_and_its_log(bare: Path) -> None:
    add(bare, "dnf", "echo Total download size: 3 M; echo '  Installing       : likwid-5.2.2-1.el9.x86_64   1/1'")
    said = [line for line in system(bare, "run").splitlines() if not line.endswith(" begins")]
    plan, download, installation, *_ = said
    assert plan.startswith("setup: will run: dnf install")
    assert re.fullmatch(r"setup: download of system packages, \d+ s", download)
    assert re.fullmatch(r"setup: system packages, \d+ s", installation)
    log = (bare.parent / "build/setup/system-packages.log").read_text()
    assert "step: 3 M\n" in log and "step: likwid-5.2.2-1.el9.x86_64\n" in log


def test_an_installation_that_fails_names_its_log_and_does_not_end_the_run(bare: Path) -> None:
    add(bare, "dnf", "echo Unable to find a match; exit 1")
    said = system(bare, "run")
    assert "Unable to find a match" in said
    assert "system packages failed after" in said
    assert "whole output is in build/setup/download-of-system-packages.log" in said
    assert "going on without gcc" in said
    assert "will run" in system(bare, "run"), "a source may answer again, and is asked again"


def test_what_the_package_sources_do_not_have_is_asked_for_once(bare: Path) -> None:
    """dnf ends with 0 where one of several packages is not there; apt-get would refuse all of them."""
    for tool in ("mpirun", "mpicc", "flock", "cc"):
        add(bare, tool, "exit 0")
    assert "will run: dnf" in system(bare, "run")
    again = system(bare, "run")
    assert "going on without likwid" in again and "will run" not in again
    (bare.parent / "build/setup/unavailable").unlink()
    apt(bare)
    add(bare, "apt-cache", '[ "$2" = likwid ] || echo "Package: $2"')  # 0, as for a name that others refer to
    (bare / "mpirun").unlink()
    assert "no package source of this machine has likwid" in system(bare, "run")
    assert installed(bare) == ["openmpi-bin", "libopenmpi-dev"]


def test_nothing_is_asked_where_nothing_is_missing(bare: Path) -> None:
    for tool in ("likwid-pin", "mpirun", "mpicc", "flock", "cc"):
        add(bare, tool, "exit 0")
    assert system(bare, "run") == ""
    assert not (bare.parent / "called").exists()


def test_a_phase_fits_the_terminal_and_leaves_it_alone(tmp_path: Path) -> None:
    """On a terminal of 40 columns: no line is longer, the command sees no terminal, and the last line has the time."""
    command = "test ! -t 0 && test ! -t 1 && echo 'step: a package with a name that is longer than the line' && sleep 1"
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    done = subprocess.run(
        [ROOT / "setup/phase", "some packages", "sh", "-c", command],
        cwd=tmp_path,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        timeout=60,
        check=False,
    )
    os.close(follower)
    shown = read_to_end(leader)
    assert done.returncode == 0, shown
    assert re.search(r"some packages, \d s: a package wi", shown)
    assert all(len(piece) < 40 for piece in re.split(r"\r|\n|\x1b\[K", shown))
    assert re.search(r"setup: some packages, \d+ s\r\n$", shown)


def test_a_phase_that_fails_says_why(tmp_path: Path) -> None:
    def phase(command: str) -> list[str]:
        done = subprocess.run(
            [ROOT / "setup/phase", "that", "sh", "-c", command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 3
        begins, *lines = done.stderr.splitlines()
        assert begins == "setup: that begins"  # in a log, minutes before anything else is there
        return lines

    named = r"setup: that failed after \d+ s; its whole output is in build/setup/that.log"
    *lines, last = phase("echo noise; echo the reason; exit 3")
    assert lines == ["noise", "the reason"] and re.fullmatch(named, last)
    *lines, last = phase("echo noise; echo 'setup: a sentence'; exit 3")
    assert lines == ["setup: a sentence"] and re.fullmatch(named, last)


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
    ("uid", "static", "possible"), [("1000", False, False), ("1000", True, True), ("0", False, True)]
)
def test_a_run_that_cannot_build_stops_before_any_package(
    bare: Path, tmp_path: Path, uid: str, static: bool, possible: bool
) -> None:
    """Root installs a compiler; without one an ordinary user gets the administrator's line at once."""
    add(bare, "id", f"echo {uid}")
    python(bare, "python3.11", "3.11", "complete")
    if static:
        (tmp_path / "kernels/build").mkdir(parents=True)
        add(tmp_path / "kernels/build/static", "coherence", "exit 0")
    done = subprocess.run(
        [ROOT / "setup/kernels", "--possible"],
        env={"PATH": str(bare)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (0 if possible else 1), done.stderr
    assert ("dnf install -y --setopt=strict=0 gcc" in done.stderr) is not possible
    assert ("setup: no compiler (gcc) and no static kernels" in done.stderr) is not possible


@pytest.mark.parametrize("tool, command", [("micromamba", "create"), ("mamba", "env create"), ("conda", "env create")])
@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_conda_is_asked_once_for_the_environment(bare: Path, tool: str, command: str, lock: str) -> None:
    """A fake conda notes its arguments and makes what the script looks for; that conda-forge has the packages is not
    proved here."""
    folder, called = bare.parent / "house", bare.parent / "called"
    (folder / "made").mkdir(parents=True)
    (folder / lock).write_text("some==1\n")
    add(folder / "made", "python", f'echo python "$@" >>{called}')
    add(folder / "made", "snakemake", "exit 1")
    for program in ("cp", "mkdir", "ln"):
        if not (bare / program).exists():
            (bare / program).symlink_to(f"/bin/{program}")
    site = ".venv/lib/python3.11/site-packages"
    add(bare, tool, f'echo {tool} "$@" >>{called}; cp -r made .venv && cp -r made .venv/bin && mkdir -p {site}')

    def venv() -> list[str]:
        called.unlink(missing_ok=True)
        done = subprocess.run(
            [ROOT / "setup/venv", lock],
            env={"PATH": str(bare), "ENV": "conda"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
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
        [ROOT / "setup/venv", "requirements.lock"],
        env={"PATH": str(bare), **environment},
        cwd=mine,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1 and not (bare.parent / "called").exists()
    what = f".venv is a symbolic link to the environment of {other}"
    assert done.stderr == f"setup: {what}: remove the link (rm .venv), and call this again\n"


def test_the_path_of_the_checkout_is_not_in_the_environment() -> None:
    """Python reads it in the locale of each call, which may lack its letters."""
    packages = Path(sysconfig.get_path("purelib"))
    (path,) = packages.glob("__editable__.nodeprint-*.pth")
    assert path.read_text(encoding="ascii") == "../../../..\n"
    assert (packages / "../../../..").resolve() == Path(__file__).parents[2]
    assert not (packages / "snakemake_executor_plugin_nodeprint").readlink().is_absolute()


def test_without_any_conda_it_says_so(bare: Path) -> None:
    done = subprocess.run(
        [ROOT / "setup/venv", "requirements.lock"],
        env={"PATH": str(bare), "ENV": "conda"},
        cwd=bare.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "none of micromamba, mamba and conda is on the PATH" in done.stderr
