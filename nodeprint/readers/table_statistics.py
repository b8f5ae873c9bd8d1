"""Statistics of a metric next to each other, such as its mean, standard deviation, extremes and count.

They describe the same values, so one of them is judged: the median, or else the mean. A standard deviation or a count
is no value of a node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import pandas as pd

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import units
from nodeprint.settings.texts import say


class Statistic(IntEnum):
    """The types of statistics, the best to judge first."""

    VALUE = 0
    MEDIAN = 1
    MEAN = 2
    EXTREME = 3
    SPREAD = 4
    COUNT = 5
    #: Words with other meanings, which are statistics beside a value, or beside another statistic.
    ERROR = 6
    EDGE = 7


#: The words of statistics, as `plain_name` writes them.
_WORDS: Mapping[Statistic, str] = {
    Statistic.MEDIAN: r"median|med|p_?50|50_?%|50th(?:_percentile)?|percentile_50",
    Statistic.MEAN: r"(?:arithmetic_|geo_?|geometric_|harmonic_|h|g)?mean|avg|average|ave",
    Statistic.EXTREME: r"min|minimum|max|maximum|p\d{1,2}(?:_?\d+)?"
    r"|\d\d?(?:_\d+)?_?%|\d\d?[a-z]{2}(?:_percentile)?"
    r"|percentile_\d+|(?:\d+%?_)?ci(?:_?\d+%?)?_(?:low|lower|lo|l|high|upper|hi|u|min|max)"
    r"|(?:low|lower|lo|high|upper|hi)_?(?:ci|bound|quartile)",
    Statistic.SPREAD: r"(?:(?:rel|relative|sample|pop)_)?"
    r"(?:sd|std|stdev|stddev|std_?dev|std_?deviation|standard_deviation|sdev|sigma)|rsd|sem|std_?err|std_?error"
    r"|standard_error|variance|cv|coefficient_of_variation|iqr|mad|moe"
    r"|(?:\d+%?_)?(?:ci|conf_int|confidence_interval)(?:_?\d+%?)?(?:_(?:width|half_?width))?",
    Statistic.COUNT: r"n|count|nobs|n_?(?:runs|samples|obs|values|reps)"
    r"|(?:num|number)_(?:of_)?(?:runs|samples|values|reps)"
    r"|runs|samples|reps|repetitions|repeats|observations|iterations",
    Statistic.ERROR: r"err|error|uncertainty|var|cov|se|range|spread|dev|deviation|skew|skewness|kurt|kurtosis|rmse",
    Statistic.EDGE: r"q[13]|lower|upper|low|high|lo|hi|best|worst",
}
_OF_KIND = {kind: re.compile(words) for kind, words in _WORDS.items()}
_ANY = "|".join(_WORDS.values())
_BEHIND = re.compile(rf"(?:(?P<stem>.+?)_)??(?P<word>{_ANY})(?:_(?:pct|percent|%)|%)?")
_BEFORE = re.compile(rf"(?P<word>{_ANY})_(?:of_)?(?P<stem>.+)")
#: Names of columns of a long table that are no metric's, so that a statistic of them is one of each row's metric.
_OF_ROW = frozenset(("", "value", "result", "figure", "val", "metric", "perf", "measurement"))
#: Columns whose cells name the statistic of a row as a number.
_QUANTILES = frozenset(("quantile", "percentile"))
#: So many names are in a message.
_NAMED = 12


@dataclass(frozen=True)
class Choice:
    """Names without statistics that are not judged: those `left_out`, whose metric is judged by another name.

    `lacking` are groups of extremes without a mean or median.
    """

    left_out: tuple[str, ...]
    lacking: tuple[tuple[str, ...], ...]

    @property
    def dropped(self) -> tuple[str, ...]:
        """All names that are not judged."""
        return (*self.left_out, *(name for names in self.lacking for name in names))


def plain_name(name: str) -> str:
    """A name in small letters with one line between its words, however it is written: `Std. Dev (MB/s)` is std_dev."""
    text = name.replace("+/-", " sd ").replace("\u00b1", " sd ").replace("\u03c3", " sigma ")
    text = re.sub(r"\b[A-Za-z]*/s(?:ec)?\b", " ", text)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    text = re.sub(r"[^\w%]+", "_", text.lower()).strip("_")
    text = re.sub(r"_+", "_", text)
    # a unit says nothing of what is measured; a minimum is no minute
    words = [word for word in text.split("_") if word == "min" or units.known(word) is None or word.isdecimal()]
    return "_".join(words) or text


def statistic(name: str) -> tuple[str, Statistic]:
    """The metric of a name (empty where it names none) and the statistic of it that the name states."""
    text = plain_name(name)
    found = _BEHIND.fullmatch(text) or _BEFORE.fullmatch(text)
    if found is None:
        return text, Statistic.VALUE
    kind = next(kind for kind, words in _OF_KIND.items() if words.fullmatch(found["word"]))
    return found["stem"] or "", kind


def is_statistic(name: str) -> bool:
    """Whether a name is a statistic and nothing else, as `mean` or `Std. Dev.`."""
    stem, kind = statistic(name)
    return not stem and Statistic.VALUE < kind < Statistic.ERROR


def chosen(names: Sequence[str], where: str, line: int | None = None) -> Choice:
    """Choose one name of each group of statistics of a metric.

    Raises NodeprintError if nothing says whether a mean is of another metric, or if there are only extremes.
    """
    groups: dict[str, dict[str, Statistic]] = {}
    for name in names:
        stem, kind = statistic(name)
        groups.setdefault(stem, {})[name] = kind
    _join_bare(groups, where, line)
    left_out: list[str] = []
    lacking: list[tuple[str, ...]] = []
    for stem, group in groups.items():
        best, *rest = sorted(group, key=group.__getitem__)
        kind = group[best]
        if kind is Statistic.VALUE:
            left_out += [name for name in group if group[name] is not Statistic.VALUE]
        elif kind < Statistic.EXTREME or (
            kind is Statistic.EXTREME and list(group.values()).count(Statistic.EXTREME) == 1
        ):
            left_out += rest
        elif kind in (Statistic.EXTREME, Statistic.SPREAD) or (kind is Statistic.COUNT and not stem):
            lacking.append(tuple(group))
    choice = Choice(tuple(left_out), tuple(lacking))
    if lacking and len(choice.dropped) == len(names):
        raise NodeprintError(
            f"has {listed(lacking[0])} and no mean or median",
            where=where,
            line=line,
            advice="add a column of the median or mean, such as triad_median",
        )
    return choice


def _join_bare(groups: dict[str, dict[str, Statistic]], where: str, line: int | None) -> None:
    """Add statistics without a metric's name to the first metric: a bare `sd` is that of the only value."""
    stems = [stem for stem in groups if stem]
    if not stems or "" not in groups:
        return
    bare = groups.pop("")
    center = next((name for name, kind in bare.items() if kind in (Statistic.MEDIAN, Statistic.MEAN)), None)
    other = printable(next(iter(groups[stems[0]])), 40)
    if center is not None:
        what = f"the column {printable(center, 40)} may be of {other}, or a metric of its own"
        advice = f"call it {other}_{plain_name(center)}, or after its own metric"
        raise NodeprintError(what, where=where, line=line, advice=advice)
    if set(bare.values()) == {Statistic.EDGE}:
        groups |= {name: {name: Statistic.VALUE} for name in bare}
    else:
        groups[stems[0]] |= bare


def notes(choice: Choice) -> tuple[str, ...]:
    """Notes on the names without a judgment."""
    out = [say("read", "statistics", columns=listed(choice.left_out))] if choice.left_out else []
    out += [say("read", "no_center", columns=listed(names)) for names in choice.lacking]
    return tuple(out)


def listed(names: Sequence[str]) -> str:
    """Names for a message."""
    shown = ", ".join(printable(name, 40) for name in names[:_NAMED])
    return shown + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def of_row(name: str) -> Statistic:
    """The statistic of a column of a long table, VALUE if the column is none of each row's metric."""
    stem, kind = statistic(name)
    return kind if stem in _OF_ROW else Statistic.VALUE


def column(names: Sequence[str | None], cells: Sequence[pd.Series[str]], others: frozenset[int]) -> int | None:
    """The column whose cells name the statistic of each row, None if there is none; `others` have another meaning."""
    for place, name in enumerate(names):
        if name is None or place in others:
            continue
        unique = [text for text in cells[place].unique() if text]
        if not 1 < len(unique) <= 40:
            continue
        if plain_name(name) in _QUANTILES:
            return place
        kinds = {statistic(text)[1] for text in unique} if all(map(is_statistic, unique)) else set()
        if kinds & {Statistic.MEDIAN, Statistic.MEAN, Statistic.SPREAD} or {"min", "max"} <= {
            plain_name(text) for text in unique
        }:
            return place
    return None


def of_cells(name: str, cells: pd.Series[str], metric: pd.Series[str], where: str) -> tuple[pd.Series[bool], str]:
    """Which rows have the judged statistic of their metric, by a column that names it, and a note on the others.

    Raises NodeprintError with the line of a cell that is no statistic, or if a metric has neither mean nor median.
    """
    kinds = {}
    for text in cells.unique():
        number = _quantile(text) if plain_name(name) in _QUANTILES else ""
        kinds[text] = statistic(number or text)[1] if number or is_statistic(text) else Statistic.VALUE
        if kinds[text] is Statistic.VALUE:
            line = int(cells.index[cells == text][0])
            what = f"{printable(repr(text), 40)} in the column {printable(name, 40)} is no known statistic"
            raise NodeprintError(what, where=where, line=line, advice="give one row per node and run, or name it mean")
    kind = cells.map(kinds).astype(int)
    best = kind.groupby(metric.to_numpy()).transform("min")
    if (best > Statistic.MEAN).any():
        line = int(cells.index[best > Statistic.MEAN][0])
        what = f"the column {printable(name, 40)} has {listed(list(kinds))} and no mean or median of each metric"
        raise NodeprintError(what, where=where, line=line, advice="add rows of the median or mean")
    keep = kind == best
    first = {text for text in kinds if (keep & (cells == text)).any()}
    others = [text for text in kinds if text not in first]
    return keep, say(
        "read", "statistic_rows", column=printable(name, 40), used=listed(sorted(first)), others=listed(others)
    )


def _quantile(text: str) -> str:
    """A quantile (0.5) or percentile (50) as a statistic; empty for any other text."""
    try:
        value = float(text.strip().rstrip("%"))
    except ValueError:
        return ""
    percent = 100 * value if value <= 1 else value
    return f"p{percent:g}" if 0 <= percent <= 100 else ""
