"""Every printed number has its source: of golden campaigns `python -m tests.golden check` says so. Here the check is
tried itself, with numbers and sentences that are false."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from tests.golden.recording import Made, made
from tests.numbers import check, claims
from tests.numbers.campaign import campaigns, quoted
from tests.numbers.check import Facts, Number
from tests.numbers.facts import facts
from tests.numbers.statements import statements

#: A false number is taken for a true one in at most so many of a hundred cases, by unit.
_MOST_TAKEN = {"%": 6.0, "ns": 5.0, "B/s": 5.0, "times": 5.0}


@cache
def _made(name: str) -> Made:
    return made(name)


def _as_it_is(text: str) -> str:
    return text


@cache
def _defects(name: str, change: Callable[[str], str] = _as_it_is) -> list[str]:
    """What is false in a campaign after a change of everything that is said of it."""
    of = _made(name)
    said = {file: text if file.endswith((".csv", ".json")) else change(text) for file, text in of.artifacts.items()}
    return list(check.without_source(said, of.sources))


@pytest.mark.parametrize("name", ["core", "same", "many-nodes", "not-measured", "wrong-result"])
def test_every_number_has_its_source(name: str) -> None:
    assert _defects(name) == []


@pytest.mark.parametrize("name", ["core"])
def test_a_false_number_has_none(name: str) -> None:
    of, taken, all_of = _made(name), Counter[str](), Counter[str]()
    [campaign] = campaigns(of.artifacts, of.sources)
    known, quotes, generator = Facts(facts(campaign)), quoted(campaign), random.Random(1)
    for statement in statements(of.artifacts):
        context = check.expanded(statement.context).lower()
        for number in check.numbers(statement, quotes):
            if number.unit in _MOST_TAKEN and known.sources(number, context):
                all_of[number.unit] += 1
                taken[number.unit] += bool(known.sources(_false(number, generator), context))
    assert all(all_of[unit] > 50 for unit in ("%", "ns"))
    shares = {unit: 100 * taken[unit] / count for unit, count in all_of.items()}
    assert all(share <= _MOST_TAKEN[unit] for unit, share in shares.items()), shares


def _false(number: Number, generator: random.Random) -> Number:
    """Another number with as many digits: up to half more or less, and another in its last digit."""
    step = 2 * number.half
    least = max(1, round(abs(number.value) / step / 2))
    value = number.value + generator.choice((-1, 1)) * step * generator.randint(1, least)
    return Number(number.token, value, number.half, number.unit, number.left, number.right)


#: What pages have said and was false, by what it is: campaign, what was said instead of what is said today.
_FALSE = {
    "a headline has the figure of a part that differs less": (
        "same",
        "core-to-core latency 2.1 % of 3 %",
        "core-to-core latency within 1.1 % of 3 %",
    ),
    "a row has the largest effect of several nodes for all": (
        "many-nodes",
        "-6.9 to -7.2 % on 5 nodes, the worst on n022: events",
        "Events",
    ),
    "the same is defined by the difference alone": (
        "core",
        "Read it, then decide.",
        "A node is the same where it differs by less than its tolerance.",
    ),
    "a figure is of another node than it says": (
        "core",
        "node004, the node that differs most",
        "node001, the node that differs most",
    ),
    "a figure has one tolerance for all parts": ("core", "tolerance of 4 %", "tolerance of 10.7 %"),
    "a figure names a node that is not the farthest": ("core", "node004 lies farthest", "node001 lies farthest"),
    "a wrong result is described as the system's": (
        "wrong-result",
        "Read it, then decide.",
        "It was counted by the system while the node was measured.",
    ),
    "numbers of one page disagree": ("core", "9.2 ns less", "7.2 ns less"),
    "a table disagrees with its finding": ("core", ">+8.7 %<", ">+5.0 %<"),
    "a share of the peak that no node reaches": (
        "same",
        "Read it, then decide.",
        "All nodes reach 32 % of what is possible.",
    ),
    "all nodes are the same where some are not": ("core", "0 of 7 nodes", "All nodes match: 0 of 7 nodes"),
    "more nodes are the same": ("same", "4 of 5 nodes", "5 of 5 nodes"),
    "an absolute value that was not measured": ("core", "lowest 23.1 ns", "lowest 21.3 ns"),
    "figures of one node are said of several": ("many-nodes", "6.9 to 7.2 % lower", "7.2 % lower"),
    "a range has one of two units": ("core", "23.5 ns  23.3 to 24.3", "10.1 ms  81.3 to 20.1"),
    "a factor is from elsewhere": ("not-measured", "by a factor of ", "by a factor of 9"),
    "times the tolerance are of another effect": ("core", "tolerance 4 %: 2.2 times", "tolerance 4 %: 2.7 times"),
    "an interval is of another finding": ("core", "interval 7.1 to 10.4 %", "interval 6.0 to 10.2 %"),
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
