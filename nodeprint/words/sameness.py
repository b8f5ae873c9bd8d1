"""How alike a node is to its peers in words, and what would resolve what is not, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from nodeprint.judge.judged import JudgedFleet
from nodeprint.judge.margins import Margin
from nodeprint.judge.populations import NodeEvidence
from nodeprint.judge.terms import FAMILIES
from nodeprint.packed import PackedNode
from nodeprint.words import places
from nodeprint.words.outcome import MarginFigure, exceeded, said_within
from nodeprint.words.units import both


def alike(known: JudgedFleet, i: int, letter: str, figures: Mapping[str, MarginFigure]) -> str:
    """What is said of a node that is the same as its peers, those of the group `letter` where there are several, with
    its margins (`margin_figures`)."""
    mine = known.evidence(i)
    hops, cells = ({name: figures[name] for name in mine.of(pairs=which)} for which in (True, False))
    said = []
    if pairs := known.pairs(i):
        names = ", ".join(sorted({one.matrix.name for one in pairs}))
        said.append(f"{said_within(hops)} for {names}, {mine.runs} runs")
    others = [f"{one.within * 100:.1f} % for {name}" for name, one in cells.items() if one.within <= one.bound]
    said += [", ".join(others)] if others else []
    return f"the same as {f'group {letter}' if letter else 'its peers'} within {'; '.join(said)}{_beside(cells)}"


def doubted(known: JudgedFleet, i: int, doubt: str, figures: Mapping[str, MarginFigure]) -> str:
    """What is said of a node that deviates in nothing and cannot be called the same (`outcomes.DOUBTS`)."""
    cells = {name: figures[name] for name in known.evidence(i).of(pairs=False)}
    return f"nothing deviates, but {_doubt(known, i, doubt, figures)}{_beside(cells)}"


def _beside(cells: Mapping[str, MarginFigure]) -> str:
    open_ = exceeded(cells)
    return f"; beside that, not resolved within their bounds: {', '.join(open_)}" if open_ else ""


def _doubt(known: JudgedFleet, i: int, doubt: str, figures: Mapping[str, MarginFigure]) -> str:
    if doubt == "one run":
        unknown = "with one run it is unknown how far the runs of a node differ"
        return f"{unknown}; two or more are needed (`runs` in the configuration; an imported matrix is a single run)"
    if doubt == "unwitnessed":
        unseen = [places.TESTED[family] for one in known.pairs(i) for family in one.matrix.terms.unwitnessed]
        return f"this data cannot show a defect of {' or '.join(dict.fromkeys(unseen))}"
    if doubt == "untested":
        return "some terms have too few pairs to be examined; measure the missing pairs"
    if doubt == "nothing resolved":
        return "no measurement is resolved within its bound" if figures else "nothing was measured that can be compared"
    if doubt == "absent":
        return f"it has no {' and no '.join(known.absent(i))}, which its peers have; measure it again"
    return _unresolved(known.evidence(i), known.fleet.nodes[i], figures)


def margin_figures(margins: Mapping[str, Margin], node: PackedNode) -> dict[str, MarginFigure]:
    """By name how alike a node is to its peers, with the place in the node's own numbers."""
    out = {}
    for name, one in margins.items():
        relative, of_pairs = one.matrix.scale.relative, one.matrix.quantity.of_pairs
        per_ns = float(one.matrix.levels[one.term]) if of_pairs else float("nan")
        place = places.term(one.matrix, one.term, node)
        out[name] = MarginFigure(
            relative(one.reach), one.reach * per_ns, relative(one.bound), one.bound * per_ns, place
        )
    return out


def _unresolved(mine: NodeEvidence, node: PackedNode, figures: Mapping[str, MarginFigure]) -> str:
    """Which families of pairs are not resolved within their bounds, and what would do it."""
    beyond = sorted(((f, m) for f, m in mine.of(pairs=True).items() if m.share > 1), key=lambda one: -one[1].share)
    named = ", ".join(
        f"{one.place} may differ by up to {both(one.within, one.within_ns)} (bound {both(one.bound, one.bound_ns)})"
        if isfinite(one.within)
        else f"{one.place} has one run at most"
        for one in (figures[name] for name, _ in beyond)
    )
    return f"this is not resolved within its bound: {named}; {_remedy(dict(beyond), node)}"


def _remedy(margins: Mapping[str, Margin], node: PackedNode) -> str:
    """What resolves families (names of margins) that are not resolved, at what cost.

    A job makes several runs of a measurement for each of the configuration's (nodeprint/measurements.yaml).
    """
    runs = [(m.runs, _made(m)) for m in margins.values() if m.runs is not None]
    lacking = {m.lacking for m in margins.values() if m.runs is None}
    remedies = []
    if runs:
        what = "a part of it" if lacking else "it"
        needed, made = max(runs, key=lambda of: of[0] / of[1])
        remedies.append(
            f"to resolve {what}, {needed} runs are needed and {made} were made: multiply `runs` in the configuration"
            f" by {-(-needed // made)} and call `make run`, which adds them{_cost(margins, node)}"
        )
    if "peers" in lacking:
        remedies.append("there are too few peers: measure more nodes like these")
    if "calm" in lacking:
        remedies.append("the runs of these nodes differ too much: look for other load on them and measure them again")
    if "likeness" in lacking:
        keys = {bound_key(name.rpartition(": ")[2]) for name, m in margins.items() if m.lacking == "likeness"}
        remedies.append(
            f"the difference from the peers is probably close to the bound: where the site accepts it, raise "
            f"{', '.join(sorted(keys))} in config/acceptance.yaml"
        )
    return "; for the rest, ".join(remedies)


def _made(margin: Margin) -> int:
    """The runs of its measurement that a job has made."""
    return max(int(margin.matrix.values.shape[1]), 1)


def _cost(margins: Mapping[str, Margin], node: PackedNode) -> str:
    """How long the runs take that are lacking, by what a run of each measurement took; empty where that is unknown."""
    lacking: dict[str, int] = {}
    for one in margins.values():
        lacking[one.matrix.name] = max((one.runs or 0) - _made(one), lacking.get(one.matrix.name, 0))
    minutes = sum(node.run_minutes.get(name, 0.0) * runs for name, runs in lacking.items())
    return f" (about {minutes:.2g} minutes of measuring more on each node)" if minutes else ""


def bound_key(family: str) -> str:
    """The key of acceptance.yaml that bounds a family of terms; inside a CCX a bound in ns, as a hop is short there."""
    one = FAMILIES[family]
    return f"`bounds.{f'percent.{one.term}' if one.bound_ns == 'least_ns' else one.bound_ns}`"
