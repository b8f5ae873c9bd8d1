"""Messages between nodes: slow nodes and links, and the direction in which they are slow.

The log of a message's time is the sum of four terms: class, sending node, receiving node and link. For a rate, the sign
is reversed. The class is within a switch or between switches. The first three are medians, so that a slow
link does not make its nodes slow, nor a slow node all its links. Each term is a component: a difference with an error,
two intervals and a tolerance (docs/method/verdict.md).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import xarray as xr
from msgspec import UNSET, UnsetType

from nodeprint.data.job.fabric_times import FEWEST_NODES, Fabric, relative
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.agreements import FAR, MOST_LIMIT, MOST_RUNS, NINE_OF_TEN
from nodeprint.judge.deviations import SUSPECT
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.reduction import independent
from nodeprint.judge.verdict import (
    Agreement,
    Component,
    FabricValues,
    FabricVerdict,
    Finding,
    Interval,
    JobEffect,
    Limit,
    SizeFigure,
)
from nodeprint.stats import intervals
from nodeprint.stats.runs import run_spread

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NODE, LINK = "fabric-node", "fabric-link"
#: Rounds of medians, which converge in two or three.
_ROUNDS = 6
#: The other direction counts as slow, too, from this share of the slower one's effect on.
_BOTH_WAYS = 0.5
#: Standard deviation that is assumed of a message between runs before the data.
_RUN_PRIOR = 0.02
#: With more nodes, one slow component hardly moves a median, and this shift is neglected.
_FEW_NODES = 32
#: In so many components an effect is tried, to see how much of it few nodes absorb.
_PLANTED = 12
#: The variance of a median, times that of a mean.
_OF_MEDIAN = np.pi / 2


def terms(logs: Floats, places: Sequence[str]) -> xr.Dataset:
    """Median polish of log times (run, from, to), by run; NaN if nothing was measured.

    `level` (run, from, to) is the term of each link's class. `sends` and `receives` (run, node) are those of the nodes,
    and `link` (run, from, to) is the remainder of each link.
    """
    place = np.array(places)
    near = place[:, None] == place[None, :]
    level = np.zeros_like(logs)
    n = len(places)
    out, into = (np.zeros((len(logs), n)) for _ in range(2))
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a class or node without a value stays NaN
        for _ in range(_ROUNDS):
            rest = logs - out[:, :, None] - into[:, None, :]
            for kind in (near, ~near):
                level[:, kind] = np.nanmedian(rest[:, kind], axis=1, keepdims=True) if kind.any() else 0
            out = np.nanmedian(logs - level - into[:, None, :], axis=2)
            out -= np.nanmedian(out, axis=1, keepdims=True)
            into = np.nanmedian(logs - level - out[:, :, None], axis=1)
            into -= np.nanmedian(into, axis=1, keepdims=True)
    links, of_nodes = ("run", "from", "to"), ("run", "node")
    link = logs - level - out[:, :, None] - into[:, None, :]
    return xr.Dataset(
        {"level": (links, level), "sends": (of_nodes, out), "receives": (of_nodes, into), "link": (links, link)}
    )


def judge_all(fabrics: Sequence[Fabric], rules: Acceptance) -> tuple[FabricVerdict, ...]:
    """The verdict of everything measured between nodes."""
    return tuple(judge(fabric, rules, len(fabrics)) for fabric in fabrics)


def judge(fabric: Fabric, rules: Acceptance, fabrics: int = 1) -> FabricVerdict:
    """The slow nodes and links of a fabric, the largest first; so many `fabrics` share the levels."""
    few, one_run = len(fabric.nodes) < FEWEST_NODES, len(fabric.runs) < 2
    if few or (one_run and not fabric.metric):
        return _verdict(fabric, (), (), "too-few-nodes" if few else "one-run")
    logs = fabric.logs
    fitted = terms(logs, fabric.places)
    n = len(fabric.nodes)
    of_link = max(_between_runs(logs), _between_links(fitted)) if one_run else _between_runs(logs)
    findings: list[Finding] = []
    limits = []
    of_node, of_single_link = _percent(fabric, rules)
    for ways, percent, factor in (
        (_nodes(fabric, fitted), of_node, _OF_MEDIAN / (n - 1)),
        (_links(fabric, fitted), of_single_link, 1.0),
    ):
        of_ways, limit = _judged(
            ways, fabric, _tolerance(percent, fabric), of_link * factor, rules.false_alarm, fabrics
        )
        findings += of_ways
        limits.append(limit)
    ordered = tuple(sorted(findings, key=lambda finding: -finding.times_tolerance))
    if one_run:  # other traffic may slow a link in one run: only a node has several links that show it
        of_nodes = tuple(finding for finding in ordered if finding.component.term == NODE)
        of_links = tuple(finding for finding in ordered if finding.component.term == LINK)
        return _verdict(fabric, of_nodes, (), "one-run", of_links)
    far = any(limit.effect > FAR * limit.tolerance for limit in limits)
    return _verdict(fabric, ordered, tuple(limits), "beyond-tolerance" if far else "")


def _percent(fabric: Fabric, rules: Acceptance) -> tuple[float, float]:
    """The tolerances of nodes and of links in percent. A metric of a table may have one of its own for nodes."""
    of_node, of_link = rules.fabric.node_percent, rules.fabric.link_percent
    metric = rules.metrics.get(fabric.metric) if fabric.metric else None
    return (of_node, of_link) if metric is None else (metric.tolerance, min(metric.tolerance * of_link / of_node, 99.0))


def _tolerance(percent: float, fabric: Fabric) -> float:
    """The tolerance of a time that is longer, or a rate that is lower, in logarithms."""
    return float(np.log1p(percent / 100) if fabric.better == "lower" else -np.log1p(-percent / 100))


def agreements(fabrics: Sequence[Fabric], rules: Acceptance) -> dict[str, tuple[Agreement, ...]]:
    """By node its agreement with the others in the messages with all of them, in each fabric. It is that of the slower
    direction; without several runs, the interval is infinite."""
    out: dict[str, tuple[Agreement, ...]] = {}
    for fabric in fabrics:
        tolerance = _tolerance(_percent(fabric, rules)[0], fabric)
        runs = len(fabric.runs)
        logs = fabric.logs
        ways = _nodes(fabric, terms(logs, fabric.places))
        values = ways["value"].values.reshape(runs, -1)
        of_runs = _between_runs(logs) * _OF_MEDIAN / (len(fabric.nodes) - 1)
        job = _job(values, np.arange(runs), of_runs, intervals.EQUIVALENCE)
        reach = np.abs(job["difference"].values) + (job["half"].values if runs > 1 else np.inf)
        for number, node in enumerate(fabric.nodes):
            at = 2 * number + int(np.argmax(reach[2 * number : 2 * number + 2]))
            level = _level(ways, number, at % 2, fabric)
            within, limit = (abs(relative(side, fabric.better)) for side in (float(reach[at]), tolerance))
            agreement = Agreement(
                fabric.measurement,
                True,
                fabric.measurement,
                Component(NODE, NODE, {}),
                within,
                limit,
                fabric.unit,
                within * level,
                limit * level,
                float(reach[at]) / tolerance,
                relative(float(job["difference"].values[at]), fabric.better),
                runs,
                "runs" if tolerance < reach[at] < np.inf and abs(job["difference"].values[at]) < tolerance else "",
            )
            out[node] = (*out.get(node, ()), agreement)
    return out


def _level(ways: xr.Dataset, number: int, direction: int, fabric: Fabric) -> float:
    """The usual value of a component in a direction, in the fabric's unit."""
    usual = float(ways["usual"].values[number, direction])
    return math.exp(usual if fabric.better == "lower" else -usual)


def _between_runs(logs: Floats) -> float:
    """The variance of a link over runs. With few nodes the median polish absorbs much of it, so that the terms alone
    show too little."""
    apart = np.diff(logs - np.nanmedian(logs, axis=(1, 2), keepdims=True), axis=0)
    finite = np.abs(apart[np.isfinite(apart)])
    return float((1.4826 * np.median(finite)) ** 2 / 2) if len(finite) else _RUN_PRIOR**2


def _between_links(fitted: xr.Dataset) -> float:
    """The variance between the links of a node in a single run, robust to a slow one."""
    links = fitted["link"].values
    finite = np.abs(links[np.isfinite(links)])
    return float((1.4826 * np.median(finite)) ** 2) if len(finite) else 0.0


def _verdict(
    fabric: Fabric,
    findings: tuple[Finding, ...],
    limits: tuple[Limit, ...],
    why: str,
    unconfirmed: tuple[Finding, ...] = (),
) -> FabricVerdict:
    finite = fabric.values[np.isfinite(fabric.values)]
    smallest, mean, largest = (
        (float(finite.min()), float(finite.mean()), float(finite.max())) if len(finite) else (float("nan"),) * 3
    )
    header = fabric.header
    values: FabricValues | UnsetType = UNSET
    medians = _rows(_over_runs(fabric.values))
    if fabric.unit != "ns":
        values = FabricValues(fabric.unit, fabric.better, medians, smallest, mean, largest)
        medians, (smallest, mean, largest) = (), (float("nan"),) * 3
    return FabricVerdict(
        fabric.measurement,
        fabric.partition,
        str(header.get("operation", "")),
        fabric.nodes,
        fabric.places,
        fabric.message_bytes,
        int(header.get("parallel", 1)),
        bool(header.get("directed")),
        medians,
        smallest,
        mean,
        largest,
        findings,
        limits,
        _alone(fabric),
        why,
        tuple(_by_size(fabric)),
        _rows(_over_runs(fabric.by_size[min(fabric.by_size)])) if fabric.by_size else (),
        max(fabric.disturbed, default=0.0),
        values,
        unconfirmed,
    )


def _over_runs(values: Floats) -> Floats:
    """The median of each link over runs; NaN if it was not measured."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        return np.asarray(np.nanmedian(values, axis=0)) if len(values) else values


def _rows(values: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(float, row)) for row in values)


def _by_size(fabric: Fabric) -> Iterator[SizeFigure]:
    """Each message size over the links within a switch or rack and over those between them, if there are any."""
    place = np.array(fabric.places)
    near = place[:, None] == place[None, :]
    for size, values in fabric.by_size.items():
        medians = _over_runs(values)
        for within in (True, False):
            links = medians[(near == within) & np.isfinite(medians)]
            if links.size:
                yield SizeFigure(size, within, float(np.median(links)), float(links.min()), float(links.max()))


def _alone(fabric: Fabric) -> tuple[str, ...]:
    """The nodes whose links have no others for comparison, such as the only node behind another switch."""
    place = np.array(fabric.places)
    near = (place[:, None] == place[None, :]).sum(axis=1) - 1
    each = np.stack([near, len(place) - 1 - near])  # links of each node within a switch and between switches
    compared = ((each > 0) & (each.sum(axis=1, keepdims=True) > 2 * each)).any(axis=0)
    return tuple(node for node, known in zip(fabric.nodes, compared, strict=True) if not known)


def _nodes(fabric: Fabric, fitted: xr.Dataset) -> xr.Dataset:
    """Every node as it sends and as it receives."""
    level = fitted["level"].values
    usual = np.stack([np.nanmedian(level, axis=(0, 2)), np.nanmedian(level, axis=(0, 1))], axis=1)
    values = np.stack([fitted["sends"].values, fitted["receives"].values], axis=2)
    return _ways(NODE, [((node, ""), (node, "")) for node in fabric.nodes], values, usual)


def _links(fabric: Fabric, fitted: xr.Dataset) -> xr.Dataset:
    """Every link in both directions."""
    a, b = np.triu_indices(len(fabric.nodes), 1)
    both = [a, b], [b, a]  # (end, direction, link)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a link that was not measured stays NaN
        sends, receives = fitted["sends"].values[:, :, None], fitted["receives"].values[:, None, :]
        usual = np.nanmedian(fitted["level"].values + sends + receives, axis=0)
    ends = [((first, second), (second, first)) for first, second in combinations(fabric.nodes, 2)]
    return _ways(LINK, ends, np.moveaxis(fitted["link"].values[:, *both], 1, 2), usual[both].T)


def _ways(
    component_type: str, ends: Sequence[tuple[tuple[str, str], tuple[str, str]]], values: Floats, usual: Floats
) -> xr.Dataset:
    """Nodes or links in both directions: `value` (run, component, direction) is the term, `usual` (component,
    direction) the log of the time that it adds to. Coordinates `from` and `to` are the ends; `to` is empty of nodes."""
    dims = ("component", "direction")
    names = np.array(ends, dtype=np.str_).reshape(len(ends), 2, 2)
    return xr.Dataset(
        {"value": (("run", *dims), values), "usual": (dims, usual)},
        {"from": (dims, names[..., 0]), "to": (dims, names[..., 1])},
        {"component_type": component_type},
    )


def _judged(
    ways: xr.Dataset, fabric: Fabric, tolerance: float, of_runs: float, false_alarm: float, fabrics: int
) -> tuple[Sequence[Finding], Limit]:
    """The findings of nodes or of links, and their detection limit."""
    values = ways["value"].values.reshape(len(fabric.runs), -1)  # (run, component * direction)
    components = values.shape[1]
    together = _independent_jobs(fabric)
    tail = SUSPECT / (4.0 * fabrics * components * len(together))  # nodes and links share the level
    of_links = _links_of_run(fabric)
    jobs = [_job(values, runs, of_runs, tail, of_links) for runs in together]
    outside = [job["difference"].values - job["half"].values > tolerance for job in jobs]
    pooled = _job(values, np.concatenate(together), of_runs, false_alarm / (4.0 * fabrics * components), of_links)
    several = np.sum([job["difference"].values > tolerance for job in jobs], axis=0) > 1
    confirmed = (pooled["difference"].values - pooled["half"].values > tolerance) & several
    findings = [
        finding
        for number in range(ways.sizes["component"])
        if (finding := _finding(ways, fabric, number, jobs, outside, confirmed, tolerance)) is not None
    ]
    limits = [_smallest_found(ways, fabric, job, flags, tolerance) for job, flags in zip(jobs, outside, strict=True)]
    effect, job = max(zip(limits, jobs, strict=True), key=lambda limit: limit[0])
    remedy, needed = ("runs", _runs_needed(job, tolerance, effect)) if effect > FAR * tolerance else ("", 0)
    limit_of_tolerance = abs(relative(tolerance, fabric.better))
    limit = Limit(
        "messages",
        fabric.measurement,
        str(ways.attrs["component_type"]),
        str(ways.attrs["component_type"]),
        min(abs(relative(effect, fabric.better)), MOST_LIMIT),
        limit_of_tolerance,
        remedy,
        needed,
        limit_of_tolerance,
        limit_of_tolerance,
    )
    return findings, limit


def _smallest_found(ways: xr.Dataset, fabric: Fabric, job: xr.Dataset, outside: Bools, tolerance: float) -> float:
    """The log of the effect that is found with 90% power. Natural differences and noise of a component add to the
    effect or hide it. The medians of few nodes absorb a share of it."""
    healthy = job["difference"].values[np.isfinite(job["difference"].values) & ~outside]
    n = len(fabric.nodes)
    # a direction's nodes are centered; links are the remainder of two terms a node and the levels of two classes
    fitted = 2 if str(ways.attrs["component_type"]) == NODE else 2 * n
    variance = float(np.sum(healthy**2)) / max(len(healthy) - fitted, 1)
    needs = float(np.nanmedian(tolerance + job["half"].values))
    trial = needs + NINE_OF_TEN * math.sqrt(variance)
    absorbed = _absorbed(str(ways.attrs["component_type"]), fabric, job, trial) if n <= _FEW_NODES else np.zeros(1)
    return needs + float(np.nanmean(absorbed)) + NINE_OF_TEN * math.sqrt(variance + float(np.nanvar(absorbed)))


def _absorbed(component_type: str, fabric: Fabric, job: xr.Dataset, effect: float) -> Floats:
    """The part of an effect that the medians of few nodes absorb, in log time. The effect is injected into some
    components, one at a time."""
    logs = fabric.logs[job["run"].values]
    n, runs = len(fabric.nodes), len(logs)
    row, column = np.nonzero(~np.eye(n, dtype=np.bool_)) if component_type == LINK else (np.arange(n), np.full(n, -1))
    tried = np.unique(np.linspace(0, len(row) - 1, _PLANTED).astype(np.int64))
    planted = np.repeat(logs[None], len(tried), axis=0)
    for number, (a, b) in enumerate(zip(row[tried], column[tried], strict=True)):
        slow = np.s_[:, a, b] if component_type == LINK else np.s_[:, a, :]
        planted[number][slow] += effect
        if not fabric.header.get("directed"):
            planted[number].swapaxes(1, 2)[slow] += effect

    def shown(of: xr.Dataset) -> Floats:
        """The tried components' differences, (components * runs, tried)."""
        is_link = component_type == LINK
        values = of["link"].values[:, row[tried], column[tried]] if is_link else of["sends"].values[:, tried]
        return np.asarray(values)

    before = shown(terms(logs, fabric.places))
    after = shown(terms(planted.reshape(-1, n, n), fabric.places)).reshape(len(tried), runs, len(tried))
    remaining = np.diagonal(after, axis1=0, axis2=2) - before  # (run, tried)
    measured = np.isfinite(remaining).all(axis=0)
    return np.asarray(effect - remaining[:, measured].mean(axis=0)) if measured.any() else np.zeros(1)


def _runs_needed(job: xr.Dataset, tolerance: float, effect: float) -> int:
    """How many runs bring the detection limit to FAR tolerances, if their number alone decides."""
    return int(min(np.ceil(len(job["run"].values) * ((effect - tolerance) / ((FAR - 1) * tolerance)) ** 2), MOST_RUNS))


def _independent_jobs(fabric: Fabric) -> list[Ints]:
    """The runs of each independent job, in order."""
    jobs = [int(run.partition("/")[0].removeprefix("job")) for run in fabric.runs]
    begun: dict[int, list[str]] = {}
    for job, start in zip(jobs, fabric.started, strict=True):
        begun.setdefault(job, []).append(start)
    of_run = np.array(jobs)
    return [np.flatnonzero(np.isin(of_run, component)) for component in independent(begun, fabric.followed)]


def _links_of_run(fabric: Fabric) -> float:
    """The degrees of freedom of the variance between links, which is that of a single run."""
    links = float(np.isfinite(fabric.values).sum()) / (1 if fabric.header.get("directed") else 2)
    return max(links - 2 * len(fabric.nodes), 1.0) if len(fabric.runs) == 1 else 1.0


def _job(values: Floats, runs: Ints, of_runs: float, tail: float, fewest_degrees: float = 1.0) -> xr.Dataset:
    """The differences of one independent job with `runs` (numbers), by column (component * direction). Each has an
    error with its degrees of freedom, and half of the simultaneous interval."""
    own_values = values[runs]
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a link that was not measured stays NaN
        difference = np.nanmean(own_values, axis=0)
    components = own_values.shape[1]
    spread = run_spread(own_values[None], np.zeros(components, dtype=np.int64), np.full(components, np.sqrt(of_runs)))
    present = np.isfinite(own_values).sum(axis=0)
    # medians leave some terms without any spread: no component has less than runs of all differ by. Other traffic in
    # some runs of some links is in the spread of these, and their ratio is to that
    common = max(float(np.median(spread.pooled)), of_runs)
    variance = np.maximum(spread.pooled, common) * spread.ratio[0] / np.maximum(present, 1)
    of_all = np.full(components, max(float(np.maximum(present - 1, 0).sum()), fewest_degrees))
    finite = np.abs(difference[np.isfinite(difference)])
    center = (1.4826 * float(np.median(finite))) ** 2 * _OF_MEDIAN / max(len(finite), 1) if len(finite) else 0.0
    of_center = np.full(components, max(len(finite) - 1.0, 1.0))
    error, degrees = intervals.combined([(variance, of_all), (np.full(components, center), of_center)])
    half = intervals.half_width(error, degrees, tail)
    columns = {"difference": difference, "error": error, "degrees": degrees, "half": half}
    return xr.Dataset({name: ("column", values) for name, values in columns.items()}, {"run": runs})


def _finding(
    ways: xr.Dataset,
    fabric: Fabric,
    number: int,
    jobs: Sequence[xr.Dataset],
    outside: Sequence[Bools],
    confirmed: Bools,
    tolerance: float,
) -> Finding | None:
    """The finding of a node or link that is slow in one or both directions, by the more certain of these."""
    columns = (2 * number, 2 * number + 1)
    states = [_state(jobs, outside, confirmed, tolerance, column) for column in columns]
    if fabric.metric and not fabric.header.get("directed"):
        states[1] = None  # both directions are one value, so the link has the order of its nodes
    by_rank = [state for state in Certainty if state in states]
    if not by_rank:
        return None
    state = by_rank[0]
    of_state = [column for column, column_state in zip(columns, states, strict=True) if column_state is state]
    # the job that shows it least, of those that do: no job is chosen for a large effect
    shows = [
        (float(job["difference"].values[at]), number, at)
        for number, (job, flags) in enumerate(zip(jobs, outside, strict=True))
        for at in of_state
        if flags[at] or confirmed[at]
    ]
    _, number_of_job, _ = min(shows)
    deciding = jobs[number_of_job]
    column = max(of_state, key=lambda at: float(np.nan_to_num(deciding["difference"].values[at], nan=-np.inf)))
    direction = columns.index(column)
    effect = float(deciding["difference"].values[column])
    effect_back = float(deciding["difference"].values[columns[1 - direction]])
    both = not fabric.header.get("directed") or effect_back > _BOTH_WAYS * effect
    node, to = (str(ways[end].values[number, direction]) for end in ("from", "to"))
    where: dict[str, int | str] = {"node": node}
    if to:
        where |= {"to": to, "sends": 1, "receives": int(both)}
    else:
        where |= {"sends": int(direction == 0 or both), "receives": int(direction == 1 or both)}
    half = float(deciding["half"].values[column])
    level = _level(ways, number, direction, fabric)
    size, interval = relative(effect, fabric.better), _interval(effect, half, fabric)
    relative_tolerance = abs(relative(tolerance, fabric.better))
    half_95 = float(
        np.expm1(intervals.half_width(deciding["error"].values[column], deciding["degrees"].values[column], 0.025))
    )
    return Finding(
        id=f"{ways.attrs['component_type']!s}-slow",
        state=state,
        measurement=fabric.measurement,
        home=-1,
        component=Component(str(ways.attrs["component_type"]), str(ways.attrs["component_type"]), where),
        effect=size,
        effect_unit=size * level,
        interval=interval,
        half_95=half_95,
        tolerance=relative_tolerance,
        tolerance_unit=relative_tolerance * level,
        times_tolerance=abs(size) / relative_tolerance,
        value=level * (1 + size),
        peers=level,
        unit=fabric.unit,
        worse=True,
        by_job=tuple(
            _effect_of(job, column, fabric, ways, bool(flags[column])) for job, flags in zip(jobs, outside, strict=True)
        ),
        consistent_with=("adapter", "cable", "network-settings")
        if str(ways.attrs["component_type"]) == NODE
        else ("switch-link", "route"),
        remedy=str(ways.attrs["component_type"]),
    )


def _state(
    jobs: Sequence[xr.Dataset], outside: Sequence[Bools], confirmed: Bools, tolerance: float, column: int
) -> Certainty | None:
    """The certainty of a component in one direction, by all jobs alike. None if it is outside its tolerance in no job,
    nor in all together (`confirmed`). The states are those of a row of `deviations.Deviations`."""
    count = sum(bool(flags[column]) for flags in outside)
    if count > 1 or confirmed[column]:
        return Certainty.CONFIRMED
    if not count:
        return None
    inside = (
        float(job["difference"].values[column])
        + intervals.half_width(job["error"].values[[column]], job["degrees"].values[[column]], intervals.EQUIVALENCE)[0]
        <= tolerance
        for job in jobs
    )
    return Certainty.INTERMITTENT if any(inside) else Certainty.SUSPECTED


def _interval(effect: float, half: float, fabric: Fabric) -> Interval:
    return Interval(*sorted(relative(effect + side, fabric.better) for side in (-half, half)))


def _effect_of(job: xr.Dataset, column: int, fabric: Fabric, ways: xr.Dataset, shows: bool) -> JobEffect:
    values = ways["value"].values.reshape(len(fabric.runs), -1)[job["run"].values, column]
    effect, half = float(job["difference"].values[column]), float(job["half"].values[column])
    size, interval = relative(effect, fabric.better), _interval(effect, half, fabric)
    names = [fabric.runs[run] for run in job["run"].values.tolist()]
    runs = {
        name: relative(value, fabric.better) for name, value in zip(names, values, strict=True) if np.isfinite(value)
    }
    return JobEffect(names[-1].partition("/")[0], size, interval, runs, shows, tuple(runs) if shows else ())


def of_node(fabrics: Iterable[FabricVerdict], name: str) -> list[Finding]:
    """The findings of messages that are of a node itself, not of one of its links."""
    return [
        finding
        for fabric in fabrics
        for finding in fabric.findings
        if finding.component.term == NODE and finding.component.where["node"] == name
    ]
