"""Which outcome a node and a fleet get: reasons, and the table of `nodeprint.outcomes` says what they amount to."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from nodeprint import outcomes
from nodeprint.judge.confirmation import ShownCause
from nodeprint.judge.judged import JudgedFleet
from nodeprint.packed import INVALID


def causes(known: JudgedFleet, i: int) -> list[ShownCause]:
    """The causes that a compared node shows; an invalid job confirms none."""
    shown = known.evidence(i).shown
    if len(known.jobs(i)) - len(known.invalid[i]) > 1:
        return shown
    return [replace(one, state="fresh") if one.state == "confirmed" else one for one in shown]


def reason(known: JudgedFleet, i: int, states: Collection[str], *, suppressed: bool, several: bool) -> str:
    """Why a measured node has its outcome (`outcomes.by`): the first of what holds.

    `states` are those of its findings that count, `suppressed` is whether it has one that does not; `several`: there
    are several populations.
    """
    found = {*states, *(["suppressed"] if suppressed else [])} - {"refuted"}
    if any(text.startswith(INVALID) for text in known.quality(i)):
        twice = known.invalid_sittings(i) > 1
        found.add("invalid twice" if twice else "invalid")
    if i not in known.kind_of:
        measured = sum(node.state == "measured" for node in known.fleet.nodes)
        return outcomes.first({*found, "alone" if measured == 1 else "configured otherwise"})
    if "unstable" in found and {1, 2} <= known.evidence(i).unstable_jobs:
        found.add("unstable twice")
    return outcomes.first({*found, *_doubts(known, i), "same as group" if several else "same"})


def _doubts(known: JudgedFleet, i: int) -> Iterable[str]:
    """Why a compared node may not be the same, though nothing deviates."""
    mine, pairs = known.evidence(i), known.pairs(i)
    margins = mine.of(pairs=bool(pairs)).values()
    holds = {
        "one run": bool(pairs) and mine.runs < 2,
        "unwitnessed": any(one.matrix.terms.unwitnessed for one in pairs),
        "untested": mine.untested,
        "beyond bound": bool(pairs) and any(one.share > 1 for one in margins),
        "nothing resolved": not pairs and all(one.share > 1 for one in margins),
        "absent": bool(known.absent(i)),
    }
    return (doubt for doubt in outcomes.DOUBTS if holds[doubt])


def of_fleet(verdicts: Iterable[str], *, several: bool, wide: bool) -> str:
    """The outcome of a fleet from those of its nodes; `several`: there are several populations, `wide`: chips
    spread beyond a bound."""
    found = [outcomes.NODE[word] for word in verdicts]
    measured = [one for one in found if one.word != "NOT MEASURED"]
    if len(measured) < 2:
        return "NO PEER" if measured else "NOT MEASURED"
    if several or wide:
        return "TWO POPULATIONS" if several else "NOT UNIFORM"
    if any(one.accuses for one in measured):
        return "DEVIATIONS"
    return "UNIFORM" if all(one.same for one in measured) else "INCONCLUSIVE"
