"""The outcomes of nodes and fleets and the reasons for them: one table that statuses, files, pages and exit codes read.

Nothing else in the program ranks, colours or counts an outcome, so that exit status, JUnit, protocol, drain lines,
alert rules and pages cannot disagree (`tests/unit/judge/test_outcome.py` crosses every outcome with every output).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum

import msgspec

from nodeprint.errors import NodeprintError, printable


class Outcome(StrEnum):
    """What a node's measurements amount to; a node has one."""

    NOT_MEASURED = "NOT MEASURED"
    WRONG_RESULT = "WRONG RESULT"
    OUTSIDE_LIMIT = "OUTSIDE LIMIT"
    DEVIATES = "DEVIATES"
    INTERMITTENT = "INTERMITTENT"
    SUSPECT = "SUSPECT"
    DIFFERS = "DIFFERS"
    SPLIT = "SPLIT"
    INVALID = "INVALID"
    DIFFERENT_CONFIGURATION = "DIFFERENT CONFIGURATION"
    INCONCLUSIVE = "INCONCLUSIVE"
    NO_PEER = "NO PEER"
    SAME = "SAME"


class FleetOutcome(StrEnum):
    """What a campaign's nodes amount to together."""

    NOT_MEASURED = "NOT MEASURED"
    SPLIT = "SPLIT"
    DEVIATIONS = "DEVIATIONS"
    NOT_UNIFORM = "NOT UNIFORM"
    INTERMITTENT = "INTERMITTENT"
    SUSPECTS = "SUSPECTS"
    INCONCLUSIVE = "INCONCLUSIVE"
    NO_PEER = "NO PEER"
    UNIFORM = "UNIFORM"


class Why(StrEnum):
    """The kinds of reasons for an outcome."""

    NOT_MEASURED = "not measured"
    WRONG = "wrong results"
    FAILED_CHECK = "a benchmark's own check failed"
    LIMIT = "outside a limit"
    CONFIRMED = "found in two jobs"
    INTERMITTENT = "found in some jobs or runs and not in others"
    SUSPECTED = "found in one job"
    DIFFERS = "two or few nodes differ"
    SPLIT = "the fleet is split"
    UNUSABLE = "records cannot be used"
    MISSING_PAIRS = "pairs are missing"
    DISTURBED = "measurements were disturbed"
    ODD_RUN = "a run is off the others of its job"
    CONFIGURATION = "configured differently"
    ALONE = "no peer"
    ALONE_IN_PART = "no peer, and not measured in full"
    MISSING = "planned and not measured"
    RENUMBERED = "an exchange of parts explains an imported matrix"
    REBOOTED = "booted again within a job"
    ONE_RUN = "one run"
    UNEXAMINED = "a part that no data examine"
    NO_CENTRE = "no majority is alike"
    UNRESOLVED = "not resolved within the bound"
    SUPPRESSED = "a suppressed finding"
    WITHIN_BOUNDS = "within every bound"


class State(StrEnum):
    """How certain a finding is. A finding of one job is `SUSPECTED`; two independent jobs confirm it. What one job
    shows and another does not, or several runs of a job and others not, is `INTERMITTENT`. Of few nodes that contradict
    each other it is not known which is right (`DIFFERS`)."""

    CONFIRMED = "confirmed"
    INTERMITTENT = "intermittent"
    SUSPECTED = "suspected"
    DIFFERS = "differs"


class Kind(StrEnum):
    """What `--fail-on` may count."""

    FOUND = "found"
    NOT_SAME = "not-same"
    CONFIGURATION = "configuration"
    NOT_MEASURED = "not-measured"
    INVALID = "invalid"
    NOTHING = "nothing"


class Drain(StrEnum):
    """What drain.sh has of a node."""

    SUGGESTED = "suggested"
    LEFT_ALONE = "left alone"
    NOTHING = "nothing"


class Accepted(StrEnum):
    """What the protocol says of a node, and of a system by all of its nodes."""

    ACCEPTED = "accepted"
    DEVIATION = "deviation"
    OPEN = "open"


class Meaning(msgspec.Struct, frozen=True):
    """What an outcome means to everything that reads it.

    `rank` is its order on pages, the most urgent first; `symbol` and `colour` (a name of reports/style.yaml) mark it,
    never the colour alone. `junit` is its element in verdict.xml (empty: passed). `fails` are the values of --fail-on
    that count it. `drain` is what drain.sh has of the node. `again`: a further job would decide. `measured`: there are
    records of it.
    """

    rank: int
    symbol: str
    colour: str
    junit: str
    fails: tuple[Kind, ...]
    drain: Drain = Drain.NOTHING
    again: bool = False
    measured: bool = True

    @property
    def found(self) -> bool:
        """Whether something was found: the default of `make run`, and what alerts are for."""
        return Kind.FOUND in self.fails

    @property
    def accepted(self) -> Accepted:
        """What the protocol says: accepted is what no kind of --fail-on counts."""
        return Accepted.DEVIATION if self.found else Accepted.OPEN if self.fails else Accepted.ACCEPTED


_FOUND = (Kind.FOUND, Kind.NOT_SAME)
_NOT_MEASURED = (Kind.NOT_MEASURED, Kind.NOT_SAME)
_CONFIGURATION = (Kind.CONFIGURATION, Kind.NOT_SAME)
_OPEN = (Kind.NOT_SAME,)
#: By outcome of a node what it means. In JUnit what was found, or is configured differently, is a failure; what could
#: not be decided is an error, so that a pipeline cannot pass on it; of a node without a peer nothing was asked.
MEANING: dict[Outcome, Meaning] = {
    Outcome.WRONG_RESULT: Meaning(0, "▼", "alarm", "failure", _FOUND, Drain.SUGGESTED),
    Outcome.OUTSIDE_LIMIT: Meaning(1, "■", "alarm", "failure", _FOUND),
    Outcome.DEVIATES: Meaning(2, "▲", "alarm", "failure", _FOUND, Drain.SUGGESTED),
    Outcome.INTERMITTENT: Meaning(3, "◈", "warning", "failure", _FOUND, Drain.LEFT_ALONE, again=True),
    Outcome.SUSPECT: Meaning(4, "◆", "warning", "failure", _FOUND, again=True),
    Outcome.DIFFERS: Meaning(5, "△", "warning", "failure", _FOUND),
    Outcome.SPLIT: Meaning(6, "◐", "warning", "failure", _FOUND, again=True),
    Outcome.INVALID: Meaning(7, "✕", "disturbed", "error", (Kind.INVALID, Kind.NOT_SAME), again=True),
    Outcome.NOT_MEASURED: Meaning(8, "\u2013", "neutral", "error", _NOT_MEASURED, measured=False),
    Outcome.DIFFERENT_CONFIGURATION: Meaning(9, "□", "different", "failure", _CONFIGURATION),
    Outcome.INCONCLUSIVE: Meaning(10, "◇", "neutral", "error", _OPEN),
    Outcome.NO_PEER: Meaning(11, "○", "different", "skipped", _OPEN),
    Outcome.SAME: Meaning(12, "●", "good", "", ()),
}
#: By outcome of a fleet what it means; its nodes, fabric and the fleet itself are counted together.
FLEET_MEANING: dict[FleetOutcome, Meaning] = {
    FleetOutcome.SPLIT: Meaning(0, "◐", "warning", "failure", _FOUND),
    FleetOutcome.DEVIATIONS: Meaning(1, "▲", "alarm", "failure", _FOUND),
    FleetOutcome.NOT_UNIFORM: Meaning(2, "◆", "warning", "failure", _FOUND),
    FleetOutcome.INTERMITTENT: Meaning(3, "◈", "warning", "failure", _FOUND),
    FleetOutcome.SUSPECTS: Meaning(4, "◆", "warning", "failure", _FOUND),
    FleetOutcome.NOT_MEASURED: Meaning(5, "\u2013", "neutral", "error", _NOT_MEASURED, measured=False),
    FleetOutcome.INCONCLUSIVE: Meaning(6, "◇", "neutral", "error", _OPEN),
    FleetOutcome.NO_PEER: Meaning(7, "○", "different", "skipped", _OPEN),
    FleetOutcome.UNIFORM: Meaning(8, "●", "good", "", ()),
}
#: By the state of what was found between nodes the outcome of their messages.
FLEET_OF_STATE: dict[State, FleetOutcome] = {
    State.CONFIRMED: FleetOutcome.DEVIATIONS,
    State.INTERMITTENT: FleetOutcome.INTERMITTENT,
    State.SUSPECTED: FleetOutcome.SUSPECTS,
    State.DIFFERS: FleetOutcome.SUSPECTS,
}
#: By reason the outcome that it gives a node; the first reason of this order counts.
OUTCOME_OF: dict[Why, Outcome] = {
    Why.NOT_MEASURED: Outcome.NOT_MEASURED,
    Why.WRONG: Outcome.WRONG_RESULT,
    Why.FAILED_CHECK: Outcome.WRONG_RESULT,
    Why.LIMIT: Outcome.OUTSIDE_LIMIT,
    Why.CONFIRMED: Outcome.DEVIATES,
    Why.INTERMITTENT: Outcome.INTERMITTENT,
    Why.SUSPECTED: Outcome.SUSPECT,
    Why.DIFFERS: Outcome.DIFFERS,
    Why.SPLIT: Outcome.SPLIT,
    Why.UNUSABLE: Outcome.INVALID,
    Why.MISSING_PAIRS: Outcome.INVALID,
    Why.DISTURBED: Outcome.INVALID,
    Why.ODD_RUN: Outcome.INVALID,
    Why.CONFIGURATION: Outcome.DIFFERENT_CONFIGURATION,
    Why.ALONE_IN_PART: Outcome.INCONCLUSIVE,
    Why.ALONE: Outcome.NO_PEER,
    Why.RENUMBERED: Outcome.INCONCLUSIVE,
    Why.MISSING: Outcome.INCONCLUSIVE,
    Why.REBOOTED: Outcome.INCONCLUSIVE,
    Why.ONE_RUN: Outcome.INCONCLUSIVE,
    Why.UNEXAMINED: Outcome.INCONCLUSIVE,
    Why.NO_CENTRE: Outcome.INCONCLUSIVE,
    Why.UNRESOLVED: Outcome.INCONCLUSIVE,
    Why.SUPPRESSED: Outcome.INCONCLUSIVE,
    Why.WITHIN_BOUNDS: Outcome.SAME,
}
_ORDER = list(OUTCOME_OF)


def first(reasons: Iterable[Why]) -> Why:
    """Of several reasons the one that decides the outcome."""
    return min(reasons, key=_ORDER.index)


def kinds(text: str) -> tuple[Kind, ...]:
    """The values of `--fail-on` in a list separated by commas. Raises NodeprintError where one is not known, or there
    is none: what was to be counted is then missing, as an unset variable of a script is."""
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


def counts(wanted: Collection[Kind], meanings: Iterable[Meaning]) -> bool:
    """Whether one of the meanings is counted by one of the wanted kinds."""
    return any(kind in meaning.fails for meaning in meanings for kind in wanted)
