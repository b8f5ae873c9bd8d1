"""Values of a verdict in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from nodeprint.fingerprint import label
from nodeprint.report.pages import Facts
from nodeprint.words import units


def facts(mapping: Any) -> Facts:
    """Keys and values in words; nested objects become `outer inner`, values that are unknown are left out."""
    out: list[tuple[str, str]] = []
    for key, value in mapping.items() if isinstance(mapping, Mapping) else ():
        name = label(str(key))
        if isinstance(value, Mapping):
            out += [(f"{name} {inner}", text) for inner, text in facts(value)]
        elif isinstance(value, bool):
            out.append((name, "yes" if value else "no"))
        elif isinstance(value, float):
            out.append((name, f"{value:g}"))
        elif isinstance(value, list | tuple):
            out.append((name, ", ".join(map(str, value))))
        elif value is not None and value != "":
            out.append((name, str(value)))
    return tuple(out)


def sentence(item: Any) -> str:
    """A remark, whether it comes as text, as an object with a text, or as an object of facts."""
    if isinstance(item, Mapping):
        said = item.get("text") or item.get("message")
        return str(said) if said else ", ".join(f"{key} {value}" for key, value in facts(item))
    return ", ".join(map(str, item)) if isinstance(item, list | tuple) else str(item)


def without_runs(text: str) -> str:
    """A finding's sentence without the list of runs at its end, which is beside it."""
    return re.sub(r",? in job\d+/run[\d\[\]-]+(?:, job\d+/run[\d\[\]-]+)*$", "", text)


def notes(verdict: Mapping[str, Any]) -> tuple[str, ...]:
    """What the verdict says of the whole fleet."""
    return tuple(sentence(note) for note in (verdict.get("fleet") or {}).get("notes", ()))


def number(value: Any) -> float | None:
    """`value` when it is a finite number, else None."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and np.isfinite(value) else None


def percent(value: Any, signed: bool = False) -> str:
    """A share in percent with one decimal, never as -0.0; empty when unknown."""
    share = number(value)
    return "" if share is None else f"{100 * share:{'+' if signed else ''}z.1f} %"


def with_unit(value: Any, unit: str) -> str:
    """A value with its unit; empty when unknown."""
    known = number(value)
    return "" if known is None else units.said(known, unit)


def thousands(value: Any) -> str:
    """A whole number with thin spaces between its thousands."""
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else str(value or "")


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts cn2 before cn10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)]
