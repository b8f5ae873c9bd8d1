"""The wheel carries the rooms beside the package too, as nodeprint/_sources/: `nodeprint sources` copies them out. It
knows the commit that it was made from."""

import runpy
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOMS = ("kernels", "workflow", "ansible", "profiles", "config", "reports")


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
        self.write_commit(Path(self.build_lib, "nodeprint", "commit.py"))

    def write_commit(self, module: Path) -> None:
        """What `git archive` writes in the same place."""
        commit = runpy.run_path("nodeprint/commit.py")["commit"]()
        module.write_text(module.read_text().replace("$Format:%h$", commit))


setup(cmdclass={"build_py": BuildWithRooms})
