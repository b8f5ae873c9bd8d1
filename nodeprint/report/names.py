"""Names of things: nodes in a list, components of a machine, values with their units."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import partial

from ClusterShell.NodeSet import NodeSet

from nodeprint.data.places.layout import ALL_PAIRS, CLASSES
from nodeprint.data.places.measured import models
from nodeprint.errors import printable
from nodeprint.judge.verdict import CellFigure, ClassFigure, Component, Limit
from nodeprint.machine.topology.level_names import level_name
from nodeprint.settings import texts as sentences
from nodeprint.settings.texts import FORMATS, say, texts

Where = Mapping[str, int | str]

#: Unit of rates of floating-point operations.
FLOPS = "flop/s"

#: Names that a node list may fold; ClusterShell would read brackets and operators in other names as its own.
_FOLDABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: Units of times and of rates of operations that avoid exponents.
_TIMES: Sequence[tuple[float, str]] = ((1e9, "s"), (1e6, "ms"), (1e3, "\N{MICRO SIGN}s"))
_PREFIXES: Sequence[tuple[float, str]] = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
#: Units of a rate of operations, which take a prefix.
_RATES = {"1/s": "/s", FLOPS: FLOPS}
#: Numbers up to this are written without an exponent.
_MOST_PLAIN = 1e9
_UNITS: Mapping[str, tuple[float, str]] = {"Hz": (1e9, "GHz"), "B/s": (1e9, "GB/s"), "share": (0.01, "%")}

# --- lists ---

counted = sentences.counted


def nodes(names: Iterable[str]) -> str:
    """Return nodes as a compact list in the syntax of Slurm and ClusterShell: `cn[001-004],gpu7`."""
    names = list(names)
    plain = [name for name in names if _FOLDABLE.fullmatch(name)]
    others = [printable(name, 80) for name in names if not _FOLDABLE.fullmatch(name)]
    return ",".join([*filter(None, [str(NodeSet.fromlist(plain))]), *others])


def message_size(message_bytes: float | None) -> str:
    """A message's size: `1 MiB`, `64 KiB`, `1000 B`; empty where it is not known."""
    if not message_bytes:
        return ""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if message_bytes % unit == 0:
            return f"{int(message_bytes) // unit:,} {name}"
    return f"{int(message_bytes):,} B"


def binary_size(size: float, rest: str) -> str:
    """A size in binary units, `1.5 MiB`, below one KiB in `rest`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size:g} {rest}"


def listed(items: Iterable[str]) -> str:
    """`a, b and c`."""
    *first, last = list(items) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def shortened(name: str, most: int) -> str:
    """A name in at most `most` letters, without its middle, as a node's number is last."""
    if len(name) <= most:
        return name
    tail = most // 2
    return f"{name[: most - tail - 1]}\N{HORIZONTAL ELLIPSIS}{name[-tail:]}"


def without_domain(names: Collection[str]) -> list[str]:
    """Names of hosts without the domain that they share, which leaves room for the differences."""
    domains = {name.partition(".")[2] for name in names}
    return [name.partition(".")[0] for name in names] if len(domains) == 1 else list(names)


def file_stem(node: str) -> str:
    """The name of a node's files: its own, or one with a hash where that cannot be a file's or is the cluster's."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", node) and node not in ("cluster", "figures"):
        return node
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", node)[:80]
    return f"{plain}-{hashlib.sha256(node.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


# --- values ---


def quantity(value: float, unit: str, more: int = 0) -> str:
    """A value with its unit, a time or a rate in the unit that keeps it short; `unknown` where it is not finite.

    It has three digits (a time) or four, and `more`.
    """
    if not math.isfinite(value):
        return "unknown"
    size, name = shown_unit(value, unit)
    digits = (3 if unit == "ns" else 4) + more
    shown = f"{value / size:.{digits}g}"
    if "e+" in shown and abs(value / size) < _MOST_PLAIN:  # 300000 MB/s, and not 3e+05 MB/s
        shown = f"{float(shown):.0f}"
    return with_unit(shown, name)


def with_unit(number: str, unit: str) -> str:
    """A number with its unit: `5%`, `12 ns`, and `3` without any."""
    return f"{number}%" if unit == "%" else f"{number} {unit}".rstrip()


def shown_unit(value: float, unit: str) -> tuple[float, str]:
    """The size of the unit that keeps a value short, in the value's own unit, and its name."""
    sizes = _TIMES if unit == "ns" else [(size, prefix + _RATES[unit]) for size, prefix in _PREFIXES if unit in _RATES]
    if not sizes:
        return _UNITS.get(unit, (1.0, "" if unit == "1" else unit))
    return next(((size, name) for size, name in sizes if abs(value) >= 0.9995 * size), (1.0, unit))


def span(low: float, high: float, unit: str) -> str:
    """Return a range of values: `23.3 to 24.1 ns`, and with two units `81.3 ns to 1.1 \N{MICRO SIGN}s`."""
    first, last = quantity(low, unit), quantity(high, unit)
    number, _, name = first.removesuffix("%").partition(" ")
    return f"{number if name == last.partition(' ')[2] else first} to {last}"


def between(values: Collection[float], words: Callable[[float], str]) -> str:
    """Return a value in words, or the lowest and the highest: `2 to 8.6%`; NaN does not count, and none is empty."""
    numbers = [value for value in values if not math.isnan(value)]
    low, high = (words(end) for end in (min(numbers), max(numbers))) if numbers else ("", "")
    return high if low == high else _range(low, high)


def _range(low: str, high: str) -> str:
    """From `2%` and `8.6%`: `2 to 8.6%`."""
    return f"{low.removesuffix(high.lstrip('+-.0123456789'))} to {high}"


def duration(ns: float) -> str:
    """A time: `61.3 ns`, `1.14 ms`, `2.5 s`."""
    return quantity(ns, "ns")


def over_runs(low: float, high: float, unit: str, runs: int, left_out: int = 0) -> str:
    """The 95% interval of a figure over its runs without those `left_out`; empty if there is none.

    If no majority of the runs agrees, it is the range of all.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    ends = span(low, high, unit)
    if left_out == runs:
        return f"all runs: {ends}"
    return f"{ends} ({runs - left_out} of {runs} runs)" if left_out else ends


def median(figure: ClassFigure | CellFigure) -> str:
    """The median of a figure, with an asterisk if it was disturbed; from one run to the other if two disagree."""
    unit = of_measurement(figure.unit, figure.measurement)
    ends = span(figure.ci_low, figure.ci_high, unit) if figure.runs_disagree else ""
    return f"{ends or quantity(figure.median, unit)}{' *' if figure.is_marked else ''}"


def median_interval(figure: ClassFigure | CellFigure) -> str:
    """The 95% interval of the median of a figure, or a remark if two runs disagree."""
    if figure.runs_disagree:
        return say("runs_disagree")
    unit = of_measurement(figure.unit, figure.measurement)
    return over_runs(figure.ci_low, figure.ci_high, unit, figure.runs, figure.left_out)


def unit_of_difference(measurement: str) -> str:
    """The unit of a difference in percent, as it follows the number; of a measurement of shares percentage points."""
    model = models().get(measurement)
    return " points" if model is not None and model.scale == "share" else "%"


def percent(share: float, measurement: str = "", digits: int = 1) -> str:
    """A share as `5.9%`, never as -0.0; a difference has the unit of those of its `measurement`."""
    unit = unit_of_difference(measurement)
    return f"{share * 100:z.{digits}f}{unit}" if math.isfinite(share) else "unknown"


def signed(share: float, measurement: str = "", digits: int = 1) -> str:
    """A difference as `+5.9%`, in the unit of those of its `measurement`."""
    unit = unit_of_difference(measurement)
    return f"{share * 100:+z.{digits}f}{unit}" if math.isfinite(share) else "unknown"


def signed_range(shares: Sequence[float], measurement: str = "", digits: int = 1) -> str:
    """Differences from the smallest to the largest: `+5.1 to +6.3%`; one of them by itself, empty without any."""
    ends = list(dict.fromkeys(signed(share, measurement, digits) for share in sorted(shares, key=abs)))
    return _range(ends[0], ends[-1]) if len(ends) > 1 else "".join(ends)


def of_measurement(unit: str, measurement: str) -> str:
    """The unit of a measurement as it is shown: operations per second are flop/s if they are of floating point."""
    model = models().get(measurement)
    return FLOPS if unit == "1/s" and model is not None and model.value == "flops_per_s" else unit


def whole_percent(share: float) -> str:
    """A share as `81%`, one beyond the whole never as `100%`; empty where it is unknown."""
    words = f"{share * 100:.0f}%" if math.isfinite(share) else ""
    return percent(share, digits=digits_beyond(share, 1.0)) if words == "100%" and share > 1 else words


def tolerance(share: float, measurement: str = "", digits: int = 1) -> str:
    """A tolerance as somebody wrote it: `4%`; with more `digits` behind the point than one, as `4.12%`. It has the unit
    of differences of its `measurement`."""
    unit = unit_of_difference(measurement)
    if digits > 1:
        return f"{share * 100:.{digits}f}".rstrip("0").rstrip(".") + unit
    return f"{share * 100:.{2 if share < 0.1 else 3}g}{unit}"


def tolerances(limits: Sequence[Limit]) -> str:
    """The tolerances of all components of component types: `4%`, `2 to 8.6%`."""
    # a verdict of an older version has no ends
    ends = [end for of in limits for end in (of.tolerance_low, of.tolerance, of.tolerance_high)]
    return between(ends, partial(tolerance, measurement=limits[0].measurement))


def detectable(limits: Sequence[Limit]) -> str:
    """The differences that one job detects in component types: `12.7%`, `27.0 to 133.0%`."""
    return between([limit.effect for limit in limits], partial(percent, measurement=limits[0].measurement))


def digits_beyond(share: float, of_tolerance: float) -> int:
    """Return the digits behind the point that show a share beyond its tolerance as the larger one: mostly one."""
    shown = ((_number(percent(abs(share), digits=n)), _number(tolerance(of_tolerance, digits=n))) for n in range(1, 9))
    enough = (n for n, (effect, allowed) in enumerate(shown, 1) if effect > allowed)
    return next(enough, 9) if of_tolerance < abs(share) < math.inf else 1


def with_tolerance(effect: float, of_tolerance: float, measurement: str = "") -> tuple[str, str]:
    """A difference as `+5.9%` and its tolerance as `4%`, in digits that tell them apart where it is beyond it."""
    digits = digits_beyond(effect, of_tolerance)
    return signed(effect, measurement, digits), tolerance(of_tolerance, measurement, digits)


def with_limit(value: float, limit: float, unit: str) -> tuple[str, str]:
    """A value and its limit, with their unit, in digits that tell them apart."""
    pairs = [(quantity(value, unit, more), quantity(limit, unit, more)) for more in range(6)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])


def _number(words: str) -> Decimal:
    return Decimal(words.removesuffix("%"))


def moment(text: str) -> str:
    """A moment (ISO 8601) to the minute: `2026-03-03 14:20`."""
    return text[:16].replace("T", " ")


def times(share: float, of_tolerance: float) -> str:
    """Return how many times its tolerance an effect is, computed from the printed values of `with_tolerance`.

    The ratio is rounded as a reader would round it: 5.8% of 4% is 1.5.
    """
    effect, limit = map(_number, with_tolerance(abs(share), of_tolerance))
    if not limit:
        return ""
    factor = effect / limit
    return str(factor.quantize(Decimal("0.1"), ROUND_HALF_UP)) if factor < 100 else f"{factor:.0f}"


def interval(low: float, high: float, effect: float, measurement: str = "") -> str:
    """Return an interval in the direction of its effect: the same text for effects of 5.9% and -5.9%."""
    ends = sorted(math.copysign(1.0, effect) * end * 100 for end in (low, high))
    return f"{ends[0]:z.1f} to {ends[1]:z.1f}{unit_of_difference(measurement)}"


# --- parts ---


def is_of_pairs(of: Component) -> bool:
    """Tell whether the component is one of CPU pairs."""
    return of.term in _OF_PAIRS


def is_plural(of: Component) -> bool:
    """Tell whether the name of a component is plural: the pairs of a class, except those of one link."""
    where = of.where
    named = where.get("class", ALL_PAIRS) not in (ALL_PAIRS, CLASSES[ALL_PAIRS])
    return of.term == "class" and named and "beyond_class" not in where and "to_socket" not in where


_LABELS: Mapping[str, str] = {level: level_name(level) for level in ("ccd", "ccx", "numa", "cluster")} | {
    "cpu_node": "CPUs of NUMA node",
    "memory_node": "memory of NUMA node",
    "home": "home NUMA node",
    "distance": "memory of the",
    "size_bytes": "working set, bytes,",
    "to": "to",
}
_FLAGS: Collection[str] = ("reason", "inside", "near", "across", "outside", "to_others", "beyond_class")
#: Terms whose measurement points are machine components with CPU pairs between them.
_OF_PAIRS: Collection[str] = ("node", "socket", "class", "quadrant", "link", "ccd", "ccx", "block", "core")


_INSIDE = "the inside of "
#: The component of an agreement in the messages of a node with all others.
_ALL_PAIRS = "all pairs of the node"


def component(of: Component) -> str:
    """Name a component: `core 37 (CPU 37)`, `CCD 3 to CCD 4`, `memory of NUMA node 1 from socket 0`."""
    where, term = dict(sorted(of.where.items())), of.term  # the same words before verdict.json is written as after
    if term.startswith("fabric-"):
        return " to ".join(printable(str(where[end]), 80) for end in ("node", "to") if end in where) or _ALL_PAIRS
    if term == "class":
        return _class(where)
    if term == "core":
        return place({key: where[key] for key in ("core", "cpu") if key in where})
    if term == "node" or term not in _OF_PAIRS:
        return place(where)
    if where.get("beyond_class"):
        return f"socket {where['socket']} beyond its CCXs"
    ends = [(key.removeprefix("to_"), value) for key, value in where.items() if key not in _FLAGS]
    is_inside = term == "ccx" or bool(where.get("inside")) or (len(ends) == 2 and ends[0] == ends[1])
    numbers = " to ".join(dict.fromkeys(f"{_LABELS.get(level, level)} {value}" for level, value in ends))
    return f"{_INSIDE}{numbers}" if is_inside else numbers or place(where)


def scope(of: Component) -> str:
    """Name the compared pairs of a component: `to the other cores of its socket`; empty if all are compared."""
    if of.term == "core":
        scopes = texts()["scopes"]
        flags = (flag for flag in scopes if of.where.get(flag))
        words = scopes.get(of.component_type) or next((scopes[flag] for flag in flags), "")
        level = str(of.where.get("inside", "ccx"))
        return words.format(level=_LABELS.get(level, level))
    if of.where.get("across"):
        return "to the other socket"
    alone = of.term in ("quadrant", "ccd") and not any(key.startswith("to_") for key in of.where if key != "to_others")
    return "to all others" if of.where.get("to_others") or (alone and not of.where.get("inside")) else ""


def scoped(of: Component) -> str:
    """Name a component with its compared pairs."""
    return " ".join(filter(None, (component(of), scope(of))))


def within(of: Component) -> str:
    """Locate a value: `in core 5 to the other cores of its socket`, `inside CCD 3`."""
    words = scoped(of)
    inside = words.removeprefix(_INSIDE)
    return f"inside {inside}" if inside != words else f"in {words}"


#: Keys of a place in memory that name the CPUs it is seen from.
_SEEN_FROM: Collection[str] = ("socket", "quadrant", "ccd", "ccx", "core", "cpu")
#: Words of records in the reader's terms.
_WORDS = {
    "l1": "L1",
    "l2": "L2",
    "l3": "L3",
    "same_l3": "same L3",
    "store_mem": "streaming store",
    "copy_mem": "streaming copy",
    "triad_mem": "streaming triad",
    "read3_write1": "3:1 reads:writes",
    "read2_write1": "2:1 reads:writes",
    "read1_write1": "1:1 reads:writes",
    "huge": "huge pages",
    "base": "small pages",
    "thp": "transparent huge pages",
    "shallow": "shallow sleep",
    "deep": "deep sleep",
} | {level: level_name(level) for level in ("ccx", "ccd", "numa")}


_DIMENSIONS = {level: level_name(level) for level in ("ccd", "ccx", "numa", "cluster")} | {
    **dict.fromkeys(("cpu", "a", "b"), "CPU"),
    "cpu_node": "NUMA node of the CPUs",
    "memory_node": "NUMA node of the memory",
    "size_bytes": "size",
}


def dimension(dim: str) -> str:
    """Name a dimension of measurement points: `NUMA node of the memory`, `stream`."""
    return _DIMENSIONS.get(dim, dim.replace("_", " "))


def row(words: str) -> str:
    """Name a row of a measurement in the reader's terms: `streaming store, own node`."""
    return ", ".join(_WORDS.get(word, word.replace("_", " ")) for word in words.split(", "))


def place(where: Where) -> str:
    """Name a measurement point of cells: `core 5 (CPU 37), level L3`; the whole node if it is nothing else."""
    components = []
    if "cpu_node" in where and "memory_node" in where:  # a path through the memory of one node
        cpus, memory = where["cpu_node"], where["memory_node"]
        components = [say("memory_path", "own" if cpus == memory else "other", memory=memory, cpus=cpus)]
        where = {key: value for key, value in where.items() if key not in ("cpu_node", "memory_node")}
    elif "memory_node" in where and (seen_from := {key: where[key] for key in where if key in _SEEN_FROM}):
        components = [say("memory_path", "from", memory=where["memory_node"], place=place(seen_from))]
        where = {key: value for key, value in where.items() if key not in (*seen_from, "memory_node")}
    for key, value in sorted(where.items()):
        if key == "core":
            components.append(f"core {value} (CPU {where['cpu']})" if "cpu" in where else f"core {value}")
        elif key in ("cpu", "cpu_a", "cpu_b"):
            components += [] if key == "cpu" and "core" in where else [f"CPU {value}"]
        elif key.startswith("core_") and f"cpu_{key.removeprefix('core_')}" in where:
            continue
        elif isinstance(value, str) and key not in _LABELS and key not in _FLAGS:
            if value not in where:  # a socket's number says that it is a socket
                label = f"{key} " if value[:1].isdigit() else ""  # `gpu 0x0f` by its address on the bus
                components.append(f"{label}{printable(row(value), 80)}")
        elif key not in _FLAGS:
            components.append(f"{_LABELS.get(key, key.replace('_', ' '))} {printable(str(value), 80)}")
    return ", ".join(components) or "the whole node"


def _class(where: Where) -> str:
    if "beyond_class" in where:
        return "everything beyond the CCX"
    number = where.get("class", ALL_PAIRS)
    name = CLASSES[number] if isinstance(number, int) else number
    if name == CLASSES[ALL_PAIRS]:
        return name
    if "to_socket" in where:
        return say("socket_link", first=where["socket"], second=where["to_socket"], name=name)
    return f"pairs of the {name}" + (f" on socket {where['socket']}" if "socket" in where else "")


def runs(names: Sequence[str]) -> str:
    """Runs of jobs: `job1/run[1-9],job2/run[1-9]`."""
    by_job: dict[str, list[str]] = {}
    for name in names:
        job, _, run = name.rpartition("/")
        by_job.setdefault(job, []).append(run)
    return ",".join(f"{job}/{nodes(members)}" if job else nodes(members) for job, members in by_job.items())


# --- formats of sentences ---


FORMATS.update(
    listed=listed,
    moment=moment,
    nodes=nodes,
    percent=percent,
    printable=lambda words, most: printable(str(words), int(most)),
    quantity=quantity,
    rough=lambda share: f"{100 * share:.2g}%",
    rough_signed=lambda share: f"{100 * share:+z.2g}%",
    signed=signed,
    size=lambda share: percent(abs(share)),
    tolerance=tolerance,
    whole_percent=whole_percent,
)
