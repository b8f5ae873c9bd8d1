"""Grid Engine: a job of qsub for each node, followed by one qstat for all jobs and the states of all queues.

Tried with Son of Grid Engine 8.1.9 (Debian). The commands and their XML are those of Sun Grid Engine 6.2, which Univa,
Altair and Open Cluster Scheduler kept.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from xml.etree import ElementTree

from nodeprint.campaign import node_lists
from nodeprint.campaign.launchers import scheduler_commands
from nodeprint.campaign.launchers.launcher import (
    UNKNOWN_END,
    JobKey,
    JobState,
    NoAnswerError,
    RefusedError,
    Scheduler,
    Submission,
)
from nodeprint.campaign.node_sheet import Node, checked_name, short
from nodeprint.errors import NodeprintError, NoServiceError, printable
from nodeprint.settings.config_file import Config, Jobs
from nodeprint.settings.texts import say, texts

#: What the commands write if sge_qmaster did not answer; anything else is its answer.
_NO_ANSWER = re.compile(
    r"commlib error|unable to (send message|contact)|got (send|select|read) error|timeout", re.IGNORECASE
)
#: qsub rejects a job as the user has as many as allowed (max_u_jobs, a resource quota).
_FULL = re.compile(r"jobs are allowed per user", re.IGNORECASE)
#: What begins or ends the answer of a command, and says nothing.
_IDLE_WORDS = re.compile(r"^(error: |Unable to run job: )+|^Exiting\.?$|^denied: ")
#: Letters of a queue's state (man qstat), in which it starts no job. A load alarm (a) goes by itself.
_OUT_OF_SERVICE = "ucoEdDsSC"
#: Letters of a job's state (man qstat), the most important first, with the word of nodeprint.
_STATES = (
    ("d", "COMPLETING"),
    ("E", "PENDING"),
    ("w", "PENDING"),
    ("q", "PENDING"),
    ("s", "SUSPENDED"),
    ("S", "SUSPENDED"),
    ("T", "SUSPENDED"),
)
#: Variables that change what the commands do or say.
_DROPPED = ("SGE_SINGLE_LINE", "SGE_LONG_QNAMES", "SGE_QSTAT", "BASH_FUNC_")
#: qacct's field `failed` if a job ran into its time limit (man accounting).
_TIME_LIMIT = "37"


@dataclass(frozen=True)
class Queue:
    """A queue of a host: its name, the letters of its state, its slots, and how many of them are in use."""

    name: str
    state: str
    slots: int
    used: int


@dataclass(frozen=True)
class Host:
    """A host with its CPUs, the threads of a core (0 if unknown), and its queues."""

    name: str
    cpus: int
    threads: int
    queues: tuple[Queue, ...]


class GridEngineLauncher(Scheduler):
    """Submits each node's job with qsub."""

    name, title = "gridengine", "Grid Engine"
    submit_command, list_command, cancel_command = "qsub", "qstat", "qdel JOB"
    call_keys: ClassVar = {"partition": "scheduler.partition"}

    def __init__(self) -> None:
        self._whole_node: dict[str, list[str]] = {}  # the options for a whole node, by queue and host

    def nodes(self, config: Config) -> list[Node]:
        return sheet(_hosts(), config.scheduler)

    def idle_nodes(self, config: Config) -> Collection[str]:
        hosts = {host.name: host for host in _hosts()}
        nodes = sheet(hosts.values(), config.scheduler)
        return {node.node for node in nodes if node.measure and not any(q.used for q in hosts[node.node].queues)}

    def other_nodes(self, former: Mapping[str, Any], config: Config) -> tuple[str, str, str] | None:
        now = config.scheduler.partition
        before = former.get("scheduler", {}).get("partition", now)
        return ("scheduler.partition", before, now) if before != now else None

    def options(self, config: Config, node: Node, minutes: int) -> list[str]:
        extra = config.scheduler.extra.split()
        words = ["-cwd", "-V", "-r", "n", "-S", "/bin/sh", "-o", "/dev/null", "-j", "y"]
        words += ["-q", node.partition, "-l", f"hostname={node.node},h_rt={60 * minutes}"]
        whole = [] if "-pe" in extra else self._whole(node)
        return [*words, *whole, *extra]

    def submit(self, job: Submission) -> str:
        try:
            words = ("qsub", "-terse", "-N", job.name, *job.options)
            number = ask(*words, stdin=f"{job.script}\n", lock=job.lock).strip().partition("\n")[0]
        except NoAnswerError as silence:
            reason = _answer(str(silence))
            if _NO_ANSWER.search(str(silence)) or not reason:
                raise
            raise RefusedError(reason, "full" if _FULL.search(reason) else "") from silence
        if not number.isdigit():
            raise NoAnswerError(f"qsub printed {printable(repr(number), 60)}")
        return number

    def follow(self, names: Collection[str]) -> dict[JobKey, JobState]:
        user = pwd.getpwuid(os.geteuid()).pw_name
        listed = parse_queue(ask("qstat", "-f", "-r", "-xml", "-u", user))
        jobs = {key: job for key, job in listed.items() if key[0] in names}
        failed = [job.id for job in jobs.values() if job.stuck == "job"]
        reasons = parse_errors(ask("qstat", "-j", ",".join(failed))) if failed else {}
        return {key: replace(job, reason=reasons.get(job.id, job.reason)) for key, job in jobs.items()}

    def cancel(self, numbers: Collection[str]) -> None:
        try:
            ask("qdel", *numbers)
        except NoAnswerError as silence:
            if _NO_ANSWER.search(str(silence)) or "does not exist" not in str(silence):
                raise

    def how_ended(self, jobs: Mapping[str, JobKey]) -> dict[str, JobState]:
        return {number: ended for number in jobs if (ended := _accounted(number))}

    def reason(self, node: str, job: JobState) -> str:
        # qmaster writes the accounting later than the job ends
        job = (_accounted(job.id) or job) if job.state == UNKNOWN_END else job
        if job.state == UNKNOWN_END:
            down = self.node_state(node)
            return say("gridengine", "forgotten", job=job.id) + (f"; the node is {down}" if down else "")
        code = texts()["gridengine"]["ended"].get(job.state, "") or f"exit code {job.exit_code}"
        return f"Grid Engine job {job.id}: {job.state}, {job.reason or code}"

    def node_state(self, node: str) -> str:
        with suppress(NoAnswerError, NodeprintError):
            for host in parse_hosts(ask("qhost", "-xml", "-q", "-h", node)):
                if host.name == node and host.queues:
                    return why_not(host.queues)
        return ""

    def _whole(self, node: Node) -> list[str]:
        """Options that give a job all of a node: an exclusive resource, or else all slots of its queue.

        Raises NodeprintError if the node's queue has neither.
        """
        if not self._whole_node:
            self._whole_node = {"": [], **_whole_nodes()}
        instance = f"{node.partition}@{node.node}"
        if instance not in self._whole_node:
            raise NodeprintError(say("gridengine", "shared", queue=instance), key="scheduler.extra")
        return self._whole_node[instance]


# --- nodes ------------------------------------------------------------------------------------------------------------


def sheet(hosts: Iterable[Host], keys: Jobs) -> list[Node]:
    """The sheet's rows of the hosts that `keys` select, each with the first of its queues that starts jobs.

    Raises NodeprintError if nothing is selected, or a node or queue was asked for that Grid Engine does not have.
    """
    hosts = list(hosts)
    asked = node_lists.expand(keys.nodes, "scheduler.nodes") if keys.nodes else [host.name for host in hosts]
    queues = [name for name in keys.partition.split(",") if name]
    known = {queue.name for host in hosts for queue in host.queues}
    if absent := [name for name in queues if name not in known]:
        problem = f"Grid Engine has no queue {absent[0]}, or no host in it"
        raise NodeprintError(problem, key="scheduler.partition", advice="`qconf -sql` lists the queues")
    if missing := [name for name in asked if name not in {host.name for host in hosts}]:
        problem = f"Grid Engine has no host {printable(missing[0], 60)}"
        raise NodeprintError(problem, key="scheduler.nodes", advice="`qhost` lists the hosts")
    rows = []
    for host in hosts:
        own = [queue for queue in host.queues if not queues or queue.name in queues]
        if host.name not in asked or not own:
            continue
        queue = next((queue for queue in own if not why_not([queue])), own[0])
        why = why_not(own)
        rows.append(
            Node(
                checked_name(host.name, "qhost"),
                checked_name(short(host.name), "qhost"),
                partition=checked_name(queue.name, "qhost"),
                cpus=host.cpus,
                threads=host.threads,
                state=queue.state or "idle",
                reason=why,
                measure=not why,
            )
        )
    if not rows:
        advice = "look at scheduler.partition and scheduler.nodes"
        raise NodeprintError("no host of this cluster is selected", key="scheduler", advice=advice)
    return rows


def why_not(queues: Iterable[Queue]) -> str:
    """Why no queue of a host starts a job; empty if one does."""
    reasons = []
    for queue in queues:
        letter = next((letter for letter in _OUT_OF_SERVICE if letter in queue.state), "")
        if not letter:
            return ""
        reasons.append(say("gridengine", "queue", letter, queue=queue.name))
    return "; ".join(dict.fromkeys(reasons))


def parse_hosts(text: str) -> list[Host]:
    """The hosts of `qhost -xml -q`. Raises NoAnswerError if the text is something else."""
    hosts = []
    for host in _parsed(text, "qhost").iter("host"):
        values = {value.get("name"): value.text or "" for value in host.iter("hostvalue")}
        cpus, cores = (_number(values.get(key)) for key in ("num_proc", "m_core"))
        queues = []
        for queue in host.iter("queue"):
            cells = {value.get("name"): value.text or "" for value in queue.iter("queuevalue")}
            if set(cells.get("qtype_string", "")) & set("BP"):
                used, slots = _number(cells.get("slots_used")), _number(cells.get("slots"))
                queues.append(Queue(queue.get("name") or "", cells.get("state_string", ""), slots, used))
        if (name := host.get("name")) and name != "global":
            hosts.append(Host(name, cpus, cpus // cores if cores else 0, tuple(queues)))
    return hosts


def _hosts() -> list[Host]:
    try:
        return parse_hosts(ask("qhost", "-xml", "-q"))
    except NoAnswerError as silence:
        advice = "see whether sge_qmaster is up, and call it again"
        raise NoServiceError(f"no answer ({_answer(str(silence))})", key="qhost", advice=advice) from silence


def _whole_nodes() -> dict[str, list[str]]:
    """By queue and host, as in `main.q@cn01`, the options that give a job the whole node."""
    options: dict[str, list[str]] = {}
    try:
        for name in exclusive_resources(ask("qconf", "-sc")):
            own = parse_offers(ask("qstat", "-f", "-F", name, "-xml"), name)
            options = {queue: ["-l", f"{name}=true"] for queue in own} | options
        slots = {f"{queue.name}@{host.name}": queue.slots for host in _hosts() for queue in host.queues}
        if set(slots) <= set(options):
            return options
        for name in ask("qconf", "-spl").split():
            if re.search(r"^allocation_rule\s+\$pe_slots\s*$", ask("qconf", "-sp", name), re.MULTILINE):
                own = ask("qselect", "-pe", name).split()
                options = {queue: ["-pe", name, str(slots.get(queue, 1))] for queue in own} | options
    except NoAnswerError as silence:
        if _NO_ANSWER.search(str(silence)):
            raise NoServiceError(f"no answer ({_answer(str(silence))})", key="qconf") from silence
    return options


def exclusive_resources(text: str) -> list[str]:
    """The resources by which a job has a host to itself, from `qconf -sc`: relation EXCL, and requestable."""
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return [row[0] for row in rows if len(row) == 8 and row[3] == "EXCL" and row[4] in ("YES", "FORCED")]


def parse_offers(text: str, resource: str) -> list[str]:
    """The queues of hosts that offer a resource, from `qstat -f -F`, also while a job has it: qselect omits those."""
    queues = _parsed(text, "qstat").iter("Queue-List")
    return [
        queue.findtext("name", "")
        for queue in queues
        if any(offer.get("name") == resource for offer in queue.iter("resource"))
    ]


# --- jobs -------------------------------------------------------------------------------------------------------------


def parse_queue(text: str) -> dict[JobKey, JobState]:
    """The jobs of `qstat -f -r -xml`, by name and the host that they ask for; a newer one counts before older ones.

    The states of all queues are in it too. So a job on a node that is silent, or for a node that starts none, is
    `stuck`. Raises NoAnswerError if the text is something else.
    """
    document = _parsed(text, "qstat")
    queues: dict[str, list[Queue]] = {}
    for queue in document.iter("Queue-List"):
        name, _, host = queue.findtext("name", "").partition("@")
        queues.setdefault(host, []).append(Queue(name, queue.findtext("state", ""), 0, 0))
    jobs: dict[JobKey, JobState] = {}
    for job in sorted(document.iter("job_list"), key=lambda job: _number(job.findtext("JB_job_number"))):
        requests = {request.get("name"): request.text or "" for request in job.iter("hard_request")}
        host, name = requests.get("hostname", ""), job.findtext("full_job_name", job.findtext("JB_name", ""))
        if host:
            number = job.findtext("JB_job_number", "")
            jobs[name, host] = _state(number, job.findtext("state", ""), queues.get(host, []))
    return jobs


def _state(number: str, letters: str, queues: list[Queue]) -> JobState:
    state = next((word for letter, word in _STATES if letter in letters), "RUNNING")
    if "E" in letters:
        return JobState(number, state, stuck="job")
    if state == "PENDING":
        why = "held" if "h" in letters else why_not(queues)
        return JobState(number, state, why, stuck="node" if why_not(queues) else "")
    silent = bool(queues) and all("u" in queue.state for queue in queues)
    return JobState(number, state, why_not(queues) if silent else "", stuck="node" if silent else "")


def parse_errors(text: str) -> dict[str, str]:
    """Why jobs are in the state of an error, by number, from `qstat -j`: the last reason of each."""
    reasons, number = dict[str, str](), ""
    for key, _, value in (line.partition(":") for line in text.splitlines()):
        if key == "job_number":
            number = value.strip()
        elif key.startswith("error reason"):
            reasons[number] = printable(value.rpartition("]:")[2].strip().removeprefix("error: "), 120)
    return reasons


def _accounted(number: str) -> JobState | None:
    """How a job ended, by qacct; None if it does not know."""
    with suppress(NoAnswerError, NodeprintError):
        return parse_accounting(number, ask("qacct", "-j", number))
    return None


def parse_accounting(number: str, text: str) -> JobState:
    """The end of a job, from `qacct -j`. A job that ran twice has two entries; the last one counts."""
    fields = dict(line.split(maxsplit=1) for line in text.splitlines() if len(line.split(maxsplit=1)) == 2)
    failed, _, why = fields.get("failed", "").partition(":")
    code = fields.get("exit_status", "").split(maxsplit=1)
    exit_code = code[0] if code else ""
    if failed.strip() == _TIME_LIMIT:
        return JobState(number, "TIMEOUT", exit_code=exit_code)
    if failed.strip() == "0":
        return JobState(number, "COMPLETED" if exit_code == "0" else "FAILED", exit_code=exit_code)
    signal = int(exit_code) - 128 if exit_code.isdigit() and int(exit_code) > 128 else 0
    reason = f"killed by signal {signal}" if signal else printable(why.strip(), 120)
    return JobState(number, "FAILED", reason, exit_code)


# --- commands ---------------------------------------------------------------------------------------------------------


def ask(*words: str, stdin: str | None = None, lock: int | None = None) -> str:
    """Return the output of a command of Grid Engine. Raises NoAnswerError, and NodeprintError if it does not exist."""
    return scheduler_commands.ask(*words, environment=scheduler_commands.environment(_DROPPED), stdin=stdin, lock=lock)


def _answer(text: str) -> str:
    """The answer of a command, without words that say nothing."""
    lines = (_IDLE_WORDS.sub("", line.strip()) for line in text.splitlines())
    return "; ".join(dict.fromkeys(filter(None, lines)))


def _parsed(text: str, command: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise NoAnswerError(f"{command}: no XML ({error})") from error


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and text.isascii() else 0
