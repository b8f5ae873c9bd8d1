"""The outcomes of nodes and fleets: one table that statuses, files, pages and exit codes read.

An outcome is one entry of `Outcome`: its word and all that follows from it. A new outcome needs that entry, a rule that
gives it to a node (`nodeprint.judge.outcome_rules`), and its sentence under `reasons` in reports/texts.yaml.
`tests/unit/judge/test_new_outcome.py` adds one. Nothing else in the program ranks, colors or counts an outcome. Exit
status, JUnit, acceptance report, drain lines, alert rules and pages therefore cannot disagree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Self

import msgspec

from nodeprint.errors import NodeprintError, printable


class OutcomeClass(StrEnum):
    """The class of an outcome. Warnings are unconfirmed, or cannot be attributed to one node."""

    FAIL = "FAIL"
    WARN = "WARN"
    UNDETERMINED = "UNDETERMINED"
    NOT_COMPARED = "NOT COMPARED"
    PASS = "PASS"


#: By class the element of an outcome in verdict.xml.
_JUNIT = {
    OutcomeClass.FAIL: "failure",
    OutcomeClass.WARN: "failure",
    OutcomeClass.UNDETERMINED: "error",
    OutcomeClass.NOT_COMPARED: "skipped",
    OutcomeClass.PASS: "",
}


class Certainty(StrEnum):
    """How certain a finding is, the most certain first. A finding of one job is `SUSPECTED`; two independent jobs
    confirm it. If one job shows it and another does not, or several runs of a job do and others do not, it is
    `INTERMITTENT`. If few nodes contradict each other, the data cannot tell which one is right (`MISMATCH`)."""

    CONFIRMED = "confirmed"
    INTERMITTENT = "intermittent"
    SUSPECTED = "suspected"
    MISMATCH = "mismatch"


class Kind(StrEnum):
    """What `--fail-on` may count."""

    FOUND = "found"
    NOT_SAME = "not-same"
    CONFIGURATION = "configuration"
    NOT_MEASURED = "not-measured"
    INVALID = "invalid"
    NOTHING = "nothing"


class Drain(StrEnum):
    """The entry of a node in drain.sh."""

    SUGGESTED = "suggested"
    LEFT_ALONE = "left alone"
    NOTHING = "nothing"


class Accepted(StrEnum):
    """Acceptance of a node, or of a system by all of its nodes, in the acceptance report."""

    ACCEPTED = "accepted"
    DEVIATION = "deviation"
    OPEN = "open"


class OutcomeEntry(msgspec.Struct, frozen=True):
    """All that follows from an outcome.

    `kind` is the value of --fail-on that counts it (not-same counts all but SAME and UNIFORM). `symbol` and `color` (a
    name in reports/style.yaml) mark it, never the color alone. `again`: another job would decide. `measured`: the node
    has records.
    """

    outcome_class: OutcomeClass
    kind: Kind
    symbol: str
    color: str
    again: bool = False
    measured: bool = True

    @property
    def fails(self) -> frozenset[Kind]:
        """The values of --fail-on that count it."""
        return frozenset() if self.kind is Kind.NOTHING else frozenset((self.kind, Kind.NOT_SAME))

    @property
    def junit(self) -> str:
        """Its element in verdict.xml; empty: passed. The undetermined is an error, so that no pipeline passes it."""
        return _JUNIT[self.outcome_class]

    @property
    def found(self) -> bool:
        """Whether the outcome is a finding: the default of `make run`, and the reason for alerts."""
        return self.kind is Kind.FOUND

    @property
    def accepted(self) -> Accepted:
        """Its acceptance in the report: accepted if no kind of --fail-on counts it."""
        return Accepted.DEVIATION if self.found else Accepted.OPEN if self.fails else Accepted.ACCEPTED


class _OutcomeTable(StrEnum):
    """Words with an entry each, the worst first."""

    entry: OutcomeEntry
    rank: int

    def __new__(cls, word: str, entry: OutcomeEntry) -> Self:
        """A word with its entry; its rank is its place in the table."""
        made = str.__new__(cls, word)
        made._value_ = word
        made.entry, made.rank = entry, len(cls.__members__)
        return made

    @property
    def outcome_class(self) -> OutcomeClass:
        """The class of the outcome."""
        return self.entry.outcome_class

    @property
    def with_class(self) -> str:
        """The class, which every output shows first, with the outcome as its reason: `FAIL (DEVIATES)`."""
        return f"{self.outcome_class} ({self})"


_FAIL, _WARN, _OPEN = OutcomeClass.FAIL, OutcomeClass.WARN, OutcomeClass.UNDETERMINED
_ALONE, _PASS = OutcomeClass.NOT_COMPARED, OutcomeClass.PASS


class FleetOutcome(_OutcomeTable):
    """Outcomes of a campaign, by its nodes and the messages between them; the worst first."""

    SPLIT = "SPLIT", OutcomeEntry(_WARN, Kind.FOUND, "◐", "warning")
    DEVIATIONS = "DEVIATIONS", OutcomeEntry(_FAIL, Kind.FOUND, "▲", "alarm")
    NON_UNIFORM = "NON-UNIFORM", OutcomeEntry(_WARN, Kind.FOUND, "◆", "warning")
    INTERMITTENT = "INTERMITTENT", OutcomeEntry(_WARN, Kind.FOUND, "◈", "warning")
    SUSPECTS = "SUSPECTS", OutcomeEntry(_WARN, Kind.FOUND, "◆", "warning")
    NOT_MEASURED = "NOT MEASURED", OutcomeEntry(_OPEN, Kind.NOT_MEASURED, "\u2013", "neutral", measured=False)
    INCONCLUSIVE = "INCONCLUSIVE", OutcomeEntry(_OPEN, Kind.NOT_SAME, "◇", "neutral")
    NO_PEERS = "NO PEERS", OutcomeEntry(_ALONE, Kind.NOT_SAME, "○", "different")
    UNIFORM = "UNIFORM", OutcomeEntry(_PASS, Kind.NOTHING, "●", "good")


class NodeEntry(OutcomeEntry, frozen=True, kw_only=True):
    """All that follows from an outcome of a node.

    `fleet` is the least severe outcome of a fleet with such a node. NO PEERS becomes INCONCLUSIVE if other nodes were
    compared. `drain` is the entry in drain.sh. `usable`: the node's values may represent its group.
    """

    fleet: FleetOutcome
    drain: Drain = Drain.NOTHING
    usable: bool = True


class Outcome(_OutcomeTable):
    """Outcomes of a node, the worst first. A node has exactly one."""

    entry: NodeEntry

    WRONG_RESULT = (
        "WRONG RESULT",
        NodeEntry(_FAIL, Kind.FOUND, "▼", "alarm", fleet=FleetOutcome.DEVIATIONS, drain=Drain.SUGGESTED),
    )
    OUT_OF_SPEC = "OUT OF SPEC", NodeEntry(_FAIL, Kind.FOUND, "■", "alarm", fleet=FleetOutcome.DEVIATIONS)
    DEVIATES = (
        "DEVIATES",
        NodeEntry(_FAIL, Kind.FOUND, "▲", "alarm", fleet=FleetOutcome.DEVIATIONS, drain=Drain.SUGGESTED),
    )
    INTERMITTENT = (
        "INTERMITTENT",
        NodeEntry(
            _WARN,
            Kind.FOUND,
            "◈",
            "warning",
            again=True,
            fleet=FleetOutcome.INTERMITTENT,
            drain=Drain.LEFT_ALONE,
        ),
    )
    SUSPECT = "SUSPECT", NodeEntry(_WARN, Kind.FOUND, "◆", "warning", again=True, fleet=FleetOutcome.SUSPECTS)
    MISMATCH = "MISMATCH", NodeEntry(_WARN, Kind.FOUND, "△", "warning", fleet=FleetOutcome.SUSPECTS)
    SPLIT = "SPLIT", NodeEntry(_WARN, Kind.FOUND, "◐", "warning", again=True, fleet=FleetOutcome.SPLIT)
    INVALID = (
        "INVALID",
        NodeEntry(_OPEN, Kind.INVALID, "✕", "disturbed", again=True, fleet=FleetOutcome.INCONCLUSIVE, usable=False),
    )
    NOT_MEASURED = (
        "NOT MEASURED",
        NodeEntry(
            _OPEN,
            Kind.NOT_MEASURED,
            "\u2013",
            "neutral",
            measured=False,
            fleet=FleetOutcome.NO_PEERS,
            usable=False,
        ),
    )
    DIFFERENT_CONFIGURATION = (
        "DIFFERENT CONFIGURATION",
        NodeEntry(_WARN, Kind.CONFIGURATION, "□", "different", fleet=FleetOutcome.NO_PEERS, usable=False),
    )
    INCONCLUSIVE = (
        "INCONCLUSIVE",
        NodeEntry(_OPEN, Kind.NOT_SAME, "◇", "neutral", fleet=FleetOutcome.INCONCLUSIVE),
    )
    NO_PEERS = (
        "NO PEERS",
        NodeEntry(_ALONE, Kind.NOT_SAME, "○", "different", fleet=FleetOutcome.NO_PEERS),
    )
    SAME = "SAME", NodeEntry(_PASS, Kind.NOTHING, "●", "good", fleet=FleetOutcome.UNIFORM)


#: The outcome of a node by the certainty of its worst finding; a fabric has that of a fleet with such a node.
OUTCOME_OF: dict[Certainty, Outcome] = {
    Certainty.CONFIRMED: Outcome.DEVIATES,
    Certainty.INTERMITTENT: Outcome.INTERMITTENT,
    Certainty.SUSPECTED: Outcome.SUSPECT,
    Certainty.MISMATCH: Outcome.MISMATCH,
}


class ReasonDetail(StrEnum):
    """Why a node has an outcome that it may have for several reasons."""

    WRONG = "wrong results"
    FAILED_CHECK = "a benchmark's own check failed"
    UNUSABLE = "records cannot be used"
    MISSING_PAIRS = "pairs are missing"
    DISTURBED = "measurements were disturbed"
    ODD_RUN = "a run is off the others of its job"
    ALONE_IN_COMPONENT = "no peer, and not measured in full"
    MISSING = "planned and not measured"
    RENUMBERED = "an exchange of components explains an imported matrix"
    REBOOTED = "booted again within a job"
    ONE_RUN = "one run"
    UNEXAMINED = "a component that no data examine"
    NO_CENTER = "no majority is alike"
    UNRESOLVED = "not resolved within the tolerance"
    WAIVED = "a waived finding"


def kinds(text: str) -> tuple[Kind, ...]:
    """The values of `--fail-on` in a list separated by commas. Raises NodeprintError if one is unknown, or the list is
    empty, which is often an unset variable of a script."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    kinds = [kind.value for kind in Kind]
    if not names:
        raise NodeprintError("names no kind of outcome", key="--fail-on", advice=f"choose from {', '.join(kinds)}")
    if unknown := [name for name in names if name not in kinds]:
        what = f"{printable(repr(unknown[0]), 60)} is no kind of outcome"
        raise NodeprintError(what, key="--fail-on", advice=f"choose from {', '.join(kinds)}")
    if Kind.NOTHING.value in names and len(set(names)) > 1:
        advice = "leave it out, or the others"
        raise NodeprintError(f"{Kind.NOTHING} counts no outcome, and others are named", key="--fail-on", advice=advice)
    return tuple(Kind(name) for name in names)


def counts(wanted: Collection[Kind], outcomes: Iterable[Outcome | FleetOutcome]) -> bool:
    """Whether one of the outcomes is counted by one of the wanted kinds."""
    return any(not outcome.entry.fails.isdisjoint(wanted) for outcome in outcomes)
