"""The atlas: a static site of cards and imported matrices, with any two on one scale."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import msgspec

from nodeprint import __version__, files
from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_file
from nodeprint.settings import checked_yaml, sources
from nodeprint.summary.node_summary import processor_key
from nodeprint_addons.atlas import card_file, signing
from nodeprint_addons.atlas.card import Card
from nodeprint_addons.atlas.matrix_card import card_of_matrix
from nodeprint_addons.atlas.published_machines import generation_of

_MATRICES = (".csv", ".txt", ".gz")


class AtlasEntry(msgspec.Struct, frozen=True):
    """A machine of the site: `id` is its file's name there, `origin` says where its figures are from."""

    id: str
    card: Card
    generation: str
    origin: str
    signed_by: str

    @property
    def levels(self) -> str:
        """The parts that its CPUs are in, and how many of each."""
        places = self.card.matrix.places.parts if self.card.matrix else {}
        counts = {level: len({part for part in parts if part >= 0}) for level, parts in places.items()}
        return ", ".join(f"{count} {level}" for level, count in counts.items())


def write(folder: Path, to: Path) -> tuple[Path, list[str]]:
    """Write the site of all cards and matrices in `folder` into the directory `to`, which it replaces.

    Returns its first page, and reasons for files left out. Raises NodeprintError if there is nothing to show.
    """
    if not folder.is_dir():
        raise NodeprintError("is not a directory", where=folder, advice="name one with cards and matrices")
    entries, refused = read(folder)
    if not entries:
        reason = refused[0] if refused else "it is empty"
        raise NodeprintError(f"there is nothing to show ({reason})", where=folder, advice="put cards into it")
    if to.exists() and not (to / "machines").is_dir() and any(to.iterdir()):
        raise NodeprintError("holds something else", where=to, key="--to", advice="name a new directory")
    templates = Path(__file__).parent
    colors = checked_yaml.read(sources.folder() / "reports" / "style.yaml")["terminal"]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates), autoescape=True, undefined=jinja2.StrictUndefined
    )
    page = environment.get_template("atlas.html").render(entries=entries, colors=colors, version=__version__)
    with files.replacing_folder(to) as partial:
        (partial / "machines").mkdir()
        (partial / "index.html").write_text(page, encoding="utf-8")
        for name in ("atlas.js", "atlas.css"):
            (partial / name).write_text((templates / name).read_text(encoding="utf-8"), encoding="utf-8")
        for entry in entries:
            content = card_file.text(card_file.hashed(entry.card))
            (partial / "machines" / f"{entry.id}.json").write_bytes(content)
            # a script is loaded from a disk, too, where browsers refuse to fetch a file
            script = b"atlas.add(" + msgspec.json.encode(entry.id) + b"," + _for_script(content) + b");\n"
            (partial / "machines" / f"{entry.id}.js").write_bytes(script)
    return to / "index.html", refused


def read(folder: Path) -> tuple[list[AtlasEntry], list[str]]:
    """The machines of a directory by processor, and reasons for rejected files."""
    entries: list[AtlasEntry] = []
    refused: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.suffix not in (*_MATRICES, ".json"):
            continue
        try:
            entries.append(_entry(path, {entry.id for entry in entries}))
        except NodeprintError as error:
            refused.append(str(error))
    return sorted(entries, key=lambda entry: processor_key(entry.card.processor.name)), refused


def _entry(path: Path, taken: set[str]) -> AtlasEntry:
    if path.suffix == ".json":
        card = card_file.read(path)
        origin, signed_by = f"measured by {card.origin.program}", signing.signer(card)
    else:
        dual = re.match(r"Dual (.*)", path.stem)
        card = card_of_matrix(matrix_file.read_output(path), dual[1] if dual else path.stem, sockets=2 if dual else 0)
        origin, signed_by = f"{card.origin.program}, not known: {', '.join(card.origin.unknown)}", ""
    base = re.sub(r"[^a-z0-9]+", "-", processor_key(card.processor.name)).strip("-") or "machine"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    generation = card.processor.generation or generation_of(card.processor.name)
    return AtlasEntry(name, card, generation, origin, signed_by)


def _for_script(content: bytes) -> bytes:
    """JSON as it may stand in a script."""
    return content.strip().replace(b"<", b"\\u003c").replace("\u2028".encode(), b"\\u2028")
