"""Findings of a node from its jobs: each has the component, the effect, its interval and its tolerance."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import xarray as xr
from msgspec.structs import replace

from nodeprint.data.places.layout import ALL_PAIRS, LEVELS, RANK, codes
from nodeprint.data.places.measured import Key
from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import expected, naming, peer_sensors
from nodeprint.judge.causes import causes
from nodeprint.judge.deviations import Deviations
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.reduction import CLIP, Matrix
from nodeprint.judge.standing import FEW_NODES, evidence, level
from nodeprint.judge.terms import Cause, scoped
from nodeprint.judge.verdict import Component, Evidence, Finding, Finer, Interval, JobEffect
from nodeprint.settings.measurements import terms
from nodeprint.stats import intervals

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: The rank of terms without a kernel: those of pairs, and metrics of tables.
_LAST = 100
#: The smallest relevant differences from the peers: of a clock (share), and of a temperature (degrees Celsius).
_CLOCK_SEEN, _HOTTER_C = 0.02, 8.0
#: A clock explains an effect if it would cause this share of it, assuming that the whole latency scales with it.
_EXPLAINED = 0.5
_CLOCK_CAUSES = ("core-clock", "core-and-fabric-clock", "higher-clock")
#: Possible causes of a finding of pairs, by its term; keys of reports/texts.yaml.
_CAUSES: Mapping[str, tuple[str, ...]] = {
    "node": ("core-and-fabric-clock", "power-limit", "firmware"),
    "socket": ("core-clock", "fabric-clock", "power-limit", "temperature"),
    "class": ("fabric-clock", "nps"),
    "quadrant": ("die-quadrant", "memory-channel-settings"),
    "ccd": ("ccd-port", "core-clock"),
    "link": ("quadrant-path",),
    "ccx": ("core-clock", "l3-clock"),
    "block": ("component-link",),
    "core": ("core-clock", "core", "daemon"),
    "memory-path": ("fabric-clock", "memory-path"),
}


class TableFinding(msgspec.Struct, frozen=True):
    """A finding with its `row` of the table and its `cause`. `key` is its component in canonical numbers, the same on
    every node."""

    row: Deviations
    cause: Cause
    finding: Finding
    key: str

    @property
    def matrix(self) -> Matrix:
        """The matrix of the measurement."""
        return self.row.matrix


def of_row(row: Deviations, node: PackedNode) -> list[TableFinding]:
    """The findings of a `node` from its row in a table. Confirmed and suspected findings come first, then intermittent
    ones in components that none of these explains."""
    alive = row.confirmed | row.suspected
    out = []
    for cause in _causes(row, alive):
        state = Certainty.CONFIRMED if row.confirmed[cause.head] else Certainty.SUSPECTED
        out.append(_table_finding(row, cause, state, node))
    for cause in _causes(row, alive | row.intermittent):
        if not alive[np.concatenate([[cause.head], cause.members, cause.finer])].any():
            out.append(_table_finding(row, cause, Certainty.INTERMITTENT, node))
    return out


def _causes(row: Deviations, components: Bools) -> Sequence[Cause]:
    """The causes of some components, by the jobs that show them."""
    if not components.any():
        return ()
    shown, matrix = np.flatnonzero(components), row.matrix
    estimate = evidence(row, shown)
    residual = np.nan_to_num(matrix.terms.residual(level(row, shown), matrix.template)).astype(np.float64)
    explaining = causes(
        matrix,
        estimate.difference[0],
        error=estimate.error[0],
        natural=np.sqrt(estimate.between[0]),
        half=estimate.half_of_job[0],
        tolerance=row.tolerance,
        found=components,
        confirmed=row.confirmed & components,
        residual=residual,
    )
    return explaining or [_largest(estimate, shown, matrix)]


def _largest(estimate: Deviations, components: npt.NDArray[np.intp], matrix: Matrix) -> Cause:
    """The component with the largest share of its tolerance, so that every deviation has a cause."""
    share = np.abs(np.nan_to_num(estimate.difference[0, components])) / estimate.tolerance[components]
    head = int(components[int(np.argmax(share))])
    term = matrix.terms.terms[head]
    return Cause(term.name, scoped(term.component_type, term.where), np.array([head]), term.covers, head)


def _table_finding(row: Deviations, cause: Cause, state: Certainty, node: PackedNode) -> TableFinding:
    return TableFinding(row, cause, _finding(row, cause, state, node), _key(row.matrix, cause))


def _key(matrix: Matrix, cause: Cause) -> str:
    where = ",".join(f"{label}={value}" for label, value in cause.where.items() if not label.startswith("cpu"))
    return f"{matrix.name} {cause.term} {where or 'all'}"


def _finding(row: Deviations, cause: Cause, state: Certainty, node: PackedNode) -> Finding:
    head, matrix = cause.head, row.matrix
    estimate = evidence(row, head)
    if state in (Certainty.CONFIRMED, Certainty.SUSPECTED) and _contradicted(row.whole, head, row.position):
        state = Certainty.MISMATCH
    usual = _usual(matrix, head)
    effect, half = float(estimate.difference[0, head]), estimate.half_of_job[0]
    relative, low, high = (matrix.terms.relative(effect + side, usual) for side in (0.0, -half[head], half[head]))
    tolerance = matrix.terms.allowed(float(row.tolerance[head]), effect)
    value, peers = (float(of_component[0, head]) for of_component in estimate.in_unit)
    error, degrees = (float(of_component[0, head]) for of_component in estimate.different)
    half_95 = float(intervals.half_width(np.array(error), np.array(degrees), 0.025))
    low_95, high_95 = (matrix.terms.relative(effect + side, usual) for side in (-half_95, half_95))
    model, pairs = matrix.measured.model, matrix.measured.of_pairs
    worse = (effect > 0) == (model.better == "lower")
    whole = Component(cause.term, matrix.terms.terms[head].component_type, naming.place(matrix, cause.where, node))
    of_head = naming.component(matrix, head, node)
    # several classes are one finding, and its effect is of one of them
    is_head = whole.term == of_head.term and (whole.term != "class" or whole.where == of_head.where)
    covers, each = matrix.terms.terms[head].covers, _each_place(row, head, effect)
    return Finding(
        id=_identity(cause.term, effect, model.better, model.scale),
        state=state,
        measurement=matrix.name,
        home=matrix.home,
        component=whole,
        effect=relative,
        effect_unit=value - peers,
        interval=Interval(low, high),
        half_95=(high_95 - low_95) / 2,
        tolerance=tolerance,
        tolerance_unit=tolerance * (value - peers) / relative,
        times_tolerance=abs(relative) / tolerance,
        value=value,
        peers=peers,
        figures_of=None if is_head else of_head,
        unit="share" if matrix.terms.share else matrix.measured.unit,
        worse=worse,
        by_job=tuple(_by_job(row, job, head) for job in range(len(row.rows))),
        finer=_finer(cause, estimate, node),
        pairs=naming.cpu_pairs(matrix, covers, node) if pairs else {},
        cells=() if pairs else naming.cells(matrix, covers, node),
        places=len(each),
        places_beyond=int((np.sign(effect) * each > row.tolerance[head]).sum()),
        consistent_with=_consistent(cause, relative, worse),
        remedy=_remedy(cause.term, cause.where, worse=worse),
        error=error,
        degrees=degrees,
        tail=float(row.tail[head]),
        expected=expected.of_term(matrix, head, float(estimate.means[0, head]) - effect, node),
    )


def _each_place(row: Deviations, component: int, effect: float) -> Floats:
    """The difference at each measured place of a component, on the model's scale. Their mean (of a share the median) is
    the effect of the component, from which its complement and the peers' center are subtracted."""
    terms = row.matrix.terms
    each = terms.residual(level(row, np.array([component])), row.matrix.template)[terms.terms[component].covers]
    each = np.clip(each[np.isfinite(each)], -CLIP, CLIP) if len(terms.layout.pairs) else each[np.isfinite(each)]
    return np.asarray(each - (np.median(each) if terms.share else each.mean()) + effect, dtype=np.float64)


def _contradicted(table: Deviations, component: int, position: int) -> bool:
    """Whether the others of a few nodes disagree in a component, so that the data cannot tell which one is right. It is
    false for a single node, which is compared with its own past."""
    if not 1 < len(table.matrix.nodes) <= FEW_NODES:
        return False
    others = np.delete(table.pooled.means[:, component], position)
    others = others[np.isfinite(others)]
    if len(others) < 2:
        return True
    error = float(table.pooled[[position]].error[0, component])
    return bool(np.ptp(others) > table.tolerance[component] + 3 * error)


def _usual(matrix: Matrix, component: int) -> float:
    """The peers' value for a share of the time, else 0."""
    return float(matrix.levels[component]) if matrix.terms.share else 0.0


def _by_job(node: Deviations, job: int, component: int) -> JobEffect:
    """The effect in one of a node's jobs (its number)."""
    matrix, row = node.matrix, int(node.rows[job])
    estimate = node.mean_of([row])
    difference, half = float(estimate.difference[0, component]), float(estimate.half_of_job[0, component])
    center = float(np.nanmean(matrix.values[row, :, component])) - difference
    usual = _usual(matrix, component)
    low, size, high = (matrix.terms.relative(difference + side, usual) for side in (-half, 0.0, half))
    runs = {
        name: matrix.terms.relative(float(value) - center, usual)
        for name, value in zip(matrix.runs[row], matrix.values[row, :, component], strict=False)
        if np.isfinite(value)
    }
    far = node.runs_far[job, :, component] if len(node.runs_far) else np.zeros(0, dtype=np.bool_)
    shows = bool(node.shows[job, component])
    far_runs = tuple(name for name, is_far in zip(matrix.runs[row], far, strict=False) if is_far)
    showing = far_runs or (tuple(runs) if shows else ())
    return JobEffect(matrix.job(row), size, Interval(low, high), runs, shows, showing)


def _finer(cause: Cause, estimate: Deviations, node: PackedNode) -> tuple[Finer, ...]:
    """The other components that the cause explains, first the largest share of its tolerance."""
    matrix, tolerances, half = estimate.matrix, estimate.tolerance, estimate.half_of_job[0]
    components = np.unique(np.concatenate([cause.members[cause.members != cause.head], cause.finer]))
    share = np.abs(estimate.difference[0, components]) / tolerances[components]
    out = []
    for component in components[np.argsort(-share, kind="stable")].tolist():
        usual = _usual(matrix, component)
        effect = float(estimate.difference[0, component])
        low, size, high = (
            matrix.terms.relative(effect + side, usual) for side in (-half[component], 0.0, half[component])
        )
        tolerance = matrix.terms.allowed(float(tolerances[component]), effect)
        out.append(Finer(matrix.name, naming.component(matrix, component, node), size, Interval(low, high), tolerance))
    return tuple(out)


def _identity(term: str, effect: float, better: str, scale: str) -> str:
    """The ID of the kind of finding, as waivers use it."""
    of_term = terms().get(term)
    if scale == "share" and of_term is not None and of_term.finding:
        return f"{term}-{of_term.finding}"
    slower = (effect > 0) == (better == "lower")
    return f"{term}-{'slow' if slower else 'fast'}"


def _consistent(cause: Cause, effect: float, worse: bool) -> tuple[str, ...]:
    where = cause.where
    if cause.term == "class" and "to_socket" in where:
        return ("socket-link",)
    if (cause.term == "class" and where.get("class") in (0, 1)) or (cause.term == "ccd" and where.get("inside")):
        return ("core-clock", "l3-clock")
    if cause.term == "class" and where.get("class") == ALL_PAIRS:
        return _CAUSES["node"]
    causes = _causes_of("ccd" if _is_port(cause.term, where) else _seen_from(cause.term, where) or cause.term)
    if cause.term == "block" and "ccx" in where:
        causes = ("core-clock", "l3-clock")
    if worse:
        return causes
    return ("higher-clock", *causes[:1]) if effect < 0 else ("settings",)


def _causes_of(term: str) -> tuple[str, ...]:
    of_cells = terms().get(term)
    return _CAUSES.get(term, ()) if of_cells is None else of_cells.causes


def _is_port(term: str, where: Mapping[str, Key]) -> bool:
    """Whether it is the memory bandwidth of a CCD, which has its port to itself."""
    return term == "bandwidth" and "ccd" in where


def _seen_from(term: str, where: Mapping[str, Key]) -> str:
    """The cause of memory that only some CPUs see so: these CPUs or their path. Empty for memory that all of them see
    so, or those of its own NUMA node, whose bandwidth is that of the memory."""
    if "memory-channel" not in _causes_of(term) or where.get("cpu_node") == where.get("memory_node", -1):
        return ""
    if "cpu" in where or "core" in where:
        return "core"
    return "memory-path" if where.keys() & {"cpu_node", "socket", "ccd", "ccx"} else ""


def _remedy(term: str, where: Mapping[str, Key], *, worse: bool) -> str:
    if where.get("class") == ALL_PAIRS:
        return "unlabeled"
    if not worse:
        return "better"
    if _is_port(term, where):
        return "ccd"
    if term == "block" and "ccx" in where:
        return "ccx"
    return _seen_from(term, where) or term


def merged(shown: Sequence[TableFinding]) -> list[TableFinding]:
    """One finding for each cause, confirmed ones first.

    Pairs of several homes and measurements with a common component have one finding, and so have cells at one place.
    The largest share of its tolerance is the finding, and the others are finer.
    """
    out: list[TableFinding] = []
    for state in Certainty:
        of_state = [found for found in shown if found.finding.state is state]
        pairs = [found for found in of_state if found.matrix.measured.of_pairs]
        for found in sorted(pairs, key=lambda found: (-found.finding.times_tolerance, found.key, found.finding.home)):
            first = next((kept for kept in out if _same(kept, found)), None)
            if first is None:
                out.append(found)
            elif first.finding.state is state:
                out[out.index(first)] = _with(first, found)
        out += _by_place([found for found in of_state if not found.matrix.measured.of_pairs])
    cells = [found for found in out if not found.matrix.measured.of_pairs]
    out = [*(found for found in out if found.matrix.measured.of_pairs), *_nested(cells)]
    rank = {state: number for number, state in enumerate(Certainty)}
    return sorted(
        out,
        key=lambda found: (
            rank[found.finding.state],
            not found.finding.worse,
            -found.finding.times_tolerance,
        ),
    )


def _same(shown: TableFinding, second: TableFinding) -> bool:
    """Whether findings of pairs in different matrices have the same component."""
    a, b = shown.matrix, second.matrix
    if a is b or not a.measured.of_pairs or a.terms is not b.terms:
        return False
    return shown.key.partition(" ")[2] == second.key.partition(" ")[2] or bool(
        np.isin(shown.cause.members, second.cause.members).any()
    )


def _by_place(shown: Sequence[TableFinding]) -> list[TableFinding]:
    """One finding for each place with worse values than the peers, and one with better values."""
    ranks = {name: term.rank for name, term in terms().items()}
    out: list[TableFinding] = []
    for found in sorted(
        shown,
        key=lambda found: (ranks.get(found.finding.component.term, _LAST), -found.finding.times_tolerance),
    ):
        at = next((number for number, first in enumerate(out) if _in_one_place(first.finding, found.finding)), None)
        if at is None:
            out.append(found)
        else:
            out[at] = _with(out[at], found)
    return out


def _nested(shown: Sequence[TableFinding]) -> list[TableFinding]:
    """Merge findings of a place with those of wider places around it.

    For example, one slow memory channel affects its NUMA node, and less so the socket and the machine. The wider place
    is the finding if several places inside show as large an effect, or if only the wider one is confirmed.
    """
    certain = list(Certainty).index
    out = list(shown)
    for wide in sorted(shown, key=_width):
        inside = [found for found in out if _explains(found, wide)]
        if not inside:
            continue
        share = max(abs(found.finding.effect) for found in inside) * (1 - _AGREE)
        surer = all(certain(wide.finding.state) < certain(found.finding.state) for found in inside)
        if surer or (len(inside) > 1 and abs(wide.finding.effect) >= share):
            head, explained = wide, inside
        else:
            head = min(inside, key=lambda found: (certain(found.finding.state), -abs(found.finding.effect)))
            explained = [wide]
        gone = {id(found) for found in (head, *explained)}
        out = [
            *(found for found in out if id(found) not in gone),
            functools.reduce(_with, explained, head),
        ]
    return out


#: A place explains the effect in a wider one if that is at most this share larger than its own.
_AGREE = 0.35


def _explains(inner: TableFinding, wide: TableFinding) -> bool:
    """Whether a finding of cells may explain all of the effect in a wider place."""
    a, b = inner.finding, wide.finding
    if a.component.term != b.component.term or a.worse != b.worse or _width(inner) >= _width(wide):
        return False
    return bool(np.isin(_cpus(inner), _cpus(wide)).all()) and abs(b.effect) <= (1 + _AGREE) * abs(a.effect)


def _width(shown: TableFinding) -> tuple[int, int, int]:
    """A sort key for the size of a finding's place: its number of CPUs, then the order of place labels, then the number
    of labels. With equal CPUs, a memory node is narrower than a socket, and all cells come before some of them."""
    narrowest = next((rank for rank, component in enumerate(_PLACES) if component in shown.cause.where), len(_PLACES))
    return len(_cpus(shown)), narrowest, len(shown.cause.where)


def _cpus(shown: TableFinding) -> npt.NDArray[np.int64]:
    """The slots of the CPUs at the place of a finding of cells. For a memory path they are those of its memory node."""
    quantity, where = shown.matrix.measured, shown.cause.where
    layout = quantity.layout
    at_place, ends = np.ones(len(layout.slots), dtype=np.bool_), np.zeros(len(layout.slots), dtype=np.bool_)
    for label, value in where.items():
        kind = quantity.model.labels.get(label, "cpu" if label == "cpu" else "node" if label.endswith("_node") else "")
        if label in layout.levels:
            at_place &= layout.slots[:, layout.levels.index(label)] == value
        elif kind and not (label == "cpu_node" and "memory_node" in where):
            ends |= (np.arange(len(layout.slots)) if kind == "cpu" else layout.numa) == value
    return np.flatnonzero(at_place & ends if ends.any() else at_place)


#: The labels of a place of cells, the narrowest first.
_PLACES = ("core", "memory_node", "cpu_node", "cluster", "ccx", "ccd", "socket")


def _in_one_place(finding: Finding, second: Finding) -> bool:
    """Whether two findings of cells have the same place: they share the narrowest component of either, and no other
    component differs. Memory paths from two NUMA nodes to one memory node are two places."""
    if finding.worse != second.worse:
        return False
    a, b = finding.component.where, second.component.where
    narrowest = next((component for component in _PLACES if component in a or component in b), None)
    if narrowest is None:
        return a == b
    return a.get(narrowest) == b.get(narrowest) and all(
        a[component] == b[component] for component in _PLACES if component in a and component in b
    )


def _with(first: TableFinding, second: TableFinding) -> TableFinding:
    """Add another finding of the same cause to the finer ones of the first."""
    finding = second.finding
    finer = Finer(finding.measurement, finding.component, finding.effect, finding.interval, finding.tolerance)
    return replace(first, finding=replace(first.finding, finer=(*first.finding.finer, finer, *finding.finer)))


def explained(shown: TableFinding, i: int, node: PackedNode, sensors: xr.Dataset, fields: Sequence[str]) -> Finding:
    """Add evidence from instruments to a finding of node `i`. `sensors` are those of its group, and `fields` are the
    fields of the fingerprint with a value unlike its peers'."""
    finding = shown.finding
    ratio = peer_sensors.clock(sensors, i, _slots(shown)) if finding.pairs else None
    seen = [*_instruments(node, peer_sensors.temperature(sensors, i), ratio, pairs=bool(finding.pairs))]
    seen += [Evidence("configuration", True, field=field) for field in fields]
    causes_left = _by_clock(finding.consistent_with, ratio, finding.effect)
    return replace(finding, evidence=tuple(seen), consistent_with=causes_left)


def _instruments(node: PackedNode, usual: float | None, ratio: float | None, *, pairs: bool) -> Iterable[Evidence]:
    if pairs:
        seen = None if ratio is None else abs(ratio - 1) > _CLOCK_SEEN
        yield Evidence("clock", seen, ratio if ratio is not None else float("nan"), 1.0, "1")
    heat = node.sensors.get("temperature_c")
    if heat is None or usual is None:
        yield Evidence("temperature", None)
    else:
        yield Evidence("temperature", heat - usual > _HOTTER_C, heat, usual, "°C")
    for key, kind in (("throttled", "throttling"), ("memory_errors", "memory-errors")):
        count = node.sensors.get(key)
        yield Evidence(kind, None if count is None else bool(count), float("nan") if count is None else float(count))


def _slots(shown: TableFinding) -> list[int]:
    """The slots of the components in a finding; all if it has none."""
    layout = shown.matrix.terms.layout
    for name, value in shown.cause.where.items():
        if name == "core" or name in LEVELS:
            column = RANK if name == "core" else layout.column(name)
            return [int(slot) for slot in np.flatnonzero(codes(layout.slots[:, : column + 1]) == value)]
    return list(range(len(layout.slots)))


def _by_clock(consistent: tuple[str, ...], ratio: float | None, effect: float) -> tuple[str, ...]:
    """The possible causes after the clock probe. The core clock is the only one if it explains the effect, excluded if
    it matches the peers, else first."""
    others = tuple(key for key in consistent if key not in _CLOCK_CAUSES)
    if ratio is None or others == consistent:
        return consistent
    if abs(ratio - 1) <= _CLOCK_SEEN:
        return others
    share = (1 / ratio - 1) / effect if effect else 0.0
    return ("core-clock",) if share >= _EXPLAINED else ("core-clock", *others) if share > 0 else others
