"""What changed between two campaigns, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from nodeprint.data import homes
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.compare import Change, OtherMachine
from nodeprint.report import names


def as_text(changes: Sequence[Change], rules: Acceptance) -> str:
    """What changed, a line each, how much did not, and by which rule."""
    moved = [change for change in changes if change.changed]
    lines = []
    for change in moved:
        home = homes.named(change.home).replace("NUMA node ", "")
        place = ", ".join(filter(None, (change.measurement, change.name, home)))
        before, after = (names.quantity(value, change.unit) for value in (change.before, change.after))
        moved_by = f"{change.change * 100:+.1f} % (threshold {change.threshold * 100:.1f} %)"
        lines.append(f"{change.node}: {place}: {before} to {after}, {moved_by}")
    nodes = {change.node for change in changes}
    unchanged = len(nodes - {change.node for change in moved})
    return "\n".join([
        *lines,
        f"{len(moved)} of {len(changes)} figures changed, none on {unchanged} of {len(nodes)} nodes",
        "compared were medians, of classes of pairs and of rows of other measurements: of single cores, CCXs and links "
        "nothing is said (`nodeprint history` has every part)",
        "a figure is reported as changed if it moved by more than its bound in acceptance.yaml and by more than runs "
        f"differ by (spread pooled over the nodes; chance of any false alarm {rules.false_alarm * 100:g} %)",
    ])  # fmt: skip


def other_machine(other_machine: OtherMachine) -> str:
    """Nodes that are another machine under the same name."""
    apart = f"{other_machine.fact} {other_machine.before} before, {other_machine.after} after"
    return (
        f"the machines differ: {names.nodes(other_machine.nodes)}: {apart}; what follows are no changes of one machine"
    )
