"""The part of a campaign's verdict that a history needs: each node's outcome, time and fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nodeprint import reading
from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import SCHEMA
from nodeprint.report import verdict_files


class JudgedNode(msgspec.Struct, frozen=True):
    """A node in a campaign's verdict: `measured` is the start of its newest run (ISO 8601, empty if unknown)."""

    outcome: Outcome
    measured: str = ""
    fingerprint: Mapping[str, Any] = {}


class PastCampaign(msgspec.Struct, frozen=True):
    """A judged campaign. `last` is the start of its last run (ISO 8601, empty if it has none)."""

    name: str = msgspec.field(name="campaign")
    simulated: bool
    nodes: Mapping[str, JudgedNode]
    last: str = ""
    folder: Path = Path()
    schema: int = 0


_VERDICTS = msgspec.json.Decoder(PastCampaign)


def read(campaign: Path) -> PastCampaign:
    """A judged campaign. Raises NodeprintError when its verdict is missing or cannot be read."""
    path = campaign / "verdict.json"
    try:
        past = _VERDICTS.decode(reading.content(path, reading.VERDICT_BYTES, follows=True))
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        past = None
    if past is None or past.schema != SCHEMA:
        verdict_files.read(campaign)  # says what is wrong with it
        raise NodeprintError("not a verdict", where=path, advice=f"run `nodeprint judge {campaign}`")
    last = max((node.measured for node in past.nodes.values()), default="")
    return replace(past, folder=campaign, last=last)


def without_fingerprints(campaign: PastCampaign) -> PastCampaign:
    """A campaign with only outcomes and times, as the fingerprints of very many campaigns fill the memory."""
    nodes = {name: JudgedNode(node.outcome, node.measured) for name, node in campaign.nodes.items()}
    return replace(campaign, nodes=nodes)
