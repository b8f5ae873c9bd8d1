"""The launcher that docs/how-to/add-a-launcher.md shows, as a package of its own that an entry point names."""

from __future__ import annotations

import inspect
import json
import shlex
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from nodeprint.campaign import job_status, preparation
from nodeprint.campaign.launchers.command_scheduler import CommandScheduler
from nodeprint.campaign.launchers.launcher import Scheduler
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.settings import config
from tests.support import made_status
from tests.support.real_parts import ROOT

sys.path.insert(0, str(ROOT / "workflow"))
jobs: Any = import_module("snakemake_executor_plugin_nodeprint.jobs")

PAGE = (ROOT / "docs/how-to/add-a-launcher.md").read_text()
LAUNCHER, ENTRY_POINT = (PAGE.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("python", "toml"))

#: A Flux that answers like one (its manual): it runs the job of cn1 at once, and never that of cn3.
FLUX = r"""#!/bin/sh
cd "$(dirname "$0")/.." || exit 1
echo "$*" >>asked
[ ! -e down ] || { echo "flux: ERROR: connect: Connection refused" >&2; exit 1; }
case $1 in
resource) echo "up cn[1,3]"; echo "down cn2" ;;
jobs) touch queue && cat queue ;;
cancel) : >queue ;;
submit)
    for word in "$@"; do case $word in --job-name=*) name=${word#*=} ;; esac; done
    for script in "$@"; do :; done
    echo "f$name $(case $name in *.cn1) echo RUN ;; *) echo SCHED ;; esac) $name" >>queue
    case $name in *.cn1) sh -c "$script" ;; esac
    echo "f$name"
    ;;
esac
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with the installed package, and with the mock program."""
    package = tmp_path / "site/flux_launcher-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: flux_launcher\nVersion: 1\n")
    points = ENTRY_POINT.replace('[project.entry-points."nodeprint.launchers"]', "[nodeprint.launchers]")
    (package / "entry_points.txt").write_text(points.replace('"', ""))
    (tmp_path / "site/flux_launcher.py").write_text(LAUNCHER)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/flux").write_text(FLUX)
    (tmp_path / "bin/flux").chmod(0o755)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.chdir(ROOT)
    launcher.cache_clear()
    yield tmp_path
    launcher.cache_clear()


def test_the_launcher_of_the_page_measures(site: Path) -> None:
    path = site / "config.yaml"
    keys = {"minutes": 7, "extra": "--queue=batch"}
    path.write_text(
        json.dumps(
            {"results": str(site), "preset": "test", "measure": ["coherence-cas"], "launch": "flux", "scheduler": keys}
        )
    )
    settings = config.load(path)
    flux: Any = launcher("flux")
    nodes = flux.nodes(settings)
    assert [(node.node, node.measure, node.reason) for node in nodes] == [
        ("cn1", True, ""),
        ("cn3", True, ""),
        ("cn2", False, "down"),
    ]
    folder = preparation.prepare(settings, lambda: nodes, [], {})
    job_status.write(site, made_status.job_outcome(node="cn1"))
    call = jobs.Launch(folder)
    times = {"unavailable_s": 60, "late_s": 0, "silence_s": 60, "at_a_time": 9, "per_second": 100, "poll_s": 1}
    for node in nodes[:2]:
        job = preparation.job_folder(folder, node)
        options = shlex.join(flux.options(settings, node, 7))
        resources = {"submit_options": options, "job_name": "nodeprint-x-1"} | times
        command = f"sh -c 'test -e pyproject.toml && cp {site}/status.json {job}/'"  # in the directory of the call
        call.take(jobs.job_of(job, command, resources))
    until = time.monotonic() + 60
    while not call.open() or len(call.open()) == 2:
        assert time.monotonic() < until
        call.step()
    done, waiting = call.jobs.values()
    assert (done.outcome, waiting.state, waiting.id) == ("complete", "PENDING", "fnodeprint-x-1.cn3")
    words = "--job-name=nodeprint-x-1.cn3 --output=/dev/null --queue=batch sh -c"
    assert f"submit -N1 --exclusive --requires=host:cn3 --time-limit=7m {words}" in (site / "asked").read_text()
    (site / "down").touch()
    call.poll(1e9)
    assert (waiting.outcome, call.known) == ("", False), "no answer is no empty queue"
    (site / "down").unlink()
    call.cancel()
    (canceled,) = [line.split()[1:] for line in (site / "asked").read_text().splitlines() if line.startswith("cancel")]
    assert sorted(canceled) == ["fnodeprint-x-1.cn1", "fnodeprint-x-1.cn3"]


def test_the_example_has_about_ten_lines_and_the_page_names_what_is_there(site: Path) -> None:
    assert len([line for line in LAUNCHER.splitlines() if line]) <= 12
    assert "`here`, `slurm`,\n`gridengine` and `ansible` are nodeprint's own" in PAGE
    flux: Any = launcher("flux")
    assert set(inspect.get_annotations(CommandScheduler)) <= set(first_cells("attribute"))
    assert set(first_cells("function")) == Scheduler.__abstractmethods__
    assert all(hasattr(flux, word) for word in (*first_cells("attribute"), *first_cells("function")))


def first_cells(head: str) -> list[str]:
    """The first column of the table whose head begins with a word."""
    rows = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [row.split("`")[1] for row in rows]
