"""What may be printed of measured values: runs and passes, matrices and their parts, lowest and highest points."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from nodeprint.settings.measurements import known
from tests.numbers.campaign import Campaign, Fact, Json, component_words, scale
from tests.numbers.findings import runs_of_effect


def _headers(campaign: Campaign) -> Iterator[Fact]:
    for header in campaign.headers:
        if hz := (header.get("clock") or {}).get("hz"):
            yield Fact(hz, "Hz", r"tsc, $|clock: $|^clock: \S+, $")
        for key, left, right in (("lines", "", " per pass"), ("batches", "batches per line: $", "")):
            if isinstance(header.get(key), int):
                yield Fact(header[key], "", left, right)
        if isinstance(header.get("batches"), int):
            yield Fact(header["batches"], "", r"^(samples: )?$")
        if header.get("message_bytes"):
            yield Fact(header["message_bytes"] / 1024, "KiB")
            yield Fact(header["message_bytes"], "", "", " B")


def _points(measurement: str, table: pd.DataFrame) -> Iterator[Fact]:
    """The lowest and highest value of the measurement points of a node, of each kind of them."""
    if "cpu" not in table.columns and "a" in table.columns:
        return
    words = table.select_dtypes(exclude="number")
    kinds = [name for name in words if name not in (*_OF_RUNS, "node", *_CONSTANT)]
    points = [name for name in table if name not in (*_OF_RUNS, "value", "node")]
    runs = table.fillna(dict.fromkeys(points, "")).groupby(["node", *points, "run"], sort=False)["value"].median()
    medians = runs.groupby(["node", *points], sort=False).median().reset_index()
    factor, unit = scale(str(table["unit"].iloc[0]))
    unit, size = _SHARES.get(unit, (unit, factor))
    for keys, of_kind in medians.groupby(["node", *kinds]):
        for value in (of_kind["value"].min(), of_kind["value"].max()):
            yield Fact(
                float(size * value), unit, r"from $|from \S+( \S+)? to $", "", (re.escape(str(keys[0]).lower()),)
            )
    for node, of_node in medians.groupby("node"):
        for value in (of_node["value"].min(), of_node["value"].max()):
            yield Fact(float(size * value), unit, r"from $|from \S+( \S+)? to $", "", (re.escape(str(node).lower()),))


def _ports(campaign: Campaign) -> Iterator[Fact]:
    """What the cores of a CCX or CCD move in the newest job: the median over them of a run, then over runs."""
    for node, table in campaign.values.get("bandwidth-ccx", pd.DataFrame({"node": []})).groupby("node"):
        own = table[(table["job"] == table["job"].max()) & (table["memory"] == "own")]
        each = own.groupby(["scope", "stream", "run", "cpu"])["value"].median()
        medians = each.groupby(["scope", "stream", "run"]).median().groupby(["scope", "stream"]).median()
        for value in medians:
            yield Fact(value, "B/s", "(load|store) $", "", (campaign.called(str(node)),))


#: Of shares percent are printed.
_SHARES = {"share": ("%", 100.0), "1": ("%", 100.0)}
_CONSTANT = ("measurement", "operation", "quantity", "unit", "simulated")


def _passes(measurement: str, table: pd.DataFrame) -> Iterator[Fact]:
    """How many passes and runs there are of a measurement."""
    if {"job", "run"} <= set(table.columns):
        for (node, job), of_job in table.groupby(["node", "job"]):
            words = (re.escape(str(node).lower()), rf"\| {job} \| {measurement} \|")
            yield Fact(of_job["run"].nunique(), "", r"^runs: $|^\d+ \| \S+ \| \d+ \| $")
            yield Fact(of_job["pass"].nunique() if "pass" in of_job else 1, "", r"^passes: $")
            yield from _of_runs(of_job, words)
            yield Fact(
                of_job["run"].nunique(), "", r"(;|in each of|and|to|from|of each|with|node:) $", " (runs?|jobs?|to)"
            )
            if "pass" in of_job:
                yield Fact(of_job["pass"].nunique(), "", "", " pass")
        for _, of_node in table.groupby("node"):
            jobs = of_node["job"].nunique()
            yield Fact(of_node.groupby("job")["run"].nunique().sum(), "", "; $", " runs? of")
            yield Fact(jobs, "", "", " jobs?")


def _of_runs(of_job: pd.DataFrame, words: tuple[str, ...]) -> Iterator[Fact]:
    """The medians of a job's runs, lowest and highest, and how far its runs differ: the standard deviation of the
    medians of their ratios to the median of all."""
    points = [name for name in of_job if name not in (*_OF_RUNS, "value")]
    runs = (
        of_job.fillna(dict.fromkeys(points, "")).groupby([*points, "run"], sort=False)["value"].median().unstack("run")
    )
    factor, unit = scale(str(of_job["unit"].iloc[0]))
    unit, size = _SHARES.get(unit, (unit, factor))
    medians = size * runs.median()
    yield Fact(float(medians.min()), unit, r"^median of runs: $", "", words)
    yield Fact(float(medians.max()), unit, r"^median of runs: (\S+( \S+)? to )?$", "", words)
    if runs.shape[1] > 1:
        ratios = runs.div(runs.median(axis=1), axis=0).median()
        yield Fact(100 * float(ratios.std()), "%", r"^between runs: $", "", words)


_OF_RUNS = ("pass", "job", "run", "started", "disturbed", "slurm_job")


_LEVELS = ("machine", "ccx", "ccd", "quadrant", "socket")


def _pairs(campaign: Campaign, measurement: str, table: pd.DataFrame) -> Iterator[Fact]:
    """What a matrix of a node shows: lowest and highest pair, parts of the machine, and single pairs."""
    runs = table.groupby(["node", "job", "a", "b", "run"], as_index=False)["value"].median()
    by_job = runs.groupby(["node", "job", "a", "b"], as_index=False)["value"].median()
    levels = {f"{level}_{end}": f"{level}_{end}" for level in _LEVELS for end in "ab" if f"{level}_{end}" in table}
    cores = [name for name in ("core_a", "core_b", "thread_a", "thread_b") if name in table]
    places = table.drop_duplicates(["node", "a", "b"])[["node", "a", "b", *levels, *cores, "unit"]]
    pairs = by_job.merge(places, on=["node", "a", "b"]).assign(machine_a=0, machine_b=0)
    pairs = pairs[pairs["a"] != pairs["b"]]
    if unlabeled := bool(levels) and bool((table[[*levels]] < 0).all(axis=None)):
        yield from _unlabeled(campaign, measurement, pairs)
    if cores and (pairs["core_a"] >= 0).all():
        threads = pairs[["thread_a", "thread_b"]].max(axis=1) <= 0
        pairs = pairs[threads & (pairs["core_a"] != pairs["core_b"])]
    for (node, _job), of_node in pairs.groupby(["node", "job"]):
        size, unit = scale(str(of_node["unit"].iloc[0]))
        record, words = f"{node} pairs {measurement}", (campaign.called(str(node)),)
        values = size * of_node["value"]
        keys = pd.DataFrame({"low": of_node[["a", "b"]].min(axis=1), "high": of_node[["a", "b"]].max(axis=1)})
        for left, right in (("", " pairs"), ("^pairs: $", "")):
            yield Fact(len(keys.drop_duplicates()), "", left, right, words, record)
        yield Fact(float(values.min()), unit, "pairs from $", "", words, record)
        yield Fact(float(values.max()), unit, r"pairs from \S+( \S+)? to $", "", words, record)
        if not unlabeled:
            yield Fact(float(values.min()), unit, "lowest $", "", words, record)
            yield Fact(float(values.max()), unit, "highest $", "", words, record)
        square = pd.concat([of_node, of_node.rename(columns=_mirrored)], ignore_index=True)
        for value in square["value"]:
            yield Fact(float(value), "", r"^$|\d $|\. $", "", (), "single pairs")
        for level in _LEVELS:
            if f"{level}_a" not in of_node or of_node[f"{level}_a"].min() < 0:
                continue
            blocks = size * square.groupby([f"{level}_a", f"{level}_b"])["value"].median()
            yield Fact(float(blocks.min()), unit, "medians from $", " to", words, record)
            yield Fact(float(blocks.max()), unit, r"medians from \S+ to $", "", words, record)
            for part, inside in square[square[f"{level}_a"] == square[f"{level}_b"]].groupby(f"{level}_a"):
                cpus = len(set(inside["a"]) | set(inside["b"]))
                yield Fact(cpus, "", r"(threads: |up to |^)$", " fit into| at", words, record)
                yield Fact(
                    float(size * inside["value"].median()),
                    unit,
                    r"(, |: | at )$",
                    "",
                    words,
                    f"{record} {level} {part}",
                )
    yield from _from_peers(campaign, measurement, pairs)


_mirrored = {f"{key}a": f"{key}b" for key in ("", *(f"{level}_" for level in _LEVELS))}


_mirrored |= {second: first for first, second in _mirrored.items()}


def peers(campaign: Campaign, measurement: str, node: str, having: Iterable[str]) -> list[str]:
    """Nodes that a picture compares a node with: of its group, measured, without a finding of the measurement, those
    that are the same where there are three."""
    nodes = campaign.nodes
    of_group = [
        other
        for other in having
        if other != node
        and nodes[other]["group"] == nodes.get(node, {"group": nodes[other]["group"]})["group"]
        and nodes[other]["outcome"] not in ("NOT MEASURED", "INVALID", "DIFFERENT CONFIGURATION")
    ]
    clear = [
        other
        for other in of_group
        if not any(
            finding["measurement"] == measurement and not finding["waived"] for finding in nodes[other]["findings"]
        )
    ] or of_group
    same = [other for other in clear if nodes[other]["outcome"] == "SAME"]
    return same if len(same) > 2 else clear


def _unlabeled(campaign: Campaign, measurement: str, pairs: pd.DataFrame) -> Iterator[Fact]:
    """What a matrix without labels shows: the groups that the widest gap between its values makes, and its values
    with one thread per core, where these are of two CPUs."""
    for node, of_node in pairs.groupby("node"):
        size, unit = scale(str(of_node["unit"].iloc[0]))
        record, words = f"{node} pairs {measurement}", (campaign.called(str(node)),)
        groups = _grouped(of_node)
        same = of_node["a"].map(groups) == of_node["b"].map(groups)
        inside, across = (size * of_node.loc[of, "value"] for of in (same, ~same))
        counts = pd.Series(groups).value_counts()
        medians = [
            float(size * of_node.loc[same & (of_node["a"].map(groups) == group), "value"].median())
            for group in counts.index
        ]
        first = {min(cpu for cpu, of in groups.items() if of == group) for group in counts.index}
        one_thread = of_node["a"].isin(first) & of_node["b"].isin(first) | (counts.max() > 2)
        cores = size * of_node.loc[one_thread, "value"]
        for values, left in ((inside, r"^within: $"), (across, r"^to the next: $")):
            yield Fact(float(values.median()), unit, left, "", words, record)
        for value, right in ((inside.median(), " (inside|within)"), (across.median(), " (across|between)")):
            yield Fact(float(value), unit, r"(CPUs[:,]|(inside|within)( and|,)) $", right, words, record)
        for left, right in (("^groups: $", ""), (r"(: |^)$", " groups of")):
            yield Fact(len(counts), "", left, right, words, record)
        for left, right in (("^CPUs in each: $", ""), ("groups of $", " CPUs")):
            yield Fact(int(counts.iloc[0]), "", left, right, words, record)
        yield Fact(int(counts.iloc[0]), "", "threads: $", " fit into", words, record)
        yield Fact(len(groups), "", "up to $", " at", words, record)
        yield Fact(min(medians), unit, r"fit into one \S+ at $", "", words, record)
        yield Fact(float(across.min()), unit, r"up to \d+ at $", "", words, record)
        yield Fact(float(cores.min()), unit, "lowest $", "", words, record)
        yield Fact(float(cores.max()), unit, "highest $", "", words, record)


def _grouped(pairs: pd.DataFrame) -> dict[int, int]:
    """The group of each CPU: those that values below the widest gap (in times) connect."""
    values = pairs["value"].sort_values().to_numpy()
    at = int((values[1:] / values[:-1]).argmax())
    near = pairs[pairs["value"] <= values[at]]
    cpus = sorted(set(pairs["a"]) | set(pairs["b"]))
    group = {cpu: cpu for cpu in cpus}
    for a, b in zip(near["a"], near["b"], strict=True):
        low, high = sorted((group[a], group[b]))
        group = {cpu: low if of == high else of for cpu, of in group.items()}
    return group


def _messages(campaign: Campaign, measurement: str, table: pd.DataFrame) -> Iterator[Fact]:
    """The lowest, mean and highest pair of a matrix, and the rates of its messages."""
    sizes = {header["message_bytes"] for header in campaign.headers if header.get("message_bytes")}
    runs = table.groupby(["node", "job", "a", "b", "run"], as_index=False)["value"].median()
    by_job = runs.groupby(["node", "job", "a", "b"], as_index=False)["value"].median()
    for (node, _job), of_node in by_job.groupby(["node", "job"]):
        values, words = of_node["value"], (campaign.called(str(node)),)
        for name, value in (("minimum", values.min()), ("mean", values.mean()), ("maximum", values.max())):
            size, unit = scale(str(table["unit"].iloc[0]))
            record = f"{node} pairs {measurement}"
            yield Fact(float(size * value), unit, f"{name}:? $", "", words, record)
            for message in sizes if unit == "ns" else ():
                yield Fact(1e9 * message / float(size * value), "B/s", rf"{name}: \S+ \S+, $", "", words, record)


def _from_peers(campaign: Campaign, measurement: str, pairs: pd.DataFrame) -> Iterator[Fact]:
    table = pairs.groupby(["node", "a", "b"])["value"].last().unstack("node")
    yield Fact(len(peers(campaign, measurement, "", table.columns)), "", "median of $", " nodes?")
    for node in table.columns:
        others = peers(campaign, measurement, node, table.columns)
        if not others:
            continue
        words = (re.escape(str(node).lower()),)
        yield Fact(len(others), "", r"(median of|from) $", " peers?", words)
        difference = (table[node] / table[others].median(axis=1) - 1).rename("difference").reset_index()
        both = pd.concat([difference, difference.rename(columns={"a": "b", "b": "a"})])
        by_cpu = 100 * both.groupby("a")["difference"].median()
        if by_cpu.notna().any():
            yield Fact(
                float(by_cpu.iloc[int(by_cpu.abs().argmax())]), "%", "from its peers: $", " in the median", words
            )


def _places_beyond(campaign: Campaign, measurement: str, table: pd.DataFrame) -> Iterator[Fact]:
    """How many pairs or cells of a finding are beyond its tolerance by themselves."""
    for name, node in campaign.nodes.items():
        for at, finding in enumerate(node["findings"]):
            if finding["measurement"] != measurement or finding["places"] < 2 or finding["unit"] == "share":
                continue
            each, tolerance = _each_place(campaign, name, finding, table)
            beyond = int((each > tolerance).sum())
            words = (campaign.called(name), *component_words(finding["component"]))
            for left, right in (("^(pairs|values) beyond: $", " of "), ("Only $", " of its ")):
                yield Fact(beyond, "", left, right, words, f"{name} finding {at}")
                behind = rf"{left.removesuffix('$')}\d+{right}$"
                yield Fact(len(each), "", behind, "", words, f"{name} finding {at}")


def _each_place(campaign: Campaign, name: str, finding: Json, table: pd.DataFrame) -> tuple[pd.Series[float], float]:
    """The differences at the places of a finding on its side, whose mean is its effect, and the tolerance on the same
    scale. The usual value is the median over the nodes of a group of the mean over jobs of the mean over runs."""
    of_pairs = bool(finding["pairs"])
    points = ["a", "b"] if of_pairs else [*finding["cells"][0]]
    rows = table[table["home"] == finding["home"]] if of_pairs else table
    rows = rows.assign(of=[f"job{job}/run{run}" for job, run in zip(rows["job"], rows["run"], strict=True)])
    if of_pairs:
        rows = rows.assign(a=rows[["a", "b"]].min(axis=1), b=rows[["a", "b"]].max(axis=1))
    runs = rows.groupby(["node", "of", *points], sort=False)["value"].median().reset_index()
    group = [of for of, node in campaign.nodes.items() if node["group"] == campaign.nodes[name]["group"]]
    level = {of: _mean(runs[runs["node"] == of], points, _runs_of(campaign.nodes[of], runs, of)) for of in group}
    usual = pd.DataFrame(level).median(axis=1)
    own = _mean(runs[runs["node"] == name], points, runs_of_effect(finding))
    pairs = [(int(a), b) for a, partners in finding["pairs"].items() for b in partners]
    cells = [tuple(cell.values()) if len(points) > 1 else next(iter(cell.values())) for cell in finding["cells"]]
    ratio = (own / usual).loc[pairs if of_pairs else cells].dropna()
    of = known(finding["measurement"])
    is_linear = of is not None and of.model is not None and of.model.scale == "linear"
    each = (ratio - 1).clip(-1, 1 if of_pairs else math.inf) if is_linear else np.log(ratio)
    sign, ends = math.copysign(1, finding["effect"]), [finding["effect"], finding["tolerance"]]
    effect, tolerance = ends if is_linear else (np.log1p(ends[0]), abs(np.log1p(sign * ends[1])))
    return sign * (each - each.mean() + effect), float(tolerance)


def _runs_of(node: Json, runs: pd.DataFrame, name: str) -> list[list[str]]:
    every = runs.loc[runs["node"] == name, "of"].unique().tolist()
    return [[run for run in every if run.partition("/")[0] == job] for job in node["jobs"]]


def _mean(runs: pd.DataFrame, points: list[str], jobs: Iterable[list[str]]) -> pd.Series[float]:
    """The mean over jobs of the mean over their runs, by place."""
    each = [runs[runs["of"].isin(of_job)].groupby(points)["value"].mean() for of_job in jobs if of_job]
    return pd.concat(each, axis=1).mean(axis=1) if each else pd.Series(dtype=float)


def of_values(campaign: Campaign) -> Iterator[Fact]:
    """All of these."""
    yield from _headers(campaign)
    yield from _ports(campaign)
    for measurement, table in campaign.values.items():
        if {"a", "b"} <= set(table.columns):
            yield from _pairs(campaign, measurement, table)
            yield from _messages(campaign, measurement, table)
        yield from _places_beyond(campaign, measurement, table)
        yield from _passes(measurement, table)
        yield from _points(measurement, table)
