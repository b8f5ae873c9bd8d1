"""A small table in colors with its numbers: NUMA node by NUMA node, quadrant by quadrant, node by metric."""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from nodeprint.errors import NodeprintError
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import letters
from nodeprint.report.figures.pixels import (
    ColorScale,
    draw_cells,
    draw_scale,
    value_limits,
    write_numbers,
)
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.names import row as row_in_words
from nodeprint.report.names import shortened, without_domain
from nodeprint.stats.robust import finite_median

#: In mm: a row with a number, and the least that a row takes.
_ROW, _LEAST_ROW = 4.4, 0.15
#: Longer names of rows are cut in the middle.
_MOST_LETTERS = 24
#: More rows have no names, those of findings excepted.
MOST_NAMED_ROWS = 72


class GridData(msgspec.Struct, frozen=True):
    """`values` (row, column) choose the colors, `numbers` are written into the cells (empty where the values
    themselves are in no cell); `unit` is that of the numbers. Rows at `marked` are those of findings."""

    values: Floats
    numbers: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_title: str
    column_title: str
    number_title: str
    scale: ColorScale
    marked: tuple[int, ...] = ()
    digits: int = 3

    @property
    def turned(self) -> bool:
        """Whether the names of columns are turned."""
        longest = max(map(len, self.columns))
        return longest > 6 or (longest > 2 and len(self.columns) > 10)

    @property
    def labeled(self) -> bool:
        """Whether each row has room for its name."""
        return len(self.rows) <= MOST_NAMED_ROWS

    def frame(self, width: float) -> Frame:
        """Rows of 4 mm, thinner where there are many."""
        row = max(3.2, min(_ROW, 200.0 / len(self.rows))) if self.labeled else max(_LEAST_ROW, 200.0 / len(self.rows))
        return Frame(width, max(row * len(self.rows), 26.0))

    def table(self) -> pd.DataFrame:
        """A row for each cell that has a value."""
        rows, columns = np.nonzero(np.isfinite(self.values) | np.isfinite(self.numbers))
        table = {
            self.row_title: [self.rows[row] for row in rows],
            self.column_title: [self.columns[at] for at in columns],
            self.number_title: self.numbers[rows, columns],
        }
        return pd.DataFrame({**table, self.scale.title: self.values[rows, columns]})


def numa(levels: NodeLevels, node: str, stream: str = "") -> GridData:
    """The latency or bandwidth from the CPUs of each NUMA node to the memory of each, medians over CPUs; of bandwidth
    of one `stream`. Raises NodeprintError where the measurement has no memory nodes."""
    quantity = levels.quantity
    if "memory_node" not in quantity.dims:
        advice = "name a measurement of memory, such as chase-latency"
        raise NodeprintError(f"{quantity.measurement} does not measure memory nodes", advice=advice)
    memory = quantity.places["memory_node"]
    from_node = quantity.places.get("cpu_node")
    if from_node is None:
        from_node = quantity.layout.numa[quantity.places["cpu"]]
    wanted = np.ones(quantity.size, dtype=np.bool_)
    if "stream" in quantity.dims:
        stream = stream or quantity.names["stream"][0]
        wanted = quantity.places["stream"] == quantity.names["stream"].index(stream)
    values = levels.of(node) / levels.unit.size
    rows, columns = np.unique(from_node[wanted]), np.unique(memory[wanted])
    table = np.full((len(rows), len(columns)), np.nan)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            cell = values[wanted & (from_node == row) & (memory == column)]
            table[i, j] = finite_median(cell)
    numbers = levels.nodes[levels.rows[node]].numbers.get("node", ())
    names = [numbers[order] if 0 <= order < len(numbers) else order for order in range(quantity.layout.numa_nodes)]
    title = f"{f'{row_in_words(stream)}: ' if stream else ''}{levels.title}"
    return GridData(
        table,
        table,
        tuple(str(names[row]) for row in rows.tolist()),
        tuple(str(names[at]) for at in columns.tolist()),
        "CPUs of NUMA node",
        "memory of NUMA node",
        title,
        ColorScale(title, *value_limits(table)),
    )


def grid(ax: Axes, data: GridData, style: Style) -> None:
    """Draw the cells in colors, with their numbers where there is room, and the scale."""
    ax.set_aspect("auto")
    draw_cells(ax, data.values, data.scale, style)
    every = range(len(data.rows))
    shown = every if data.labeled else data.marked
    names = without_domain(data.rows)
    most = min(_MOST_LETTERS, letters(ax, 0.6, style))
    ax.set_yticks(list(shown), [shortened(names[row], most) for row in shown])
    for label, row in zip(ax.get_yticklabels(), shown, strict=True):
        if row in data.marked:
            label.set_color(style.color("alarm"))
            label.set_fontweight("bold")
    ax.set_xticks(range(len(data.columns)), data.columns, rotation=90 if data.turned else 0)
    ax.tick_params(length=0)
    ax.set_xlabel(data.column_title)
    ax.set_ylabel(data.row_title if data.labeled else f"{data.row_title} ({len(data.rows)})")
    write_numbers(ax, data.numbers, data.values, data.scale, style, data.digits)
    draw_scale(ax, data.scale, style)
