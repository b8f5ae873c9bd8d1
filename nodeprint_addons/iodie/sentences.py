"""Results on I/O dies in sentences, for terminal and pages."""

from __future__ import annotations

import numpy as np

from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.level_names import level_name
from nodeprint_addons.iodie import line_clusters
from nodeprint_addons.iodie.die import Die
from nodeprint_addons.iodie.geometry import Geometry
from nodeprint_addons.iodie.hashing import Rule
from nodeprint_addons.iodie.iodie_texts import say
from nodeprint_addons.iodie.line_clusters import LineClusters

#: A place with a smaller share of the lines is not expected: a channel of twelve has 8%.
_SMALL_SHARE = 0.04
_KINDS = {"ring": "ring of {0}", "crossbar": "crossbar of {0}"}


def interval(value: float, half: float) -> str:
    """A cost with half of its 95% interval, ns."""
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
    return [int(end) for end in die.ends[die.here][die.sites.of_end == site]]


def site_name(die: Die, site: int) -> str:
    """A site by its labeled quadrant where all sites are quadrants, else by its ends; one without ends by a number."""
    assert die.sites is not None
    if site >= die.sites.count:
        return f"no {level_name(die.level)} ({site - die.sites.count + 1})"
    if die.agrees == 1:
        labels = die.labels[die.here]
        return f"quadrant {int(labels[die.sites.of_end == site][0])}"
    return f"{level_name(die.level)} {list_text(ends_of(die, site))}"


def title(die: Die) -> str:
    """The socket and NUMA nodes at which the lines of a die are at home."""
    whole = len(die.homes) == 1
    return say("title", socket=die.socket, s="" if whole else "s", homes=list_text(die.homes))


def lines_sentence(die: Die) -> str:
    """The clusters of lines, by latency and by census."""
    hops = die.clusters
    if hops.count == 1:
        text = "all alike"
    else:
        loose = int((hops.label < 0).sum())
        text = say("clusters", count=hops.count, sizes=", ".join(map(str, hops.sizes))) + (
            f", {loose} in none" if loose else ""
        )
    if die.census is None:
        return text + say("census", "few")
    if die.census_agreement is not None:
        alike = "same" if die.census_agreement > 0.95 else "other"
        return text + say("census", alike, index=f"{die.census_agreement:.2f}", lines=die.common_lines)
    return text + say("census", "one" if die.census.count == 1 else "several", count=die.census.count)


def hidden_sentences(clusters: LineClusters) -> list[str]:
    """What too few lines may hide, and how many would show it."""
    lines, hidden, sentences = len(clusters.label), clusters.hidden, []
    if hidden:
        places = say("hidden_place") if len(hidden) == 1 else say("hidden_places", places=len(hidden))
        sentences.append(
            say("hidden", hidden=sum(hidden), places=places, lines=line_clusters.lines_for(min(hidden) / lines))
        )
    least = clusters.least_share
    if least > _SMALL_SHARE:
        sentences.append(
            say(
                "unseen",
                lines=lines,
                least=f"{100 * least:.0f}",
                needed=line_clusters.lines_for(_SMALL_SHARE),
                share=f"{100 * _SMALL_SHARE:.0f}",
            )
        )
    return sentences


def no_map_sentence(die: Die) -> str:
    """The reason for a missing map, and its detection limit."""
    return say("no_map", reason=die.no_map, step=f"{die.clusters.detectable_ns:.2f}")


def map_sentences(die: Die) -> list[str]:
    """The map: sites, geometry, costs, and the basis of its orientation."""
    assert die.sites is not None
    word = level_name(die.level)
    sentences = [say("sites", count=die.sites.count, word=word)]
    sentences += [_beyond_sentence(die, site) for site in range(die.sites.count, die.sites.with_memory)]
    if die.geometry is not None:
        geometry = die.geometry
        steps = " across, ".join(map(interval, geometry.hop_ns, geometry.hop_half))
        pairs = " across, ".join(map(interval, geometry.pair_hop_ns, geometry.pair_hop_half))
        along = " along" if len(geometry.hop_ns) > 1 else ""
        sentences.append(say("geometry", shape=shape(geometry), probability=f"{geometry.certain:.2f}"))
        sentences.append(say("steps", steps=steps, along=along, pairs=pairs))
    else:
        sentences.append(say("no_name", reason=die.no_geometry))
    if die.agrees == 1:
        sentences.append(say("labeled"))
    elif die.agrees is not None:
        sentences.append(say("not_labeled", index=f"{die.agrees:.2f}"))
    else:
        sentences.append(say("no_labels"))
    for rule in die.rules:
        sentences.append(rule_sentence(rule))
    return sentences


def _beyond_sentence(die: Die, site: int) -> str:
    """How far the lines of a site without ends are."""
    assert die.to_lines is not None
    ways = die.to_lines.to_site(site)
    costs = zip(ways.ends[:, 0].tolist(), ways.ns, ways.half, strict=True)
    further = [f"{interval(ns, half)} from {site_name(die, p)}" for p, ns, half in costs]
    return say(
        "beyond",
        site=site_name(die, site),
        share=f"{100 * die.share(site).value:.0f}",
        word=level_name(die.level),
        further=", ".join(further),
    )


def rule_sentence(rule: Rule) -> str:
    """The rule for a line's cluster by its address."""
    criterion = say("parity", bits=list_text(rule.bits)) if rule.bits else "the address modulo 3"
    groups = " from ".join("{" + list_text(group) + "}" for group in rule.groups)
    where = say("page_pairs") if rule.in_page else "lines"
    return say(
        "rule",
        criterion=criterion,
        groups=groups,
        right=f"{100 * rule.right:.0f}",
        lines=rule.lines,
        where=where,
    )


def part_sentences(die: Die) -> list[str]:
    """The costs of the parts of a path, and the unidentified ones."""
    own = die.own_parts
    ns = own["ns"]
    word = level_name(die.level)
    sentences = [
        say(
            "own_part",
            word=word,
            median=f"{ns.median():.1f}",
            lowest=f"{ns.min():.1f}",
            lowest_end=ns.idxmin(),
            highest=f"{ns.max():.1f}",
            highest_end=ns.idxmax(),
            half=f"{own['half'].median():.1f}",
        )
    ]
    sentences += [say("odd_end", word=word, end=end, by=f"{by:.1f}") for end, by in die.odd_ends.items()]
    sentences += [say("link", socket=to, cost=interval(link.value, link.half)) for to, link in die.links.items()]
    if die.core_cycles is None:
        sentences.append(say("core_unknown"))
    else:
        sentences.append(
            say(
                "core_share",
                cycles=cost(die.core_cycles.value, die.core_cycles.half),
                spread=f"{100 * die.clock_spread:.0f}",
            )
        )
    return sentences


def in_unit(unit: str, value: float) -> str:
    """A value of a part with its unit."""
    return f"{100 * value:.1f}%" if unit == "share" else f"{value:.2f} ns"
