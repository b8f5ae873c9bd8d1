"""The recheck: suspected nodes and control nodes are measured in a second job, some minutes after the first.

A third job follows if the second does not decide. launch/recheck1.tsv and launch/recheck2.tsv list the jobs of at most
two rounds. The sheet has these jobs before the list exists, so that they are measured even if a call is killed in
between.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from nodeprint import files, reading
from nodeprint.campaign import followed, job_status, node_sheet
from nodeprint.campaign.node_sheet import Node
from nodeprint.settings.config_file import MOST_JOBS, Config

#: After two more jobs of a node its outcome stands.
ROUNDS = MOST_JOBS - 1


def rounds(config: Config, nodes: Sequence[Node]) -> range:
    """The numbers of the rounds that a campaign may have: none where nothing can be compared."""
    compared = sum(node.measure for node in nodes) > 1
    return range(1, ROUNDS + 1) if config.recheck and compared else range(0)


def path(campaign: Path, number: int) -> Path:
    """The path of a round's list of jobs."""
    return campaign / f"launch/recheck{number}.tsv"


def listed(nodes: Iterable[Node]) -> str:
    """A list of jobs to measure: node, job and CPUs, a line each."""
    return "".join(f"{node.node}\t{node.job}\t{node.cpus}\n" for node in nodes)


def jobs(campaign: Path, number: int) -> dict[str, int]:
    """The jobs of a round by node; none where there was no such round."""
    file = path(campaign, number)
    rows = (line.split("\t") for line in reading.required(file).splitlines()) if file.exists() else ()
    return {row[0]: int(row[1]) for row in rows}


def at_work(campaign: Path) -> list[str]:
    """The nodes of the round that is not measured yet; none where there is no such round."""
    for number in range(ROUNDS, 0, -1):
        if of_round := jobs(campaign, number):
            done = [(campaign / f"nodes/{node}/job{job}" / job_status.NAME).exists() for node, job in of_round.items()]
            return [] if all(done) else list(of_round)
    return []


def first_jobs(campaign: Path, nodes: Iterable[Node]) -> list[Node]:
    """The rows of a sheet with the jobs that they had before the rounds."""
    again = [jobs(campaign, number) for number in range(ROUNDS, 0, -1)]
    first = {node: job - 1 for of_round in again for node, job in of_round.items()}
    return [replace(node, job=first.get(node.node, node.job)) for node in nodes]


def forget(campaign: Path) -> None:
    """Let all that the sheet has be a first job: suspects are looked for anew."""
    for number in range(1, ROUNDS + 1):
        files.remove(path(campaign, number))
        files.remove(campaign / f"launch/suspects{number}.txt")


def begin(campaign: Path, number: int, names: Sequence[str]) -> None:
    """Give `names` a new job each, in the sheet and then in the round's list. Raises NodeprintError."""
    sheet = node_sheet.again(node_sheet.read_sheet(campaign / "nodes.tsv"), names)
    node_sheet.write_sheet(campaign / "nodes.tsv", sheet)
    files.write(path(campaign, number), listed(node for node in sheet if node.node in set(names)))


def wait_s(campaign: Path, names: Sequence[str], minutes: float) -> float:
    """Seconds until the last job of `names` ended so many minutes ago, and never longer than these minutes.

    The end is by the login node's clock if a call followed the job, else by the node's.
    """
    sheet = [node for node in node_sheet.read_sheet(campaign / "nodes.tsv") if node.node in set(names)]
    ends = [_ended(campaign / f"nodes/{node.node}/job{node.job}") for node in sheet]
    return min(60 * minutes, max(0.0, max(ends, default=0.0) + 60 * minutes - time.time()))


def _ended(job: Path) -> float:
    """When a job ended, in seconds since 1970; 0 where that is not known."""
    status = job_status.known(job)
    moment = followed.read(job).ended or (status and status.ended)
    try:
        return datetime.fromisoformat(moment).timestamp() if moment else 0.0
    except ValueError:
        return 0.0
