"""Whose output the lines of a text are: sections of a node, and of a task or GPU of it.

Programs that gather outputs put a name before each line (pdsh, xdsh, srun --label) or above each output (dshbak, clush,
tail, Ansible, Salt). Scripts print a line before each result, such as `### cn001` or `HOST=cn001`. A text that names
several hosts without such lines is rejected, because its results would silently become runs of one node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

from ClusterShell.NodeSet import NodeSet, NodeSetException

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import host_words, path_fields
from nodeprint.readers.between_results import ResultLines
from nodeprint.readers.tool_output import Axis, ToolValue

#: A part of a pattern that states an axis.
_FIELD = re.compile(r"\{(\w+)\}")
_NAME = r"[A-Za-z0-9](?:[\w.-]*\w)?"
#: pdsh, clush, xdsh and Ansible put a node's name before each of its lines.
_PREFIX = re.compile(rf"({_NAME}):(?: (.*)|)")
#: Other programs put it into brackets, before a bar, or behind the time, as syslog does.
_LABELS = (
    re.compile(rf"\[({_NAME})\](?: (.*)|)"),
    re.compile(rf"({_NAME}) \|(?: (.*)|)"),
    re.compile(
        rf"(?:[A-Z][a-z]{{2}} +\d+ [\d:]{{8}}|\d{{4}}-\d\d-\d\dT[\d:.,+-]+Z?) ({_NAME})"
        r"(?: [\w.-]+(?:\[\d+\])?)?:(?: (.*)|)"
    ),
)
#: A name with the number of a task.
_COUNTED = re.compile(rf"({_NAME})-(\d+)")
#: dshbak and clush -b write the nodes between two rules, tail the file.
_RULE = re.compile(r"-{15,16}")
#: How many nodes a heading of clush -b is of.
_COUNT = re.compile(r"\s+\(\d+\)$")
_TAIL = re.compile(r"==> (.+) <==")
#: What srun --label and mpirun --tag-output put before a line: the task.
_TASK = re.compile(r"^\s*(?:(\d+):|\[[^\]\s]*?(\d+)\](?:\[[^\]]*\])?<std(?:out|err)>:)\s?")
_KEYS = r"SLURMD_NODENAME|SLURM_NODENAME|SLURM_(?:JOB_)?NODELIST|HOSTNAME|host ?name|host|node ?name|node"
#: What scripts print of the host that they run on.
_HOST = re.compile(
    rf"(?:{_KEYS}|running on(?: host| node)?)\s*[:=]?\s+?({_NAME})|(?:{_KEYS})\s*[:=]\s*({_NAME})", re.IGNORECASE
)
#: What stands before a command.
_PROMPT = r"(?:\[?\w+@[\w.-]+[: ][^#$]*)?[+$#>\s]*"
#: Commands that run something on a host, as `set -x` or a prompt shows them, and the line that Ansible writes.
_COMMANDS = (
    re.compile(rf"{_PROMPT}(?:ssh|rsh)\s+(?:-\S+\s+)*(?:\w+@)?({_NAME})(?:\s.*)?"),
    re.compile(rf"{_PROMPT}(?:srun|pdsh|clush)\s.*?(?:-w|--nodelist)[ =]({_NAME})(?:\s.*)?"),
    re.compile(rf"\[?\w+@({_NAME})[: ][^#$]*[#$]\s(?!\s*(?:ssh|rsh|srun|pdsh|clush|for|exit)\b).*"),
    re.compile(rf"({_NAME}) \| (?:CHANGED|SUCCESS|FAILED)\b.*"),
    re.compile(rf"Linux ({_NAME}) \d+\.\d+\.\S+ .*"),
    re.compile(rf"Job (?:was executed|ran) on host(?:\(s\))? <(?:\d+\*)?({_NAME})>.*"),
)
#: The command whose output is the host's name.
_HOSTNAME = re.compile(rf"{_PROMPT}hostname(?: -[sf])?")
#: What Salt writes above the indented lines of a minion.
_MINION = re.compile(rf"({_NAME}):")
#: A job's first lines: beyond them a line without a sign between key and name is a sentence, unless the name has a
#: number or another line began so before.
_FIRST = 60
#: What scripts print of a job's nodes: all of their names, or their number.
_HOSTS = re.compile(
    r"(?:(?:SLURM\w*_|PBS_|LSB_)?(?:NODELIST|HOSTS|NODES)|(?:job )?node ?list|hosts?|nodes?|running on"
    r"(?: hosts?| nodes?)?)"
    r"\s*[:=]?\s*(\w[\w.,\[\]-]*[,\[ ][\w.,\[\] -]*)",
    re.IGNORECASE,
)
_OPTION = re.compile(r"\s(?:-w|--nodelist|--host)[ =]?(\w[\w.-]*[,\[][\w.,\[\]-]*)")
_LISTS = re.compile(r"\b(?:nodes?|hosts?|node ?list|running on|for \w+ in)\b", re.IGNORECASE)
_NUMBER_OF_HOSTS = re.compile(
    r"(?:SLURM\w*_N?NODES|SLURM_JOB_NUM_NODES|number of nodes|nnodes|nodes)\s*[:=]\s*(\d+)", re.IGNORECASE
)
#: The GPU or NUMA node that a script names before each result.
_COPY = re.compile(
    r"\W*(?:(?:using|testing|running(?: on)?|benchmarking)\s+)?(gpu|device|gcd|numa ?node|numa|socket|rank)\s*"
    r"(?:id\s*)?[#:=]?\s*(0|[1-9]\d*)\W*(?:[:(,-].*)?|(?:export )?(CUDA|HIP|ROCR)_VISIBLE_DEVICES=(\d+)\W*",
    re.IGNORECASE,
)
#: A line that names two of them is of a link.
_COPIES = re.compile(r"(?:gpu|device|gcd|numa ?node|numa|socket|rank)\s*(?:id\s*)?[#:=]?\s*\d", re.IGNORECASE)
#: Words before the name of a part of a node, as in NUMA node0.
_PART = re.compile(r"numa|gpu|socket|rank|cpu|core", re.IGNORECASE)
#: Signs around a word in a line that separates results, and the words and letters of the longest such line.
_SIGNS = "#=-:*[]<>()|,;'\"@~+_!{}"
_MOST_WORDS = 10
_LONGEST = 120
#: A line that names a host has letters before a number, or a word of the forms above. Most lines have neither.
_MAY_NAME = re.compile(
    r"(?<![\w.+-])[a-z][a-z-]*\d|\w@\w|host|node|running|ssh|rsh|srun|pdsh|clush|exec| \| |^\s*\S+:$|\d\.\d+\.\d+\.\d",
    re.IGNORECASE,
)
#: So many lines show whether a program put a name before each.
_SHOWN = 200
#: A share of all lines that have a node or a task before them.
_PREFIXED = 0.9
#: So many hosts are named in a message.
_NAMED = 3
#: What to do where results of several hosts are in one text.
GATHER = (
    "print `hostname: NAME` before each result, give each host's output a file of its own, or gather them by pdsh, "
    "clush -b, dshbak or tail -n +1"
)


@dataclass(frozen=True)
class Passage:
    """Lines of one node, or of a `copy` of it: a task or GPU. Lines of others are empty, so that lines keep their
    numbers.

    `node` is empty where the text does not state it, and `path` has the file as tail prints it. `source` are words for
    what states the node. `listed` are the hosts of a job that the text lists.

    The output of a known tool has `values`, `results` and `notes`, or a `fault`; `where` is for messages. `text` are
    the lines of all sections that one stream of output has.
    """

    node: str
    lines: list[str]
    text: list[str] = field(default_factory=list)
    path: str = ""
    copy: Axis = field(default_factory=dict)
    source: str = ""
    listed: Sequence[str] = ()
    where: str = ""
    values: Sequence[ToolValue] = ()
    results: Sequence[ResultLines] = ()
    notes: Sequence[str] = ()
    fault: NodeprintError | None = None

    @property
    def is_named(self) -> bool:
        """Whether the text says whose each value is."""
        return bool(self.node) or (bool(self.values) and all(value.node for value in self.values))


def split(lines: list[str], where: str, patterns: Sequence[str] = ()) -> list[Passage]:
    """The sections of a text, by `patterns` of lines or else by lines whose form is known. Raises NodeprintError where
    two lines contradict each other on whose a result is."""
    if patterns:
        return _by_patterns(lines, patterns, where)
    return _by_prefix(lines, where) or _by_rules(lines, where) or _by_headings(lines, where)


def _by_patterns(lines: list[str], patterns: Sequence[str], where: str) -> list[Passage]:
    """Sections that begin at lines of a pattern, such as `### {node}`. A line of one pattern ends what lines of later
    patterns stated."""
    forms = [line_pattern(pattern) for pattern in patterns]
    stated: list[Mapping[str, str]] = [{} for _ in forms]
    starts: list[tuple[int, dict[str, str]]] = [(0, {})]
    for number, line in enumerate(lines):
        found = next(((at, match) for at, form in enumerate(forms) if (match := form.fullmatch(line.strip()))), None)
        if found is not None:
            at, match = found
            stated[at:] = [match.groupdict(), *({} for _ in forms[at + 1 :])]
            starts.append((number, {axis: text for own in stated for axis, text in own.items()}))
    ends = [*(number for number, _ in starts[1:]), len(lines)]
    return [
        Passage(axes.pop("node", ""), _between(lines, begin, end), lines, copy=axes, source="--line", where=where)
        for (begin, axes), end in zip(starts, ends, strict=True)
    ]


@cache
def line_pattern(pattern: str) -> re.Pattern[str]:
    """The form of a line with {fields}, and * for any text. Raises NodeprintError if it has no field, or one twice."""
    if not path_fields.fields(pattern, "--line"):
        what = f"{printable(pattern, 60)} has no field"
        raise NodeprintError(what, key="--line", advice="write one, as in '### {node}' or 'GPU {gpu}'")
    parts = re.split(r"(\{\w+\}|\*|\s+)", pattern.strip())
    meant = {"*": ".*?", "": ""}
    return re.compile("".join(_expression(part) if part not in meant else meant[part] for part in parts))


def _expression(part: str) -> str:
    field_of = _FIELD.fullmatch(part)
    if field_of:
        return rf"(?P<{field_of[1]}>{_NAME})"
    return r"\s+" if part.isspace() else re.escape(part)


def _by_prefix(lines: list[str], where: str) -> list[Passage]:
    """Sections of a text with a node or a task before each line."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    shown = [lines[number] for number in filled[:_SHOWN]]
    for form in _LABELS:
        if sum(form.fullmatch(line) is not None for line in shown) > len(shown) / 2:
            names = host_words.distinct([match[1] for number in filled if (match := form.fullmatch(lines[number]))])
            if all(map(host_words.is_host, names)):
                return _by_label(lines, filled, form)
            if len(names) > 1:
                raise several_hosts(names, where)
            return []  # [INFO], as a program's log has it
    if sum(":" in line for line in shown) < len(shown) / 2:
        return []
    tasks = {number: match for number in filled if (match := _TASK.match(lines[number]))}
    if len({_task(match) for match in tasks.values()}) > 1 and len(tasks) >= _PREFIXED * len(filled):
        of_tasks: dict[str, list[str]] = {}
        for number, match in tasks.items():
            of_tasks.setdefault(_task(match), [""] * len(lines))[number] = lines[number][match.end() :]
        return [Passage("", own, own, copy={"task": task}) for task, own in of_tasks.items()]
    return _by_label(lines, filled, _PREFIX)


def _by_label(lines: list[str], filled: Sequence[int], form: re.Pattern[str]) -> list[Passage]:
    """Sections by the name that a form of labels has before almost every filled line."""
    found = {number: match for number in filled if (match := form.fullmatch(lines[number]))}
    names = Counter(match[1] for match in found.values())
    # a task's number is no node, and a tool's own words before colons are many with a line each
    often = {name for name, count in names.items() if count > 2 and not name.isdecimal()}
    prefixed = {number: match for number, match in found.items() if match[1] in often}
    if not prefixed or len(prefixed) < _PREFIXED * len(filled):
        return []
    of_nodes: dict[str, list[str]] = {}
    for number, match in prefixed.items():
        of_nodes.setdefault(path_fields.stem(match[1]), [""] * len(lines))[number] = match[2] or ""
    said = "the name before each line"
    counted = {name: match for name in of_nodes if (match := _COUNTED.fullmatch(name))}
    numbers = sorted(int(match[2]) for match in counted.values())
    if numbers == [*range(len(of_nodes))] and len({match[1] for match in counted.values()}) > 1:
        return [
            Passage(counted[name][1], own, own, copy={"task": counted[name][2]}, source=said)
            for name, own in of_nodes.items()
        ]
    return [Passage(node, own, own, source=said) for node, own in of_nodes.items()]


def _task(match: re.Match[str]) -> str:
    return match[1] or match[2]


def _by_rules(lines: list[str], where: str) -> list[Passage]:
    """Sections of a text that dshbak, clush -b or tail gathered. Raises NodeprintError for words between rules that may
    be no hosts: scripts print such headings, too."""
    starts: list[tuple[int, int, list[str], str]] = []
    for number, line in enumerate(lines):
        before, after = lines[number - 1] if number else "", lines[number + 1] if number + 1 < len(lines) else ""
        if _RULE.fullmatch(before) and _RULE.fullmatch(after):
            names = _COUNT.sub("", line.strip())
            if " " in names:  # a heading of something else, whose lines are nobody's
                return []
            starts.append((number - 1, number + 2, _expanded(names), ""))
        elif tail := _TAIL.fullmatch(line):
            starts.append((number, number + 1, [""], tail[1]))
    named = [name for *_, names, path in starts for name in names if not path]
    if len({*named}) > 1 and not host_words.are_hosts(named):
        shown = " and ".join(printable(name, 30) for name in host_words.distinct(named)[:2])
        what = f"rules separate {shown}, and nothing says that these are hosts"
        raise NodeprintError(what, where=where, advice="gather outputs by pdsh without dshbak, or by tail -n +1")
    ends = [*(begin for begin, *_ in starts[1:]), len(lines)]
    return [
        Passage(name, _between(lines, begin, end), lines, path, source="" if path else "the headings of dshbak")
        for (_, begin, names, path), end in zip(starts, ends, strict=False)
        for name in names
    ]


def _between(lines: Sequence[str], begin: int, end: int) -> list[str]:
    return ["" if number < begin or number >= end else line for number, line in enumerate(lines)]


def _by_headings(lines: list[str], where: str) -> list[Passage]:
    """Sections of a text with a line before each result that names its host. The text is one section if no form of such
    lines names two hosts."""
    forms: dict[str, dict[int, str]] = {}
    keyed: set[str] = set()
    for number in _matching(lines, _MAY_NAME):
        line = lines[number]
        for form, name, is_keyed in _namings(lines, number, line.strip()):
            forms.setdefault(form, {})[number] = name
            keyed |= {form} if is_keyed else set()
    several = {form: own for form, own in forms.items() if len({*map(_short, own.values())}) > 1}
    listed = [form for form, own in several.items() if _are_listed(lines, own)]
    several = {
        form: own
        for form, own in several.items()
        if form not in listed and (form in keyed or host_words.are_hosts([*own.values()]))
    }
    if not several:
        return [Passage("", lines, lines, listed=tuple(name for form in listed for name in forms[form].values()))]
    form, headings = min(several.items(), key=lambda item: (min(item[1]), -len(item[1])))
    starts = sorted(headings)
    ends = [*starts[1:], len(lines)]
    out = [Passage("", _between(lines, 0, starts[0]), lines)]
    for begin, end in zip(starts, ends, strict=True):
        name = headings[begin]
        inside = {own[at] for own in several.values() for at in own if begin <= at < end}
        if {*map(_short, inside)} != {_short(name)}:
            raise several_hosts(sorted(inside), where)
        full = max((*inside, name), key=len)
        out.append(Passage(full, _between(lines, begin, end), lines, source=f"the lines `{form}`"))
    return out


#: All digits as one.
_DIGITS = bytes.maketrans(b"123456789", b"000000000")


def form_of(line: str) -> bytes:
    """A line with all digits alike: a log has many lines and few forms."""
    return line.encode().translate(_DIGITS)


def _matching(lines: Sequence[str], pattern: re.Pattern[str]) -> list[int]:
    """The numbers of the short lines in which a pattern is found, which is looked for once in each form."""
    known: dict[bytes, bool] = {}
    out = []
    for number, line in enumerate(lines):
        form = form_of(line)
        if form not in known:
            known[form] = len(line) < _LONGEST and pattern.search(line) is not None
        if known[form]:
            out.append(number)
    return out


def _short(name: str) -> str:
    first = name.partition(".")[0].lower()
    return name if first.isdecimal() else first


def _are_listed(lines: Sequence[str], headings: Collection[int]) -> bool:
    """Whether one heading follows another with nothing between: they list hosts, and begin no output of each."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return any(one in headings and two in headings for one, two in pairwise(filled))


def _may_be_numa_node(line: str, name: str) -> bool:
    """Whether a line such as `node=0` names a part of a node as well as a host."""
    return name.isdecimal() and line.lower().startswith("node")


def _namings(lines: Sequence[str], number: int, line: str) -> Iterator[tuple[str, str, bool]]:
    """The hosts that a line may name, with the form of the line. A key or a command may say that it is a host. In the
    form, NAME stands for the host."""
    if key := _HOST.fullmatch(line):
        name = key[1] or key[2]
        if not _may_be_numa_node(line, name):
            yield f"{line.removesuffix(name)}NAME", name, True
        return
    if number and _HOSTNAME.fullmatch(lines[number - 1].strip()) and re.fullmatch(_NAME, line):
        yield "hostname: NAME", line, True
        return
    for command in _COMMANDS:
        if match := command.fullmatch(line):
            yield f"{line[: match.start(1)]}NAME{line[match.end(1) :][:20]}".strip(), match[1], True
            return
    after = next((text for text in lines[number + 1 : number + 3] if text.strip()), "")
    if (minion := _MINION.fullmatch(line)) and after.startswith("    "):
        yield "NAME:", minion[1], False
        return
    words = line.split()
    names = [path_fields.stem(word.strip(_SIGNS + ".")) for word in words[: _MOST_WORDS + 1]]
    hosts = [name for name in names if re.fullmatch(_NAME, name) and host_words.is_host(name)]
    if len(words) > _MOST_WORDS or len({*hosts}) != 1:  # a line with two names is of a pair
        return
    for at, (word, name) in enumerate(zip(words, names, strict=True)):
        if name in hosts and (not at or not _PART.fullmatch(words[at - 1])):
            form = " ".join([*words[:at], word.replace(name, "NAME"), *words[at + 1 :]])
            yield re.sub(r"\d+", "N", form), name, False


def by_copies(section: Passage) -> Iterator[Passage]:
    """A node's section by the GPU or NUMA node that a line before each result names; itself if there are none."""
    named = {
        number: (_part(match[1] or "gpu"), match[2] or match[4])
        for number, line in enumerate(section.lines)
        if (match := _COPY.fullmatch(line.strip())) and len(_COPIES.findall(line)) < 2
    }
    kinds = {kind for kind, _ in named.values()}
    if section.copy or len(kinds) != 1 or len({*named.values()}) < 2 or _are_listed(section.lines, named):
        yield section
        return
    starts = sorted(named)
    yield replace(section, lines=_between(section.lines, 0, starts[0]))
    for begin, end in zip(starts, [*starts[1:], len(section.lines)], strict=True):
        kind, index = named[begin]
        yield replace(section, lines=_between(section.lines, begin, end), copy={kind: index})


def names_copy(line: str) -> bool:
    """Whether a line names a GPU, a NUMA node or a rank."""
    return _COPY.fullmatch(line.strip()) is not None


def _part(word: str) -> str:
    """The part of a node that a word means: CUDA and HIP call a GPU a device."""
    plain = word.lower().replace(" ", "").removesuffix("node")
    return "gpu" if plain in ("device", "gcd") else plain


def host(
    section: Passage, results: int, own: Collection[int], where: str, *, is_stated: bool, may_span_nodes: bool
) -> str:
    """The host that a section names, empty where it names none. It has so many `results`, whose figures are in its
    `own` lines (from 1). If the user says whose it is (`is_stated`), lists of hosts are not looked for. A single result
    next to such a list is of the host that is named, unless its benchmark may span nodes.

    Raises NodeprintError where it names several hosts: nobody knows which figures are whose.
    """
    foreign = [
        line.strip() for number, line in enumerate(section.lines, start=1) if number not in own and len(line) < _LONGEST
    ]
    texts = {number: foreign[number] for number in _matching(foreign, _MAY_NAME)}
    stated = _stated(texts)
    if len(stated) > 1:
        raise several_hosts(stated, where)
    if is_stated:
        return stated[0] if stated else ""
    listed = host_words.distinct([*section.listed, *(name for text in texts.values() for name in _listed(text))])
    listed = listed if len(listed) > 1 else _bare_list([*texts.values()])
    others = [name for name in listed if name not in stated]
    is_of_job = results > 1 or may_span_nodes
    if others and (is_of_job or not stated):
        raise several_hosts([*stated, *others], where)
    counts = [int(match[1]) for text in texts.values() if (match := _NUMBER_OF_HOSTS.fullmatch(text))]
    number_of_hosts = max(counts, default=1)
    if number_of_hosts > 1 and is_of_job:
        what = f"a job on {number_of_hosts} nodes, and nothing marks which result is whose"
        raise NodeprintError(what, where=where, advice=GATHER)
    return stated[0] if stated else ""


def several_hosts(names: Sequence[str], where: str) -> NodeprintError:
    """The rejection of a text in which it is not stated whose each result is."""
    shown = ", ".join(printable(name, 40) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return NodeprintError(
        f"several hosts are named ({shown}{more}), and nothing marks which figures are whose",
        where=where,
        advice=GATHER,
    )


def missing_heading(counts: Sequence[tuple[str, int]], where: str) -> NodeprintError | None:
    """The rejection of a text where a line with a name has more results after it than most have: another may be
    missing. `counts` has the name and the results of each; None if all are alike."""
    usual = Counter(count for _, count in counts).most_common(1)[0][0] if counts else 0
    name, most = max(counts, key=lambda pair: pair[1], default=("", 0))
    if most <= usual:
        return None
    what = f"{most} results after the line that names {printable(name, 40)}, and {usual} after others"
    advice = "a line with a name may be missing; name the host before each result"
    return NodeprintError(what, where=where, advice=advice)


def _stated(lines: Mapping[int, str]) -> list[str]:
    """The hosts that lines name by a key; numbers alone count where there are no names."""
    found, begun = [], set()
    for number, line in lines.items():
        if match := _HOST.fullmatch(line):
            name = match[1] or match[2]
            key = line.removesuffix(name)
            if _may_be_numa_node(line, name):
                continue
            if number < _FIRST or key in begun or {*":=", *"0123456789"} & {*line}:
                found.append(name)
                begun.add(key)
    names = [name for name in found if not name.isdecimal()]
    by_short = {name.partition(".")[0].lower(): name for name in reversed(names or found)}  # a domain may follow
    return list(reversed(by_short.values()))


def _listed(line: str) -> list[str]:
    match = _HOSTS.fullmatch(line)
    if match and (" " not in match[1] or {*":="} & {*line}):
        return [name for part in match[1].split() for name in _expanded(part)]
    if many := _OPTION.search(line):
        return _expanded(many[1])
    named = host_words.distinct([name for name in re.findall(_NAME, line) if host_words.is_host(name)])
    is_list = _LISTS.search(line) and len({re.sub(r"\d+", "", name) for name in named}) == 1
    return named if len(named) > 1 and (is_list or host_words.are_hosts(named)) else []


def _bare_list(lines: Sequence[str]) -> list[str]:
    """The hosts of a list with a name a line, as a job's file of nodes is; none of fewer than two."""
    names = host_words.distinct([line for line in lines if host_words.is_numbered(line)])
    return names if len(names) > 1 else []


def _expanded(text: str) -> list[str]:
    """The nodes of a folded list, as dshbak -c has them."""
    try:
        return list(NodeSet(text)) or [text]
    except NodeSetException:
        return [text]
