"""What may be printed of a fleet: counts, differences that nodes share, what the data resolve, messages."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from tests.numbers.campaign import Campaign, Fact, Json, component_words, in_unit, measured_words, metric_words, percent
from tests.numbers.findings import of_agreements, of_finding, times


def _counts(campaign: Campaign) -> Iterator[Fact]:
    fleet, nodes = campaign.verdict["fleet"], campaign.nodes
    for count in {fleet["nodes"], fleet["measured"]}:
        yield Fact(count, "", right=r" nodes?\b| of \d+ nodes? measured| of \d+ measured")
        yield Fact(count, "", left=r"of (all )?$", right=r" (nodes?|measured)\b")
        yield Fact(count, "", left=r"nodes: $")
    for outcome, count in (dict.fromkeys(_OUTCOMES, 0) | dict(fleet["counts"])).items():
        yield Fact(count, "", left=rf"\({outcome}\) $")
        yield Fact(count, "", right=rf" {outcome}\b")
        yield Fact(count, "", right=r" nodes?\b", words=(outcome.lower(),))
    same = fleet["counts"].get("SAME", 0)
    yield Fact(same, "", right=r" of \d+ nodes? (match|are the same|verified|is the same)| of \d+ nodes? are the same")
    yield Fact(same, "", left=r"of \d+ nodes $")  # the acceptance report
    yield Fact(fleet["tests"], "", right=r" (parts|components) were tested| tests? with simultaneous")
    yield Fact(100 * fleet["false_alarm"], "%", left="At most $", right=" of campaigns")
    for metric, deviation in fleet["assumed_jobs"].items():
        yield Fact(100 * deviation, "%", left=r"between jobs: .*$", right=rf" \((?i:{metric_words(metric)})")
    shares = [one["share"] for node in nodes.values() for one in node["disturbances"]]
    yield Fact(100 * max(shares, default=math.nan), "%", "up to $")
    problems = sum(one["kind"] == "record" for node in nodes.values() for one in node["disturbances"])
    yield Fact(problems - 1, "", "; $", " other problems?")
    compared = {group["than"] for group in fleet["groups"]} - {""}
    split = [of for of in fleet["groups"] if of["name"] in compared or of["than"]]
    yield Fact(sum(len(of["nodes"]) for of in split), "", "", r" of \d+ nodes form")
    yield Fact(len(fleet["groups"]), "", "", " groups")
    for key in {key for node in nodes.values() for key in node["fingerprint"]}:
        having = Counter(str(node["fingerprint"].get(key)) for node in nodes.values())
        for count in having.values():
            yield Fact(count, "", r"\($", r"\)")
    for node in nodes.values():
        for finding in node["findings"]:
            yield Fact(len(finding["shared_by"]) + 1, "", "largest of $")
    runs = [row["runs"] for node in nodes.values() for row in node["classes"] if "linktest" not in row["measurement"]]
    yield Fact(min(runs, default=0), "", "; $", r" (to \d+ )?runs? of core-to-core")
    yield Fact(max(runs, default=0), "", "(; | to )$", " runs? of core-to-core")
    disturbed = sum(bool(node["disturbances"]) for node in nodes.values())
    yield Fact(disturbed, "", "recorded on $", " nodes?")
    judged = sum(bool(node["agreements"]) for node in nodes.values())
    yield Fact(judged, "", "one of $", " nodes")
    found = sum(len(node["findings"]) for node in nodes.values())
    yield Fact(found, "", right=" findings?")
    counted = [sum(not finding["waived"] for finding in node["findings"]) for node in nodes.values()]
    for shown in range(1, 1 + sum(min(count, 2) for count in counted)):  # as many as there is room for
        yield Fact(sum(counted) - shown, "", r"Further findings \($", r"\) are in the files")


def _identity(campaign: Campaign) -> Iterator[Fact]:
    """How many nodes and runs the values of another program have, and how many parts a node has."""
    identity = campaign.verdict.get("identity")
    if not identity:
        return
    values = pd.concat(campaign.values.values())
    runs = values[["node", "job", "run"]].drop_duplicates().groupby("node").size()
    yield Fact(len(campaign.nodes), "", "", " nodes? x ")
    yield Fact(runs.min(), "", " x $", "( to \\d+)? runs?")
    yield Fact(runs.max(), "", "( x| to) $", " runs?")
    for part in identity["parts"]:
        yield Fact(values.groupby("node")[part].nunique().max(), "", ", $", f" {part}s? each")


_OUTCOMES = (
    "SAME",
    "SUSPECT",
    "DEVIATES",
    "INCONCLUSIVE",
    "INVALID",
    "NOT MEASURED",
    "MISMATCH",
    "SPLIT",
    "INTERMITTENT",
)


def _fleet(fleet: Json) -> Iterator[Fact]:
    for single in fleet["single_runs"]:
        words = (measured_words(single["measurement"]),)
        value, unit = in_unit(single["median"], single["unit"])
        record = f"single {single['measurement']}"
        yield Fact(value, unit, "median is $", "", words, record)
        yield Fact(100 * single["low"], "%", "differ from it by $", "", words, record)
        yield Fact(100 * single["high"], "%", r"differ from it by \S+% to $", "", words, record)
        yield Fact(100 * single["sd"], "%", r"standard deviation $", "", words, record)
        yield Fact(100 * single["farthest"]["effect"], "%", r" most \($", "", words, record)
        yield Fact(single["nodes"], "", "each of $", " nodes", words, record)
        for at in (*single["apart"], *single["groups"]):
            yield Fact(100 * abs(at["effect"]), "%", "", " (slower|faster|higher|lower)", words, record)
            yield Fact(len(at["nodes"]), "", "", "", words, record)
        if single["groups"]:
            first, second = (1 + at["effect"] for at in single["groups"])
            yield Fact(100 * (second / first - 1), "%", r" nodes $", " (slower|faster|higher|lower)", words, record)
    for at, limit in enumerate(fleet["limits"]):
        words, record, unit = (metric_words(limit["metric"]),), f"limit {at}", percent(limit["measurement"])
        yield Fact(100 * limit["effect"], unit, r"only above $", "", words, record)
        yield from _range(_tolerance_ends([limit]), r"\(tolerance ", words, record, unit)
        yield Fact(limit["needed"], "", r"; $", " (runs|nodes)", words, record)
        yield Fact(limit["needed"], "", "a group of peers needs $", " in all", words, record)
        of = (re.escape(limit["measurement"]),)
        yield from _range(_tolerance_ends([limit]), "^tolerance: ", of, record, unit)
        yield Fact(100 * limit["effect"], unit, r"^detectable from: $", "", of, record)
    kinds: dict[tuple[str, str], list[Json]] = {}
    for limit in fleet["limits"]:
        kinds.setdefault((limit["measurement"], limit["remedy"]), []).append(limit)
    for (measurement, _), limits in kinds.items():
        yield from _far_limits(limits, measurement)
    for key in ("shared", "gaps", "groups"):
        for at, one in enumerate(fleet[key]):
            yield from _difference(one, f"{key} {at}")


#: Units whose deviations are differences of logarithms (docs/formats.md).
_LOG_UNITS = ("B/s", "1/s", "Hz")


def _tolerances_of(deviations: pd.DataFrame, metric: str) -> pd.Series[float]:
    """The tolerances of a metric's components that were compared, relative, from the table of deviations."""
    rows = deviations[(deviations["metric"] == metric) & deviations["difference"].notna()]
    return rows["tolerance"].where(~rows["unit"].isin(_LOG_UNITS), np.expm1(rows["tolerance"]))


def _criteria(campaign: Campaign) -> Iterator[Fact]:
    """By metric of SAME or of a finding the tolerances of its components, what is found, and the component closest to
    its tolerance."""
    fleet = campaign.verdict["fleet"]
    frame = pd.DataFrame(fleet["limits"])
    counted = {of["measurement"] for node in campaign.nodes.values() for of in node["findings"] if not of["waived"]}
    found = set() if frame.empty else set(frame.loc[frame["measurement"].isin(counted), "metric"])
    for metric in {*campaign.verdict["criteria"], *found} & set(frame.get("metric", [])):
        words, record = (metric_words(metric),), f"criterion {metric}"
        limits = frame[frame["metric"] == metric]
        tolerances = limits[["tolerance_low", "tolerance_high"]].stack()
        if metric in campaign.verdict["criteria"]:
            tolerances = _tolerances_of(campaign.deviations, metric)
        unit = percent(limits["measurement"].iloc[0])
        yield from _range(tolerances, "^tolerance: ", words, record, unit)
        yield from _range(limits["effect"], "^detectable from: ", words, record, unit)
        for agreement in (agreement for agreement in fleet["agreements"] if agreement["metric"] == metric):
            of = (*words, *component_words(agreement["component"]))
            yield Fact(100 * agreement["within"], unit, r"^the same within: $", "", of, record)
            yield Fact(100 * agreement["tolerance"], unit, r"^its tolerance: $", "", of, record)


def _tolerance_ends(limits: Sequence[Json]) -> list[float]:
    """The ends of the tolerances of component types; those of an older version or of messages have only a median."""
    keys = ("tolerance_low", "tolerance", "tolerance_high")
    return [limit[key] for limit in limits for key in keys if limit[key] is not None]


def _range(
    shares: Iterable[float], left: str, words: tuple[str, ...], record: str = "", unit: str = "%"
) -> Iterator[Fact]:
    """A share, or its lowest and highest value, which are never printed alone."""
    first, last = 100 * min(shares := list(shares)), 100 * max(shares)
    is_range = last > 1.005 * first
    yield Fact(first, unit, f"{left}$", " to " if is_range else "", words, record)
    yield Fact(last, unit, rf"{left}\S+ to $" if is_range else rf"{left}(\S+ to )?$", "", words, record)


def _difference(one: Json, record: str) -> Iterator[Fact]:
    """What several nodes have in common beside the others."""
    yield Fact(len(one["nodes"]), "", "", r" nodes|\)", (), record)
    yield Fact(len(one["nodes"]), "", r"^nodes: $", "", (), record)
    if not isinstance(one.get("component"), dict):
        return
    words, sign = component_words(one["component"]), math.copysign(1, one["effect"])
    points = percent(one["measurement"])
    row = (
        (rf"^[^|]*\|[^|]*\|(.*\|)? {one['name'].lower()} \||group {one['name'].lower()}:",)
        if one.get("name")
        else words
    )
    ends = sorted(100 * sign * one["interval"][end] for end in ("low", "high"))
    yield Fact(100 * abs(one["effect"]), points, "", " (slower|faster|higher|lower)", words, record)
    yield Fact(100 * one["effect"], points, r"^(by|difference|differs by|effect): $", "", row, record)
    yield Fact(ends[0], points, r"interval $", " to", words, record)
    yield Fact(ends[1], points, r"interval \S+ to $", "", words, record)
    yield Fact(100 * one["interval"]["low"], points, r"^interval: $", " to", row, record)
    yield Fact(100 * one["interval"]["high"], points, r"^interval: \S+ to $", "", row, record)
    if one.get("tolerance"):
        yield Fact(100 * one["tolerance"], points, r"tolerance:? (of )?$", "", (), record)
        yield Fact(times(one), "times", ": $", "", row, record)
    if "share" in one:
        yield Fact(100 * one["share"], "%", "", " of the nodes", words, record)
    if one.get("effect_unit"):
        value, unit = in_unit(one["effect_unit"], one["unit"])
        yield Fact(abs(value), unit, ", $", " (more|less)", words, record)
        yield Fact(value, unit, r": $", "", row, record)
    for node, value in one.get("differences", {}).items():
        yield Fact(abs(value) / one["tolerance"], "times", "peers: $", "", (re.escape(node.lower()),), record)


#: Beyond so many tolerances a detection limit is far: the data cannot be relied on there (docs/formats.md, Limit).
_FAR = 2.5


def _far_limits(limits: Sequence[Json], measurement: str) -> Iterator[Fact]:
    far = [limit for limit in limits if limit["effect"] > _FAR * limit["tolerance"]]
    if not far:
        return
    words, unit = (measured_words(measurement),), percent(measurement)
    yield Fact(len(far), "", "in $", " kinds of", words)
    yield from _range([limit["effect"] for limit in far], "only above ", words, unit=unit)
    yield from _range(_tolerance_ends(far), r"\(tolerances ", words, unit=unit)


def _spreads(fleet: Json) -> Iterator[Fact]:
    for at, spread in enumerate(fleet["spreads"]):
        words, record, unit = (re.escape(spread["measurement"]),), f"spread {at}", percent(spread["measurement"])
        for key, left in (
            ("tolerance", r"^tolerance: $|run to run; tolerance $"),
            ("chips", r"^nodes differ: $|differ by (?:up to )?$"),
            ("tolerance", "run to run; tolerance $"),
            ("runs", r"^runs differ: $|deviation; $"),
            ("smallest_tolerance", r"same within: $|At a tolerance of $"),
        ):
            yield Fact(100 * spread[key], unit, left, "", words, record)
            if not left.startswith("^tolerance"):
                of_metric = (metric_words(spread["metric"]),)
                yield Fact(100 * spread[key], unit, left.rpartition("|")[2], "", of_metric, record)
        yield Fact(spread["nodes_beyond"], "", r"\), $", " nodes?", (), record)
        of_row = (measured_words(spread["measurement"]), "all nodes")  # a range has the ends of several
        yield Fact(100 * spread["chips"], unit, r"^by: SD (\S+ to )?$", "", of_row)
        yield Fact(100 * spread["tolerance"], unit, r"^tolerance: (\S+ to )?$", "", of_row)
        for limit in fleet["limits"]:
            if all(limit[key] == spread[key] for key in ("measurement", "component_type", "term")):
                yield Fact(100 * limit["effect"], unit, r"^detectable from: $", "", words, record)
                yield from _range(_tolerance_ends([limit]), "^tolerance: ", words, record, unit)


def _fabric(fabric: Json, at: int) -> Iterator[Fact]:
    for number, finding in enumerate(fabric["findings"]):
        yield from of_finding(finding, finding["component"]["where"]["node"], f"fabric {at} {number}")
    yield Fact(len(fabric["nodes"]), "", "", " nodes")
    yield Fact(len(fabric["findings"]), "", ": $", " slow")
    for limit in fabric["limits"]:
        yield Fact(100 * limit["effect"], "%", r"limit .*$", " \\(a (node|link)")
    for key in ("minimum_ns", "mean_ns", "maximum_ns"):
        words = (key.partition("_")[0],)
        yield Fact(fabric[key], "ns", words=words)
        yield Fact(1e9 * fabric["message_bytes"] / fabric[key], "B/s", words=words)
    for others in (len(fabric["nodes"]) - 1,):
        yield Fact(others, "", r"(from|at) $", " (peers|places)")
    medians = [value for row in fabric["median_ns"] for value in row if isinstance(value, float) and value > 0]
    yield Fact(min(medians, default=math.nan), "ns", "from $")
    yield Fact(max(medians, default=math.nan), "ns", r"from \S+( \S+)? to $")
    yield Fact(fabric["message_bytes"] / 1024, "KiB")


#: A value of the survey stands in a row with its name, or behind it.
_SURVEYED = (
    r"^(?!nodes|passes|runs|pairs|measured|processors:|memory:)[^:]+: (.*\D)?$|(is|have|cores|CPUs|L3) $|other nodes: $"
)


def _fingerprint(fingerprint: Json, name: str) -> Iterator[Fact]:
    for value in fingerprint.values():
        for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", str(value)):
            for unit in ("", "GiB"):
                yield Fact(float(number), unit, _SURVEYED, record="survey")
    sockets, cores = fingerprint.get("sockets"), fingerprint.get("cores")
    if sockets and cores:
        yield Fact(sockets, "", r"^processors: (.*; )?$", " x ", record="survey")
        yield Fact(cores / sockets, "", r"^processors: .*, $", " cores each", record="survey")
    if memory := fingerprint.get("memory_gib"):
        yield Fact(float(memory), "GiB", r"^memory: (.*; )?$", record="survey")
    for number in re.findall(r"\d+", f"{fingerprint.get('dimms')} {fingerprint.get('dimm_speed')}"):
        yield Fact(float(number), "", r"^memory: .*GiB, .*$", record="survey")
    channels, speed = fingerprint.get("memory_channels"), str(fingerprint.get("dimm_rated_speed", "")).partition(" ")[0]
    if channels and speed.isdigit():  # eight bytes a transfer and channel
        yield Fact(8e6 * int(channels) * int(speed), "B/s", "at most $", "", (re.escape(name.lower()),))


def of_acceptance(judged: Sequence[Campaign]) -> Iterator[Fact]:
    """How many nodes an acceptance report accepts: those that are the same in every campaign."""
    outcomes: dict[str, set[str]] = {}
    for campaign in judged:
        for name, node in campaign.nodes.items():
            is_found = node["class"] in ("FAIL", "WARN") and node["outcome"] != "DIFFERENT CONFIGURATION"
            outcomes.setdefault(name, set()).add("found" if is_found else node["outcome"])
    accepted = sum(of == {"SAME"} for of in outcomes.values())
    deviating = sum("found" in of for of in outcomes.values())
    yield Fact(len(outcomes), "", r"campaign: \d+ of $", " nodes?")
    yield Fact(accepted, "", r"every campaign: $")
    yield Fact(deviating, "", r"at least one campaign: $")
    yield Fact(len(outcomes) - accepted - deviating, "", r"not verified or not measured: $")


def of_fleet(campaign: Campaign) -> Iterator[Fact]:
    """All of these."""
    fleet = campaign.verdict["fleet"]
    yield from _counts(campaign)
    yield from _identity(campaign)
    yield from _fleet(fleet)
    yield from _criteria(campaign)
    yield from _spreads(fleet)
    yield from of_agreements(fleet["agreements"], "")
    for at, fabric in enumerate(campaign.verdict["fabric"]):
        yield from _fabric(fabric, at)
    for name, node in campaign.nodes.items():
        yield from _fingerprint(node["fingerprint"], name)
