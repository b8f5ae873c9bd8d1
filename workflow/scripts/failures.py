"""Why jobs of nodes failed, from Snakemake's log into the submission.txt of each job: failures.py CAMPAIGN LOG"""

import re
import sys
from pathlib import Path

from nodeprint import files
from nodeprint.discover import slurm

#: What Snakemake prints of a failed job of rule measure.
BLOCK = re.compile(
    r"^Error in rule measure:\n    message: (?P<message>.*)\n(?:(?!Error in rule ).*\n)*?"
    r"    output: \S*?/nodes/(?P<node>[^/\s]+)/(?P<job>job[1-9]\d*)/status\.json$",
    re.MULTILINE,
)
STATUS = re.compile(r"SLURM-job '(\d+)' failed.*?SLURM status is: '(\w+)'")
REFUSED = re.compile(r"SLURM sbatch failed\. The error message was '(?:sbatch: error: )?(.*?)'\.?$")


def reason(message: str) -> str:
    """One sentence from the message of the executor."""
    if status := STATUS.search(message):
        return slurm.ended(*status.groups())
    if refused := REFUSED.search(message):
        return f"sbatch refused it: {refused[1]}"
    return message[:200]


def failures(log: str) -> dict[tuple[str, str], str]:
    """The reason of every failed job that has one, by node and job folder; of a local one node-run's log has it."""
    found = {(block["node"], block["job"]): block["message"] for block in BLOCK.finditer(log)}
    return {job: reason(message) for job, message in found.items() if message != "None"}


if __name__ == "__main__":
    campaign, log = map(Path, sys.argv[1:])
    for (node, job), text in failures(log.read_text(errors="replace")).items():
        files.write(campaign / "nodes" / node / job / "submission.txt", text + "\n")
