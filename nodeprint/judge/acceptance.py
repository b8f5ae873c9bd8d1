"""What a site accepts: bounds of the terms, priors, fingerprint keys, absolute limits, suppressions.

The file acceptance.yaml beside this module has every key with its default. A site's own file (config/acceptance.yaml)
has what differs; completed by the defaults, it is kept in the campaign that is judged by it.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from nodeprint import files
from nodeprint.data.quantity import models
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.terms import FAMILIES
from nodeprint.machine import fingerprint
from nodeprint.settings import checked_yaml, config


@dataclass(frozen=True)
class ContractLimit:
    """An absolute limit of a contract, in the measurement's unit, on the median of a class of pairs or of a row of
    the report's table."""

    measurement: str
    of: str
    at_most: float | None
    at_least: float | None
    reason: str


@dataclass(frozen=True)
class Suppression:
    """Findings that are known and accepted until a day: they are shown, and count no more."""

    node: str
    finding: str
    reason: str
    until: datetime.date


@dataclass(frozen=True)
class CellBound:
    """Of quantities that are no pairs: how far one may be from its group, and the standard deviations assumed between
    healthy nodes and between runs (`prior`), and between jobs of a node (`job`)."""

    bound: float
    prior: float
    job: float


@dataclass(frozen=True)
class Acceptance:
    """Bounds are relative by term, and in ns at least `least_ns` by family of terms (`harvested_ns` inside CCXs of
    harvested parts); priors the chip-to-chip standard deviation by term, and those of a `run` and a `job`; `cells` by a
    model's term; `fabric_node` and `fabric_link` bounds of messages between nodes. `decides` are the subjects that an
    outcome rests on: core-to-core, messages, or terms of measurements."""

    bounds: Mapping[str, float]
    least_ns: Mapping[str, float]
    harvested_ns: float
    clock_ticks: float
    false_alarm: float
    decides: tuple[str, ...]
    priors: Mapping[str, float]
    required: tuple[str, ...]
    missing_pairs: float
    disturbed_pairs: float
    steal: float
    clock_fell: float
    hottest_c: float
    fabric_node: float
    fabric_link: float
    hard_keys: tuple[str, ...]
    soft_keys: tuple[str, ...]
    cmdline_ignored: tuple[str, ...]
    limits: tuple[ContractLimit, ...] = field(default=())
    suppressions: tuple[Suppression, ...] = field(default=())
    cells: Mapping[str, CellBound] = field(default_factory=dict)

    def cell(self, term: str) -> CellBound:
        """Of a term of nodeprint/settings/measurements.yaml, `other` where it has none of its own."""
        return self.cells.get(term) or self.cells["other"]

    def suppressed(self, node: str, finding: str, day: str) -> str:
        """Why a finding (its id) of a node is accepted on `day` (YYYY-MM-DD), and until when; empty where it is not."""
        for one in self.suppressions:
            if one.node == node and one.finding in ("*", finding) and one.until.isoformat() >= day:
                return f"{one.reason} (until {one.until})"
        return ""


#: What a campaign is judged by, in its folder.
_KEPT = "acceptance.yaml"


def load(path: Path | None = None) -> Acceptance:
    """Read an acceptance file; keys that it leaves out, or all without `path`, have the defaults.

    Raises NodeprintError naming the key's path.
    """
    return _build(_completed(path))


def keep(path: Path, campaign: Path) -> Path:
    """Write the file `path`, completed by the defaults, into the folder `campaign`, whose verdict then follows from it.

    A copy that says the same already is left alone, so that nothing is judged again for it. Returns the copy's path.
    Raises NodeprintError naming the key's path, or where it cannot be written.
    """
    kept, text = campaign / _KEPT, _text(path)
    if not kept.is_file() or kept.read_bytes() != text.encode():
        files.write(kept, text)
    return kept


def kept(campaign: Path) -> Path | None:
    """The file that a campaign is judged by; None where that is the defaults."""
    path = campaign / _KEPT
    return path if path.exists() else None


def name(path: Path | None) -> str:
    """What an acceptance is called in verdict.json and the report: the file and the SHA-256 of what it says, completed
    by the defaults (of a campaign's copy that of the file itself)."""
    said = f"{_KEPT} of the campaign" if path is not None else "the defaults"
    return f"{said}, SHA-256 {hashlib.sha256(_text(path).encode()).hexdigest()}"


def _completed(path: Path | None) -> dict[str, Any]:
    return _defaults() if path is None else _merged(_defaults(), _read(path))


@cache
def _defaults() -> dict[str, Any]:
    """Our own file, which the tests check against the schema: to import what checks it takes a while."""
    with importlib.resources.as_file(importlib.resources.files("nodeprint.judge") / "acceptance.yaml") as own:
        return checked_yaml.read(own)


def _text(path: Path | None) -> str:
    head = "# What this campaign is judged by, with all defaults; made from the site's file.\n"
    return head + yaml.safe_dump(_completed(path), sort_keys=False, width=120)


def schema() -> dict[str, Any]:
    """The JSON schema of an acceptance file, with the fields of fingerprints, the terms of models and the measurements
    that there are: what is misspelt would silently count for nothing."""
    text = importlib.resources.files("nodeprint.schemas").joinpath("acceptance.json").read_text()
    loaded: dict[str, Any] = json.loads(text)
    fields = {"enum": [one.name for one in fingerprint.FIELDS]}
    for kind in ("hard", "soft"):
        loaded["properties"]["fingerprint"]["properties"][kind]["items"] = fields
    terms = ["other", *sorted({model.term for model in models().values()})]
    loaded["properties"]["cells"]["propertyNames"] = {"enum": terms}
    loaded["properties"]["decides"]["items"] = {"enum": ["core-to-core", "messages", *terms]}
    measurements = {"enum": [*config.measurements()]}
    loaded["properties"]["required"]["items"] = measurements
    loaded["properties"]["limits"]["items"]["properties"]["measurement"] = measurements
    loaded["properties"]["suppressions"]["items"]["properties"]["finding"] = {"enum": ["*", *finding_ids()]}
    return loaded


def finding_ids() -> list[str]:
    """Every kind of finding that there can be, as suppressions name it."""
    terms = {"node", "socket", *(family.term for family in FAMILIES.values()), *(m.term for m in models().values())}
    sides = {f"{term}-{side}" for term in (*terms, "other") for side in ("slow", "fast")}
    return sorted(
        sides | {"jitter-loud", "huge-missing", "fabric-node-slow", "changed", "limit", "throttled", "memory-errors"}
    )


def _read(path: Path) -> dict[str, Any]:
    content = checked_yaml.read(path)
    checked_yaml.check(content, schema(), path, guide="nodeprint/judge/acceptance.yaml")
    for number, entry in enumerate(content.get("suppressions", ())):
        try:
            entry["until"] = datetime.date.fromisoformat(str(entry["until"]))
        except ValueError as error:
            what, key = f"{printable(repr(str(entry['until'])), 40)} is not a date", f"suppressions[{number}].until"
            raise NodeprintError(what, where=path, key=key, advice="write it as 2026-12-31") from error
    return content


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in over.items():
        known = out.get(key)
        out[key] = _merged(known, value) if isinstance(value, dict) and isinstance(known, dict) else value
    return out


def _build(content: Mapping[str, Any]) -> Acceptance:
    bounds, keys, fabric = content["bounds"], content["fingerprint"], content["fabric"]
    return Acceptance(
        bounds={term: value / 100 for term, value in bounds["percent"].items()},
        least_ns={name: float(bounds[family.bound_ns]) for name, family in FAMILIES.items()},
        harvested_ns=float(bounds["harvested_ccx_ns"]),
        clock_ticks=float(bounds["clock_ticks"]),
        false_alarm=content["false_alarm_percent"] / 100,
        decides=tuple(content["decides"]),
        priors={term: entry["percent"] / 100 for term, entry in content["priors"].items()},
        required=tuple(content["required"]),
        fabric_node=fabric["node_percent"] / 100,
        fabric_link=fabric["link_percent"] / 100,
        hard_keys=tuple(keys["hard"]),
        soft_keys=tuple(keys["soft"]),
        cmdline_ignored=tuple(keys["cmdline_ignored"]),
        limits=tuple(
            ContractLimit(
                e["measurement"], e.get("class") or e["row"], e.get("at_most"), e.get("at_least"), e["reason"]
            )
            for e in content["limits"]
        ),
        suppressions=tuple(Suppression(**entry) for entry in content["suppressions"]),
        cells={
            term: CellBound(e["percent"] / 100, e["prior"] / 100, e.get("job", e["prior"] / 3) / 100)
            for term, e in content["cells"].items()
        },
        **{
            key.removesuffix("_percent"): value / 100 if key.endswith("_percent") else float(value)
            for key, value in content["quality"].items()
        },
    )
