"""The colors that mark outcomes, on paper, dark screens and terminals, as reports/style.yaml has them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

import msgspec
from rich.color import Color, ColorParseError

from nodeprint.errors import NodeprintError
from nodeprint.settings import checked_yaml, sources

Hex = Annotated[str, msgspec.Meta(pattern="^#[0-9a-fA-F]{6}$")]


class OutcomeColor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A color on paper and light screens, on dark screens, and the terminal's own of that name."""

    light: Hex
    dark: Hex
    terminal: str


@cache
def outcome_colors() -> Mapping[str, OutcomeColor]:
    """By name the colors of outcomes. Reads no more of the style than a terminal needs, and no matplotlib. Raises
    NodeprintError where one cannot be used."""
    path = sources.folder() / "reports/style.yaml"
    try:
        colors = msgspec.convert(checked_yaml.read(path).get("outcomes"), dict[str, OutcomeColor])
    except msgspec.ValidationError as error:
        advice = "give each a light and a dark color, as #aabbcc, and the terminal's"
        raise NodeprintError(str(error), where=path, key="outcomes", advice=advice) from error
    for name, color in colors.items():
        try:
            Color.parse(color.terminal)
        except ColorParseError as error:
            advice = "name one of the terminal's, as red or bright_black"
            raise NodeprintError(str(error), where=path, key=f"outcomes.{name}.terminal", advice=advice) from error
    return colors
