# What the rules ask of Slurm, where `launch: slurm` measures.
import math

# Only steps of srun follow --cpu-freq (man sbatch). Since 22.05 srun does not inherit the number of CPUs.
STEP = (
    "srun --ntasks=1 --cpus-per-task=$SLURM_CPUS_ON_NODE --mpi=none --cpu-bind=none "
    f"--cpu-freq={SETTINGS.slurm.cpu_freq} "
    if SLURM and SETTINGS.slurm.cpu_freq
    else ""
)


@cache
def planned_minutes(cpus, cores):
    """Time limit of a job on a node of so many CPUs on so many cores."""
    return plans.job_minutes(
        SETTINGS, configuration.plan(SETTINGS), cpus, cores, KERNELS
    )


def sbatch_options(wildcards):
    """What the executor submits a node's job with."""
    node = sheet()[wildcards.node]
    try:
        minutes = planned_minutes(node.cpus, node.cores)
        return shlex.join(slurm.sbatch_words(node, SETTINGS.slurm, minutes))
    except NodeprintError as error:
        raise WorkflowError(f"{CONFIG}: {error}")


def slurm_name(wildcards):
    """The job's name in Slurm: by it and its node a later call finds it."""
    return f"nodeprint-{(CAMPAIGN / 'id').read_text().strip()}-{wildcards.job}"


def slurm_resources():
    """What the executor asks of a job (snakemake_executor_plugin_nodeprint)."""
    keys = SETTINGS.slurm
    numbers = {
        "unavailable_s": 60 * keys.unavailable_minutes,
        "late_s": keys.late_seconds,
        "silence_s": 3600 * keys.deadline_hours,
        "at_a_time": keys.jobs_at_a_time,
        "poll_s": keys.poll_seconds,
    }
    # Snakemake takes whole numbers and words alone
    words = {
        "sbatch": sbatch_options,
        "slurm_name": slurm_name,
        "per_second": f"{keys.submissions_per_second:g}",
    }
    return (
        words | {key: round(value) for key, value in numbers.items()} if SLURM else {}
    )


def fabric_minutes(wildcards):
    """Time limit of a run of LinkTest over all nodes: as planned, twice, and five minutes."""
    if SETTINGS.slurm.minutes:
        return SETTINGS.slurm.minutes
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
