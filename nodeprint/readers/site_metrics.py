"""Results that a site's own program prints: lines `name: value unit`, or a JSON object of numbers.

config.yaml names this reader (docs/how-to/measure-your-own-command.md); no output is taken for these otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodeprint.readers import units
from nodeprint.readers.parsing import NUMBER, slug, tool_values
from nodeprint.readers.tool_output import ToolValue

NAME = "metrics"
_LINE = re.compile(rf"\s*([A-Za-z][^:=]{{0,79}}?)\s*[:=]\s*({NUMBER})\s*(\S{{1,20}})\s*")


def read(lines: Sequence[str]) -> list[ToolValue]:
    """Return the values of a JSON object, or else those of lines with a unit: other numbers may be no results."""
    text = "\n".join(lines)
    for start in (text, *(line for line in reversed(lines) if line.startswith("{"))):
        try:
            content = json.loads(start)
        except ValueError:
            continue
        if isinstance(content, dict):
            return [
                value for name, number, unit in _numbers(content) for value in tool_values(number, slug(name), unit)
            ]
    values: list[ToolValue] = []
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match and (match[3] == "%" or units.known(match[3])):
            values += tool_values(float(match[2]), slug(match[1]), match[3], number)
    return values


def _numbers(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float, str]]:
    """Yield names, numbers and units. A unit is a key of its own beside `value`, or ends the name, as in latency_us."""
    for key, value in content.items():
        name = f"{before}{key}"
        if isinstance(value, dict):
            if isinstance(value.get("unit"), str) and _is_number(value.get("value")):
                yield name, float(value["value"]), value["unit"]
            else:
                yield from _numbers(value, f"{name}-")
        elif _is_number(value):
            stem, _, unit = name.rpartition("_")
            yield (stem, float(value), unit) if stem and units.known(unit) else (name, float(value), "")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
