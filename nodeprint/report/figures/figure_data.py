"""The data of figures: xarray Datasets, whose variables and coordinates say in their attributes what they are.

`long_name` and `units` of a variable make the title of its axis. Coordinates name what lies along a dimension, and a
coordinate without a dimension is the same for all, as a tolerance is. Attributes of the Dataset choose how it is drawn.

A tolerance lies on both sides of no difference: it is the same on both for a time, and a ratio for a rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from nodeprint.data.places.measured import is_metric, models
from nodeprint.judge.verdict import Agreement, Finding
from nodeprint.report.figures.style import Style
from nodeprint.report.names import unit_of_difference, with_unit


def named(dims: str | Sequence[str], values: npt.ArrayLike, title: str) -> xr.Variable:
    """A variable with a title, whose unit is behind its last comma."""
    name, comma, unit = title.rpartition(", ")
    return xr.Variable(dims, np.asarray(values), {"long_name": name, "units": unit} if comma else {"long_name": title})


def title_of(variable: xr.DataArray) -> str:
    """The title of a variable with its unit; its name if it has no title."""
    name = str(variable.attrs.get("long_name", variable.name))
    return f"{name}, {unit}" if (unit := variable.attrs.get("units")) else name


def table(data: xr.Dataset | Sequence[xr.Dataset]) -> pd.DataFrame:
    """A row for each point with a value, with its coordinates; a symmetric matrix has each pair once."""
    if not isinstance(data, xr.Dataset):
        return pd.concat([table(each) for each in data], ignore_index=True)
    if data.attrs.get("symmetric"):
        data = data.where(xr.DataArray(np.triu(np.ones(2 * [data.sizes["a"]], dtype=np.bool_), 1), dims=("a", "b")))
    frame = data.to_dataframe().reset_index().dropna(how="all", subset=[str(name) for name in data.data_vars])
    along = [name for name in data.dims if name in data.coords]
    order = [*along, *(name for name in data.coords if name not in along), *data.data_vars]
    titles: dict[Any, str] = {name: title_of(data[name]) for name in order}
    return frame[order].rename(columns=titles).reset_index(drop=True)


def marks(data: xr.Dataset) -> npt.NDArray[np.int64]:
    """The positions that are those of findings, along the dimension that has such."""
    return np.flatnonzero(data["marked"].to_numpy()) if "marked" in data.coords else np.zeros(0, dtype=np.int64)


# --- tolerances ---


#: Coordinates of the tolerance on each side of no difference, both positive.
BELOW, ABOVE = "tolerance_below", "tolerance_above"


def tolerance_coordinates(below: float, above: float, unit: str = "%") -> dict[str, xr.Variable]:
    """How much less and how much more than the peers is accepted."""
    return {BELOW: named((), below, f"tolerance below, {unit}"), ABOVE: named((), above, f"tolerance above, {unit}")}


def tolerance_of(finding: Finding) -> dict[str, xr.Variable]:
    """The tolerance of a finding, which has that on the side of its effect.

    Rates and messages are compared by ratios: they may be 1.05 times as much or as little, 5% more or 4.76% less.
    """
    tolerance = finding.tolerance
    if not (finding.component.term.startswith("fabric-") or _is_ratio(finding.measurement)):
        return tolerance_coordinates(100 * tolerance, 100 * tolerance, unit_of_difference(finding.measurement).strip())
    ratio = 1 + tolerance if finding.effect > 0 else 1 / (1 - tolerance)
    return tolerance_coordinates(100 * (1 - 1 / ratio), 100 * (ratio - 1))


def tolerance_toward(agreement: Agreement) -> float:
    """The tolerance on the side of an agreement's effect, which has that above."""
    is_ratio = is_metric(agreement.measurement) or _is_ratio(agreement.measurement)
    return agreement.tolerance / (1 + agreement.tolerance) if is_ratio and agreement.effect < 0 else agreement.tolerance


def _is_ratio(measurement: str) -> bool:
    model = models().get(measurement)
    return model is not None and model.scale == "log"


def tolerance_text(data: xr.Dataset) -> str:
    """`±4%` if it is the same on both sides, else `-4.76 to +5%`."""
    below, above, unit = float(data[BELOW]), float(data[ABOVE]), data[BELOW].attrs["units"]
    if abs(below - above) < 1e-9:
        return with_unit(f"±{above:.3g}", unit)
    return with_unit(f"-{below:.3g} to +{above:.3g}", unit)


def draw_tolerance(ax: Axes, data: xr.Dataset, style: Style, *, upright: bool = False) -> None:
    """Draw the tolerance, its two ends and no difference; nothing if the data have no tolerance.

    They lie over the width of axes, or `upright` over the height, if differences lie along the x axis.
    """
    if BELOW not in data.coords:
        return
    span, line = (ax.axvspan, ax.axvline) if upright else (ax.axhspan, ax.axhline)
    below, above = -float(data[BELOW]), float(data[ABOVE])
    line(0, color=style.colors["hair"], linewidth=0.5)
    span(below, above, color=style.colors["wash"], linewidth=0)
    for side in (below, above):
        line(side, color=style.colors["tolerance"], linewidth=0.7, linestyle=(0, (4, 2)))
