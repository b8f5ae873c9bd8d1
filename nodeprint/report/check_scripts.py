"""A shell script that remeasures the findings of a node and prints PASS, FAIL or INCONCLUSIVE.

The script needs only the kernels; `nodeprint check` runs it, too. It compares with the finding's own value and limit
and computes no tolerance.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nodeprint.data.job.jobs import Job
from nodeprint.errors import printable
from nodeprint.judge import acceptance
from nodeprint.judge.verdict import Finding, NodeVerdict, Verdict
from nodeprint.report import names, text
from nodeprint.settings import sources
from nodeprint.settings.texts import say

#: Arguments of a kernel that belong to one run.
_OF_RUN = ("--out", "--seed", "--job", "--run")
#: Those that pick pairs of CPUs, of a measurement of which only some are measured again.
_OF_PLACES = ("--cpus", "--pairs", "--siblings")
#: The kernel that takes a list of pairs.
_TAKES_PAIRS = "coherence"
_MARK = "# @findings@\n"
#: Longer names of files break on a page.
_LONGEST_STEM = 40
#: What a coordinate may be to be written into a script.
_COORDINATE = re.compile(r"[A-Za-z0-9_.+:/-]+")


class Again(msgspec.Struct, frozen=True):
    """A finding and the header of its records (docs/formats.md); the header is empty without records."""

    finding: Finding
    header: Mapping[str, Any]

    @property
    def why_not(self) -> str:
        """Return the reason why a single machine cannot check the finding; empty if it can."""
        finding = self.finding
        if finding.component.term.startswith("fabric-"):
            return say("no_check", "fabric")
        if not finding.measurement:
            cpus = finding.component.where.get("cpus") or "cores"
            return say("no_check", "wrong-result" if finding.id == "wrong-result" else "event", cpus=cpus)
        if self.header.get("imported"):
            return say("no_check", "imported")
        if not self.header.get("kernel"):
            return say("no_check", "records")
        expected = finding.expected
        if expected is None or not math.isfinite(finding.fails_at):
            return say("no_check", "places")
        words = (str(value) for place in expected.at for value in place)
        return "" if all(map(_COORDINATE.fullmatch, words)) else say("no_check", "places")


def accepted(finding: Finding) -> str:
    """Return the limit of acceptance in words: `at most 122 ns`."""
    if not math.isfinite(finding.fails_at) or not finding.tolerance_unit:
        return ""
    unit = names.of_measurement(finding.unit, finding.measurement)
    return f"at {_side(finding)} {names.with_limit(finding.value, finding.fails_at, unit)[1]}"


def file_name(node: str) -> str:
    """The script of a node."""
    stem = names.file_stem(node)
    if len(stem) > _LONGEST_STEM:
        stem = names.file_stem(f"{stem[: _LONGEST_STEM - 9]} ")  # with a hash
    return f"{stem}-check.sh"


def command(node: str, number: int, folder: str = "") -> str:
    """Return the command that checks a finding of a node, by its number; without `folder` in the report directory."""
    return f"sh {folder}{file_name(node)} {number}"


def again(jobs: Sequence[Job], findings: Sequence[Finding]) -> list[Again]:
    """Pair each finding with its measurement in the newest of a node's jobs that has one."""
    return [Again(finding, header(jobs, finding.measurement)) for finding in findings]


def header(jobs: Sequence[Job], measurement: str) -> Mapping[str, Any]:
    """Return the header of a measurement's records in the newest job that has it; empty without any."""
    return next((job.measured[measurement].header for job in reversed(jobs) if measurement in job.measured), {})


def named(verdict: Verdict) -> Verdict:
    """A verdict whose findings that count name the command that checks them."""
    nodes = verdict.nodes.items()
    return replace(verdict, nodes={name: named_node(name, node, imported=verdict.imported) for name, node in nodes})


def named_node(name: str, node: NodeVerdict, *, imported: bool) -> NodeVerdict:
    """Name the check command in each finding that counts; `imported` results have none."""
    if imported:
        return node
    numbers = {id(finding): number for number, finding in enumerate(node.counted, 1) if finding.expected}
    checks = {of: command(name, number, "report/") for of, number in numbers.items()}
    findings = (replace(of, check=checks[id(of)]) if id(of) in checks else of for of in node.findings)
    return replace(node, findings=tuple(findings))


def sentence(finding: Finding) -> str:
    """A finding in a sentence, and the command that checks it where it has one."""
    words = text.finding_sentence(finding)
    return f"{words} {say('check', command=finding.check)}" if finding.check else words


def disturbed_percent(campaign: Path) -> float:
    """Return the percentage of a run's values that may be disturbed, from the rules of the campaign."""
    return acceptance.rules_of(campaign).quality.disturbed_pairs_percent


def script(node: str, findings: Sequence[Again], origin: str, disturbed_percent: float) -> str:
    """Return the check script of a node's relevant findings, in their order.

    The script does not judge a run with more than `disturbed_percent` of its values flagged. `origin` is SIMULATED or
    IMPORTED.
    """
    template = (sources.folder() / "reports" / "check.sh").read_text(encoding="utf-8")
    head: dict[str, object] = {"node": printable(node, 200), "origin": origin, "count": len(findings)}
    head["disturbed_percent"] = f"{disturbed_percent:g}"
    what, kernels, places = list[str](), list[str](), list[str]()
    for number, again in enumerate(findings, 1):
        why_not = again.why_not
        what += [f"    {number})", *_assigned(_values(number, again, why_not), " " * 8), "        ;;"]
        if not why_not:
            kernels.append(f'    {number}) "$bin" {_arguments(again)} --out "$work/records.jsonl" ;;')
            places += [f"    {number})", "        cat <<'END'", *_places(again.finding), "END", "        ;;"]
    lines = [
        *_assigned(head, ""),
        *_cases("finding NUMBER: what it is and what is expected", what),
        *_cases("measure NUMBER: runs its kernel", kernels),
        *_cases("places NUMBER: a line for each: usual value, weight, home, place", places),
    ]
    return template.replace(_MARK, "\n".join(lines) + "\n")


def _cases(title: str, cases: Sequence[str]) -> list[str]:
    """Return a function of the number of a finding, whose name begins its title."""
    return ["", f"# {title}", f"{title.partition(' ')[0]}() {{", "    case $1 in", *cases, "    esac", "}"]


def _assigned(values: Mapping[str, object], indent: str) -> list[str]:
    return [f"{indent}{name}={shlex.quote(str(value))}" for name, value in values.items()]


def _values(number: int, again: Again, why_not: str) -> dict[str, object]:
    finding, expected = again.finding, again.finding.expected
    values: dict[str, object] = {
        "title": f"finding {number}, {text.noun_phrase(finding)}",
        "kernel": again.header.get("kernel", ""),
        "why_not": why_not,
    }
    if why_not or expected is None:
        return values
    size, unit = names.shown_unit(finding.peers, finding.unit)
    dims = [dim for dim in expected.dims if dim != "home" or "a" not in expected.dims]
    return {
        **values,
        "key": expected.value,
        "dims": " ".join(dims),
        "statistic": expected.statistic,
        "center": f"{expected.center:.9g}",
        "expected": f"{finding.peers:.9g}",
        "end": f"{finding.fails_at:.9g}",
        "side": _side(finding),
        "size": f"{size:g}",
        "unit": unit,
    }


def _side(finding: Finding) -> str:
    return "most" if finding.effect > 0 else "least"


def _lists_pairs(again: Again) -> bool:
    expected = again.finding.expected
    return again.header.get("kernel") == _TAKES_PAIRS and expected is not None and expected.dims == ("a", "b", "home")


def _arguments(again: Again) -> str:
    """Return the kernel arguments of the measurement, limited to the finding's pairs if they can be listed."""
    dropped = (*_OF_RUN, *_OF_PLACES) if _lists_pairs(again) else _OF_RUN
    words, out = [str(word) for word in again.header.get("arguments") or ()], []
    while words:
        option = words.pop(0)
        value = [words.pop(0)] if words and not words[0].startswith("--") else []
        out += [] if option in dropped else [option, *value]
    return " ".join([shlex.join(out), *(['--pairs "$work/pairs"'] if _lists_pairs(again) else [])]).strip()


def _places(finding: Finding) -> list[str]:
    """A line for each place of a finding, whose parts hold no blank."""
    expected, lines = finding.expected, list[str]()
    assert expected is not None
    of_pairs = expected.dims == ("a", "b", "home")
    for place, usual, weight in zip(expected.at, expected.usual, expected.weights, strict=True):
        home, key = (place[2], place[:2]) if of_pairs else ("any", place)
        lines.append(f"{usual:.6g} {weight:.6g} {home} {','.join(map(str, key))}")
    return lines
