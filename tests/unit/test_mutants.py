"""The copy that mutants are drawn from is the project as it was committed, whatever a killed call left."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import clean_copy


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, str]:
    root = tmp_path / "project"
    (root / "kernels").mkdir(parents=True)
    (root / "kernels/a.c").write_text("int a;\n")
    (root / "module.py").write_text("LEAST = 1\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "project: begin"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", "-C", str(root), *identity, *command], check=True)
    head = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return root, head.stdout.strip()


def test_a_mutant_that_a_killed_call_left_is_gone(tmp_path: Path, project: tuple[Path, str]) -> None:
    root, commit = project
    copy = clean_copy(tmp_path / "draw", commit, root)
    assert (copy / ".venv").readlink() == Path(sys.prefix)
    (copy / "module.py").write_text("LEAST = (2)\n")
    (copy / "left.py").write_text("")
    (copy / ".git/index.lock").write_text("")
    assert clean_copy(tmp_path / "draw", commit, root) == copy
    assert (copy / "module.py").read_text() == "LEAST = 1\n" and not (copy / "left.py").exists()
    assert (copy / ".venv").is_symlink() and (copy / "kernels/build").is_symlink()


def test_half_a_copy_is_none(tmp_path: Path, project: tuple[Path, str]) -> None:
    root, commit = project
    copy = clean_copy(tmp_path / "draw", commit, root)
    shutil.move(copy, tmp_path / "draw/copy.partial")
    (tmp_path / "draw/copy.partial/module.py").unlink()
    assert (clean_copy(tmp_path / "draw", commit, root) / "module.py").exists()


def test_an_import_takes_no_reference_data_from_other_tests() -> None:
    """Where it did, every test on published data was skipped in CI."""
    command = [sys.executable, "-c", "import os, tests.mutants; print(os.environ['NODEPRINT_DATA'])"]
    environment = {**os.environ, "NODEPRINT_DATA": "here"}
    printed = subprocess.check_output(command, cwd=Path(__file__).parents[2], env=environment, text=True)
    assert printed == "here\n"
