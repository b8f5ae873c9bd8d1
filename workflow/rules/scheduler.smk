# What the rules ask of a scheduler, where the launcher has one.
import math

STEP = LAUNCHER.step(SETTINGS) if isinstance(LAUNCHER, Scheduler) else ""


@cache
def planned_minutes(cpus, cores):
    """Time limit of a job on a node of so many CPUs on so many cores."""
    return plans.job_minutes(
        SETTINGS, configuration.plan(SETTINGS), cpus, cores, KERNELS
    )


def submit_options(wildcards):
    """What the executor submits a node's job with."""
    node = sheet()[wildcards.node]
    try:
        minutes = planned_minutes(node.cpus, node.cores)
        return shlex.join(LAUNCHER.options(SETTINGS, node, minutes))
    except NodeprintError as error:
        raise WorkflowError(f"{CONFIG}: {error}")


def job_resources():
    """What the executor asks of a job (snakemake_executor_plugin_nodeprint)."""
    if not isinstance(LAUNCHER, Scheduler):
        return {}
    keys = LAUNCHER.jobs(SETTINGS)
    numbers = {
        "unavailable_s": 60 * keys.unavailable_minutes,
        "late_s": keys.late_seconds,
        "silence_s": 3600 * keys.deadline_hours,
        "at_a_time": keys.jobs_at_a_time,
        "poll_s": keys.poll_seconds,
    }
    # Snakemake takes whole numbers and words alone
    words = {
        "submit_options": submit_options,
        "job_name": lambda wildcards: job_name(CAMPAIGN, wildcards.job),
        "per_second": f"{keys.submissions_per_second:g}",
    }
    return words | {key: round(value) for key, value in numbers.items()}


def fabric_minutes(wildcards):
    """Time limit of a run of LinkTest over all nodes: as planned, twice, and five minutes."""
    if minutes := LAUNCHER.jobs(SETTINGS).minutes:
        return minutes
    names = ",".join(f"n{i}" for i in range(max(len(sheet()), 2)))
    ranks = str(SETTINGS.mpi.ranks_per_node)
    times = (
        plans.seconds(
            KERNELS,
            "linktest",
            [*arguments.split(), "--nodes", names, "--per-node", ranks],
        )
        for _, arguments in configuration.fabric_plan(SETTINGS)
    )
    return 5 + math.ceil(2 * max(times, default=0) / 60)
