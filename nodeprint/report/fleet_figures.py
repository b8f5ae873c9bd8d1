"""The fleet in figures: how near nodes are to their bounds, effects with intervals, maps in small, order and racks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from nodeprint import captions
from nodeprint.fingerprint import FIELDS, label
from nodeprint.fleet import homes
from nodeprint.outcomes import Outcome
from nodeprint.report import effects, formatting, matrix_figure, scale
from nodeprint.report import old_figures as figures
from nodeprint.report.drawing import Pixels
from nodeprint.report.effects import Effect
from nodeprint.report.old_figures import Figure, Floats
from nodeprint.report.pages import Figures, Section, Table, Text
from nodeprint.report.peers import MAP_SCALE, Template
from nodeprint.report.scale import Scale
from nodeprint.report.shown import ClassKey, DrawnMatrix, class_key, largest_shift
from nodeprint.topology.model import Topology
from nodeprint.words import places
from nodeprint.words.names import name_list

#: Rows of the map of nodes and terms, and maps in small.
_MOST_ROWS, MOST_MAPS = 32, 64


class Overview(msgspec.Struct, frozen=True):
    """What the figures of a fleet need beside the verdict: when each node was first measured, its difference map,
    one matrix of the template with its machine, the leaf switch of each node, and what is said of records that were not
    measured here."""

    started: Mapping[str, str] = {}
    maps: Mapping[str, Pixels] = {}
    template: tuple[DrawnMatrix, Template, Topology | None] | None = None
    switches: Mapping[str, str] = {}
    origin: str = ""


def sections(
    verdict: Mapping[str, Any], looks: Mapping[str, Outcome], by_class: Mapping[ClassKey, Mapping[str, float]],
    overview: Overview,
) -> list[Section | None]:  # fmt: skip
    """The sections of figures, each where there is anything to see."""
    if len(looks) < 2:
        return []
    key = _class_shown(verdict, by_class)
    return [
        Section("How near each node is to its bounds", (Figures(_term_map(verdict, looks)),), together=True),
        Section("Effects of nodes", (Figures(_forest(verdict, looks, by_class, key)),), together=True),
        Section("Difference maps", (Figures(_multiples(looks, overview)),), together=True),
        Section(
            "By time and place", tuple(Figures((one,)) for one in _orders(verdict, looks, by_class, key, overview))
        ),
        Section("Template of the fleet", (Figures(_template(overview)),), together=True),
    ]


def _term_map(verdict: Mapping[str, Any], looks: Mapping[str, Outcome]) -> tuple[Figure, ...]:
    """Node x term: the smallest bound within which a node would be the same, as a share of the bound that applies."""
    margins = {node: said.get("margins") or {} for node, said in verdict["nodes"].items()}
    known = {name for of in margins.values() for name, one in of.items() if _share(one) is not None}
    terms = [*(t for t in places.TESTED if t in known), *sorted(known - set(places.TESTED))]
    if not terms:
        return ()
    worst = {node: max([_share(one) or 0.0 for one in of.values()], default=0.0) for node, of in margins.items() if of}
    order = sorted(worst, key=lambda node: (looks[node].rank if not looks[node].quiet else 99, -worst[node]))
    rows = order[:_MOST_ROWS]
    values = np.array([[_or_nan(_share(margins[node].get(term))) for term in terms] for node in rows])
    texts = [
        [formatting.percent((margins[node].get(term) or {}).get("within")).removesuffix(" %") for term in terms]
        for node in rows
    ]
    names = [places.TESTED.get(term, term) for term in terms]
    more = f" The {len(rows)} nodes nearest to their bounds of {len(worst)}." if len(worst) > len(rows) else ""
    return (
        figures.grid(
            100 * values, texts, rows, names, Scale(0.0, 200.0), "% of the bound", name="terms", corner="node",
            marked=[i for i, node in enumerate(rows) if not looks[node].quiet],
            caption=captions.of("terms", more=more),
        ),
    )  # fmt: skip


def _share(one: Any) -> float | None:
    within, bound = (
        formatting.number(one.get(key)) if isinstance(one, Mapping) else None for key in ("within", "bound")
    )
    return within / bound if within is not None and bound else None


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _class_shown(verdict: Mapping[str, Any], by_class: Mapping[ClassKey, Mapping[str, float]]) -> ClassKey | None:
    """The class in which nodes with findings are farthest from the others; that of most pairs without any."""
    shared = [key for key, by_node in by_class.items() if len(by_node) > 1]
    if not shared:
        return None
    odd = {node for node, said in verdict["nodes"].items() if said.get("findings")}

    pairs = Counter[ClassKey]()
    for said in verdict["nodes"].values():
        for c in said.get("classes", ()):
            pairs[class_key(c)] = max(pairs[class_key(c)], int(c.get("pairs") or 0))
    return max(shared, key=lambda key: (round(largest_shift(by_class[key], odd), 3) if odd else 0.0, pairs[key]))


def _name(key: ClassKey) -> str:
    measurement, home, name = key
    return ", ".join(filter(None, (f"'{name}' of {measurement}", homes.named(home))))


def _forest(
    verdict: Mapping[str, Any], looks: Mapping[str, Outcome], by_class: Mapping[ClassKey, Mapping[str, float]],
    key: ClassKey | None,
) -> tuple[Figure, ...]:  # fmt: skip
    """Every node's median of one class against the fleet's, with its interval over runs."""
    if key is None:
        return ()
    base = float(np.median(list(by_class[key].values())))
    rows = []
    for node in by_class[key]:
        c = next(c for c in verdict["nodes"][node]["classes"] if class_key(c) == key)
        ends = [formatting.number(c.get(end)) for end in ("ci_low_ns", "ci_high_ns")]
        low, high = (100 * (end / base - 1) if end is not None and ends[0] else float("nan") for end in ends)
        rows.append(Effect(node, low, 100 * (by_class[key][node] / base - 1), high, not looks[node].quiet))
    bound = formatting.number(((verdict.get("fleet") or {}).get("bound") or {}).get("class"))
    return (
        effects.forest(
            sorted(rows, key=lambda row: row.value), name="effects", unit="% from the fleet's median",
            bound=100 * bound if bound else None,
            caption=captions.of("effects", name=_name(key)),
        ),
    )  # fmt: skip


def _multiples(looks: Mapping[str, Outcome], overview: Overview) -> tuple[Figure, ...]:
    if len(overview.maps) < 2:
        return ()
    order = sorted(overview.maps, key=lambda node: (looks[node].quiet, looks[node].rank, formatting.natural(node)))[
        :MOST_MAPS
    ]
    maps = [(node, overview.maps[node], not looks[node].quiet) for node in order]
    return (
        figures.multiples(
            maps, MAP_SCALE, "% from the peers", name="difference-maps",
            caption=captions.of("maps"),
        ),
    )  # fmt: skip


def _orders(
    verdict: Mapping[str, Any], looks: Mapping[str, Outcome], by_class: Mapping[ClassKey, Mapping[str, float]],
    key: ClassKey | None, overview: Overview,
) -> list[Figure]:  # fmt: skip
    """One class of every node in the order of time, and by rack."""
    if key is None or not 3 <= len(by_class[key]) <= 1200:
        return []
    base = float(np.median(list(by_class[key].values())))
    shift = {node: 100 * (value / base - 1) for node, value in by_class[key].items()}
    out = []
    times = {node: overview.started.get(node, "") for node in shift}
    if len(set(times.values()) - {""}) > 1:
        rows = [
            (n, times[n][:10], shift[n], not looks[n].quiet)
            for n in sorted(shift, key=lambda n: (times[n], formatting.natural(n)))
        ]
        text = captions.of("time", name=_name(key))
        out.append(effects.order_view(rows, name="by-time", unit="% from the fleet", caption=text, x="day"))
    racks = {node: str(verdict["nodes"][node].get("rack") or "") for node in shift}
    for what, where in (("rack", racks), ("switch", {node: overview.switches.get(node, "") for node in shift})):
        if len(set(where.values()) - {""}) > 1:
            order = sorted(shift, key=lambda n: (formatting.natural(where[n]), formatting.natural(n)))
            rows = [(n, where[n], shift[n], not looks[n].quiet) for n in order]
            caption = captions.of("place", name=_name(key), what=what)
            out.append(effects.order_view(rows, name=f"by-{what}", unit="% from the fleet", caption=caption, x=what))
    return out


def _template(overview: Overview) -> tuple[Figure, ...]:
    """What nodes have in common, and how far they differ, pair by pair."""
    if overview.template is None:
        return ()
    one, template, topology = overview.template
    if len(template.names) < 3 or len(one.cpus) < 3:
        return ()
    middle = template.median
    spread: Floats = 100 * template.values.std(axis=0, ddof=1) / middle
    ends, wide = scale.ends(middle), scale.ends(spread)
    room = figures.PAGE / 2 - 2
    of = {"name": one.measurement, "nodes": len(template.names)}
    drawn = (
        (middle, ends, "ns", "template", captions.of("template", **of)),
        (spread, wide, "%", "spread", captions.of("spread", **of)),
    )
    return tuple(
        matrix_figure.matrix(
            values, one.cpus, topology, scale.of_nodes([reach] if reach else []), unit, room, name=name,
            caption=caption,
        )
        for values, reach, unit, name, caption in drawn
    )  # fmt: skip


def differences(nodes: Mapping[str, Any]) -> Section:
    """Fields of the fingerprint in which nodes differ: the majority's value, and who has which other one."""
    prints = {node: said.get("fingerprint") or {} for node, said in nodes.items()}
    rows = []
    for one in FIELDS:
        values = {node: str(of[one.name]) for node, of in prints.items() if of.get(one.name) not in (None, "")}
        counted = Counter(values.values())
        if len(counted) < 2 or one.name == "serials":
            continue
        usual, count = counted.most_common(1)[0]
        others = [f"{value[:60]}: {name_list(_having(values, value))}" for value, _ in counted.most_common()[1:5]]
        more = f"; and {len(counted) - 5} more values" if len(counted) > 5 else ""
        rows.append((label(one.name), "yes" if one.hard else "", f"{usual[:60]} ({count})", "; ".join(others) + more))
    table = Table(("field", "must agree", "most nodes", "other nodes"), tuple(rows), align="llll", wide=3)
    return Section("Configuration differences", (table, Text("")) if rows else ())


def _having(values: Mapping[str, str], value: str) -> Sequence[str]:
    return sorted((node for node, one in values.items() if one == value), key=formatting.natural)
