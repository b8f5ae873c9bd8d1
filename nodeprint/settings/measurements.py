"""The definition of each measurement: kernels/<kernel>/measurements.yaml as types.

A kernel is a directory with its C file and this file, the only source of the names and words of measurements and terms.
The types are dataclasses, because environments with Snakemake alone plan a clone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from nodeprint.errors import NodeprintError, nearest, printable
from nodeprint.settings import checked_yaml, former_keys, sources

_ADVICE = "docs/how-to/add-a-kernel.md has an example"

#: The type of a coordinate by name, unless the model's `labels` override it: a CPU's slot, a NUMA node's order.
LABELS: Mapping[str, str] = {
    "cpu": "cpu",
    "a": "cpu",
    "b": "cpu",
    "home": "node",
    "memory_node": "node",
    "cpu_node": "node",
}


#: What findings and outcomes are of beside the terms of models: words that name no metric of other programs.
METRIC_WORDS = frozenset((
    "node", "socket", "class", "quadrant", "link", "ccd", "ccx", "block", "core", "other", "core-to-core", "coherence",
    "messages", "memory", "memory-latency",
))  # fmt: skip


@dataclass(frozen=True)
class Model:
    """The comparison of a measurement (docs/method/memory.md).

    `value` is the compared key of a record, on a `scale`: `linear` (relative to the peers), `log`, or `share` of the
    time. `term` names its findings and sets their tolerance. `terms` are sets of labels; measurement points with equal
    values of a set may deviate together. `rows` are the labels of a row of the report's table, taken at the coordinates
    of `at`. `labels` is the type of a coordinate: `cpu` (a slot), `node` (a NUMA node's order), or `node_of_cpu`. The
    last is measured as a CPU and counted as its NUMA node. A coordinate without a label is a plain number or word.
    `places` is `pairs` for matrices of CPU x CPU, which have terms of their own, else `cells`.
    """

    value: str
    scale: Literal["linear", "log", "share"]
    term: str = "other"
    better: Literal["lower", "higher"] = "lower"
    terms: tuple[tuple[str, ...], ...] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: dict(LABELS))
    rows: tuple[str, ...] = ()
    at: Mapping[str, int | str] = field(default_factory=dict)
    places: Literal["pairs", "cells"] = "cells"


@dataclass(frozen=True)
class FindingTerm:
    """A metric of findings, which several measurements may share: its words, tolerance and assumed variation.

    `name` is the metric in a list, `what` the difference. `tolerance`, and the standard deviations `run` (between runs)
    and `job` (between jobs), are in percent (`nodeprint.judge.acceptance_file.CellRules`). `tolerance_without_boost`
    applies if no node has a clock above its base clock; `source` is their origin. `criterion`: an outcome is based on
    it unless acceptance.yaml overrides it. `causes` are keys of reports/texts.yaml, or words with hyphens; `remedy` is
    the advice. A finding of a share of the time may have an id (`finding`) and a `sentence`. If findings share a
    measurement point, the one of the lowest `rank` is the finding, and the others are details. Noise or a slower clock
    on a CPU affects everything that runs there.
    """

    name: str
    what: str
    tolerance: float
    run: float
    source: str
    job: float | None = None
    tolerance_without_boost: float | None = None
    criterion: bool = False
    causes: tuple[str, ...] = ()
    remedy: str = ""
    finding: str = ""
    sentence: str = ""
    rank: int = 100


@dataclass(frozen=True)
class Simulated:
    """Values of a healthy node of a simulated fleet.

    `value`, in the unit of the model's `value`, is that of the first CPU of each component (`each`). For `pair` it is
    multiplied by the core-to-core latency in ns of the first core and one other of each closeness. Metrics that are
    better when higher are divided by it. `words` has a factor by the word of each other dimension. With `clock`, the
    value scales with the core clock; metrics that are better when lower scale inversely. `defects` have the names by
    which they are injected (`node003: idle-state +200%`, or `idle-state core 5 +200%`), each with the words that it
    changes (none of a dimension: all).
    """

    value: float
    each: Literal["core", "ccx", "node", "pair"] = "core"
    words: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    clock: bool = False
    defects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Here:
    """How `nodeprint here` measures it: `name` on the terminal, and `arguments` of the kernel from least to most
    thorough.

    The available time selects one of them.
    """

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Measurement:
    """One operation of one kernel; `kernel` is the directory of its file.

    `what` names the measured quantity, and `axis` its label in a figure.
    `instruction` distinguishes measurements of the same name. `quantity` and `unit` are those of its records.

    `arguments` always apply and a preset adds its own (`presets`; None leaves the measurement out). `runs` is, by
    preset, the number of runs in a job for each configured run. `by_default` lists the presets that include it if the
    configuration has no list. `short` are arguments that keep the kernel's tests short, and `simulated` its values if
    nothing else simulates them. `scope` is the extent of one call: a node, or the fabric between nodes. `here` has the
    arguments of `nodeprint here`. `strips` draws a row by CPU for each word of its places. `on_paper` puts its medians
    among the main results, which paper and terminal show.
    """

    what: str
    quantity: str
    unit: str
    axis: str = ""
    kernel: str = ""
    arguments: str = ""
    presets: Mapping[str, str | None] = field(default_factory=dict)
    scope: Literal["node", "fabric"] = "node"
    runs: Mapping[str, int] = field(default_factory=dict)
    by_default: tuple[str, ...] = ()
    model: Model | None = None
    short: str | None = None
    simulated: Simulated | None = None
    instruction: str = ""
    strips: bool = False
    on_paper: bool = False
    here: Here | None = None

    @property
    def operation(self) -> str:
        """The operation of the kernel: the word behind `--op` or `--mode`."""
        words = self.arguments.split()
        return words[1] if words[1:] else ""


@dataclass(frozen=True)
class KernelFile:
    """A measurements.yaml: the kernel's purpose in a sentence (`test`), its terms and measurements by name.

    `order` sorts its measurements among those of other kernels; load comes last, as it heats the node.
    """

    measurements: Mapping[str, Measurement]
    terms: Mapping[str, FindingTerm] = field(default_factory=dict)
    test: str = ""
    order: int = 50


@cache
def kernel_files() -> Mapping[str, KernelFile]:
    """The file of each kernel, by kernel, in measuring order. Raises NodeprintError."""
    paths = (sources.folder() / "kernels").glob("*/measurements.yaml")
    by_path = {path: read_file(path) for path in sorted(paths)}
    declared = {"other", *(name for content in by_path.values() for name in content.terms)}
    for path, content in by_path.items():
        for name, of in content.measurements.items():
            if of.model is not None and of.model.term not in declared:
                advice = f"{nearest(of.model.term, declared)} write it under `terms`, or leave it out"
                key = f"measurements.{name}.model.term"
                raise NodeprintError(f"no kernel has a term {of.model.term}", where=path, key=key, advice=advice)
    return {path.parent.name: content for path, content in sorted(by_path.items(), key=lambda item: item[1].order)}


@cache
def measurements() -> Mapping[str, Measurement]:
    """Every measurement that can be asked for, by name."""
    return {name: known for content in kernel_files().values() for name, known in content.measurements.items()}


@cache
def imported() -> Mapping[str, Measurement]:
    """Imported measurements that no kernel makes, by name."""
    return read_file(Path(__file__).with_name("imported.yaml")).measurements


@cache
def terms() -> Mapping[str, FindingTerm]:
    """What findings of cells are of, by term."""
    return {name: term for content in kernel_files().values() for name, term in content.terms.items()}


def known(name: str) -> Measurement | None:
    """The definition of a measurement, by a kernel or an importer; None for tables."""
    return measurements().get(name) or imported().get(name)


def read_file(path: Path) -> KernelFile:
    """A measurements.yaml, checked. Raises NodeprintError naming the file and the key."""
    made: KernelFile = _typed(checked_yaml.read_own(path, _ADVICE), KernelFile, path, "")
    kernel = path.parent.name
    return replace(made, measurements={name: replace(of, kernel=kernel) for name, of in made.measurements.items()})


def _typed(value: Any, kind: Any, path: Path, key: str) -> Any:
    """A value of YAML as its type. Raises NodeprintError naming the file and the key."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType and NoneType in inner and value is not None:
        kind = next(of for of in inner if of is not NoneType)
        origin, inner = get_origin(kind), get_args(kind)
    made: Any
    if is_dataclass(kind):
        made = _filled(value, kind, path, key)
    elif kind == _SETS:
        words = _typed(value, tuple[str, ...], path, key)
        made = tuple(tuple(part.strip() for part in word.split(" x ")) for word in words)
    elif origin is tuple and isinstance(value, list):
        made = tuple(_typed(item, inner[0], path, f"{key}[{number}]") for number, item in enumerate(value))
    elif origin is Mapping and isinstance(value, dict):
        made = {str(name): _typed(item, inner[1], path, _below(key, str(name))) for name, item in value.items()}
    else:
        made = _scalar(value, kind, path, key)
    return made


#: The type of sets of labels, which are written as [cpu, cpu x depth].
_SETS = tuple[tuple[str, ...], ...]
#: The required form of a value, by type.
_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    Mapping: "keys with values",
}


def _scalar(value: Any, kind: Any, path: Path, key: str) -> Any:
    """A plain value: of one of the types or words of `kind`."""
    origin = get_origin(kind)
    choices = get_args(kind) if origin in (Literal, UnionType) else (kind,)
    if type(value) is int and float in choices:
        return float(value)
    if type(value) in choices or (origin is Literal and value in choices):
        return value
    wanted = _WORDS.get(origin) or " or ".join(str(_WORDS.get(of, of)) for of in choices if of is not NoneType)
    what = f"must be {wanted}, not {printable(repr(value), 60)}"
    raise NodeprintError(what, where=path, key=key, advice=_ADVICE)


def _filled(content: Any, kind: Any, path: Path, key: str) -> Any:
    """A mapping of YAML as a dataclass."""
    if not isinstance(content, dict):
        raise NodeprintError("must be keys with values", where=path, key=key or "the file", advice=_ADVICE)
    hints = _hints(kind)
    for name in content:
        if name not in hints or name == "kernel":
            if now := former_keys.new_name(str(name), hints):
                raise NodeprintError("a former name", where=path, key=_below(key, str(name)), advice=f"write `{now}`")
            nearby = f"{nearest(str(name), hints)} known are {', '.join(hints)}".strip()
            raise NodeprintError("unknown key", where=path, key=_below(key, printable(str(name), 60)), advice=nearby)
    for part in fields(kind):
        if part.default is MISSING and part.default_factory is MISSING and part.name not in content:
            raise NodeprintError(f"{part.name} is missing", where=path, key=key or "the file", advice=_ADVICE)
    values = {name: _typed(value, hints[name], path, _below(key, name)) for name, value in content.items()}
    if "labels" in values:
        values["labels"] = {**LABELS, **values["labels"]}
    return kind(**values)


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _below(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
