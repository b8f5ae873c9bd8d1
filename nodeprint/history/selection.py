"""The judged campaigns of a history, either named or next to another one, and the nodes that are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd
from msgspec.structs import replace

from nodeprint import files
from nodeprint.errors import NodeprintError
from nodeprint.history.changes import OTHER_MACHINE, Histories, NodeHistory
from nodeprint.history.judged import PastCampaign, read, without_fingerprints
from nodeprint.judge.baseline_folder import judged_folders
from nodeprint.machine.fingerprint import other_processor

#: The most earlier campaigns of a node: its first, its newest, and evenly spaced ones between.
MOST_EACH, _NEWEST = 16, 8
#: Fleets up to this size are shown with all nodes, larger ones with those that changed, at most MOST_DRAWN on a page.
ALL_NODES, MOST_DRAWN = 16, 64


def campaigns(folders: Sequence[Path]) -> Histories:
    """The judged campaigns of `folders`, each a campaign or a directory of campaigns, without duplicates. Simulated
    campaigns are left out if others are measured.

    Raises NodeprintError if a directory holds none, or a verdict cannot be read.
    """
    judged: dict[Path, PastCampaign] = {}
    for folder in folders:
        paths = judged_folders(folder)
        if not paths:
            advice = "name campaigns, or the folder that they are in; `nodeprint judge` judges one"
            raise NodeprintError("holds no judged campaign", where=folder, advice=advice)
        judged |= {files.real(path): read(path) for path in paths}
    distinct = _told_apart(tuple(judged.values()))
    measured = [campaign for campaign in distinct if not campaign.simulated]
    left_out = sorted(campaign.name for campaign in distinct if measured and campaign.simulated)
    return Histories(_by_time(measured or distinct), left_out=tuple(left_out))


def _told_apart(judged: Sequence[PastCampaign]) -> list[PastCampaign]:
    """The same, with campaigns of one name renamed to the ends of their paths: `january/main` and `february/main`."""
    count = Counter(campaign.name for campaign in judged)
    several = {name: [files.real(of.folder).parts for of in judged if of.name == name] for name in count}
    out = []
    for campaign in judged:
        length = 1
        while (
            count[campaign.name] > 1 and len({path[-length:] for path in several[campaign.name]}) < count[campaign.name]
        ):
            length += 1
        tail = "/".join(files.real(campaign.folder).parts[-length:])
        out.append(replace(campaign, name=tail) if count[campaign.name] > 1 else campaign)
    return out


def of_one_machine(selected: Histories) -> Histories:
    """The selection, without nodes in campaigns where their processor differs from their newest. A campaign without
    nodes is then left out."""
    newest = {name: node.fingerprint for of in selected.judged for name, node in of.nodes.items() if node.fingerprint}
    judged: list[PastCampaign] = []
    others: list[tuple[str, ...]] = []
    for campaign in selected.judged:
        apart = [
            (name, campaign.name, *difference)
            for name, node in campaign.nodes.items()
            if (difference := other_processor(node.fingerprint, newest.get(name, {})))
        ]
        gone = {name for name, *_ in apart}
        kept = {name: node for name, node in campaign.nodes.items() if name not in gone}
        others += apart
        if kept or not gone:
            judged.append(replace(campaign, nodes=kept) if gone else campaign)
    return replace(selected, judged=tuple(judged), other_machines=pd.DataFrame(others, columns=OTHER_MACHINE))


def beside(campaign: Path) -> Histories:
    """A campaign after the older ones in the same directory, all simulated or all measured, that share nodes with it.

    A node is the same if name and processor are, and both campaigns have its fingerprint. Each node has at most
    MOST_EACH campaigns. Campaigns that cannot be read are skipped. Raises NodeprintError if `campaign` is one of them.
    """
    own, folder = read(campaign), files.real(campaign)
    earlier = []
    for path in sorted(folder.parent.glob("*/verdict.json")):
        with suppress(NodeprintError):
            campaign_beside = without_fingerprints(read(path.parent))
            alike = campaign_beside.simulated == own.simulated and not own.nodes.keys().isdisjoint(
                campaign_beside.nodes
            )
            if path.parent != folder and alike and campaign_beside.last and campaign_beside.last < own.last:
                earlier.append(campaign_beside)
    earlier = list(_by_time(earlier))
    wanted = {number for node in own.nodes for number in _spread(_with(earlier, node))}
    taken = [read(campaign_beside.folder) for number, campaign_beside in enumerate(earlier) if number in wanted]
    identified = (_identified(campaign_taken, own) for campaign_taken in taken)
    judged = (*(campaign_taken for campaign_taken in identified if campaign_taken.nodes), own)
    return of_one_machine(Histories(judged, beside=len(earlier) - len(taken)))


def _identified(campaign: PastCampaign, reference: PastCampaign) -> PastCampaign:
    """A campaign with only those nodes that have a fingerprint here and in the `reference`."""
    nodes = {
        name: node
        for name, node in campaign.nodes.items()
        if name in reference.nodes and node.fingerprint and reference.nodes[name].fingerprint
    }
    return replace(campaign, nodes=nodes)


def _with(campaigns: Sequence[PastCampaign], node: str) -> list[int]:
    """The numbers of the campaigns that measured a node."""
    return [
        number
        for number, campaign in enumerate(campaigns)
        if node in campaign.nodes and campaign.nodes[node].outcome.entry.measured
    ]


def _spread(numbers: Sequence[int]) -> list[int]:
    """The first and newest of many numbers, and some evenly spaced ones between."""
    if len(numbers) <= MOST_EACH:
        return list(numbers)
    older, newest = numbers[:-_NEWEST], numbers[-_NEWEST:]
    count = MOST_EACH - _NEWEST
    return [*(older[i * len(older) // count] for i in range(count)), *newest]


def _by_time(judged: Iterable[PastCampaign]) -> tuple[PastCampaign, ...]:
    return tuple(sorted(judged, key=lambda campaign: (campaign.last, str(campaign.folder))))


def pictured(histories: Sequence[NodeHistory]) -> list[NodeHistory]:
    """The nodes that a page draws: all of a small fleet, else the changed ones, of very many those that changed
    most."""
    if len(histories) <= ALL_NODES:
        return list(histories)
    changed = [history for history in histories if history.changes]
    largest = {h.node: max(abs(change.effect) / change.tolerance for change in h.changes) for h in changed}
    kept = set(sorted(largest, key=lambda node: -largest[node])[:MOST_DRAWN])
    return [history for history in changed if history.node in kept]
