"""A command that measures what a finding is of and ends with PASS or FAIL, for somebody who has the kernels alone."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from nodeprint.fleet.quantity import models
from nodeprint.judge.verdict import Finding
from nodeprint.report import names

#: Arguments of a kernel that belong to one run, and those that say what is measured.
_OWN = ("--out", "--seed", "--job", "--run", "--cpus", "--pairs", "--siblings")
_FLAGS = ("--siblings", "--detail", "--census", "--any-lines", "--huge-pages", "--share-l3", "--mix", "--same-cpu")
#: Pairs that a command lists; a finding of more is measured on this many of them, evenly.
_MOST_PAIRS = 256


def check(finding: Finding, header: Mapping[str, Any]) -> str:
    """The command, to be called in the folder of nodeprint on the node; empty where there is none. `header` is that of
    the measurement's records: the arguments that it was measured with."""
    kernel = str(header.get("kernel", ""))
    model = models().get(finding.measurement)
    if not kernel or kernel == "linktest" or header.get("imported") or not math.isfinite(finding.peers) or not model:
        return ""
    if finding.pairs:
        ends = _spread([(a, b) for a, partners in sorted(finding.pairs.items()) for b in sorted(partners)])
        listed = " ".join(f"'{a} {b}'" for a, b in ends)
        pairs = f"printf '%s\\n' {listed} > pairs.txt"
        run = f"kernels/build/{kernel} {_arguments(header)} --pairs pairs.txt --out check.jsonl"
        return " && \\\n".join([pairs, run, _judged(finding, "latency_ns", "")])
    wanted = _common(finding.cells)
    if not wanted:
        return ""
    cpus = sorted({int(value) for key, value in wanted.items() if key in ("cpu", "a", "b")})
    picked = f"--cpus {','.join(map(str, cpus))}" if cpus else "--cpus cores"
    run = f"kernels/build/{kernel} {_arguments(header)} {picked} --out check.jsonl"
    return " && \\\n".join([run, _judged(finding, model.value, _pattern(wanted))])


def expected(finding: Finding) -> str:
    """What is expected where the finding is, and from where on it fails: `117 ns, at most 122 ns`."""
    if not (math.isfinite(finding.peers) and math.isfinite(finding.bound_unit)):
        return ""
    end = "at most" if _high_is_bad(finding) else "at least"
    return f"{names.quantity(finding.peers, finding.unit)}, {end} {names.quantity(_end(finding), finding.unit)}"


def _high_is_bad(finding: Finding) -> bool:
    return (finding.effect > 0) == finding.worse


def _end(finding: Finding) -> float:
    """From where on the value is outside the finding's own bound."""
    return finding.peers + (1 if _high_is_bad(finding) else -1) * abs(finding.bound_unit)


def _arguments(header: Mapping[str, Any]) -> str:
    """The arguments of the measurement without those of one run and those that pick places."""
    words, out = [str(word) for word in header.get("arguments") or ()], []
    while words:
        word = words.pop(0)
        taken = [words.pop(0)] if words and not words[0].startswith("--") and word not in _FLAGS else []
        if word not in _OWN:
            out += [word, *taken]
    return shlex.join(out)


def _judged(finding: Finding, key: str, pattern: str) -> str:
    """A call of awk that prints the mean of a key of the records and PASS or FAIL, and ends with 0 or 1."""
    worse = ">" if _high_is_bad(finding) else "<"
    picked = f'{pattern} && /"{key}":/' if pattern else f'/"record":"pair"/ && /"{key}":/'
    return (
        f'awk \'{picked} {{ sub(/.*"{key}":/, ""); sum += $0 + 0; n++ }} '
        f'END {{ if (!n) {{ print "FAIL: nothing was measured"; exit 1 }} mean = sum / n; bad = mean {worse} {_end(finding):.6g}; '
        f'print (bad ? "FAIL" : "PASS") ": " mean " (expected {finding.peers:.6g}, fails {"above" if worse == ">" else "below"} '
        f"{_end(finding):.6g})\"; exit bad }}' check.jsonl"
    )


def _common(cells: Sequence[Mapping[str, int | str]]) -> dict[str, int | str]:
    """What all cells of a finding have in common."""
    if not cells:
        return {}
    return {key: value for key, value in cells[0].items() if all(cell.get(key) == value for cell in cells)}


def _pattern(wanted: Mapping[str, int | str]) -> str:
    words = (
        f'/"{key}":"{value}"/' if isinstance(value, str) else f'/"{key}":{value}[,}}]/' for key, value in wanted.items()
    )
    return " && ".join(words)


def _spread(ends: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    count = min(len(ends), _MOST_PAIRS)
    return [ends[i * len(ends) // count] for i in range(count)]
