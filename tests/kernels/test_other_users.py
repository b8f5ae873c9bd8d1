"""Other users of a node, who attack whatever node-run makes where they may write, gain nothing and change nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.combinations import one_of
from tests.support.own_processes import MARK
from tests.support.real_parts import ROOT, need

pytestmark = pytest.mark.machine

#: Users that no machine has, and root.
ALICE, BOB, ADMIN = 64201, 64202, 0
#: node-run begins so often, and each time names are taken in another way.
TIMES = 3
#: Programs that make and rename files, with time for an attacker before and after.
SLOW = ("mktemp", "mv", "mkdir")


@dataclass(frozen=True)
class Node:
    """A folder that all may look into, with node-run, a campaign of `user`, and a file that `user` alone may write."""

    folder: Path
    user: int

    @property
    def kept(self) -> Path:
        return self.folder / "canary/kept"

    @property
    def proof(self) -> Path:
        return self.folder / "proofs/proof"

    def measure(self, job: int, tmp: Path) -> subprocess.CompletedProcess[str]:
        words = [
            "--campaign",
            "campaign",
            "--node",
            "n1",
            "--job",
            str(job),
            "--runs",
            "1",
            "--kernels",
            "programs/build",
        ]
        return subprocess.run(
            ["programs/node-run", *words, "--setup", "programs/setup.sh"],
            cwd=self.folder,
            env={**MARK, "PATH": f"{self.folder}/programs/slow:/usr/bin:/bin", "TMPDIR": str(tmp)},
            user=self.user,
            group=self.user,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


def nodes(user: int) -> Iterator[Node]:
    need("flock", "setsid", root="act for two users")
    folder = Path(tempfile.mkdtemp(prefix="nodeprint-other-users-"))
    folder.chmod(0o755)
    node = Node(folder, user)
    for name in ("programs/build", "programs/slow", "campaign", "canary"):
        (folder / name).mkdir(parents=True)
    for program in SLOW:
        script = folder / "programs/slow" / program
        script.write_text(f'#!/bin/sh\nsleep 0.2\n{shutil.which(program)} "$@"\ncode=$?\nsleep 0.2\nexit $code\n')
        script.chmod(0o755)
    node.proof.parent.mkdir(mode=0o777)
    node.proof.parent.chmod(0o777)
    shutil.copy(ROOT / "kernels/node-run", folder / "programs")
    shutil.copytree(ROOT / "kernels/node", folder / "programs/node")
    shutil.copy(ROOT / "tests/support/fake_kernel.sh", folder / "programs/build/fake")
    (folder / "programs/setup.sh").write_text("export SITE_LOADED=yes\n")
    (folder / "campaign/plan.tsv").write_text("a\tfake\t--steps 3 --environment\n")
    node.kept.write_text("kept")
    for path in (node.kept.parent, node.kept, folder / "campaign"):
        os.chown(path, user, user)
    yield node
    shutil.rmtree(folder)


@pytest.fixture(params=[ADMIN, ALICE], ids=["root measures", "a user measures"])
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    yield from nodes(request.param)


@contextmanager
def attacked(node: Node, tmp: Path) -> Iterator[None]:
    """While BOB attacks `tmp`."""
    words = [
        sys.executable,
        str(ROOT / "tests/support/attacker.py"),
        str(BOB),
        str(tmp),
        str(node.kept.parent),
        str(node.proof),
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, **MARK}) as attacker:
        assert attacker.stdout is not None and attacker.stdout.readline() == b"at work\n"
        yield
        assert attacker.poll() is None, "it attacked to the end"
        attacker.kill()


@pytest.mark.parametrize("rights", one_of(["sticky", "everybody's", "sticky, of the attacker"], 3))
def test_an_attack_on_every_name_in_the_temporary_folder_gains_nothing(node: Node, rights: str) -> None:
    tmp = node.folder / "tmp"
    tmp.mkdir()
    tmp.chmod(0o777 if rights == "everybody's" else 0o1777)
    os.chown(tmp, *([BOB, BOB] if "attacker" in rights else [0, 0]))
    with attacked(node, tmp):
        done = [node.measure(job, tmp) for job in range(1, TIMES + 1 if rights == "sticky" else 2)]
    assert not node.proof.exists(), node.proof.read_text()
    assert (node.kept.read_text(), [*node.kept.parent.iterdir()]) == ("kept", [node.kept])
    assert node.kept.stat().st_uid == node.user and node.kept.stat().st_nlink == 1
    for job, one in enumerate(done, 1):
        status = json.loads((node.folder / f"campaign/nodes/n1/job{job}/status.json").read_text())
        assert (one.returncode, status["outcome"]) == (0, "complete"), one.stderr
        assert ("other users may replace what lies there" in one.stderr) == (rights != "sticky")
    if rights == "sticky":
        assert [*tmp.iterdir()], "the attacker saw names, and planted others"
    assert not [path for path in tmp.iterdir() if path.lstat().st_uid == node.user], "nothing is left there"


@pytest.mark.parametrize("open_to_all", ["programs/setup.sh", "programs", "programs/node"])
def test_nothing_is_run_that_every_user_may_write(node: Node, open_to_all: str, tmp_path: Path) -> None:
    (node.folder / open_to_all).chmod(0o777)
    done = node.measure(1, Path("/tmp"))
    assert f"{node.folder}/{open_to_all}" in done.stderr and "take that right away (chmod o-w)" in done.stderr
    assert not [*node.folder.glob("campaign/nodes/n1/job1/run*")]


def test_a_setup_that_another_user_put_into_a_sticky_folder_is_not_run(node: Node) -> None:
    setup = node.folder / "programs/setup.sh"
    setup.write_text(f"touch {node.proof}\n")
    os.chown(setup, BOB, BOB)
    setup.parent.chmod(0o1777)
    done = node.measure(1, Path("/tmp"))
    assert not node.proof.exists() and "every user may write" in done.stderr
