"""Who may measure: any other executor than that of the workflow would measure hosts under other nodes' names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nodeprint.campaign.node_sheet import Node
from tests.support import fake_slurm
from tests.support.idle_campaigns import begin, copy
from tests.support.real_parts import environment

#: An executor that notes each job which it is given, under the name that its module has.
EXECUTOR = """
from pathlib import Path
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings

common_settings = CommonSettings(
    non_local_exec=True, implies_no_shared_fs=False, job_deploy_sources=False,
    pass_default_storage_provider_args=False, pass_default_resources_args=False,
    pass_envvar_declarations_to_cmd=False, auto_deploy_default_storage_provider=False,
)

class Executor(RemoteExecutor):
    def run_job(self, job):
        Path("submitted").touch()
        self.report_job_submission(SubmittedJobInfo(job))

    async def check_active_jobs(self, active_jobs):
        for info in active_jobs:
            self.report_job_error(info)
            if False:
                yield info

    def cancel_jobs(self, active_jobs):
        pass
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A campaign of two nodes under Slurm, and an executor that is not the workflow's."""
    begin(copy(tmp_path), "two", [Node(name, name, partition="main", cpus=2) for name in ("cn01", "cn02")])
    (tmp_path / "plugins/snakemake_executor_plugin_other").mkdir(parents=True)
    (tmp_path / "plugins/snakemake_executor_plugin_other/__init__.py").write_text(EXECUTOR)
    (tmp_path / "plugins/snakemake_executor_plugin_nodeprint").symlink_to(
        tmp_path / "workflow/snakemake_executor_plugin_nodeprint"
    )
    fake_slurm.environment(tmp_path)
    return tmp_path


def snakemake(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A call of Snakemake there that knows both executors, and Slurm's commands."""
    path = f"{site}/bin:{environment()['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--nolock", "--configfile", "two.yaml", *words],
        cwd=site,
        text=True,
        env=environment() | {"PYTHONPATH": f"{site}/plugins", "FAKE_SLURM": str(site), "PATH": path},
        capture_output=True,
        timeout=120,
        check=False,
    )


def launch(site: Path, way: str) -> None:
    """Set `launch` of the configuration."""
    config = json.loads((site / "two.yaml").read_text())
    (site / "two.yaml").write_text(json.dumps(config | {"launch": way}))


OTHER, NODEPRINT = ("--executor", "other", "--jobs", "2"), ("--executor", "nodeprint", "--jobs", "2")


@pytest.mark.parametrize(
    ("way", "options", "right"),
    [
        ("slurm", OTHER, "nodeprint"),
        ("slurm", (*OTHER, "--no-hooks"), "nodeprint"),
        ("slurm", ("--cores", "2"), "nodeprint"),
        ("here", OTHER, "local"),
        ("here", NODEPRINT, "local"),
        ("ansible", OTHER, "local"),
    ],
)
def test_another_executor_measures_nothing(site: Path, way: str, options: tuple[str, ...], right: str) -> None:
    launch(site, way)
    done = snakemake(site, *options)
    assert done.returncode == 1
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("nodeprint: ")]
    assert f"through the executor `{right}` alone" in sentence and "Traceback" not in done.stderr
    assert not (site / "submitted").exists() and not (site / "queue").exists()
    assert not (site / "results/two/nodes").exists()


def test_what_only_looks_needs_no_executor(site: Path) -> None:
    assert snakemake(site, *OTHER, "--dry-run").returncode == 0
    assert snakemake(site, "--lint").returncode == 0
    assert snakemake(site, *OTHER, "--touch", "--until", "measure").returncode == 0
    assert snakemake(site, "--summary").returncode == 0


def test_jobs_are_not_grouped(site: Path) -> None:
    done = snakemake(site, *NODEPRINT, "--until", "measure", "--groups", "measure=pair")
    assert done.returncode == 1 and "a node is a job of its own" in done.stderr
    assert not (site / "queue").exists()


def test_without_a_list_of_nodes_a_sentence_says_what_is_called_first(site: Path) -> None:
    for mark in (site / "results/two/launch").glob("discovered-*"):
        mark.unlink()
    done = snakemake(site, *NODEPRINT, "--until", "measure")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].endswith(
        f"call `snakemake --workflow-profile profiles/slurm --configfile {site}/two.yaml --until discover` first"
    )
