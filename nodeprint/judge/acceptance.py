"""What a site accepts: its file, completed by the defaults, which is kept in the campaign that is judged by it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

from msgspec import UNSET
from msgspec.structs import replace

from nodeprint import files
from nodeprint.data.places.measured import Measured, is_metric
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError, nearest, printable
from nodeprint.judge.acceptance_file import Acceptance, ContractLimit, Metric, MetricPrior, PairClass
from nodeprint.settings import checked_yaml, former_keys
from nodeprint.settings.measurements import measurements
from nodeprint.settings.texts import say

#: What a campaign is judged by, in its folder.
_KEPT = "acceptance.yaml"


def load(path: Path | None = None) -> Acceptance:
    """Read an acceptance file; keys that it leaves out, or all without `path`, have the defaults.

    Raises NodeprintError naming the key's path.
    """
    return Acceptance() if path is None else _checked(checked_yaml.read(path), path)


def rules_of(campaign: Path) -> Acceptance:
    """The rules that a campaign is judged by: its copy of the site's file, or the defaults.

    A former version of nodeprint may have written the copy, so keys that were renamed since have their new names.
    Raises NodeprintError naming the key's path.
    """
    path = kept(campaign)
    if path is None:
        return Acceptance()
    content = former_keys.with_new_names(checked_yaml.read(path), Acceptance.__struct_fields__)
    metrics = content.get("metrics")
    if isinstance(metrics, dict):
        fields = Metric.__struct_fields__
        named = {
            name: former_keys.with_new_names(metric, fields) if isinstance(metric, dict) else metric
            for name, metric in metrics.items()
        }
        content["metrics"] = named
    return _checked(content, path)


def _checked(content: dict[str, Any], path: Path) -> Acceptance:
    """The rules of a file's content, completed by the defaults."""
    rules = checked_yaml.typed(content, Acceptance, path)
    for number, limit in enumerate(rules.limits):
        key = f"limits[{number}]"
        ends = [limit.at_least is not UNSET, limit.at_least_percent is not UNSET]
        if limit.at_most is UNSET and not any(ends):
            raise NodeprintError("at_most or at_least is missing", where=path, key=key, advice="write one of them")
        if all(ends):
            raise NodeprintError("at_least is given twice", where=path, key=key, advice="leave one of them out")
        if (limit.class_ is UNSET) == (limit.row is UNSET):
            what = "class or row is missing" if limit.row is UNSET else "class and row are both given"
            raise NodeprintError(what, where=path, key=key, advice="write one of them")
    for number, repair in enumerate(rules.repairs):
        if repair.moment.year == 1:
            what = f"no day of the calendar: {repair.at}"
            raise NodeprintError(what, where=path, key=f"repairs[{number}].at", advice="write it as 2026-11-28")
    return replace(rules, cells={**Acceptance().cells, **rules.cells})


def of_surveys(rules: Acceptance, fleet: PackedFleet) -> Acceptance:
    """The rules for a fleet with what its surveys say: where each measured node's says that boost is off, tolerances
    are those without it. Boost moves a node under load by more than anything else that is no defect."""
    measured = [node for node in fleet.nodes if node.state == "measured"]
    if not measured or any(node.fingerprint.get("boost") is not False for node in measured):
        return rules
    cells = {
        term: cell if cell.percent_without_boost is UNSET else replace(cell, percent=cell.percent_without_boost)
        for term, cell in rules.cells.items()
    }
    return replace(rules, cells=cells)


def of_metrics(rules: Acceptance, fleet: PackedFleet) -> Acceptance:
    """The rules for a fleet whose figures are metrics of a table: each with what is accepted of it, and those that
    decide; `rules` as they are for any other fleet. Raises NodeprintError where no metric of it decides."""
    metrics = {
        q.measurement: rules.metrics.get(q.measurement) or rules.metrics.get(q.operation) or _usual(q.unit, rules)
        for q in _metrics(fleet)
    }
    if not metrics:
        return rules
    criteria = tuple(name for name, metric in metrics.items() if metric.criterion)
    if not criteria:
        advice = "leave `criterion: false` out of one of them"
        raise NodeprintError("no metric of the table decides", key="metrics", advice=advice)
    return replace(rules, metrics={**rules.metrics, **metrics}, criteria=criteria)


def _metrics(fleet: PackedFleet) -> list[Measured]:
    return [quantity for quantity in fleet.quantities if is_metric(quantity.measurement)]


def _usual(unit: str, rules: Acceptance) -> Metric:
    """What is accepted of a metric that has no rule: of a clock what is accepted of clocks."""
    if not unit.lower().endswith("hz"):
        return Metric()
    clock = rules.cell("clock")
    return Metric(clock.percent, prior=MetricPrior(clock.run, 100 * clock.job_sd))


def check_limits(path: Path, planned: Collection[str]) -> None:
    """See that each limit of an acceptance file is of a figure that a node may have where `planned` is measured. (Which
    rows a node has is known when it is measured: then a limit of no row keeps a fleet from being UNIFORM.)

    Raises NodeprintError naming the limit's key.
    """
    for number, limit in enumerate(load(path).limits):
        if refusal := _without_figure(limit, planned, path, f"limits[{number}]"):
            raise refusal


def _without_figure(limit: ContractLimit, planned: Collection[str], path: Path, key: str) -> NodeprintError | None:
    """Why no node can have the figure of a limit, and what to do; None where one may have it."""
    refuses = partial(NodeprintError, where=path, key=key)
    measurement = measurements()[limit.measurement]
    model = measurement.model
    labels = () if model is None else model.rows
    if measurement.scope != "node":
        problem = f"{limit.measurement} is measured between nodes, and limits are of a node"
        return refuses(problem, advice="leave the limit out")
    if limit.measurement not in planned:
        advice = "add it to `measure` of the configuration, or leave the limit out"
        return refuses(f"{limit.measurement} is not measured", advice=advice)
    if model is not None and model.places == "pairs":
        classes = get_args(PairClass)
        wrong, advice = limit.figure not in classes, f"its classes are {', '.join(classes)}"
    else:
        # `nodeprint.judge.figures.of_rows` makes the names
        components = [component for component in limit.figure.split(", ") if not component.startswith("mean of homes ")]
        wrong = len(components) > len(labels) if labels else components != ["all"]
        advice = f"its rows are named by {', '.join(labels)} as verdict.json has them" if labels else "its row is `all`"
    problem = f"{limit.measurement} has no figure {printable(limit.figure, 60)!r}"
    return refuses(problem, advice=advice) if wrong else None


def keep(path: Path, campaign: Path) -> Path:
    """Write the file `path`, completed by the defaults, into the folder `campaign`, whose verdict then follows from it.

    A copy that says the same already is left alone, so that nothing is judged again for it. Returns the copy's path.
    Raises NodeprintError naming the key's path, or where it cannot be written.
    """
    return keep_rules(load(path), campaign)


def keep_rules(rules: Acceptance, campaign: Path) -> Path:
    """Write rules as `keep` does those of a file."""
    kept, text = campaign / _KEPT, text_of(rules)
    if not kept.is_file() or kept.read_bytes() != text.encode():
        files.write(kept, text)
    return kept


def kept(campaign: Path) -> Path | None:
    """The file that a campaign is judged by; None where that is the defaults."""
    path = campaign / _KEPT
    return path if path.exists() else None


def name(path: Path | None) -> str:
    """What an acceptance is called in verdict.json and the report: the file and the SHA-256 of what it says, completed
    by the defaults (of a campaign's copy that of the file itself)."""
    return name_of(load(path), f"{_KEPT} of the campaign" if path is not None else "the defaults")


def name_of(rules: Acceptance, called: str) -> str:
    """What rules are called in verdict.json and the report."""
    return f"{called}, SHA-256 {hashlib.sha256(text_of(rules).encode()).hexdigest()}"


def with_options(
    rules: Acceptance, metrics: Collection[str], tolerances: Sequence[str], better: Sequence[str]
) -> Acceptance:
    """The rules with what a call says of the `metrics` of a table: `tolerances` as `5` (of all) or `triad=3`, in
    percent, and `better` as `higher`, `lower` or `triad=higher`. Raises NodeprintError naming the option."""
    out = dict(rules.metrics)
    for text in _each_once(tolerances, "--tolerance"):
        for metric, value in _for_metrics(text, metrics, "--tolerance"):
            try:
                percent = float(value)
            except ValueError:
                percent = 0.0
            if not 0 < percent <= 100:
                what = f"{printable(repr(value), 40)} is no tolerance"
                raise NodeprintError(what, key="--tolerance", advice="give percent, as in 5 or triad=3")
            out[metric] = replace(out.get(metric, Metric()), tolerance=percent)
    for text in _each_once(better, "--better"):
        for metric, value in _for_metrics(text, metrics, "--better"):
            if value not in ("higher", "lower"):
                what = f"{printable(repr(value), 40)} is no side"
                raise NodeprintError(
                    what, key="--better", advice="give higher, lower, or a metric with it: latency=lower"
                )
            out[metric] = replace(out.get(metric, Metric()), better=value)
    return replace(rules, metrics=out)


def _each_once(texts: Sequence[str], option: str) -> list[str]:
    """The values of an option, that of all metrics first, as one that names a metric says more of it. Raises
    NodeprintError where two are of the same."""
    of = [text.rpartition("=")[0] for text in texts]
    for name in of:
        if of.count(name) > 1:
            what = f"is given twice of {printable(name, 60) or 'all metrics'}"
            raise NodeprintError(what, key=option, advice="leave one out")
    return sorted(texts, key=lambda text: "=" in text)


def _for_metrics(text: str, metrics: Collection[str], option: str) -> list[tuple[str, str]]:
    """The metrics that an option is of, all where it names none, each with the value."""
    name, equals, value = text.rpartition("=")
    if not equals:
        return [(metric, text.strip()) for metric in metrics]
    if name not in metrics:
        advice = nearest(name, metrics) or f"its metrics are {', '.join(printable(m, 40) for m in list(metrics)[:8])}"
        raise NodeprintError(f"the table has no metric {printable(name, 60)}", key=option, advice=advice)
    return [(name, value.strip())]


def text_of(rules: Acceptance) -> str:
    """The file that rules are kept as, completed by the defaults."""
    return f"# {say('acceptance_head')}\n{checked_yaml.text(rules)}"
