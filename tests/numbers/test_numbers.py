"""Every printed number has its source: of golden campaigns `python -m tests.golden check` says so. Here the check is
tried itself, with numbers and sentences that are false."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from tests.golden.recording import Made, made
from tests.numbers import check, claims, random_campaigns
from tests.numbers.campaign import campaigns
from tests.numbers.check import Number
from tests.numbers.statements import Statement, statements

#: A false number is taken for a true one in at most so many of a hundred cases, of each unit.
_MOST_TAKEN = 5


@cache
def _made(name: str) -> Made:
    return made(name)


@cache
def _checked(name: str) -> check.Defects:
    return check.Defects(*_made(name))


def _defects(name: str, change: Callable[[str], str]) -> list[str]:
    """What is false in a campaign after a change of everything that is said of it."""
    of = _made(name)
    said = {file: text if file.endswith((".csv", ".json")) else change(text) for file, text in of.artifacts.items()}
    return list(check.without_source(said, _checked(name)))


@pytest.mark.parametrize("name", ["core", "same", "linktest"])
def test_a_false_number_has_none(name: str) -> None:
    of, taken, all_of = _made(name), Counter[str](), Counter[str]()
    defects, generator = _checked(name), random.Random(1)
    for statement in statements(of.artifacts):
        for number in check.numbers(statement, defects.quotes) if not defects.of(statement) else ():
            if number.unit in ("%", "ns", "B/s", "times"):
                all_of[number.unit] += 1
                taken[number.unit] += not defects.of(_with_false(statement, number, generator))
    assert all(all_of[unit] > 50 for unit in ("%", "ns"))
    assert all(100 * taken[unit] <= _MOST_TAKEN * count for unit, count in all_of.items()), (taken, all_of)


def _with_false(statement: Statement, number: Number, generator: random.Random) -> Statement:
    """A statement with another number of as many digits: up to half more or less, and another in its last digit."""
    token = number.token
    decimals = len(token.partition(".")[2])
    units = round(abs(float(token)) * 10**decimals)
    other = units + generator.choice((-1, 1)) * generator.randint(1, max(1, units // 2))
    false = f"{token[0] if token[0] in '+-' else ''}{other / 10**decimals:.{decimals}f}"
    cells = tuple(
        (header, re.sub(rf"(?<![\d.]){re.escape(token)}(?![\d.])", false, cell)) for header, cell in statement.cells
    )
    return replace(statement, cells=cells)


_OPPOSITES = {
    **{"slower": "faster", "faster": "slower", "higher": "lower", "lower": "higher"},
    **{"longer": "shorter", "shorter": "longer"},
}
#: Words that claim something, and what is false in their place.
_WORDS: dict[str, tuple[str, Callable[[re.Match[str]], str]]] = {
    "directions": (r"(?<=% )(slower|faster|longer|shorter|higher|lower)\b", lambda word: _OPPOSITES[word[1]]),
    "components": (r"\b([Cc]ore|CC[DX]|[Ss]ocket|NUMA node) (\d+)\b", lambda word: f"{word[1]} {int(word[2]) + 1}"),
    "outcomes": (
        r"\b([A-Z][A-Z ]*[A-Z]) \([A-Z][A-Z ]*[A-Z]\)",
        lambda word: "FAIL (DEVIATES)" if word[1] == "PASS" else "PASS (SAME)",
    ),
}
#: Of so many of a hundred statements it is detected.
_DETECTED = 90


@pytest.mark.parametrize("kind", _WORDS)
def test_a_false_word_is_detected(kind: str) -> None:
    pattern, instead = _WORDS[kind]
    detected = []
    for name in ("core", "memory", "sockets", "linktest", "fabric"):
        of = _made(name)
        defects = _checked(name)
        for statement in dict.fromkeys(statements(of.artifacts)):
            if word := re.search(pattern, statement.text):
                false = re.compile(rf"\b{re.escape(word[0])}(?!\d)")
                said = (statement.text, false.sub(instead(word), statement.text))
                cells = tuple((header, false.sub(instead(word), cell)) for header, cell in statement.cells)
                changed = replace(statement, context=statement.context.replace(*said), cells=cells)
                detected.append(bool(defects.of(changed)))
    assert len(detected) > 20
    assert 100 * sum(detected) > _DETECTED * len(detected), f"{sum(detected)} of {len(detected)}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4, 11])
def test_campaigns_that_nobody_chose_have_only_numbers_with_a_source(seed: int) -> None:
    """`make fuzz` draws others."""
    assert list(random_campaigns.without_source(seed)) == []


#: What pages have said and was false, by what it is: campaign, what was said instead of what is said today.
_FALSE = {
    "a headline has the figure of a part that differs less": (
        "same",
        "core-to-core latency 2.1% of 3%",
        "core-to-core latency within 1.1% of 3%",
    ),
    "a row has the largest effect of several nodes for all": (
        "many-nodes",
        "-6.9 to -7.2% on 5 nodes, the worst on n022: events",
        "Events",
    ),
    "the same is defined by the difference alone": (
        "core",
        "Read it, then decide.",
        "A node is the same where it differs by less than its tolerance.",
    ),
    "a figure is of another node than it says": (
        "core",
        "node004, the node with the largest finding",
        "node001, the node with the largest finding",
    ),
    "two nodes of which one is not the same": (
        "core",
        "node004, the node with the largest finding in core-to-core latency, on",
        "node004, both SAME, on",
    ),
    "the headline names a node that is not the closest to its tolerance": (
        "same",
        "CCD 0, node002)",
        "CCD 0, node001)",
    ),
    "a row names a node that is not the closest": ("same", "CCD 0, node002<", "CCD 0, node001<"),
    "one of several tolerances is stated for all": ("same", ">2 to 10.7%<", ">2%<"),
    "a node that was not measured is listed as measured": (
        "not-measured",
        "measured: node[000,002-006]",
        "measured: node[000-006]",
    ),
    "a processor has as many cores as the node": ("sockets", "8 cores each", "16 cores each"),
    "memory of another size": ("core", "1 GiB, 8 x", "2 GiB, 8 x"),
    "a figure has one tolerance for all parts": ("core", "tolerance of 4%", "tolerance of 10.7%"),
    "a figure has another scale": ("core", "28 pairs from 22.7 ns", "28 pairs from 27.7 ns"),
    "a wrong result is described as the system's": (
        "wrong-result",
        "Read it, then decide.",
        "The system counted it during the measurement.",
    ),
    "numbers of one page disagree": ("core", "9.15 ns less", "7.15 ns less"),
    "a figure draws another component than its finding": (
        "core",
        "node001 in core 3 (CPU 3) to",
        "node001 in core 4 (CPU 3) to",
    ),
    "few pairs have the effect": ("core", ">6 of 6<", ">5 of 6<"),
    "a table disagrees with its finding": ("core", ">+8.7%<", ">+5.0%<"),
    "a share of the peak that no node reaches": (
        "same",
        "Read it, then decide.",
        "All nodes reach 32% of what is possible.",
    ),
    "all nodes are the same where some are not": ("core", "0 of 7 nodes", "All nodes match: 0 of 7 nodes"),
    "more nodes are the same": ("same", "4 of 5 nodes", "5 of 5 nodes"),
    "an absolute value that was not measured": ("core", "lowest 23.1 ns", "lowest 21.3 ns"),
    "figures of one node are said of several": ("many-nodes", "6.9 to 7.2% lower", "7.2% lower"),
    "a range has one of two units": ("core", ">22.6 to 24.3 ns<", ">81.3 to 20.1 ms<"),
    "a factor is from elsewhere": ("not-measured", "by a factor of ", "by a factor of 9"),
    "times the tolerance are of another effect": ("core", "tolerance 4%: 2.2 times", "tolerance 4%: 2.7 times"),
    "an interval is of another finding": ("core", "interval 7.1 to 10.4%", "interval 6.0 to 10.2%"),
    "an action is that of another finding": ("core", "Report the CCX to", "Report the parts to"),
    "an action measures another node": ("core", "make run NODES=node004", "make run NODES=node001"),
    "an action is of no finding": ("confirmed", "Look for interrupts and daemons on", "Replace"),
    "nobody confirms the finding of one job": (
        "core",
        "Confirm it by another job. If it is confirmed: Compare firmware",
        "Compare firmware",
    ),
    "an intermittent finding is not to be confirmed": (
        "intermittent",
        "Confirm it by another job. If it is confirmed: Look for",
        "Look for",
    ),
    "an open item of one job is not to be confirmed": (
        "confirmed",
        "| Confirm it by another job. If it is confirmed: ",
        "| ",
    ),
    "a confirmed finding is to be confirmed": (
        "confirmed",
        ">Look for",
        ">Confirm it by another job. If it is confirmed: Look for",
    ),
    "a node of another configuration has the action of one that was not measured": (
        "harvested",
        "Give it the settings of the other nodes and measure it again, or measure more nodes like it.",
        "Remove the cause and measure it.",
    ),
    "an acceptance report has the action of another reason": ("confirmed", "No action is needed until", "Wait until"),
    "an acceptance report lacks an action": ("confirmed", "No action is needed until the waiver ends. | ", " | "),
    "messages are slow in the other direction": ("fabric", "from node005 to node006", "from node006 to node005"),
    "messages are slow to another node": ("fabric", "messages to node006", "messages to node007"),
    "messages are slow as their node receives": ("fabric", "when it sends", "when it receives"),
    "slow messages are fast": ("fabric", "slower with every other node", "faster with every other node"),
    "a slow link is fast": ("fabric", "slower in this direction", "faster in this direction"),
    "a slower group is a faster one": ("split", "% faster than group", "% slower than group"),
    "a report accepts what is not decided": ("confirmed", "◇ not decided\n", "● accepted\n"),
    "a report rejects what is accepted with reservations": (
        "repaired",
        "◆ accepted with reservations\n",
        "▲ rejected\n",
    ),
    "a report accepts a node that deviates": ("confirmed", "▲ deviation", "● accepted"),
    "a report has another outcome of a node": (
        "confirmed",
        "| 2 | ◆ WARN (SUSPECT)",
        "| 2 | ● PASS (SAME)",
    ),
    "a report has another class of a campaign": ("confirmed", "FAIL (DEVIATIONS) | 1", "PASS (UNIFORM) | 1"),
    "a row leaves out another node": ("not-measured", "runs disagree on node004", "runs disagree on node005"),
    "a row does not say whom it leaves out": ("not-measured", "runs disagree on node004", ""),
    "a setting is of another node": ("configuration", "0x1234: node001", "0x1234: node002"),
    "a setting lacks a node": ("split", "0xa: node[000-003]", "0xa: node[000-002]"),
    "a setting that differs is in no table": ("harvested", ">cores per L3<", ">boost<"),
    "a setting of a node is that of most": ("harvested", "cores 6 (other nodes: 8)", "cores 8 (other nodes: 6)"),
}


@pytest.mark.parametrize("what", _FALSE)
def test_a_false_sentence_is_detected(what: str) -> None:
    name, said, instead = _FALSE[what]
    assert any(said in text for text in _made(name).artifacts.values()), "nobody says this any more"
    assert _defects(name, lambda text: text.replace(said, instead))


def test_a_page_that_counts_nodes_does_not_name_them() -> None:
    of = _made("core")
    [campaign] = campaigns(of.artifacts, of.sources)
    assert claims.unnamed("node[001,004] and 5 nodes", campaign) == [
        "node000",
        "node002",
        "node003",
        "node005",
        "node006",
    ]
