"""What was found of I/O dies in sentences, for terminal and pages."""

from __future__ import annotations

import numpy as np

from nodeprint.iodie import line_clusters
from nodeprint.iodie.die import Die
from nodeprint.iodie.geometry import Geometry
from nodeprint.iodie.hashing import Rule
from nodeprint.iodie.line_clusters import Clusters
from nodeprint.iodie.part_comparison import WORDS, ComparedPart
from nodeprint.machine.topology.facts import list_text

#: A place with a smaller share of the lines is not expected: a channel of twelve has 8 %.
_SMALL_SHARE = 0.04
_KINDS = {"ring": "ring of {0}", "crossbar": "crossbar of {0}"}


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


def shape(geometry: Geometry) -> str:
    """A geometry in words."""
    if geometry.kind == "mesh":
        return f"mesh of 2 x {geometry.sites // 2}"
    return _KINDS[geometry.kind].format(geometry.sites)


def ends_of(die: Die, site: int) -> list[int]:
    """The numbers of the ends at a site; none where there is memory alone."""
    assert die.sites is not None
    return [int(end) for end in die.frame.ends[die.frame.here][die.sites.of_end == site]]


def site_name(die: Die, site: int) -> str:
    """A site by its labelled quadrant where all sites are quadrants, else by its ends; one without ends by a number."""
    assert die.sites is not None
    if site >= die.sites.count:
        return f"no {WORDS[die.frame.level]} ({site - die.sites.count + 1})"
    if die.agrees == 1:
        labels = die.frame.labels[die.frame.here]
        return f"quadrant {int(labels[die.sites.of_end == site][0])}"
    return f"{WORDS[die.frame.level]} {list_text(ends_of(die, site))}"


def title(die: Die) -> str:
    """The socket and NUMA nodes at which the lines of a die are at home."""
    whole = len(die.homes) == 1
    return f"socket {die.frame.socket}, lines of NUMA node{'' if whole else 's'} {list_text(die.homes)}"


def lines_sentence(die: Die) -> str:
    """The clusters of lines, by hops and by census."""
    hops = die.clusters
    if hops.count == 1:
        text = "all alike"
    else:
        loose = int((hops.label < 0).sum())
        text = f"in {hops.count} clusters of {', '.join(map(str, hops.sizes))}" + (
            f", {loose} in none" if loose else ""
        )
    if die.census is None:
        return text + "; the census has too few CPUs"
    if die.agreement is not None and die.agreement.index is not None:
        same = "the same" if die.agreement.index > 0.95 else "other"
        return (
            text
            + f"; the census finds {same} clusters (adjusted Rand index {die.agreement.index:.2f} over "
            + (f"{die.agreement.lines} lines)")
        )
    return text + f"; the census finds {'one cluster' if die.census.count == 1 else f'{die.census.count} clusters'}"


def hidden_sentences(clusters: Clusters) -> list[str]:
    """What too few lines may hide, and how many would show it."""
    lines, hidden, sentences = len(clusters.label), clusters.hidden, []
    if hidden:
        places = "a place of their own" if len(hidden) == 1 else f"{len(hidden)} places of their own"
        sentences.append(
            f"{sum(hidden)} of the lines are at {places} with too few of them for a cluster and are left out; more "
            f"runs, with {line_clusters.lines_for(min(hidden) / lines)} lines together, would show these places"
        )
    least = clusters.least_share
    if least > _SMALL_SHARE:
        sentences.append(
            f"with {lines} lines a place that has less than {100 * least:.0f} % of them would not be seen; more "
            f"runs, with {line_clusters.lines_for(_SMALL_SHARE)} lines together, would show one with "
            f"{100 * _SMALL_SHARE:.0f} %"
        )
    return sentences


def no_map_sentence(die: Die) -> str:
    """Why there is no map, and what would have been found."""
    return (
        f"{die.no_map}. With this data two sites would have been separated if a step between them took "
        f"{die.clusters.detectable_ns:.2f} ns or more."
    )


def map_sentences(die: Die) -> list[str]:
    """What the map shows: sites, geometry, costs, and what fixes its orientation."""
    assert die.sites is not None
    word = WORDS[die.frame.level]
    sentences = [f"{die.sites.count} sites, each with memory that is nearer to its {word}s than to others"]
    sentences += [_beyond_sentence(die, site) for site in range(die.sites.count, die.sites.with_memory)]
    if die.geometry is not None:
        geometry = die.geometry
        steps = " across, ".join(map(interval, geometry.hop_ns, geometry.hop_half))
        pairs = " across, ".join(map(interval, geometry.pair_hop_ns, geometry.pair_hop_half))
        along = " along" if len(geometry.hop_ns) > 1 else ""
        sentences.append(f"geometry: {shape(geometry)}, this placement with probability {geometry.certain:.2f}")
        sentences.append(f"a step to a line costs {steps}{along}; a step from CPU to CPU {pairs}{along}")
    else:
        sentences.append(f"geometry: none is named, {die.no_geometry}; the distances are as measured")
    if die.agrees == 1:
        sentences.append("the sites are the labelled quadrants")
    elif die.agrees is not None:
        sentences.append(
            f"the sites are not the labelled quadrants (adjusted Rand index {die.agrees:.2f}); placed up to reflection"
        )
    else:
        sentences.append("no labels fix the orientation: the map holds up to reflection and rotation")
    for rule in die.rules:
        sentences.append(rule_sentence(rule))
    return sentences


def _beyond_sentence(die: Die, site: int) -> str:
    """How far the lines of a site without ends are."""
    assert die.sites is not None and die.distances is not None
    ways = zip(
        *(rows[site - die.sites.count] for rows in (die.distances.further, die.distances.further_half)), strict=True
    )
    further = [f"{interval(ns, half)} from {site_name(die, p)}" for p, (ns, half) in enumerate(ways)]
    return (
        f"{site_name(die, site)}: {100 * die.share(site)[0]:.0f} % of lines are at a site of their own without a "
        f"{WORDS[die.frame.level]}; against the mean of the ways there: {', '.join(further)}"
    )


def rule_sentence(rule: Rule) -> str:
    """What an address says of the cluster of a line."""
    criterion = f"the parity of address bits {list_text(rule.bits)}" if rule.bits else "the address modulo 3"
    groups = " from ".join("{" + list_text(group) + "}" for group in rule.groups)
    where = "pairs of lines in one page" if rule.in_page else "lines"
    return f"{criterion} separates clusters {groups} in {100 * rule.right:.0f} % of {rule.lines} held-out {where}"


def part_sentences(die: Die) -> list[str]:
    """What the parts of a way cost, and what is not identified."""
    ends, ns, half, _ = die.end_ns
    word = WORDS[die.frame.level]
    sentences = [
        f"a {word}'s own part of a hop, its cores and port: {np.median(ns):.1f} ns, from {ns.min():.1f} ns ({word} "
        f"{ends[ns.argmin()]}) to {ns.max():.1f} ns ({word} {ends[ns.argmax()]}), each ± {np.median(half):.1f} ns"
    ]
    sentences += [
        f"{word} {end} stands apart: its part is {by:.1f} ns longer than the median of its die"
        for end, by in die.odd_ends
    ]
    sentences += [
        f"the link to socket {link.socket} adds {interval(link.ns, link.half)}, with the ways to it on both dies"
        for link in die.links
    ]
    if die.core is None:
        sentences.append("core and port cannot be separated: that needs runs of the same cores at two clocks")
    else:
        sentences.append(
            f"the core's share is {cost(die.core.cycles, die.core.half)} cycles of its clock (clocks differed by "
            f"{100 * die.frame.clock_spread:.0f} %); the rest is the port"
        )
    return sentences


def in_unit(part: ComparedPart, value: float) -> str:
    """A value of a part with its unit."""
    return f"{100 * value:.1f} %" if part.unit == "share" else f"{value:.2f} ns"
