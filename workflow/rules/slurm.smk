# What a job of the Slurm executor asks for, and one allocation over many nodes (the sweep). Used where the sheet comes
# from Slurm; see config/README.md, `slurm`.
import math
import socket
from functools import cache

from nodeprint.discover import plans, slurm

SWEEP = config["launch"] == "sweep"
SLURM = config["launch"] in ("slurm", "sweep") or any(
    node.partition for node in NODES.values()
)


@cache
def planned_minutes(cpus):
    """Time limit of a job on a node of so many CPUs, from what the kernels plan; `slurm.minutes` wins over it."""
    if config["slurm"]["minutes"]:
        return config["slurm"]["minutes"]
    seconds = 0.0
    for name, kernel, arguments in (
        row.split("\t") for row in configuration.plan(config).splitlines()
    ):
        words = [*arguments.split(), "--cpus", f"0-{max(cpus, 2) - 1}"]
        try:
            time = plans.seconds(Path("kernels/build"), kernel, words)
        except NodeprintError as error:
            raise WorkflowError(f"{CONFIG}: arguments.{name}: {error}")
        seconds += config["runs"] * time
    # Twice the time at a slow interconnect's 195 ns a hop, and five minutes for start, survey and pinning.
    return 5 + math.ceil(2 * seconds / 60)


def fabric_minutes(nodes):
    """Time limit of a run of LinkTest over so many nodes: as planned, twice, and five minutes."""
    if config["slurm"]["minutes"]:
        return config["slurm"]["minutes"]
    names = ",".join(f"n{i}" for i in range(max(nodes, 2)))
    ranks = str(config["mpi"]["ranks_per_node"])
    times = (
        plans.seconds(
            Path("kernels/build"),
            "linktest",
            [*arguments.split(), "--nodes", names, "--per-node", ranks],
        )
        for _, arguments in configuration.fabric_plan(config)
    )
    return 5 + math.ceil(2 * max(times, default=0) / 60)


def job_options(node):
    """Options of sbatch for the job of one node."""
    return slurm.job_options(node, config["slurm"], planned_minutes(node.cpus))


def slurm_resources():
    """Resources of `measure`. cpus_per_task and mem_mb leave CPUs and memory to --exclusive: all of them."""
    if not SLURM:
        return {}
    names = {"slurm_account": "account", "qos": "qos"}
    return {
        "slurm_partition": lambda wildcards: NODES[wildcards.node].partition,
        "runtime": lambda wildcards: planned_minutes(NODES[wildcards.node].cpus),
        "slurm_extra": lambda wildcards: job_options(NODES[wildcards.node]),
        "cpus_per_task": -1,
        "mem_mb": 0,
    } | {
        resource: config["slurm"][key]
        for resource, key in names.items()
        if config["slurm"][key]
    }


def sweep_options(sweep):
    """Options of sbatch for the allocation over the nodes of `sweep`."""
    nodes = SWEEPS[sweep]
    return slurm.sweep_options(nodes, config["slurm"], planned_minutes(nodes[0].cpus))


def stop_where_nodes_are_not_here():
    """A local executor would measure this host under the nodes' names."""
    here = discover.short(socket.gethostname())
    elsewhere = [
        node.node for node in NODES.values() if node.measure and node.host != here
    ]
    together = config["launch"] in campaigns.TOGETHER
    if (
        elsewhere
        and not together
        and workflow.executor_plugin.common_settings.local_exec
    ):
        raise WorkflowError(
            f"{CAMPAIGN}/nodes.tsv: {elsewhere[0]} is not this host, and the executor is local; "
            "run `snakemake --workflow-profile profiles/slurm`, or set `launch`"
        )


# An impossible time limit or deadline is reported before anything starts.
try:
    for sweep in SWEEPS if SLURM else []:
        sweep_options(sweep) if SWEEP else job_options(SWEEPS[sweep][0])
except NodeprintError as error:
    raise WorkflowError(f"{CONFIG}: {error}")
