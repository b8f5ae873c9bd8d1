"""What earlier campaigns say of a node: a section of its page."""

from __future__ import annotations

from nodeprint.report import names
from nodeprint.report.figures import curves
from nodeprint.report.pages import pictures
from nodeprint.report.pages.blocks import Block, Bullets, Figures, Text
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.settings.texts import say


def blocks(campaign: Campaign, node: str) -> tuple[Block, ...]:
    """The changes of a node, the figure of its courses and which campaigns they are from; nothing without others."""
    of_node = campaign.over_time.get(node)
    if of_node is None or of_node.course is None:
        return ()
    components = names.listed(of_node.course.component.to_numpy().tolist())
    alt = say("alt", "over_time", node=node, components=components, sentences=" ".join(of_node.sentences))
    data, caption = of_node.course, say("captions", "course", node=node)
    drawn = pictures.picture(
        campaign, node, curves.curve, data, pictures.PAGE, name="over-time", alt=alt, caption=caption
    )
    return Bullets(of_node.sentences), Figures((drawn,)), Text(of_node.campaigns, quiet=True)
