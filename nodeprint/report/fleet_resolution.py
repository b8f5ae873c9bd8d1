"""What the data of a fleet resolves: bounds, margins, detection limits, spreads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodeprint.fleet.quantity import cell_models
from nodeprint.report import formatting
from nodeprint.report.pages import (
    Block,
    FactList,
    Facts,
    Section,
    Table,
    Text,
)
from nodeprint.words import places
from nodeprint.words.outcome import MOST_DETECTED


def statistics(verdict: Mapping[str, Any]) -> Section:
    """The spreads behind the verdict, for the method page."""
    table = _statistics(verdict.get("fleet") or {})
    return Section("Statistics", (Text(_STATISTICS, True), table) if table.rows else ())


def resolved(of_fleet: Mapping[str, Any]) -> tuple[Block, ...]:
    table, trust = _certainty(of_fleet), _trust(of_fleet)
    return (Text(_EXPLAINED, True) if table.rows else Text(""), table, FactList(trust))


#: What the columns of certainty mean.
_EXPLAINED = (
    "A difference beyond the bound matters (acceptance.yaml). 'SAME within' is the smallest bound at which all nodes "
    "that are SAME would remain SAME: the 90 % interval of each of their differences lies within it. The detection "
    "limit is the smallest defect that would be found on nine of ten nodes."
)


#: And those of the statistics behind them.
_STATISTICS = (
    "Spreads are standard deviations: between nodes, of the chips alone, between runs. A deviation is at least z "
    "standard deviations from the peers; few degrees of freedom (d.f.) mean heavy tails: some healthy nodes are far "
    "from the others."
)


#: Columns of spread as the verdict names them: between nodes, of the chips alone, between runs; the threshold in
#: scales, and the degrees of freedom of the tail.
_SPREADS = {"total": "nodes", "chip": "chips", "run": "runs", "z": "z", "tail_df": "tail, d.f."}


def _certainty(fleet: Mapping[str, Any]) -> Table:
    """What the fleet's data resolves, a row for each term that was tested."""
    return _of_terms({
        "bound": _by_term({**_margin_bounds(fleet.get("margins")), **(fleet.get("bound") or {})}, formatting.percent),
        "SAME within": _by_term(_margins(fleet.get("margins")), formatting.percent),
        "detection limit": _by_term(fleet.get("smallest_effect"), _detected),
    })  # fmt: skip


def _detected(limit: float) -> str:
    """A detection limit; one beyond MOST_DETECTED says nothing of a node."""
    return formatting.percent(limit) if limit <= MOST_DETECTED else "cannot be detected with this data"


def _statistics(fleet: Mapping[str, Any]) -> Table:
    """The spreads that were estimated, a row per family of terms."""
    spread = fleet.get("spread")
    levels = spread if isinstance(spread, Mapping) else {}
    columns = {}
    for key, name in _SPREADS.items():
        written = (lambda value: f"{value:.3g}") if key in ("z", "tail_df") else formatting.percent
        given = {term: of.get(key) for term, of in levels.items() if isinstance(of, Mapping)}
        columns[f"spread: {name}" if written is formatting.percent else name] = _by_term(given, written)
    return _of_terms(columns)


def _of_terms(columns: Mapping[str, Mapping[str, str]]) -> Table:
    """Columns by term as a table, in the order in which terms are tested."""
    known = {name: column for name, column in columns.items() if column}
    tested = {term for column in known.values() for term in column}
    terms = [*(term for term in places.TESTED if term in tested), *sorted(tested - set(places.TESTED))]
    rows = ((places.TESTED.get(term, term), *(column.get(term, "") for column in known.values())) for term in terms)
    return Table(("term", *known), tuple(rows), align="l" + "r" * len(known), dense=True) if terms else Table((), ())


def _margins(margins: Any) -> dict[str, float]:
    """The widest margin by term; other measurements than pairs have that of their model."""
    known, out = cell_models(), dict[str, float]()
    for name, one in margins.items() if isinstance(margins, Mapping) else ():
        within = formatting.number(one.get("within")) if isinstance(one, Mapping) else None
        if within is not None:
            measurement = str(name).partition(": ")[0]
            term = known[measurement].term if measurement in known else measurement
            out[term] = max(within, out.get(term, 0.0))
    return out


def _margin_bounds(margins: Any) -> dict[str, float]:
    """The bounds of measurements that are no hops, such as LinkTest's, which the margins alone have."""
    known, out = cell_models(), dict[str, float]()
    for name, one in margins.items() if isinstance(margins, Mapping) else ():
        measurement, apart, _ = str(name).partition(": ")
        bound = formatting.number(one.get("bound")) if isinstance(one, Mapping) else None
        if apart and measurement not in known and bound is not None:
            out[measurement] = min(bound, out.get(measurement, bound))
    return out


def _by_term(values: Any, written: Callable[[float], str]) -> dict[str, str]:
    """The numbers of an object in words."""
    items = values.items() if isinstance(values, Mapping) else ()
    return {str(term): written(number) for term, value in items if (number := formatting.number(value)) is not None}


def _trust(fleet: Mapping[str, Any]) -> Facts:
    """The number of tests, the expected false alarms, and what was not tested."""
    rows = []
    if formatting.number(fleet.get("tests")):
        rows.append(("tests made", formatting.thousands(fleet["tests"])))
    expected = formatting.number(fleet.get("expected_false_accusations"))
    if expected:
        rows.append(("expected false alarms", f"{expected:.3g}"))
    smallest = fleet.get("smallest_effect")
    untested = [term for term, value in smallest.items() if value is None] if isinstance(smallest, Mapping) else []
    if untested:
        rows.append(("not tested", ", ".join(places.TESTED.get(str(term), str(term)) for term in untested)))
    return tuple(rows)
