"""What earlier campaigns say of a node: a section of its page."""

from __future__ import annotations

from nodeprint.report import names
from nodeprint.report.figures import course
from nodeprint.report.pages import pictures
from nodeprint.report.pages.blocks import Block, Bullets, Figures, Text
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.settings.texts import say


def blocks(campaign: Campaign, node: str) -> tuple[Block, ...]:
    """The changes of a node, the figure of its courses and which campaigns they are from; nothing without others."""
    of_node = campaign.over_time.get(node)
    if of_node is None:
        return ()
    components = names.listed(line.name for line in of_node.course.lines)
    alt = say("alt", "over_time", node=node, components=components, sentences=" ".join(of_node.sentences))
    data = of_node.course
    drawn = pictures.picture(campaign, node, course.course, data, pictures.PAGE, name="over-time", alt=alt)
    return Bullets(of_node.sentences), Figures((drawn,)), Text(of_node.campaigns, quiet=True)
