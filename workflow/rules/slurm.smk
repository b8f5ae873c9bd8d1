# What a job of Snakemake's Slurm executor asks for. Used where the sheet comes from Slurm; see config/README.md, `slurm`.
import math
import socket
from functools import cache

from nodeprint.discover import plans, slurm

SLURM = config["launch"] == "slurm" or any(node.partition for node in NODES.values())


@cache
def planned_minutes(cpus, cores):
    """Time limit of a job on a node of so many CPUs on so many cores."""
    try:
        plan = configuration.plan(config)
        return plans.job_minutes(config, plan, cpus, cores, Path("kernels/build"))
    except NodeprintError as error:
        raise WorkflowError(f"{CONFIG}: {error}")


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


def minutes_of(node):
    """Time limit of the job of one node."""
    return planned_minutes(node.cpus, node.cores)


def job_options(node):
    """Options of sbatch for the job of one node."""
    return slurm.job_options(node, config["slurm"], minutes_of(node))


def slurm_resources():
    """Resources of `measure`. cpus_per_task and mem_mb leave CPUs and memory to --exclusive: all of them."""
    if not SLURM:
        return {}
    names = {"slurm_account": "account", "qos": "qos"}
    return {
        "slurm_partition": lambda wildcards: NODES[wildcards.node].partition,
        "runtime": lambda wildcards: minutes_of(NODES[wildcards.node]),
        "slurm_extra": lambda wildcards: job_options(NODES[wildcards.node]),
        "cpus_per_task": -1,
        "mem_mb": 0,
    } | {
        resource: config["slurm"][key]
        for resource, key in names.items()
        if config["slurm"][key]
    }


def stop_where_nodes_are_not_here():
    """A local executor would measure this host under the nodes' names."""
    here = discover.short(socket.gethostname())
    elsewhere = [
        node.node for node in NODES.values() if node.measure and node.host != here
    ]
    if elsewhere and workflow.local_exec and not together():
        raise WorkflowError(
            f"{CAMPAIGN}/nodes.tsv: {elsewhere[0]} is not this host, and the executor is local; "
            "run `snakemake --workflow-profile profiles/slurm`, or set `launch`"
        )


def guard_the_slurm_executor():
    """Snakemake's Slurm executor must neither lose a job nor wait for one that Slurm forgot (launch/executor.py)."""
    if workflow.local_exec or type(workflow.executor_settings).__module__ != (
        "snakemake_executor_plugin_slurm"
    ):
        return
    sys.path.insert(0, str(LAUNCH))
    import executor
    import snakemake_executor_plugin_slurm

    executor.guard(snakemake_executor_plugin_slurm.Executor)
    try:
        slurm.check_memory(workflow.executor_settings.status_command == "sacct")
    except NodeprintError as error:
        raise WorkflowError(str(error))


# An impossible time limit or deadline is reported before anything starts.
try:
    for node in {node.cpus: node for node in NODES.values()}.values() if SLURM else []:
        job_options(node)
except NodeprintError as error:
    raise WorkflowError(f"{CONFIG}: {error}")
