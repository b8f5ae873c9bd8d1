"""A fleet's results as a file of a few kilobytes, without names of nodes, hosts or sites.

Others compare a single node with it. The comparison is not a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
import pandas as pd

from nodeprint import __version__, files
from nodeprint.errors import NodeprintError, printable, unreadable
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.verdict import NodeVerdict, Verdict
from nodeprint.stats.robust import robust_sd
from nodeprint.summary.node_summary import NodeSummary, ProcessorFacts, processor_key, rounded

SCHEMA = 1
#: A center and a spread are of this many nodes at least: of fewer they are of single machines.
FEWEST = 5
#: From this many standard deviations of nodes on a figure is not as the fleet's, where it is beyond the tolerance, too:
#: so far is one in 370 normal ones.
_FAR = 3.0


class FleetFigure(msgspec.Struct, frozen=True):
    """A class of pairs or a row of a measurement in a fleet: the median over its `nodes` in `unit`.

    The robust standard deviation of nodes and that of a node's runs (0 if no node has two) are relative to it. The
    tolerance is the one that the fleet was judged by.
    """

    measurement: str
    name: str
    unit: str
    home: int
    nodes: int
    median: float
    nodes_sd: float
    runs_sd: float
    tolerance: float


class FleetReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The figures of a fleet of one processor (empty where a table does not say it), and what wrote them."""

    processor: str
    program: str
    simulated: bool
    figures: tuple[FleetFigure, ...]
    schema: int = SCHEMA


#: A figure of a node: measurement, name, home.
_Key = tuple[str, str, int]


def of_fleet(verdict: Verdict, rules: Acceptance) -> FleetReference:
    """The reference of a judged campaign or table, from its nodes in which nothing was found.

    Raises NodeprintError where these are of several processors, or fewer than FEWEST.
    """
    calm = [node for node in verdict.nodes.values() if (node.classes or node.cells) and not node.findings]
    processors = {str(node.fingerprint.get("cpu") or "") for node in calm}
    if len(processors) > 1:
        named = ", ".join(sorted(printable(name, 40) or "one that is unknown" for name in processors))
        raise NodeprintError(f"its nodes have several processors ({named})", where=verdict.campaign, advice=_ONE_KIND)
    if len(calm) < FEWEST:
        too_few = f"in {len(calm)} of its nodes nothing was found, and a fleet has {FEWEST} such"
        raise NodeprintError(too_few, where=verdict.campaign, advice="measure more nodes, or judge what is there")
    values: dict[_Key, list[float]] = {}
    runs: dict[_Key, list[float]] = {}
    units: dict[_Key, str] = {}
    for node in calm:
        for place, unit, value, run_sd in _of_node(node):
            values.setdefault(place, []).append(value)
            runs.setdefault(place, []).append(run_sd)
            units[place] = unit
    tolerances = {agreement.measurement: agreement.tolerance for node in calm for agreement in node.agreements}
    figures = tuple(
        _figure(
            place, units[place], values[place], runs[place], tolerances.get(place[0], rules.cell("other").tolerance)
        )
        for place in sorted(values)
        if len(values[place]) >= FEWEST
    )
    if not figures:
        raise NodeprintError(f"no figure is of {FEWEST} nodes", where=verdict.campaign, advice="measure all alike")
    return FleetReference(processors.pop(), f"nodeprint {__version__}", verdict.simulated, figures)


_ONE_KIND = "export a campaign of one kind of node"


def _of_node(node: NodeVerdict) -> Iterable[tuple[_Key, str, float, float]]:
    """The figures of a node with unit, value and relative standard deviation of its runs."""
    for of in node.classes:
        for name, value in of.medians.items():
            yield (of.measurement, name, of.home), "ns", value, of.run_sd_ns / of.median_ns
    for row in node.cells:
        if row.unit != "share":
            yield (row.measurement, row.name, -1), row.unit, row.median, row.run_sd / row.median if row.median else 0.0


def _figure(place: _Key, unit: str, values: list[float], runs: list[float], tolerance: float) -> FleetFigure:
    middle = median(values)
    known = [sd for sd in runs if math.isfinite(sd)]
    spread = robust_sd(np.array(values) / middle - 1)
    return FleetFigure(
        place[0],
        place[1],
        unit,
        place[2],
        len(values),
        rounded(middle),
        rounded(spread),
        rounded(median(known)) if known else 0.0,
        rounded(tolerance),
    )


def write(reference: FleetReference, path: Path) -> Path:
    """Write a reference as JSON."""
    return files.write(path, msgspec.json.format(msgspec.json.encode(reference), indent=1) + b"\n")


def read(path: Path) -> FleetReference:
    """A reference that was exported. Raises NodeprintError where it is none."""
    advice = "name a file of `nodeprint baseline export`"
    try:
        reference = msgspec.json.decode(path.read_bytes(), type=FleetReference)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        what = f"is no figures of a fleet ({printable(str(error), 100)})"
        raise NodeprintError(what, where=path, advice=advice) from error
    if reference.schema != SCHEMA or any(not figure.median > 0 for figure in reference.figures):
        raise NodeprintError("is of another version of nodeprint, or was changed", where=path, advice=advice)
    return reference


def of_summary(summary: NodeSummary) -> dict[_Key, float]:
    """The figures of a summary by measurement, name and home."""
    out: dict[_Key, float] = {}
    for figure in summary.figures:
        named = {f"{figure.name}, {group}": value for group, value in figure.groups.items()} or {
            figure.name: figure.median
        }
        out |= {(figure.measurement, name, figure.home): value for name, value in named.items()}
    return out


def of_verdict(node: NodeVerdict) -> dict[_Key, float]:
    """The figures of a judged node by measurement, name and home."""
    return {place: value for place, _, value, _ in _of_node(node)}


def beside(reference: FleetReference, processor: str, values: Mapping[_Key, float]) -> pd.DataFrame:
    """The results of a fleet, a row each with the `value` of a node; no rows if its processor is another.

    `effect` is the relative difference, and `deviations` the difference in standard deviations of nodes. `alike` is
    true within the tolerance, or within the differences between nodes of the fleet.
    """
    rows = [msgspec.structs.asdict(figure) for figure in reference.figures]
    table: pd.DataFrame = pd.DataFrame(rows, columns=FleetFigure.__struct_fields__)
    if reference.processor and processor and processor_key(reference.processor) != processor_key(processor):
        return table.iloc[:0]
    keys = table[["measurement", "name", "home"]].itertuples(index=False, name=None)
    table["value"] = [values.get(key, math.nan) for key in keys]
    table = table.loc[np.isfinite(table["value"])].reset_index(drop=True)
    table["effect"] = table["value"] / table["median"] - 1
    spread = table["nodes_sd"].clip(lower=1e-6)
    table["deviations"] = table["effect"].abs() / spread
    table["alike"] = table["effect"].abs() <= np.maximum(table["tolerance"], _FAR * spread)
    return table


def processor_of(node: NodeVerdict) -> ProcessorFacts:
    """The processor name of a judged node."""
    return ProcessorFacts(str(node.fingerprint.get("cpu") or ""))
