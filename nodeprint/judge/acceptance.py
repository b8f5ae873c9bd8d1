"""The acceptance file of a site, completed by the defaults. A campaign keeps a copy of the file that judges it."""

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
from nodeprint.settings.config_file import site_measurements
from nodeprint.settings.measurements import measurements
from nodeprint.settings.texts import say

#: The acceptance file of a campaign, in its directory.
_KEPT = "acceptance.yaml"


def load(path: Path | None = None) -> Acceptance:
    """Read an acceptance file. Missing keys have the defaults; without `path`, all keys do.

    Raises NodeprintError with the path of the key.
    """
    return Acceptance() if path is None else _checked(checked_yaml.read(path), path)


def rules_of(campaign: Path) -> Acceptance:
    """The rules of a campaign: its copy of the site's file, or the defaults.

    An earlier version of nodeprint may have written the copy, so renamed keys get their new names. Raises
    NodeprintError with the path of the key.
    """
    path = kept(campaign)
    if path is None:
        return with_site_measurements(Acceptance(), campaign)
    content = former_keys.with_new_names(checked_yaml.read(path), Acceptance.__struct_fields__)
    metrics = content.get("metrics")
    if isinstance(metrics, dict):
        fields = Metric.__struct_fields__
        named = {
            name: former_keys.with_new_names(metric, fields) if isinstance(metric, dict) else metric
            for name, metric in metrics.items()
        }
        content["metrics"] = named
    return with_site_measurements(_checked(content, path), campaign)


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
    """Replace tolerances by those without boost if the surveys of all measured nodes report that boost is off. Under
    load, boost changes a healthy node more than anything else."""
    measured = [node for node in fleet.nodes if node.state == "measured"]
    if not measured or any(node.fingerprint.get("boost") is not False for node in measured):
        return rules
    cells = {
        term: cell if cell.percent_without_boost is UNSET else replace(cell, percent=cell.percent_without_boost)
        for term, cell in rules.cells.items()
    }
    return replace(rules, cells=cells)


def of_metrics(rules: Acceptance, fleet: PackedFleet) -> Acceptance:
    """Add the rules of each metric of a table or of a site's own command, and its deciding metrics.

    A table has no other ones. For any other fleet, return `rules` unchanged. Raises NodeprintError if none decides.
    """
    metrics = {
        q.measurement: next(
            (rules.metrics[name] for name in names_of(q) if name in rules.metrics), _usual(q.unit, rules)
        )
        for q in _metrics(fleet)
    }
    if not metrics:
        of_pairs = tuple(fabric.measurement for fabric in fleet.fabrics)
        return replace(rules, criteria=of_pairs) if of_pairs else rules
    others = rules.criteria if len(metrics) < len(fleet.quantities) else ()
    criteria = (*others, *(name for name, metric in metrics.items() if metric.criterion))
    if not criteria:
        advice = "leave `criterion: false` out of one of them"
        raise NodeprintError("no metric of the table decides", key="metrics", advice=advice)
    return replace(rules, metrics={**rules.metrics, **metrics}, criteria=criteria)


def with_site_measurements(rules: Acceptance, campaign: Path) -> Acceptance:
    """Add the tolerances of the site's own commands in a campaign, by their names; those of `rules` precede."""
    own = {of.name: Metric(of.tolerance) for of in site_measurements(campaign)}
    return replace(rules, metrics={**own, **rules.metrics}) if own else rules


def names_of(metric: Measured) -> tuple[str, str, str]:
    """The names that rules of a metric may have: its own, that of its reader, or that of the site's measurement."""
    return metric.measurement, metric.operation, metric.measurement.partition("/")[0]


def _metrics(fleet: PackedFleet) -> list[Measured]:
    return [quantity for quantity in fleet.quantities if is_metric(quantity.measurement)]


def _usual(unit: str, rules: Acceptance) -> Metric:
    """The default rules of a metric, by its unit. A clock has the tolerance and priors of clocks."""
    if not unit.lower().endswith("hz"):
        return Metric()
    clock = rules.cell("clock")
    return Metric(clock.percent, prior=MetricPrior(clock.run, 100 * clock.job_sd))


def check_limits(path: Path, planned: Collection[str]) -> None:
    """Check that nodes can have the value of each contract limit if `planned` is measured.

    The rows of a node are known only after the measurement. A limit that matches no row then prevents a UNIFORM fleet.
    Raises NodeprintError with the key of the limit.
    """
    for number, limit in enumerate(load(path).limits):
        if refusal := _without_figure(limit, planned, path, f"limits[{number}]"):
            raise refusal


def _without_figure(limit: ContractLimit, planned: Collection[str], path: Path, key: str) -> NodeprintError | None:
    """The error if no node can have the value of a limit; None if a node may have it."""
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
    """Write the file `path`, completed by the defaults, into the campaign directory. The verdict then follows from this
    copy.

    An equal copy is not rewritten, so nothing is judged again. Returns the path of the copy. Raises NodeprintError with
    the path of the key, or if the copy cannot be written.
    """
    return keep_rules(with_site_measurements(load(path), campaign), campaign)


def keep_rules(rules: Acceptance, campaign: Path) -> Path:
    """Write rules as `keep` writes those of a file."""
    kept, text = campaign / _KEPT, text_of(rules)
    if not kept.is_file() or kept.read_bytes() != text.encode():
        files.write(kept, text)
    return kept


def kept(campaign: Path) -> Path | None:
    """The acceptance file of a campaign; None if the defaults apply."""
    path = campaign / _KEPT
    return path if path.exists() else None


def name(path: Path | None) -> str:
    """The label of an acceptance file in verdict.json and the report. It contains the SHA-256 of the rules, completed
    by the defaults. A campaign's copy has the same SHA-256."""
    return name_of(load(path), f"{_KEPT} of the campaign" if path is not None else "the defaults")


def name_of(rules: Acceptance, called: str) -> str:
    """The label of rules in verdict.json and the report."""
    return f"{called}, SHA-256 {hashlib.sha256(text_of(rules).encode()).hexdigest()}"


def with_options(
    rules: Acceptance, metrics: Collection[str], tolerances: Sequence[str], better: Sequence[str]
) -> Acceptance:
    """Apply the command-line options for the `metrics` of a table.

    `tolerances` are percent, such as `5` (all metrics) or `triad=3`. `better` is `higher`, `lower` or, for one metric,
    `triad=higher`. Raises NodeprintError with the name of the option.
    """
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
    """The values of an option, first the value for all metrics, as a value for one metric overrides it. Raises
    NodeprintError if two values are for the same metric."""
    of = [text.rpartition("=")[0] for text in texts]
    for name in of:
        if of.count(name) > 1:
            what = f"is given twice of {printable(name, 60) or 'all metrics'}"
            raise NodeprintError(what, key=option, advice="leave one out")
    return sorted(texts, key=lambda text: "=" in text)


def _for_metrics(text: str, metrics: Collection[str], option: str) -> list[tuple[str, str]]:
    """The metrics of an option, each with the value; all metrics if the option names none."""
    name, equals, value = text.rpartition("=")
    if not equals:
        return [(metric, text.strip()) for metric in metrics]
    if name not in metrics:
        advice = nearest(name, metrics) or f"its metrics are {', '.join(printable(m, 40) for m in list(metrics)[:8])}"
        raise NodeprintError(f"the table has no metric {printable(name, 60)}", key=option, advice=advice)
    return [(name, value.strip())]


def text_of(rules: Acceptance) -> str:
    """The text of the file for these rules, completed by the defaults."""
    return f"# {say('acceptance_head')}\n{checked_yaml.text(rules)}"
