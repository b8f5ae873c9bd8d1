"""What was exported of a campaign, and the words by which its parts are named: nothing is from nodeprint.report."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from nodeprint.data.places.measured import models
from nodeprint.settings.measurements import known, terms

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Fact:
    """A value in `unit` (% of a share, ns, B/s, Hz, times, or a plain number). The context has all `words` (regular
    expressions, lower case), the text before the number ends with `left` (a cell's begins with its header), and that
    behind it begins with `right`. `record` is the row of the data that it is of."""

    value: float
    unit: str
    left: str = ""
    right: str = ""
    words: tuple[str, ...] = ()
    record: str = ""


@dataclass
class Campaign:
    """What was exported of a campaign."""

    name: str
    verdict: Json
    deviations: pd.DataFrame
    values: Mapping[str, pd.DataFrame]
    headers: Sequence[Json]

    @property
    def nodes(self) -> Json:
        """Its nodes."""
        return dict(self.verdict["nodes"])

    def called(self, node: str) -> str:
        """How a node is named around what is said of it; one that is alone need not be."""
        measured = [one for one in self.nodes.values() if one["classes"] or one["cells"]]
        return re.escape(node.lower()) if len(measured) > 1 else ""


def campaigns(artifacts: Mapping[str, str], sources: Mapping[str, str]) -> list[Campaign]:
    """The campaigns that were judged; `sources` are tables of values and headers of records."""
    out = []
    for path, text in artifacts.items():
        folder, _, file = path.rpartition("/")
        if file == "verdict.json":
            values = {
                name.rpartition("/values/")[2]: _frame(table)
                for name, table in sources.items()
                if name.startswith(f"{folder}/values/")
            }
            headers = [json.loads(line) for line in sources.get(f"{folder}/headers", "").splitlines()]
            table = _frame(artifacts.get(f"{folder}/deviations.csv", ""))
            out.append(Campaign(folder, json.loads(text, object_hook=_numbers), table, values, headers))
    return out


def _numbers(of: dict[str, Any]) -> dict[str, Any]:
    return {key: math.nan if value is None else value for key, value in of.items()}


def _frame(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text), low_memory=False) if text else pd.DataFrame()


#: Units as values have them in plain terms, and how many of these one is.
_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9}


_SIZES = {"n": 1.0, "µ": 1e3, "u": 1e3, "m": 1e6, "": 1e9}


def scale(unit: str) -> tuple[float, str]:
    """How many of the plain unit (ns, B/s, Hz, 1/s) a unit is, and which; other units are as they are."""
    if unit in ("ns", "us", "µs", "ms", "s"):
        return _SIZES[unit[:-1]], "ns"
    plain = unit.lstrip("kMG")
    if plain in ("B/s", "Hz", "flop/s", "1/s", "/s"):
        return _PREFIXES.get(unit[0], 1.0), plain if plain in ("B/s", "Hz") else "1/s"
    return 1.0, {"tolerances": "times", "percentage points": "points"}.get(unit, unit)


def percent(measurement: str) -> str:
    """The unit of a difference in a measurement: percentage points if it is of shares."""
    model = models().get(measurement)
    return "points" if model is not None and model.scale == "share" else "%"


METRICS = {
    "core-to-core": "core.to.core latency",
    "numa": "memory latency",
    "bandwidth": "(?:memory )?bandwidth",
    "clock": "clock",
    "messages": "(?:time of a message|messages) (?:by mpi|between cores)",
}


def metric_words(metric: str) -> str:
    term = terms().get(metric)
    return METRICS.get(metric, re.escape(term.name if term and term.name else metric).replace(r"\-", ".").lower())


def measured_words(measurement: str) -> str:
    """The words for what a measurement measures."""
    of = known(measurement)
    return re.escape((measurement if of is None else of.what).lower())


_NUMBERED = {
    "core": r"core {}\b",
    "ccd": r"ccd {}\b",
    "ccx": r"ccx {}\b",
    "cluster": r"cluster {}\b",
    "quadrant": r"(?:quadrant|numa node) {}\b",
    "numa": r"numa node {}\b",
    "socket": r"socket {}\b",
    "to_socket": r"socket {}\b",
    "to_quadrant": r"(?:quadrant|numa node) {}\b",
    "to_ccd": r"ccd {}\b",
    "to_ccx": r"ccx {}\b",
    "cpu_node": r"(?:numa )?node {}\b",
    "memory_node": r"(?:numa )?node {}\b",
}


_CLASSES = (
    "same core",
    "same (?:ccx|cluster)",
    "same ccd",
    "same (?:quadrant|numa node)",
    "same socket",
    "other socket",
    "every pair|pairs",
)


_VALUES = {
    "store_mem": "streaming store",
    "copy_mem": "streaming copy",
    "triad_mem": "streaming triad",
    "read3_write1": "3:1 reads:writes",
    "read2_write1": "2:1 reads:writes",
    "read1_write1": "1:1 reads:writes",
    "numa": "numa node",
    "huge": "huge pages",
    "base": "small pages",
    "thp": "transparent huge pages",
    "shallow": "shallow sleep",
    "deep": "deep sleep",
}


#: Keys of a place whose words are in sentences and not in its name.
_IN_SENTENCES = ("cpus", "reason", "pages", "inside")


def numbered_words(where: Json) -> tuple[str, ...]:
    """The words by which numbered parts of a machine are named."""
    return tuple(_NUMBERED[key].format(value) for key, value in where.items() if key in _NUMBERED)


def component_words(component: Json) -> tuple[str, ...]:
    """The words by which a component is named, each of which has to be there."""
    out = []
    for key, value in component["where"].items():
        if key == "class":
            out.append(_CLASSES[value] if isinstance(value, int) else str(value).lower())
        elif key == "beyond_class":
            out.append("beyond (?:the ccx|its ccxs)")
        elif key in _NUMBERED:
            out.append(_NUMBERED[key].format(value))
        elif key in ("node", "to", "figure") or (isinstance(value, str) and key not in _IN_SENTENCES):
            out.append(cell_words(str(value)))
    if not component["where"]:
        out.append(
            "whole node"
            if component["component_type"] in ("whole", "class")
            and component["term"] in ("node", "numa", "bandwidth", "clock", "wake", "load", "loaded")
            else ""
        )
    return tuple(filter(None, out))


def cell_words(value: str) -> str:
    return re.escape(", ".join(_VALUES.get(word, word.replace("_", " ")) for word in value.split(", "))).lower()


_UNITS = {"share": ("%", 100.0), "1": ("", 1.0)}


def in_unit(value: float | None, unit: str) -> tuple[float, str]:
    factor, name = scale(unit)
    name, factor = _UNITS.get(unit, (name, factor))
    return (math.nan if value is None else factor * value), name


def quoted(campaign: Campaign) -> set[str]:
    """Texts of the verdict that pages quote: what other programs said, advice, names of rows, values of the survey."""
    out: set[str] = set()
    for node in campaign.nodes.values():
        out |= {words for warning in node["warnings"] for words in (warning["text"], warning["advice"])}
        out |= {one["detail"] for one in (*node["disturbances"], *node["reasons"])} | set(node["log_tail"])
        out |= {row["name"].replace("_", " ") for row in node["cells"]}
        out |= {str(value) for value in node["fingerprint"].values() if not isinstance(value, int | float)}
        out |= {finding["waived"] for finding in node["findings"]}
    fleet = campaign.verdict["fleet"]
    out |= {words for note in fleet["notes"] for words in (note["detail"], note["name"])}
    return {words for words in out if re.search(r"\d", words) and re.search(r"[a-zA-Z]", words)}
