"""The wheel carries the rooms beside the package too, as nodeprint/_sources/: `nodeprint sources` copies them out. It
knows the commit that it was made from.

It has the kernels, too: static ones of the architecture that NODEPRINT_WHEEL names (`make wheel`; aarch64 is
cross-compiled), else those that a compiler of this machine makes. Without one it has none, and measures nothing.

The same commit, compiler and setuptools make the same bytes, of wheel and source archive: times are the commit's (or
SOURCE_DATE_EPOCH), and modes, owners and directories of the build are left out.
"""

import gzip
import os
import platform
import runpy
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOMS = ("kernels", "workflow", "ansible", "profiles", "config", "reports")
#: By architecture the flavors of kernels/Makefile that a wheel has, and where: node-run looks there.
FLAVORS = {"x86_64": {"static": "static"}, "aarch64": {"aarch64-llsc": "static", "aarch64-lse": "static/lse"}}
STRIP = {"x86_64": "strip", "aarch64": "aarch64-linux-gnu-strip"}
ARCHITECTURE = os.environ.get("NODEPRINT_WHEEL", "")


def commit_time() -> str:
    """When the checkout's commit was made, in seconds; without a checkout the first day that a wheel can have."""
    try:
        command = ["git", "log", "-1", "--format=%ct"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "315532800"  # 1980


def plain_mode(path: Path) -> int:
    """The mode of a file whatever the umask of the checkout was."""
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def write_commit(module: Path) -> None:
    """What `git archive` writes in the same place."""
    commit = runpy.run_path("nodeprint/settings/commit.py")["commit"]()
    text = module.read_text().replace("$Format:%h$", commit)
    module.unlink()  # of a source archive it may be a link to the checkout's
    module.write_text(text)


def make(*words: str) -> bool:
    """Whether `make` in kernels/ came to its end."""
    try:
        command = [os.environ.get("MAKE", "make"), "-s", "-j2", "-C", "kernels", *words]
        return subprocess.run(command, check=False).returncode == 0
    except FileNotFoundError:
        return False


def programs(built: Path, to: Path, strip: str = "strip") -> None:
    """Copy what was built, without what it was built from and what only a debugger needs (two thirds of it)."""
    to.mkdir(parents=True, exist_ok=True)
    for path in built.iterdir():
        if path.is_file() and path.name != "linktest.so":
            copied = shutil.copy2(path, to)
            if Path(copied).read_bytes()[:4] == b"\x7fELF":
                # its number is that of the code with its paths for a debugger, which are cut off
                subprocess.run([strip, "--remove-section=.note.gnu.build-id", copied], check=True)


class BuildWithRooms(build_py):
    """The package, and in a wheel (an editable install has the checkout) the rooms beside it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for room in ROOMS:
            out = Path(self.build_lib, "nodeprint", "_sources", room)
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(room, out, ignore=shutil.ignore_patterns("build", "__pycache__", ".snakemake"))
        shutil.copy2("environment.yml", out.parent)
        self.add_kernels(out.parent / "kernels" / "build")
        write_commit(Path(self.build_lib, "nodeprint/settings/commit.py"))
        for path in Path(self.build_lib).rglob("*"):
            path.chmod(plain_mode(path))

    def add_kernels(self, to: Path) -> None:
        """Those of the wheel's architecture, or of this machine where a compiler is."""
        if ARCHITECTURE:
            for flavor, place in FLAVORS[ARCHITECTURE].items():
                if not make(flavor):
                    raise SystemExit(f"the kernels cannot be built for {ARCHITECTURE}: install its compiler")
                programs(Path("kernels/build", flavor), to / place, STRIP[ARCHITECTURE])
            shutil.copy2(to / "static" / "hashes.tsv", to)
            return
        here = Path(self.build_lib).parent.absolute() / "kernels"
        if make(f"BUILD={here}", "all"):
            programs(here, to)
            if platform.machine() == "aarch64" and make(f"BUILD={here}", "lse"):
                programs(here / "lse", to / "lse")
        else:
            self.warn("no kernels: install a C compiler and make, then install nodeprint again, to measure here")


class WheelOfKernels(bdist_wheel):
    """A wheel for every Python 3 of one architecture: static programs need no C library of the system."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def egg2dist(self, egginfo_path: str, distinfo_path: str) -> None:
        super().egg2dist(egginfo_path, distinfo_path)
        for path in Path(distinfo_path).rglob("*"):  # the license has the mode of the checkout's
            path.chmod(plain_mode(path))

    def get_tag(self) -> tuple[str, str, str]:
        if ARCHITECTURE:
            return "py3", "none", f"manylinux_2_17_{ARCHITECTURE}.musllinux_1_1_{ARCHITECTURE}"
        return "py3", "none", super().get_tag()[2]


class SourceArchive(sdist):
    """The source archive, with the commit and without what only this machine knows."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        if Path("nodeprint/settings/commit.py").read_text().count("$Format:%h$"):
            write_commit(Path(base_dir, "nodeprint/settings/commit.py"))

    def make_archive(
        self,
        base_name: Any,
        format: str,
        root_dir: Any = None,
        base_dir: Any = None,
        owner: Any = None,
        group: Any = None,
    ) -> str:
        """`base_dir` as a tar archive: files by name, with the commit's time."""
        epoch = int(os.environ["SOURCE_DATE_EPOCH"])
        out = f"{base_name}.tar.gz"
        with (
            Path(out).open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=epoch) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            for path in sorted(Path(base_dir).rglob("*")):
                if path.is_file():
                    entry = tarfile.TarInfo(path.as_posix())
                    entry.size, entry.mode, entry.mtime = path.stat().st_size, plain_mode(path), epoch
                    with path.open("rb") as content:
                        archive.addfile(entry, content)
        return out


os.umask(0o022)
os.environ.setdefault("SOURCE_DATE_EPOCH", commit_time())
setup(cmdclass={"build_py": BuildWithRooms, "bdist_wheel": WheelOfKernels, "sdist": SourceArchive})
