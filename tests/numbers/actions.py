"""What is to be done about a node, how an acceptance report decides, and which settings differ: each by the verdict."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from nodeprint.machine.fingerprint import FIELDS, label
from nodeprint.settings.measurements import terms
from nodeprint.settings.texts import texts
from tests.numbers.campaign import Campaign, Json, component_words
from tests.numbers.statements import Statement, unfolded

# --- what to do ---

#: What stands around a remedy.
_AROUND = re.compile(
    r"^(?:Confirm it by another job\. |Next: .*?\bmeasures? it again[^.]*\. )If it is confirmed: |^Next: "
    r"| After the remedy: .*$"
)
#: States of a finding that another job decides.
_DECIDED_AGAIN = ("suspected", "intermittent")


def false_actions(statement: Statement, judged: Sequence[Campaign]) -> Iterator[str]:
    """An action that the findings of its nodes, or the reasons of those without, do not stand for."""
    cells = dict(statement.cells)
    is_next = statement.text.startswith("Next: ")
    action = statement.text if is_next else cells.get("what to do", cells.get("next"))
    if action is None:
        return
    around = statement.context.removesuffix(statement.text)
    row = " | ".join(text for header, text in statement.cells if header not in ("what to do", ""))
    nodes = _nodes_in(cells.get("node", around), judged)
    for node in nodes:
        if "SPLIT" in cells.get("outcome", ""):  # what separates its groups says what to do
            continue
        place = row if "node" in cells else around
        known = [one for campaign in judged for one in _known(campaign, node, nodes, place)]
        right = [again for again, sentences in known if _AROUND.sub("", action) in sentences]
        if known and not right:
            yield f"{node}: {action} is not what its finding or reason stands for"
        is_first = bool(re.match(r"(Confirm it by|Next: .*?\bmeasures? it again[^.]*\. If it is confirmed: )", action))
        if right and is_first not in right:
            yield f"{node}: whether another job comes first is wrong"
        if (again := re.search(r"NODES=(\S+) measures", action)) and again[1] not in (node, "NAME"):
            yield f"{again[0]}: this is about {node}"


def _nodes_in(words: str, judged: Sequence[Campaign]) -> list[str]:
    known = {name for campaign in judged for name in campaign.nodes}
    every = re.findall(r"[\w.-]+(?:\[[\d,-]+\])?", words)
    return list(dict.fromkeys(name for word in every for name in unfolded(word) or [word] if name in known))


def _known(campaign: Campaign, node: str, nodes: Sequence[str], place: str) -> list[tuple[bool, tuple[str, ...]]]:
    """Whether another job comes first, and the correct actions, for each finding of a node, or only for the finding
    that `place` names. Without findings, those for the node's first reason, or for the agreements of all `nodes` that
    the action is for."""
    if node not in campaign.nodes:
        return []
    links = [
        finding
        for fabric in campaign.verdict["fabric"]
        for finding in fabric["findings"]
        if (where := finding["component"]["where"])["node"] == node and f"to {where.get('to')}" in place
    ]
    own = [finding for finding in campaign.nodes[node]["findings"] if not finding["waived"]]
    of_each = [(one, component_words(one["component"])) for one in own]
    named = [one for one, words in of_each if words and all(re.search(word, place.lower()) for word in words)]
    if findings := links or named or own:
        return [(finding["state"] in _DECIDED_AGAIN, (remedy(finding, campaign),)) for finding in findings]
    reasons = campaign.nodes[node]["reasons"]
    if reasons and reasons[0]["why"] == "not resolved within the tolerance":
        resolving = _resolving([campaign.nodes[name] for name in nodes if name in campaign.nodes])
        return [(False, (resolving, *_of_reason(reasons[0])))]
    return [(False, _of_reason(reasons[0]))] if reasons and reasons[0]["outcome"] != "SPLIT" else []


def remedy(finding: Json, campaign: Campaign) -> str:
    """The sentence for what a finding stands for: its key, or its term, and a node to compare with."""
    sentences, term = texts()["remedies"], terms().get(finding["component"]["term"])
    if finding["state"] == "mismatch":
        return str(texts()["remedy_of_few"])
    of_term = term.remedy if term is not None else sentences.get(finding["component"]["term"])
    peer = "same" if any(node["outcome"] == "SAME" for node in campaign.nodes.values()) else "other"
    words = str(sentences.get(finding["remedy"]) or of_term or sentences["other"])
    return words.replace("{peer}", texts()["remedy_peers"][peer])


#: Reasons that have another action in a table of another program's values, or under background load.
_ALSO = {
    "one run": ("one run of a table", "one run of pairs"),
    "not resolved within the tolerance": ("busy",),
}


def _of_reason(reason: Json) -> tuple[str, ...]:
    key = reason["why"] if isinstance(reason["why"], str) else reason["outcome"]
    return tuple(str(texts()["reason_actions"].get(of, "")) for of in (key, *_ALSO.get(key, ())))


def _resolving(nodes: Iterable[Json]) -> str:
    """What resolves the criteria beyond their tolerances, each by the agreement that is farthest beyond."""
    farthest: dict[str, Json] = {}
    for of in (of for node in nodes for of in node["agreements"] if of["criterion"]):
        if _share(of) > max(1.0, _share(farthest[of["metric"]]) if of["metric"] in farthest else 0.0):
            farthest[of["metric"]] = of
    metrics: dict[str, list[str]] = {}
    for of in sorted(farthest.values(), key=lambda of: -_share(of)):
        own = texts()["agreement_remedies_of_tables"] if of["measurement"] == of["metric"] else {}
        job, _, run = of["run"].partition("/run")
        values = {"needed": of["needed"], "runs": of["runs"], "run": f"run {run} of {job}", "of_jobs": "in all"}
        words = str(own.get(of["remedy"]) or texts()["agreement_remedies"].get(of["remedy"], "")).format(**values)
        metrics.setdefault(words, []).append(_name(of["metric"]))
    if len(metrics) < 2:
        return "".join(f"{words[:1].upper()}{words[1:]}." for words in metrics if words)
    return " ".join(f"{' and '.join(of).capitalize()}: {words}." for words, of in metrics.items() if words)


def _share(agreement: Json) -> float:
    """The share of its tolerance; infinite if nothing is known of it, which is null in the file."""
    share = float(agreement["share"])
    return math.inf if math.isnan(share) else share


def _name(metric: str) -> str:
    term = terms().get(metric)
    return str(texts()["metrics"].get(metric) or (term.name if term is not None else metric))


# --- the acceptance report ---

#: Outcomes of nodes that a report calls open though their class is WARN, and of fleets without a majority.
_OPEN_WARNING, _NO_MAJORITY = "DIFFERENT CONFIGURATION", ("SPLIT", "NON-UNIFORM")
_DECISIONS = ("accepted", "accepted with reservations", "not decided", "rejected")
#: A report accepts with reservations from so many of ten nodes on.
_MAJORITY = 6
#: A cell of an outcome or a decision behind its symbol.
_MARK = re.compile(r"[^\w\s] (.+)")


def false_report(paper: str, judged: Iterable[Campaign]) -> Iterator[str]:
    """What an acceptance report says of the decision, of nodes and of campaigns, and the verdicts do not."""
    lines = paper.splitlines()
    header = next(
        (line.split(" | ") for line in lines if line.startswith("node | ") and line.endswith(" | result")), []
    )
    by_name = {campaign.verdict["campaign"]: campaign for campaign in judged}
    reported = [by_name[name] for name in header if name in by_name]
    results = dict(_results(reported))
    if (said := next((mark[1] for line in lines if (mark := _MARK.fullmatch(line))), "")) != _decision(
        list(results.values()), reported
    ):
        yield f"the decision is {_decision(list(results.values()), reported)}, not {said}"
    start = lines.index(" | ".join(header)) + 1 if header else 0
    of_nodes: dict[str, list[str]] = {}
    for cells in (line.split(" | ") for line in lines[start:]):
        if cells[0] in results:
            of_nodes[cells[0]] = [mark[1] for cell in cells if (mark := _MARK.fullmatch(cell))]
    for node, result in results.items():
        of_each = [campaign.nodes.get(node) for campaign in reported]
        expected = [f"{of['class']} ({of['outcome']})" for of in of_each if of is not None] + [result]
        if of_nodes.get(node) != expected:
            yield f"{node}: {', '.join(of_nodes.get(node, ['not listed']))}, and not {', '.join(expected)}"
    yield from _without_action(lines, reported)
    for campaign in reported:
        name = campaign.verdict["campaign"]
        of_name = rf"{re.escape(name)} \| ([^|]*\d{{4}}-|not recorded)"
        row = next((line for line in lines if re.match(of_name, line)), "")
        if f" {_class(campaign)} (" not in row:
            yield f"{name}: its class is {_class(campaign)}, not as in {row}"


def _without_action(lines: Iterable[str], reported: Sequence[Campaign]) -> Iterator[str]:
    """Open items whose last cell before the date is none of the actions that their nodes stand for."""
    for cells in (line.split(" | ") for line in lines if line.endswith(" | \u25a1")):
        nodes = _nodes_in(" ".join(cells[:2]), reported)
        known = [one for campaign in reported for node in nodes for one in _known(campaign, node, nodes, "")]
        known = [] if all(of == (False, ("",)) for of in known) else known  # the action is in the reason
        if known and not any(_AROUND.sub("", cells[-3]) in right for _, right in known):
            yield f"{cells[0]}: {cells[-3]} is no action for {', '.join(nodes)}"


def _class(campaign: Campaign) -> str:
    """The class of a campaign: that of its fleet, or of the messages between its nodes if that is worse."""
    states = [
        finding["state"] for of in campaign.verdict["fabric"] for finding in of["findings"] if not finding["waived"]
    ]
    order = ("FAIL", "WARN", "UNDETERMINED", "NOT COMPARED", "PASS")
    between = ["FAIL" if state == "confirmed" else "WARN" for state in states]
    return min((str(campaign.verdict["fleet"]["class"]), *between), key=order.index)


def _results(reported: Sequence[Campaign]) -> Iterator[tuple[str, str]]:
    """Each node with its result over all campaigns."""
    for node in dict.fromkeys(name for campaign in reported for name in campaign.nodes):
        of_each = [campaign.nodes.get(node) for campaign in reported]
        found = [of for of in of_each if of and of["class"] in ("FAIL", "WARN") and of["outcome"] != _OPEN_WARNING]
        passed = all(of and of["class"] == "PASS" for of in of_each)
        yield node, "deviation" if found else "accepted" if passed else "open"


def _decision(results: Sequence[str], reported: Sequence[Campaign]) -> str:
    """The decision by the rule that the report states."""
    accepted, deviating, all_of = results.count("accepted"), results.count("deviation"), len(results)
    fleets = [campaign.verdict["fleet"] for campaign in reported]
    classes = {_class(campaign) for campaign in reported}
    if accepted == all_of and classes == {"PASS"} and not any(fleet["memory"] for fleet in fleets):
        return _DECISIONS[0]
    if any(fleet["outcome"] in _NO_MAJORITY for fleet in fleets) or 10 * (all_of - deviating) < _MAJORITY * all_of:
        return _DECISIONS[3]
    return _DECISIONS[1] if all_of and 10 * accepted >= _MAJORITY * all_of else _DECISIONS[2]


# --- settings that differ ---


def false_settings(statements: Iterable[Statement], campaign: Campaign) -> Iterator[str]:
    """What the table of settings that differ has of no node, or lacks."""
    rows = {
        cells["field"]: cells for one in statements if (cells := dict(one.cells)).keys() >= {"field", "other nodes"}
    }
    for field in FIELDS:
        values = {
            name: str(of["fingerprint"][field.name])
            for name, of in campaign.nodes.items()
            if of["fingerprint"].get(field.name)
        }
        counts = sorted(Counter(values.values()).items(), key=lambda item: (-item[1], item[0]))
        if len(counts) < 2 or field.name == "serials":
            continue
        row = rows.get(label(field.name), {"most frequent": "", "other nodes": "nothing", "must agree": ""})
        listed = dict(re.findall(r"(\S[^;]*?): ([\w.,\[\]-]+)(?:; |$)", row["other nodes"]))
        nodes = {
            value: sorted(name for word in re.split(r",(?![^\[]*\])", of) for name in unfolded(word) or [word])
            for value, of in listed.items()
        }
        expected = {value[:60]: sorted(name for name in values if values[name] == value) for value, _ in counts[1:5]}
        usual = f"{counts[0][0][:60]} ({counts[0][1]})"
        if nodes != expected or row["most frequent"] != usual or (row["must agree"] == "yes") is not field.hard:
            yield f"{label(field.name)}: {row['most frequent']}; {row['other nodes']}, and not {usual}; {expected}"
    extra = rows.keys() - {label(field.name) for field in FIELDS}
    yield from (f"{field} is no setting" for field in extra)


_OWN = re.compile(r"(?P<own>[^;:(]+?) \(other nodes: (?P<usual>[^)]*)\)")


def false_differences(statement: Statement, campaign: Campaign) -> Iterator[str]:
    """A setting of a node, or of most nodes, that the survey does not have so."""
    nodes = _nodes_in(
        statement.context.partition(": ")[0] if len(statement.cells) == 1 else statement.cells[0][1], [campaign]
    )
    for match in _OWN.finditer(statement.text):
        for node in nodes:
            fields = campaign.nodes[node]["fingerprint"]
            if not any(
                match["own"].strip() == f"{label(key)} {value}"
                and any(str(of["fingerprint"].get(key)) == match["usual"] for of in campaign.nodes.values())
                for key, value in fields.items()
            ):
                yield f"{node}: {match[0]} is not in its survey"
