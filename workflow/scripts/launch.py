"""The nodes of a list that have no outcome yet, measured in one call; then the outcome of each, and a list of them.

A node that nothing came back from gets an outcome with the reason, as a lost job of a scheduler does.

USAGE   launch.py CAMPAIGN NODES OUT CONFIG     NODES: a line per node, with name, job and CPUs (tabs)
"""

import fcntl
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from nodeprint import files, reading
from nodeprint.campaign import job_status, lost_jobs
from nodeprint.campaign.launchers.launcher import Engine
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.errors import NodeprintError
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config

ABSENT = "it is not in the inventory any more, or {title} ended before it; logs/run.log says more"


def jobs(campaign: Path, nodes: Path) -> dict[str, Path]:
    """Return the directory of the job of each node of a list."""
    rows = (line.split("\t") for line in reading.required(nodes).splitlines())
    return {row[0]: campaign / "nodes" / row[0] / f"job{row[1]}" for row in rows}


def rejected(todo: dict[str, Path]) -> dict[str, str]:
    """Return the reason for each node whose fetched archive would be written through a link or into a pipe."""
    reasons = {}
    for node, job in todo.items():
        try:
            files.check(job.with_name(f"{job.name}.tar"))
        except NodeprintError as error:
            reasons[node] = str(error)
    return reasons


def settled(engine: Engine, of_nodes: dict[str, Path], reasons: Mapping[str, str]) -> Iterator[str]:
    """The rows of the list: node, job and outcome."""
    for node, job in of_nodes.items():
        status = job_status.known(job)
        if status is None:
            reason = reasons.get(node) or ABSENT.format(title=engine.title)
            print(f"{engine.name}: {node}: {reason}", file=sys.stderr)
            status = lost_jobs.settle(job, reason)
        yield f"{node}\t{status.job}\t{status.outcome}\n"


def main(campaign: Path, nodes: Path, out: Path, config: Config) -> None:
    """Measure what has no outcome, and write the list. Raises NodeprintError."""
    engine = launcher(config.launch)
    assert isinstance(engine, Engine)  # the rule asks for the list of no other
    of_nodes = jobs(campaign, nodes)
    with os.fdopen(files.opened(out.with_name("lock")), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # `nodeprint status` sees by it that a call is at work
        todo = {node: job for node, job in of_nodes.items() if job_status.known(job) is None}
        waiting = (f"{node}\t{job.name.removeprefix('job')}\t\tPENDING\t\n" for node, job in todo.items())
        files.write(out.with_name("jobs.tsv"), "".join(waiting))
        reasons = rejected(todo)
        hosts = [node for node in todo if node not in reasons]
        reasons = dict(engine.measure(campaign, config, hosts, out) if hosts else {}) | reasons
        rows = "".join(settled(engine, of_nodes, reasons))
        files.remove(out.with_name("jobs.tsv"))
        files.write(out, rows)


if __name__ == "__main__":
    campaign_folder, nodes_list, listed = map(Path, sys.argv[1:4])
    try:
        main(campaign_folder, nodes_list, listed, configuration.load(Path(sys.argv[4])))
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
