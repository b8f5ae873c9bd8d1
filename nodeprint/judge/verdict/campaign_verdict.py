"""The verdict of a campaign: its fleet, its nodes, its messages and the outcomes that --fail-on counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from nodeprint.data.store.identity import Identity
from nodeprint.judge.outcome import FleetOutcome, Kind, Outcome, OutcomeClass, OutcomeEntry, counts
from nodeprint.judge.verdict.fabric_verdict import FabricVerdict
from nodeprint.judge.verdict.fleet_verdict import FleetVerdict
from nodeprint.judge.verdict.node_verdict import NodeVerdict

#: The version of verdict.json.
SCHEMA = 5


class Verdict(msgspec.Struct, frozen=True):
    """The verdict of a campaign. `recheck` lists the nodes to measure in a further job: suspects, invalid nodes and
    control nodes. `criteria` are the deciding metrics. `method` is the version of the method, 0 if the verdict does not
    state it. `rules` are the acceptance rules in force, including every default. `identity` says
    whose values of other programs are."""

    campaign: str
    simulated: bool
    imported: bool
    versions: Mapping[str, str]
    criteria: tuple[str, ...]
    fleet: FleetVerdict
    nodes: Mapping[str, NodeVerdict]
    fabric: tuple[FabricVerdict, ...] = ()
    recheck: tuple[str, ...] = ()
    method: int = 0
    rules: Mapping[str, Any] = {}
    schema: int = SCHEMA
    identity: Identity | msgspec.UnsetType = msgspec.UNSET

    @property
    def outcomes(self) -> list[Outcome | FleetOutcome]:
        """The outcomes of the fleet, of the messages between its nodes, and of the nodes."""
        between = [fabric.outcome for fabric in self.fabric]
        return [self.fleet.outcome, *between, *(node.outcome for node in self.nodes.values())]

    @property
    def outcome_class(self) -> OutcomeClass:
        """The class of the fleet, or of the messages between its nodes if that is worse."""
        classes = {self.fleet.outcome_class, *(fabric.outcome.outcome_class for fabric in self.fabric)}
        return next(of for of in OutcomeClass if of in classes)

    @property
    def entry(self) -> OutcomeEntry:
        """The entry of the outcome that gives the class: the fleet's, that of the messages, or a failing node's."""
        outcomes = (self.fleet.outcome, *(fabric.outcome for fabric in self.fabric), FleetOutcome.DEVIATIONS)
        return next(of.entry for of in outcomes if of.outcome_class is self.outcome_class)

    def fails(self, kinds: Collection[Kind]) -> bool:
        """Whether --fail-on counts an outcome of a node, of the fleet or of the fabric."""
        return counts(kinds, self.outcomes)


def rounded(verdict: Verdict) -> Verdict:
    """Round the numbers of a verdict to 6 significant digits, the same on every machine, and sort its keys.

    A verdict has them before anything prints it: rounding the digits of verdict.json again could print another number.
    """
    plain = msgspec.to_builtins(verdict, str_keys=True, enc_hook=float)
    return msgspec.convert(_in_six_digits(plain), Verdict, str_keys=True)


#: Types that need no rounding, which are most of a verdict: ten thousand nodes have fifteen million values.
_AS_IT_IS = frozenset({str, int, bool, type(None)})


def _in_six_digits(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: item if type(item) in _AS_IT_IS else _in_six_digits(item) for key, item in value.items()}
    return [_in_six_digits(item) for item in value] if isinstance(value, list | tuple) else value
