"""config/config.yaml as types: every key with its meaning, default and range.

Its schema and the tables of config/README.md are made from them (docs/hooks.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from nodeprint import reading
from nodeprint.settings import checked_yaml
from nodeprint.settings.keys import key, written

Name = Annotated[str, written(r"^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$", "a name of letters, digits, `_`, `-` and `.`")]
Names = Annotated[
    str,
    written(r"^([A-Za-z0-9_][A-Za-z0-9_.,-]*)?$", "names separated by commas, of letters, digits, `_`, `-` and `.`"),
]
OptionalPath = Annotated[str, written(r"^[A-Za-z0-9_./+@-]*$", "a path of letters, digits and `_ . / + @ -`")]
RequiredPath = Annotated[str, written(r"^[A-Za-z0-9_./+@-]+$", "a path of letters, digits and `_ . / + @ -`")]
Inventory = Annotated[
    str,
    written(
        r"^[A-Za-z0-9_./+@,\[\]-]*$",
        "a path of letters, digits and `_ . / + @ -`, or a list of hosts such as cn[01-04],gpu7",
    ),
]
Command = Annotated[
    str,
    written(r"^[A-Za-z0-9_./:=,+@{} -]*$", "a command of letters, digits, blanks and `_ . / : = , + @ { } -`"),
]

#: The kernel that runs a command of the site.
COMMAND = "command"
#: A node has at most three jobs that start by themselves.
MOST_JOBS = 3
#: Minutes that a job of a preset takes on a node of 2x64 cores, by the plans of all its measurements for the longest
#: layout. A test compares them with the plans, and with all texts that state them.
PRESET_MINUTES: Mapping[str, float] = {"quick": 1.4, "standard": 11, "thorough": 51}


@dataclass(frozen=True)
class Site:
    """Site settings: set-up of nodes, and texts of reports."""

    setup: Annotated[
        OptionalPath,
        key("a file that is sourced on the node before it is measured, such as for modules, Spack or EasyBuild"),
    ] = ""
    logo: Annotated[
        str,
        key("a PNG or SVG file for the first page of the report"),
    ] = ""
    contact: Annotated[str, key("the vendor's contact for questions about a node report")] = ""
    contract: Annotated[str, key("the contract's number and clause, for a node report")] = ""
    customer: Annotated[
        str,
        key("the accepting party on the acceptance report; if empty, a line to fill in by hand"),
    ] = ""
    supplier: Annotated[
        str, key("the delivering party on the acceptance report; if empty, a line to fill in by hand")
    ] = ""
    system: Annotated[str, key("the accepted system on the acceptance report; if empty, a line to fill in by hand")] = (
        ""
    )
    place: Annotated[
        str, key("the site of the system on the acceptance report; if empty, a line to fill in by hand")
    ] = ""


@dataclass(frozen=True)
class Mpi:
    """Start of LinkTest."""

    launcher: Annotated[
        Command,
        key("the command that starts LinkTest's ranks (`{ranks}`) on a node; empty: `mpirun`"),
    ] = ""
    fabric_launcher: Annotated[
        Command,
        key(
            "the command that starts the ranks of `linktest-fabric` on the login node; empty: `srun "
            "--mpi=pmix` in its own job"
        ),
    ] = ""
    ranks_per_node: Annotated[int, key("ranks of `linktest-fabric` on each node", ge=1)] = 1


@dataclass(frozen=True)
class Jobs:
    """With `launch: gridengine` or another scheduler: selection of nodes, and submission and polling of their jobs."""

    partition: Annotated[
        Names,
        key("the partition (a queue elsewhere), or several separated by commas; empty: all"),
    ] = ""
    nodes: Annotated[
        str,
        written(r"^([A-Za-z0-9_][A-Za-z0-9_.,\[\]-]*)?$", "names as Slurm lists them, such as cn[001-400],cn512"),
        key("only these nodes, in Slurm's list syntax"),
    ] = ""
    deadline_hours: Annotated[
        float, key("cancel a job that has not started this many hours after its submission", gt=0, le=8760)
    ] = 24.0
    minutes: Annotated[int, key("time limit of a node's job; 0: derived from the plans of the kernels", ge=0)] = 0
    jobs_at_a_time: Annotated[
        int,
        key(
            "maximum number of this campaign's jobs in the queue",
            ge=1,
        ),
    ] = 500
    submissions_per_second: Annotated[
        float,
        key("maximum rate of submissions", gt=0, le=100),
    ] = 5.0
    poll_seconds: Annotated[
        float,
        key(
            "interval between queries of the queue, plus a second per hundred queued jobs",
            ge=1,
        ),
    ] = 20.0
    unavailable_minutes: Annotated[
        float,
        key(
            "cancel a job that has waited this long for an unavailable node or a longer time limit",
            ge=0,
        ),
    ] = 30.0
    late_seconds: Annotated[
        float,
        key(
            "maximum delay until a node's file is visible on the login node (NFS caches attributes for up to 60 s)",
            ge=0,
        ),
    ] = 120.0
    extra: Annotated[
        str,
        written(r"^[A-Za-z0-9_.,:=/+%@ -]*$", "options of letters, digits, blanks and `_ . , : = / + % @ -`"),
        key("more options of the submit command, such as `--licenses=x`; nodeprint sets CPUs, memory and node"),
    ] = ""


@dataclass(frozen=True)
class Slurm(Jobs):
    """With `launch: slurm`: selection of nodes, and submission and polling of their jobs."""

    racks: Annotated[Names, key("only nodes of these racks, separated by commas")] = ""
    rack_pattern: Annotated[
        str,
        key('a regular expression with one group, the rack, for node names and features, such as `"(r[0-9]+)n[0-9]+"`'),
    ] = ""
    switches: Annotated[
        Names, key("only nodes of these leaf switches (`scontrol show topology`), separated by commas")
    ] = ""
    feature: Annotated[
        str,
        written(r"^[A-Za-z0-9_.:=-]*$", "a name of letters, digits and `_ . : = -`"),
        key("only nodes with this active feature"),
    ] = ""
    reservation: Annotated[Name, key("only nodes of this reservation, and jobs run in it, such as for maintenance")] = (
        ""
    )
    account: Annotated[Name, key("account of the jobs; empty: Slurm's default")] = ""
    qos: Annotated[Name, key("QOS of the jobs; empty: Slurm's default")] = ""
    wake: Annotated[bool, key("`true`: also measure powered-down nodes, which their jobs power up")] = False
    cpu_freq: Annotated[
        str,
        written(r"^[A-Za-z0-9:-]*$", "as srun's --cpu-freq takes it, such as performance or 2400000"),
        key("a frequency or governor for `srun --cpu-freq`, which then starts node-run"),
    ] = ""


@dataclass(frozen=True)
class SiteMeasurement:
    """A command of the site that is measured on each node (docs/how-to/measure-your-own-command.md)."""

    name: Annotated[
        str,
        written(r"^[A-Za-z0-9_][A-Za-z0-9_-]*$", "a name of letters, digits, `_` and `-`"),
        key("its name; a metric of its output is called `<name>/<metric>`"),
    ]
    command: Annotated[
        str,
        key("the command, which `sh -c` runs on the node as the user of the job, in an empty directory", min_length=1),
    ]
    reader: Annotated[
        str, key("the reader of its output, such as `stream`; an unknown name is an error that lists all", min_length=1)
    ]
    better: Annotated[
        Literal["by unit", "higher", "lower"],
        key("the better direction of its metrics; `by unit`: `lower` for a time, else `higher`"),
    ] = "by unit"
    tolerance: Annotated[
        float, key("tolerance of its metrics in percent; `metrics` of acceptance.yaml overrides it", gt=0, le=100)
    ] = 5.0
    time_limit: Annotated[int, key("the command is stopped after so many seconds", ge=1, le=86400)] = 600


@dataclass(frozen=True)
class Config:
    """A configuration, checked, with every default."""

    campaign: Annotated[
        str,
        written(r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", "letters, digits, `_`, `-` and `.`, beginning with no `-` or `.`"),
        key("name of the campaign, which is stored in `<results>/<campaign>/`"),
    ] = "main"
    results: Annotated[
        RequiredPath, key("directory of the campaigns; on a cluster, all nodes and this host must share it")
    ] = "results"
    launch: Annotated[
        str,
        written(r"^[A-Za-z0-9_-]+$", "`here`, `slurm`, `ansible`, `gridengine`, or a launcher of another package"),
        key(
            "`here` measures this machine, `slurm` and `gridengine` run one job per node, `ansible` uses the hosts of "
            "`inventory` without a scheduler. Another package can add a launcher: docs/how-to/add-a-launcher.md"
        ),
    ] = "here"
    inventory: Annotated[
        Inventory,
        key(
            "with `launch: ansible`: an inventory with a group `nodes`, or a list of hosts, such as "
            "`cn[01-04],gpu7` or `cn01,`"
        ),
    ] = ""
    serials: Annotated[
        Literal["no", "hash", "yes"],
        key(
            "serial numbers and MAC addresses in surveys: `no` omits, `hash` hashes and `yes` keeps them for the vendor"
        ),
    ] = "no"
    preset: Annotated[
        Literal["quick", "standard", "thorough", "test"],
        key(
            "time on a node of 2x64 cores: `quick` {quick} minutes, `standard` {standard}, `thorough` {thorough}; "
            "`test`, for functional tests, seconds".format(**PRESET_MINUTES)
        ),
    ] = "standard"
    runs: Annotated[
        int,
        key(
            "runs of each measurement in a job, each with a new process, pages, lines and order",
            ge=1,
            le=1000,
        ),
    ] = 2
    measure: Annotated[
        tuple[str, ...],
        key(
            "measurements of `kernels/*/measurements.yaml` and of `measurements`; if omitted, those of the preset",
            min_length=1,
        ),
    ] = ()
    measurements: Annotated[
        tuple[SiteMeasurement, ...],
        key(
            "commands of the site that are also measured on each node; or the path or package of this list "
            "(docs/how-to/measure-your-own-command.md)"
        ),
    ] = ()
    arguments: Annotated[
        Mapping[str, str],
        key("more arguments for the kernel of a measurement, such as `coherence-cas: --passes 5`"),
    ] = field(default_factory=dict)
    acceptance: Annotated[
        RequiredPath,
        key("file with the site's tolerances, contract limits and waivers, relative to the directory of `make run`"),
    ] = "config/acceptance.yaml"
    recheck: Annotated[
        bool,
        key("remeasure SUSPECT, INTERMITTENT, SPLIT and INVALID nodes in a second job, with control nodes"),
    ] = True
    recheck_minutes: Annotated[
        float,
        key(
            "minimum time between the first job and the second",
            ge=0,
            le=10080,
        ),
    ] = 10.0
    site: Site = Site()
    mpi: Mpi = Mpi()
    slurm: Slurm = Slurm()
    scheduler: Jobs = Jobs()


def site_measurements(campaign: Path) -> tuple[SiteMeasurement, ...]:
    """The site's measurements of a campaign, by its directory; none where its plan has no command."""
    plan = campaign / "plan.tsv"
    if not plan.exists() or f"\t{COMMAND}\t" not in reading.required(plan):
        return ()
    path = campaign / "config.yaml"
    return checked_yaml.typed(checked_yaml.read(path), Config, path).measurements
