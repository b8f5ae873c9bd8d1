"""What was found of I/O dies, as JSON for programs and as text with a small floor plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nodeprint.iodie.analysis import Die, NodeDies
from nodeprint.iodie.geometry import Geometry
from nodeprint.iodie.hashing import Rule
from nodeprint.iodie.line_clusters import Clusters
from nodeprint.iodie.part_comparison import FEWEST_NODES, ComparedPart, Comparison, Key
from nodeprint.topology.facts import list_text
from nodeprint.topology.model import Level

WORDS = {"ccd": "CCD", "ccx": "CCX", "cluster": "cluster", "core": "core"}
_KINDS = {"ring": "ring of {0}", "crossbar": "crossbar of {0}"}


def figure(value: float, digits: int = 4) -> float | None:
    """A number for JSON: rounded, None where it is unknown."""
    return round(float(value), digits) if np.isfinite(value) else None


def figure_or_none(value: float | None) -> float | None:
    """The same of a number that may be absent."""
    return None if value is None else figure(value)


def interval(value: float, half: float) -> str:
    """A cost with half of its 95 % interval, ns."""
    return f"{cost(value, half)} ns" if np.isfinite(value) else "not identified"


def cost(value: float, half: float) -> str:
    """The figures of an interval: two decimals where the first says nothing of its half."""
    digits = 1 if half >= 0.1 else 2
    return f"{value:.{digits}f} ± {half:.{digits}f}"


def sentence(words: str) -> str:
    """Words as a sentence."""
    return f"{words[0].upper()}{words[1:]}."


def shape(of: Geometry) -> str:
    """A geometry in words."""
    return f"mesh of 2 x {of.sites // 2}" if of.kind == "mesh" else _KINDS[of.kind].format(of.sites)


def ends_of(die: Die, site: int) -> list[int]:
    """The numbers of the ends at a site."""
    assert die.sites is not None
    return [int(end) for end in die.tensor.ends[die.tensor.here][die.sites.of_end == site]]


def site_name(die: Die, site: int) -> str:
    """A site by its labelled quadrant where all sites are quadrants, else by its ends."""
    assert die.sites is not None
    if die.agrees == 1:
        labels = die.tensor.labels[die.tensor.here]
        return f"quadrant {int(labels[die.sites.of_end == site][0])}"
    return f"{WORDS[die.tensor.level]} {list_text(ends_of(die, site))}"


def as_json(node: NodeDies) -> dict[str, Any]:
    """A node's dies, as nodeprint/schemas/iodie.json has them."""
    return {
        "node": node.node,
        "simulated": node.simulated,
        "measurement": node.measurement,
        "missing": list(node.missing),
        "dies": [_die_json(die) for die in node.dies],
    }


def _die_json(die: Die) -> dict[str, Any]:
    ends, ns, half, apart = die.end_ns
    odd, both = dict(die.odd_ends), die.agreement
    return {
        "socket": die.tensor.socket,
        "homes": list(die.homes),
        "level": die.tensor.level,
        "lines": _clusters_json(die.clusters),
        "census": _clusters_json(die.census) if die.census is not None else None,
        "agreement": None if both is None else {"lines": both.lines, "index": figure_or_none(both.index)},
        "rules": [
            {"bits": list(r.bits), "groups": [list(g) for g in r.groups], "right": figure(r.right), "lines": r.lines,
             "in_page": r.in_page} for r in die.rules
        ],
        "map": _map_json(die),
        "no_map": die.no_map,
        "no_geometry": die.no_geometry,
        "ends": [
            {"end": int(e), "ns": figure(v), "half_ns": figure(h), "apart_sd": figure(z, 2),
             "stands_apart": int(e) in odd}
            for e, v, h, z in zip(ends, ns, half, apart, strict=True)
        ],
        "links": [{"socket": link.socket, "ns": figure(link.ns), "half_ns": figure(link.half)} for link in die.links],
        "scatter_ns": figure(die.fit.scatter_ns),
        "core": None if die.core is None else {"cycles": figure(die.core.cycles), "half": figure(die.core.half)},
        "clock_spread": figure(die.tensor.clock_spread),
    }  # fmt: skip


def _clusters_json(of: Clusters) -> dict[str, Any]:
    return {
        "lines": len(of.label),
        "clusters": of.count,
        "sizes": of.sizes.tolist(),
        "unassigned": int((of.label < 0).sum()),
        "separation": figure(of.separation, 2),
        "noise_ns": figure(of.noise_ns),
        "detectable_ns": figure(of.detectable_ns),
    }


def _map_json(die: Die) -> dict[str, Any] | None:
    if die.sites is None or die.distances is None:
        return None
    sites, found, shape_of = die.sites, die.distances, die.geometry
    return {
        "sites": [
            {
                "name": site_name(die, site),
                "ends": ends_of(die, site),
                "clusters": np.flatnonzero(sites.of_cluster == site).tolist(),
                "share": figure(die.share(site)[0]),
                "share_half": figure(die.share(site)[1]),
            }
            for site in range(sites.count)
        ],
        "distances": [
            {
                "sites": [int(p), int(q)],
                "line_ns": figure(found.line[i]),
                "line_half_ns": figure(found.line_half[i]),
                "pair_ns": figure(found.pair[i]),
                "pair_half_ns": figure(found.pair_half[i]),
            }
            for i, (p, q) in enumerate(found.ends)
        ],
        "geometry": None
        if shape_of is None
        else {
            "kind": shape_of.kind,
            "sites": shape_of.sites,
            "site": shape_of.site.tolist(),
            "hop_ns": [figure(v) for v in shape_of.hop_ns],
            "hop_half_ns": [figure(v) for v in shape_of.hop_half],
            "pair_hop_ns": [figure(v) for v in shape_of.pair_hop_ns],
            "pair_hop_half_ns": [figure(v) for v in shape_of.pair_hop_half],
            "advantage": figure(shape_of.advantage, 2),
            "certain": figure(shape_of.certain),
        },
        "anchored_by": "the labels of quadrants" if die.agrees == 1 else None,
        "labels_index": figure_or_none(die.agrees),
    }


# --- text ---


def as_text(node: NodeDies) -> str:
    """A node's dies for a terminal."""
    said = [f"{node.node}: {node.measurement}"]
    if not node.dies:
        return "\n".join([*said, *(f"  NO MAP: {what}." for what in node.missing)])
    said += [f"  missing: {what}" for what in node.missing]
    for die in node.dies:
        said += ["", *_die_text(die)]
    return "\n".join(said)


def title(die: Die) -> str:
    """Whose lines a die's are."""
    whole = len(die.homes) == 1
    return f"socket {die.tensor.socket}, lines of NUMA node{'' if whole else 's'} {list_text(die.homes)}"


def _die_text(die: Die) -> list[str]:
    said = [f"{title(die)}: {len(die.clusters.label)} lines, {lines_sentence(die)}"]
    if die.sites is None:
        said.append(f"  NO MAP: {no_map_sentence(die)}")
    else:
        said += [f"  {sentence(words)}" for words in map_sentences(die)]
        said += ["", *[f"    {row}" for row in plan(die)], ""]
    said += [f"  {sentence(words)}" for words in part_sentences(die)]
    return said


def lines_sentence(die: Die) -> str:
    """Where lines live, by hops and by census."""
    hops = die.clusters
    if hops.count == 1:
        text = "all alike"
    else:
        loose = int((hops.label < 0).sum())
        text = f"in {hops.count} clusters of {', '.join(map(str, hops.sizes))}" + (
            f", {loose} in none" if loose else ""
        )
    if die.census is None:
        return text + "; no census with enough CPUs"
    if die.agreement is not None and die.agreement.index is not None:
        same = "the same" if die.agreement.index > 0.95 else "other"
        return (
            text
            + f"; the census finds {same} clusters (adjusted Rand index {die.agreement.index:.2f} over "
            + (f"{die.agreement.lines} lines)")
        )
    return text + f"; the census finds {'one cluster' if die.census.count == 1 else f'{die.census.count} clusters'}"


def no_map_sentence(die: Die) -> str:
    """Why there is no map, and what would have been found."""
    return (
        f"{die.no_map}. With this data two sites would have been separated if a step between them took "
        f"{die.clusters.detectable_ns:.2f} ns or more."
    )


def map_sentences(die: Die) -> list[str]:
    """What the map shows: sites, geometry, costs, and what fixes its orientation."""
    assert die.sites is not None
    said = [
        f"{die.sites.count} sites, each with memory that is nearer to its {WORDS[die.tensor.level]}s than to others"
    ]
    if die.geometry is not None:
        found = die.geometry
        steps = " across, ".join(interval(v, h) for v, h in zip(found.hop_ns, found.hop_half, strict=True))
        pairs = " across, ".join(interval(v, h) for v, h in zip(found.pair_hop_ns, found.pair_hop_half, strict=True))
        along = " along" if len(found.hop_ns) > 1 else ""
        said.append(f"geometry: {shape(found)}, this placement with probability {found.certain:.2f}")
        said.append(f"a step to a line costs {steps}{along}; a step from CPU to CPU {pairs}{along}")
    else:
        said.append(f"geometry: none is named, {die.no_geometry}; the distances are as measured")
    if die.agrees == 1:
        said.append("the sites are the labelled quadrants")
    elif die.agrees is not None:
        said.append(
            f"the sites are not the labelled quadrants (adjusted Rand index {die.agrees:.2f}); placed up to reflection"
        )
    else:
        said.append("no labels fix the orientation: the map holds up to reflection and rotation")
    for rule in die.rules:
        said.append(rule_sentence(rule))
    return said


def rule_sentence(rule: Rule) -> str:
    """What an address says of the cluster of a line."""
    what = f"the parity of address bits {list_text(rule.bits)}" if rule.bits else "the address modulo 3"
    groups = " from ".join("{" + list_text(group) + "}" for group in rule.groups)
    where = "pairs of lines in one page" if rule.in_page else "lines"
    return f"{what} separates clusters {groups} in {100 * rule.right:.0f} % of {rule.lines} held-out {where}"


def part_sentences(die: Die) -> list[str]:
    """What the parts of a way cost, and what is not identified."""
    ends, ns, half, _ = die.end_ns
    word = WORDS[die.tensor.level]
    said = [
        f"a {word}'s own part of a hop, its cores and port: {np.median(ns):.1f} ns, from {ns.min():.1f} ns ({word} "
        f"{ends[ns.argmin()]}) to {ns.max():.1f} ns ({word} {ends[ns.argmax()]}), each ± {np.median(half):.1f} ns"
    ]
    said += [f"{word} {end} stands apart: its part is {by:.1f} ns longer than the median" for end, by in die.odd_ends]
    said += [
        f"the link to socket {link.socket} adds {interval(link.ns, link.half)}, with the ways to it on both dies"
        for link in die.links
    ]
    if die.core is None:
        said.append("core and port are not identified apart: that needs the same cores at two clocks")
    else:
        said.append(
            f"of it a core spends {cost(die.core.cycles, die.core.half)} cycles of its clock, which changed by "
            f"{100 * die.tensor.clock_spread:.0f} %; the rest is the port"
        )
    return said


def plan(die: Die) -> list[str]:
    """The floor plan in characters: sites where the geometry has them, with costs on the links; or a table."""
    assert die.sites is not None and die.distances is not None
    if die.geometry is not None and die.geometry.kind in ("mesh", "ring"):
        return _drawn(die, die.geometry)
    names = [site_name(die, site) for site in range(die.sites.count)]
    width = max(map(len, names))
    costs = _costs(die)
    head = " " * width + "".join(f"  {i:>5}" for i in range(len(names))) + "   ns to a line there"
    rows = [head]
    for p, name in enumerate(names):
        row = "".join(f"  {0.0 if p == q else costs[min(p, q), max(p, q)]:5.1f}" for q in range(len(names)))
        rows.append(f"{name:<{width}}{row}")
    return rows


def _costs(die: Die) -> dict[tuple[int, int], float]:
    assert die.distances is not None
    return {(int(p), int(q)): float(v) for (p, q), v in zip(die.distances.ends, die.distances.line, strict=True)}


def grid(of: Geometry) -> list[tuple[int | None, int | None]]:
    """Rows of a plan with two columns: the found site at each place, None where a place has no CPU.

    A ring goes down on the left and up on the right.
    """
    at = {int(place): site for site, place in enumerate(of.site)}
    if of.kind == "mesh":
        return [(at.get(2 * row), at.get(2 * row + 1)) for row in range(of.sites // 2)]
    rows = (of.sites + 1) // 2
    return [(at.get(row), at.get(of.sites - 1 - row) if of.sites - 1 - row >= rows else None) for row in range(rows)]


def _drawn(die: Die, of: Geometry) -> list[str]:
    costs = _costs(die)

    def link(p: int | None, q: int | None) -> str:
        if p is None or q is None:
            return ""
        return f"{costs[min(p, q), max(p, q)]:.1f}"

    def box(site: int | None) -> str:
        if site is None:
            return "(no CPU)"
        share, _ = die.share(site)
        ends = f"{WORDS[die.tensor.level]} {list_text(ends_of(die, site))}"
        name = site_name(die, site)
        return f"[{'' if name == ends else name + ': '}{ends}, {100 * share:.0f} % of lines]"

    rows = grid(of)
    width = max(len(box(left)) for left, _ in rows)
    out: list[str] = []
    for number, (left, right) in enumerate(rows):
        across = of.kind == "mesh" or number in (0, len(rows) - 1)
        bridge = f" --{link(left, right) if across else '':-^5}-- " if across else " " * 11
        out.append(
            f"{box(left):<{width}}{bridge}{box(right) if right is not None or of.kind == 'mesh' else ''}".rstrip()
        )
        if number + 1 < len(rows):
            below = rows[number + 1]
            down = [link(left, below[0]), link(right, below[1])]
            out.append(
                f"{'| ' + down[0] if down[0] else '':^{width}}{'':11}{'  | ' + down[1] if down[1] else ''}".rstrip()
            )
    return [*out, "(ns that each step adds on the way to a line)"]


def node_rows(nodes: Sequence[NodeDies]) -> list[str]:
    """The nodes, an empty line between them."""
    return "\n\n".join(as_text(node) for node in nodes).splitlines()


# --- many nodes ---


def fleet_json(found: Comparison) -> dict[str, Any]:
    """The comparison, as nodeprint/schemas/iodie.json has it."""
    return {
        "nodes": list(found.nodes),
        "others": dict(found.others),
        "parts": [
            {
                "kind": part.kind,
                "socket": part.socket,
                "where": [list(ends) for ends in part.where],
                "unit": part.unit,
                "median": figure(np.median(part.value)),
                "detectable": figure(part.detectable),
                "apart": list(part.apart),
                "values": [figure(value) for value in part.value],
                "half": [figure(value) for value in part.half],
            }
            for part in found.parts
        ],
    }


def part_name(level: Level, key: Key) -> str:
    """A part in words, with the numbers of the labels."""
    kind, socket, where = key
    word, ends = WORDS[level], [list_text(one) for one in where]
    if kind == "way":
        return f"socket {socket}: way from {word} {ends[0]} to a line at {word} {ends[1]}"
    names = {"end": f"own part of {word}", "share": f"lines at {word}", "link": "link to socket"}
    return f"socket {socket}: {names[kind]} {ends[0]}"


def in_unit(part: ComparedPart, value: float) -> str:
    """A value of a part with its unit."""
    return f"{100 * value:.1f} %" if part.unit == "share" else f"{value:.2f} ns"


def fleet_rows(found: Comparison) -> list[str]:
    """The comparison for a terminal: a line for each part, and which nodes stand apart."""
    few = len(found.nodes) < FEWEST_NODES
    said = [f"{len(found.nodes)} nodes with the same dies" + (f"; below {FEWEST_NODES} none is judged" if few else "")]
    said += [f"{node}: not compared: {reason}" for node, reason in found.others.items()]
    width = max((len(part_name(part.level, part.key)) for part in found.parts), default=0)
    said.append(f"  {'part':<{width}}  {'median':>9}  {'lowest':>9}  {'highest':>9}  stands apart")
    for part in found.parts:
        figures = (np.median(part.value), part.value.min(), part.value.max())
        columns = "  ".join(f"{in_unit(part, float(value)):>9}" for value in figures)
        odd = ", ".join(
            f"{node} ({in_unit(part, part.value[found.nodes.index(node)])} ± "
            f"{in_unit(part, part.half[found.nodes.index(node)])})"
            for node in part.apart
        )
        said.append(f"  {part_name(part.level, part.key):<{width}}  {columns}  {odd}".rstrip())
    if not any(part.apart for part in found.parts) and not few:
        limits = [f"{in_unit(part, part.detectable)} ({kind})" for kind, part in _worst(found).items()]
        said.append(f"no node stands apart; from these differences on one would: {', '.join(limits)}")
    return said


def _worst(found: Comparison) -> dict[str, ComparedPart]:
    """Of each kind the part whose smallest detectable difference is largest."""
    out: dict[str, ComparedPart] = {}
    for part in found.parts:
        if part.kind not in out or part.detectable > out[part.kind].detectable:
            out[part.kind] = part
    return out
