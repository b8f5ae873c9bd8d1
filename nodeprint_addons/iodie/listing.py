"""Results on I/O dies for a terminal: sentences, a small floor plan, and the components of all nodes as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.level_names import level_name
from nodeprint_addons.iodie import part_comparison, sentences
from nodeprint_addons.iodie.analysis import NodeDies
from nodeprint_addons.iodie.die import Die
from nodeprint_addons.iodie.geometry import Geometry
from nodeprint_addons.iodie.iodie_texts import say


def as_text(node: NodeDies) -> str:
    """A node's dies for a terminal."""
    text = [f"{node.node}: {node.measurement}"]
    if not node.dies:
        return "\n".join([*text, *(f"  NO MAP: {missing}." for missing in node.missing)])
    text += [f"  missing: {missing}" for missing in node.missing]
    for die in node.dies:
        text += ["", *_die_text(die)]
    return "\n".join(text)


def _die_text(die: Die) -> list[str]:
    text = [
        say(
            "heading",
            die=sentences.title(die),
            count=len(die.clusters.label),
            lines=sentences.lines_sentence(die),
        )
    ]
    text += [f"  {sentences.sentence(words)}" for words in sentences.hidden_sentences(die.clusters)]
    if die.sites is None:
        text.append(f"  NO MAP: {sentences.no_map_sentence(die)}")
    else:
        text += [f"  {sentences.sentence(words)}" for words in sentences.map_sentences(die)]
        text += ["", *[f"    {row}" for row in plan(die)], ""]
    text += [f"  {sentences.sentence(words)}" for words in sentences.part_sentences(die)]
    return text


def listing(nodes: Sequence[NodeDies]) -> list[str]:
    """The nodes, an empty line between them."""
    return "\n\n".join(as_text(node) for node in nodes).splitlines()


def fleet_rows(nodes: Sequence[NodeDies]) -> list[str]:
    """The comparison for a terminal: a line for each part, with the nodes where it costs least and most.

    Empty if fewer than two nodes have the same dies.
    """
    compared = part_comparison.compare(nodes)
    if compared is None:
        return []
    rows = [say("compared_nodes", nodes=compared["node"].nunique())]
    others = part_comparison.not_compared(nodes)
    rows += [say("not_compared", node=node, reason=reason) for node, reason in others.items()]
    width = max(map(len, compared["name"]), default=0)
    rows.append(f"  {'part':<{width}}  {'median':>9}  {'lowest':>9}  {'highest':>9}  {say('ends')}")
    for name, part in compared.groupby("name", sort=False):
        value, node, unit = part["value"].to_numpy(), part["node"].tolist(), part["unit"].iloc[0]
        figures = (np.median(value), value.min(), value.max())
        columns = "  ".join(f"{sentences.in_unit(unit, float(figure)):>9}" for figure in figures)
        rows.append(f"  {name:<{width}}  {columns}  {node[value.argmin()]}, {node[value.argmax()]}")
    return rows


def plan(die: Die) -> list[str]:
    """The floor plan in characters: sites where the geometry has them, with costs on the links; or a table."""
    assert die.sites is not None
    if die.geometry is not None and die.geometry.kind in ("mesh", "ring"):
        return _drawn(die, die.geometry)
    names = [sentences.site_name(die, site) for site in range(die.sites.count)]
    width = max(map(len, names))
    costs = _costs(die)
    head = " " * width + "".join(f"  {i:>5}" for i in range(len(names))) + "   ns to a line there"
    rows = [head]
    for p, name in enumerate(names):
        row = "".join(f"  {0.0 if p == q else costs[min(p, q), max(p, q)]:5.1f}" for q in range(len(names)))
        rows.append(f"{name:<{width}}{row}")
    return rows


def _costs(die: Die) -> dict[tuple[int, int], float]:
    assert die.to_lines is not None
    ways = die.to_lines.between
    return {(int(p), int(q)): float(v) for (p, q), v in zip(ways.ends, ways.ns, strict=True)}


def grid(geometry: Geometry) -> list[tuple[int | None, int | None]]:
    """Rows of a plan with two columns: the found site at each place, None where a place has no CPU.

    A ring goes down on the left and up on the right.
    """
    site_at = {int(place): site for site, place in enumerate(geometry.site)}
    if geometry.kind == "mesh":
        return [(site_at.get(2 * row), site_at.get(2 * row + 1)) for row in range(geometry.sites // 2)]
    rows = (geometry.sites + 1) // 2
    return [
        (site_at.get(row), site_at.get(geometry.sites - 1 - row) if geometry.sites - 1 - row >= rows else None)
        for row in range(rows)
    ]


def _drawn(die: Die, geometry: Geometry) -> list[str]:
    costs = _costs(die)

    def link(p: int | None, q: int | None) -> str:
        ns = costs.get((min(p, q), max(p, q))) if p is not None and q is not None else None
        return f"{ns:.1f}" if ns is not None else ""

    def box(site: int | None) -> str:
        if site is None:
            return "(no CPU)"
        of_ends, name = sentences.ends_of(die, site), sentences.site_name(die, site)
        ends = f"{level_name(die.level)} {list_text(of_ends)}" if of_ends else name
        return f"[{'' if name == ends else name + ': '}{ends}, {100 * die.share(site).value:.0f}% of lines]"

    rows = grid(geometry)
    width = max(len(box(left)) for left, _ in rows)
    out: list[str] = []
    for number, row in enumerate(rows):
        left, right = row
        across = geometry.kind == "mesh" or number in (0, len(rows) - 1)
        bridge = f" --{link(left, right) if across else '':-^5}-- " if across else " " * 11
        out.append(
            f"{box(left):<{width}}{bridge}{box(right) if right is not None or geometry.kind == 'mesh' else ''}".rstrip()
        )
        if number + 1 < len(rows):
            below = rows[number + 1]
            down = [
                f"| {link(a, b)}" if a is not None and b is not None else "" for a, b in zip(row, below, strict=True)
            ]
            out.append(f"{down[0]:^{width}}{'':13}{down[1]}".rstrip())
    return [*out, say("plan_unit")]
