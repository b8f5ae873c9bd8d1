"""docs/how-to/add-a-kernel.md, done: its example is added to a copy of the kernels, built, run by node-run and read."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from nodeprint.data import jobs
from tests.support.real_parts import ROOT, need
from tests.support.schemas import valid_campaign

pytestmark = pytest.mark.machine

PAGE = (ROOT / "docs/how-to/add-a-kernel.md").read_text()


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    need("make", "gcc")
    copy = tmp_path / "kernels"
    shutil.copytree(ROOT / "kernels", copy, ignore=shutil.ignore_patterns("build"))
    (copy / "fence").mkdir()
    shutil.copy(ROOT / "tests/data/fence.c", copy / "fence")
    subprocess.run(["make", "-C", copy, "build/fence"], check=True, capture_output=True, timeout=300)
    return copy


def test_the_example_of_the_page(kernels: Path, tmp_path: Path) -> None:
    measurement = yaml.safe_load(PAGE.split("```")[3])["measurements"]["fence-cost"]
    campaign = tmp_path / "campaign"
    campaign.mkdir()
    arguments = f"{measurement['arguments']} {measurement['presets']['standard']}"
    (campaign / "plan.tsv").write_text(f"fence-cost\tfence\t{arguments}\n")
    done = subprocess.run(
        [kernels / "node-run", "--campaign", campaign, "--node", "n1", "--job", "1", "--runs", "2"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert valid_campaign(campaign) == ["records", "status.json"]
    node = campaign / "nodes/n1"
    job = jobs.read(node / "job1")
    assert job.status is not None and job.status.outcome == "complete", done.stderr
    cells = job.measured["fence-cost"].columns
    low, value, high = (cells[name] for name in ("ci_low_ns", "fence_ns", "ci_high_ns"))
    assert value.shape[:2] == (2, 3)
    assert ((low > 0) & (low <= value) & (value <= high)).all()
    assert measurement["model"]["value"] in cells
