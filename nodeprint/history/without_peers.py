"""Nodes without a peer over time: they are in no table of deviations, so that their medians in the verdict are their
parts. A verdict has those of a node's newest job."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import xarray as xr

from nodeprint.data.quantity import models
from nodeprint.history.judged import PART, JudgedCampaign, JudgedNode
from nodeprint.judge import acceptance, bounds
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.outcome import MEANING, Outcome
from nodeprint.stats.runs import PRIOR_DEGREES

#: Outcomes of nodes whose figures are no part of a history.
_UNUSABLE = (Outcome.INVALID, Outcome.NOT_MEASURED)
_FAMILY = "median"


class _Row(msgspec.Struct, frozen=True):
    """A median with its standard deviation over `runs` (`spread`), what is assumed of that (`prior`) and of jobs
    (`job`), all relative (of shares of the time on the scale of their bound), and its bound; as in the table of
    deviations."""

    label: tuple[object, ...]
    value: float
    difference: float
    spread: float
    prior: float
    job: float
    runs: int
    bound: float


def samples(campaign: JudgedCampaign, compared: Collection[str], nodes: Collection[str] | None) -> xr.Dataset | None:
    """The nodes of a campaign that were `compared` with none, as a table (sample, part) like that of deviations; with
    `nodes` of these alone; None without any. Raises NodeprintError where the campaign's acceptance cannot be read."""
    alone = {
        name: node
        for name, node in campaign.nodes.items()
        if name not in compared and node.outcome not in _UNUSABLE and (nodes is None or name in nodes)
        and MEANING[node.outcome].measured and (node.classes or node.cells)
    }  # fmt: skip
    if not alone:
        return None
    rules = acceptance.load(acceptance.kept(campaign.folder))
    rows = [list(_rows(node, rules)) for node in alone.values()]
    parts = {label: number for number, label in enumerate(dict.fromkeys(row.label for of in rows for row in of))}
    values = {name: np.full((len(alone), len(parts)), np.nan) for name in ("value", "difference", "error", "bound")}
    for sample, of_node in enumerate(rows):
        errors = _errors(of_node)
        for row in of_node:
            entries = row.value, row.difference, errors[row.label], row.bound
            for array, entry in zip(values.values(), entries, strict=True):
                array[sample, parts[row.label]] = entry
    coordinates: dict[str, Any] = {key: ("part", [label[at] for label in parts]) for at, key in enumerate(PART)} | {
        "node": ("sample", list(alone)),
        "job": ("sample", [node.jobs[-1] if node.jobs else "" for node in alone.values()]),
        "started": ("sample", [node.measured for node in alone.values()]),
    }
    arrays = {name: (("sample", "part"), array.astype(np.float32)) for name, array in values.items()}
    return xr.Dataset(arrays, coordinates)


def _rows(node: JudgedNode, rules: Acceptance) -> Iterator[_Row]:
    """The medians of a node: its classes of pairs, and the rows of other measurements."""
    for of_class in node.classes:
        median = of_class.median_ns
        model = models().get(of_class.measurement)
        if not median or model is None:
            continue
        subject = "messages" if of_class.measurement.startswith("linktest") else "core-to-core"
        place = f"class={of_class.name}"
        label = (of_class.measurement, of_class.home, subject, "class", _FAMILY, place, "ns")
        bound = bounds.of_class(median, rules, tick_ns=of_class.tick_ns, harvested=of_class.harvested)
        spread, prior, job = (of_class.run_sd_ns or 0.0) / median, rules.prior("run"), rules.prior("job")
        yield _Row(label, median, math.nan, spread, prior, job, of_class.runs, bound)
    for row in node.cells:
        model = models().get(row.measurement)
        if row.median is None or model is None:
            continue
        limit, bound, spread = rules.cell(model.term), bounds.of_cells(model, rules), row.run_sd or 0.0
        place = f"row={row.name.replace(', ', ' / ')}"
        label = (row.measurement, -1, model.term, model.term, _FAMILY, place, row.unit)
        if row.unit == "share":
            size = limit.bound + row.median
            difference = math.log1p(row.median / limit.bound)
            prior, job = (sd * limit.bound / size for sd in (limit.node_sd, limit.job_sd))
            yield _Row(label, row.median, difference, spread / size, prior, job, row.runs, bound)
        elif row.median > 0:
            relative = spread / row.median
            yield _Row(label, row.median, math.nan, relative, limit.node_sd, limit.job_sd, row.runs, bound)


def _errors(rows: Collection[_Row]) -> Mapping[tuple[object, ...], float]:
    """The standard errors of medians. Of few runs a part's own spread says little: it is pooled over the parts of a
    measurement, with what is assumed."""
    squares: dict[object, float] = {}
    degrees: dict[object, float] = {}
    for row in rows:
        measurement, spare = row.label[0], max(row.runs - 1, 0)
        squares[measurement] = squares.get(measurement, PRIOR_DEGREES * row.prior**2) + spare * row.spread**2
        degrees[measurement] = degrees.get(measurement, PRIOR_DEGREES) + spare
    return {
        row.label: math.sqrt(squares[row.label[0]] / degrees[row.label[0]] / max(row.runs, 1) + row.job**2)
        for row in rows
    }
