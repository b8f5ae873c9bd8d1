"""Slurm: the sample sheet from the text of sinfo and scontrol (versions 20.11 to 25), and what a job asks for.

Their text, not `--json`: its schema moves between versions. All is pure but `find`, which asks.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodeprint.discover import Node, checked_name, short
from nodeprint.errors import NodeprintError, printable

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


@dataclass(frozen=True)
class Listed:
    """A node in one of its partitions, as sinfo lists it; `reason` is empty where Slurm has none."""

    node: str
    partition: str
    default: bool
    state: str
    reason: str


@dataclass(frozen=True)
class Facts:
    """What scontrol says of a node: host name, CPUs a whole-node job gets (0 unknown), active features."""

    host: str
    cpus: int
    features: frozenset[str]


def find(slurm: Mapping[str, Any]) -> list[Node]:
    """The sheet of the nodes that `slurm`, the configuration's section, selects.

    Raises NodeprintError where Slurm does not answer, or nothing is selected.
    """
    only = ["-p", str(slurm["partition"])] if slurm["partition"] else []
    listed = parse_sinfo(_ask("sinfo", "-h", "-N", "-o", SINFO_FORMAT, *only))
    facts = parse_nodes(_ask("scontrol", "-o", "show", "node"))
    ours: frozenset[str] = frozenset()
    if slurm["reservation"]:
        told = _ask("scontrol", "-o", "show", "reservation", slurm["reservation"], key="slurm.reservation")
        ours = frozenset(_hosts(parse_reservation(told)))
    asked = _hosts(str(slurm["nodes"]), key="slurm.nodes") if slurm["nodes"] else None
    nodes = sheet(listed, facts, ours=ours, slurm=slurm, asked=asked)
    try:
        switches = {
            switch: _hosts(names) for switch, names in parse_topology(_ask("scontrol", "show", "topology")).items()
        }
    except NodeprintError:
        switches = {}  # a cluster without topology plugin
    return with_switches(nodes, switches)


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


def parse_nodes(text: str) -> dict[str, Facts]:
    """The lines of `scontrol -o show node`, by node name."""
    found = {}
    for line in text.splitlines():
        fields = _fields(_FREE_TEXT.split(line, maxsplit=1)[0])
        name = fields.get("NodeName", "")
        if not name or name in found:
            continue
        host = checked_name(short(fields.get("NodeHostName", "") or name), "scontrol")
        features = fields.get("ActiveFeatures", fields.get("AvailableFeatures", ""))
        found[name] = Facts(host, effective_cpus(fields), frozenset(features.split(",")) - {"(null)", ""})
    return found


def effective_cpus(fields: Mapping[str, str]) -> int:
    """CPUs that a job with the whole node gets: those not specialised for the system (man slurm.conf, CoreSpecCount,
    CpuSpecList). Slurm 22.05 and newer say it themselves. 0 where nothing is said."""
    if effective := _number(fields.get("CPUEfctv", "")):
        return effective
    specialised = _number(fields.get("CoreSpecCount", "")) * (_number(fields.get("ThreadsPerCore", "")) or 1)
    if not specialised:
        specialised = _length(fields.get("CPUSpecList", ""))
    return max(_number(fields.get("CPUTot", "")) - specialised, 0)


def parse_reservation(text: str) -> str:
    """The node-list expression of a reservation, from `scontrol -o show reservation NAME`; empty where it has none."""
    fields = _fields(text)
    return "" if fields.get("Nodes") in ("(null)", None) else fields["Nodes"]


def parse_topology(text: str) -> dict[str, str]:
    """Leaf switches and their node-list expressions, from `scontrol show topology` (topology/tree)."""
    switches = {}
    for line in text.splitlines():
        fields = _fields(line)
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
        "does not respond": "*" in flags,
        "is powered down; set slurm.wake to measure it": not wake and (base in _ASLEEP or bool(flags & set("~!%"))),
        "is about to reboot": bool(flags & set("@^")),
        "is reserved for others; name the reservation in slurm.reservation": (base in _RESERVED or "$" in flags)
        and not ours,
        "is out of service": base not in _IN_SERVICE | _RESERVED | _ASLEEP | _WAKING,
    }
    return next((reason for reason, true in reasons.items() if true), "")


def sheet(
    listed: Iterable[Listed],
    facts: Mapping[str, Facts],
    *,
    ours: frozenset[str],
    slurm: Mapping[str, Any],
    asked: Sequence[str] | None,
) -> list[Node]:
    """The sheet's rows of the selected nodes, in Slurm's order; one row per node.

    A node of several partitions is measured in the default one if it is in it, else in the first by name. `ours` are
    the nodes of the reservation, `asked` those of `slurm.nodes`, None for all. Raises NodeprintError where nothing is
    selected, or a node was asked for that Slurm does not have.
    """
    chosen: dict[str, Listed] = {}
    for row in listed:
        known = chosen.get(row.node)
        if known is None or (not row.default, row.partition) < (not known.default, known.partition):
            chosen[row.node] = row
    if missing := [name for name in asked or [] if name not in chosen]:
        raise NodeprintError(
            f"Slurm has no node {printable(missing[0], 60)}"
            + (f" in {slurm['partition']}" if slurm["partition"] else ""),
            key="slurm.nodes",
            advice="`sinfo -N` lists the nodes",
        )
    nodes = []
    for name, row in chosen.items():
        fact = facts.get(name, Facts(short(name), 0, frozenset()))
        if (asked is not None and name not in asked) or (slurm["reservation"] and name not in ours):
            continue
        if slurm["feature"] and slurm["feature"] not in fact.features:
            continue
        why = why_not(row.state, name in ours, bool(slurm["wake"]))
        nodes.append(
            Node(
                node=name,
                host=fact.host,
                partition=row.partition,
                cpus=fact.cpus,
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
    of = {name: switch for switch, names in switches.items() for name in names}
    return [replace(node, switch=of.get(node.node, "")) for node in nodes]


def job_options(node: Node, slurm: Mapping[str, Any], minutes: int) -> str:
    """Options of sbatch for a job of `minutes` on all of `node`, as the resource `slurm_extra` of Snakemake's plugin.

    The plugin refuses what looks like an option of its own (`-c `, `-J`: parts of host names, too) and hands the rest
    to a shell: so an empty string, gone there, follows each dash of a name. Raises NodeprintError.
    """
    options = ["--exclusive", _deadline(slurm, minutes)]
    if slurm["reservation"]:
        options.append(f"--reservation={_behind_dashes(slurm['reservation'])}")
    if slurm["extra"]:
        options.append(slurm["extra"])
    return " ".join([*options, f"--nodelist={_behind_dashes(node.node)}"])


def sweep_options(nodes: Sequence[Node], slurm: Mapping[str, Any], minutes: int) -> str:
    """Options of sbatch, quoted for a shell, for an allocation over `nodes` of one partition, `minutes` a node.

    Raises NodeprintError.
    """
    minutes *= math.ceil(len(nodes) / slurm["wave"])
    named = {"--partition": nodes[0].partition} | {f"--{key}": slurm[key] for key in ("account", "qos", "reservation")}
    options = [f"{option}={value}" for option, value in named.items() if value]
    return shlex.join([*options, f"--time={minutes}", _deadline(slurm, minutes), *slurm["extra"].split()])


def _deadline(slurm: Mapping[str, Any], minutes: int) -> str:
    """The option that ends a job which cannot start; Slurm refuses one before the time limit's end."""
    seconds = math.ceil(slurm["deadline_hours"] * 3600)
    if seconds <= minutes * 60:
        raise NodeprintError(
            f"a job of {minutes} minutes cannot end within {seconds} seconds",
            key="slurm.deadline_hours",
            advice="raise it, or set slurm.minutes",
        )
    return f"--deadline=now+{seconds}seconds"


def _behind_dashes(name: str) -> str:
    return name.replace("-", "-''")


def _fields(text: str) -> dict[str, str]:
    """KEY=VALUE pairs; of a key that comes twice, the first."""
    parts = _FIELD.split(text)
    found: dict[str, str] = {}
    for key, value in zip(parts[1::2], parts[2::2], strict=True):
        found.setdefault(key, value.strip())
    return found


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _length(cpu_list: str) -> int:
    """How many CPUs a list such as 0-1,64 has; 0 where it is none."""
    total = 0
    for part in cpu_list.split(","):
        first, _, last = part.partition("-")
        if not (first.isascii() and first.isdigit()) or (last and not (last.isascii() and last.isdigit())):
            return 0
        total += max(_number(last or first) - _number(first) + 1, 0)
    return total


def _hosts(expression: str, key: str | None = None) -> list[str]:
    """The names of a node-list expression such as cn[01-03,7], by Slurm's own reading."""
    if not expression:
        return []
    return _ask("scontrol", "show", "hostnames", expression, key=key).split()


def _ask(*command: str, key: str | None = None) -> str:
    """What a Slurm command prints; SLURM_CONF says whom to ask, the user's other settings would change the text.

    `key` is what of the configuration it asks about. Raises NodeprintError where it refuses or does not answer.
    """
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
        raise NodeprintError(
            f"{command[0]} is not on PATH", key="launch", advice="run it on a login node of the cluster"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise NodeprintError(f"{command[0]}: no answer in {_SECONDS:.0f} s", advice="is slurmctld up?") from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines() or ["no reason given"]
        advice = f"`{' '.join(command[: 4 if key else 3])}` asks it by hand"
        raise NodeprintError(printable(said[-1]), key=key or command[0], advice=advice)
    return done.stdout.decode(errors="replace")
