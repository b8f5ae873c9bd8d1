"""Where the level of a part changes over campaigns, by how much, since when, and what changed in the node's
configuration at that time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.data.places.quantity import models
from nodeprint.history.judged import JudgedCampaign
from nodeprint.history.series import comparable, families
from nodeprint.judge.judge import SUSPECT
from nodeprint.judge.verdict import Interval, Part
from nodeprint.machine import fingerprint
from nodeprint.machine.tree import open_tree
from nodeprint.stats import change_points, intervals
from nodeprint.stats.change_points import Stretch
from nodeprint.stats.robust import row_medians

Floats = npt.NDArray[np.float64]

#: The chance that anything of an unchanged node is reported as changed in so many measurements: a year of weeks.
ALARM, YEAR = 0.01, 52
#: The probability at each end of a 95 % interval.
_TAIL_95 = 0.025
#: From so many steps on a series' own scatter says something beside that of all.
_STEPS = 8
#: A level is known by so many measurements.
_SEVERAL = 2
#: Parts of a node that have a course.
_COURSES = 4


class Change(msgspec.Struct, frozen=True):
    """A part of a node whose level changed by more than its bound, with all of its interval.

    `effect` and `interval` (95 %) are relative to the level `before` (of shares of the time the difference); `before`
    and `after` are in `unit`. The part still had its level before at `unchanged`, and the change was there `since`, the
    likeliest first measurement, at the latest `by` (ISO 8601); where it came in several steps, `since` is when they
    made up the bound. `counts` are how many
    measurements show the level before and after; `confirmed`: two or more each. `further` parts of the same subject
    moved with it. `fields` of the fingerprint changed between: values before and after.
    """

    node: str
    measurement: str
    home: int
    subject: str
    part: Part
    unit: str
    before: float
    after: float
    effect: float
    interval: Interval
    bound: float
    unchanged: str
    since: str
    by: str
    confirmed: bool
    counts: tuple[int, int]
    worse: bool
    further: int = 0
    fields: Mapping[str, tuple[str, str]] = {}


class Course(msgspec.Struct, frozen=True):
    """A part of a node over its measurements: when each was (`measured`, ISO 8601) and in which campaign, how far the
    part is from its first level (`distance`) and half of the 95 % interval (`half`), both in bounds.

    `bound` is relative, as of a change.
    """

    measurement: str
    home: int
    subject: str
    part: Part
    bound: float
    measured: tuple[str, ...]
    campaigns: tuple[str, ...]
    distance: tuple[float, ...]
    half: tuple[float, ...]


class NodeHistory(msgspec.Struct, frozen=True):
    """A node over time: when and in which campaigns it was measured (ISO 8601, in order), its changes by date, and the
    courses of the parts that changed, the largest change in bounds first; of an unchanged node that of the part that
    moved most."""

    node: str
    measured: tuple[str, ...]
    campaigns: tuple[str, ...]
    changes: tuple[Change, ...]
    courses: tuple[Course, ...]


class _Step(msgspec.Struct, frozen=True):
    """A change of one part, by the numbers of the node's measurements: the level before begins at `start`, the new one
    ends before `stop`."""

    part: int
    effect: float
    error: float
    start: int
    unchanged: int
    since: int
    by: int
    stop: int
    counts: tuple[int, int]
    share: float


def histories(whole: xr.Dataset, judged: Sequence[JudgedCampaign]) -> list[NodeHistory]:
    """Every node of a series (`series.series`) by name, with its changes."""
    names = whole["node"].values.astype(str)
    of_nodes = {name: whole.isel(sample=np.flatnonzero(names == name)) for name in sorted(set(names.tolist()))}
    levels = {name: comparable(of_node) for name, of_node in of_nodes.items()}
    own = {name: _scatter(of_node, levels[name]) for name, of_node in of_nodes.items()}
    of_all = np.median(np.stack(list(own.values())), axis=0) if own else np.ones(0)
    out = []
    for name, of_node in of_nodes.items():
        factor = np.maximum(of_all, own[name] if of_node.sizes["sample"] > _STEPS else 1.0)
        errors = of_node["error"].values.astype(np.float64) * np.maximum(factor, 1.0)
        out.append(_history(name, of_node, levels[name], errors, judged, len(of_nodes)))
    return out


def _scatter(of_node: xr.Dataset, levels: Floats) -> Floats:
    """How many times its standard errors a node scatters in each part's family (part); 1 where that is not known."""
    of_parts = change_points.scatter(levels, of_node["error"].values.astype(np.float64))
    out = np.ones(levels.shape[1])
    for family in families(of_node):
        usable = np.isfinite(of_parts[family])
        if usable.any():
            out[family] = np.median(of_parts[family][usable])
    return out


def _history(
    name: str, of_node: xr.Dataset, levels: Floats, errors: Floats, judged: Sequence[JudgedCampaign], nodes: int
) -> NodeHistory:
    bounds = row_medians(of_node["bound"].values.T.astype(np.float64))
    bounds[~np.isfinite(bounds)] = np.inf
    present = np.isfinite(levels)
    low, high = np.where(present, levels, np.inf).min(axis=0), np.where(present, levels, -np.inf).max(axis=0)
    reach = np.where(present.any(axis=0), high - low, 0.0) / bounds
    measured = int(present.any(axis=0).sum())
    z = change_points.threshold(ALARM, measured, max(len(levels), YEAR))
    degrees = _degrees(of_node)
    simultaneous, half_95 = (intervals.quantile(degrees, tail) for tail in (_tails(of_node, nodes), _TAIL_95))
    # a level that moved by its bound has values that are as far apart: most parts are not looked at
    steps = [
        step
        for part in np.flatnonzero(reach >= 1).tolist()
        for step in _steps(part, levels[:, part], errors[:, part], float(bounds[part]), z, float(simultaneous[part]))
    ]
    together = _together(steps, of_node)
    changes = [
        _change(name, of_node, first, further, float(half_95[first.part]) * first.error, judged)
        for first, further in together
    ]
    changes.sort(key=lambda change: change.since)
    moved = list(dict.fromkeys(step.part for step, _ in together)) or [int(np.argmax(reach))]
    courses = [
        _course(of_node, part, levels[:, part], errors[:, part], z, float(half_95[part])) for part in moved[:_COURSES]
    ]
    times, campaigns = (tuple(of_node[key].values.astype(str).tolist()) for key in ("started", "campaign"))
    return NodeHistory(name, times, campaigns, tuple(changes), tuple(courses))


def is_of(change: Change, course: Course) -> bool:
    """Whether a change is one of the part of a course."""
    return all(getattr(change, key) == getattr(course, key) for key in ("measurement", "home", "part"))


def _degrees(of_node: xr.Dataset) -> Floats:
    """The degrees of freedom of a node's errors (part), as the table of deviations has them in most of its jobs."""
    degrees = row_medians(of_node["degrees"].values.T.astype(np.float64))
    return np.where(np.isfinite(degrees), degrees, 1.0)


def _tails(of_node: xr.Dataset, nodes: int) -> Floats:
    """The probability at each end of a part's interval (part), as the judge shares it among the parts of a family and
    the nodes."""
    out = np.ones(of_node.sizes["part"])
    for family in families(of_node):
        out[family] = SUSPECT / (2 * nodes * len(family))
    return out


def _course(of_node: xr.Dataset, part: int, values: Floats, errors: Floats, z: float, half_95: float) -> Course:
    at = np.flatnonzero(np.isfinite(values) & np.isfinite(errors) & (errors > 0))
    measurement, home, subject, bound = _labels(of_node, part)
    size = float(np.nanmedian(of_node["bound"].values[:, part])) if len(at) else np.nan
    first = change_points.stretches(values[at], errors[at], z)[0].level if len(at) else 0.0
    return Course(
        measurement,
        home,
        subject,
        _part(of_node, part),
        bound,
        tuple(of_node["started"].values[at].astype(str).tolist()),
        tuple(of_node["campaign"].values[at].astype(str).tolist()),
        tuple(((values[at] - first) / size).tolist()),
        tuple((half_95 * errors[at] / size).tolist()),
    )


def _labels(of_node: xr.Dataset, part: int) -> tuple[str, int, str, float]:
    """The measurement, home and subject of a part, and its bound, relative."""
    measurement, subject = (str(of_node[key].values[part]) for key in ("measurement", "subject"))
    model, bounds = models().get(measurement), of_node["bound"].values[:, part]
    bound = float(np.nanmedian(bounds)) if np.isfinite(bounds).any() else np.nan
    if model is not None and model.scale == "log" and str(of_node["unit"].values[part]) != "share":
        bound = float(np.expm1(bound))
    return measurement, int(of_node["home"].values[part]), subject, bound


def _steps(part: int, values: Floats, errors: Floats, bound: float, z: float, simultaneous: float) -> Iterator[_Step]:
    """The changes of one part: each level, of those that `z` errors make one, that differs from the last one as a node
    does that is different: with all of its interval, of so many `simultaneous` errors, outside the bound."""
    at = np.flatnonzero(np.isfinite(values) & np.isfinite(errors) & (errors > 0))
    if len(at) < 2:
        return
    at = at[~change_points.isolated(values[at], errors[at], z)]
    stretches = change_points.stretches(values[at], errors[at], z)
    before, number = stretches[0], 0
    for index, after in enumerate(stretches[1:], start=1):
        effect, error = after.level - before.level, float(np.hypot(after.error, before.error))
        if not intervals.outside(np.array(effect), np.array(simultaneous * error), bound):
            continue
        first: Stretch = stretches[number + 1]
        unchanged, since, by = (int(at[place]) for place in (first.earliest - 1, after.start, after.latest))
        counts = before.count, after.count
        start, stop = int(at[before.start]), int(at[after.stop - 1]) + 1
        yield _Step(part, effect, error, start, unchanged, since, by, stop, counts, abs(effect) / bound)
        before, number = after, index


def _together(steps: Sequence[_Step], of_node: xr.Dataset) -> list[tuple[_Step, int]]:
    """Of changes of one subject at one time the largest in bounds, of those that several measurements show if there are
    any, and how many others moved with it."""
    subjects = of_node["subject"].values.astype(str)
    groups: list[list[_Step]] = []
    for step in sorted(steps, key=lambda step: (min(step.counts) < _SEVERAL, -step.share)):
        for group in groups:
            first = group[0]
            overlap = step.unchanged < first.by and first.unchanged < step.by
            if subjects[step.part] == subjects[first.part] and overlap:
                group.append(step)
                break
        else:
            groups.append([step])
    return [(group[0], len({step.part for step in group[1:]} - {group[0].part})) for group in groups]


def _part(of_node: xr.Dataset, number: int) -> Part:
    """A part in canonical numbers, as the table of deviations has them."""
    place = str(of_node["place"].values[number])
    where: dict[str, int | str] = {}
    for label, value in (entry.split("=", 1) for entry in place.split(",") if "=" in entry):
        where[label] = int(value) if value.lstrip("-").isdigit() else value
    return Part(str(of_node["term"].values[number]), str(of_node["family"].values[number]), where)


def _change(
    name: str, of_node: xr.Dataset, step: _Step, further: int, half_95: float, judged: Sequence[JudgedCampaign]
) -> Change:
    measurement, home, subject, bound = _labels(of_node, step.part)
    unit, model = str(of_node["unit"].values[step.part]), models().get(measurement)
    values = of_node["value"].values[:, step.part].astype(np.float64)
    before = float(np.nanmean(values[step.start : step.unchanged + 1]))
    if unit == "share":
        effect = float(np.nanmean(values[step.since : step.stop])) - before
        half = abs(effect) * half_95 / abs(step.effect)
        interval = Interval(effect - half, effect + half)
    else:
        effect = float(np.expm1(step.effect))
        low, high = (float(np.expm1(step.effect + side * half_95)) for side in (-1, 1))
        interval = Interval(low, high)
    # the measured level after may be another: of a core it has what moved all cores, too
    after = before + effect if unit == "share" else before * (1 + effect)
    times = of_node["started"].values.astype(str)
    return Change(
        name,
        measurement,
        home,
        subject,
        _part(of_node, step.part),
        unit,
        before,
        after,
        effect,
        interval,
        bound,
        str(times[step.unchanged]),
        str(times[step.since]),
        str(times[step.by]),
        min(step.counts) >= _SEVERAL,
        step.counts,
        (effect > 0) == (model is None or model.better == "lower"),
        further,
        _fields(name, of_node, step, judged),
    )


def _fields(
    name: str, of_node: xr.Dataset, step: _Step, judged: Sequence[JudgedCampaign]
) -> dict[str, tuple[str, str]]:
    """What changed in a node's fingerprint meanwhile; what was not known before or after did not.

    A verdict has the newest fingerprint of a campaign; of jobs of one campaign their surveys are read.
    """
    numbers = (int(of_node["number"].values[at]) for at in (step.unchanged, step.by))
    before, after = (judged[number] for number in numbers)
    if before is after:
        jobs = (str(of_node["job"].values[at]) for at in (step.unchanged, step.by))
        old, new = (_surveyed(before.folder / "nodes" / name / job) for job in jobs)
    else:
        old, new = (campaign.nodes[name].fingerprint for campaign in (before, after))
    return {key: (str(old[key]), str(new[key])) for key in old if key in new and old[key] != new[key]}


def _surveyed(job: Path) -> Mapping[str, Any]:
    """The fingerprint of a job's survey; empty where it has none."""
    survey = job / "survey.tar.gz"
    return fingerprint.read(open_tree(survey)) if survey.exists() else {}
