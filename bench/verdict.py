"""Does the verdict keep its promises? Fleets whose truth is known (bench.known_fleets), counted by promise.

    python -m bench.verdict                            every section, ten rounds: an hour and a half on one core
    python -m bench.verdict --quick                    one round: ten minutes
    python -m bench.verdict --section order --rounds 3
    python -m bench.verdict --case '{...}'             one case again, described, as a miss is printed

A node is healthy if it is truly within every tolerance, whatever its chips were drawn from. Shares have 95% intervals.

healthy    nodes as they were drawn, of 2 to 40, by kind and one to five jobs: accused (DEVIATES, or MISMATCH where all
           nodes are healthy), SAME
defects    nodes off by 1.2, 1.5 and 2.5 tolerances, one of each kind: SAME, found, confirmed after two jobs
k_of_n     a defect of 2.5 tolerances in some of a node's jobs, and in some runs of a job
order      jobs swapped, renumbered (as merged campaigns are), nodes and runs in another order: outcomes that change
again      three nodes measured again, or one more healthy node: outcomes of the others that change
majority   many nodes share a defect of 2.5 tolerances: more than a third and less than two thirds of them, or others
year       weekly campaigns, all nodes moving by 2% with the season, and bursts: changes of single components
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench import cases
from bench.cases import Case, Promise, Section, Tally
from bench.known_fleets import COMPONENTS, KINDS, MACHINES, Kind, KnownFleet, Schedule, arranged, defect, with_runs_off
from nodeprint.cli.shared import judge_and_write
from nodeprint.data.store import packed
from nodeprint.data.store.packed import PackedFleet
from nodeprint.history import changes, selection
from nodeprint.judge.judge import Judged, judge

#: Outcomes that accuse a node, those that find something, and that of few nodes that contradict each other.
ACCUSED, FOUND = "DEVIATES", ("DEVIATES", "INTERMITTENT", "SUSPECT", "MISMATCH")
MISMATCH, SAME, INTERMITTENT, UNDECIDED = "MISMATCH", "SAME", "INTERMITTENT", "INCONCLUSIVE"
#: Nodes of healthy fleets, the numbers of their jobs, and sizes of defects in tolerances.
NODES, JOBS, SIZES = (2, 3, 4, 5, 6, 8, 12, 16, 24, 40), (1, 2, 3, 5), (1.2, 1.5, 2.5)
#: Fleets up to this size have the most jobs, too.
FEW = 8
#: Kinds of which no node may be accused, and those of which hardly any.
STEADY, ROUGH = ("quiet", "usual", "real", "shared", "seasons"), ("tails", "bursts")
#: How many of how many nodes have a defect.
SHARED = ((6, 10), (5, 10), (4, 10), (7, 10), (3, 8), (3, 6), (2, 4), (9, 20))
#: In which of how many jobs a defect is.
SOME_DAYS = (((1,), 2), ((2,), 3), ((1, 2), 3), ((2, 3), 4), ((1, 2, 3), 4), ((1, 3), 5), ((4,), 5))

Outcomes = Mapping[str, str]


def outcomes(judged: Judged) -> Outcomes:
    """By node its outcome."""
    return {name: node.outcome.value for name, node in judged.verdict.nodes.items()}


def judged_outcomes(fleet: PackedFleet) -> Outcomes:
    """A fleet judged."""
    return outcomes(judge(fleet))


def known(case: Case) -> KnownFleet:
    """The fleet of a case, with another standard deviation of jobs if it names one."""
    kind = KINDS[case["kind"]]
    if "job" in case:
        kind = replace(kind, job=case["job"])
    return KnownFleet(case["machine"], case["nodes"], case["seed"], kind)


def names(of: Sequence[bool] | np.ndarray) -> list[str]:
    """The names of the nodes for which something holds."""
    return [f"n{number:02d}" for number in np.flatnonzero(np.asarray(of))]


def tally(promise: str, of: Outcomes, nodes: Sequence[str], is_so: Callable[[str], bool], *, bad: bool = True) -> Tally:
    """How many of some nodes have such an outcome; the example is of one that has it, or that has not if not `bad`."""
    hits = [name for name in nodes if is_so(of[name])]
    wrong = hits if bad else [name for name in nodes if name not in hits]
    example = ", ".join(f"{name} {of[name]}" for name in wrong[:3])
    return Tally(promise, len(hits), len(nodes), example)


def drawn(rng: np.random.Generator, of: Iterable[str]) -> str:
    """One of some names."""
    return str(rng.choice(list(of)))


# healthy


def healthy_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Every number of nodes with every kind."""
    for nodes, kind in itertools.product(NODES, KINDS):
        yield {"kind": kind, "nodes": nodes, "machine": drawn(rng, MACHINES)}


def healthy(case: Case) -> list[Tally]:
    """One, two, three and five jobs of a fleet as it was drawn."""
    fleet, kind, out = known(case), case["kind"], []
    within = names(fleet.healthy)
    for jobs in JOBS if case["nodes"] <= FEW else JOBS[:3]:
        of = judged_outcomes(fleet.measured(jobs))

        def is_accused(outcome: str) -> bool:
            return outcome == ACCUSED or (outcome == MISMATCH and bool(fleet.healthy.all()))

        accused = tally("", of, within, is_accused)
        is_any = int(accused.count > 0)
        if kind in STEADY:
            out.append(replace(accused, promise="healthy accused: quiet, usual, real, shared, seasons"))
        else:
            out.append(Tally("fleets with a healthy node accused: tails, bursts", is_any, 1, accused.example))
        out.append(replace(accused, promise=f"healthy accused: {kind}, {jobs} jobs", example=""))
        out.append(replace(accused, promise=f"healthy accused: N = {case['nodes']:2}", example=""))
        suspect = tally(f"healthy found, not accused: {kind}, {jobs} jobs", of, within, FOUND.__contains__)
        out.append(replace(suspect, count=suspect.count - accused.count))
        out.append(tally(f"healthy SAME: {kind}, {jobs} jobs", of, within, SAME.__eq__, bad=False))
        if jobs == 2:
            group = {"quiet": "quiet, usual", "usual": "quiet, usual", "real": "real"}.get(kind)
            if group:
                same = tally(f"healthy SAME after two jobs: {group}", of, within, SAME.__eq__, bad=False)
                out.append(same)
                out.append(replace(same, promise=f"healthy SAME after two jobs: N = {case['nodes']:2}", example=""))
        off = names(~fleet.healthy)
        out.append(tally("nodes that nature put beyond a tolerance: SAME", of, off, SAME.__eq__))
    return out


def jobs_cases(_rng: np.random.Generator) -> Iterator[Case]:
    """Fleets whose jobs vary more than assumed."""
    for nodes, machine in itertools.product((4, 8, 16), ("1x16", "2x8", "1x32", "2x16")):
        yield {"kind": "usual", "nodes": nodes, "machine": machine, "job": 0.006}


def jobs(case: Case) -> list[Tally]:
    """Two jobs."""
    fleet = known(case)
    of, within = judged_outcomes(fleet.measured(2)), names(fleet.healthy)
    return [
        tally("healthy SAME at a job SD of 0.6%, two jobs", of, within, SAME.__eq__, bad=False),
        tally("healthy accused at a job SD of 0.6%, two jobs", of, within, (ACCUSED, MISMATCH).__contains__),
        tally("healthy found at a job SD of 0.6%, two jobs", of, within, FOUND.__contains__),
    ]


# defects


def defect_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Each kind of defect with each size."""
    for times, component in itertools.product(SIZES, COMPONENTS):
        case = {"machine": drawn(rng, MACHINES), "component": component, "times": times}
        yield {**case, "kind": drawn(rng, ("quiet", "usual", "real")), "nodes": int(rng.choice((5, 6, 8, 12, 16)))}
        if times == SIZES[0]:
            yield {**case, "kind": "usual", "nodes": 8, "job": 0.01}


def with_defects(case: Case, nodes: Sequence[int]) -> KnownFleet | None:
    """The fleet of a case with the same defect in nodes; None if nature put one of these near a tolerance."""
    fleet = known(case)
    if (fleet.reach[list(nodes)] > 1).any():
        return None
    found = defect(fleet, case["component"], np.random.default_rng([case["seed"], 7]), case["times"])
    return replace(fleet, defects=dict.fromkeys(nodes, (found,)))


def defects(case: Case) -> list[Tally]:
    """One node off, after one and two jobs."""
    fleet = with_defects(case, [1])
    if fleet is None:
        return []
    out, size = [], f"{case['times']}x"
    within = names(fleet.healthy)
    for count in (1, 2):
        of = judged_outcomes(fleet.measured(count))
        if "job" in case:
            if count == 2:
                out.append(tally(f"defects {size}, job SD 1%: SAME", of, ["n01"], SAME.__eq__))
            continue
        out.append(tally("defects: SAME", of, ["n01"], SAME.__eq__))
        out.append(tally(f"defects {size}, {count} jobs: found", of, ["n01"], FOUND.__contains__, bad=False))
        out.append(tally("healthy accused beside a defect", of, within, ACCUSED.__eq__))
        if count == 2:
            confirmed = (ACCUSED, MISMATCH) if case["nodes"] < 5 else (ACCUSED,)
            out.append(tally(f"defects {size}, 2 jobs: confirmed", of, ["n01"], confirmed.__contains__, bad=False))
            if case["times"] == SIZES[1]:
                name = f"defects {size}, 2 jobs: found, {case['component']}"
                out.append(tally(name, of, ["n01"], FOUND.__contains__, bad=False))
    return out


def some_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Each choice of days with some kinds of defects, and runs of a job."""
    for days, count in SOME_DAYS:
        case = {
            "kind": "usual",
            "nodes": 8,
            "machine": drawn(rng, MACHINES),
            "component": drawn(rng, COMPONENTS),
            "times": 2.5,
        }
        yield {**case, "days": days, "jobs": count}
    for runs, factor in (((1, 2, 3, 4, 5), 1.3), ((2, 4), 1.12), ((1, 2), 1.3), ((1, 3, 5), 1.2)):
        case = {"kind": "usual", "nodes": 8, "machine": drawn(rng, MACHINES), "component": "core", "times": 2.5}
        for count in (1, 2):
            yield {**case, "runs": runs, "factor": factor, "jobs": count}


def some(case: Case) -> list[Tally]:
    """A defect in some jobs, or in some runs of one."""
    fleet = with_defects(case, [1])
    if fleet is None:
        return []
    (component,) = fleet.defects[1]
    if "runs" in case:
        clean = replace(fleet, defects={})
        fleet_measured = with_runs_off(clean.measured(case["jobs"]), 1, component.places, case["runs"], case["factor"])
        of = judged_outcomes(fleet_measured)
        return [
            tally("several runs of a job far out: SAME", of, ["n01"], SAME.__eq__),
            tally("several runs of a job far out: INTERMITTENT", of, ["n01"], INTERMITTENT.__eq__, bad=False),
        ]
    days = frozenset(case["days"])
    fleet = replace(fleet, defects={1: (replace(component, days=days),)})
    of = judged_outcomes(fleet.measured(case["jobs"]))
    same = tally("defect 2.5x in k of n jobs: SAME", of, ["n01"], SAME.__eq__)
    if len(days) > 1:
        return [same, tally("defect 2.5x in two or more of n: DEVIATES", of, ["n01"], ACCUSED.__eq__, bad=False)]
    is_found = (INTERMITTENT, "SUSPECT").__contains__
    return [same, tally("defect 2.5x in one of n: INTERMITTENT", of, ["n01"], is_found, bad=False)]


# order


def order_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Every kind with a defect in some of several jobs."""
    for kind, (nodes, count) in itertools.product(KINDS, ((6, 2), (10, 3), (4, 4))):
        yield {
            "kind": kind,
            "nodes": nodes,
            "machine": drawn(rng, MACHINES),
            "component": drawn(rng, COMPONENTS),
            "times": 2.5,
            "jobs": count,
        }


def order(case: Case) -> list[Tally]:
    """The same jobs in other orders."""
    fleet = with_defects(case, [1])
    if fleet is None:
        return []
    count, rng = case["jobs"], np.random.default_rng([case["seed"], 8])
    (component,) = fleet.defects[1]
    fleet = replace(fleet, defects={1: (replace(component, days=frozenset(range(1, count))),), 2: (component,)})
    days = tuple(range(1, count + 1))
    # some nodes have fewer jobs than the others, as after a recheck
    plan = [days if node % 3 else days[: 1 + node % count] for node in range(fleet.nodes)]
    usual = fleet.measured(plan)
    of = judged_outcomes(usual)
    swapped = dict(zip(days, rng.permutation(days).tolist(), strict=True))
    if all(a == b for a, b in swapped.items()):
        swapped = dict(zip(days, reversed(days), strict=True))
    shuffled = [tuple(int(day) for day in rng.permutation(of_node)) for of_node in plan]
    nodes = rng.permutation(fleet.nodes).tolist()
    variants = {
        "jobs swapped": fleet.measured(plan, swapped),
        "campaigns merged in another order": fleet.measured(shuffled),
        "nodes in another order": arranged(usual, nodes),
        "runs in another order": arranged(usual, range(fleet.nodes), rng),
    }
    out = [_changed(f"outcomes changed: {name}", of, judged_outcomes(fleet)) for name, fleet in variants.items()]
    out.append(_changed("outcomes changed: judged twice", of, judged_outcomes(usual)))
    total = sum(one.count for one in out), sum(one.of for one in out)
    return [Tally("outcomes changed by order, all", *total, next((o.example for o in out if o.example), "")), *out]


def _changed(promise: str, before: Outcomes, after: Outcomes, nodes: Sequence[str] = ()) -> Tally:
    chosen = nodes or list(before)
    other = [name for name in chosen if before[name] != after[name]]
    example = ", ".join(f"{name} {before[name]} -> {after[name]}" for name in other[:3])
    return Tally(promise, len(other), len(chosen), example)


# again


def again_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Every kind; some fleets have a defect, some nodes two jobs already."""
    for kind, nodes in itertools.product(KINDS, (6, 16)):
        for times, jobs in ((1.5, 1), (2.5, 2)):
            case = {"kind": kind, "nodes": nodes, "machine": drawn(rng, MACHINES), "component": drawn(rng, COMPONENTS)}
            yield {**case, "times": times, "jobs": jobs}


def again(case: Case) -> list[Tally]:
    """Three nodes measured once more; one more node."""
    fleet = with_defects(case, [1]) or known(case)
    count, nodes = case["jobs"], case["nodes"]
    three = np.random.default_rng([case["seed"], 9]).choice(nodes, 3, replace=False).tolist()
    days = tuple(range(1, count + 1))
    plan: Schedule = [(*days, count + 1) if node in three else days for node in range(nodes)]
    before, after = judged_outcomes(fleet.measured(count)), judged_outcomes(fleet.measured(plan))
    untouched = [f"n{node:02d}" for node in range(nodes) if node not in three]
    out = _moves("three measured again", before, after, untouched)
    larger = replace(fleet, nodes=nodes + 1)
    if larger.healthy[-1]:
        measured, every = larger.measured(count), range(nodes)
        fewer, more = judged_outcomes(arranged(measured, every)), judged_outcomes(measured)
        out += _moves("a healthy peer more", fewer, more, list(fewer))
    return out


def _moves(name: str, before: Outcomes, after: Outcomes, nodes: Sequence[str]) -> list[Tally]:
    """Outcomes of nodes that nobody touched, which moved between SAME and a finding, or SAME and undecided."""
    pairs = {node: {before[node], after[node]} for node in nodes}
    hard = [node for node, pair in pairs.items() if SAME in pair and pair & set(FOUND)]
    soft = [node for node, pair in pairs.items() if pair == {SAME, UNDECIDED}]
    text = ", ".join(f"{node} {before[node]} -> {after[node]}" for node in hard[:3])
    return [
        Tally(f"{name}: between SAME and a finding", len(hard), len(nodes), text),
        Tally(f"{name}: between SAME and INCONCLUSIVE", len(soft), len(nodes)),
    ]


# majority


def majority_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Each share of a fleet with some kinds of defects."""
    for off, nodes in SHARED:
        for count in (1, 2):
            case = {"kind": "usual", "machine": drawn(rng, MACHINES), "component": drawn(rng, COMPONENTS), "times": 2.5}
            yield {**case, "off": off, "nodes": nodes, "jobs": count}


def majority(case: Case) -> list[Tally]:
    """Many nodes share a defect."""
    off = case["off"]
    fleet = with_defects(case, range(off))
    if fleet is None:
        return []
    judged = judge(fleet.measured(case["jobs"]))
    of = outcomes(judged)
    defective, within = [f"n{node:02d}" for node in range(off)], names(fleet.healthy)
    groups = [judged.verdict.nodes[node].group for node in defective]
    unnamed = sum(not group for group in groups)
    out = []
    for name in (_SPLIT if _is_split(off, case["nodes"]) else _OUTVOTED, f"{off} of {case['nodes']} off"):
        out += [
            tally(f"{name}: healthy DEVIATES", of, within, ACCUSED.__eq__),
            tally(f"{name}: defective SAME", of, defective, SAME.__eq__),
            tally(f"{name}: SPLIT", of, [*defective, *within], "SPLIT".__eq__, bad=False),
            Tally(f"{name}: no group named", unnamed, len(groups), f"{of}" if unnamed else ""),
        ]
    return out


#: Fleets of which neither side is two thirds, and those of which the defective ones are.
_SPLIT, _OUTVOTED = "over a third off", "over two thirds off"


def _is_split(off: int, nodes: int) -> bool:
    return 3 * min(off, nodes - off) > nodes


# year


def year_cases(rng: np.random.Generator) -> Iterator[Case]:
    """A year without any change of a node, of weekly campaigns."""
    yield {"machine": drawn(rng, ("1x16", "2x8")), "nodes": 5, "weeks": 52, "season": 0.02}


def year(case: Case) -> list[Tally]:
    """Changes that the history names though nothing changed but the season."""
    kind = Kind(off=0.05, yearly=case["season"])
    fleet = KnownFleet(case["machine"], case["nodes"], case["seed"], kind)
    with TemporaryDirectory() as folder:
        for week in range(case["weeks"]):
            path = Path(folder) / f"week{week:02d}"
            measured = fleet.measured([(1 + 7 * week,)] * fleet.nodes)
            packed.write(replace(measured, campaign=path.name), path)
            judge_and_write(path)
        histories = changes.histories(selection.campaigns([Path(folder)]))
    found = [change for history in histories.nodes for change in history.changes]
    single = [change for change in found if change.component.term not in _WHOLE]
    common = [] if histories.common is None else histories.common.changes
    of_pairs = [change for change in common if change.metric == "core-to-core"]  # within the tolerance of all else
    counted = (("changes of single components", single), ("changes of a node by itself", found))
    return [
        *(Tally(f"a year with a season: {name}", len(of), len(histories.nodes), _listed(of)) for name, of in counted),
        Tally("a year with a season: reported once", int(len(of_pairs) == 1), 1, _told(of_pairs)),
    ]


def _told(of_pairs: Sequence[changes.Change]) -> str:
    return "" if len(of_pairs) == 1 else _listed(of_pairs) or "not reported"


def _listed(found: Sequence[changes.Change]) -> str:
    of_each = (f"{of.node} {of.measurement} {of.component.term} {of.effect:+.1%} since {of.since}" for of in found[:3])
    return "; ".join(of_each)


#: Components that are all of a node, or all of one kind of its pairs or cells.
_WHOLE = ("whole", "class", "node", "socket", "distance", "stream")


SECTIONS = {
    "healthy": Section(healthy_cases, healthy),
    "jobs": Section(jobs_cases, jobs),
    "defects": Section(defect_cases, defects),
    "k_of_n": Section(some_cases, some),
    "order": Section(order_cases, order),
    "again": Section(again_cases, again),
    "majority": Section(majority_cases, majority),
    "year": Section(year_cases, year),
}
NONE = Promise(0.0)
PROMISES = {
    "healthy accused: quiet, usual, real, shared, seasons": NONE,
    "fleets with a healthy node accused: tails, bursts": Promise(1.0),
    "healthy SAME after two jobs: quiet, usual": Promise(97.0, at_least=True),
    "healthy SAME after two jobs: real": Promise(80.0, at_least=True),
    "nodes that nature put beyond a tolerance: SAME": Promise(5.0),
    "healthy SAME at a job SD of 0.6%, two jobs": Promise(),
    "healthy accused at a job SD of 0.6%, two jobs": NONE,
    "healthy found at a job SD of 0.6%, two jobs": Promise(),
    "defects: SAME": NONE,
    "defects 1.5x, 2 jobs: found": Promise(88.0, at_least=True),
    "defects 1.5x, 2 jobs: confirmed": Promise(75.0, at_least=True),
    "defects 2.5x, 2 jobs: found": Promise(99.0, at_least=True),
    "defects 1.2x, job SD 1%: SAME": Promise(5.0),
    "healthy accused beside a defect": NONE,
    "defect 2.5x in k of n jobs: SAME": NONE,
    "defect 2.5x in two or more of n: DEVIATES": Promise(95.0, at_least=True),
    "defect 2.5x in one of n: INTERMITTENT": Promise(95.0, at_least=True),
    "several runs of a job far out: SAME": NONE,
    "several runs of a job far out: INTERMITTENT": Promise(),
    "outcomes changed by order, all": NONE,
    "three measured again: between SAME and a finding": NONE,
    "three measured again: between SAME and INCONCLUSIVE": Promise(4.0),
    "a healthy peer more: between SAME and a finding": NONE,
    f"{_SPLIT}: healthy DEVIATES": NONE,
    f"{_SPLIT}: defective SAME": NONE,
    f"{_SPLIT}: no group named": NONE,
    f"{_OUTVOTED}: healthy DEVIATES": Promise(),
    "a year with a season: changes of single components": NONE,
    "a year with a season: changes of a node by itself": NONE,
    "a year with a season: reported once": Promise(100.0, at_least=True),
}


def described(case: Case) -> Iterator[str]:
    """By node of a case's fleet the truth, the outcome, and the row of the table that is nearest to its tolerance."""
    off = range(case["off"]) if "off" in case else [1]
    fleet = (with_defects(case, off) if "component" in case else None) or known(case)
    judged = judge(fleet.measured(case.get("jobs", 2)))
    rows = judged.deviations.to_dataframe().reset_index(drop=True)
    rows["share"] = (rows["difference"] / rows["tolerance"]).abs()
    shown = ["job", "measurement", "component_type", "place", "difference", "half_90", "half_simultaneous", "tolerance"]
    for (name, node), reach in zip(judged.verdict.nodes.items(), fleet.reach.tolist(), strict=True):
        of_node = rows[rows["node"] == name]
        values = of_node.sort_values("share")[shown].iloc[-1].to_dict() if len(of_node) else {}
        texts = (
            f"{key} {value:.4f}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items()
        )
        yield f"{name}: truth {reach:.2f} tolerances; {node.outcome.value}; {', '.join(texts)}"


def main() -> int:
    """Count and print; 1 where a promise is not kept."""
    arguments = cases.parser(__doc__, SECTIONS).parse_args()
    for line in described(arguments.case) if arguments.case else ():
        print(line, flush=True)
    return cases.run("verdict", SECTIONS, PROMISES, arguments)


if __name__ == "__main__":
    sys.exit(main())
