"""What changed since a baseline of known-good runs."""

from __future__ import annotations

import itertools
import json
import shutil
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint import files
from nodeprint.data.places.quantity import Quantity
from nodeprint.data.store import packed, packing
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge import bounds, expected, naming
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.deviations import priors, run_means
from nodeprint.judge.outcome import State
from nodeprint.judge.reduction import Matrix, Reals, Reduced, padded, reduce, term_values
from nodeprint.judge.verdict import Finding, Interval, JobEffect, Note
from nodeprint.settings.texts import say
from nodeprint.stats import intervals
from nodeprint.stats.runs import job_spread, run_spread

Floats = npt.NDArray[np.float64]

#: A baseline is at least so many runs over so many boots of a node.
MIN_RUNS, MIN_BOOTS = 3, 2
#: A run shows a change with at least this share of it.
_RUN_SHARE = 0.25


class _Series(msgspec.Struct, frozen=True):
    """One measurement over campaigns, relative to a common template: by name of a node the values (run, column), `now`
    and in each campaign `before`; columns are the terms of all `parts`, each with its bound."""

    parts: Sequence[Matrix]
    bound: Floats
    now: Mapping[str, Floats]
    before: Sequence[Mapping[str, Floats]]


#: What was judged of a campaign, which `nodeprint since` reads of a baseline as of a campaign.
_JUDGED = ("verdict.json", "deviations.nc")


def judged_folders(folder: Path) -> list[Path]:
    """A judged campaign's folder, or those of the judged campaigns in a folder of several; empty without any."""
    if (folder / "verdict.json").exists():
        return [folder]
    return [path.parent for path in sorted(folder.glob("*/verdict.json"))]


def save(folders: Sequence[Path], folder: Path) -> tuple[list[Path], list[str]]:
    """Add judged campaigns (`folders`: of a campaign each, or of several) to the baseline in `folder`, each as one more
    point of its history; the points' paths, and the nodes of which the baseline has too few runs or boots still.

    Raises NodeprintError where a campaign is not judged or in the baseline already, and where no node would have
    MIN_RUNS runs over MIN_BOOTS boots: such a baseline shows no change.
    """
    campaigns = [campaign for named in folders for campaign in judged_folders(named) or [named]]
    for campaign in campaigns:
        if not (campaign / "verdict.json").is_file():
            raise NodeprintError("is not judged", where=campaign, advice=f"call `nodeprint judge {campaign}` first")
    fleets = [packing.pack(campaign) for campaign in campaigns]
    targets = [folder / fleet.campaign for fleet in fleets]
    for number, target in enumerate(targets):
        if target.exists() or target in targets[:number]:
            advice = "remove that folder first where the campaign was measured again"
            raise NodeprintError("is in the baseline already", where=target, advice=advice)
    past = points(folder) if any(folder.glob(f"*/{packed.FOLDER}/index.json")) else []
    boots, runs = _boots([*past, *fleets]), _runs([*past, *fleets])
    thin = sorted(node for node in boots if runs.get(node, 0) < MIN_RUNS or len(boots[node]) < MIN_BOOTS)
    if len(thin) == len(boots):
        most_runs, most_boots = max(runs.values(), default=0), max(map(len, boots.values()), default=0)
        problem = (
            f"a baseline needs {MIN_RUNS} runs over {MIN_BOOTS} boots of a node, and with {targets[-1].name} it has "
            f"{most_runs} over {most_boots} at most"
        )
        advice = "measure the nodes again after a reboot, in a campaign of another name, and save both in one call"
        raise NodeprintError(problem, where=folder, advice=advice)
    for campaign, fleet, target in zip(campaigns, fleets, targets, strict=True):
        note = {"schema": 1, "campaign": fleet.campaign, "simulated": fleet.simulated}
        with files.replacing_folder(target) as partial:
            shutil.copytree(campaign / packed.FOLDER, partial / packed.FOLDER)
            for name in _JUDGED:
                if (campaign / name).is_file():
                    shutil.copy2(campaign / name, partial / name)
            (partial / "baseline.json").write_text(json.dumps(note, indent=1) + "\n")
    return targets, thin


def points(folder: Path) -> list[PackedFleet]:
    """The campaigns of a baseline in the order of their first run; a campaign's own folder is a baseline of one.

    Raises NodeprintError where there is none.
    """
    if not folder.is_dir():
        raise NodeprintError("no such baseline", where=folder, advice="make one with `nodeprint baseline save`")
    if (folder / packed.FOLDER).is_dir() or (folder / "nodes.tsv").exists():
        return [packing.pack(folder)]
    kept = (place for place in sorted(folder.iterdir()) if (place / packed.FOLDER / "index.json").exists())
    fleets = [packed.read(place) for place in kept]
    if not fleets:
        raise NodeprintError("holds no campaign", where=folder, advice="add one with `nodeprint baseline save`")
    return sorted(fleets, key=lambda fleet: (_begun(fleet), fleet.campaign))


def _begun(fleet: PackedFleet) -> str:
    """When its first run began; empty where that is not known."""
    return min((moment for quantity in fleet.quantities for moment in quantity.started), default="")


class Since(msgspec.Struct, frozen=True):
    """What changed since a baseline: by node the findings; `note` says which baseline it was and what it lacks."""

    findings: Mapping[str, Sequence[Finding]]
    note: Note


def against(fleet: PackedFleet, baseline: Path, rules: Acceptance) -> Since:
    """What changed in each node of `fleet` since its own baseline, of pairs and of cells.

    A node is compared with itself, term by term and set by set: the newest campaign with the mean of the baseline's,
    against the run-to-run spread pooled over the nodes. A change beyond the bound that every run shows is a finding. Of
    a node with less than three runs over two boots in the baseline nothing is said to have changed.
    Raises NodeprintError where there is no baseline, or one of the two is simulated and the other is not.
    """
    kept = points(baseline)
    past = [point for point in kept if point.campaign != fleet.campaign] or kept  # no campaign is its own past
    simulated = {point.simulated for point in past} | {fleet.simulated}
    if len(simulated) > 1:
        raise NodeprintError("mixes simulated and measured campaigns", where=baseline, advice="name another baseline")
    series = _series(fleet, past, rules)
    tests = sum(len(of_quantity.bound) * len(of_quantity.now) for of_quantity in series)
    boots, called = _boots(past), _called(past)
    changes: dict[str, list[Finding]] = {}
    thin: dict[str, list[str]] = {}
    compared: set[str] = set()
    for of_quantity in series:
        for node, of_node in _changes(of_quantity, fleet, rules, rules.false_alarm / max(tests, 1)):
            compared.add(node.name)
            runs = sum(len(point[node.name]) for point in of_quantity.before if node.name in point)
            if runs < MIN_RUNS or len(boots[node.name]) < MIN_BOOTS:
                thin.setdefault(node.name, []).append(of_quantity.parts[0].name)
            elif of_node is not None:
                changes.setdefault(node.name, []).append(
                    _finding(of_quantity.parts, node, of_quantity.bound, called, *of_node)
                )
    return Since(changes, Note("baseline", printable(str(baseline)), _trust(past, fleet, thin, compared)))


def _trust(
    past: Sequence[PackedFleet], fleet: PackedFleet, thin: Mapping[str, object], compared: Collection[str]
) -> str:
    """What a baseline holds of this fleet: its campaigns, and the nodes of which it has too little or nothing."""
    known = {node.name for point in past for node in point.nodes if node.state == "measured"}
    measured = [node.name for node in fleet.nodes if node.state == "measured"]
    absent = [name for name in measured if name not in known]
    differing = [name for name in measured if name in known and name not in compared]
    facts = [", ".join(filter(None, (printable(point.campaign), _begun(point)[:10]))) for point in past]
    for names, what in (
        (sorted(thin), say("baseline", "thin", runs=MIN_RUNS, boots=MIN_BOOTS)),
        (absent, say("baseline", "absent")),
        (differing, say("baseline", "differing")),
    ):
        if names:
            facts.append(f"{what}: {', '.join(map(printable, names[:8]))}{', ...' if len(names) > 8 else ''}")
    return "; ".join(facts)


def _called(past: Sequence[PackedFleet]) -> str:
    """The campaigns of a baseline by the first and the last: `c1 to c4`."""
    return " to ".join(dict.fromkeys(printable(point.campaign, 60) for point in (past[0], past[-1])))


def _boots(past: Sequence[PackedFleet]) -> dict[str, set[str]]:
    """By node, the boots that a baseline's campaigns are of; those of a campaign that does not know count as one."""
    out: dict[str, set[str]] = {}
    for point in past:
        for node in point.nodes:
            out.setdefault(node.name, set()).update(node.boots or (f"of {point.campaign}",))
    return out


def _runs(past: Sequence[PackedFleet]) -> dict[str, int]:
    """By node, the runs in a baseline's campaigns of the measurement that it has most of."""
    runs = Counter[tuple[str, str]]()
    for point in past:
        for quantity in point.quantities:
            runs.update((point.nodes[number].name, quantity.measurement) for number in quantity.node)
    most: dict[str, int] = {}
    for (name, _), count in runs.items():
        most[name] = max(most.get(name, 0), count)
    return most


def _series(fleet: PackedFleet, past: Sequence[PackedFleet], rules: Acceptance) -> list[_Series]:
    """A series for each quantity: every term of every part of it."""
    now, *before = ([reduce(q, rules) for q in of.quantities] for of in (fleet, *past))
    out = []
    for current in now:
        level = np.nanmedian(current.level, axis=0)
        whole = [_part(current, number, level) for number in range(len(current.parts))]
        if not any(matrix.terms.terms for matrix in whole):
            continue
        bound = np.concatenate([bounds.of_matrix(matrix, rules) for matrix in whole])
        earlier = [_values(point, reduced, whole) for point, reduced in zip(past, before, strict=True)]
        out.append(_Series(whole, bound, _values(fleet, [current], whole), earlier))
    return out


def _values(of: PackedFleet, reduced: Sequence[Reduced], whole: Sequence[Matrix]) -> dict[str, Floats]:
    """By name of a node of a campaign the values (run, term of all parts) of the quantity whose parts are `whole`."""
    by_node: dict[str, Floats] = {}
    for candidate in reduced:
        levels = _at_places(whole[0].quantity, candidate)
        if levels is not None:
            each = [term_values(levels[:, m.part.places], m.template, m.terms, m.scale) for m in whole]
            values, node = np.concatenate(each, axis=1), candidate.quantity.node
            by_node |= {of.nodes[number].name: values[node == number] for number in np.unique(node).tolist()}
    return by_node


def _part(reduced: Reduced, number: int, level: Reals) -> Matrix:
    """A part without nodes, for its terms and their bounds."""
    part, none = reduced.parts[number], np.zeros(0, dtype=np.int64)
    template, values = level[part.places], np.zeros((0, 0, 0))
    began, rows = np.zeros(0), level[None][:0]
    return Matrix(reduced.quantity, part, reduced.scale, none, none, (), began, (), rows, template, values)


def _at_places(first: Quantity, later: Reduced) -> Reals | None:
    """The levels of another campaign at the places of the first, NaN where it has none; None where it is another
    quantity or machine."""
    of = later.quantity
    if any(
        getattr(first, key) != getattr(of, key) for key in ("measurement", "operation", "quantity", "unit", "dims")
    ) or (first.layout.key != of.layout.key):
        return None
    if first.names == of.names and all(np.array_equal(first.places[dim], of.places[dim]) for dim in first.dims):
        return later.level
    at = {tuple(of.place(number).values()): number for number in range(of.size)}
    column = np.array([at.get(tuple(first.place(number).values()), -1) for number in range(first.size)])
    return np.where(column < 0, np.nan, later.level[:, column])


def _finding(
    parts: Sequence[Matrix],
    node: PackedNode,
    bound: Floats,
    called: str,
    column: int,
    effect: float,
    half: float,
    reference: float,
) -> Finding:
    """A change since the baseline that is `called` so, as a finding; `column` counts the terms of all parts, and
    `reference` is what the baseline had there on the scale of `effect`."""
    each = len(parts[0].terms.terms)
    matrix, term = parts[column // each], column % each
    scale, share = matrix.scale, matrix.terms.share
    # what the baseline had: a share as it is, else from its distance to the median of the newest campaign
    usual = scale.relative(reference) if share else float(matrix.levels[term]) * (1 + scale.relative(reference))
    level = 1.0 if share else usual
    size, low, high = (scale.relative(effect + side, usual if share else 0.0) for side in (0.0, -half, half))
    limit, interval = scale.allowed(float(bound[column]), effect), Interval(low, high)
    pairs, covers = matrix.quantity.of_pairs, matrix.terms.terms[term].covers
    return Finding(
        id="changed",
        state=State.SUSPECTED,
        measurement=matrix.name,
        home=matrix.part.home,
        part=naming.part(matrix, term, node),
        effect=size,
        effect_unit=size * level,
        interval=interval,
        half_95=abs(scale.relative(half)),
        bound=limit,
        bound_unit=limit * level,
        times_bound=abs(size) / limit,
        value=usual + size * level,
        peers=usual,
        unit="share" if share else matrix.quantity.unit,
        worse=(effect > 0) == (matrix.quantity.model.better == "lower"),
        by_job=(JobEffect("since the baseline", size, interval, {}),),
        pairs=naming.cpu_pairs(matrix, covers, node) if pairs else {},
        cells=() if pairs else naming.cells(matrix, covers, node),
        remedy="changed",
        baseline=called,
        expected=expected.of_term(matrix, term, reference, node),
    )


def _changes(
    series: _Series, fleet: PackedFleet, rules: Acceptance, alpha: float
) -> list[tuple[PackedNode, tuple[int, float, float, float] | None]]:
    """Of every node that was there before, what changed most: the column, its change, half of its simultaneous
    interval and what the baseline had; `alpha` is a column's chance of a false alarm.

    The interval is made as those of the table of deviations: of the spread over runs, pooled over nodes and campaigns,
    and that between jobs, which is estimated from the campaigns of the baseline where two nodes have several.
    """
    points = (series.now, *series.before)
    rows = {key: row for row, key in enumerate((at, name) for at, point in enumerate(points) for name in point)}
    every = np.concatenate([values for point in points for values in point.values()])
    stacked = np.asarray(padded(every, _runs_of(points)), dtype=np.float64)
    families = max(int(matrix.terms.pool.max(initial=-1)) + 1 for matrix in series.parts)
    family = np.concatenate([matrix.terms.pool + number * families for number, matrix in enumerate(series.parts)])
    run, job = (
        np.concatenate([getattr(priors(matrix, rules), key) for matrix in series.parts]) for key in ("run", "job")
    )
    spread = run_spread(stacked, family, run)
    of_runs = spread.pooled * spread.ratio / np.maximum(np.isfinite(stacked).sum(axis=1), 1)
    past = sorted((name, row) for (at, name), row in rows.items() if at)
    jobs_of, owner = [row for _, row in past], np.unique([name for name, _ in past], return_inverse=True)[1]
    jobs_apart = job_spread(run_means(stacked)[jobs_of], owner, of_runs[jobs_of].mean(axis=0), family, job**2)
    out: list[tuple[PackedNode, tuple[int, float, float, float] | None]] = []
    for node in sorted((node for node in fleet.nodes if node.name in series.now), key=lambda node: node.name):
        history = [at for at, point in enumerate(points) if at and node.name in point]
        if not history:
            continue
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # an empty column stays NaN
            newest, *means = (np.nanmean(points[at][node.name], axis=0) for at in (0, *history))
            reference = np.nanmean(means, axis=0)
        jump = newest - reference
        then = np.sum([of_runs[rows[at, node.name]] for at in history], axis=0) / len(history) ** 2
        twice = 1 + 1 / len(history)
        error, degrees = intervals.combined(
            [
                (of_runs[rows[0, node.name]] + then, spread.degrees),
                (jobs_apart.assumed * twice, np.inf),
                (jobs_apart.excess * twice, jobs_apart.degrees),
            ]
        )
        half = intervals.half_width(error, degrees, alpha / 2)
        changed = intervals.outside(jump, half, series.bound)
        changed &= _in_every_run(series.now[node.name], reference, _RUN_SHARE * jump)
        most = int(np.argmax(np.where(changed, np.abs(jump) / series.bound, 0.0)))
        largest = (most, float(jump[most]), float(half[most]), float(reference[most]))
        out.append((node, largest if changed[most] else None))
    return out


def _runs_of(points: Sequence[Mapping[str, Floats]]) -> list[list[int]]:
    """The rows of each node's runs in each campaign, where all are one below the other."""
    edges = np.cumsum([0, *(len(values) for point in points for values in point.values())]).tolist()
    return [list(range(begin, end)) for begin, end in itertools.pairwise(edges)]


def _in_every_run(values: Floats, reference: Floats, least: Floats) -> npt.NDArray[np.bool_]:
    """By column, whether every run (run, column) is as far from the reference as `least`, on its side."""
    with np.errstate(invalid="ignore"):
        each = (values - reference) * np.sign(least) >= np.abs(least)
    return np.asarray(np.all(each | np.isnan(values), axis=0), dtype=np.bool_)
