"""Structure of a matrix: levels of groups, agreement with labels, symmetry and findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.model import Level
from nodeprint.settings.texts import say

#: From fine to coarse. `group` is a level of unknown type.
LevelName = Literal["smt", "ccx", "quadrant", "half", "socket", "group"]
Relation = Literal["agrees", "finer", "coarser", "contradicts", "not found"]
Severity = Literal["info", "warning"]


@dataclass(frozen=True, slots=True)
class PairClass:
    """Median latency in ns of `pairs` CPU pairs. `part` names the subset if the pairs of a level are of several kinds
    (`socket 0`); empty for all pairs.
    """

    part: str
    median_ns: float
    pairs: int


@dataclass(frozen=True, slots=True)
class FoundLevel:
    """A partition of the CPUs (sorted OS numbers; a CPU without partners is a group of one).

    `within` has the pairs that share a group of this level but of no finer one. `between` has the pairs that share the
    coarser level's group but none of this level. Each is one class, or several if a joint median would describe none of
    the pairs. `stability` is the mean adjusted Rand index over resampled CPUs, at most 1.
    """

    name: LevelName
    groups: tuple[tuple[int, ...], ...]
    within: tuple[PairClass, ...]
    between: tuple[PairClass, ...]
    stability: float


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Comparison of a detected level with a label level; `cpus` are the CPUs that differ, empty if they agree."""

    level: LevelName
    label: Level
    relation: Relation
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Symmetry:
    """Comparison of groups that should be equal: the median inside each in ns, and the ratio of largest to smallest."""

    level: LevelName
    medians_ns: tuple[float | None, ...]
    ratio: float
    alike: bool
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StructureFinding:
    """A finding for the reader, with a stable `id` and its `advice`."""

    id: str
    severity: Severity
    text: str
    advice: str

    @classmethod
    def of(cls, key: str, severity: Severity, *, id: str = "", **values: object) -> StructureFinding:
        """The finding with the sentences of `key` (reports/texts.yaml); its id defaults to the key."""
        sentences = (say("structure_findings", key, part, **values) for part in ("text", "advice"))
        return cls(id or key, severity, *sentences)


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of one matrix; `levels` from fine to coarse."""

    levels: tuple[FoundLevel, ...]
    agreement: tuple[LabelAgreement, ...]
    symmetry: tuple[Symmetry, ...]
    findings: tuple[StructureFinding, ...]

    def level(self, name: LevelName) -> FoundLevel | None:
        """The finest level with this name, None if it was not detected."""
        return next((level for level in self.levels if level.name == name), None)

    def as_json(self) -> dict[str, Any]:
        """The object of `nodeprint structure --json`: levels, agreement, symmetry, findings."""
        out: dict[str, Any] = _rounded(msgspec.to_builtins(self))
        return out

    def own_groups(self) -> list[tuple[FoundLevel, list[tuple[int, ...]]]]:
        """Each level with the groups that no finer level has."""
        finer = [frozenset[tuple[int, ...]](), *(frozenset(level.groups) for level in self.levels)]
        return [
            (level, [group for group in level.groups if group not in below])
            for level, below in zip(self.levels, finer, strict=False)
        ]

    def lines(self) -> list[str]:
        """Text lines: one per level with the CPUs of its groups, then label agreement and findings."""
        lines = []
        for level, groups in self.own_groups():
            alone = len(level.groups) - len(groups)
            values = {"within": classes_text(level.within), "between": classes_text(level.between)}
            values |= {"sizes": sizes_text(groups), "stability": f"{level.stability:.2f}"}
            key = "alone" if alone else "level"
            lines.append(say("structure_levels", key, level=level.name, groups=len(groups), alone=alone, **values))
            lines.append(f"  {'; '.join(list_text(group) for group in groups)}")
        lines = lines or ["no groups found"]
        lines += [f"labels: {item.level} {item.relation} {item.label or ''}".rstrip() for item in self.agreement]
        lines += [f"{item.severity}: {item.text} {item.advice}" for item in self.findings]
        return lines


def classes_text(classes: Sequence[PairClass]) -> str:
    """Text of classes: `22.7 ns`, or `108.0 ns (socket 0) and 199.7 ns (socket 1)`."""
    texts = [f"{item.median_ns:.1f} ns{f' ({item.part})' if item.part else ''}" for item in classes]
    if not texts:
        return "no pair"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def sizes_text(groups: Sequence[Sequence[int]]) -> str:
    """Number of CPUs per group: `4`, or `3 to 4`."""
    sizes = sorted({len(group) for group in groups})
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def _rounded(value: Any) -> Any:
    """JSON with numbers rounded to 0.001; NaN becomes null."""
    if isinstance(value, dict):
        return {key: _rounded(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inside) for inside in value]
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 3)
    return value
