"""Tables of every shape give the same figures; a bad one gives a sentence with its line, and never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeprint.errors import NodeprintError
from nodeprint.readers import table_file, table_fleet, value_table
from nodeprint.readers.tool_output import ToolValue
from nodeprint.readers.value_table import ValueTable

LONG = "node,run,metric,unit,value\nn1,1,triad,MB/s,3034.6\nn1,2,triad,MB/s,3010\nn2,1,triad,MB/s,2999.5\n"


def table(folder: Path, text: str | bytes, name: str = "table.csv") -> ValueTable:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return table_file.read_table(path)


def facts(of: ValueTable) -> list[tuple[object, ...]]:
    columns = of.frame[["node", "run", "metric", "unit", "value", *of.parts]]
    return sorted(map(tuple, columns.itertuples(index=False)))


def test_one_table_in_every_form(tmp_path: Path) -> None:
    long = facts(table(tmp_path, LONG))
    assert long[0] == ("n1", "1", "triad", "MB/s", 3034.6)
    for separator, name in ((";", "semicolons.csv"), ("\t", "tabs.tsv"), ("|", "bars.txt")):
        assert facts(table(tmp_path, LONG.replace(",", separator), name)) == long
    wide = "Hostname,Run,triad (MB/s)\nn1,1,3034.6\nn1,2,3010\nn2,1,2999.5\n"
    assert facts(table(tmp_path, wide)) == long
    german = LONG.replace(",", ";").replace("3034.6", "3.034,6").replace("2999.5", "2999,5")
    assert facts(table(tmp_path, german)) == long
    rows = [dict(zip(("node", "run", "metric", "unit", "value"), row, strict=True)) for row in long]
    assert facts(table(tmp_path, "\n".join(map(json.dumps, rows)), "table.jsonl")) == long
    pd.DataFrame(rows).to_parquet(tmp_path / "table.parquet")
    assert facts(table_file.read_table(tmp_path / "table.parquet")) == long
    given_rows = [ToolValue(node=row[0], run=row[1], metric=row[2], unit=row[3], value=row[4]) for row in long]  # type: ignore[arg-type]
    assert facts(value_table.from_values(given_rows, "readers")) == long


def test_runs_without_numbers_are_numbered_by_time_or_line(tmp_path: Path) -> None:
    text = "node,metric,value\nn1,hpl,10\nn2,hpl,11\nn1,hpl,12\n"
    assert [row[:2] for row in facts(table(tmp_path, text))] == [("n1", "1"), ("n1", "2"), ("n2", "1")]
    timed = "node,metric,value,time\nn1,hpl,10,2026-11-02\nn1,hpl,12,2026-11-01\n"
    assert {row[4]: row[1] for row in facts(table(tmp_path, timed))} == {12.0: "1", 10.0: "2"}


def test_a_row_that_is_there_twice_is_no_run(tmp_path: Path) -> None:
    rows = [f"n{node},triad,{3000 + 10 * node + run}.{node}\n" for node in range(4) for run in range(3)]
    doubled = table(tmp_path, "node,metric,value\n" + "".join([*rows[:5], rows[4], *rows[5:]]))
    assert doubled.frame.groupby("node").size().tolist() == [3] * 4
    assert doubled.notes == (
        "a value of triad on n1 appears twice with the same digits, the first in line 7: a copy is not a run",
    )
    rounded = table(
        tmp_path, "node,metric,value\n" + "".join(f"n{n},hpl,1{n}\n" * 2 + f"n{n},hpl,9\n" for n in range(4))
    )
    assert len(rounded.frame) == 12, "runs that are equal everywhere are rounded, which no table says"


def test_remarks_are_no_figures_and_no_parts(tmp_path: Path) -> None:
    wide = table(tmp_path, "node,run,triad,comment\nn1,1,30,\nn1,2,31,2 fans\nn2,1,30,\nn2,2,31,\n")
    assert set(wide.frame["metric"]) == {"triad"} and wide.notes == ()
    long = table(tmp_path, "node,run,metric,value,Notes\nn1,1,triad,30,\nn2,1,triad,31,2 fans\n")
    assert len(long.frame) == 2 and long.parts == ()


def test_parts_are_places(tmp_path: Path) -> None:
    text = "node,metric,value,unit,gpu,direction\n" + "".join(
        f"n{n},copy,{20 + gpu},GB/s,{gpu},{way}\n" for n in (1, 2) for gpu in (0, 1) for way in ("h2d", "d2h")
    )
    (quantity,) = table_fleet.packed_table(table(tmp_path, text), "t", {}).quantities
    assert quantity.dims == ("gpu", "direction")
    assert quantity.place(0) == {"gpu": 0, "direction": "d2h"}
    assert quantity.values.shape == (2, 1, 4)


def test_units_within_a_metric_become_one(tmp_path: Path) -> None:
    of = table(tmp_path, LONG.replace("MB/s,2999.5", "GB/s,2.9995"))
    assert facts(of) == facts(table(tmp_path, LONG))


def test_lines_before_the_names_and_empty_figures_are_said(tmp_path: Path) -> None:
    of = table(tmp_path, "Loading module gcc/12\n# a site's table\n" + LONG + "n3,1,triad,MB/s,\n")
    assert of.unmeasured == ("n3",)
    assert of.notes == (
        "left out before the names of the columns: 1 line",
        "1 of 4 figures are empty, the first in line 7",
    )
    assert {node.name: node.state for node in table_fleet.packed_table(of, "t", {}).nodes}["n3"] == "not measured"


def test_columns_of_words_are_left_out_of_a_wide_table(tmp_path: Path) -> None:
    of = table(tmp_path, "node,triad,status,bios\nn1,3,PASS,1.2\nn2,4,PASS,1.3\n")
    assert sorted(set(of.frame["metric"])) == ["triad"]
    assert of.notes == ("columns without a number were left out: status",)
    assert of.fields == {"n1": {"bios": "1.2"}, "n2": {"bios": "1.3"}}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LONG + "n3,1,triad,MB/s,0\n", "line 5: 0 as a value of triad is not above 0"),
        (LONG + "n3,1,triad,MB/s,-3\n", "line 5: -3 as a value of triad is not above 0"),
        (LONG + "n3,1,triad,MB/s,fast\n", "line 5, column 5: 'fast' is no number"),
        (LONG + "n3,1,triad,MB/s,3,5\n", "line 5, column 6: 6 cells where the names are 5; write decimal points"),
        (LONG + "n3,1,triad\n", "line 5, column 3: 3 cells where the names are 5"),
        (LONG + "N2,2,triad,MB/s,3000\n", "line 5: node N2 is n2 in another case"),
        (LONG + "n2.site.org,2,triad,MB/s,3000\n", "line 5: node n2.site.org is n2 with its domain"),
        (LONG + "n2,1,triad,MB/s,3000\n", "line 5: run 1 of triad on n2 appears twice"),
        (LONG + "n3,1,triad,GHz,3000\n", "line 5: triad has the unit GHz, and MB/s in other lines"),
        (LONG + "n3,1,triad,,3000\n", "line 5: triad has no unit, and MB/s in other lines"),
        (LONG + "n3,1,triad,MB/s,2.99\n", "line 2: 3034.6 of triad on n1 is 1015 times 2.99 of n3"),
        (LONG + ",1,triad,MB/s,3000\n", "line 5: the node has no name"),
        (LONG + 'n3,1,"triad,MB/s,3000\n', "line 5: its quotation marks are not closed"),
        ("name,value\nn1,3\n", "line 1, column 1: no column of nodes among name, value"),
        ("node,metric\nn1,triad\n", "line 1: has a column of metrics and none of values"),
        ("node\nn1\n", "line 1: no column of figures"),
        ("node,host,value\nn1,n1,3\n", "line 1, column 2: host is the second column of the node"),
        ("node,triad,triad\nn1,3,3\n", "line 1, column 3: triad appears twice"),
        ("node,metric,value\n", "has names of columns and no figure"),
        ("node,metric,value\nn1,t,3\nn1,t,3\n", "line 3: this value of t on n1 appears twice"),
        ("node,metric,value,time\nn1,t,3,1e30\n", "line 2: '1e30' is no time"),
        ("node,metric,value\nn1,t,1e-99\n", "line 2: 1e-99 is no figure of a machine"),
        ("node,metric,value,time\nn1,t,3,13/12/2026\n", "line 2: '13/12/2026' is no time"),
        ("node,metric,value,share\nn1,t,3,0.25\nn2,t,3,0.5\n", "line 2: 0.25 in the column share is no part of a node"),
        ("node,metric,value,user\nn1,t,3,al\nn2,t,3,bo\n", "line 3: the column user has one value a node"),
        ("node,metric,value,gpu\nn1,t,3,0\nn2,t,3,\n", "line 3: t on n2 has no gpu, as others of it have"),
        ("node;metric;value\nn1;t;3,792\nn2;t;3,801\n", "line 2, column 3: '3,792' may be 3.792 or 3792"),
        ('{"node": "n1", "value": 3}\n{"node": "n2"', "line 2: is no JSON object"),
        ('{"node": "n1", "value": [3]}\n', "line 1: value is no single value"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(NodeprintError) as refused:
        table(tmp_path, text)
    assert sentence in str(refused.value)
    assert "; " in str(refused.value)  # and what to do


def test_garbled_parquet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="not readable as Parquet"):
        table(tmp_path, b"PAR1" + bytes(range(256)), "table.parquet")


_CELLS = st.sampled_from([
    "n1", "n2", "N1", "", "3", "3.5", "3,5", "1,234", "-1", "0", "nan", "inf", "1e999", "MB/s", "GB/s", "2026-01-01",
    '"', "a\tb", "\u00e4", "1 000", "\x1b[31m3\x1b[0m", "node", "value", "#", "{", "1e-320", "NaN", "\u22123",
])  # fmt: skip
_NAMES = st.sampled_from([
    "node", "host", "metric", "value", "unit", "run", "job", "time", "gpu", "cpu", "triad (MB/s)", "group", "bios", "",
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(_NAMES, min_size=1, max_size=6),
    st.lists(st.lists(_CELLS, max_size=7), max_size=6),
    st.sampled_from([",", ";", "\t", "|"]),
)
def test_no_table_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], rows: list[list[str]], separator: str
) -> None:
    text = "\n".join(separator.join(row) for row in [names, *rows])
    try:
        table_fleet.packed_table(table(tmp_path_factory.getbasetemp(), text), "t", {})
    except NodeprintError as error:
        assert str(error)


def test_settings_are_no_figures(tmp_path: Path) -> None:
    lines = [
        f"g{node},{run},{2900 + node + run},{580 if node == 4 else 535}.2,1000,{45 + run}"
        for node in range(8)
        for run in (1, 2)
    ]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["node,run,bw (GB/s),driver,order,Temp (C)", *lines]))
    figures = table_file.read_table(table)
    assert set(figures.frame["metric"]) == {"bw"}
    assert figures.fields["g4"] == {"driver": "580.2", "order": "1000"}
    assert figures.notes == (
        "settings of the nodes, not judged as figures: driver, order, Temp",
        "driver is 535.2 on most nodes, 580.2 on g4",
    )
    table.write_text("node,run,threads,score\nn1,1,64,3\nn1,2,64,3\nn2,1,64,3\nn2,2,64,3\n")
    assert set(table_file.read_table(table).frame["metric"]) == {"score"}
    # figures that are rounded, alike in all runs of a node: 70 of 100 is slow
    table.write_text("node,run,hpl,bw\nn1,1,100,3\nn1,2,100,4\nn2,1,100,3\nn2,2,100,4\nn3,1,70,3\nn3,2,70,4\n")
    assert set(table_file.read_table(table).frame["metric"]) == {"hpl", "bw"}
    table.write_text("node,metric,threads,value\nn1,hpl,1,3\nn1,hpl,2,5\nn2,hpl,1,3\nn2,hpl,2,5\n")
    assert table_file.read_table(table).parts == ("threads",)


@pytest.mark.parametrize(
    "text",
    [
        "node,run1,run2\nn1,3,4\nn2,5,6\n",
        "| node | run | value |\n|:---|---|--:|\n| n1 | 1 | 3 |\n| n2 | 1 | 5 |\n| n1 | 2 | 4 |\n| n2 | 2 | 6 |\n",
    ],
)
def test_runs_as_columns_and_a_table_in_markdown(tmp_path: Path, text: str) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text)
    frame = table_file.read_table(table).frame
    rows = frame[["node", "run", "metric", "value"]].itertuples(index=False, name=None)
    assert list(rows) == [
        ("n1", "1", "value", 3),
        ("n2", "1", "value", 5),
        ("n1", "2", "value", 4),
        ("n2", "2", "value", 6),
    ]


def test_a_unit_at_the_end_of_a_name(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("node,latency_ns,runtime_s,rate_GBps,power_min\nn1,3,4,5,6\n")
    frame = table_file.read_table(table).frame
    assert dict(zip(frame["metric"], frame["unit"], strict=True)) == {
        "latency_ns": "ns",
        "runtime_s": "s",
        "rate_GBps": "GBps",
        "power_min": "",
    }


def test_systems_of_different_kinds_are_reported(tmp_path: Path) -> None:
    rows = [f"n{at},{64 if at < 3 else 128},{'H200' if at < 5 else 'H100'} SXM,{300 + at}.5" for at in range(6)]
    figures = table(tmp_path, "\n".join(["node,threads,gpu_model,triad (MB/s)", *rows]))
    assert figures.notes == (
        "settings of the nodes, not judged as figures: threads, gpu_model",
        "threads differs between nodes: 64 on 3 nodes, 128 on 3 nodes",
        "gpu_model is H200 SXM on most nodes, H100 SXM on n5",
    )
    verdict_notes = table_fleet.packed_table(figures, "t", {}).notes
    assert set(figures.notes) <= set(verdict_notes)


def test_words_that_tell_lines_apart_are_not_left_out(tmp_path: Path) -> None:
    rows = "".join(
        f"n{node},{way},{300 + node + 40 * (way == 'write')}\n" for node in range(4) for way in ("read", "write")
    )
    with pytest.raises(
        NodeprintError, match="line 1, column 2: the column way has 2 words on each node; call it `metric`"
    ):
        table(tmp_path, f"node,way,bandwidth\n{rows}")
    assert len(table(tmp_path, f"node,way,value\n{rows}").parts) == 1
