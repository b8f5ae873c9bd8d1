"""Find the node of an output in its text: a line that names the host, or the tool that gathered several outputs into
one. A text that names several hosts without marking their lines is rejected, because its results would silently become
runs of one node. File names are read in `file_names`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ClusterShell.NodeSet import NodeSet, NodeSetException

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import host_words
from nodeprint.readers.tool_output import ToolValue

_NAME = r"[A-Za-z0-9](?:[\w.-]*\w)?"
#: pdsh, clush and Ansible put a node's name before each of its lines.
_PREFIX = re.compile(rf"({_NAME}):(?: (.*)|)")
#: dshbak and clush -b write the nodes between two rules, tail the file.
_RULE = re.compile(r"-{15,16}")
_TAIL = re.compile(r"==> (.+) <==")
#: What srun --label and mpirun --tag-output put before a line.
TASK = re.compile(r"^\s*(?:\d+:|\[[^\]\s]*\d+,\d+\](?:\[[^\]]*\])?<std(?:out|err)>:)\s?")
_KEYS = r"SLURMD_NODENAME|SLURM_NODENAME|HOSTNAME|host ?name|host|node ?name|node"
#: What scripts print of the host that they run on.
_HOST = re.compile(
    rf"(?:{_KEYS}|running on(?: host| node)?)\s*[:=]?\s+?({_NAME})|(?:{_KEYS})\s*[:=]\s*({_NAME})", re.IGNORECASE
)
#: A job's first lines: beyond them a line without a sign between key and name is a sentence, unless the name has a
#: number or another line began so before.
_FIRST = 60
#: What scripts print of a job's nodes: all of their names, or their number.
_HOSTS = re.compile(
    r"(?:(?:SLURM\w*_|PBS_|LSB_)?(?:NODELIST|HOSTS|NODES)|(?:job )?node ?list|hosts?|nodes?|running on"
    r"(?: hosts?| nodes?)?)"
    r"\s*[:=]?\s*(\w[\w.,\[\]-]*[,\[][\w.,\[\]-]*)",
    re.IGNORECASE,
)
_NUMBER_OF_HOSTS = re.compile(
    r"(?:SLURM\w*_N?NODES|SLURM_JOB_NUM_NODES|number of nodes|nnodes|nodes)\s*[:=]\s*(\d+)", re.IGNORECASE
)
#: Signs around a word in a line that separates results, and the words of the longest such line.
_SIGNS = "#=-:*[]<>()|,;'\"@~+_!"
_MOST_WORDS = 10
#: A share of all lines that have a node before them.
_PREFIXED = 0.9
#: So many hosts are named in a message.
_NAMED = 3


@dataclass(frozen=True)
class NodeLog:
    """Lines of one node: its name, or the path of their file as tail prints it. Both are empty if the gathering tool
    prints neither. Lines of others are empty, so that lines keep their numbers.

    The output of a known tool has `values` and `notes`, or a `fault`; `where` is for messages.
    """

    node: str
    path: str
    lines: list[str]
    where: str = ""
    values: Sequence[ToolValue] = ()
    notes: Sequence[str] = ()
    fault: NodeprintError | None = None

    @property
    def is_named(self) -> bool:
        """Whether the text says whose each value is."""
        return bool(self.node) or (bool(self.values) and all(value.node for value in self.values))


def split(lines: list[str]) -> list[NodeLog]:
    """A text by what gathered it."""
    return _by_prefix(lines) or _by_rules(lines) or [NodeLog("", "", lines)]


def host(lines: Sequence[str], results: int, own: Collection[int], where: str, *, is_stated: bool) -> str:
    """The host that a text names, empty where it names none. It has so many `results`, whose figures are in its `own`
    lines (from 1). Whoever `is_stated`, lines that may separate hosts are not looked for.

    Raises NodeprintError where it names several hosts: nobody knows which figures are whose.
    """
    foreign: list[tuple[int, str]] = []
    gap = 0
    for number, line in enumerate(lines, start=1):
        gap += number in own
        if number not in own and len(line) < 120:
            foreign.append((gap, TASK.sub("", line).strip()))
    texts = [text for _, text in foreign]
    stated = _stated(texts)
    if len(stated) > 1:
        raise _several(stated, where)
    if is_stated:
        return stated[0] if stated else ""
    listed = host_words.distinct([name for text in texts for name in _listed(text)])
    listed = listed if len(listed) > 1 else _bare_list(texts)
    separating = _separating(foreign, results, stated) if results > 1 else []
    others = [name for name in host_words.distinct([*listed, *separating]) if name not in stated]
    if others and (results > 1 or not stated):
        raise _several([*stated, *others], where)
    number_of_hosts = max((int(match[1]) for text in texts if (match := _NUMBER_OF_HOSTS.fullmatch(text))), default=1)
    if number_of_hosts > 1 and results > 1:
        what = f"{results} results of a job on {number_of_hosts} nodes, and nothing marks which is whose"
        raise NodeprintError(what, where=where, advice=GATHER)
    return stated[0] if stated else ""


#: What to do where results of several hosts are in one text.
GATHER = (
    "give each host's output a file of its own, or gather them by pdsh, clush -b, dshbak or tail -n +1, which mark them"
)


def _several(names: Sequence[str], where: str) -> NodeprintError:
    shown = ", ".join(printable(name, 40) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return NodeprintError(
        f"several hosts are named ({shown}{more}), and nothing marks which figures are whose",
        where=where,
        advice=GATHER,
    )


def _stated(lines: Sequence[str]) -> list[str]:
    """The hosts that lines name by a key; numbers alone count where there are no names."""
    found, begun = [], set()
    for number, line in enumerate(lines):
        if match := _HOST.fullmatch(line):
            name = match[1] or match[2]
            key = line.removesuffix(name)
            if number < _FIRST or key in begun or {*":=", *"0123456789"} & {*line}:
                found.append(name)
                begun.add(key)
    names = [name for name in found if not name.isdecimal()]
    by_short = {name.partition(".")[0].lower(): name for name in reversed(names or found)}  # a domain may follow
    return list(reversed(by_short.values()))


def _listed(line: str) -> list[str]:
    match = _HOSTS.fullmatch(line)
    return _expanded(match[1]) if match else []


def _bare_list(lines: Sequence[str]) -> list[str]:
    """The hosts of a list with a name a line, as a job's file of nodes is; none of fewer than two."""
    names = host_words.distinct([line for line in lines if host_words.is_numbered(line)])
    return names if len(names) > 1 else []


def _separating(lines: Sequence[tuple[int, str]], results: int, stated: Collection[str]) -> list[str]:
    """Return possible host names in lines that separate results and are otherwise equal, such as `### cn001` and `###
    cn002`. Each line comes with the number of its gap between values: lines that are equal in all gaps separate
    nothing. A word without a number must precede each result. Plain numbers may count runs, unless a `stated` host is
    among them."""
    by_form: dict[str, dict[int, set[str]]] = {}
    for gap, line in lines:
        words = line.split()[: _MOST_WORDS + 1]
        for at, word in enumerate(words if len(words) <= _MOST_WORDS else ()):
            name = word.strip(_SIGNS)
            if name.isdecimal() or host_words.is_numbered(name) or host_words.may_be_host(name):
                form = " ".join([*words[:at], word.replace(name, "@"), *words[at + 1 :]])
                by_form.setdefault(re.sub(r"\d+", "0", form), {}).setdefault(gap, set()).add(name)
    found: list[str] = []
    for gaps in by_form.values():
        names = sorted({name for of_gap in gaps.values() for name in of_gap})
        differ = len(gaps) > 1 and len(set(map(frozenset, gaps.values()))) > 1
        is_before_each = len(gaps) >= results and all(len(of_gap) == 1 for of_gap in gaps.values())
        are_numbered = any(map(host_words.is_numbered, names))
        are_words = is_before_each and not any(name.isdecimal() for name in names)
        if differ and (are_numbered or are_words or {*stated} & {*names}):
            found += names
    return host_words.distinct(found)


def _by_prefix(lines: list[str]) -> list[NodeLog]:
    filled = [number for number, line in enumerate(lines) if line.strip()]
    found = {number: match for number in filled if (match := _PREFIX.fullmatch(lines[number]))}
    names = Counter(match[1] for match in found.values())
    # a task's number is no node, and a tool's own words before colons are many with a line each
    often = {name for name, count in names.items() if count > 2 and not name.isdecimal()}
    prefixed = {number: match for number, match in found.items() if match[1] in often}
    if not prefixed or len(prefixed) < _PREFIXED * len(filled):
        return []
    of_nodes: dict[str, list[str]] = {}
    for number, match in prefixed.items():
        of_nodes.setdefault(match[1], [""] * len(lines))[number] = match[2] or ""
    return [NodeLog(node, "", own) for node, own in of_nodes.items()]


def _by_rules(lines: list[str]) -> list[NodeLog]:
    starts: list[tuple[int, int, list[str], str]] = []
    for number, line in enumerate(lines):
        before, after = lines[number - 1] if number else "", lines[number + 1] if number + 1 < len(lines) else ""
        if _RULE.fullmatch(before) and _RULE.fullmatch(after) and " " not in line.strip():
            starts.append((number - 1, number + 2, _expanded(line.strip()), ""))
        elif tail := _TAIL.fullmatch(line):
            starts.append((number, number + 1, [""], tail[1]))
    return list(_sections(lines, starts))


def _sections(lines: list[str], starts: Sequence[tuple[int, int, list[str], str]]) -> Iterator[NodeLog]:
    ends = [*(begin for begin, *_ in starts[1:]), len(lines)]
    for (_, begin, names, path), end in zip(starts, ends, strict=False):
        own = ["" if number < begin or number >= end else line for number, line in enumerate(lines)]
        yield from (NodeLog(name, path, own) for name in names)


def _expanded(text: str) -> list[str]:
    """The nodes of a folded list, as dshbak -c has them."""
    try:
        return list(NodeSet(text)) or [text]
    except NodeSetException:
        return [text]
