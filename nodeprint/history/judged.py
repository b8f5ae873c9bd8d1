"""What a history reads of a judged campaign: of verdict.json a tenth, in a tenth of the time that the whole takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nodeprint import reading
from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import SCHEMA
from nodeprint.report import verdict_files


class JudgedNode(msgspec.Struct, frozen=True):
    """What a campaign's verdict says of a node: when its newest run began (ISO 8601; empty where that is unknown), and
    the fields of its fingerprint."""

    outcome: Outcome
    measured: str = ""
    fingerprint: Mapping[str, Any] = {}


class JudgedCampaign(msgspec.Struct, frozen=True):
    """A campaign's folder, its name and nodes, and when its last run began (ISO 8601; empty where none did)."""

    folder: Path
    name: str
    simulated: bool
    nodes: Mapping[str, JudgedNode]
    last: str


class _Verdict(msgspec.Struct):
    schema: int
    campaign: str
    simulated: bool
    nodes: dict[str, JudgedNode]


class _BriefNode(msgspec.Struct):
    outcome: Outcome
    measured: str = ""


class _BriefVerdict(msgspec.Struct):
    schema: int
    campaign: str
    simulated: bool
    nodes: dict[str, _BriefNode]


_VERDICTS, _BRIEF = msgspec.json.Decoder(_Verdict), msgspec.json.Decoder(_BriefVerdict)


def read(campaign: Path) -> JudgedCampaign:
    """A judged campaign. Raises NodeprintError when its verdict is missing or cannot be read."""
    verdict = _decoded(campaign, _VERDICTS)
    return JudgedCampaign(campaign, verdict.campaign, verdict.simulated, verdict.nodes, _last(verdict))


def read_brief(campaign: Path) -> JudgedCampaign:
    """A judged campaign with nothing of its nodes but outcomes and times, for what is chosen of very many. Raises
    NodeprintError as `read` does."""
    verdict = _decoded(campaign, _BRIEF)
    nodes = {name: JudgedNode(node.outcome, node.measured) for name, node in verdict.nodes.items()}
    return JudgedCampaign(campaign, verdict.campaign, verdict.simulated, nodes, _last(verdict))


_V = TypeVar("_V", _Verdict, _BriefVerdict)


def _decoded(campaign: Path, decoder: msgspec.json.Decoder[_V]) -> _V:
    path = campaign / "verdict.json"
    try:
        verdict = decoder.decode(reading.content(path, reading.VERDICT_BYTES, follows=True))
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        verdict = None
    if verdict is None or verdict.schema != SCHEMA:
        verdict_files.read(campaign)  # says what is wrong with it
        raise NodeprintError("not a verdict", where=path, advice=f"run `nodeprint judge {campaign}`")
    return verdict


def _last(verdict: _Verdict | _BriefVerdict) -> str:
    return max((node.measured for node in verdict.nodes.values()), default="")
