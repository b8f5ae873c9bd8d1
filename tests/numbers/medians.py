"""Medians of nodes, of the fleet and of groups, each with its row."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pandas as pd

from tests.numbers.campaign import Campaign, Fact, Json, cell_words, in_unit, measured_words, numbered_words


def of_node(node: Json, name: str, called: str) -> Iterator[Fact]:
    """The medians of a node, each in its row, but not in those of the fleet, which name two nodes."""
    words = (called, r"^(?!.*\| node\w+ \| [^|]+ \| node\w+)")
    for at, row in enumerate(node["classes"]):
        of, record = (*words, re.escape(row["name"].lower())), f"{name} class {at}"
        yield Fact(row["median_ns"], "ns", r"^median: $|$", "", of, record)
        for group, value in row["groups"].items():
            yield Fact(value, "ns", r"^median: $|$", "", (*of, cell_words(group)), record)
            yield Fact(value, "ns", rf"(?i:{cell_words(group)}): $|^$", "", (*words, cell_words(group)), record)
            yield Fact(row["runs"], "", "^median: $", "", (*of, cell_words(group)), record)  # behind empty cells
        yield Fact(row["ci_low_ns"] or math.nan, "ns", r"interval: $|^$|95%: $", " to ", of, record)
        yield Fact(row["ci_high_ns"] or math.nan, "ns", r"(interval: |^|95%: )\S+( \S+)? to $", "", of, record)
        yield Fact(row["pairs"], "", r"^pairs: $", "", of, record)
        yield Fact(row["runs"], "", r"^runs: $", "", of, record)
    for at, row in enumerate(node["cells"]):
        named = (*words, measured_words(row["measurement"]), cell_words(row["name"]))
        record = f"{name} cell {at}"
        value, unit = in_unit(row["median"], row["unit"])
        yield Fact(value, unit, r"(this node|median|value|measured|^[^:]*): $|^$", "", named, record)
        yield Fact(value, unit, "", rf" \({cell_words(row['name'])}\)", (), record)
        yield Fact(value, unit, "[a-z:] $", "", words, f"{name} reading")
        for key in ("ci_low", "ci_high", "group"):
            yield Fact(in_unit(row[key], row["unit"])[0], unit, "", "", named, record)
        worst = (*named, *numbered_words(row["worst"]))
        yield Fact(in_unit(row["worst_value"], row["unit"])[0], unit, "", "", worst, record)
        if row["group"]:
            yield Fact(100 * (row["median"] / row["group"] - 1), "%", r"difference[^:]*: $|: $|^$", "", named, record)
        if row["peak"]:
            yield Fact(100 * row["median"] / row["peak"], "%", r"(possible|peak)[^:]*: $|^$", "", named, record)
            yield Fact(row["peak"], row["unit"], "at most $", "", words)
        yield Fact(row["runs"], "", r"^runs: $|\(\d+ of $", "", named, record)
        yield Fact(row["runs"] - row["left_out"], "", r"\($", r" of \d+ runs", named, record)
        yield Fact(row["cells"], "", r"^cells: $", "", named, record)


def of_fleet(campaign: Campaign) -> Iterator[Fact]:
    """Medians over the fleet and its groups."""
    yield from _medians(campaign)
    yield from _of_groups(campaign)
    yield from _one_run(campaign)


def runs_disagree(figure: Json) -> bool:
    """Whether there are two runs without a common value."""
    return bool(figure["runs"] == figure["left_out"] == 2)


def _medians(campaign: Campaign) -> Iterator[Fact]:
    """Medians over the fleet, and the lowest and highest of a node."""
    rows = [
        (figure["measurement"], f"{figure['name']}, {group}".removesuffix(", "), figure["home"], "ns", value, name, 0.0)
        for name, node in campaign.nodes.items()
        for figure in node["classes"]
        if not runs_disagree(figure)
        for group, value in (figure["groups"] or {"": figure["median_ns"]}).items()
    ] + [
        (figure["measurement"], figure["name"], -1, figure["unit"], figure["median"], name, figure["peak"])
        for name, node in campaign.nodes.items()
        for figure in node["cells"]
        if not runs_disagree(figure)
    ]
    frame = pd.DataFrame(rows, columns=["measurement", "name", "home", "unit", "value", "node", "peak"])
    for (measurement, name, _home, unit), group in frame.groupby(["measurement", "name", "home", "unit"]):
        shown_name = str(name).removeprefix("every pair, ")
        words = (measured_words(str(measurement)), *((cell_words(shown_name),) if name != "all" else ()))
        record = f"median {measurement} {name} {_home}"
        median, shown = in_unit(float(group["value"].median()), str(unit))
        low_value, high_value = group["value"].min(), group["value"].max()
        low, high = (in_unit(float(value), str(unit))[0] for value in (low_value, high_value))
        yield Fact(median, shown, r"^median(?: \(\*[^:]*: [^:]*\))?: $|^$", "", words, record)
        of_ends = (*words, rf"\| {_among(group, low_value)} \| [^|]+ \| {_among(group, high_value)}(?: \||$)")
        yield Fact(low, shown, r"^lowest: $", "", of_ends, record)
        yield Fact(high, shown, r"^highest: $", "", of_ends, record)
        of_terminal = (*words, r"^\$ ")  # narrow, it has no nodes
        yield Fact(low, shown, r"^lowest: $", "", of_terminal, record)
        yield Fact(high, shown, r"^highest: $", "", of_terminal, record)
        yield Fact(len(group), "", r"^nodes: $", "", words, record)
        if group["peak"].all():
            yield Fact(100 * float((group["value"] / group["peak"]).median()), "%", r"peak: $", "", words, record)


def _among(rows: pd.DataFrame, value: float) -> str:
    """The nodes that have a value."""
    return f"(?:{'|'.join(re.escape(node.lower()) for node in rows.loc[rows['value'] == value, 'node'])})"


def _of_groups(campaign: Campaign) -> Iterator[Fact]:
    """The medians of each group of a split fleet, and how far one is from the first."""
    groups = {group["name"]: group["nodes"] for group in campaign.verdict["fleet"]["groups"]}
    if len(groups) < 2:
        return
    rows = [
        (
            row["measurement"],
            row["name"],
            "ns" if "pairs" in row else row["unit"],
            group,
            row.get("median_ns", row.get("median")),
        )
        for group, nodes in groups.items()
        for node in nodes
        for row in (*campaign.nodes[node]["classes"], *campaign.nodes[node]["cells"])
    ]
    frame = pd.DataFrame(rows, columns=["measurement", "name", "unit", "group", "value"])
    for (_, name, unit), of_row in frame.groupby(["measurement", "name", "unit"]):
        medians = of_row.groupby("group")["value"].median()
        words = (cell_words(str(name)),) if name != "all" else ()
        for group, value in medians.items():
            yield Fact(*in_unit(float(value), str(unit)), rf"{group}[^:]*: $|^[^:]*: $", "", words, f"groups {name}")
        first = medians.iloc[0]
        for value in medians.iloc[1:]:
            yield Fact(100 * float(value / first - 1), "%", r": $", "", words, f"groups {name}")


def _one_run(campaign: Campaign) -> Iterator[Fact]:
    """Of how many figures there is one run alone, of a node and of all."""
    single = {
        name: sum(row["runs"] < 2 for row in (*node["classes"], *node["cells"]))
        for name, node in campaign.nodes.items()
    }
    for count in {*single.values(), sum(single.values())}:
        yield Fact(count, "", "", " figures? of one run")
    mixtures = sum(bool(row["groups"]) for node in campaign.nodes.values() for row in node["classes"])
    yield Fact(mixtures, "", "", " mixtures? of groups")
    runs = {row["runs"] for node in campaign.nodes.values() for row in (*node["classes"], *node["cells"])}
    for count in runs:
        yield Fact(count, "", r"^spread: $|^spread: .*(and|,) $", "")
