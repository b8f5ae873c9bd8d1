"""The outcomes of nodes and fleets: one table that the judge, its files, the exit status and every page read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nodeprint.errors import NodeprintError, printable


class Outcome(msgspec.Struct, frozen=True):
    """What an outcome means to everything that reads it.

    `symbol` and `colour` are how pages mark it (never by colour alone), `rank` its order there, the worst first.
    `junit` is its result in verdict.xml, `fail_on` the values of `--fail-on` that count it. `accuses`: something of the
    node itself was found; `evidence`: what was measured can be compared; `same`: the node is shown to be like its
    peers; `drain`: confirmed by a second job, so that draining the node is suggested; `again`: a further job
    would decide. `reasons` are what gives a node this outcome, the one that is told first: states of findings and
    of the node (judge.decision).
    """

    word: str
    symbol: str
    colour: str
    rank: int
    reasons: tuple[str, ...] = ()
    junit: str = ""
    fail_on: tuple[str, ...] = ()
    accuses: bool = False
    evidence: bool = True
    same: bool = False
    drain: bool = False
    again: bool = False

    @property
    def quiet(self) -> bool:
        """Whether nothing sets the node apart from the others: it is the same, or nothing was found."""
        return self.junit in ("", "skipped")


_RED, _AMBER, _PURPLE, _GREY, _BLUE, _GREEN = "#a3201d", "#9a4d00", "#6d3a8c", "#505a64", "#1d5a96", "#1b6e53"
_TWICE = ("unstable twice", "invalid twice")
_DEVIATES, _INVALID, _ANY = ("deviates", "any"), ("invalid", "any"), ("any",)

#: Why a node in which nothing deviates cannot be called the same, the one that is told first.
DOUBTS = ("one run", "unwitnessed", "untested", "beyond bound", "nothing resolved", "absent")
#: Outcomes of a node, the one that counts first: a node with findings of several kinds gets the first of them.
NODE: Mapping[str, Outcome] = {
    one.word: one
    for one in (
        Outcome(
            "NOT MEASURED", "\u2013", _GREY, 6, ("not measured",), "error", ("not-measured", *_INVALID), evidence=False
        ),
        Outcome("OUTSIDE LIMIT", "■", _RED, 0, ("limit",), "failure", _DEVIATES, accuses=True),
        Outcome("DEVIATES", "▲", _RED, 1, ("confirmed",), "failure", _DEVIATES, accuses=True, drain=True),
        Outcome("UNSTABLE", "≈", _AMBER, 3, _TWICE, "failure", _INVALID, accuses=True, drain=True),
        Outcome("INVALID", "✕", _PURPLE, 5, ("invalid", "unstable"), "error", _INVALID, evidence=False, again=True),
        Outcome("SUSPECT", "◆", _AMBER, 4, ("fresh", "changed"), "failure", _ANY, accuses=True, again=True),
        Outcome("DIFFER", "△", _RED, 2, ("differs",), "failure", _ANY, accuses=True),
        Outcome("DIFFERENT CONFIGURATION", "□", _BLUE, 7, ("configured otherwise",), "failure", _ANY),
        Outcome("NO PEER", "○", _BLUE, 9, ("alone",), "skipped"),
        Outcome("INCONCLUSIVE", "◇", _GREY, 8, ("crowd", "suppressed", *DOUBTS), "skipped"),
        Outcome("SAME AS GROUP", "◒", _GREEN, 10, ("same as group",), same=True),
        Outcome("SAME", "●", _GREEN, 11, ("same",), same=True),
    )
}
_OF_REASON: Mapping[str, str] = {reason: one.word for one in NODE.values() for reason in one.reasons}
#: Outcomes of a fleet.
FLEET: Mapping[str, Outcome] = {
    one.word: one
    for one in (
        Outcome("NOT MEASURED", "\u2013", _GREY, 6, evidence=False),
        Outcome("NO PEER", "○", _BLUE, 9),
        Outcome("TWO POPULATIONS", "◐", _AMBER, 0),
        Outcome("NOT UNIFORM", "▲", _RED, 0),
        Outcome("DEVIATIONS", "▲", _RED, 0),
        Outcome("INCONCLUSIVE", "◇", _GREY, 8),
        Outcome("UNIFORM", "●", _GREEN, 0, same=True),
    )
}
#: What `--fail-on` may count.
FAIL_ON = ("not-measured", "deviates", "invalid", "any")
_UNKNOWN = Outcome("NO VERDICT", "◇", _GREY, 8)


def first(reasons: Iterable[str]) -> str:
    """Of the reasons of a node the one that counts first."""
    return min(reasons, key=list(_OF_REASON).index)


def by(reason: str) -> str:
    """The outcome of a node that has this reason."""
    return _OF_REASON[reason]


def of(word: str) -> Outcome:
    """The outcome of a node or a fleet by its word; of an unknown word, as from a newer version, a neutral one."""
    return NODE.get(word) or FLEET.get(word) or Outcome(word or _UNKNOWN.word, _UNKNOWN.symbol, _GREY, _UNKNOWN.rank)


def fail_kinds(text: str) -> list[str]:
    """The values of `--fail-on` in a list separated by commas. Raises NodeprintError where one is not known."""
    kinds = [kind.strip() for kind in text.split(",") if kind.strip()]
    if unknown := [kind for kind in kinds if kind not in FAIL_ON]:
        what = f"{printable(repr(unknown[0]), 60)} is not known"
        raise NodeprintError(what, key="--fail-on", advice=f"choose from {', '.join(FAIL_ON)}")
    return kinds


def fails(on: str, verdicts: Iterable[str], fabric: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a value of `--fail-on` counts an outcome of a node, or a finding of a link (verdict.json, `fabric`)."""
    links = any(found["severity"] == "error" and not found["suppressed"] for one in fabric for found in one["findings"])
    return any(on in of(verdict).fail_on for verdict in verdicts) or (links and on in ("deviates", "any"))
