"""Words that claim something, each held against the data by one rule: within, most, shared, same, all, factor, slower
or faster, of which component, and the outcome of a node."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from tests.numbers.campaign import (
    METRICS,
    Campaign,
    Json,
    cell_words,
    component_words,
    measured_words,
    metric_words,
)
from tests.numbers.findings import times
from tests.numbers.medians import runs_disagree
from tests.numbers.statements import Statement, unfolded


def false_claims(statement: Statement, campaign: Campaign) -> Iterator[str]:
    """What a statement claims and the data do not show."""
    for rule in (
        _within,
        _most,
        _worst,
        _shared,
        _same,
        _both,
        _all,
        _measured,
        _counted,
        _factor,
        _defined,
        _effects,
        _drawn,
    ):
        yield from rule(statement.text, campaign)
    yield from (
        words
        for rule in (_outcomes, _headlines, _marks, _found, _closest, _left_out)
        for words in rule(statement, campaign)
    )


def _within(text: str, campaign: Campaign) -> Iterator[str]:
    """No node that is the same is farther from its peers than that."""
    same = [name for name, node in campaign.nodes.items() if node["outcome"] == "SAME"]
    rows = campaign.deviations
    for metric, words in METRICS.items():
        for match in re.finditer(rf"(?i){words} (?:agrees? )?within ([\d.]+) ?%", text):
            of_metric = rows[(rows["metric"] == metric) & rows["node"].isin(same)]
            largest = 100 * float(of_metric["difference"].abs().max())
            if largest > float(match[1]) + 0.1:
                yield f"{match[0]}: a node that is the same differs by {largest:.1f}%"


def _most(text: str, campaign: Campaign) -> Iterator[str]:
    """The node named for the largest finding in a measurement has it: no other finding is more times its tolerance."""
    for match in re.finditer(
        r"(\S+)(?: \(in [^()]*\))?, the node with the largest finding in (.+?), on one scale", text
    ):
        sizes: dict[str, float] = {}
        for name, node in campaign.nodes.items():
            of_it = (f for f in node["findings"] if measured_words(f["measurement"]) == re.escape(match[2].lower()))
            sizes[name] = max((times(finding) for finding in of_it if not finding["waived"]), default=0.0)
        if sizes.get(match[1], 0.0) < max(sizes.values()):
            yield f"{match[1]} has a finding of {sizes.get(match[1])} tolerances, another node of {max(sizes.values())}"


def _shared(text: str, campaign: Campaign) -> Iterator[str]:
    """What one effect says of several nodes, all of them have; else it is the largest of so many, or a range."""
    for match in re.finditer(_SEVERAL, text):
        nodes = [node for node in unfolded(match["nodes"]) if node in campaign.nodes]
        if re.search(r"(?i)largest of|worst (of|on)|the largest", match["between"]) or len(nodes) < 2:
            continue
        of_each = [campaign.nodes[node]["findings"] for node in nodes]
        of_metric = [[f for f in of if measured_words(f["measurement"]) in re.escape(text.lower())] for of in of_each]
        effects = [100 * abs(f["effect"]) for of in (of_metric if all(of_metric) else of_each) for f in of[:1]]
        low, high = (float(end) if end else math.nan for end in (match["low"], match["high"]))
        low = high if math.isnan(low) else low
        if len(effects) == len(nodes) and not (abs(min(effects) - low) <= 0.06 and abs(max(effects) - high) <= 0.06):
            shown = f"{min(effects):.1f} to {max(effects):.1f}%"
            yield f"{match['nodes']}: {match['high']}% is stated for all, their effects are {shown}"


_SEVERAL = re.compile(
    r"(?P<nodes>[\w.-]*\[[\d,-]+\]\S*?)(?: share|:| \|)(?P<between>[^;]*?)(?:(?P<low>[\d.]+)%? to [+-]?)?"
    r"(?P<high>[\d.]+) ?% (?:slower|faster|longer|shorter|higher|lower|below|\|)"
)


def _same(text: str, campaign: Campaign) -> Iterator[str]:
    """As many nodes are the same as the verdict has."""
    same = campaign.verdict["fleet"]["counts"].get("SAME", 0)
    for match in re.finditer(r"(\d+) of (\d+) nodes? (?:match|are the same|is the same|verified)", text):
        if (int(match[1]), int(match[2])) != (same, len(campaign.nodes)):
            yield f"{match[0]}: {same} of {len(campaign.nodes)} are"


def _closest(statement: Statement, campaign: Campaign) -> Iterator[str]:
    """The node named as closest to a tolerance has this agreement, in this metric and component."""
    cells, text = dict(statement.cells), statement.text
    row = re.search(r"^(.*), ([^\s,]+)$", cells.get("closest of the nodes that match", ""))
    named = [(cells["metric"], row[2], cells["the same within"].rstrip("%"), row[1])] if row else []
    named += [(text[: of.start()].rstrip(), of["node"], of["within"], of["what"]) for of in _CLOSEST.finditer(text)]
    known = (one for one in named if re.fullmatch(r"[\d.]+", one[2]))  # others say why none is known
    for metric, node, within, what in known:
        half = 0.5 * 10.0 ** -len(within.partition(".")[2]) + 1e-9
        agreements = campaign.nodes[node]["agreements"] if node in campaign.nodes else ()  # else a part of a component
        if node in campaign.nodes and not any(
            abs(100 * one["within"] - float(within)) <= half
            and re.search(f"{metric_words(one['metric'])}$", metric.lower())
            and all(re.search(word, what.lower()) for word in component_words(one["component"]))
            for one in agreements
        ):
            yield f"{node} has no agreement within {within}% ({what})"


_CLOSEST = re.compile(r"(?P<within>[\d.]+)% of [\d.]+% \((?P<what>(?:[^()]|\([^()]*\))*), (?P<node>[^\s(),]+)\)")


def _left_out(statement: Statement, campaign: Campaign) -> Iterator[str]:
    """The nodes that a row of medians leaves out are those whose two runs disagree, and no others are missing."""
    cells = dict(statement.cells)
    if not {"measurement", "of", "nodes", "lowest"} <= cells.keys():
        return
    behind = re.compile(r" \((?=runs disagree on |other groups of values on |\))")
    kind, _, said = behind.sub("\0", cells["of"]).partition("\0")
    of_kind = {
        name: runs_disagree(row) or not _is_of_group(row, kind)
        for name, node in campaign.nodes.items()
        for row in (*node["classes"], *node["cells"])
        if re.match(measured_words(row["measurement"]) + r"(, home .*)?$", cells["measurement"].lower())
        and re.match(cell_words(row["name"]) + ("(, .*)?$" if "pairs" in row else "$"), kind.lower())
    }
    missing = {name for name, is_so in of_kind.items() if is_so}
    said = re.sub("runs disagree on |other groups of values on ", "", said.removesuffix(")"))
    named = {name for word in re.split(r",(?![^\[]*\])|; ", said) for name in unfolded(word) or [word]} - {""}
    counted = re.fullmatch(r"(\d+) nodes?", said)
    if of_kind and (int(counted[1]) != len(missing) if counted else named != missing):
        yield f"{cells['of']}: left out are {', '.join(missing) or 'none'}, not {said}"
    if of_kind and int(cells["nodes"]) != len(of_kind) - len(missing):
        yield f"{cells['of']}: of {len(of_kind)} nodes {len(missing)} are left out, which leaves not {cells['nodes']}"


def _is_of_group(row: Json, of: str) -> bool:
    """Whether a row of a table is of the median of a figure, or of a group of its mixture."""
    return of in [f"{row['name']}, {group}" for group in row["groups"]] if row.get("groups") else True


def _worst(text: str, campaign: Campaign) -> Iterator[str]:
    """No node of the worst class has a finding that hurts more than those of the node that is called the worst."""
    for match in re.finditer(r"The worst is (\S+): ", text):
        harm = {
            name: (-_CLASSES.index(node["class"]), *max(_harm(finding, node["outcome"]) for finding in findings)[1:])
            for name, node in campaign.nodes.items()
            if (findings := [finding for finding in node["findings"] if not finding["waived"]])
        }
        if harm.get(match[1]) != max(harm.values(), default=None):
            yield f"{match[1]} is not the worst: {max(harm, key=lambda name: harm[name])}"


_CLASSES = ("FAIL", "WARN", "UNDETERMINED", "NOT COMPARED", "PASS")


#: The state of the findings that give a node its outcome.
_STATE_OF = {"DEVIATES": "confirmed", "INTERMITTENT": "intermittent", "SUSPECT": "suspected", "MISMATCH": "mismatch"}


def _harm(finding: Json, outcome: str) -> tuple[bool, int, float]:
    """Findings that give their node its outcome come first. Of them, wrong results and other events hurt most, then
    what a contract excludes, then the bad side of a tolerance."""
    decides = _STATE_OF.get(outcome) == finding["state"]
    if not finding["measurement"] and not finding["component"]["term"].startswith("fabric-"):
        return decides, 3, 0.0
    if finding["id"] == "limit":
        return decides, 2, abs(finding["effect"])
    return decides, int(finding["worse"]), finding["times_tolerance"]


def _both(text: str, campaign: Campaign) -> Iterator[str]:
    """Two nodes that a caption calls the same are."""
    for match in re.finditer(r"(\S+), a typical node, and (\S+), both SAME", text):
        for name in match.groups():
            if campaign.nodes[name]["outcome"] != "SAME":
                yield f"{name} is {campaign.nodes[name]['outcome']}"


def _all(text: str, campaign: Campaign) -> Iterator[str]:
    """All nodes are the same, or none is, as the verdict says."""
    same, count = campaign.verdict["fleet"]["counts"].get("SAME", 0), len(campaign.nodes)
    if re.search(r"\bAll (?:\d+ )?nodes? (?:are the same|match|agree)", text) and same < count:
        yield f"{same} of {count} are the same, not all"
    if re.search(r"\b(?:None|No node) (?:of the nodes )?(?:differs|deviates|is the same)", text) and same not in (
        0,
        count,
    ):
        yield f"{same} of {count} are the same, not none"


def _measured(text: str, campaign: Campaign) -> Iterator[str]:
    """The nodes that are listed as measured are."""
    for match in re.finditer(r"of \d+ measured: ([^\s\N{HORIZONTAL ELLIPSIS}]+)(?= \||$)", text):
        listed = {name for part in re.split(r",(?![^\[]*\])", match[1]) for name in unfolded(part) or [part]}
        measured = {name for name, node in campaign.nodes.items() if node["outcome"] != "NOT MEASURED"}
        if listed != measured:
            yield f"listed as measured, or not: {', '.join(sorted(listed ^ measured))}"


def _counted(text: str, campaign: Campaign) -> Iterator[str]:
    """The system counts throttling and memory errors; wrong results are found by a kernel."""
    found = {finding["id"] for node in campaign.nodes.values() for finding in node["findings"]}
    if re.search("system counted|counted by the system|system's counter", text) and found == {"wrong-result"}:
        yield "a wrong result is found by a kernel, which can be run again"


def _factor(text: str, campaign: Campaign) -> Iterator[str]:
    """A factor is that of the two values beside it."""
    for match in re.finditer(r"factor of ([\d.]+) \([^()]*?([\d.]+) (\S+) in [^,()]+, ([\d.]+) (\S+) in", text):
        first, last = (
            float(value) * _SIZES.get(unit[0], 1.0) for value, unit in (match.group(2, 3), match.group(4, 5))
        )
        factor, decimals = max(first, last) / min(first, last), len(match[1].partition(".")[2])
        if abs(factor - float(match[1])) > 0.5 * 10.0**-decimals + 0.02 * factor:
            yield f"{match[0]}: the factor of these values is {factor:.2f}"


_SIZES = {"µ": 1e3, "m": 1e6, "k": 1e3, "M": 1e6, "G": 1e9}


def _defined(text: str, campaign: Campaign) -> Iterator[str]:
    """`The same` has one definition: the whole 90% interval is inside the tolerance."""
    del campaign
    match = re.search(r"(?i)\b(?:is|are) (?:accepted as )?the same[^.;]*? (?:if|where|when) ([^.;]*)", text)
    if match and "interval" not in match[1]:
        yield f"another definition of the same: {match[0]}"


def _effects(text: str, campaign: Campaign) -> Iterator[str]:
    """Statements with a direction that no finding of the named component has, or messages whose sender and receiver
    are exchanged."""
    links = [finding["component"]["where"] for of in campaign.verdict["fabric"] for finding in of["findings"]]
    for match in _LINK.finditer(text):
        if not any((match["node"], match["to"]) == (of["node"], of.get("to")) for of in links):
            yield f"{match[0]}: the other direction was found"
    for match in _SENDS.finditer(text):
        sends, receives = match["how"] != "when it receives", match["how"] != "when it sends"
        of_node = [of for of in links if of["node"] == match["node"] and "to" not in of]
        if of_node and not any((sends, receives) == (bool(of["sends"]), bool(of["receives"])) for of in of_node):
            yield f"{match[0]}: the other direction was found"
    for match in _EFFECT.finditer(text):
        size, half = float(match["size"]), 0.5 * 10.0 ** -len(match["size"].partition(".")[2]) + 1e-9
        equal = [one for one in _differences(campaign) if abs(100 * abs(one["effect"]) - size) <= half]
        if not equal:
            continue
        directed = [one for one in equal if match["word"] in _directions(one)]
        if not match["verb"] and directed:
            continue
        if not directed:
            yield f"{match[0]}: the other direction was found"
        of = text[: match.start()].rpartition(". ")[2].lower()
        named = [one for one in directed if all(re.search(word, of) for word in component_words(one["component"]))]
        if directed and not named and _COMPONENT.search(of):
            yield f"{of}{match[0]}: this was not found of it"


def _drawn(text: str, campaign: Campaign) -> Iterator[str]:
    """The figure of a finding draws the places that the effect of a finding of its node is of."""
    for match in _DRAWN.finditer(text):
        findings = campaign.nodes[match["node"]]["findings"] if match["node"] in campaign.nodes else ()
        of_effects = [of if isinstance(of := one["figures_of"], dict) else one["component"] for one in findings]
        what = match["what"].lower()
        if findings and not any(all(re.search(word, what) for word in component_words(of)) for of in of_effects):
            yield f"{match['what']}: no effect on {match['node']} is of it"


_DRAWN = re.compile(r" of (?P<node>\S+) in(?:side)? (?P<what>[^.]+?) \(triangles?\)")
_EFFECT = re.compile(
    r"(?P<verb>\b(?:is|are|was|were) )?(?<![\d.])(?P<size>\d+\.?\d*) ?% "
    r"(?P<word>slower|faster|longer|shorter|higher|lower)\b"
)
#: Messages of one direction, and when those of a node are slow.
_LINK = re.compile(r"[Ff]rom (?P<node>\S+) to (?P<to>\S+) (?:is|are|was|were) [\d.]+ ?%")
_SENDS = re.compile(
    r"(?P<node>\S+) (?:is|are|was|were) [\d.]+ ?% \w+ with every other node (?P<how>in both directions|when it \w+)"
)
_COMPONENT = re.compile(r"\b(?:core|cc[xd]|cluster|socket|quadrant|numa node) \d")


def _differences(campaign: Campaign) -> Iterator[Json]:
    for node in campaign.nodes.values():
        yield from node["findings"]
    fleet = campaign.verdict["fleet"]
    yield from (one for key in ("shared", "gaps", "groups") for one in fleet[key] if isinstance(one["component"], dict))
    yield from fleet["over_time"]
    yield from (finding for fabric in campaign.verdict["fabric"] for finding in fabric["findings"])


def _directions(one: Json) -> tuple[str, ...]:
    """The words for the direction of an effect: what takes a longer time is slower."""
    is_more = one["effect"] > 0
    is_time = one.get("unit", "ns") in ("ns", "us", "s")
    of_time = ("longer" if is_more else "shorter",) if is_time else ()
    return "slower" if is_more == is_time else "faster", "higher" if is_more else "lower", *of_time


def _outcomes(statement: Statement, campaign: Campaign) -> Iterator[str]:
    """The outcome of a node is that of the verdict; a row of all campaigns is a report's (`false_report`)."""
    if "result" in dict(statement.cells):
        return
    outcomes = {name: f"{node['class']} ({node['outcome']})" for name, node in campaign.nodes.items()}
    for match in re.finditer(r"\b[A-Z][A-Z ]*[A-Z] \([A-Z][A-Z ]*[A-Z]\)", statement.text):
        for node in _nodes_of(statement, match, outcomes):
            if match[0] != outcomes[node]:
                yield f"{node} is {outcomes[node]}, not {match[0]}"


def _headlines(statement: Statement, campaign: Campaign) -> Iterator[str]:
    """The class of the fleet is that of the verdict."""
    fleet = campaign.verdict["fleet"]["class"]
    match = re.search(r"([A-Z][A-Z ]*[A-Z]) \([A-Z][A-Z -]*[A-Z]\): \d+ of \d+ nodes", statement.text)
    if match and match[1] != fleet:
        yield f"the fleet is {fleet}, not {match[1]}"


_MARK = re.compile(r"\S ([A-Z][A-Z ]*[A-Z]) \(([A-Z][A-Z -]*[A-Z])\)")


def _marks(statement: Statement, campaign: Campaign) -> Iterator[str]:
    """An outcome by itself is that of the fleet or of a node; the count in its row is the number of such nodes."""
    mark, fleet = _MARK.fullmatch(statement.text), campaign.verdict["fleet"]
    if not mark or not re.match(r"Cluster report|\S+cluster\.pdf \|", statement.context):
        return
    count = fleet["counts"].get(mark[2], 0)
    if not count and (mark[1], mark[2]) != (fleet["class"], fleet["outcome"]):
        yield f"neither the fleet nor a node is {statement.text}"
    counted = re.match(rf"\S+cluster\.pdf \| {re.escape(statement.text)} \| (\d+) \|", statement.context)
    if counted and count != int(counted[1]):
        yield f"{count} nodes are {mark[2]}, not {counted[1]}"


def _found(statement: Statement, campaign: Campaign) -> Iterator[str]:
    """What a node is said to have was found on it, of this component."""
    for match in _OF_NODE.finditer(statement.text):
        node = match["of"] or match["node"] or statement.context.split(" | ")[1]
        what = match["lies"] or match["runs"] or match["what"]
        if node in campaign.nodes and _COMPONENT.search(what.lower()) and not _has(campaign.nodes[node], what):
            yield f"{what}: this was not found on {node}"
        elif match["of"] and match["of"] not in campaign.nodes:
            yield f"{match['of']}: no node"
    cells = [cell for _, cell in statement.cells]
    nodes = _known(cells[:1], campaign.nodes) if len(cells) > 2 and re.search(r"[A-Z]{4}", cells[1]) else []
    nodes = [] if nodes and "of the nodes are within" in cells[2] else nodes  # what is found of a fleet
    farthest = re.search(r"most on (\S+): ", cells[2]) if nodes else None
    for node in [farthest[1]] if farthest and farthest[1] in nodes else nodes:
        if _COMPONENT.search(cells[2].lower()) and not (_has(campaign.nodes[node], cells[2]) or "group " in cells[2]):
            yield f"{cells[2]}: this was not found on {node}"


_OF_NODE = re.compile(
    r"(?P<lies>[^|.]+?) of (?P<of>\S+) differs by [+-]|\d+ of \d+ runs of (?P<runs>[^|.]+?) (?:is|are) beyond"
    r"|^(?:(?P<node>\S+): )?(?P<what>[^:|.]+?) [^\w\s(),.-] (?:seen|found|in) "
)


def _has(node: Json, what: str) -> bool:
    """Whether a finding of a node, or what is not resolved on it, is of a component that is named."""
    of = node["agreements" if "may differ" in what else "findings"]
    return any(all(re.search(word, what.lower()) for word in component_words(one["component"])) for one in of)


def _nodes_of(statement: Statement, match: re.Match[str], known: Iterable[str]) -> list[str]:
    """The nodes whose outcome is said: they stand in front of it or behind it, in its row, or in its heading."""
    text = statement.text
    before = re.search(r"(\S+): $", text[: match.start()])
    behind = re.match(r": ([\w.-]+(?:\[[\d,-]+\])?(?:, [\w.-]+(?:\[[\d,-]+\])?)*)", text[match.end() :])
    said = [before[1]] if before else behind[1].split(", ") if behind else [cell for _, cell in statement.cells]
    nodes = _known(said, known)
    return nodes or ([] if behind else _known(statement.context.split(" | ")[:-1][-1:], known))


def _known(words: Iterable[str], known: Iterable[str]) -> list[str]:
    return [node for word in words for node in (unfolded(word) or [word]) if node in known]


def unnamed(paper: str, campaign: Campaign) -> Sequence[str]:
    """The nodes that do not pass and that a page does not name."""
    named = set(re.findall(r"[\w.-]+", paper)).union(*map(unfolded, re.findall(r"[\w.-]*\[[\d,-]+\]", paper)))
    return [name for name, node in campaign.nodes.items() if node["outcome"] != "SAME" and name not in named]
