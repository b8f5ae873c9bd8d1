"""Sentences about disturbances of the measurement, and about busy nodes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from nodeprint.data.places.measured import models
from nodeprint.errors import printable
from nodeprint.judge.outcome import ReasonDetail
from nodeprint.judge.verdict import LOST, Disturbance, Verdict
from nodeprint.machine import other_load
from nodeprint.report import names
from nodeprint.report.text.wording import changed, measured, named, sentence
from nodeprint.settings.texts import FORMATS, say, texts

#: Reasons that are due to background load, if it was measured.
_BY_LOAD = (ReasonDetail.DISTURBED, ReasonDetail.UNRESOLVED)


def disturbed_first(verdict: Verdict) -> list[str]:
    """Return the sentence that precedes all others if disturbance decides the outcome; empty if not."""
    moved = {name: largest for name, node in verdict.nodes.items() if (largest := moved_most(node.disturbances))}
    if moved:
        name, worst = max(moved.items(), key=lambda item: item[1].value)
        return [moved_cpus(worst, tuple(moved), name)]
    return busy_nodes(verdict)


def busy_nodes(verdict: Verdict) -> list[str]:
    """Report busy nodes if load decides their outcome: the lost CPU time and the detection limit."""
    busy: dict[str, Disturbance] = {}
    for name, node in verdict.nodes.items():
        decides = node.reasons and (node.is_alone or node.reasons[0].why in _BY_LOAD)
        if decides and (taken := taken_most(node.disturbances)):
            busy[name] = taken
    if not busy:
        return []
    deciding = [limit.effect for limit in verdict.fleet.limits if limit.metric in verdict.criteria]
    effect = max(filter(math.isfinite, deciding), default=0.0)
    unresolved = say("busy_unresolved", effect=names.percent(effect)) if effect else ""
    measured = [name for name, node in verdict.nodes.items() if node.outcome.entry.measured]
    # a word before the names: a sentence starts with a capital letter, which would change a name
    which = "the nodes were" if len(busy) == len(measured) > 1 else f"nodes {names.nodes(busy)} were"
    if len(busy) == 1:
        which = f"node {names.nodes(busy)} was"
    return [_busy(which, max(busy.values(), key=lambda disturbance_there: disturbance_there.share), unresolved)]


def busy_machine(taken: Disturbance) -> str:
    """Report that this machine was busy."""
    return _busy("This machine was", taken, "")


def _busy(nodes: str, taken: Disturbance, unresolved: str) -> str:
    key = "busy_pairs" if taken.kind == "disturbed" else "busy"
    return sentence(say(key, nodes=nodes, share=names.percent(taken.share), unresolved=unresolved))


def taken_most(disturbances: Sequence[Disturbance]) -> Disturbance | None:
    """Return the largest loss of CPU time, or else the largest share of disturbed values; None below LOST."""
    for kinds in (("busy", "stolen", "loud-cpus"), ("disturbed",)):
        taken = [candidate for candidate in disturbances if candidate.kind in kinds and candidate.share >= LOST]
        if taken:
            return max(taken, key=lambda candidate: candidate.share)
    return None


def moved_most(disturbances: Sequence[Disturbance]) -> Disturbance | None:
    """Return the migration of virtual CPUs with the largest difference; None if no host migrated any."""
    moved = [candidate for candidate in disturbances if candidate.kind == "cpus-moved"]
    return max(moved, key=lambda candidate: candidate.value, default=None)


def apart(disturbances: Sequence[Disturbance]) -> list[Disturbance]:
    """Leave out disturbances that repeat another one of their measurement.

    Migrated virtual CPUs come before runs that differ, and these before an odd run.
    """
    kinds = ("cpus-moved", "runs-differ", "passes-differ", "odd-run")
    first: dict[str, Disturbance] = {}
    of_kinds = (seen for seen in disturbances if seen.kind in kinds)
    for seen in sorted(of_kinds, key=lambda seen: (kinds.index(seen.kind), -seen.value)):
        first.setdefault(seen.measurement, seen)
    return [seen for seen in disturbances if seen.kind not in kinds or seen is first[seen.measurement]]


def moved_cpus(worst: Disturbance, nodes: Sequence[str] = (), node: str = "") -> str:
    """Report that hosts migrate virtual CPUs of `nodes`, with the values of one node; unnamed for this machine."""
    on = f" on {printable(node, 60)}" if len(nodes) > 1 and worst.low_in not in nodes else ""
    of_nodes = f" of {names.nodes(nodes)}" if nodes else ""
    return say("moved", of=worst, of_nodes=of_nodes, on=on)


def repetition(name: str) -> str:
    """Name a repetition: `run 2`, `pass 1 of run 2`, `run 2 of job 2` for job1/run2, job1/run2/pass1 and job2/run2.

    The name of a node stays unchanged.
    """
    components = re.fullmatch(r"job(\d+)(?:/run(\d+))?(?:/pass(\d+))?", name)
    if components is None:
        return printable(name, 60)
    job, run, number = components.groups()
    words = ([f"pass {number}"] if number else []) + ([f"run {run}"] if run else [])
    return " of ".join(words + ([f"job {job}"] if job != "1" or not words else []))


FORMATS["repetition"] = repetition


def differ(differing: Disturbance) -> str:
    """Describe the repetitions of a measurement that differ, with the ratio of the two printed values."""
    model = models().get(differing.measurement)
    factor = differing.high / differing.low if differing.low > 0 else differing.value
    values = {
        "of": differing,
        "factor": f"{factor:.1f}" if factor < 10 else f"{factor:.0f}",
        "measurement": measured(differing.measurement),
        "same": texts()["differ"]["same"] if model is not None and model.places == "pairs" else "",
    }
    if not differing.odd:
        repetitions = texts()["differ"]["repetitions"][differing.kind].format(run=repetition(differing.run))
        return say("differ", "all", repetitions=repetitions, **values)
    verb = "differs" if len(differing.odd) == 1 else "differ"
    return say("differ", "odd", odd=f"{names.listed(map(repetition, differing.odd))} {verb}", **values)


def disturbance(disturbance: Disturbance) -> str:
    """Describe a disturbance of a measurement or a node."""
    which = names.nodes(map(str, disturbance.cpus)).strip("[]")
    cpus = f"CPU{'s' if len(disturbance.cpus) > 1 else ''} {which}" if which else ""
    if disturbance.kind in texts()["differ"]["repetitions"]:
        return differ(disturbance)
    if disturbance.kind not in texts()["disturbances"]:
        return f"{disturbance.kind}: {printable(disturbance.detail, 200)}"
    of, (job, _, run_number) = disturbance.measurement, disturbance.run.partition("/run")
    values = {
        "measurement": measured(of) if of else "the measurement",
        "cpus": f" on {cpus}" if cpus else "",
        "cpus_alone": cpus or "its CPUs",
        "run": f" in {disturbance.run}" if disturbance.run else "",
        "job": job.partition("/")[0],
        "change": changed(disturbance.value - 1, of, of_value=True)["change"],
    }
    return say("disturbances", disturbance.kind, of=disturbance, run_number=run_number, **values)


def disturbed(verdict: Verdict) -> list[str]:
    """Return a line for each kind of disturbance in data that count, with its nodes and the worst of them."""
    by_kind: dict[str, dict[str, Disturbance]] = {}
    for name, member in verdict.nodes.items():
        for seen in (seen for seen in member.disturbances if not seen.invalid):
            of_kind = by_kind.setdefault(seen.kind, {})
            if name not in of_kind or (seen.value, seen.share) > (of_kind[name].value, of_kind[name].share):
                of_kind[name] = seen
    lines = []
    for kind, on in sorted(by_kind.items()):
        worst = max(on, key=lambda name: (on[name].value, on[name].share))
        most = f"most on {printable(worst, 60)}: " if len(on) > 1 else ""
        words = disturbance(on[worst]).rstrip(".")
        times_seen = sum(seen.kind == kind for name in on for seen in verdict.nodes[name].disturbances)
        # a record may have several problems
        more = say("disturbances", "more_problems", count=times_seen - 1) if kind == "record" and times_seen > 1 else ""
        lines.append(f"{sentence(named('kinds', kind))} on {names.nodes(on)}: {most}{words}{more}.")
    return lines


def untaken(verdict: Verdict) -> list[str]:
    """Return a sentence for each reason for missing measurements, with the measurements and the nodes."""
    by_reason: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, member in verdict.nodes.items():
        for why in dict.fromkeys(member.untaken.values()):
            measurements = tuple(key for key, reason in member.untaken.items() if reason == why)
            by_reason.setdefault((why, measurements), []).append(name)
    sentences = []
    for (why, measurements), on in by_reason.items():
        values = {"nodes": names.nodes(on), "reason": printable(why, 300)}
        values["measurements"] = names.listed(dict.fromkeys(map(measured, measurements)))
        arguments = ""
        if advised := re.search(r"\buse (--[a-z-]+ [a-z0-9]+)", why):  # where the option is in the configuration
            of_each = ", ".join(f"{name}: {advised[1]}" for name in measurements)
            arguments = say("untaken_arguments", values=of_each)
        sentences.append(say("untaken", arguments=arguments, **values))
    return sentences


def other_programs(campaign: Path, name: str) -> str:
    """Describe the other programs that ran during the measurement of a node; empty if none is known."""
    load = other_load.kept(campaign / "nodes" / name)
    if load is None or not load.is_busy:
        return ""
    return say("remarks", "other_load", name=printable(name), load=load.text("took"))
