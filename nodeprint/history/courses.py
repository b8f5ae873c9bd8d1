"""The courses of a node's components as a figure, and the earlier campaigns in a node report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import xarray as xr
from msgspec.structs import replace

from nodeprint.data.store import packing
from nodeprint.errors import NodeprintError
from nodeprint.history import change_sentences, changes, selection
from nodeprint.history.changes import Course, NodeHistory
from nodeprint.history.judged import PastCampaign
from nodeprint.report import names
from nodeprint.report.figures.curves import line, lines
from nodeprint.report.figures.figure_data import tolerance_coordinates
from nodeprint.report.pages.judged_campaign import OverTime
from nodeprint.settings.texts import say


def data(history: NodeHistory) -> xr.Dataset | None:
    """The data of a node's figure: components that changed, or the one that moved most. None without a measurement.

    Values are in tolerances from the first level. Tables may have no times: they are drawn over the number of the
    measurement.
    """
    courses = [course for course in history.courses if course.measured]
    timed = all(moment for course in courses for moment in course.measured)
    each = [_line(course, history, timed=timed) for course in courses]
    if not each:
        return None
    drawn = lines(each, "measured", "from the first level, tolerances", bars=True)
    return drawn.assign_coords(tolerance_coordinates(1.0, 1.0, "1"))


def _line(course: Course, history: NodeHistory, *, timed: bool) -> xr.Dataset:
    name, percent = change_sentences.component_name(course), 100 * course.tolerance
    distance, half = np.array(course.distance), np.array(course.half)
    since = {change.since for change in history.changes if changes.is_of(change, course)}
    numbers = np.arange(1, len(course.measured) + 1, dtype=np.float64)
    return line(
        f"{name} (tolerance {percent:.2g}%)",
        [_moment(moment) for moment in course.measured] if timed else numbers,
        distance,
        distance - half,
        distance + half,
        component=xr.Variable((), name),
        campaign=xr.Variable("point", np.array(course.campaigns, dtype=object)),
        changed=xr.Variable("point", [float(moment in since) for moment in course.measured]),
    )


def _moment(moment: str) -> np.datetime64:
    return np.datetime64(datetime.fromisoformat(moment).astimezone(UTC).replace(tzinfo=None), "ns")


def beside(campaign: Path) -> Callable[[Sequence[str]], Mapping[str, OverTime]]:
    """For the report of a campaign: results of neighboring campaigns by node, for nodes that any of them has."""

    def of_nodes(nodes: Sequence[str]) -> Mapping[str, OverTime]:
        selected = selection.beside(campaign)
        if len(selected.judged) < 2:
            return {}
        judged = tuple(campaign_read for campaign_read in selected.judged if _is_packed(campaign_read))
        if selected.judged[-1] not in judged[1:]:
            return {}
        histories = changes.histories(replace(selected, judged=judged), nodes)
        return {
            history.node: _over_time(history, change_sentences.shared_with(history.node, histories), selected)
            for history in histories.nodes
            if history.node in nodes and len(set(history.campaigns)) > 1
        }

    return of_nodes


def _is_packed(campaign: PastCampaign) -> bool:
    """Whether its measurements can be read. If they are damaged or of an older version, the report leaves it out."""
    with suppress(NodeprintError):
        packing.pack(campaign.folder)
        return True
    return False


def _over_time(history: NodeHistory, shared: Sequence[str], selected: changes.Histories) -> OverTime:
    earlier = [name for name in dict.fromkeys(history.campaigns) if name != selected.judged[-1].name]
    counted = f"{names.counted(len(earlier), 'earlier campaign')} ({change_sentences.few(earlier)})"
    since = say("history", "beside", campaigns=counted, since=history.measured[0][:10])
    if selected.beside:
        more = names.counted(selected.beside, "further one")
        since += say("history", "some", more=more)
    if gone := int((selected.other_machines["node"] == history.node).sum()):
        since += say("history", "gone", gone=names.counted(gone, "campaign"))
    sentences = [change_sentences.of_node(change) for change in history.changes]
    words = (*(tuple(sentences) or (change_sentences.unchanged(history),)), *shared)
    return OverTime(data(history), words, since, bool(sentences))
