"""The card of a node: its summary with a hash and a signature, for people and programs without its records."""

from __future__ import annotations

from msgspec import structs

from nodeprint.errors import NodeprintError
from nodeprint.summary.node_summary import NodeSummary

SCHEMA = 1


class UnverifiedError(NodeprintError):
    """A card is readable, but its hash or its signature does not hold."""


class Card(NodeSummary, frozen=True):
    """`sha256` is of all fields above it, `signature` (ssh-keygen's) of `sha256`."""

    schema: int = SCHEMA
    sha256: str = ""
    signature: str = ""


def card_of(summary: NodeSummary) -> Card:
    """The card of a measured node, neither hashed nor signed."""
    return Card(**structs.asdict(summary))
