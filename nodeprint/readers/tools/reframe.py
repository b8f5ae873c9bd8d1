"""ReFrame's log of performance (perflogs/SYSTEM/PARTITION/TEST.log, `filelog` of ReFrame 4). It has a line of names,
then a line for each job, with columns for the value and the unit of each variable."""

from __future__ import annotations

from pathlib import Path

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.parsing import json_number, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "reframe"
KINDS = ("values",)


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether a line of names has the columns of a job's nodes and of a value."""
    return ToolEvidence.NAME if _head(lines) is not None else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """The variables of each job. Raises NodeprintError if a job ran on several nodes, because no value belongs to a
    single one. It also rejects a line whose number of cells differs from the number of names."""
    names: list[str] = []
    out: list[ToolValue] = []
    for line_number, line in enumerate(lines, start=1):
        cells = line.split("|")
        if "job_nodelist" in cells:
            names = cells
            continue
        if not names or not line.strip():
            continue
        if len(cells) != len(names):
            raise NodeprintError(
                f"{len(cells)} cells where the names are {len(names)}",
                where=path,
                line=line_number,
                advice="give the log as ReFrame wrote it",
            )
        job = dict(zip(names, cells, strict=True))
        node = job["job_nodelist"].strip("[]'\" ") if "," not in job["job_nodelist"] else job["job_nodelist"]
        if "," in node or "[" in node:
            raise NodeprintError(
                f"a job on {printable(node, 40)}",
                where=path,
                line=line_number,
                advice="a figure of several nodes is none of one: give tests that run on one node each",
            )
        for column in (name for name in names if name.endswith("_value")):
            variable = column.removesuffix("_value")
            metric, unit = f"{job.get('name', '')} {variable}".strip(), _known(job.get(f"{variable}_unit"))
            job_id, time = _known(job.get("jobid")), _known(job.get("job_completion_time"))
            number = json_number(job[column])
            out += tool_values(number, metric, unit, line_number, node=node, job=job_id, time=time)
    return ToolOutput(path, NAME, values=out)


def _head(lines: list[str]) -> list[str] | None:
    heads = (line.split("|") for line in lines[:40] if "job_nodelist" in line)
    return next((names for names in heads if any(name.endswith("_value") for name in names)), None)


def _known(text: str | None) -> str:
    return "" if text in (None, "None", "null") else str(text)
