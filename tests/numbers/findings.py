"""What may be printed of a node: its findings, how alike it is, what disturbed it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from tests.numbers.campaign import METRICS, Fact, Json, component_words, in_unit, metric_words


def beyond(finding: Json) -> int:
    """How many runs are beyond the tolerance on the finding's side."""
    sign = math.copysign(1, finding["effect"])
    return sum(sign * effect > finding["tolerance"] for job in finding["by_job"] for effect in job["runs"].values())


def of_finding(finding: Json, node: str, record: str) -> Iterator[Fact]:
    """What a sentence or a row may print of a finding: all has to be of this one."""
    words = (re.escape(node.lower()), *component_words(finding["component"]))
    effect, sign = finding["effect"], math.copysign(1, finding["effect"])
    runs = [run for job in finding["by_job"] for run in job["runs"]]

    def fact(value: float, unit: str, left: str = "", right: str = "") -> Fact:
        return Fact(value, unit, left, right, words, record)

    change = " (slower|faster)" if _is_time(finding) else " (higher|lower|below|less|more)"
    direction = change if effect else ""
    for percent in ("%", "percentage points"):
        yield fact(100 * abs(effect), percent, r"(is|are|was|were|bandwidth|pages for) $", direction or change)
        yield fact(100 * effect, percent, r"(lies|^difference:|^by:) $")
    low, high = finding["interval"]["low"], finding["interval"]["high"]
    ends = sorted((100 * sign * low, 100 * sign * high))
    yield fact(ends[0], "%", r"(interval|CI) $", " to ")
    yield fact(ends[1], "%", r"(interval|CI) \S+ to $")
    yield fact(100 * low, "%", r"^interval: $", " to ")
    yield fact(100 * high, "%", r"^interval: \S+ to $")
    yield fact(100 * finding["tolerance"], "%", r"tolerances?:? (of )?$")
    yield fact(times(finding), "times", r"(: |of the tolerance: |\()$")
    value, unit = in_unit(abs(finding["effect_unit"] or math.nan), finding["unit"])
    yield fact(value, unit, ", $", " more" if effect > 0 else " less")
    value, unit = in_unit(finding["value"], finding["unit"])
    peers, _ = in_unit(finding["peers"], finding["unit"])
    yield fact(value, unit, r"(^measured: |\): |peers \(|(is|are) )$")
    yield fact(peers, unit, r"(^peers: |peers have |peers |peers \(\S+ of )$")
    yield fact(finding["value"], "", r"(throttled |in |^)$", r" (times|bursts|memory errors)")
    yield fact(finding["value"], "times", r"throttled $")
    allowed, unit = in_unit(finding["tolerance_unit"], finding["unit"])
    yield fact(allowed, unit, "limit of $")
    edge = (
        peers * (1 + sign * finding["tolerance"])
        if finding["unit"] != "share"
        else peers + 100 * sign * finding["tolerance"]
    )
    yield fact(edge, unit, r"^accepted: at most $" if sign > 0 else r"^accepted: at least $")
    yield fact(beyond(finding), "", r"^runs beyond: $", " of ")
    yield fact(len(runs), "", r"^runs beyond: \d+ of $")
    yield fact(beyond(finding), "", "", r" of \d+ runs")
    yield fact(len(runs), "", r"(\d+ of|All|of) $", r" runs?\b")
    yield fact(len(finding["by_job"]), "", r"(of|in) $", r" jobs?\b")
    jobs_showing = sum(bool(job["showing"]) for job in finding["by_job"])
    yield fact(jobs_showing, "", r"Found in $", " of")
    streams = {cell["stream"] for cell in finding["cells"] if "stream" in cell}
    yield fact(len(streams), "", "mean of $", " streams?")
    yield fact(len(finding["finer"]), "", "explains $", " differences?")
    for measurement in {finer["measurement"] for finer in finding["finer"]}:
        count = sum(finer["measurement"] == measurement for finer in finding["finer"])
        yield fact(count, "", "", " differences?")
    yield fact(len(finding["shared_by"]) + 1, "", "", " nodes")
    places = sum(map(len, finding["pairs"].values())) or len(finding["cells"])
    yield fact(places, "", "at $", " places?")
    yield fact(100 * effect, "%", "[a-z] $", r" \(95 % interval")  # over time
    yield fact(100 * (effect - finding["half_95"]), "%", "95 % interval $")
    yield fact(100 * (effect + finding["half_95"]), "%", r"95 % interval \S+ to $")
    yield from _evidence(finding, words, record)


def _evidence(finding: Json, words: tuple[str, ...], record: str) -> Iterator[Fact]:
    """What the node's instruments show beside those of its peers."""
    for seen in finding["evidence"]:
        if seen["peers"]:
            yield Fact(100 * (seen["value"] / seen["peers"] - 1), "%", r"\($|clock: $", "", words, record)
        for key in ("value", "peers"):
            value, unit = in_unit(seen[key], seen["unit"])
            yield Fact(value, unit, r"(Temperature|throttling|EDAC\)|CPUs)[^.]*$", "", words, record)


def _is_time(finding: Json) -> bool:
    return str(finding["unit"]) in ("ns", "us", "s") and "/" not in str(finding["unit"])


def times(finding: Json) -> float:
    """The factor that a reader has who divides the effect by the tolerance, as both are printed."""
    effect, tolerance = round(100 * abs(finding["effect"]), 1), _printed_tolerance(finding["tolerance"])
    return math.floor(10 * effect / tolerance + 0.5 + 1e-9) / 10 if tolerance else math.nan


def _printed_tolerance(share: float) -> float:
    return float(f"{100 * share:.{2 if share < 0.1 else 3}g}")


def of_agreements(agreements: Sequence[Json], node: str) -> Iterator[Fact]:
    for at, agreement in enumerate(agreements):
        metric = metric_words(agreement["metric"]) if agreement["metric"] in METRICS else ""
        component = component_words(agreement["component"])
        words = tuple(filter(None, (re.escape(node.lower()), metric, *component)))
        record = f"{node} agreement {at}"
        for key, left in (("within", r"up to"), ("tolerance", r"\(tolerance")):
            value, name = in_unit(agreement[f"{key}_unit"], agreement["unit"])
            yield Fact(100 * agreement[key], "%", f"{left} $", "", words, record)
            yield Fact(value, name, rf"{left} \S+ % or $", "", words, record)
        yield Fact(100 * agreement["tolerance"], "%", r"^tolerance: $", "", words, record)
        near = rf"(?i:{metric}) $"
        yield Fact(100 * agreement["within"], "%", near, " of ", words, record)
        yield Fact(100 * agreement["tolerance"], "%", rf"(?i:{metric}) \S+ % of $", "", words, record)
        yield Fact(100 * agreement["within"], "%", r"^the same within: $", "", words, record)
        yield Fact(100 * agreement["share"], "%", r"^used: $", "", words, record)
        yield Fact(100 * agreement["effect"], "%", r"^differs by: $", "", words, record)
        if agreement["criterion"]:
            yield Fact(100 * agreement["share"], "%", r"^of what decides: $", "", words[:1] if node else (), record)
        yield Fact(agreement["needed"], "", "; $", " runs are needed", words, record)
        yield Fact(agreement["needed"], "", "nodes like these: $", " are needed", words, record)
        yield Fact(agreement["runs"], "", "needed and $", " were made", words, record)


def _disturbances(disturbances: Sequence[Json], node: str) -> Iterator[Fact]:
    for one in disturbances:
        words = (re.escape(node.lower()),)
        yield Fact(100 * one["share"], "%", words=words)
        yield Fact(100 * one["value"], "%", words=words)
        yield Fact(one["value"], "", words=words)
        yield Fact(one["value"], "times", words=words)
        for end in ("low", "high"):
            yield Fact(*in_unit(one[end], one["unit"]), words=words)
            run = re.search(r"run(\d+)", one[f"{end}_in"])
            if run:
                yield Fact(int(run[1]), "", "run $", words=words)


def _reasons(node: Json, name: str) -> Iterator[Fact]:
    words = (re.escape(name.lower()),)
    yield Fact(len(node["findings"]) - 1, "", r"(has|and) $", r" more", words)
    for reason in node["reasons"]:
        yield Fact(100 * reason["share"], "%", words=words)
    yield Fact(len(node["jobs"]), "", "", r" jobs?\b")


def of_node(node: Json, name: str) -> Iterator[Fact]:
    """All of these."""
    for at, finding in enumerate(node["findings"]):
        yield from of_finding(finding, name, f"{name} finding {at}")
    yield from of_agreements(node["agreements"], name)
    yield from _disturbances(node["disturbances"], name)
    yield from _reasons(node, name)
