"""The wheel carries the rooms beside the package too, as nodeprint/_sources/: `nodeprint sources` copies them out. It
knows the commit that it was made from.

It has the kernels, too: static ones of the architecture that NODEPRINT_WHEEL names (`make wheel`; aarch64 is
cross-compiled), else those that a compiler of this machine makes. Without one it has none, and measures nothing.
"""

import os
import platform
import runpy
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOMS = ("kernels", "workflow", "ansible", "profiles", "config", "reports")
#: By architecture the flavors of kernels/Makefile that a wheel has, and where: node-run looks there.
FLAVORS = {"x86_64": {"static": "static"}, "aarch64": {"aarch64-llsc": "static", "aarch64-lse": "static/lse"}}
STRIP = {"x86_64": "strip", "aarch64": "aarch64-linux-gnu-strip"}
ARCHITECTURE = os.environ.get("NODEPRINT_WHEEL", "")


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
                subprocess.run([strip, copied], check=True)


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
        self.write_commit(Path(self.build_lib, "nodeprint/settings/commit.py"))

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

    def write_commit(self, module: Path) -> None:
        """What `git archive` writes in the same place."""
        commit = runpy.run_path("nodeprint/settings/commit.py")["commit"]()
        module.write_text(module.read_text().replace("$Format:%h$", commit))


class WheelOfKernels(bdist_wheel):
    """A wheel for every Python 3 of one architecture: static programs need no C library of the system."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        if ARCHITECTURE:
            return "py3", "none", f"manylinux_2_17_{ARCHITECTURE}.musllinux_1_1_{ARCHITECTURE}"
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"build_py": BuildWithRooms, "bdist_wheel": WheelOfKernels})
