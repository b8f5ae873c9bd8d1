"""Campaigns of one simulated fleet, weeks apart, judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nodeprint.cli.shared import judge_and_write
from nodeprint.data.store import packed
from nodeprint.simulate import Plan, fleet

#: Jobs are an hour apart.
WEEK = 7 * 24


def at(plan: Plan, week: int, defects: Mapping[int, Sequence[str]]) -> Plan:
    """The plan of a week, with the defects that are there since earlier weeks or this."""
    since = tuple(text for first, texts in sorted(defects.items()) if first <= week for text in texts)
    return replace(plan, first_job=1 + week * WEEK, defects=plan.defects + since)


def judged_weeks(
    folder: Path, plan: Plan, weeks: Sequence[int], defects: Mapping[int, Sequence[str]] | None = None
) -> list[Path]:
    """Judged campaigns `week00`, ... in `folder`, with `defects` by the week that they begin in."""
    paths = []
    for week in weeks:
        path = folder / f"week{week:02d}"
        packed.write(replace(fleet(at(plan, week, defects or {})), campaign=path.name), path)
        judge_and_write(path)
        paths.append(path)
    return paths
