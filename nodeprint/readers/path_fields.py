"""Find the node, run, job, time, and copy (such as a GPU) of results in the paths of their files.

Paths are split at separators into columns. A word in front of the values (`iter-3`, `gpu0`), their type (a date, an
identifier) or the form of hosts' names states a column's meaning. Nothing is guessed: a column with no meaning or two
is rejected with the readings that fit, and a pattern states the right one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import host_words, node_pairs
from nodeprint.settings.texts import say

_ENDINGS = (".gz", ".xz", ".txt", ".log", ".out", ".json", ".jsonl", ".csv", ".dat", ".result", ".results")
_DATE = (
    r"(?<!\d)20\d\d-?(?:0\d|1[0-2])-?[0-3]\d"
    r"(?:[T_ -]?[0-2]\d[:.h-]?[0-5]\d(?:[:.m-]?[0-5]\d)?(?:Z|[+-]\d{4})?)?(?!\d)"
)
#: The parts of such a date.
_PARTS_OF_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[T_ -]?(\d\d)[:.h-]?(\d\d)(?:[:.m-]?(\d\d))?(Z|[+-]\d{4})?)?")
_ADDRESS = r"ip(?:-\d{1,3}){4}(?![\d-])|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"
_TOKEN = re.compile(
    rf"(?P<date>{_DATE})|(?P<address>{_ADDRESS})|(?P<sign>[-_./+@=~,:\s()\[\]]+)|(?P<word>[^-_./+@=~,:\s()\[\]]+)"
)
_GLUED = re.compile(r"([A-Za-z]+)(\d+)")
#: Groups of nodes that are a part of their names, as in rack1-node7.
_RACK = re.compile(r"(?:rack|row|cabinet|chassis|island)\d+", re.IGNORECASE)
_IDENTIFIER = re.compile(r"(?=.*\d)[0-9a-f]{8,}|\d{4,}", re.IGNORECASE)
#: By axis the words in front of its number, or the folder of its values.
_WORDS: Mapping[str, re.Pattern[str]] = {
    axis: re.compile(words)
    for axis, words in {
        "run": host_words.RUN,
        "job": r"jobs?|jobid|slurm|pbs|lsf|sge",
        "node": r"node(?:name)?|host(?:name)?|server|machine|compute|cn|nid",
        "gpu": r"gpus?|dev(?:ice)?|gcd",
        "rank": r"ranks?|proc",
        "numa": r"numa|domain",
        "socket": r"socket",
        "cpu": r"cpu",
        "core": r"core",
    }.items()
}
_PARTS = ("gpu", "rank", "numa", "socket", "cpu", "core")
#: What a field of a pattern stands for at its shortest and at its longest: a name without a folder, or one part of it.
_SHORTEST = {"node": r"([^/]+?)", "peer": r"([^/]+?)", "*": r"[^/]*"}
_LONGEST = {"node": r"([^/]+)", "peer": r"([^/]+)", "*": r"[^/]*?"}
_PART = r"([^/._-]+)"
#: A time has separators in it: where a date fits, it is the field.
_TIME = rf"((?>{_DATE}|[^/._-]+))"
_FIELD = re.compile(r"\{(\w+)\}")
#: What a proposed pattern has for a part of unknown meaning: the user writes an axis in its place.
UNKNOWN = "{?}"


@dataclass(frozen=True)
class PathFields:
    """The axes that paths state: by path its `values` by axis, and by axis the `sources`, the words for what states
    it."""

    values: Mapping[str, Mapping[str, str]]
    sources: Mapping[str, str] = field(default_factory=dict)


#: What the kind of a column states: a count is of runs, where each node has all numbers.
_AXIS_OF_KIND = {"date": "time", "address": "node", "count": "run"}


@dataclass(frozen=True)
class _Column:
    """A part in which paths differ: its place, its value in each, the constant word in front of it, and its kind. If it
    is of hosts, `names` are their full names."""

    folder: int
    token: int
    values: tuple[str, ...]
    names: tuple[str, ...]
    word: str
    kind: str

    @property
    def axis(self) -> str:
        """The axis that its word or type states; "id" for an identifier, empty where nothing does."""
        if self.kind in _AXIS_OF_KIND:
            return _AXIS_OF_KIND[self.kind]
        glued = {match[1].lower() for value in self.values if (match := _GLUED.fullmatch(value))}
        is_glued = len(glued) == 1 and all(map(_GLUED.fullmatch, self.values))
        is_number = all(map(str.isdecimal, self.values))
        word = next(iter(glued)) if is_glued else self.word if is_number else ""
        named = next((axis for axis, words in _WORDS.items() if words.fullmatch(word)), "")
        distinct = len({*self.values}) == len(self.values)
        are_counts = named == "node" and host_words.are_sizes(self.values)  # node1, node2 and node4
        is_padded = any(re.search(r"(?<!\d)0\d", value) for value in self.values)  # gpu-01 may be a node
        if named not in ("", "job"):
            return "" if are_counts or (is_padded and named in _PARTS) else named
        if distinct and all(map(_IDENTIFIER.fullmatch, self.values)) and not host_words.are_sizes(self.values):
            return "id"
        if _WORDS["node"].fullmatch(self.word) and all(map(host_words.may_be_host, self.values)):
            return "node"
        return named

    @property
    def are_hosts(self) -> bool:
        """Whether its names have the form of hosts' names."""
        return host_words.are_hosts(self.names)

    def number(self, path: int) -> str:
        """The value without the word that is glued to it."""
        match = _GLUED.fullmatch(self.values[path])
        return match[2] if match else self.values[path]


def read_paths(
    paths: Sequence[str], source: str, *, pattern: str = "", named: Mapping[str, str] | None = None
) -> PathFields:
    """The axes of each path below a directory, from the fields of a `pattern` or else from the parts in which paths
    differ. `named` has the nodes that texts state, by path.

    Raises NodeprintError if the pattern does not fit, or if it is not stated what a part means.
    """
    unique = host_words.distinct(paths)
    if pattern:
        return _by_pattern(unique, pattern, source, has_node=bool(named))
    if len(unique) == 1:
        return PathFields({unique[0]: {}}) if named else _by_name(unique[0], source)
    return _by_columns(unique, source, named or {})


def _by_name(path: str, source: str) -> PathFields:
    """The node of a single path, if one part of it has the form of a host's name. Any other word may be of a job on
    several nodes."""
    row = _folders(path)
    whole = ["".join(text for _, text in tokens) for tokens in row]
    folder_of = {name: folder for folder, name in enumerate(whole) if host_words.are_hosts([name])} or {
        _full_names([row], folder, token, token)[0]: folder
        for folder, tokens in enumerate(row)
        for token, (kind, text) in enumerate(tokens)
        if kind != "sign" and host_words.are_hosts([text])
    }
    if len(folder_of) != 1:
        advice = "print `hostname: NAME` in it, or state {node} by --path if it is of one node"
        raise NodeprintError("nothing states the node of its result", where=source, key="--path", advice=advice)
    name, folder = next(iter(folder_of.items()))
    return PathFields({path: {"node": name}}, {"node": _place(folder, [row])})


def stem(name: str) -> str:
    """A file's name without its endings."""
    while (ending := next((ending for ending in _ENDINGS if name.lower().endswith(ending)), None)) and name != ending:
        name = name[: -len(ending)]
    return name


def fields(pattern: str, option: str) -> list[str]:
    """The axes that a pattern states. Raises NodeprintError if it has one twice, or a part that is still unknown."""
    names = _FIELD.findall(pattern)
    shown = printable(pattern, 60)
    if UNKNOWN in pattern:
        advice = "write node, run, job or a component such as gpu in its place"
        raise NodeprintError(f"{shown} has {UNKNOWN}", key=option, advice=advice)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        advice = "write each field once, and * for the rest"
        raise NodeprintError(f"{shown} has {{{twice}}} twice", key=option, advice=advice)
    return names


def _by_pattern(paths: Sequence[str], pattern: str, source: str, *, has_node: bool) -> PathFields:
    names = fields(pattern, "--path")
    if "node" not in names and not has_node:
        raise NodeprintError("has no {node}", key="--path", advice="write it once, as 'stream-{node}-run{run}.log'")
    shortest, longest = (_matches(_expression(pattern, meant), paths) for meant in (_SHORTEST, _LONGEST))
    twofold = next((path for path in shortest if shortest[path] != longest[path]), None)
    if twofold is not None:
        ways = [
            printable(value, 40)
            for one, two in zip(shortest[twofold], longest[twofold], strict=True)
            if one != two
            for value in (one, two)
        ]
        raise NodeprintError(
            f"fits {printable(twofold, 60)} in two ways ({' and '.join(ways[:2])})",
            where=source,
            key="--path",
            advice="write more of what stands beside the field",
        )
    other = next((path for path in paths if path not in shortest), None)
    if other is not None:
        which = "fits no file, as" if not shortest else "does not fit"
        raise NodeprintError(
            f"{which} {printable(other, 60)}",
            where=source,
            key="--path",
            advice="write a file's path with {node} and other fields for its parts, and * for other text that varies",
        )
    values = {path: dict(zip(names, found, strict=True)) for path, found in shortest.items()}
    values = {path: own | {"time": _iso(own["time"])} if "time" in own else own for path, own in values.items()}
    pair = next((own["node"] for own in values.values() if host_words.pair(own.get("node", ""))), "")
    if pair:
        advice = "state the second host as {peer}, or write only the node's own part as {node}"
        what = f"takes {printable(pair, 60)} for a node, but it names two hosts"
        raise NodeprintError(what, where=source, key="--path", advice=advice)
    _see_whether_unique(values, source) if "node" in names else None
    return PathFields(values, dict.fromkeys(names, "--path"))


def _iso(text: str) -> str:
    """A date in a name in ISO 8601; other text as it is."""
    date = _PARTS_OF_DATE.fullmatch(text)
    if date is None:
        return text
    clock = f"T{date[4]}:{date[5]}:{date[6] or '00'}{date[7] or ''}" if date[4] else ""
    return f"{date[1]}-{date[2]}-{date[3]}{clock}"


def _expression(pattern: str, meant: Mapping[str, str]) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\}|\*)", pattern)
    known = {"time": _TIME, **meant}
    written = (
        known.get(part.strip("{}"), _PART) if _FIELD.fullmatch(part) else known["*"] if part == "*" else re.escape(part)
        for part in parts
    )
    return re.compile("(?:.*/)?" + "".join(written))


def _matches(expression: re.Pattern[str], paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    return {path: match.groups() for path in paths if (match := expression.fullmatch(path))}


def _see_whether_unique(values: Mapping[str, Mapping[str, str]], source: str) -> None:
    """Raise NodeprintError if two files have the same values in all axes: one may be a copy, or an axis is missing."""
    seen: dict[frozenset[tuple[str, str]], str] = {}
    for path, of_path in values.items():
        other = seen.setdefault(frozenset(of_path.items()), path)
        if other != path and of_path.keys() - {"node"}:
            what = f"{printable(other, 60)} and {printable(path, 60)} have the same {', '.join(of_path)}"
            raise NodeprintError(what, where=source, key="--path", advice="state the part that differs, as {run}")


def _by_columns(paths: Sequence[str], source: str, named: Mapping[str, str]) -> PathFields:
    _see_whether_copied(paths, source)
    rows = [_folders(path) for path in paths]
    columns = _columns(rows)
    if columns is None:
        two = f"{printable(paths[0], 40)} and {printable(_deepest(paths), 40)}"
        what = f"its files are in directories of different depth, as {two}"
        if named and len({named[path] for path in paths}) == len(paths):
            return PathFields({path: {} for path in paths})
        advice = "state the node's part as {node}, and others as * or the field that they are"
        raise NodeprintError(what, where=source, key="--path", advice=advice)
    columns = _with_count(rows, columns)
    if named:
        nodes, used, where = [named[path] for path in paths], list[_Column](), ""
    else:
        nodes, used, where = _ends(rows, columns) or _nodes(rows, columns, paths, source)
    rest = [column for column in columns if column not in used and not _follows(column, nodes)]
    unknown = [column for column in rest if not column.axis or column.axis == "node"]
    unknown += [column for column in rest if column.kind == "count" and not _cross([tuple(nodes), column.values])]
    if unknown:
        raise _unexplained(rows, columns, unknown, used, paths, source)
    values = [_axes(rest, at) for at in range(len(paths))]
    ordered = _with_runs(nodes, values)
    out = {path: {"node": node, **own} for path, node, own in zip(paths, nodes, ordered, strict=True)}
    _see_whether_all_differ(out, source)
    sources = {axis: _words_for(columns_of, rows) for axis, columns_of in _by_axis(rest).items()}
    if "run" not in sources and any("run" in own for own in ordered):
        kinds = {"time": "times", "id": "numbers", "job": "jobs"}
        by = next(word for axis, word in kinds.items() if axis in sources)
        sources = {axis: text for axis, text in sources.items() if axis not in kinds}
        sources["run"] = say("read", "order", of=by)
    if where:
        sources = {"node": where, **sources}
    sources.pop("id", None)
    return PathFields({path: _without(own, "node") if named else _with_peer(own) for path, own in out.items()}, sources)


def _see_whether_copied(paths: Sequence[str], source: str) -> None:
    """Raise NodeprintError if a file's name is another's with something behind it, as cn001.log.bak and cn001-old.log.
    Nothing says whether that is another run, or is to be ignored."""
    stems = {stem(path): path for path in paths}
    for path in paths:
        own = stem(path)
        cuts = (own[:at] for at in range(len(own) - 1, own.rfind("/") + 1, -1) if own[at] in ".-_~ (")
        other = next((stems[cut] for name in cuts for cut in (name, stem(name)) if cut in stems and cut != own), None)
        if other is not None:
            what = f"{printable(path, 60)} has the name of {printable(other, 60)} and more"
            advice = "move one of them, or state {node} and {run}"
            raise NodeprintError(what, where=source, key="--path", advice=advice)


def _without(values: Mapping[str, str], axis: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if name != axis}


#: Tokens of a path: by folder the kind and the text of each; the last folder is the file's stem.
_Folder = list[tuple[str, str]]


def _folders(path: str) -> list[_Folder]:
    return [[(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(part)] for part in stem(path).split("/")]


def _deepest(paths: Sequence[str]) -> str:
    return max(paths, key=lambda path: (path.count("/"), path))


def _columns(rows: Sequence[list[_Folder]]) -> list[_Column] | None:
    """The columns in which paths differ; None if they are in directories of different depth. Parts of a directory whose
    number differs are made one column, in place: a name may have hyphens."""
    if len({*map(len, rows)}) > 1:
        return None
    out: list[_Column] = []
    for folder in range(len(rows[0])):
        shapes = {tuple(kind if kind != "sign" else text for kind, text in row[folder]) for row in rows}
        if len(shapes) > 1:
            _make_one(rows, folder)
        for token, (kind, _) in enumerate(rows[0][folder]):
            values = tuple(row[folder][token][1] for row in rows)
            if kind != "sign" and len({*values}) > 1:
                names = tuple(_full_names(rows, folder, token, token))
                out.append(_Column(folder, token, values, names, _word_before(rows, folder, token), kind))
    return out


def _make_one(rows: Sequence[list[_Folder]], folder: int) -> None:
    """Join the tokens of a directory between those that begin and those that end it in all paths."""
    own = [row[folder] for row in rows]
    shortest = min(map(len, own))
    first = next((at for at in range(shortest) if len({tuple(row[at]) for row in own}) > 1), shortest)
    last = next(
        (at for at in range(shortest - first) if len({tuple(row[-1 - at]) for row in own}) > 1), shortest - first
    )
    if any(first + last >= len(row) for row in own):
        first = last = 0
    for row in rows:
        tokens = row[folder]
        middle = "".join(text for _, text in tokens[first : len(tokens) - last])
        row[folder] = [*tokens[:first], ("word", middle), *tokens[len(tokens) - last :]]


def _with_count(rows: Sequence[list[_Folder]], columns: Sequence[_Column]) -> list[_Column]:
    """The columns; the only one that may count runs is marked. It counts from 1 on, as GPUs do not, and is a whole name
    of a directory or file. A column that states runs, jobs or times leaves no need of it."""
    if any(column.axis in ("run", "job", "time", "id") for column in columns):
        return list(columns)
    counts = [
        column for column in columns if not column.axis and _counts(column.values) and len(rows[0][column.folder]) == 1
    ]
    return [replace(column, kind="count") if [column] == counts else column for column in columns]


def _counts(values: Sequence[str]) -> bool:
    numbers = sorted({int(value) for value in values}) if all(map(str.isdecimal, values)) else []
    return len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1))


def _word_before(rows: Sequence[list[_Folder]], folder: int, token: int) -> str:
    """The constant word in front of a token, or the name of the directory above; empty if there is none."""
    if token:
        before = {row[folder][token - 2][1].lower() for row in rows} if token > 1 else set()
    else:
        before = {row[folder - 1][-1][1].lower() for row in rows} if folder else set()
    return next(iter(before)) if len(before) == 1 and next(iter(before)).isalpha() else ""


def _follows(column: _Column, nodes: Sequence[str]) -> bool:
    """Whether a column has one value on each node: a rack or a job of its own distinguishes nothing of the node."""
    return len({*zip(nodes, column.values, strict=True)}) == len({*nodes})


def _nodes(
    rows: Sequence[list[_Folder]], columns: Sequence[_Column], paths: Sequence[str], source: str
) -> tuple[list[str], list[_Column], str]:
    """The node of each path, the columns that it is in, and the words for the place. Raises NodeprintError unless one
    reading fits."""
    stated = [column for column in columns if column.axis == "node"]
    hosts = stated or [column for column in columns if not column.axis and column.are_hosts]
    finest = [column for column in hosts if all(other is column or _follows(other, column.values) for other in hosts)]
    if finest:
        column = finest[0]
        return _full_names(rows, column.folder, column.token, column.token), [column], _place(column.folder, rows)
    whole = [] if hosts else list(_whole_names(rows, columns))
    if len(whole) == 1:
        names, used = whole[0]
        return names, used, _place(used[0].folder, rows)
    unknown = [column for column in columns if not column.axis or column in hosts]
    raise _unexplained(rows, columns, unknown, [], paths, source)


def _ends(rows: Sequence[list[_Folder]], columns: Sequence[_Column]) -> tuple[list[str], list[_Column], str] | None:
    """The pair of nodes of each path, if a directory or file is named after two hosts with the same letters."""
    for column in columns:
        if column.axis not in ("", "node") or not host_words.are_hosts(column.values):
            continue
        letters = {*map(_letters, column.values)}
        ends = [
            token
            for token in range(len(rows[0][column.folder]))
            if {_letters(row[column.folder][token][1]) for row in rows} == letters
        ]
        if len(ends) == 2 and len(letters) == 1:
            names = [tuple(row[column.folder][token][1] for token in ends) for row in rows]
            used = [own for own in columns if own.folder == column.folder and own.token in ends]
            if all(first != second for first, second in names):
                return [node_pairs.called(*pair) for pair in names], used, _place(column.folder, rows)
    return None


def _letters(word: str) -> str:
    return word.rstrip("0123456789") if word[-1:].isdecimal() else "-"


def _with_peer(values: Mapping[str, str]) -> dict[str, str]:
    node, peer = node_pairs.nodes_of_name(values["node"])
    return {**values, "node": node, **({"peer": peer} if peer else {})}


def _whole_names(
    rows: Sequence[list[_Folder]], columns: Sequence[_Column]
) -> Iterator[tuple[list[str], list[_Column]]]:
    """Names of hosts that have separators in them, as `gpu-a-01`: the unexplained columns of a directory, with the text
    between them. If two of them cross and no other column counts runs, one of them may count runs."""
    counts_runs = any(column.axis in ("run", "job", "time", "id") for column in columns)
    for folder in range(len(rows[0])):
        parts = [column for column in columns if column.folder == folder and not column.axis]
        if not parts:
            continue
        first, last = parts[0].token, parts[-1].token
        inside = [column for column in columns if column.folder == folder and first < column.token < last]
        names = _full_names(rows, folder, first, last)
        is_name = host_words.are_hosts(names) and all(column in parts for column in inside)
        if is_name and (len(parts) == 1 or counts_runs or not _cross([part.values for part in parts])):
            yield names, parts


def _full_names(rows: Sequence[list[_Folder]], folder: int, first: int, last: int) -> list[str]:
    """The names between two tokens of a directory, with a word in front of a number, and the domain behind."""
    own = rows[0][folder]
    in_full = all(map(host_words.is_numbered_host, (row[folder][first][1] for row in rows)))
    while first > 1 and own[first - 1][1] in ("-", "_"):
        is_group = all(_RACK.fullmatch(row[folder][first - 2][1]) for row in rows)
        if not is_group and (in_full or not _is_word_of_host(rows, folder, first - 2)):
            break
        first -= 2
    while last + 2 < len(own) and own[last + 1][1] == "." and _is_word_of_host(rows, folder, last + 2):
        last += 2
    return ["".join(text for _, text in row[folder][first : last + 1]) for row in rows]


def _is_word_of_host(rows: Sequence[list[_Folder]], folder: int, token: int) -> bool:
    """Whether a token is the same letters in all paths, and not the name of a tool, a job or a run."""
    words = {row[folder][token][1] for row in rows}
    word = next(iter(words)).lower()
    return len(words) == 1 and word.isalpha() and not host_words.is_of_files(word)


def _cross(columns: Sequence[Sequence[str]]) -> bool:
    """Whether each value of a column occurs with each of the others."""
    return len({*zip(*columns, strict=True)}) == math.prod(len({*values}) for values in columns)


def _place(folder: int, rows: Sequence[list[_Folder]]) -> str:
    return "the file name" if folder == len(rows[0]) - 1 else "the directory name"


def _axes(columns: Sequence[_Column], path: int) -> dict[str, str]:
    out: dict[str, str] = {}
    for column in columns:
        value = column.values[path] if column.kind == "date" else column.number(path)
        out[column.axis] = f"{out[column.axis]} {value}" if column.axis in out else value
    return out


def _by_axis(columns: Sequence[_Column]) -> dict[str, list[_Column]]:
    out: dict[str, list[_Column]] = {}
    for column in columns:
        out.setdefault(column.axis, []).append(column)
    return out


def _words_for(columns: Sequence[_Column], rows: Sequence[list[_Folder]]) -> str:
    """How paths write an axis, as `iter-N`."""
    column = columns[0]
    if column.kind in _AXIS_OF_KIND:
        return _place(column.folder, rows)
    glued = _GLUED.fullmatch(column.values[0])
    if glued:
        return f"`{glued[1]}N`"
    return f"`{column.word}{rows[0][column.folder][column.token - 1][1] if column.token else '/'}N`"


def _with_runs(nodes: Sequence[str], values: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Number the runs of each node by jobs, times and identifiers where no column counts them."""
    if any("run" in own for own in values):
        return [_without(own, "id") for own in values]
    out: list[dict[str, str]] = [{} for _ in values]
    of_nodes: dict[tuple[str, ...], list[int]] = {}
    copies = [{axis: value for axis, value in own.items() if axis not in ("job", "time", "id")} for own in values]
    for at, node in enumerate(nodes):
        of_nodes.setdefault((node, *copies[at].values()), []).append(at)
    for paths in of_nodes.values():
        ordered = sorted(paths, key=lambda at: [_sortable(values[at].get(axis, "")) for axis in ("time", "job", "id")])
        for number, at in enumerate(ordered, start=1):
            out[at] = copies[at] | ({"run": str(number)} if max(map(len, of_nodes.values())) > 1 else {})
    return out


def _sortable(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (0, text)


def _see_whether_all_differ(values: Mapping[str, Mapping[str, str]], source: str) -> None:
    seen: dict[frozenset[tuple[str, str]], str] = {}
    for path, of_path in values.items():
        other = seen.setdefault(frozenset(of_path.items()), path)
        if other != path:
            same = f"the same run of {printable(of_path['node'], 40)}"
            what = f"{printable(path, 60)} and {printable(other, 60)} would be {same}"
            advice = "state {node}, and the part that differs, as {run}"
            raise NodeprintError(what, where=source, key="--path", advice=advice)


def _unexplained(
    rows: Sequence[list[_Folder]],
    columns: Sequence[_Column],
    unknown: Sequence[_Column],
    used: Collection[_Column],
    paths: Sequence[str],
    source: str,
) -> NodeprintError:
    """The rejection of paths with a part of unknown meaning: the part, and the patterns that fit."""
    if not unknown:
        what = f"nothing in the paths of its {len(paths)} files states the node"
        return NodeprintError(
            what, where=source, key="--path", advice="print `hostname: NAME` in each, or state {node}"
        )
    two = list(dict.fromkeys(unknown[-1].values))[:2]
    what = (
        f"its {len(paths)} files differ in {' and '.join(printable(value, 30) for value in two)}, and nothing says"
        " whether this is a node, a run, or a part of a node"
    )
    pattern = _pattern(rows[0], columns, {id(own): _field(own, used, unknown) for own in columns}, paths[0])
    pattern = re.sub(r"(\{node\}.*)\{node\}", r"\1{peer}", pattern)
    hint = "" if used else "print `hostname: NAME` in each, or "
    advice = f"{hint}state it by --path {pattern!r}, with node, run or gpu for ?"
    return NodeprintError(what, where=source, key="--path", advice=advice)


def _field(column: _Column, used: Collection[_Column], unknown: Collection[_Column]) -> str:
    if column in used:
        return "node"
    if column in unknown or not column.axis:
        return UNKNOWN.strip("{}")
    return column.axis if column.axis not in ("id", "time", "job") else "*"


def _pattern(row: Sequence[_Folder], columns: Sequence[_Column], named: Mapping[int, str], path: str) -> str:
    """The pattern that states the meaning of the columns of a path, as `run{run}/{node}.log`."""
    at = {(column.folder, column.token): column for column in columns}
    folders = []
    for folder, tokens in enumerate(row):
        text = ""
        for token, (_, own) in enumerate(tokens):
            column = at.get((folder, token))
            if column is None:
                text += own
                continue
            name = named[id(column)]
            glued = _GLUED.fullmatch(own)
            in_front = glued[1] if glued and name not in ("node", "*") else ""
            text += "*" if name == "*" else f"{in_front}{{{name}}}"
        folders.append(re.sub(r"\*+", "*", text))
    return "/".join(folders) + path[len(stem(path)) :]
