"""The courses of a node's parts as a figure."""

from __future__ import annotations

from nodeprint.history import changes, text
from nodeprint.history.changes import NodeHistory
from nodeprint.report.figures.course import CourseData, CourseLine


def data(history: NodeHistory) -> CourseData:
    """What the figure of a node draws: each part that changed, of an unchanged node the one that moved most."""
    lines = [
        CourseLine(
            text.part_name(course), course.bound, course.measured, course.campaigns, course.distance, course.half,
            tuple(change.since for change in history.changes if changes.is_of(change, course)),
        )
        for course in history.courses if course.measured
    ]  # fmt: skip
    return CourseData(history.node, tuple(lines))
