"""Real parts that a machine may lack, and what a test does without them: skipped with its reason, or failed."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]
#: The package and its add-ons.
PACKAGES = ("nodeprint", "nodeprint_addons")


#: CPUs that the tests may use.
ALLOWED = sorted(os.sched_getaffinity(0))


def need(*tools: str, root: str = "", cpus: int = 1) -> None:
    """Skip the test where a real part is missing: `tools`, rights (`root` says what for), or a number of CPUs."""
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    if lacking:
        missing(f"not installed: {', '.join(lacking)}")
    if root and os.geteuid() != 0:
        missing(f"only root may {root}")
    if len(ALLOWED) < cpus:
        missing(f"{cpus} CPUs are needed")


def need_mount_namespace(purpose: str) -> None:
    """Skip the test where root cannot have a namespace of mounts, which `purpose` needs: in a chroot, for one."""
    need("unshare", root=f"{purpose}, in a namespace of mounts")
    done = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        missing(f"no namespace of mounts here, as in a chroot ({done.stderr.strip()}): nothing is wrong without one")


def missing(reason: str) -> NoReturn:
    """Skip the test, with the reason; with NODEPRINT_REQUIRE=all a skipped test is a failure."""
    if os.environ.get("NODEPRINT_REQUIRE") == "all":
        pytest.fail(reason)
    pytest.skip(reason)


def private_device(path: Path) -> None:
    """Make a device node at `path` that is /dev/null by another name, for what is done to devices."""
    need(root="make a device node")
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError as error:
        missing(f"no device node can be made here: {error.strerror}")


def environment() -> dict[str, str]:
    # the call is a user's: nothing of the test run's own make, and Python keeps what it compiled
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTHONDONTWRITEBYTECODE"))}
    return inherited | {"SYSTEM": "no", "PYTHONPATH": ".:workflow"}


@functools.cache
def built(flavor: str = "", units: bool = False) -> Path:
    """The folder with the kernels of a flavor of kernels/Makefile, made where they are not up to date; with `units` the
    programs of their unit tests, too.

    Without a flavor they are those that measure. All tests and make targets share them; the lock is for tests in
    several processes.
    """
    need("make", "gcc")
    folder = ROOT / "kernels/build"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        goal = "-".join(["units"] * units + [flavor] * bool(flavor))
        command: list[str | Path] = ["make", "-s", "-j2", "-C", ROOT / "kernels", *([goal] if goal else [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    return folder / flavor


@functools.cache
def aarch64_emulator() -> tuple[str, ...]:
    """The command that runs programs for aarch64, with pages of 64 KiB as some systems have them; of 4 KiB if this QEMU
    cannot set the size, as that of Ubuntu 26.04."""
    need("aarch64-linux-gnu-gcc", "qemu-aarch64")
    usage = subprocess.run(["qemu-aarch64", "-help"], capture_output=True, text=True, check=False).stdout
    return ("qemu-aarch64", *(("-p", "65536") if "QEMU_PAGESIZE" in usage else ()))


def copy_programs(folder: Path) -> None:
    """The kernels that measure in `folder`, new, without objects and other flavors."""
    folder.mkdir(exist_ok=True)
    for path in built().iterdir():
        if path.is_file():
            shutil.copy2(path, folder)


@contextmanager
def small_file_system(folder: Path, size: str) -> Iterator[None]:
    """`folder`, new, as a tmpfs of `size`."""
    need(root="mount a small file system")
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs"]
    made = subprocess.run([*mount, folder], check=False, capture_output=True, text=True)
    if made.returncode != 0:
        missing(f"no tmpfs can be mounted here: {made.stderr}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
