"""What may be printed of a node: its findings, how alike it is, what disturbed it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from tests.numbers.campaign import METRICS, Fact, Json, component_words, in_unit, metric_words, percent


def beyond(finding: Json) -> int:
    """How many runs are beyond the tolerance on the finding's side."""
    sign = math.copysign(1, finding["effect"])
    return sum(sign * effect > finding["tolerance"] for job in finding["by_job"] for effect in job["runs"].values())


def runs_of_effect(finding: Json) -> list[list[str]]:
    """By job the runs that an effect is the mean of: those of jobs that show it, or else single runs, or else all."""
    jobs = finding["by_job"]
    whole, single = [job["runs"] for job in jobs if job["shows"]], [job["showing"] for job in jobs if job["showing"]]
    return [list(runs) for runs in whole or single or (job["runs"] for job in jobs)]


def of_finding(finding: Json, node: str, record: str) -> Iterator[Fact]:
    """What a sentence or a row may print of a finding: all has to be of this one."""
    words = (node, *component_words(finding["component"]))
    effect, sign = finding["effect"], math.copysign(1, finding["effect"])

    def fact(value: float, unit: str, left: str = "", right: str = "") -> Fact:
        return Fact(value, unit, left, right, words, record)

    change = " (slower|faster|longer|shorter|higher|lower)" if _is_time(finding) else " (higher|lower|below|less|more)"
    direction = change if effect else ""
    points = "%" if finding["id"] == "limit" else percent(finding["measurement"])
    yield fact(100 * abs(effect), points, r"(is|are|was|were|bandwidth|loses|of it,) $", direction or change)
    yield fact(100 * effect, points, r"(differs by|^difference:|^by:)( \S+ to)? $")
    yield fact(100 * effect, points, r"\S $", r", tolerance [^()]+\)")
    yield fact(100 * effect, points, r"\. $", " to")
    yield fact(100 * effect, points, r"\. \S+ to $", r" on \d+ nodes")
    yield fact(100 * abs(effect), "%", r"\) $", r" to \S+% (slower|faster|higher|lower)")
    low, high = finding["interval"]["low"], finding["interval"]["high"]
    ends = sorted((100 * sign * low, 100 * sign * high))
    yield fact(ends[0], points, r"(interval|CI) $", " to ")
    yield fact(ends[1], points, r"(interval|CI) \S+ to $")
    yield fact(100 * low, points, r"^interval: $", " to ")
    yield fact(100 * high, points, r"^interval: \S+ to $")
    yield fact(100 * finding["tolerance"], points, r"tolerances?:? (of )?$")
    yield fact(times(finding), "times", r"(: |of the tolerance: |\()$")
    value, unit = in_unit(abs(finding["effect_unit"] or math.nan), finding["unit"])
    yield fact(value, unit, ", $", " more" if effect > 0 else " less")
    value, unit = in_unit(finding["value"], finding["unit"])
    peers, _ = in_unit(finding["peers"], finding["unit"])
    yield fact(value, unit, r"(^measured: |\): |peers \(|(is|are|for) )$")
    yield fact(
        peers,
        unit,
        r"(^peers: |^baseline: |^before: |peers have |peers |peers \(\S+ of |: \S+ \S+, \S+ has |where it is )$",
    )
    yield fact(finding["value"], "", r"(throttled |in |counted |^|: )$", r" (times?|bursts?|memory errors?)")
    yield fact(finding["value"], "times", r"throttled $")
    allowed, unit = in_unit(finding["tolerance_unit"], finding["unit"])
    yield fact(allowed, unit, r"limit of $|^tolerance: $|^(accepted|limit): at (most|least) $")
    if finding["id"] == "limit" and finding["tolerance_unit"]:
        yield fact(
            100 * (finding["value"] / finding["tolerance_unit"] - 1), "%", r"^difference: $|^by: $|^beyond it: $"
        )
    # the effect is a share of this value: of the peers', or of the middle of two nodes
    of_effect = abs((value - peers) / effect) if effect else peers
    edge = peers + sign * finding["tolerance"] * of_effect
    yield fact(edge, unit, r"^accepted: at most $" if sign > 0 else r"^accepted: at least $")
    yield from _counts(finding, words, record)
    yield fact(100 * effect, "%", "[a-z] $", r" \(95% interval")  # over time
    yield fact(100 * (effect - finding["half_95"]), "%", "95% interval $")
    yield fact(100 * (effect + finding["half_95"]), "%", r"95% interval \S+ to $")
    yield from _evidence(finding, words, record)


def _counts(finding: Json, words: tuple[str, ...], record: str) -> Iterator[Fact]:
    """In how many runs and jobs it is, how many differences it explains, and how many nodes have it."""
    runs = [run for job in finding["by_job"] for run in job["runs"]]

    def of(value: float, unit: str, left: str = "", right: str = "") -> Fact:
        return Fact(value, unit, left, right, words, record)

    yield of(100 * abs(finding["times_tolerance"]), "%", r"^of its tolerance: $")
    yield of(beyond(finding), "", r"^runs beyond: $", " of ")
    yield of(len(runs), "", r"^runs beyond: \d+ of $")
    yield of(beyond(finding), "", "", r" of \d+ runs?")
    yield of(len(runs), "", r"(\d+ of|All|of) $", r" runs?\b")
    yield of(len(finding["by_job"]), "", r"(of|in) $", r" jobs?\b")
    jobs_showing = sum(bool(job["showing"]) for job in finding["by_job"])
    yield of(jobs_showing, "", r"Found in $", " of")
    yield Fact(sum(map(len, runs_of_effect(finding))), "", r"means over $", " runs?", words[:1], record)
    streams = {cell["stream"] for cell in finding["cells"] if "stream" in cell}
    yield of(len(streams), "", "mean of $", " streams?")
    kinds = {tuple(value for value in cell.values() if isinstance(value, str)) for cell in finding["cells"]}
    yield of(len(kinds), "", "mean of $", " kinds of values")
    yield of(len(finding["finer"]), "", "accounts for $", " differences?")
    for measurement in {finer["measurement"] for finer in finding["finer"]}:
        count = sum(finer["measurement"] == measurement for finer in finding["finer"])
        yield of(count, "", "", " differences?")
    yield of(len(finding["shared_by"]) + 1, "", "", " nodes")
    places = sum(map(len, finding["pairs"].values())) or len(finding["cells"])
    yield of(places, "", "at $", " places?")


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
    tolerance = _printed_tolerance(finding["tolerance"])
    rounded = (round(100 * abs(finding["effect"]), digits) for digits in range(1, 9))
    effect = next((effect for effect in rounded if effect > tolerance), round(100 * abs(finding["effect"]), 1))
    return math.floor(10 * effect / tolerance + 0.5 + 1e-9) / 10 if tolerance else math.nan


def _printed_tolerance(share: float) -> float:
    return float(f"{100 * share:.{2 if share < 0.1 else 3}g}")


def of_agreements(agreements: Sequence[Json], node: str) -> Iterator[Fact]:
    for at, agreement in enumerate(agreements):
        metric = metric_words(agreement["metric"])
        known = metric if agreement["metric"] in METRICS else ""
        component = component_words(agreement["component"])
        words = tuple(filter(None, (node, known, *component)))
        record, unit = f"{node} agreement {at}", percent(agreement["measurement"])
        for key, left in (("within", r"up to"), ("tolerance", r"\(tolerance")):
            value, name = in_unit(agreement[f"{key}_unit"], agreement["unit"])
            yield Fact(100 * agreement[key], unit, f"{left} $", "", words, record)
            yield Fact(value, name, rf"{left} [^%]*% or $", "", words, record)
        yield Fact(100 * agreement["tolerance"], unit, r"^tolerance: $", "", words, record)
        yield Fact(100 * agreement["tolerance"], unit, r"nodes are within $", r" \(the tolerance\)", words, record)
        near = rf"{'Closest' if node else 'closest'} to a tolerance.*(?i:{metric}) $"
        yield Fact(100 * agreement["within"], unit, near, " of ", words, record)
        yield Fact(100 * agreement["tolerance"], unit, near.replace(" $", r" \S+(%| points) of $"), "", words, record)
        yield Fact(100 * agreement["within"], unit, r"^the same within: $", "", words, record)
        yield Fact(100 * agreement["share"], "%", r"^used: $", "", words, record)
        yield Fact(100 * agreement["effect"], unit, r"^differs by: $", "", words, record)
        if agreement["criterion"]:
            yield Fact(100 * agreement["share"], "%", r"^of its tolerance: $", "", words[:1] if node else (), record)
        yield Fact(agreement["needed"], "", r"(\. |: |^)$", " runs (of a node )?in all are needed", words, record)
        yield Fact(agreement["needed"], "", "as another job, $", " jobs in all", words, record)
        yield Fact(agreement["needed"], "", "a group of peers needs $", " in all", words, record)
        yield Fact(agreement["runs"], "", "needed and (the table has )?$", "", words, record)


def _disturbances(disturbances: Sequence[Json], node: str) -> Iterator[Fact]:
    for one in disturbances:
        words = (node,)
        for share in filter(None, (one["share"], one["value"])):
            yield Fact(100 * share, "%", words=words)
        yield Fact(one["value"], "", words=words)
        yield Fact(one["value"], "times", words=words)
        for end in ("low", "high"):
            yield Fact(*in_unit(one[end], one["unit"]), words=words)
            run = re.search(r"run(\d+)", one[f"{end}_in"])
            if run:
                yield Fact(int(run[1]), "", "run $", words=words)


def _reasons(node: Json, name: str) -> Iterator[Fact]:
    words = (name,)
    yield Fact(len(node["findings"]) - 1, "", r"(has|and) $", r" more", words)
    for reason in node["reasons"]:
        yield Fact(100 * reason["share"], "%", words=words)
    yield Fact(len(node["jobs"]), "", "", r" jobs?\b")


def of_node(node: Json, name: str, called: str) -> Iterator[Fact]:
    """All of these."""
    for at, finding in enumerate(node["findings"]):
        yield from of_finding(finding, called, f"{name} finding {at}")
    yield from of_agreements(node["agreements"], called)
    yield from _disturbances(node["disturbances"], called)
    yield from _reasons(node, called)
