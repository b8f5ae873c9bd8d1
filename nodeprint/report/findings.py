"""The findings of a node: the verdict's sentence, its figures as facts, and a picture of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from nodeprint import captions
from nodeprint.fleet import homes
from nodeprint.fleet.quantity import cell_models
from nodeprint.judge.terms import FAMILIES
from nodeprint.order_statistics import finite_median
from nodeprint.report import formatting, plots
from nodeprint.report.against import core_strip
from nodeprint.report.old_figures import Figure
from nodeprint.report.pages import FindingBlock
from nodeprint.report.peers import Peers, Place, places_and_values
from nodeprint.report.shown import DrawnMatrix, Shown
from nodeprint.topology.model import Topology
from nodeprint.words import places
from nodeprint.words.names import name_list

#: Terms of pairs; the others are of cells.
_OF_PAIRS = {"node", "socket", "spread", *(family.term for family in FAMILIES.values())}
#: The beginning of evidence that the node does not provide.
_NOT_KNOWN = "not known: "
#: A strip shows at most so many places.
_MOST_PLACES = 512


def findings(
    said: Mapping[str, Any], node: str, shown: Shown, peers: Peers, bounds: Mapping[str, Any]
) -> list[FindingBlock]:
    """The findings of a node, each with its figure; what is unknown for all of them is listed with the last.

    `bounds` are the fleet's, by term, as shares.
    """
    group, text = str(said.get("group") or ""), str(said.get("text", ""))
    items = said.get("findings", ())
    found = [
        replace(_finding(item, text), figures=_pictures(item, i, node, group, shown, peers, bounds))
        for i, item in enumerate(items)
    ]
    unknown = {dict(one.facts).get("not known") for one in found}
    if len(unknown) > 1:
        return found
    return [replace(one, facts=tuple(f for f in one.facts if f[0] != "not known")) for one in found[:-1]] + found[-1:]


def _finding(item: Mapping[str, Any], said: str) -> FindingBlock:
    """A finding; its sentence is left out where the node's own, `said`, begins with it."""
    rows = []
    if item.get("measurement"):
        home = formatting.number(item.get("home"))
        where = homes.named(homes.NEAR if home is None else home)
        rows.append(("seen in", ", ".join(filter(None, (str(item["measurement"]), where)))))
    if effect := _effect(item):
        rows.append(("effect", effect))
    if item.get("runs"):
        rows.append(("runs that show it", name_list([str(run) for run in item["runs"]])))
    told = item.get("evidence")
    evidence = [str(one) for one in told] if isinstance(told, list) else []
    known = {"evidence": [one for one in evidence if not one.startswith(_NOT_KNOWN)]}
    known["not known"] = [one.removeprefix(_NOT_KNOWN) for one in evidence if one.startswith(_NOT_KNOWN)]
    for key in ("consistent_with", "evidence", "not known", "remedy", "suppressed"):
        value = known.get(key, item.get(key))
        if value:
            rows.append((key.replace("_", " "), formatting.sentence(value)))
    text = str(item.get("text", ""))
    return FindingBlock(title(item), text if not said.startswith(text) else "", tuple(rows))


def _effect(item: Mapping[str, Any]) -> str:
    """The size of a finding with its interval; empty where it has a place and no size."""
    shift, share = formatting.number(item.get("effect_ns")), formatting.number(item.get("effect"))
    if item.get("term") == "spread" or (shift is None and share is None):
        return ""
    in_ns = f"{shift:+.1f} ns" if shift is not None else ""
    if shift is not None and abs(shift) >= 1e3:
        in_ns = f"{'+' if shift > 0 else '-'}{formatting.with_unit(abs(shift), 'ns')}"
    effect = ", ".join(filter(None, (formatting.percent(share, True), in_ns)))
    interval = item.get("interval")
    if isinstance(interval, list) and len(interval) == 2 and interval[0] != interval[1]:  # a limit has none
        effect += f" (95 % interval {' to '.join(formatting.percent(end, True) for end in interval)})"
    return effect


def title(item: Mapping[str, Any]) -> str:
    """What deviates, in the verdict's words; as it comes where the verdict is of another version."""
    term, where = str(item.get("term", "")), item.get("where") or {}
    try:
        return places.spoken(term, where) if term in _OF_PAIRS else f"{term}: {places.of_labels(where)}"
    except (AttributeError, KeyError, IndexError, TypeError):
        return " ".join(filter(None, (term, formatting.sentence(where)))) or str(item.get("id", "finding"))


# --- a picture of each ---


def _pictures(
    item: Mapping[str, Any], number: int, node: str, group: str, shown: Shown, peers: Peers, bounds: Mapping[str, Any]
) -> tuple[Figure, ...]:
    where = item.get("where")
    if not isinstance(where, Mapping):
        return ()
    bound = formatting.number(bounds.get(str(item.get("term"))))
    name = f"finding-{number + 1}"
    if item.get("measurement") in cell_models():
        found = _of_cells(item, where, name, bound, node, group, shown, peers)
    else:
        found = _of_cores(item, where, name, bound, node, group, shown, peers)
    return (found,) if found is not None else ()


def _of_cores(
    item: Mapping[str, Any], where: Mapping[str, Any], name: str, bound: float | None, node: str, group: str,
    shown: Shown, peers: Peers,
) -> Figure | None:  # fmt: skip
    """A CPU's pairs against its peers' same pairs, a dot a CPU."""
    one = _matrix_of(item, shown)
    template = peers.template(node, group, shown, one) if one is not None else None
    if one is None or template is None or len(one.cpus) < 3:
        return None

    flagged = [i for i, cpu in enumerate(one.cpus) if _touches(where, cpu, shown.topology)]
    flagged = flagged if len(flagged) < len(one.cpus) else []
    return core_strip(one, template, shown.topology, name, node, bound, flagged=flagged)


def _matrix_of(item: Mapping[str, Any], shown: Shown) -> DrawnMatrix | None:
    mine = [one for one in shown.matrices if one.measurement == item.get("measurement")]
    return next((one for one in mine if one.home == item.get("home")), mine[0] if mine else None)


def _touches(where: Mapping[str, Any], cpu: int, topology: Topology | None) -> bool:
    """Whether a CPU is in one of the parts that `where` names."""
    if "cpu" in where or "core" in where:
        return bool(where.get("cpu", where.get("core")) == cpu)
    known = next((one for one in topology.cpus if one.cpu == cpu), None) if topology is not None else None
    parts = {
        key: value for key, value in where.items() if key.removeprefix("to_") in ("ccx", "ccd", "quadrant", "socket")
    }
    return known is not None and any(getattr(known, key.removeprefix("to_")) == value for key, value in parts.items())


def _of_cells(
    item: Mapping[str, Any], where: Mapping[str, Any], name: str, bound: float | None, node: str, group: str,
    shown: Shown, peers: Peers,
) -> Figure | None:  # fmt: skip
    """Every cell of the finding's measurement against the peers' same cell."""
    measured = shown.job.measured.get(str(item["measurement"])) if shown.job is not None else None
    found = places_and_values(measured) if measured is not None else None
    if measured is None or found is None:
        return None
    places, values = found
    dims = list(measured.places)
    theirs = peers.cells(node, group, measured.name, places)
    share = cell_models()[measured.name].scale == "share"
    if len(theirs) >= 2:
        base = np.array([finite_median(column) for column in theirs.T])
        over = 1.0 if share else base  # a share of the time is compared by its difference
        mine, others, unit = 100 * (np.array(values) - base) / over, 100 * (theirs - base) / over, "% from the peers"
    else:
        unit = "%" if share else _unit(measured.units[cell_models()[measured.name].value])
        mine, others, bound = np.array(values) * _factor(unit), np.empty((0, len(places))), None
    where_is = {key: value for key, value in where.items() if key != "core" or "cpu" not in where}
    flagged = [
        i for i, place in enumerate(places) if _is_at(where_is, dict(zip(dims, place, strict=True)), shown.topology)
    ]
    # what is alike in all flagged places is what the finding is about: the other cells would only fill the page
    kept = (
        _alike(places, flagged, dims, where_is) if len(places) > _MOST_PLACES or len(dims) > 1 else range(len(places))
    )
    kept = list(kept)[:_MOST_PLACES]
    varying = [d for d in range(len(dims)) if len({places[i][d] for i in kept}) > 1] or [0]
    labels = [", ".join(str(places[i][d]) for d in varying) for i in kept]
    return plots.strip(
        labels, mine[kept], others[:, kept], name=name, unit=unit,
        flagged=[k for k, i in enumerate(kept) if i in set(flagged)] if len(flagged) < len(places) else [],
        bound=100 * bound if bound else None,
        caption=captions.of(
            "finding", name=measured.name, places=", ".join(dims[d].replace("_", " ") for d in varying),
            against=f", against the median of {len(theirs)} peers" if len(theirs) >= 2 else "",
            marks=f"Dots: {node}; triangles: the place of the finding; grey: the range of the peers; dashed: the bound",
        ),
    )  # fmt: skip


def _unit(unit: str) -> str:
    return {"B/s": "GB/s", "Hz": "GHz"}.get(unit, unit)


def _factor(unit: str) -> float:
    return {"GB/s": 1e-9, "GHz": 1e-9, "%": 100.0}.get(unit, 1.0)


def _is_at(where: Mapping[str, Any], place: Mapping[str, int | str], topology: Topology | None) -> bool:
    """Whether a place has every label of `where`: a coordinate of its own, or a part that its CPU is in."""
    cpu = place.get("cpu")
    known = next((one for one in topology.cpus if one.cpu == cpu), None) if topology is not None else None
    for key, value in where.items():
        if key in place:
            if place[key] != value:
                return False
        elif key in ("ccx", "ccd", "quadrant", "socket") and known is not None:
            if getattr(known, key) != value:
                return False
        elif key == "core" and known is not None:
            if known.core != value:
                return False
        elif key == "distance" and "cpu_node" in place:
            own = place["cpu_node"] == place.get("memory_node")
            if own != (value == "own node"):
                return False
    return True


def _alike(places: list[Place], flagged: list[int], dims: list[str], where: Mapping[str, Any]) -> list[int]:
    """Places that differ from the flagged ones in the finding's own dimensions alone, all where these are many."""
    own = {dims.index(key) for key in where if key in dims} | ({dims.index("cpu")} if "cpu" in dims else set())
    if not flagged or not own:
        return list(range(len(places)))
    others = [d for d in range(len(dims)) if d not in own]
    first = tuple(places[flagged[0]][d] for d in others)
    return [i for i, place in enumerate(places) if tuple(place[d] for d in others) == first]
