# The configuration (checked, with defaults) and the sample sheet, which `nodeprint discover` wrote.
import re
import shlex

from snakemake.exceptions import WorkflowError

from nodeprint import campaign as campaigns
from nodeprint import config as configuration
from nodeprint import discover
from nodeprint.errors import NodeprintError

try:
    # The file alone, as `nodeprint discover` read it: Snakemake would merge it into config/config.yaml.
    CONFIG = Path([*workflow.overwrite_configfiles, *workflow.configfiles][0])
    config = configuration.load(CONFIG)
    CAMPAIGN = configuration.campaign_folder(config)
    NODES = {node.node: node for node in discover.read_sheet(CAMPAIGN / "nodes.tsv")}
    SWEEPS = campaigns.sweeps(NODES.values())
except NodeprintError as error:
    raise WorkflowError(str(error))


wildcard_constraints:
    node="|".join(map(re.escape, NODES)),
    job=r"[1-9]\d*",
    sweep="|".join(map(re.escape, SWEEPS)),


def outcomes():
    """What says how the nodes that are to be measured came out: status.json of each, or the lists of the sweeps."""
    if config["launch"] in campaigns.TOGETHER:
        lists = (CAMPAIGN / "sweeps" / f"{sweep}.nodes" for sweep in SWEEPS)
        return [path.with_suffix(".tsv") for path in lists if path.exists()]
    return [
        campaigns.job_folder(CAMPAIGN, node) / "status.json"
        for node in NODES.values()
        if node.measure
    ]


def fabric_outcomes():
    """What says how LinkTest between the nodes came out; nothing where it is not asked for."""
    asked = NODES and configuration.fabric_plan(config)
    return [campaigns.fabric_outcomes(CAMPAIGN, NODES.values())] if asked else []
