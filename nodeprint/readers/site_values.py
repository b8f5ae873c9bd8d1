"""Values of a site's own commands: the reader that config.yaml names reads each output.

A metric is called `<measurement>/<metric of the reader>`. Its points are the GPUs, ranks or links that the output
names. Results that one call repeats are its passes. A run without values keeps its output and gives the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nodeprint.campaign.run_files import Problem
from nodeprint.data.job.jobs import CommandOutput, Job, JobMeasurement, gridded
from nodeprint.errors import UNEXPECTED_CONTENT, NodeprintError, printable, unexpected
from nodeprint.readers import parsing, registry, site_metrics, units
from nodeprint.readers.parsing import WrongResultError
from nodeprint.readers.tool_output import ToolEvidence, ToolValue
from nodeprint.readers.value_table import MOST_PLACES
from nodeprint.settings.config_file import SiteMeasurement
from nodeprint.settings.measurements import Model
from nodeprint.settings.texts import say

#: More dimensions of a place than these make no sets of their own.
_MOST_DIMENSIONS = 4


def reader_names() -> tuple[str, ...]:
    """The readers that a site's measurement can name."""
    return (site_metrics.NAME, *registry.readers("values"))


def metric_name(measurement: str, metric: str) -> str:
    """The name of a metric of a measurement."""
    return f"{measurement}/{metric.removeprefix(f'{measurement}-')}"


def read(jobs: Sequence[Job], own: Sequence[SiteMeasurement]) -> tuple[Job, ...]:
    """Jobs of a node with the metrics of the site's measurements, and the reasons for those that have none."""
    by_name = {of.name: of for of in own}
    return tuple(_read(job, by_name) if job.outputs else job for job in jobs)


def _read(job: Job, own: Mapping[str, SiteMeasurement]) -> Job:
    measured, problems, unread, wrong = dict(job.measured), list(job.problems), dict[str, str](), ""
    for name, outputs in job.outputs.items():
        if name not in own:
            continue
        values: dict[str, list[tuple[CommandOutput, list[ToolValue]]]] = {}
        for output in outputs:
            if output.status != 0:
                continue  # its outcome has the reason
            try:
                found = _values(output, own[name])
            except NodeprintError as error:
                reason = printable(error.problem, 300)
                if isinstance(error, WrongResultError):
                    wrong = wrong or f"{name}, job{job.number}/run{output.run['run']}: {reason}"
            except UNEXPECTED_CONTENT as error:
                reason = printable(unexpected(error), 300)
            else:
                for value in found:
                    of_metric = values.setdefault(metric_name(name, value.metric), [])
                    if not of_metric or of_metric[-1][0] is not output:
                        of_metric.append((output, []))
                    of_metric[-1][1].append(value)
                continue
            run = int(output.run["run"])
            where = f"{name}, job{job.number}/run{run}"
            problems.append(Problem(say("read", "kept", where=where, reason=reason), run, (name,)))
            unread.setdefault(name, reason)
        measured |= {metric: _measured(metric, own[name], of_metric) for metric, of_metric in values.items()}
    return msgspec.structs.replace(job, measured=measured, problems=tuple(problems), unread=unread, wrong=wrong)


def _values(output: CommandOutput, of: SiteMeasurement) -> Sequence[ToolValue]:
    """The values of an output. Raises NodeprintError with the reason if it has none."""
    lines = parsing.as_shown("\n".join(output.lines))
    if of.reader == site_metrics.NAME:
        values: Sequence[ToolValue] = site_metrics.read(lines)
    elif (reader := registry.readers("values").get(of.reader)) is None:
        raise NodeprintError(f"no reader {of.reader} is installed", advice="install its package")
    elif reader.evidence(lines) is not ToolEvidence.NONE:
        values = reader.read_output(Path("output"), lines).values
    else:
        raise NodeprintError(f"the output {_end(lines)} and is not of {of.reader}; mend `command` or `reader`")
    bad = next((value for value in values if not np.isfinite(value.value) or value.value <= 0), None)
    if bad is not None:
        raise NodeprintError(f"line {bad.line}: {bad.value:g} of {bad.metric} is no measurement")
    if not values:
        raise NodeprintError(f"{of.reader} reads no value in the output, which {_end(lines)}")
    return values


def _end(lines: Sequence[str]) -> str:
    """How an output ends, in words."""
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if sum(not letter.isprintable() or letter == "\ufffd" for letter in last) > len(last) / 10:
        return "is not text"
    return f"ends with {printable(repr(last), 80)}" if last else "is empty"


def _measured(
    metric: str, of: SiteMeasurement, outputs: Sequence[tuple[CommandOutput, list[ToolValue]]]
) -> JobMeasurement:
    """A metric of a job. Dimensions that not all of its values have are left out."""
    every = [value for _, values in outputs for value in values]
    dims = [dim for dim in every[0].place if all(dim in value.place for value in every)]
    names: dict[str, tuple[str, ...]] = {}
    columns = []
    for dim in dims:
        keys = [value.place[dim] for value in every]
        if any(isinstance(key, str) for key in keys):
            names[dim] = tuple(sorted({str(key) for key in keys}))
            keys = [names[dim].index(str(key)) for key in keys]
        columns.append(keys)
    # a value of the whole node has one place
    coordinates = np.array(columns or [[0] * len(every)], dtype=np.int64).T
    ends = np.cumsum([len(values) for _, values in outputs])[:-1]
    of_runs = np.split(coordinates, ends)
    figures = [np.array([value.value for value in values]) for _, values in outputs]
    flags = [np.zeros(len(values), dtype=np.uint8) for _, values in outputs]
    kinds: dict[str, np.dtype[Any]] = {"value": np.dtype(np.float64), "flags": np.dtype(np.uint8)}
    passes, places, gridded_values = gridded(
        [_repetition(rows) for rows in of_runs], of_runs, {"value": figures, "flags": flags}, kinds
    )
    if len(places) > MOST_PLACES:
        raise NodeprintError(f"{metric} has {len(places)} places on a node, more than {MOST_PLACES}")
    unit = every[0].unit
    better = of.better if of.better != "by unit" else units.better(every[0].metric, unit) or "higher"
    header: dict[str, Any] = dict(outputs[0][0].header)
    header |= {"operation": every[0].metric, "quantity": "figure", "unit": unit}
    header["cells"] = {"dims": dims or ["node"], "values": {"value": unit}}
    model = Model("value", "log", metric, better, _terms(dims), {}, tuple(dims))
    return JobMeasurement(
        metric,
        header,
        tuple(output.run for output, _ in outputs),
        passes,
        dict(zip(dims or ["node"], places.T.copy(), strict=True)),
        names,
        gridded_values,
        model=model,
        source=of.name,
    )


def _repetition(coordinates: Any) -> Any:
    """How often each place was there before in one output."""
    seen: dict[tuple[int, ...], int] = {}
    out = []
    for row in map(tuple, coordinates.tolist()):
        out.append(seen.get(row, 0))
        seen[row] = out[-1] + 1
    return np.array(out, dtype=np.int64)


def _terms(dims: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    sizes = range(1, len(dims) + 1) if len(dims) <= _MOST_DIMENSIONS else (1, len(dims))
    return tuple(term for size in sizes for term in combinations(dims, size))
