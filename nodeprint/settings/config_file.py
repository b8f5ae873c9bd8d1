"""config/config.yaml as types: every key with its meaning, default and range, of which its schema and the tables of
config/README.md are made (docs/hooks.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

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

#: A node has at most three jobs that start by themselves.
MOST_JOBS = 3


@dataclass(frozen=True)
class Site:
    """What belongs to the site: its set-up of a node, and texts of its reports."""

    setup: Annotated[
        OptionalPath,
        key(
            "a file that is sourced on the node before it is measured: modules, Spack, EasyBuild. Before "
            "`linktest-fabric` it is sourced on the login node, if it is there, and the ranks have its "
            "environment. It runs with the rights of who measures: whoever may write it runs what they like there"
        ),
    ] = ""
    logo: Annotated[
        str,
        key(
            "a PNG or SVG file for the first page of the report; after a change of these keys or of the file the "
            "next call makes the pages again, without measuring or judging"
        ),
    ] = ""
    contact: Annotated[str, key("whom the vendor may ask about a node's page")] = ""
    contract: Annotated[
        str, key("what was agreed with the vendor, such as a contract's number and its clause, for a node's page")
    ] = ""
    customer: Annotated[
        str,
        key(
            "who accepts, on the acceptance protocol (`nodeprint protocol`); a line to be filled in by hand where "
            "it is empty, as for the next three"
        ),
    ] = ""
    supplier: Annotated[str, key("who delivered")] = ""
    system: Annotated[str, key("what is accepted")] = ""
    place: Annotated[str, key("where it stands")] = ""


@dataclass(frozen=True)
class Mpi:
    """How LinkTest is started."""

    launcher: Annotated[
        Command,
        key(
            "what starts LinkTest's ranks on a node; empty: `mpirun`. `{ranks}` stands for their number, e.g. "
            "`srun --mpi=pmix --overlap --cpu-bind=none -n {ranks}`. A node where it or mpi4py is not installed "
            "is left out of LinkTest, and named"
        ),
    ] = ""
    fabric_launcher: Annotated[
        Command,
        key(
            "what starts the ranks of `linktest-fabric`, on the login node; empty: `srun --mpi=pmix` in a job of "
            "its own. `{partition}`, `{nodes}` (names separated by commas), `{count}`, `{ranks}` and `{per_node}` "
            "are filled in"
        ),
    ] = ""
    ranks_per_node: Annotated[int, key("ranks of `linktest-fabric` on each node", ge=1)] = 1


@dataclass(frozen=True)
class Slurm:
    """With `launch: slurm`: which nodes, and how their jobs are submitted and followed."""

    partition: Annotated[
        Names,
        key(
            "with `launch: slurm`: the partition, or several separated by commas; empty: all. A node of several "
            "is measured in the default one, else in the first by name"
        ),
    ] = ""
    nodes: Annotated[
        str,
        written(r"^([A-Za-z0-9_][A-Za-z0-9_.,\[\]-]*)?$", "names as Slurm lists them, such as cn[001-400],cn512"),
        key("only these nodes, as Slurm writes lists: `cn[001-400],cn512`"),
    ] = ""
    racks: Annotated[Names, key("only nodes of these racks, separated by commas")] = ""
    rack_pattern: Annotated[
        str,
        key(
            "a regular expression with one group that is the rack, tried at a node's name, then at its features: "
            '`"(r[0-9]+)n[0-9]+"`; racks are in the report'
        ),
    ] = ""
    switches: Annotated[
        Names, key("only nodes of these leaf switches (`scontrol show topology`), separated by commas")
    ] = ""
    feature: Annotated[
        str,
        written(r"^[A-Za-z0-9_.:=-]*$", "a name of letters, digits and `_ . : = -`"),
        key("only nodes that have this active feature"),
    ] = ""
    reservation: Annotated[
        Name, key("only nodes of this reservation, and jobs run in it: nodes in maintenance are measured this way")
    ] = ""
    account: Annotated[Name, key("account of the jobs; empty: Slurm's default")] = ""
    qos: Annotated[Name, key("QOS of the jobs")] = ""
    wake: Annotated[bool, key("`true`: measure nodes that are powered down; their job switches them on")] = False
    deadline_hours: Annotated[
        float, key("a job that has not started this long after its submission is cancelled", gt=0, le=8760)
    ] = 24.0
    minutes: Annotated[int, key("time limit of a node's job; 0: derived from what the kernels plan", ge=0)] = 0
    cpu_freq: Annotated[
        str,
        written(r"^[A-Za-z0-9:-]*$", "as srun's --cpu-freq takes it, such as performance or 2400000"),
        key(
            "a frequency or governor as `srun --cpu-freq` takes it, such as `performance`; node-run is then "
            "started by srun, as batch scripts do not follow it"
        ),
    ] = ""
    jobs_at_a_time: Annotated[
        int,
        key(
            "jobs that this campaign has in the queue at most; the others follow as these end. Where the site "
            "allows a user fewer, the call notices",
            ge=1,
        ),
    ] = 500
    submissions_per_second: Annotated[
        float,
        key("calls of sbatch in a second at most; the controller answers others, too", gt=0, le=100),
    ] = 5.0
    poll_seconds: Annotated[
        float,
        key(
            "squeue is asked for the campaign's jobs this often, and a second later for each hundred that are in the "
            "queue; outcomes are seen in the folder, without asking",
            ge=1,
        ),
    ] = 20.0
    unavailable_minutes: Annotated[
        float,
        key(
            "a job that has waited this long for what does not come by itself (its node was taken out of service, "
            "or its partition's time limit is too short) is cancelled, and the node is reported with Slurm's "
            "reason",
            ge=0,
        ),
    ] = 30.0
    late_seconds: Annotated[
        float,
        key(
            "how late a file that a node wrote may be seen on the login node (NFS caches attributes for up to 60 "
            "s); a job that ended in order has no outcome only after this time",
            ge=0,
        ),
    ] = 120.0
    extra: Annotated[
        str,
        written(r"^[A-Za-z0-9_.,:=/+%@ -]*$", "options of letters, digits, blanks and `_ . , : = / + % @ -`"),
        key("more options of sbatch, e.g. `--licenses=x`; CPUs, memory and node list are nodeprint's"),
    ] = ""


@dataclass(frozen=True)
class Config:
    """A configuration, checked, with every default."""

    campaign: Annotated[
        str,
        written(r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", "letters, digits, `_`, `-` and `.`, beginning with no `-` or `.`"),
        key("name of the campaign; all of it is in `<results>/<campaign>/`"),
    ] = "main"
    results: Annotated[
        RequiredPath, key("folder of the campaigns; on a cluster one that every node and this host see")
    ] = "results"
    launch: Annotated[
        Literal["here", "slurm", "ansible"],
        key(
            "`here`: measure this machine. `slurm`: one small job per node of a Slurm cluster. `ansible`: the "
            "hosts of `inventory`, without a scheduler (`docs/how-to/ansible.md`)"
        ),
    ] = "here"
    inventory: Annotated[
        Inventory,
        key(
            "with `launch: ansible`: an inventory, whose group `nodes` is measured, or a list of hosts, such as "
            "`cn[01-04],gpu7` (a single host ends with a comma: `cn01,`)"
        ),
    ] = ""
    serials: Annotated[
        Literal["no", "hash", "yes"],
        key(
            "serial numbers of node, board and memory modules, and MAC addresses, in the surveys: `no` leaves "
            "them out, `hash` keeps 12 digits of a SHA-256 of each serial number, so that a swapped module is "
            "noticed, `yes` keeps them, for a page that goes to the vendor. Passwords on the kernel's command "
            "line are always left out"
        ),
    ] = "no"
    preset: Annotated[
        Literal["quick", "standard", "thorough", "test"],
        key(
            "time on a node of 2 x 64 cores: `quick` at most 2 minutes, `standard` 10, `thorough` 60; `test` "
            "takes seconds and shows only that everything works"
        ),
    ] = "standard"
    runs: Annotated[
        int,
        key(
            "runs of each measurement in a job, each with a new process, pages, lines and order. Runs are the "
            "unit of evidence: more runs find smaller effects. Of `coherence-cas`, which takes seconds where "
            "others take minutes, presets `standard` and `thorough` make three times as many "
            "(`kernels/*/measurements.yaml`)",
            ge=1,
            le=1000,
        ),
    ] = 2
    measure: Annotated[
        tuple[str, ...],
        key(
            "measurements to take, of those in `kernels/*/measurements.yaml`; left out: those that the preset "
            "has by default (`by_default` there). Pairs of CPUs are measured also by `coherence-faa`, "
            "`coherence-flag1` and `coherence-flag2`; one-way latency, states of lines, messages and contention by "
            "`coherence-oneway`, `-state`, `-payload` and `-contend`. A preset has no time for some (`null` there) "
            "and leaves them out",
            min_length=1,
        ),
    ] = ()
    arguments: Annotated[
        Mapping[str, str],
        key(
            "more arguments for the kernel of a measurement, e.g. `coherence-cas: --passes 5`; they come after "
            "the preset's and override them. `kernels/build/<kernel> --help` lists them. The kernels check them "
            "before anything starts; files are named by their full path"
        ),
    ] = field(default_factory=dict)
    acceptance: Annotated[
        RequiredPath,
        key(
            "what the site accepts: tolerances, limits of a contract, known findings; a path from the folder in which "
            "`make run` is called. After a change of the file the campaign is judged and reported again without "
            "measuring. The campaign keeps a copy with all defaults (`results/<campaign>/acceptance.yaml`); "
            "verdict.json and the report have its SHA-256"
        ),
    ] = "config/acceptance.yaml"
    recheck: Annotated[
        bool,
        key(
            "if several nodes are measured: measure SUSPECT, INTERMITTENT and INVALID nodes again as a second job, "
            "with control nodes at random (three at least, six of a configuration in all), in at most two rounds. A "
            "call whose second jobs cannot be submitted ends with 1. A finding of one job makes a node SUSPECT, of two "
            "jobs DEVIATES, of some of its jobs INTERMITTENT. Without second jobs `--fail-on found` counts what one "
            "job shows"
        ),
    ] = True
    recheck_minutes: Annotated[
        float,
        key(
            "minutes between the first job and the second, at least; a job that follows sooner is not "
            "independent, as the cause of a disturbance may persist",
            ge=0,
            le=10080,
        ),
    ] = 10.0
    site: Site = Site()
    mpi: Mpi = Mpi()
    slurm: Slurm = Slurm()
