"""The definition of each measurement: kernels/<kernel>/measurements.yaml as types.

A kernel is a directory with its C file and this file; everything else that names a measurement, a term or their words
reads it here. The types are dataclasses, as a clone is planned where Snakemake alone is installed.
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

#: What a coordinate of this name is, unless the model's `labels` say otherwise: a CPU's slot, a NUMA node's order.
LABELS: Mapping[str, str] = {
    "cpu": "cpu",
    "a": "cpu",
    "b": "cpu",
    "home": "node",
    "memory_node": "node",
    "cpu_node": "node",
}


@dataclass(frozen=True)
class Model:
    """How a measurement is compared (docs/method/memory.md).

    `value` is the key of a record that is compared, on a `scale`: `linear` (relative to the peers), `log`, or `share`
    of the time. `term` is what its findings are called and whose tolerance holds, `terms` the labels whose values
    together name a set of places that may deviate as one, `rows` those that name a row of the report's table, taken
    where `at` says. `labels` says what a coordinate is: `cpu` (a slot), `node` (a NUMA node's order), `node_of_cpu`
    (measured as a CPU, of which its NUMA node counts); a coordinate without a label is a plain number or word. `places`
    is `pairs` for matrices of CPU x CPU, which have terms of their own, else `cells`.
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
    """A metric of findings, which several measurements may share: its words, and what is accepted and assumed of it.

    `name` is the metric in a list and `what` what differs. `tolerance`, `run` and `job` are the tolerance and the
    standard deviations between runs and jobs in percent (`nodeprint.judge.acceptance_file.CellRules`),
    `tolerance_without_boost` the tolerance where no node has a clock above its base clock, `source` is where they are
    from. `criterion`: an outcome rests on it unless acceptance.yaml says otherwise. `causes` are keys of
    reports/texts.yaml, or words with hyphens; `remedy` is what to do. Of a share of the time a finding may have an id
    (`finding`) and a `sentence` of its own. Of findings in one place that of the lowest `rank` is the finding and the
    others are finer: what takes time from a CPU, or slows its clock, shows in everything that runs there.
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
    """What a healthy node of a simulated fleet has: `value`, in the unit of the model's `value`, for the first CPU of
    every part (`each`), times a factor by the word of each other dimension (`words`). With `clock` it goes with the
    clock of the core: what is better when it is lower becomes shorter. `defects` are named as they are planted
    (`node003: idle-state +200%`, or `idle-state core 5 +200%`), each with the words that it changes, all where none.
    """

    value: float
    each: Literal["core", "ccx", "node"] = "core"
    words: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    clock: bool = False
    defects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Here:
    """How `nodeprint here` measures it: `name` on the terminal, and `arguments` of the kernel from poor to rich, of
    which the time that there is decides."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Measurement:
    """One operation of one kernel; `kernel` is the directory of its file.

    `what` is what it is of, `short_name` the same beside other figures on a terminal, `axis` on a figure's axis, and
    `instruction` tells apart those that say the same otherwise. `quantity` and `unit` are those of its records.

    `arguments` always apply and a preset adds its own (`presets`; None leaves the measurement out). `runs` says by
    preset how many runs a job makes for each that the configuration asks for, `by_default` which presets make it where
    the configuration has no list. `short` are arguments that keep the kernel's tests short, and
    `simulated` its values where nothing but these makes them. `scope` is what one call measures: a node, or the fabric
    between nodes. `here` has the arguments of `nodeprint here`. `strips` draws a row by CPU for each word of its
    places, and `on_paper` puts its table into the PDF.
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
    short_name: str = ""
    strips: bool = False
    on_paper: bool = False
    here: Here | None = None

    @property
    def operation(self) -> str:
        """What the kernel is asked for: the word behind `--op` or `--mode`."""
        words = self.arguments.split()
        return words[1] if words[1:] else ""


@dataclass(frozen=True)
class KernelFile:
    """A measurements.yaml: the `order` of its measurements among those of other kernels (load's come last, as they
    heat the node), what the kernel does in a sentence (`test`), its terms and measurements by name."""

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
    """What is imported and measured by no kernel, by name."""
    return read_file(Path(__file__).with_name("imported.yaml")).measurements


@cache
def terms() -> Mapping[str, FindingTerm]:
    """What findings of cells are of, by term."""
    return {name: term for content in kernel_files().values() for name, term in content.terms.items()}


def known(name: str) -> Measurement | None:
    """What a kernel or an importer says of a measurement; None of a metric of a table."""
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
#: What must be written, by type.
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
