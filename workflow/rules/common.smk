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
except NodeprintError as error:
    raise WorkflowError(str(error))


# the folder of the Snakefile, also where the workflow is a module of another
WORKFLOW = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)).parent
LAUNCH = WORKFLOW / "launch"


wildcard_constraints:
    node="|".join(map(re.escape, NODES)),
    job=r"[1-9]\d*",


def together():
    """Whether one job of Snakemake measures all nodes. An executor that submits jobs itself gets one for each node."""
    return config["launch"] in campaigns.TOGETHER and workflow.local_exec


def launch_command(pending, outcomes):
    """What measures the nodes of a list and writes what came back."""
    if config["launch"] == "slurm":
        program = [sys.executable, LAUNCH / "slurm.py"]
        words = [*program, CONFIG, pending, outcomes]
    else:
        named = {"campaign": CAMPAIGN, "nodes": pending, "out": outcomes}
        named["inventory"] = config["inventory"]
        words = [LAUNCH / "ansible"]
        words += [word for key, value in named.items() for word in (f"--{key}", value)]
    return shlex.join(map(str, words))


def outcomes(wildcards):
    """What says how the nodes that are to be measured came out: one list, or the status.json of each."""
    if together():
        pending = CAMPAIGN / "launch/pending.tsv"
        return [CAMPAIGN / "launch/outcomes.tsv"] if pending.exists() else []
    return [
        campaigns.job_folder(CAMPAIGN, node) / "status.json"
        for node in NODES.values()
        if node.measure
    ]


def fabric_outcomes():
    """What says how LinkTest between the nodes came out; nothing where it is not asked for."""
    asked = NODES and configuration.fabric_plan(config)
    return [campaigns.fabric_outcomes(CAMPAIGN, NODES.values())] if asked else []
