"""ansible/measure.yml over the nodes that have no outcome yet; then the outcome of each, and a list of them.

A node that Ansible brought nothing back from gets an outcome with the reason, as a lost job of Slurm does.

USAGE   launch_ansible.py CAMPAIGN NODES OUT INVENTORY     NODES: a line per node, with name, job and CPUs (tabs)
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from nodeprint import files, reading
from nodeprint.campaign import job_status, lost_jobs
from nodeprint.errors import NodeprintError

ABSENT = "it is not in the inventory any more, or Ansible ended before it; logs/run.log says more"
NO_KERNELS = "the kernels could not be packed for the nodes; logs/run.log says why"


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


def measure(campaign: Path, hosts: list[str], out: Path, inventory: str) -> dict[str, str]:
    """Measure on `hosts`; why each one was given up that Ansible gave up."""
    beside = {name: out.with_name(f"{out.name}.{name}") for name in ("hosts", "reasons")}
    queue = out.with_name("jobs.tsv")
    files.write(beside["reasons"], "")
    files.write(beside["hosts"], "".join(f"{host}\n" for host in hosts))
    archive = subprocess.run(["kernels/archive"], stdout=subprocess.PIPE, text=True, check=False)
    if archive.returncode:
        reasons = dict.fromkeys(hosts, NO_KERNELS)
    else:
        variables = {
            "ANSIBLE_CONFIG": os.environ.get("ANSIBLE_CONFIG", "ansible/ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_CALLBACKS_ENABLED": "reasons",
            "NODEPRINT_REASONS": str(beside["reasons"].absolute()),
            "NODEPRINT_JOBS": str(queue.absolute()),
        }
        extra = json.dumps({"nodeprint_campaign": str(campaign), "nodeprint_archive": archive.stdout.strip()})
        command = ["ansible-playbook", "--inventory", inventory, "--limit", f"@{beside['hosts']}"]
        words = [*command, "--extra-vars", extra, "ansible/measure.yml"]
        subprocess.run(words, env=os.environ | variables, check=False)
        # of several failures of a host the last one counts
        reasons = dict(line.split("\t", 1) for line in reading.required(beside["reasons"]).splitlines() if "\t" in line)
    for path in beside.values():
        files.remove(path)
    return reasons


def settled(of_nodes: dict[str, Path], reasons: dict[str, str]) -> Iterator[str]:
    """The rows of the list: node, job and outcome."""
    for node, job in of_nodes.items():
        status = job_status.known(job)
        if status is None:
            reason = reasons.get(node) or ABSENT
            print(f"ansible: {node}: {reason}", file=sys.stderr)
            status = lost_jobs.settle(job, reason)
        yield f"{node}\t{status.job}\t{status.outcome}\n"


def main(campaign: Path, nodes: Path, out: Path, inventory: str) -> None:
    """Measure what has no outcome, and write the list. Raises NodeprintError."""
    of_nodes = jobs(campaign, nodes)
    with os.fdopen(files.opened(out.with_name("lock")), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # `nodeprint status` sees by it that a call is at work
        todo = {node: job for node, job in of_nodes.items() if job_status.known(job) is None}
        waiting = (f"{node}\t{job.name.removeprefix('job')}\t\tPENDING\t\n" for node, job in todo.items())
        files.write(out.with_name("jobs.tsv"), "".join(waiting))
        reasons = rejected(todo)
        hosts = [node for node in todo if node not in reasons]
        reasons = (measure(campaign, hosts, out, inventory) if hosts else {}) | reasons
        rows = "".join(settled(of_nodes, reasons))
        files.remove(out.with_name("jobs.tsv"))
        files.write(out, rows)


if __name__ == "__main__":
    campaign_folder, nodes_list, listed = map(Path, sys.argv[1:4])
    try:
        main(campaign_folder, nodes_list, listed, sys.argv[4])
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
