"""Tables as people keep them, of known truth: each is read as it is meant, or rejected with a sentence that helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path

import pandas as pd
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.readers import table_file
from nodeprint.readers.value_table import ValueTable

NODES = [f"cn{number:03}" for number in (1, 2, 3, 10, 11)]
#: The runs of each node: the third is slow.
RUNS = {
    node: [round((3000.0 if at != 2 else 1500.0) + 7.3 * at + 1.9 * run, 1) for run in range(3)]
    for at, node in enumerate(NODES)
}
OTHER = {node: [round(2 * value + 11.7, 1) for value in values] for node, values in RUNS.items()}
#: A statistic of a node's values, each with digits that no other has.
OF: Mapping[str, Callable[[Sequence[float]], float]] = {
    "center": lambda values: values[1],
    "second": lambda values: round(values[1] + 0.21, 2),
    "spread": lambda values: round(1.11 + values[0] % 1.7, 2),
    "least": lambda values: round(values[0] - 3.03, 2),
    "most": lambda values: round(values[2] + 3.07, 2),
    "count": lambda values: 3 + int(values[0]) % 2,
}
#: Values of nodes by metric: of each one or several runs.
Truth = Mapping[str, Mapping[str, Sequence[float]]]
#: Rows of a table, its separator, and what it says; None where it may be read in two ways.
Case = tuple[Sequence[Sequence[object]], str, Truth | None]


def center(runs: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    return {node: [OF["center"](values)] for node, values in runs.items()}


def written(rows: Sequence[Sequence[object]], separator: str) -> str:
    """Rows as a table with this separator; `column` aligns them, `printf` aligns to fixed widths."""
    texts = [[str(cell) for cell in row] for row in rows]
    if separator == "column":
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in texts)
    if "pandas" in separator:
        frame = pd.DataFrame(rows[1:], columns=texts[0])
        if separator == "csv of pandas":
            return str(frame.sort_values(texts[0][0], ascending=False, kind="stable").to_csv())
        frame = frame.set_index(texts[0][0]) if "node as" in separator else frame
        return str(frame.to_string(index="no index" not in separator))
    return "\n".join(separator.join(row) for row in texts)


SEPARATORS = (
    ",", ";", "\t", "|", " ", "column", "pandas", "pandas, no index", "pandas, node as index", "csv of pandas",
)  # fmt: skip


def read(folder: Path, text: str) -> ValueTable | NodeprintError:
    path = folder / "t.txt"
    path.write_text(text + "\n")
    try:
        return table_file.read_table(path)
    except NodeprintError as error:
        return error


def plain(metric: str) -> str:
    """A metric's name without its statistic, unit and spelling."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", metric).lower()
    words = re.findall(r"[a-z]+", re.sub(r"mb/s|mbps", "", text))
    return " ".join(sorted(set(words) & {"triad", "copy"}))


def is_right(figures: ValueTable, truth: Truth) -> bool:
    """Whether a table has the values of the truth and no others."""
    frame = figures.frame
    found: dict[str, dict[str, list[float]]] = {}
    for (metric, node), rows in frame.groupby(["metric", "node"]):
        key = rows["job"].str.zfill(9) + " " + rows["time"] + " " + rows["run"].str.zfill(9)
        ordered = rows.assign(key=key).sort_values("key")
        found.setdefault(plain(str(metric)), {})[str(node)] = [float(value) for value in ordered["value"]]
    names = {name if len(truth) > 1 or name in found else "": values for name, values in truth.items()}
    return found == {name: {node: list(values) for node, values in of.items()} for name, of in names.items()}


def outcome(folder: Path, text: str, truth: Truth | None) -> str:
    """`read` or `rejected`; a wrong reading, or a rejection without a place and a remedy, is a failed assertion."""
    figures = read(folder, text)
    if isinstance(figures, NodeprintError):
        sentence = str(figures)
        assert re.search(r"t\.txt", sentence) and "; " in sentence and "\n" not in sentence, sentence
        return "rejected"
    assert truth is not None, f"read though nothing says how:\n{text}\n{figures.frame}"
    assert is_right(figures, truth), f"misread:\n{text}\n{figures.frame}\n{figures.notes}"
    return "read"


STATISTICS = (
    {"mean": "center", "sd": "spread"},
    {"sd": "spread", "mean": "center", "n": "count"},
    {"mean": "center", "stddev": "spread", "min": "least", "max": "most"},
    {"n": "count", "avg": "center", "std": "spread"},
    {"average": "second", "median": "center", "stdev": "spread", "count": "count"},
    {"p50": "center", "p99": "most"},
    {"min": "least", "median": "center", "max": "most", "p95": "most"},
    {"mean": "center", "cv": "spread", "ci_low": "least", "ci_high": "most"},
    {"Mean": "center", "Std": "spread", "N": "count"},
)
NAMES = (
    "{m}_{s}", "{s}_{m}", "{m} {s}", "{m}.{s}", "{m} ({s})", "{m}_{s} (MB/s)", "{m}_{s}_MBps", "{m}-{s}", "{s}",
    "{m}{S}", "{s}({m})",
)  # fmt: skip


def statistics() -> Iterator[Case]:
    """Wide tables with statistics of one metric or two as columns."""
    for separator, name, chosen, two in product(SEPARATORS, NAMES, STATISTICS, (False, True)):
        metrics = {"triad": RUNS, "copy": OTHER} if two and name != "{s}" else {"triad": RUNS}
        columns = [(metric, word) for metric in metrics for word in chosen]
        head = [name.format(m=metric, s=word, S=word.capitalize()) for metric, word in columns]
        rows = [
            [node, *(OF[chosen[word]](metrics[metric][node]) for metric, word in columns)] for node in reversed(NODES)
        ]
        yield [["node", *head], *rows], separator, {metric: center(of) for metric, of in metrics.items()}


def long_statistics() -> Iterator[Case]:
    """Long tables with statistics as columns, as rows or in the names of metrics."""
    truth = {"triad": center(RUNS), "copy": center(OTHER)}
    for separator, chosen in product(SEPARATORS, STATISTICS):
        both = [(node, metric, of[node]) for node in NODES for metric, of in (("triad", RUNS), ("copy", OTHER))]
        rows = [[node, metric, *(OF[kind](values) for kind in chosen.values())] for node, metric, values in both]
        yield [["node", "metric", *chosen], *rows], separator, truth
        each = [
            (node, metric, word, OF[kind](values)) for node, metric, values in both for word, kind in chosen.items()
        ]
        for column in ("statistic", "stat", "kind"):
            yield [["node", "metric", column, "value"], *each], separator, truth
        named = [(node, f"{metric}_{word}", value) for node, metric, word, value in each]
        yield [["node", "metric", "value"], *named], separator, truth
        counted = [[node, metric, OF["center"](values), OF["spread"](values), 3] for node, metric, values in both]
        yield [["node", "metric", "value", "sd", "n"], *counted], separator, truth
        raw = [[node, OF["center"](RUNS[node]), OF["spread"](RUNS[node]), 3] for node in NODES]
        name = "triad (MB/s)" if separator != " " else "triad"
        yield [["node", name, "sd", "n"], *raw], separator, {"triad": truth["triad"]}


#: What columns of runs are called after, and whether it says that they are runs.
LABELS: Sequence[tuple[Sequence[str], bool]] = (
    (("2026-11-01", "2026-11-02", "2026-11-03"), True),
    (("2026-11-30", "2026-12-01", "2027-01-01"), True),
    (("2026-11-01T08:00", "2026-11-01T09:00", "2026-11-01T10:00"), True),
    (("20261101", "20261102", "20261103"), True),
    (("1", "2", "3"), True),
    (("run1", "run2", "run3"), True),
    (("Run_1", "Run_2", "Run_3"), True),
    (("rep-01", "rep-02", "rep-03"), True),
    (("iteration1", "iteration2", "iteration3"), True),
    (("trial.1", "trial.2", "trial.3"), True),
    (("run9", "run10", "run11"), True),
    (("job4711", "job4712", "job4720"), True),
    (("4711", "4712", "4720"), False),
    (("1", "2", "4"), False),
    (("0", "1", "2"), False),
    (("01.11.2026", "02.11.2026", "03.11.2026"), False),
    (("11/01/2026", "11/02/2026", "11/03/2026"), False),
    (("monday", "tuesday", "wednesday"), False),
    (("week44", "week45", "week46"), False),
    (("run1", "run2", "2026-11-01"), False),
    (("triad_1", "triad_2", "triad_3"), False),
    (("job1_run1", "job1_run2", "job2_run1"), False),
    (("r1", "r2", "r3"), False),
    (("triad", "triad.1", "triad.2"), False),
)


def pivots() -> Iterator[Case]:
    """Tables with runs, jobs or dates as columns."""
    for separator, (labels, is_clear) in product(SEPARATORS, LABELS):
        rows = [[node, *RUNS[node]] for node in reversed(NODES)]
        truth = {"triad": RUNS} if is_clear else None
        yield [["node", *labels], *rows], separator, truth
        with_mean = [[*row, OF["second"](RUNS[str(row[0])]), OF["spread"](RUNS[str(row[0])])] for row in rows]
        yield [["node", *labels, "mean", "sd"], *with_mean], separator, truth
        beside = [[*row, OTHER[str(row[0])][0]] for row in rows]
        yield [["node", *labels, "copy"], *beside], separator, None
        if labels[0] not in ("triad_1", "triad", "job1_run1", "r1"):
            few = [[row[0], row[-1], row[1]] for row in beside]
            yield [["node", "copy", labels[0]], *few], separator, None
        if is_clear:
            long = [[node, metric, *of[node]] for node in NODES for metric, of in (("triad", RUNS), ("copy", OTHER))]
            both = {"triad": RUNS, "copy": OTHER}
            yield [["node", "metric", *labels], *long], separator, both
        if is_clear and not labels[0].isdecimal():
            wide = [[node, *RUNS[node], *OTHER[node]] for node in NODES]
            names = [f"{metric}_{label}" for metric in ("triad", "copy") for label in labels]
            yield [["node", *names], *wide], separator, {"triad": RUNS, "copy": OTHER}


ENDS = (
    ("node1", "node2"), ("hostA", "hostB"), ("host_a", "host_b"), ("src", "dst"), ("source", "destination"),
    ("src_node", "dst_node"), ("from", "to"), ("client", "server"), ("node", "peer"), ("node", "partner"),
    ("sender", "receiver"), ("host", "remote_host"), ("node", "x"), ("Node 1", "Node 2"), ("node", "link"),
)  # fmt: skip
JOINTS = (",", ", ", "--", "->", " -> ", "<->", "-", "_", "/", ":", "+", ";", " ", " to ", "|", "=>", "&", "[]")


def pairs() -> Iterator[Case]:
    """Tables of pairs of nodes, in two columns or in one cell."""
    links = [(a, b, round(RUNS[b][0] + OTHER[a][0], 1)) for a in NODES for b in NODES if a < b]
    truth = {"bw": {f"{a} to {b}": [value] for a, b, value in links}}
    for separator, ends in product(SEPARATORS, ENDS):
        yield [[*ends, "bw"], *links], separator, truth
        yield [[*ends, "metric", "value"], *([a, b, "bw", value] for a, b, value in links)], separator, truth
    for separator, joint, name in product(SEPARATORS, JOINTS, ("node", "nodelist")):
        names = [f"{a[:2]}[{a[2:]},{b[2:]}]" if joint == "[]" else f"{a}{joint}{b}" for a, b, _ in links]
        quoted = [f'"{text}"' if separator in text else text for text in names]
        rows = [[text, value] for text, (_, _, value) in zip(quoted, links, strict=True)]
        yield [[name, "bw"], *rows], separator, truth


def indexes() -> Iterator[Case]:
    """Tables whose rows are numbered or sorted as text, and names with a blank in them."""
    truth = {"triad": center(RUNS)}
    numbers = {"in order": [0, 1, 2, 3, 4], "some left out": [0, 2, 3, 7, 9], "as text": [1, 10, 11, 2, 3]}
    for separator, name, rows in product(SEPARATORS[:4], ("", "Unnamed: 0", "index", "level_0"), numbers.values()):
        lines = [[number, node, truth["triad"][node][0]] for number, node in zip(rows, NODES, strict=True)]
        yield [[name, "node", "triad"], *lines], separator, truth
    for separator, name in product(SEPARATORS, ("Best triad MB/s", "triad rate", "triad (MB/s)")):
        lines = [[node, truth["triad"][node][0], 64 + at] for at, node in enumerate(NODES)]
        yield [["node", name, "Number of Threads"], *lines], separator, truth
        yield [["node", name], *(line[:2] for line in lines)], separator, truth
        if len(separator) == 1:
            yield [["node", name], *([at, *line[:2]] for at, line in enumerate(lines))], separator, None
    for runs in (RUNS, OTHER):
        first = {"triad": {node: values[:1] for node, values in runs.items()}}
        texts = [f"{node}.out:Triad:  {value}  0.028  0.027  0.029" for node in NODES for value in runs[node]]
        yield [[text] for text in texts], "", {"triad": runs}
        yield [[f"run1/{text}"] for text in texts], "", None
        yield [[text.replace(".out", "-1.out")] for text in texts], "", None
        yield [[f"{node}.log:Triad rate: {runs[node][0]} MB/s"] for node in NODES], "", first
        yield [[f"{node}.log:12:Triad = {runs[node][0]}"] for node in NODES], "", first
        yield [[f"{node}.log:Triad 1 2 {runs[node][0]}"] for node in NODES], "", None
        many = pd.DataFrame({"node": [f"cn{at}" for at in range(99)], "triad": [float(at + 1) for at in range(99)]})
        yield [[many]], "", None
        yield [[many.assign(**{f"column {at}": 1.5 for at in range(30)})]], "", None


EVERY: Mapping[str, Callable[[], Iterator[Case]]] = {
    "statistics": statistics,
    "long statistics": long_statistics,
    "pivots": pivots,
    "pairs": pairs,
    "indexes": indexes,
}


def run(folder: Path, kind: str, step: int) -> dict[str, int]:
    """How many of every `step`-th table of a kind were read and rejected."""
    counts = {"read": 0, "rejected": 0}
    for rows, separator, truth in islice(EVERY[kind](), 0, None, step):
        counts[outcome(folder, written(rows, separator), truth)] += 1
    return counts


@pytest.mark.parametrize("kind", EVERY)
def test_some_tables_are_read_as_meant_or_rejected(tmp_path: Path, kind: str) -> None:
    counts = run(tmp_path, kind, {"statistics": 199, "pivots": 113, "long statistics": 67}.get(kind, 41))
    assert sum(counts.values()) >= 3


@pytest.mark.long
@pytest.mark.parametrize(("kind", "tables", "share"), [
    ("statistics", 1900, 0.9), ("long statistics", 600, 0.95), ("pivots", 1000, 0.4), ("pairs", 600, 0.75),
    ("indexes", 130, 0.7),
])  # fmt: skip
def test_every_table_is_read_as_meant_or_rejected(tmp_path: Path, kind: str, tables: int, share: float) -> None:
    counts = run(tmp_path, kind, 1)
    assert sum(counts.values()) >= tables
    assert counts["read"] >= share * sum(counts.values())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("node,triad_min,triad_max\nn1,3,5\nn2,4,6", "line 1: has triad_min, triad_max and no mean or median; add"),
        ("node,triad,mean\nn1,3,5\nn2,4,6", "line 1: the column mean may be of triad, or a metric of its own; call it"),
        ("node,metric,stat,value\nn1,t,min,3\nn1,t,max,5", "line 2: the column stat has min, max and no mean"),
        ("node,bw (MB/s),bw (GB/s)\nn1,3,5", "line 1, column 3: bw appears twice; keep one of the two"),
        ("node,1,2,4\nn1,3,5,7", "line 1, column 2: the columns 1, 2, 4 may be runs, jobs, sizes or components; name"),
        (
            "node,triad,run1\nn1,3,5\nn2,4,6",
            "line 1, column 2: the column triad is beside columns of runs, as run1; give",
        ),
        ("node,run1,run2\nn1,3,x\nn2,4,6", "line 2, column 3: 'x' is no number"),
        ("node,triad_1,triad_2\nn1,3,5", "line 1, column 2: the columns triad_1, triad_2 may be runs or components"),
        ("nodelist,bw\ncn[1-4],3", "line 2, column 1: 'cn[1-4]' is 4 nodes, and no node; give one row per node"),
        (
            "   node  bw\n0   cn1   3\n..  ...  ..\n9   cn9   3",
            "line 3: rows, columns or cells are left out (...); write",
        ),
        ("node Best Rate\ncn1 3\ncn2 4", "line 1, column 2: 3 words in the names (node Best Rate) where lines have 2"),
        ("node Best Rate\n0 cn1 3\n1 cn2 4", "line 1, column 2: numbers are under node, and names of nodes under Best"),
        ("a/cn1.out:Triad: 3 1 1 1", "line 1, column 1: a/cn1.out is named after more or other than a node; give"),
        ("cn1.out:Triad 3 1 1 1\ncn1.out:Rate: 3", "line 1, column 2: Triad 3 1 1 1 is no name with a single value"),
    ],
)
def test_what_may_be_read_in_two_ways_is_rejected(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in str(read(tmp_path, text))


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    figures = read(tmp_path, "node,triad_mean,triad_sd,power_min,power_max\nn1,3,0.1,5,6\nn2,4,0.2,5,7")
    assert isinstance(figures, ValueTable)
    assert figures.notes == (
        "statistics beside the judged value were left out: triad_sd",
        "statistics without a mean or median were left out: power_min, power_max",
    )
    dates = read(tmp_path, ",node,2026-11-01,2026-11-02,mean\n0,n1,3,5,4\n7,n2,4,6,5")
    assert isinstance(dates, ValueTable)
    assert dates.notes == (
        "columns that number the rows were left out: (no name)",
        "statistics beside the judged value were left out: mean",
        "the columns 2026-11-01, 2026-11-02 are taken for runs of one metric",
    )
