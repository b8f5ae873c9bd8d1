"""The processor table, `processors.toml`: the components of a whole die, and of each part by name."""

from __future__ import annotations

import hashlib
import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.topology.model import Machine

_X86 = ("AuthenticAMD", "GenuineIntel", "HygonGenuine")


class Generation(msgspec.Struct, frozen=True):
    """A processor generation; the fields are explained in `processors.toml`."""

    name: str
    vendor: str
    family: int
    models: tuple[int, ...]
    source: str
    match: str = ""
    cores_per_ccx: int | None = None
    ccx_per_ccd: int | None = None
    ccds: int | None = None
    quadrant: str | None = None
    quadrant_order: tuple[int, ...] = (0, 1, 2, 3)
    cpus_follow_apic: bool = False
    channels: int | None = None
    memory: str = ""
    flops_per_cycle: int = 0

    @property
    def has_quadrants(self) -> bool:
        """Whether an I/O die with quadrants, or Naples' four dies, is known of it."""
        return self.quadrant not in (None, "none")

    @property
    def without_quadrants(self) -> bool:
        """Whether the package is known to have none."""
        return self.quadrant == "none"

    @property
    def has_io_die(self) -> bool:
        """Whether its CCDs surround one I/O die."""
        return self.quadrant not in (None, "none", "ccd")

    def quadrant_of(self, ccd: int) -> int | None:
        """The quadrant of the CCD numbered `ccd` in a socket that has all of them."""
        if self.quadrant == "ccd":
            return ccd
        match = re.fullmatch(r"ccd (div|mod) (\d+)", self.quadrant or "")
        if match is None:
            return None
        return ccd // int(match[2]) if match[1] == "div" else ccd % int(match[2])


class Processor(msgspec.Struct, frozen=True):
    """A processor one can buy: CCDs of a socket and cores of each CCX."""

    name: str
    generation: Generation
    ccds: int
    cores_per_ccx: int


def _generation(entry: dict[str, Any]) -> Generation:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    return Generation(**fields)


def _text() -> str:
    return files("nodeprint.machine.topology").joinpath("processors.toml").read_text("utf-8")


@cache
def digest() -> str:
    """A hash of the table: labels that were kept are made anew where it has changed."""
    return hashlib.sha256(_text().encode()).hexdigest()[:16]


@cache
def _table() -> tuple[tuple[Generation, ...], tuple[Processor, ...]]:
    data: dict[str, Any] = tomllib.loads(_text())
    generations = tuple(_generation(entry) for entry in data["generation"])
    by_name = {generation.name: generation for generation in generations}
    parts = tuple(
        Processor(name, by_name[generation], *shape)
        for generation, rows in data["parts"].items()
        for name, shape in rows.items()
    )
    return generations, parts


def generation_of(machine: Machine) -> Generation | None:
    """The generation by vendor, family, model and, where several share those, name; None where unknown."""
    fits = [
        g
        for g in _table()[0]
        if g.vendor == machine.vendor and g.family == machine.family and machine.model in g.models
    ]
    named = [g for g in fits if re.search(g.match, machine.name or "")]
    return named[0] if named else None


def generation_named(name: str, family: int, model: int) -> Generation | None:
    """The x86 generation by the name, family and model that a fingerprint has, where it is one's alone."""
    fits = [g for g in _table()[0] if g.family == family and model in g.models and re.search(g.match, name)]
    return fits[0] if fits and fits[0].vendor in _X86 else None


def part_of(machine: Machine, generation: Generation | None) -> Processor | None:
    """The part whose name is a word of the machine's name, `AMD EPYC 7742 64-Core Processor`; None where unlisted."""
    words = f" {machine.name or ''} "
    parts = [p for p in _table()[1] if p.generation == generation and f" {p.name} " in words]
    return max(parts, key=lambda p: len(p.name), default=None)


def part_named(name: str) -> Processor:
    """The part by its name as people write it (`EPYC 7742`, `amd epyc 7742`, `7742`).

    Raises NodeprintError naming near ones where there is none or more than one.
    """

    def words(text: str) -> list[str]:
        return re.sub(r"\(r\)|\(tm\)", "", text.lower()).split()

    asked = [w for w in words(name) if w not in ("amd", "intel", "aws", "cpu", "processor")]
    matches = [p for p in _table()[1] if asked and all(w in words(p.name) for w in asked)]
    if len(matches) == 1:
        return matches[0]
    near = [p.name for p in matches] or [
        p.name for p in _table()[1] if any(a[:3] in w for a in asked for w in words(p.name) if _is_number(a))
    ]
    raise NodeprintError(
        f"{printable(name, 60)!r} is {'more than one part' if matches else 'no part of the table'}",
        advice=f"known are {', '.join(near[:12])}; of others give an lstopo XML of the machine (--xml)"
        if near
        else "give an lstopo XML of the machine instead (--xml)",
    )


def _is_number(word: str) -> bool:
    """Whether a word may be the number of a part, of which others begin alike: `7742`, `8380H`."""
    return len(word) > 2 and word[0].isdigit()
