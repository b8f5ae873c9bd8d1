"""Every printed number has its source: of golden campaigns `python -m tests.golden check` says so; here the check is
tried itself, with numbers and sentences that are false."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.golden.recording import Made, made
from tests.numbers import check
from tests.numbers.campaign import campaigns, quoted
from tests.numbers.check import Facts, Number
from tests.numbers.facts import facts
from tests.numbers.statements import statements

#: A false number is taken for a true one in at most so many of a hundred cases, by unit.
_MOST_TAKEN = {"%": 5.0, "ns": 5.0, "B/s": 5.0, "times": 5.0}


@pytest.fixture(scope="module")
def core() -> Made:
    """A campaign with a slow core and a slow part."""
    return made("core")


def test_every_number_has_its_source(core: Made) -> None:
    assert list(check.without_source(core.artifacts, core.sources)) == []


def test_a_false_number_has_none(core: Made) -> None:
    taken, all_of = Counter[str](), Counter[str]()
    [campaign] = campaigns(core.artifacts, core.sources)
    known, quotes, generator = Facts(facts(campaign)), quoted(campaign), random.Random(1)
    for statement in statements(core.artifacts):
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
