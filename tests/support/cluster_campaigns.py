"""Campaigns measured by the main job on the login node of a virtual cluster, and what came of their nodes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support import statuses
from tests.support.made_records import one_record_file, record_files
from tests.support.paced_kernel import PACED
from tests.support.real_parts import environment
from tests.support.virtual_cluster import CLUSTER, login, states
from tests.support.waiting import wait_for


def main_job(house: Path, slurm: Path, config: dict[str, Any], *more: str) -> subprocess.CompletedProcess[str]:
    """The main job on the login node; where it ended by itself, all statuses agree."""
    path = house / f"{config['campaign']}.yaml"
    path.write_text(json.dumps({"preset": "test", "measure": ["coherence-cas"], "recheck": False} | config))
    done = subprocess.run(
        [CLUSTER, "exec", "login", house / "workflow/run", "--config", path.name, "--fail-on", "nothing", *more],
        cwd=house,
        env=environment() | {"CLUSTER_STATE": str(slurm)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode in (0, 1):
        statuses.agree(house / "results" / str(config["campaign"]), done.returncode, done.stdout + done.stderr)
    return done


def caller(house: Path, campaign: str) -> str:
    """The process that has the lock of a campaign."""
    return (house / f".snakemake/nodeprint/results%2F{campaign}.lock").read_text().split()[1]


def verdicts(campaign: Path) -> dict[str, Any]:
    nodes = json.loads((campaign / "verdict.json").read_text())["nodes"]
    assert isinstance(nodes, dict)
    return nodes


def outcome(campaign: Path, node: str, job: int = 1) -> str:
    return str(json.loads((campaign / f"nodes/{node}/job{job}/status.json").read_text())["outcome"])


def text_of(campaign: Path) -> str:
    pdf = subprocess.run(
        ["pdftotext", campaign / "report/cluster.pdf", "-"], capture_output=True, text=True, check=True
    )
    return " ".join(pdf.stdout.replace("\u200b", "").split())


def hosts(campaign: Path, node: str) -> set[str]:
    jobs = (campaign / "nodes" / node).glob("job*")
    return {str(file.header["host"]) for job in jobs for file in record_files(job)}


class Campaign:
    """A campaign of one measurement, calls of the main job on the login node, and what came of them."""

    def __init__(
        self, house: Path, slurm: Path, name: str, passes: int, launch: str = "slurm", **options: object
    ) -> None:
        self.house, self.slurm, self.folder = house, slurm, house / "results" / name
        self.launch = launch
        self.config = house / f"{name}.yaml"
        # what a busy machine lets suspect is no matter here
        self.command = ["workflow/run", "--config", self.config.name, "--fail-on", "nothing"]
        self.tmp = house / f"{name}.tmp"  # of the nodes, too: jobs have the environment of the login node
        self.tmp.mkdir()
        self.path = os.environ["PATH"]
        self.set(passes, **options)
        if launch == "slurm":
            wait_for(lambda: set(states(slurm).values()) == {"idle"}, "all nodes are idle")

    def set(self, passes: int, **options: object) -> None:
        """Write the configuration."""
        keys = {"deadline_hours": 1, "late_seconds": 15, "poll_seconds": 2} | options
        self.config.write_text(
            json.dumps(
                {
                    "campaign": self.folder.name,
                    "preset": "test",
                    "measure": ["coherence-cas"],
                    "runs": 1,
                    "launch": self.launch,
                    "recheck": False,
                    "arguments": {"coherence-cas": f"--passes {passes} {PACED}"},
                    "slurm" if self.launch == "slurm" else "scheduler": keys,
                }
            )
        )

    def call(self) -> subprocess.Popen[str]:
        """Begin a call, in a session of its own."""
        return subprocess.Popen(
            [CLUSTER, "exec", "login", *self.command],
            cwd=self.house,
            env=environment() | {"CLUSTER_STATE": str(self.slurm), "TMPDIR": str(self.tmp), "PATH": self.path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def done(self, process: subprocess.Popen[str] | None = None, code: int = 0) -> str:
        """Wait for a call that ends with `code`, as every status says; what it said."""
        process = process or self.call()
        output = process.communicate(timeout=600)[0]
        assert process.returncode == code, output
        statuses.agree(self.folder, code, output)
        return output

    def measuring(self, *nodes: str) -> None:
        """Wait until these nodes have written records, or all of them."""
        jobs = self.folder / "nodes"
        wait_for(
            lambda: all(self.cut(node) or [*jobs.glob(f"{node}/job*/run1.tar.*")] for node in nodes),
            f"records of {', '.join(nodes)}",
        )

    def cut(self, node: str) -> list[Path]:
        paths = (self.folder / "nodes" / node).glob("job*/run1/*.jsonl")
        return [path for path in paths if '"pair"' in path.read_text(errors="replace")]

    def outcomes(self) -> dict[str, str]:
        return {folder.name: outcome(self.folder, folder.name) for folder in (self.folder / "nodes").iterdir()}

    def reason(self, node: str) -> str:
        status = json.loads((self.folder / "nodes" / node / "job1/status.json").read_text())
        return " ".join(row["message"] for row in status["measurements"])

    def once(self, *nodes: str, job: int = 1) -> None:
        """These nodes have every pass once, in a run and a file of their last job."""
        for node in nodes:
            folders = sorted((self.folder / "nodes" / node).glob("job*"))
            assert [folder.name for folder in folders] == [f"job{number}" for number in range(1, job + 1)]
            file = one_record_file(folders[-1])
            passes = list(file.pairs["pass"])
            assert file.complete and passes == list(range(file.header["passes"])), node
            assert file.header["host"] == node


def nothing_is_left(campaign: Campaign) -> None:
    """No job in the queue, no folder of node-run."""
    assert login(campaign.slurm, "squeue --noheader") == ""
    assert list(campaign.tmp.glob("*node-run*")) == []
