"""The deviations of a campaign as one labelled table: what every outcome is read off, for people and other programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.data.packed import PackedNode
from nodeprint.judge import margins, naming
from nodeprint.judge.confirmation import Pooled, Series
from nodeprint.judge.deviations import Block, in_unit
from nodeprint.judge.reduction import mean_of_runs
from nodeprint.stats import intervals

#: The variables of the table, with their units and meaning.
VARIABLES = {
    "difference": "difference from the peers' centre, relative (of shares of the time: log1p(share / bound))",
    "error": "standard error of the difference",
    "error_runs": "the part of the error that is from run to run",
    "error_jobs": "the part of the error that is from job to job",
    "error_template": "the part of the error that is of the peers' centre",
    "degrees": "degrees of freedom of the error",
    "half_90": "half of the 90 % interval; infinite with one run",
    "half_simultaneous": "half of the interval that holds for all parts of the family and all nodes together",
    "half_confirming": "of a part that an earlier job showed outside, half of the interval that holds for all such",
    "bound": "what is accepted, on the scale of the difference",
    "value": "the node's value, in the measurement's unit",
    "peers": "the peers' centre, in the measurement's unit",
    "runs": "runs",
}


class Rows(msgspec.Struct, frozen=True):
    """What the table is made of: the series of all groups, of each node its pooled differences by number of the series,
    and the tail of confirming intervals."""

    series: Sequence[Series]
    pooled: Sequence[dict[int, Pooled]]
    nodes: Sequence[PackedNode]
    group_of: dict[int, int]
    confirming: float


def dataset(rows: Rows) -> xr.Dataset:
    """The table (sample, part): a sample is a node in one independent job, or in all of them pooled (`job` is
    "pooled"), which decides whether it is SAME.

    `.to_dataframe()` has a row for each node, job, measurement and part; what a sample does not have is NaN.
    """
    parts, columns = _parts(rows.series)
    samples, at = _samples(rows)
    shape = (len(samples), len(parts))
    values: dict[str, npt.NDArray[np.float32]] = {name: np.full(shape, np.nan, dtype=np.float32) for name in VARIABLES}
    for number, of_measurement in enumerate(rows.series):
        for job, block in enumerate(of_measurement.blocks):
            target = np.array([at[node, _job(block, row)] for row, node in enumerate(block.matrix.nodes.tolist())])
            arrays = _of_block(block) | {"half_confirming": _half_confirming(of_measurement, job, rows.confirming)}
            for name, array in arrays.items():
                values[name][np.ix_(target, columns[number])] = array
        for node, pooled in rows.pooled[number].items():
            if pooled.jobs > 1:
                blocks = of_measurement.of(node)[-pooled.jobs :]
                counted = [at[node, _job(block, block.row[node])] for block in blocks]
                _enter_pooled(values, at[node, "pooled"], counted, columns[number], pooled, of_measurement.first)
    coordinates: dict[str, Any] = {
        key: ("part", [part[key] for part in parts])
        for key in ("measurement", "home", "subject", "term", "family", "place", "unit")
    }
    coordinates |= {
        "node": ("sample", [rows.nodes[node].name for node, _ in samples]),
        "job": ("sample", [job for _, job in samples]),
        "group": ("sample", [rows.group_of[node] for node, _ in samples]),
        "started": ("sample", _started(rows, samples)),
    }
    table = xr.Dataset({name: (("sample", "part"), array) for name, array in values.items()}, coordinates)
    for name, meaning in VARIABLES.items():
        table[name].attrs["long_name"] = meaning
    return table


def _parts(series: Sequence[Series]) -> tuple[list[dict[str, Any]], list[npt.NDArray[np.int64]]]:
    """The parts of all series, each once, and which of them the parts of each series are."""
    positions: dict[tuple[str, int, str, str], int] = {}
    parts: list[dict[str, Any]] = []
    columns = []
    for of_measurement in series:
        matrix = of_measurement.matrix
        numbers = []
        for term in matrix.terms.terms:
            place = naming.key(matrix, term)
            identity = (matrix.name, matrix.part.home, term.family, place)
            if identity not in positions:
                positions[identity] = len(parts)
                unit = "share" if matrix.terms.share else matrix.quantity.unit
                parts.append({
                    "measurement": matrix.name, "home": matrix.part.home, "subject": margins.subject(matrix.quantity),
                    "term": term.name, "family": term.family, "place": place, "unit": unit,
                })  # fmt: skip
            numbers.append(positions[identity])
        columns.append(np.array(numbers, dtype=np.int64))
    return parts, columns


def _samples(rows: Rows) -> tuple[list[tuple[int, str]], dict[tuple[int, str], int]]:
    """Each node in each of its jobs, in order, and pooled where something rests on several."""
    run_numbers: dict[int, dict[str, int]] = {}
    for number, of_measurement in enumerate(rows.series):
        for block in of_measurement.blocks:
            for row, node in enumerate(block.matrix.nodes.tolist()):
                job = _job(block, row)
                run_numbers.setdefault(node, {})[job] = int(job.removeprefix("job"))
        for node, pooled in rows.pooled[number].items():
            if pooled.jobs > 1:
                run_numbers.setdefault(node, {})["pooled"] = 1 << 30
    samples = [
        (node, job)
        for node in sorted(run_numbers)
        for job in sorted(run_numbers[node], key=run_numbers[node].__getitem__)
    ]
    return samples, {sample: number for number, sample in enumerate(samples)}


def _started(rows: Rows, samples: Sequence[tuple[int, str]]) -> list[str]:
    """When the first run of each sample began (ISO 8601), of pooled jobs the first one's; empty where it is unknown."""
    begun: dict[tuple[int, str], str] = {}
    quantities = {id(of.matrix.quantity): of.matrix.quantity for of in rows.series}.values()
    for quantity in quantities:
        for node, job, moment in zip(quantity.node.tolist(), quantity.job.tolist(), quantity.started, strict=True):
            for sample in ((node, f"job{job}"), (node, "pooled")) if moment else ():
                begun[sample] = min(begun.get(sample, moment), moment)
    return [begun.get(sample, "") for sample in samples]


def _job(block: Block, row: int) -> str:
    return block.matrix.runs[row][0].partition("/")[0]


def _of_block(block: Block) -> dict[str, npt.NDArray[Any]]:
    value, peers = in_unit(block)
    return {
        "difference": block.difference, "error": block.error, "error_runs": np.sqrt(block.of_runs),
        "error_jobs": np.sqrt(block.of_job), "error_template": np.sqrt(block.of_template), "degrees": block.degrees,
        "half_90": block.half_90, "half_simultaneous": block.half_simultaneous,
        "bound": np.broadcast_to(block.bound, block.difference.shape), "value": value, "peers": peers,
        "runs": block.runs,
    }  # fmt: skip


def _half_confirming(series: Series, job: int, tail: float) -> npt.NDArray[np.float64]:
    """Of the parts that earlier jobs of the same node showed outside; NaN of all others, which nothing confirms."""
    block = series.blocks[job]
    before = np.zeros(block.difference.shape, dtype=np.bool_)
    for earlier in series.blocks[:job]:
        rows = [row for row, node in enumerate(block.matrix.nodes.tolist()) if node in earlier.row]
        before[rows] |= earlier.outside[[earlier.row[int(node)] for node in block.matrix.nodes[rows]]]
    half = np.full(before.shape, np.nan)
    half[before] = intervals.half_width(block.error[before], block.degrees[before], tail)
    return half


def _enter_pooled(
    values: dict[str, npt.NDArray[np.float32]],
    sample: int,
    counted: Sequence[int],
    columns: npt.NDArray[np.int64],
    pooled: Pooled,
    block: Block,
) -> None:
    """`counted` are the samples of the jobs that are pooled: the peers are those of these jobs."""
    scale = block.matrix.scale
    peers = mean_of_runs(values["peers"][counted][:, columns][None])[0]
    relative = np.expm1(pooled.difference) if scale.kind != "linear" else pooled.difference
    value = peers + relative * (scale.floor + peers) if block.terms.share else peers * (1 + relative)
    for name, array in (
        ("difference", pooled.difference), ("error", pooled.error), ("half_90", pooled.half_90), ("bound", block.bound),
        ("value", value), ("peers", peers), ("runs", pooled.runs),
    ):  # fmt: skip
        values[name][sample, columns] = array
