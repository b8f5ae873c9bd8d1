"""The deviations of a campaign as one labelled table: what every outcome is read off, for people and other programs."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import margins, naming
from nodeprint.judge.confirmation import AT_ONCE, Pooled, PooledNodes, Series, runs_beyond
from nodeprint.judge.deviations import Block, in_unit
from nodeprint.judge.reduction import mean_of_runs

#: In place of the group of a node that is compared with none.
ALONE = -1
#: The dimensions of the table.
DIMS = ("sample", "part")
#: The variables of the table, with their units and meaning.
VARIABLES = {
    "difference": "difference from the peers' centre, relative (of shares of the time: log1p(share / bound))",
    "error": "standard error of the difference",
    "error_runs": "the part of the error that is from run to run",
    "error_jobs": "the part of the error that is from job to job",
    "error_template": "the part of the error that is of the peers' centre",
    "degrees": "degrees of freedom of the error",
    "half_90": "half of the 90 % interval; infinite with one run",
    "error_different": "standard error where the node has to be shown different: with what the peers are by nature",
    "degrees_different": "degrees of freedom of that error",
    "half_simultaneous": "half of the interval that holds for all parts of the family and all nodes together",
    "half_confirming": "of a part that an earlier job showed outside, half of the interval that holds for all such",
    "bound": "what is accepted, on the scale of the difference",
    "value": "the node's value, in the measurement's unit",
    "peers": "the peers' centre, in the measurement's unit",
    "runs": "runs",
    "runs_above": "runs that are each by themselves more than the bound above the peers' centre",
    "runs_below": "runs that are each by themselves more than the bound below it",
}


class Rows(msgspec.Struct, frozen=True):
    """What the table is made of: the series of all groups, of each node its pooled differences by number of the series,
    the group of each node, the tail of confirming intervals, and the table's attributes."""

    series: Sequence[Series]
    pooled: Sequence[PooledNodes]
    nodes: Sequence[PackedNode]
    group_of: dict[int, int]
    confirming: float
    attributes: Mapping[str, Any]


Values = dict[str, npt.NDArray[np.float32]]
#: A sample: the number of a node, and the name of its job.
Sample = tuple[int, str]


class Table(msgspec.Struct, frozen=True):
    """The table (sample, part): a sample is a node in one independent job, or in all of them pooled (`job` is
    "pooled"), which decides whether it is SAME. What a sample does not have is NaN.

    `labels` are its coordinates, attributes and variables without values, which `blocks` gives from the first sample on
    for so many nodes at a time: of ten thousand nodes the whole has more than a gigabyte.
    """

    labels: xr.Dataset
    blocks: Iterable[Values]

    def whole(self) -> xr.Dataset:
        """All of it; `.to_dataframe()` has a row for each node, job, measurement and part."""
        blocks = list(self.blocks)
        none = np.zeros((0, self.labels.sizes["part"]), dtype=np.float32)
        return self.labels.assign(
            {
                name: (DIMS, np.concatenate([none, *(block[name] for block in blocks)]), {"long_name": meaning})
                for name, meaning in VARIABLES.items()
            }
        )


def table(rows: Rows) -> Table:
    """The table of deviations."""
    parts, columns = _parts(rows.series)
    samples = _samples(rows)
    coordinates: dict[str, Any] = {
        key: ("part", [part[key] for part in parts])
        for key in ("measurement", "home", "subject", "term", "family", "place", "unit")
    }
    coordinates |= {
        "node": ("sample", [rows.nodes[node].name for node, _ in samples]),
        "job": ("sample", [job for _, job in samples]),
        "group": ("sample", [rows.group_of.get(node, ALONE) for node, _ in samples]),
        "started": ("sample", _started(rows, samples)),
    }
    return Table(xr.Dataset(coords=coordinates, attrs=rows.attributes), _Blocks(rows, samples, columns, len(parts)))


class _Blocks(msgspec.Struct, frozen=True):
    """The values of the `samples` in their order, AT_ONCE nodes at a time; `columns` are the parts of each series."""

    rows: Rows
    samples: Sequence[Sample]
    columns: Sequence[npt.NDArray[np.int64]]
    parts: int

    def __iter__(self) -> Iterator[Values]:
        every = list(dict.fromkeys(node for node, _ in self.samples))
        for begin in range(0, len(every), AT_ONCE):
            nodes = every[begin : begin + AT_ONCE]
            first = bisect.bisect_left(self.samples, nodes[0], key=lambda sample: sample[0])
            last = bisect.bisect_right(self.samples, nodes[-1], key=lambda sample: sample[0])
            yield self._of(nodes, {sample: number for number, sample in enumerate(self.samples[first:last])})

    def _of(self, nodes: Sequence[int], at: Mapping[Sample, int]) -> Values:
        values = {name: np.full((len(at), self.parts), np.nan, dtype=np.float32) for name in VARIABLES}
        for series, pooled_nodes, columns in zip(self.rows.series, self.rows.pooled, self.columns, strict=True):
            for job, block in enumerate(series.blocks):
                rows = np.array([block.row[node] for node in nodes if node in block.row], dtype=np.int64)
                target = np.array([at[int(block.matrix.nodes[row]), _job(block, row)] for row in rows.tolist()])
                if not len(rows):
                    continue
                arrays = _of_block(block, rows)
                arrays["half_confirming"] = _half_confirming(series, job, rows, self.rows.confirming)
                for name, array in arrays.items():
                    values[name][np.ix_(target, columns)] = array
            for node in nodes:
                if (node, "pooled") in at and len(pooled_nodes.blocks.get(node, ())) > 1:
                    blocks = [series.blocks[job] for job in pooled_nodes.blocks[node]]
                    counted = [at[node, _job(block, block.row[node])] for block in blocks]
                    _enter_pooled(values, at[node, "pooled"], counted, columns, pooled_nodes[node], series.first)
        return values


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
                parts.append(
                    {
                        "measurement": matrix.name,
                        "home": matrix.part.home,
                        "subject": margins.subject(matrix.quantity),
                        "term": term.name,
                        "family": term.family,
                        "place": place,
                        "unit": unit,
                    }
                )
            numbers.append(positions[identity])
        columns.append(np.array(numbers, dtype=np.int64))
    return parts, columns


def _samples(rows: Rows) -> list[Sample]:
    """Each node in each of its jobs, in order, and pooled where something rests on several."""
    run_numbers: dict[int, dict[str, float]] = {}
    for number, of_measurement in enumerate(rows.series):
        for block in of_measurement.blocks:
            for row, node in enumerate(block.matrix.nodes.tolist()):
                job = _job(block, row)
                run_numbers.setdefault(node, {})[job] = int(job.removeprefix("job"))
        for node, blocks in rows.pooled[number].blocks.items():
            if len(blocks) > 1:
                run_numbers.setdefault(node, {})["pooled"] = math.inf
    return [
        (node, job)
        for node in sorted(run_numbers)
        for job in sorted(run_numbers[node], key=run_numbers[node].__getitem__)
    ]


def _started(rows: Rows, samples: Sequence[Sample]) -> list[str]:
    """When the first run of each sample began (ISO 8601), of pooled jobs the first one's; empty where it is unknown."""
    begun: dict[Sample, str] = {}
    quantities = {id(of.matrix.quantity): of.matrix.quantity for of in rows.series}.values()
    for quantity in quantities:
        for node, job, moment in zip(quantity.node.tolist(), quantity.job.tolist(), quantity.started, strict=True):
            for sample in ((node, f"job{job}"), (node, "pooled")) if moment else ():
                begun[sample] = min(begun.get(sample, moment), moment)
    return [begun.get(sample, "") for sample in samples]


def _job(block: Block, row: int) -> str:
    first, *_ = block.matrix.runs[row]
    job, *_ = first.partition("/")
    return job


def _of_block(block: Block, rows: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """The variables of some rows of a block."""
    value, peers = in_unit(block, rows)
    shape = value.shape
    above, below = runs_beyond(block, rows)
    error_different, degrees_different = block.by_itself.different(rows)
    return {
        "difference": block.difference[rows],
        "error": block.error(rows),
        "error_runs": np.sqrt(block.of_runs(rows)),
        "error_jobs": np.broadcast_to(np.sqrt(block.of_job), shape),
        "error_template": np.sqrt(block.of_template(rows)),
        "degrees": block.degrees(rows),
        "half_90": block.half_90(rows),
        "error_different": error_different,
        "degrees_different": degrees_different,
        "half_simultaneous": block.half_simultaneous[rows],
        "bound": np.broadcast_to(block.bound, shape),
        "value": value,
        "peers": peers,
        "runs": block.runs[rows],
        "runs_above": above,
        "runs_below": below,
    }


def _half_confirming(series: Series, job: int, rows: npt.NDArray[np.int64], tail: float) -> npt.NDArray[np.float64]:
    """Of the parts that earlier jobs of the same nodes showed outside; NaN of all others, which nothing confirms."""
    block = series.blocks[job]
    before = np.zeros((len(rows), len(block.bound)), dtype=np.bool_)
    nodes = block.matrix.nodes[rows].tolist()
    for earlier in series.blocks[:job]:
        at = [number for number, node in enumerate(nodes) if node in earlier.row]
        before[at] |= earlier.outside[[earlier.row[nodes[number]] for number in at]]
    half = np.full(before.shape, np.nan)
    if before.any():
        half[before] = block.half(tail, rows)[before]
    return half


def _enter_pooled(
    values: Values,
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
        ("difference", pooled.difference),
        ("error", pooled.error),
        ("half_90", pooled.half_90),
        ("bound", block.bound),
        ("value", value),
        ("peers", peers),
        ("runs", pooled.runs),
    ):
        values[name][sample, columns] = array
