"""Slurm's nodes: the sample sheet from the text of sinfo and scontrol (versions 20.11 to 25).

Their text, not `--json`: its schema moves between versions. Only functions that query Slurm do I/O.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nodeprint import reading
from nodeprint.campaign import node_lists
from nodeprint.campaign.node_sheet import Node, checked_name, short
from nodeprint.errors import NodeprintError, NoServiceError, printable
from nodeprint.settings.config_file import Slurm
from nodeprint.settings.texts import say

#: What to do about a partition that is not there.
_PARTITIONS = "`sinfo -s` lists the partitions; call, for example, `make run LAUNCH=slurm PARTITION=x` with one of them"
#: sinfo's format: a line for each node and partition; the reason is free text, so it comes last.
SINFO_FORMAT = "%N|%P|%T|%E"

#: `scontrol -o` separates KEY=VALUE by one blank or more, and values (OS=) hold blanks too.
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z_]*)=")
#: The free text of a node's line, last in it: what an administrator wrote must not pass for a field.
_FREE_TEXT = re.compile(r"\s(?:Reason|Comment|Extra)=")
#: State suffixes, man sinfo, "NODE STATE CODES": * not responding, ~ powered off, # powering up, ! and % (about to be)
#: powering down, $ maintenance, @ and ^ reboot pending and issued, - planned for a job, + other flags.
_STATE = re.compile(r"([a-z_]+)([*~#!%$@^+-]*)")

#: States in which Slurm starts a job on the node, now or when its jobs end.
_IN_SERVICE = frozenset(
    {"idle", "alloc", "allocated", "mix", "mixed", "comp", "completing", "planned", "plnd", "blocked"}
)
_RESERVED = frozenset({"maint", "resv", "reserved"})
_ASLEEP = frozenset({"powered_down", "powering_down", "power_down", "pow_dn"})
_WAKING = frozenset({"powering_up", "power_up", "pow_up"})
_SECONDS = 60.0
#: A controller that is away is asked again every few seconds, so long.
_PATIENCE_S, _PAUSE_S = 600.0, 3.0
#: After its start a controller may not have heard of a node for so long.
_STARTING_S = 60.0
#: What begins a message of Slurm's commands: the command and how grave it is.
_PREFIX = re.compile(r"^(?:\w+: )?(?:fatal|error): ")
#: Messages of Slurm's commands on a machine that belongs to no cluster, though they are installed.
_NO_CLUSTER = re.compile(r"establish a configuration source|process configuration file", re.IGNORECASE)
#: What Slurm's commands say where the controller did not answer; anything else is its answer.
NO_ANSWER = re.compile(
    r"unable to contact|connection refused|timed out|Zero Bytes|standby mode|temporarily unable|Unexpected message",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Listed:
    """A node in one of its partitions, as sinfo lists it; `reason` is empty where Slurm has none."""

    node: str
    partition: str
    default: bool
    state: str
    reason: str


@dataclass(frozen=True)
class SlurmNode:
    """A node as scontrol lists it: host name, CPUs of a whole-node job, active features, specialized CPUs, CPUs per
    core.

    Numbers are 0 if unknown. Slurm keeps specialized CPUs for the system (core specialization).
    """

    host: str
    cpus: int
    features: frozenset[str]
    kept: int = 0
    threads: int = 0


def find(slurm: Slurm) -> list[Node]:
    """The sheet of the nodes that `slurm`, the configuration's section, selects.

    Raises NodeprintError where Slurm does not answer, or nothing is selected.
    """
    only = ["-p", slurm.partition] if slurm.partition else []
    listed = _listed(only)
    partitions = {row.partition for row in listed}
    if absent := [name for name in slurm.partition.split(",") if name and name not in partitions]:
        problem = f"Slurm has no partition {absent[0]}, or no node in it"
        raise NodeprintError(problem, key="slurm.partition", advice=_PARTITIONS)
    facts = parse_nodes(_ask("scontrol", "-o", "show", "node"))
    ours: frozenset[str] = frozenset()
    if slurm.reservation:
        answer = _ask("scontrol", "-o", "show", "reservation", slurm.reservation, key="slurm.reservation")
        ours = frozenset(node_lists.expand(parse_reservation(answer), "slurm.reservation"))
    asked = node_lists.expand(slurm.nodes, "slurm.nodes") if slurm.nodes else None
    nodes = with_racks(sheet(listed, facts, ours=ours, slurm=slurm, asked=asked), facts, slurm.rack_pattern)
    try:
        listed_switches = parse_topology(_ask("scontrol", "show", "topology"))
        switches = {switch: node_lists.expand(names, "topology.conf") for switch, names in listed_switches.items()}
    except NodeprintError:
        switches = {}  # a cluster without topology plugin
    nodes = selected(with_switches(nodes, switches), slurm)
    rules = _ask("scontrol", "-o", "show", "partition")
    notices = confined(nodes, facts, parse_partitions(rules), slurm.extra)
    for notice in [*notices, *shared(nodes, parse_sharing(rules), slurm.extra)]:
        print(f"nodeprint: {notice}", file=sys.stderr)
    return nodes


def _listed(only: Sequence[str]) -> list[Listed]:
    """The nodes of sinfo. A controller that has just started reports nodes as unknown, and is asked again."""
    until = time.monotonic() + _STARTING_S
    while True:
        rows = parse_sinfo(_ask("sinfo", "-h", "-N", "-o", SINFO_FORMAT, *only))
        if not any(row.state.startswith("unknown") for row in rows) or time.monotonic() > until:
            return rows
        time.sleep(_PAUSE_S)


def parse_sinfo(text: str) -> list[Listed]:
    """The lines of `sinfo -h -N -o SINFO_FORMAT`. A line of another shape is the rest of a reason with a line break."""
    listed: list[Listed] = []
    for line in text.splitlines():
        cells = line.split("|", 3)
        if len(cells) == 4 and _STATE.fullmatch(cells[2].strip().lower()):
            node, partition, state, reason = (cell.strip() for cell in cells)
            reason = "" if reason.lower() in ("none", "") else printable(reason)
            listed.append(
                Listed(
                    checked_name(node, "sinfo"), partition.rstrip("*"), partition.endswith("*"), state.lower(), reason
                )
            )
    return listed


def parse_nodes(text: str) -> dict[str, SlurmNode]:
    """The lines of `scontrol -o show node`, by node name."""
    nodes = {}
    for line in text.splitlines():
        fields = fields_of(_FREE_TEXT.split(line, maxsplit=1)[0])
        name = fields.get("NodeName", "")
        if not name or name in nodes:
            continue
        host = checked_name(short(fields.get("NodeHostName", "") or name), "scontrol")
        features = fields.get("ActiveFeatures", fields.get("AvailableFeatures", ""))
        cpus, active = effective_cpus(fields), frozenset(features.split(",")) - {"(null)", ""}
        total, cores = _number(fields.get("CPUTot", "")), _cores(fields)
        kept = max(total - cpus, 0) if cpus else 0
        nodes[name] = SlurmNode(host, cpus, active, kept, total // cores if cores else 0)
    return nodes


def _cores(fields: Mapping[str, str]) -> int:
    """The cores of a node; 0 where it is not said."""
    return _number(fields.get("Sockets", "")) * _number(fields.get("CoresPerSocket", ""))


def effective_cpus(fields: Mapping[str, str]) -> int:
    """CPUs that a job with the whole node gets: those not specialized for the system (man slurm.conf, CoreSpecCount,
    CpuSpecList). Slurm 22.05 and newer say it themselves. 0 where nothing is said."""
    if effective := _number(fields.get("CPUEfctv", "")):
        return effective
    specialized = _number(fields.get("CoreSpecCount", "")) * (_number(fields.get("ThreadsPerCore", "")) or 1)
    if not specialized:
        specialized = _length(fields.get("CPUSpecList", ""))
    return max(_number(fields.get("CPUTot", "")) - specialized, 0)


def parse_reservation(text: str) -> str:
    """The node-list expression of a reservation, from `scontrol -o show reservation NAME`; empty where it has none."""
    fields = fields_of(text)
    return "" if fields.get("Nodes") in ("(null)", None) else fields["Nodes"]


def parse_topology(text: str) -> dict[str, str]:
    """Leaf switches and their node-list expressions, from `scontrol show topology` (topology/tree)."""
    switches = {}
    for line in text.splitlines():
        fields = fields_of(line)
        if fields.get("Level") == "0" and fields.get("SwitchName") and fields.get("Nodes", "(null)") != "(null)":
            switches[fields["SwitchName"]] = fields["Nodes"]
    return switches


def why_not(state: str, ours: bool, wake: bool) -> str:
    """Why a node in sinfo's `state` is not measured; empty where it is.

    `ours`: it is in the reservation of this campaign. `wake`: powered-down nodes may be switched on.
    """
    match = _STATE.fullmatch(state)
    base, flags = (match[1], set(match[2])) if match else ("", set())
    reasons = {
        "silent": "*" in flags,
        "asleep": not wake and (base in _ASLEEP or bool(flags & set("~!%"))),
        "reboots": bool(flags & set("@^")),
        "reserved": (base in _RESERVED or "$" in flags) and not ours,
        "out_of_service": base not in _IN_SERVICE | _RESERVED | _ASLEEP | _WAKING,
    }
    return next((say("slurm", "node", reason) for reason, holds in reasons.items() if holds), "")


def sheet(
    listed: Iterable[Listed],
    facts: Mapping[str, SlurmNode],
    *,
    ours: frozenset[str],
    slurm: Slurm,
    asked: Sequence[str] | None,
) -> list[Node]:
    """The sheet's rows of the selected nodes, in Slurm's order; one row per node.

    A node of several partitions is measured in the default one if it is in it, else in the first by name. `ours` are
    the nodes of the reservation, `asked` those of `slurm.nodes`, None for all. Raises NodeprintError where nothing is
    selected, or a node was asked for that Slurm does not have.
    """
    chosen: dict[str, Listed] = {}
    for row in listed:
        before = chosen.get(row.node)
        if before is None or (not row.default, row.partition) < (not before.default, before.partition):
            chosen[row.node] = row
    if missing := [name for name in asked or [] if name not in chosen]:
        raise NodeprintError(
            f"Slurm has no node {printable(missing[0], 60)}" + (f" in {slurm.partition}" if slurm.partition else ""),
            key="slurm.nodes",
            advice="`sinfo -N` lists the nodes",
        )
    nodes = []
    for name, row in chosen.items():
        fact = facts.get(name, SlurmNode(short(name), 0, frozenset()))
        if (asked is not None and name not in asked) or (slurm.reservation and name not in ours):
            continue
        if slurm.feature and slurm.feature not in fact.features:
            continue
        why = why_not(row.state, name in ours, slurm.wake)
        nodes.append(
            Node(
                node=name,
                host=fact.host,
                partition=row.partition,
                cpus=fact.cpus,
                threads=fact.threads,
                state=row.state,
                reason=why and (row.reason or why),
                measure=not why,
            )
        )
    if not nodes:
        raise NodeprintError(
            "no node of this cluster is selected",
            key="slurm",
            advice="look at partition, nodes, feature and reservation",
        )
    return nodes


def with_switches(nodes: Sequence[Node], switches: Mapping[str, Iterable[str]]) -> list[Node]:
    """The rows with the leaf switch that each node hangs on."""
    switch_of = {name: switch for switch, names in switches.items() for name in names}
    return [replace(node, switch=switch_of.get(node.node, "")) for node in nodes]


def with_racks(nodes: Sequence[Node], facts: Mapping[str, SlurmNode], pattern: str) -> list[Node]:
    """The rows with their racks: the group of `pattern` in the node's name, or else in one of its features."""
    if not pattern:
        return list(nodes)
    expression, rows = re.compile(pattern), []
    for node in nodes:
        texts = (node.node, *sorted(facts[node.node].features if node.node in facts else ()))
        match = next((match for text in texts if (match := expression.fullmatch(text))), None)
        rows.append(replace(node, rack=printable(match[1] or "", 60) if match else ""))
    return rows


def selected(nodes: Sequence[Node], slurm: Slurm) -> list[Node]:
    """The rows of `slurm.racks` and `slurm.switches`. Raises NodeprintError where one of these has no node."""
    remaining = list(nodes)
    for key, column in (("racks", "rack"), ("switches", "switch")):
        asked = [name for name in str(getattr(slurm, key)).split(",") if name]
        names = sorted({str(getattr(node, column)) for node in nodes} - {""})
        if missing := [name for name in asked if name not in names]:
            listed = f"known are {', '.join(names[:20])}" if names else f"no node's {column} is known"
            advice = "set slurm.rack_pattern" if key == "racks" and not names else ""
            raise NodeprintError(f"no node in {column} {missing[0]}; {listed}", key=f"slurm.{key}", advice=advice)
        remaining = [node for node in remaining if not asked or getattr(node, column) in asked]
    if not remaining:
        raise NodeprintError("no node is in both", key="slurm.racks and slurm.switches", advice="leave one empty")
    return remaining


def parse_partitions(text: str) -> dict[str, int]:
    """CPUs of a node that a job may have at most, by partition, from `scontrol -o show partition`; only real limits."""
    rows = (fields_of(line) for line in text.splitlines())
    limits = {row.get("PartitionName", ""): _number(row.get("MaxCPUsPerNode", "")) for row in rows}
    return {name: cpus for name, cpus in limits.items() if name and cpus}


def parse_sharing(text: str) -> dict[str, str]:
    """The partitions that start other jobs beside one which asked for the whole node, by name and how they say so, from
    `scontrol -o show partition`.

    With OverSubscribe=FORCE no job has a node to itself; with other values `--exclusive` holds (man slurm.conf).
    """
    rows = (fields_of(line) for line in text.splitlines())
    said = {row.get("PartitionName", ""): row.get("OverSubscribe", row.get("Shared", "")) for row in rows}
    return {name: f"OverSubscribe={value}" for name, value in said.items() if name and value.startswith("FORCE")}


#: Options of sbatch by which a job gives up the whole node; of several Slurm takes the last.
_SHARES = re.compile(r"(?:^|\s)(--exclusive=(?:user|mcs)|--oversubscribe|--share|-s)(?=\s|$)")


def shared(nodes: Sequence[Node], sharing: Mapping[str, str], extra: str) -> list[str]:
    """Sentences about nodes on which other jobs may run beside a measurement; `sharing` as of `parse_sharing`."""
    names: dict[str, list[str]] = {}
    for node in nodes:
        if node.measure and node.partition in sharing:
            names.setdefault(node.partition, []).append(node.node)
    sentences = [
        say("slurm", "shared", nodes=node_lists.fold(those), partition=name, value=sharing[name])
        for name, those in names.items()
    ]
    if option := _SHARES.search(extra):
        sentences.append(say("slurm", "shared_by_option", option=option[1]))
    return sentences


def confined(nodes: Sequence[Node], facts: Mapping[str, SlurmNode], limits: Mapping[str, int], extra: str) -> list[str]:
    """Sentences about nodes whose jobs do not get every CPU, with the option that gives them, if any."""
    kept: dict[int, list[str]] = {}
    limited: dict[str, list[str]] = {}
    for node in nodes:
        if not node.measure:
            continue
        if node.node in facts and facts[node.node].kept and "--core-spec" not in extra:
            kept.setdefault(facts[node.node].kept, []).append(node.node)
        if 0 < limits.get(node.partition, 0) < node.cpus:
            limited.setdefault(node.partition, []).append(node.node)
    sentences = [
        say("slurm", "kept", nodes=node_lists.fold(names), cpus=f"{count} CPU{'' if count == 1 else 's'}")
        for count, names in kept.items()
    ]
    return sentences + [
        say("slurm", "limited", nodes=node_lists.fold(names), partition=name, cpus=limits[name])
        for name, names in limited.items()
    ]


def fields_of(text: str) -> dict[str, str]:
    """KEY=VALUE pairs; of a key that comes twice, the first."""
    parts = _FIELD.split(text)
    values: dict[str, str] = {}
    for key, value in zip(parts[1::2], parts[2::2], strict=True):
        values.setdefault(key, value.strip())
    return values


def _number(text: str) -> int:
    return reading.whole_number(text) or 0


def _length(cpu_list: str) -> int:
    """How many CPUs a list such as 0-1,64 has; 0 where it is none."""
    total = 0
    for part in cpu_list.split(","):
        first, _, last = part.partition("-")
        if not (first.isascii() and first.isdigit()) or (last and not (last.isascii() and last.isdigit())):
            return 0
        total += max(_number(last or first) - _number(first) + 1, 0)
    return total


def _ask(*command: str, key: str | None = None) -> str:
    """The output of a Slurm command, run with only SLURM_CONF of the user's Slurm settings: others would change the
    text.

    `key` is the configuration key that it asks about. A controller that does not answer is asked again for a while.
    Raises NoServiceError if it stays away, and NodeprintError if it rejects the command.
    """
    until, waits = time.monotonic() + _PATIENCE_S, False
    while True:
        code, answer = _asked(command)
        if code == 0:
            return answer
        if _NO_CLUSTER.search(answer):
            raise _no_slurm(f"{command[0]}: {printable(answer)}")
        if not NO_ANSWER.search(answer):
            advice = f"call `{' '.join(command[: 4 if key else 3])}` by hand to see more"
            raise NodeprintError(printable(answer), key=key or command[0], advice=advice)
        if time.monotonic() > until:
            advice = "see whether slurmctld is up, and call it again"
            raise NoServiceError(
                f"no answer in {_PATIENCE_S / 60:.0f} minutes ({printable(answer)})", key=command[0], advice=advice
            )
        if not waits:
            message = say("slurm", "silent", answer=printable(answer), minutes=f"{_PATIENCE_S / 60:.0f}")
            print(f"nodeprint: {message}", file=sys.stderr, flush=True)
        waits = True
        time.sleep(_PAUSE_S)


def _asked(command: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of a Slurm command, or the last line of its error."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if key == "SLURM_CONF" or not key.startswith(("SINFO_", "SLURM_", "SCONTROL_"))
    } | {"LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise _no_slurm(f"{command[0]} is not on PATH") from error
    except subprocess.TimeoutExpired:
        return 1, f"{command[0]} timed out after {_SECONDS:.0f} s"
    if done.returncode == 0:
        return 0, done.stdout.decode(errors="replace")
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return done.returncode, _PREFIX.sub("", lines[-1]) if lines else "no reason given"


def _no_slurm(reason: str) -> NodeprintError:
    """Return the error of a machine outside a cluster with Slurm."""
    advice = "call it on a login node of the cluster, or measure this machine with `make run LAUNCH=here`"
    return NodeprintError(f"this machine has no Slurm ({reason}), and nothing was written", key="launch", advice=advice)
