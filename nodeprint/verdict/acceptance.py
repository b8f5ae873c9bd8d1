"""What a site accepts.

Bounds of the terms, priors, fingerprint keys, absolute limits, suppressions (config/acceptance.yaml).
"""

from __future__ import annotations

import datetime
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from nodeprint.errors import NodeprintError, printable
from nodeprint.verdict.terms import TERM_OF_FAMILY


@dataclass(frozen=True)
class Limit:
    """An absolute limit of a contract on a class's median, in the measurement's unit."""

    measurement: str
    class_name: str
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
class Acceptance:
    """Bounds are relative and in ns; priors the chip-to-chip standard deviation by term."""

    bounds: Mapping[str, float]
    least_ns: float
    clock_ticks: float
    spread_factor: float
    false_alarm: float
    priors: Mapping[str, float]
    required: tuple[str, ...]
    missing_pairs: float
    disturbed_pairs: float
    hard_keys: tuple[str, ...]
    soft_keys: tuple[str, ...]
    cmdline_ignored: tuple[str, ...]
    limits: tuple[Limit, ...] = field(default=())
    suppressions: tuple[Suppression, ...] = field(default=())

    def prior_of_family(self) -> dict[str, float]:
        """Chip spread by family of terms."""
        return {family: self.priors[term] for family, term in TERM_OF_FAMILY.items()} | {
            "spread": self.priors["spread"]
        }


def load(path: Path | None = None) -> Acceptance:
    """Read an acceptance file; the package's own without `path`. Keys that are left out have the package's values.

    Raises NodeprintError naming the key's path.
    """
    default = _read(
        importlib.resources.files("nodeprint.verdict").joinpath("acceptance.yaml").read_text(), "acceptance.yaml"
    )
    if path is None:
        return _build(default)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NodeprintError(f"cannot be read ({error})", where=path, advice="name an acceptance.yaml") from error
    return _build(_merged(default, _read(text, path)))


def schema() -> dict[str, Any]:
    """The JSON schema of an acceptance file."""
    text = importlib.resources.files("nodeprint.schemas").joinpath("acceptance.json").read_text()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _read(text: str, where: Path | str) -> dict[str, Any]:
    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        raise NodeprintError("not YAML", where=where, line=line, advice="correct it") from error
    validator = jsonschema.Draft202012Validator(schema())
    errors = sorted(validator.iter_errors(content), key=lambda e: [str(part) for part in e.absolute_path])
    if errors:
        first = errors[0]
        key = ".".join(str(part) for part in first.absolute_path) or "(top)"
        raise NodeprintError(
            printable(first.message), where=where, key=key, advice="config/acceptance.yaml explains every key"
        )
    loaded: dict[str, Any] = content
    return loaded


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in over.items():
        known = out.get(key)
        out[key] = _merged(known, value) if isinstance(value, dict) and isinstance(known, dict) else value
    return out


def _build(content: Mapping[str, Any]) -> Acceptance:
    keys, quality = content["fingerprint"], content["quality"]
    bounds = content["bounds"]
    return Acceptance(
        bounds={term: value / 100 for term, value in bounds["percent"].items()},
        least_ns=float(bounds["least_ns"]),
        clock_ticks=float(bounds["clock_ticks"]),
        spread_factor=float(bounds["spread_factor"]),
        false_alarm=content["false_alarm_percent"] / 100,
        priors={term: entry["percent"] / 100 for term, entry in content["priors"].items()},
        required=tuple(content["required"]),
        missing_pairs=quality["missing_pairs_percent"] / 100,
        disturbed_pairs=quality["disturbed_pairs_percent"] / 100,
        hard_keys=tuple(keys["hard"]),
        soft_keys=tuple(keys["soft"]),
        cmdline_ignored=tuple(keys["cmdline_ignored"]),
        limits=tuple(
            Limit(e["measurement"], e["class"], e.get("at_most"), e.get("at_least"), e["reason"])
            for e in content["limits"]
        ),
        suppressions=tuple(
            Suppression(e["node"], e["finding"], e["reason"], datetime.date.fromisoformat(str(e["until"])))
            for e in content["suppressions"]
        ),
    )
