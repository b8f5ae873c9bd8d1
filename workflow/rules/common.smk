# The configuration (checked, with defaults), and what of the sample sheet the rules ask for.
import re
import shlex
import socket
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

# the folder of the Snakefile, also where the workflow is a module of another
WORKFLOW = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)).parent
# its clone has nodeprint and the kernels, installed or not
ROOT = WORKFLOW.parent
if ROOT.is_dir():
    sys.path.insert(0, str(ROOT))
else:  # Snakemake reads the rules from a repository, as with github(...), and checks out nothing
    try:
        from nodeprint.settings import sources
    except ModuleNotFoundError:
        raise WorkflowError(
            "nodeprint is not installed, and the rules of a repository have no kernels; `pip install nodeprint` of the"
            " same version, or name the Snakefile of a clone"
        )
    ROOT = sources.folder()

from nodeprint.campaign import preparation as campaigns
from nodeprint import files
from nodeprint.settings import checked_yaml
from nodeprint.settings import config as configuration
from nodeprint.campaign import node_sheet as sheets
from nodeprint.campaign import recheck as rechecks
from nodeprint.campaign import plans
from nodeprint.campaign.launchers.launcher import Engine, Scheduler, job_name
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.errors import NodeprintError

# Of a module the working folder may have kernels of its own.
SOURCES = (
    Path("kernels").absolute()
    if Path("kernels/node-run").exists()
    else ROOT / "kernels"
)
KERNELS = SOURCES / "build"


def configuration_file():
    """The file of the configuration alone, as `nodeprint discover` reads it: Snakemake would merge it into
    config/config.yaml. Of a module with `config:` it is written here, unless it is a file's content as it is.
    """
    named = [
        Path(name) for name in [*workflow.overwrite_configfiles, *workflow.configfiles]
    ]
    if not IS_MODULE:
        return named[0]
    acceptance = Path("config/acceptance.yaml")
    if "acceptance" in config or acceptance.exists():
        for path in named:
            if checked_yaml.read(path) == config:
                return path
    content = {
        "acceptance": str(acceptance if acceptance.exists() else ROOT / acceptance)
    }
    text = checked_yaml.text(content | config)
    path = Path(".snakemake/nodeprint", f"{config.get('campaign', 'main')}.yaml")
    # the time of its change says that it was edited
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, text)
    return path


# a module of another workflow, which gives it its configuration
IS_MODULE = workflow.modifier.skip_configfile

try:
    CONFIG = configuration_file()
    SETTINGS = configuration.load(CONFIG)
    LAUNCHER = launcher(SETTINGS.launch)
except NodeprintError as error:
    raise WorkflowError(str(error))

CAMPAIGN = configuration.campaign_folder(SETTINGS)
if workflow.modifier.path_modifier.replace_prefix(str(CAMPAIGN)) != str(CAMPAIGN):
    raise WorkflowError(
        "the module's prefix cannot apply to commands and folders of nodes; remove it, and set the key `results` of its"
        " config, such as `other/results`"
    )
# Another configuration has another name here: an edited one is noticed whatever clocks and copies do to times.
DISCOVERED = campaigns.discovered(CAMPAIGN, SETTINGS)
# What is called to measure, as sentences name it.
CALL = shlex.join(
    ["snakemake"]
    + ["--workflow-profile", "profiles/slurm"] * (LAUNCHER.executor != "local")
    + ["--configfile", str(CONFIG)]
    * (CONFIG != Path("config/config.yaml") and not IS_MODULE)
)


wildcard_constraints:
    node=r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
    job=r"[1-9]\d*",
    number=r"[1-9]",


def python():
    """The Python of a rule's command, with the nodeprint of this clone."""
    by_conda = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    program = "python" if by_conda else shlex.quote(sys.executable)
    return f"PYTHONPATH={shlex.quote(str(ROOT))}${{PYTHONPATH:+:$PYTHONPATH}} {program}"


def nodeprint():
    """The command line of nodeprint, in a rule's command."""
    return f"{python()} -m nodeprint"


def stop(sentence):
    """End the call with a sentence: a WorkflowError of an input function is printed with its traceback."""
    print(f"nodeprint: {sentence}", file=sys.stderr, flush=True)
    sys.exit(1)


@cache
def read_sheet(path, changed):
    """The rows of a sheet by node, as it was `changed` last."""
    return {node.node: node for node in sheets.read_sheet(path)}


def sheet():
    """The rows of the sample sheet as it is now, by node; none before the campaign's first call."""
    path = CAMPAIGN / "nodes.tsv"
    try:
        return read_sheet(path, path.stat().st_mtime_ns) if path.exists() else {}
    except NodeprintError as error:
        stop(error)


def wait_for_sheet():
    """Let Snakemake list the nodes first where that was not done. Where it was, they are in the graph from the start:
    --until does not see what comes after a checkpoint, and would do nothing without a word.
    """
    if DISCOVERED.exists():
        return
    if set(workflow.dag_settings.until) - {"kernels", "discover"}:
        stop(
            f"{CONFIG}: the nodes are not listed yet: call `{CALL} --until discover` first"
        )
    checkpoints.discover.get()


def round_outcomes(number):
    """What says how the jobs of a round came out, the first ones in round 0: status.json of each, or one list."""
    if number:
        checkpoints.recheck.get(number=number)
        jobs = rechecks.jobs(CAMPAIGN, number)
    else:
        wait_for_sheet()
        nodes = [node for node in sheet().values() if node.measure]
        jobs = {node.node: node.job for node in rechecks.first_jobs(CAMPAIGN, nodes)}
    if isinstance(LAUNCHER, Engine):
        listed = CAMPAIGN / f"launch/{f'recheck{number}' if number else 'pending'}.tsv"
        there = listed.exists() and listed.stat().st_size
        return [listed.with_suffix(".outcomes.tsv")] if there else []
    return [
        CAMPAIGN / f"nodes/{node}/job{job}/status.json" for node, job in jobs.items()
    ]


def outcomes(wildcards):
    """What says how the jobs of all rounds came out."""
    paths = round_outcomes(0)
    for number in rechecks.rounds(SETTINGS, list(sheet().values())):
        again = round_outcomes(number)
        paths += again
        if not again:
            break
    return paths


def outcomes_before(wildcards):
    """What says how the jobs of the rounds before one came out."""
    return [
        path
        for number in range(int(wildcards.number))
        for path in round_outcomes(number)
    ]


def kept_configuration(wildcards):
    """The campaign's copy of the configuration, which changes where the site edits its own."""
    wait_for_sheet()
    return [CAMPAIGN / "config.yaml"]


def fabric_outcomes(wildcards):
    """What says how LinkTest between the nodes came out; nothing where it is not asked for."""
    wait_for_sheet()
    nodes = rechecks.first_jobs(CAMPAIGN, sheet().values())
    asked = nodes and configuration.fabric_plan(SETTINGS)
    return [campaigns.fabric_job(CAMPAIGN, nodes) / "status.json"] if asked else []


def node_run_words(wildcards):
    """The arguments of node-run. No hook is called with --no-hooks, and where this workflow is a module of another."""
    stop_where_another_executor_measures()
    node = sheet()[wildcards.node]
    return shlex.join(campaigns.node_run(SETTINGS, node, int(wildcards.job)))


def stop_where_nodes_are_not_measured():
    """Another executor, or this one elsewhere, would measure a host under another node's name."""
    stop_where_another_executor_measures()
    here = sheets.short(socket.gethostname())
    elsewhere = [
        node.node for node in sheet().values() if node.measure and node.host != here
    ]
    if elsewhere and LAUNCHER.is_here:
        raise WorkflowError(
            f"{CAMPAIGN}/nodes.tsv: {elsewhere[0]} is not this host; set `launch` in {CONFIG}"
        )


def stop_where_another_executor_measures():
    """Only the executor that the launcher names puts a job onto its node."""
    plugin = workflow.executor_plugin  # none is there where Snakemake only lists
    right = LAUNCHER.executor
    if not plugin or workflow.dryrun or workflow.touch or plugin.name == right:
        return
    other = ", or set `launch: slurm`" if right == "local" else ""
    stop(
        f"{CONFIG}: launch: with `{SETTINGS.launch}` nodes are measured through the executor `{right}` alone, as "
        f"`{plugin.name}` would measure other hosts under their names: call `{CALL}`{other}"
    )


def node_reports(wildcards):
    """The node reports, which no rule can declare as outputs. As inputs they are part of `snakemake --report`, too."""
    checkpoints.report.get()
    pages = (CAMPAIGN / "report").glob("*.pdf")
    paths = sorted(path for path in pages if path.name != "cluster.pdf")
    keys = {"category": "Node reports"}
    return [report(path, labels={"node": path.stem}, **keys) for path in paths]
