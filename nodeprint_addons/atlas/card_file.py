"""Cards as files: read and written, with a hash that detects changes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nodeprint import files
from nodeprint.errors import NodeprintError, printable, unreadable
from nodeprint_addons.atlas.card import SCHEMA, Card, UnverifiedError

#: More than twice what a machine of 256 CPUs has.
_MOST_BYTES = 4 << 20


def read(path: Path) -> Card:
    """A card from its file, whose hash is checked. Raises NodeprintError where it is none, or was changed."""
    advice = "give a file that `nodeprint publish` wrote"
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    if len(content) > _MOST_BYTES:
        raise NodeprintError("larger than any card", where=path, advice=advice)
    try:
        card = msgspec.json.decode(content, type=Card)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NodeprintError(f"is no card ({printable(str(error), 80)})", where=path, advice=advice) from error
    if card.schema != SCHEMA:
        raise NodeprintError(f"is a card of schema {card.schema}", where=path, advice="read it with that version")
    if card.sha256 != digest(card):
        raise UnverifiedError("was changed: its hash is another", where=path, advice="get it again from its author")
    _check(card, path)
    return card


def write(card: Card, path: Path) -> Path:
    """Write a card with its hash, one line for each of its fields. Raises CannotWriteError."""
    return files.write(path, text(hashed(card)))


def hashed(card: Card) -> Card:
    """The card with its hash; a signature of another content goes."""
    return replace(card, sha256=digest(card), signature=card.signature if card.sha256 == digest(card) else "")


def text(card: Card) -> bytes:
    """A card as its file has it: a field a line, so that people and `diff` can read it, and small."""
    fields = msgspec.to_builtins(card)
    lines = [
        f" {msgspec.json.encode(key).decode()}: {msgspec.json.encode(value).decode()}" for key, value in fields.items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def digest(card: Card) -> str:
    """SHA-256 of everything but hash and signature."""
    return hashlib.sha256(msgspec.json.encode(replace(card, sha256="", signature=""), order="sorted")).hexdigest()


def _check(card: Card, path: Path) -> None:
    """See that the parts of a card fit together, as its hash does not say."""
    if card.matrix is None:
        return
    cpus = len(card.matrix.places.cpus)
    fits = len(card.matrix.tenths_ns) == cpus * (cpus - 1) // 2
    if not fits or any(len(numbers) != cpus for numbers in card.matrix.places.parts.values()):
        raise NodeprintError("its matrix does not fit its CPUs", where=path, advice="make it anew: `nodeprint publish`")
