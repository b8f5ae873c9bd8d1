"""One figure of one node, as every reader of other programs' results hands it over.

`nodeprint judge` takes tables of these figures (CSV, TSV, Parquet, JSON lines) and what tools print. The reader of a
tool's output is a function `rows(path, lines) -> list[Row]`: it says what stands in the text and nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A figure: the `value` of a `metric` on a `node`, in `unit` (empty where the text has none).

    `job` and `run` are what the table calls them (a job's id, a number), empty where it has none: figures of one node,
    metric and place without a run are its runs in the order of the text. Repetitions inside a process are no runs:
    their reader gives their median. `parts` says which part of the node it is of (`{"socket": 0}`, `{"gpu": 3}`,
    `{"message bytes": 8}`), empty for all of it. `time` is when it was measured (ISO 8601, UTC where it names no
    zone), empty where that is unknown. `settings` are how the tool was called (`{"threads": "64"}`), which nothing
    judges. `node` is empty where the text does not name it: whoever reads the file knows it from its name. `line` (from
    1) is where it stands, for messages.
    """

    node: str
    metric: str
    value: float
    unit: str = ""
    job: str = ""
    run: str = ""
    parts: Mapping[str, int | str] = {}
    time: str = ""
    line: int = 0
    settings: Mapping[str, str] = {}
