"""docs/how-to/add-a-kernel.md, done: its example is a folder with two files beside the kernels; it is measured, and
simulated with a defect that is judged, said in words, drawn, put on pages and exported."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nodeprint.data.job import jobs
from tests.support import machines
from tests.support.real_parts import ROOT, built

pytestmark = pytest.mark.machine

#: The example's two files.
C_FILE = ROOT / "tests/data/fence.c"
MEASUREMENTS = (ROOT / "docs/how-to/add-a-kernel.md").read_text().split("```")[3].lstrip("\n")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with the kernel's folder, built."""
    objects = built() / "objects"
    folder = tmp_path_factory.mktemp("clone")
    kernels = folder / "kernels"
    kernels.mkdir()
    for room in ("nodeprint", "reports", "config"):
        (folder / room).symlink_to(ROOT / room)
    for path in (ROOT / "kernels").iterdir():
        if path.name != "build":
            (kernels / path.name).symlink_to(path)
    shutil.copytree(objects / "harness", kernels / "build/objects/harness")  # with their times: they are up to date
    (kernels / "fence").mkdir()
    shutil.copy(C_FILE, kernels / "fence")
    (kernels / "fence/measurements.yaml").write_text(MEASUREMENTS)
    subprocess.run(["make", "-C", kernels, "build/fence"], check=True, capture_output=True, timeout=300)
    return folder


def nodeprint(clone: Path, *words: str | Path) -> str:
    """What the clone's nodeprint prints."""
    return python(clone, "-m", "nodeprint", *words)


def python(clone: Path, *words: str | Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(clone), "COLUMNS": "1000"}
    done = subprocess.run(
        [sys.executable, *words], cwd=clone, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PLAN = """
from pathlib import Path
from nodeprint.settings import config
print(config.plan(config.load(Path("fence.yaml"))), end="")
"""


def test_it_is_measured(clone: Path) -> None:
    (clone / "fence.yaml").write_text("measure: [fence-cost]\npreset: standard\n")
    campaign = clone / "measured"
    campaign.mkdir()
    (campaign / "plan.tsv").write_text(python(clone, "-c", PLAN))
    done = subprocess.run(
        [clone / "kernels/node-run", "--campaign", campaign, "--node", "n1", "--job", "1", "--runs", "2"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    job = jobs.read(campaign / "nodes/n1/job1")
    assert job.status is not None and job.status.outcome == "complete", done.stderr
    cells = job.measured["fence-cost"].columns
    low, value, high = (cells[name] for name in ("ci_low_ns", "fence_ns", "ci_high_ns"))
    assert value.shape[:2] == (2, 3)
    assert ((low > 0) & (low <= value) & (value <= high)).all()


def test_a_planted_defect_is_found_said_drawn_and_exported(clone: Path) -> None:
    root = machines.xeon(sockets=1, cores=8, threads=1).write(clone / "root")
    nodeprint(
        clone,
        "simulate",
        root,
        "--nodes",
        "5",
        "--passes",
        "1",
        "--out",
        "fleet",
        "--defect",
        "node002: slow-fence core 5 +60%",
    )
    judged = nodeprint(clone, "judge", "fleet")
    assert "WARN (SUSPECT): node002" in judged
    assert re.search(r"Time of a memory fence of core 5 \(CPU 5\) is \d\d\.\d% longer .*tolerance 5%", judged), judged
    nodeprint(clone, "report", "fleet")
    page = (clone / "fleet/report/cluster.html").read_text()
    assert 'aria-label="Values of node002 by CPU' in page and ">time of a memory fence" in page
    assert "Time of a memory fence of node002 in core 5 (CPU 5)" in page
    assert "Compare clocks, then report the core to the vendor" in page
    assert "A CPU carries out full memory fences one after another" in page
    assert (clone / "fleet/report/node002.pdf").stat().st_size > 10_000
    nodeprint(clone, "export", "fleet", "--to", "cells.csv", "--table", "fence-cost")
    assert sum("fence-cost" in line for line in (clone / "cells.csv").read_text().splitlines()) == 5 * 2 * 8
