"""A clone with the packages of Snakemake alone: it is linted, its graph is planned, and its executor is known."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT

#: What nodeprint needs and Snakemake does not bring.
ABSENT = ("ClusterShell", "h5netcdf", "h5py", "matplotlib", "msgspec", "numpy", "pandas", "rich", "scipy", "typer",
          "typst", "xarray", "zstandard")  # fmt: skip
BLOCK = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        if name == "nodeprint" and not path and not any("clone" in place for place in sys.path):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone, in which Python misses these packages."""
    folder = tmp_path_factory.mktemp("site") / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, folder], check=True)
    (folder.parent / "sitecustomize.py").write_text(BLOCK)
    return folder


def module(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A module of Python called there."""
    environment = os.environ | {"PYTHONPATH": f"{clone.parent}:{clone}/workflow"}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def snakemake(clone: Path, *words: str) -> str:
    """What Snakemake prints there."""
    done = module(clone, "snakemake", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_clone_is_linted_and_planned(clone: Path) -> None:
    assert "in a good condition" in snakemake(clone, "--lint")
    planned = snakemake(clone, "--dry-run", "--configfile", "tests/data/lint.yaml")
    assert all(f"\n{rule} " in planned for rule in ("kernels", "discover", "judge", "complete"))


def test_a_clone_knows_its_executor(clone: Path) -> None:
    (clone / "slurm.yaml").write_text("launch: slurm\ncampaign: sheet\nmeasure: [coherence-cas]\nslurm: {minutes: 5}\n")
    planned = snakemake(clone, "--dry-run", "--configfile", "slurm.yaml", "--workflow-profile", "profiles/slurm")
    assert "\ndiscover " in planned


def test_a_clone_without_the_packages_of_nodeprint_names_the_remedy(clone: Path) -> None:
    done = module(clone, "nodeprint", "discover")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("nodeprint: the Python package ") and "`snakemake --sdm conda`" in line
