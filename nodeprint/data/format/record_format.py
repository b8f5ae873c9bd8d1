"""The lines of a record file as types, of which their schema, their decoders and the sentences for bad lines are made
(docs/formats.md)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from nodeprint.errors import NodeprintError, printable
from nodeprint.settings.keys import key, written

SCHEMA = 1

Flag = Literal["mixed_lines", "disturbed", "moved", "oversubscribed"]
#: Flags of a pair or a cell and their bit in the packed mask.
FLAGS: Mapping[str, int] = {flag: 1 << bit for bit, flag in enumerate(get_args(Flag))}
_EACH_ONCE = {"uniqueItems": True}
Flags = Annotated[tuple[Flag, ...], Meta(extra_json_schema=_EACH_ONCE)]

#: No number of a kernel is larger: whole numbers up to here are exact also as floats.
MOST = 2**53
#: Of a value in a unit: of times 1000 s, of rates a thousand times the fastest machine's.
HIGHEST: Mapping[str, float] = {"ns": 1e12, "s": 1e9, "Hz": 1e11, "B/s": 1e17, "1/s": 1e18}
#: Less than a cycle of any core.
LEAST_NS = 0.1

Count = Annotated[int, Meta(ge=0, le=MOST)]
Number = Annotated[float, Meta(ge=0, le=1e18)]
Positive = Annotated[float, Meta(gt=0, le=1e18)]
_Latency = Annotated[float, Meta(ge=LEAST_NS, le=HIGHEST["ns"])]
_Nanoseconds = Annotated[float, Meta(ge=0, le=HIGHEST["ns"])]
_Seconds = Annotated[float, Meta(ge=-1e9, le=1e9)]
_Share = Annotated[float, Meta(ge=0, le=1)]
#: A NUMA node; -1 where it is not known.
_Home = Annotated[int, Meta(ge=-1, le=MOST)]
_Crc32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
_Hash = Annotated[str, written(r"^[0-9a-f]{16}$", "16 hex digits")]
_HomePolicy = Annotated[
    str, written(r"^(first|second|each|sockets|[0-9]+)$", "`first`, `second`, `each`, `sockets` or a number")
]
_Moment = Annotated[str, written(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", "a time as 2026-12-31T00:00:00Z")]


class Open(Struct):
    """A record that may have further members of its kernel."""


class Clock(Struct):
    """What times."""

    source: Literal["tsc", "clock_gettime", "cntvct"]
    hz: Positive
    step_ns: Number
    calibrated_on: Count | UnsetType = UNSET


class RampUp(Struct):
    """How a CPU's clock rises after it idled."""

    first_hz: Positive
    settled_hz: Positive
    after_us: Number
    waited_us: Number


class DmaLatency(Struct):
    """Whether waiting CPUs are kept from sleeping."""

    held_off: bool
    reason: str | UnsetType = UNSET


class Placement(Open):
    """The NUMA nodes that hold the memory of a buffer."""

    bytes: Count
    bound: bool
    pages: Literal["base", "thp", "huge", "mixed"]
    home: _Home | UnsetType = UNSET
    verified_by: Literal["move_pages", "numa_maps", "one_node", "nothing"] | UnsetType = UNSET
    huge_bytes: Count | UnsetType = UNSET


class Imported(Struct):
    """The source of imported records."""

    format: str
    source: str
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


class CellColumns(Struct):
    """What cells are of."""

    dims: Annotated[tuple[str, ...], Meta(extra_json_schema=_EACH_ONCE)]
    values: Annotated[dict[str, str], Meta(min_length=1)]

    def __post_init__(self) -> None:
        names = {*self.dims, *self.values} - {"run", "pass", "flags", "record"}
        if len(names) != len(self.dims) + len(self.values):
            raise ValueError("must name each of dims and values once, and none `run`, `pass`, `flags` or `record`")


class Transport(Struct):
    """What carries messages."""

    library: str
    pml: tuple[str, ...]
    btl: tuple[str, ...]
    mtl: tuple[str, ...]
    single_copy: str
    ucx: bool
    environment: dict[str, str]


class Header(Open, tag_field="record", tag="header", kw_only=True):
    """The common facts of all records that follow."""

    schema: Annotated[Literal[1], key("the version of this format")]
    segment: Annotated[Count, key("0, then 1 for each continuation")]
    kernel: Annotated[str, key("the program, as `coherence`")]
    operation: Annotated[str, key("what it does, as `cas`")]
    quantity: Annotated[
        str,
        key(
            "as `hop`, a round trip / 2; kernels/*/measurements.yaml has that of each measurement. Different quantities"
            " are never compared"
        ),
    ]
    unit: Annotated[str, key("of the quantity: `ns`, `B/s`, ...")]
    host: Annotated[str, key("the real host name, short")]
    job: Annotated[int, key("number of the job", ge=1, le=MOST)]
    run: Annotated[int, key("number of the run", ge=1, le=MOST)]
    arguments: Annotated[
        tuple[str, ...],
        key("everything that affects the measurement, without `--out`, `--job`, `--run`, `--seed`"),
    ]
    cpus: Annotated[tuple[Count, ...], key("OS numbers that take part", extra_json_schema=_EACH_ONCE)]
    passes: Annotated[int, key("passes that are planned", ge=1, le=MOST)]
    boot_id: Annotated[str, key("the kernel's boot id")] | UnsetType = UNSET
    seed: Annotated[int, key("the seed of all random choices", ge=0)] | UnsetType = UNSET
    start_time: Annotated[_Moment, key("ISO 8601, UTC, `Z`")] | UnsetType = UNSET
    pairs_hash: (
        Annotated[_Hash, key("with `--pairs`: 16 hex digits over the pairs that its file named, with their homes")]
        | UnsetType
    ) = UNSET
    kernel_hash: (
        Annotated[_Hash, key("the first 16 hex digits of the SHA-256 over the kernel's sources")] | UnsetType
    ) = UNSET
    compiler: Annotated[str, key("compiler and version")] | UnsetType = UNSET
    atomics: (
        Annotated[
            Literal["lock", "lse", "ll-sc", "unknown"],
            key("what compare-exchange compiles to: `lock` (x86-64), `lse` or `ll-sc` (aarch64)"),
        ]
        | UnsetType
    ) = UNSET
    clock: (
        Annotated[
            Clock,
            key(
                '`{"source": "tsc", "hz": 2.3e9, "step_ns": 0.43, "calibrated_on": 0}`; `source`: `tsc`, '
                "`clock_gettime` or `cntvct`; `step_ns`: by how much the counter advances at once; `calibrated_on`: "
                "a CPU"
            ),
        ]
        | UnsetType
    ) = UNSET
    ramp_up: (
        Annotated[
            RampUp,
            key(
                'for pairs: `{"first_hz": 3.4e9, "settled_hz": 3.4e9, "after_us": 0, "waited_us": 0}`. `first_hz` is '
                "the clock of the first CPU after 20 ms of idling, `settled_hz` the one that it settles at within 3 "
                "ms. `after_us` is the time to come within 3% of it. `waited_us` is how long the CPUs of a pair work "
                "before anything is timed"
            ),
        ]
        | UnsetType
    ) = UNSET
    cpu_dma_latency: (
        Annotated[
            DmaLatency,
            key(
                'for kernels whose workers wait for one another: `{"held_off": true}` if /dev/cpu_dma_latency was '
                'held open at 0, else `{"held_off": false, "reason": "..."}`. A waiting CPU may then sleep and answer '
                "later. Absent in older records"
            ),
        ]
        | UnsetType
    ) = UNSET
    home: Annotated[
        _HomePolicy | Count | UnsetType | None,
        key(
            "home policy: `first`, `second`, `each`, `sockets`, or the number of a node. With several sockets, "
            "`sockets` is `first` and the node at the same position in each other socket"
        ),
    ] = UNSET
    parallel: (
        Annotated[
            int,
            key(
                "pairs measured at the same time (pair operations); above 1 the result contains interference",
                ge=1,
                le=MOST,
            ),
        ]
        | UnsetType
    ) = UNSET
    not_measured: (
        Annotated[
            dict[str, str],
            key(
                'requests that cannot be measured here, with the reason: `{"O": "not on this CPU: ...", '
                '"memory of NUMA node 2": "full: ..."}`'
            ),
        ]
        | UnsetType
    ) = UNSET
    lines: Annotated[Count, key("lines a pass that are planned")] | UnsetType = UNSET
    batches: Annotated[Count, key("batches a line")] | UnsetType = UNSET
    round_trips: Annotated[Count, key("the smallest number of round trips a batch")] | UnsetType = UNSET
    pinned_by: (
        Annotated[
            Literal["likwid-pin", "native"],
            key(
                "`native`: without likwid, and where the masks that likwid-pin set were read back and were not those "
                "asked"
            ),
        ]
        | UnsetType
    ) = UNSET
    placement: (
        Annotated[
            dict[str, Placement],
            key(
                'per home node: `{"0": {"bytes": 16777216, "bound": true, "verified_by": "move_pages", "pages": '
                '"base"}}`. `bound` is false for first touch. `verified_by`: `move_pages`, `numa_maps`, or `one_node` '
                "(there is no other). `pages`: `base`, `thp` with `--huge-pages`, or `mixed` if only some are huge"
            ),
        ]
        | UnsetType
    ) = UNSET
    simulated: Annotated[bool, key("true when a simulator wrote it; absent or false otherwise")] | UnsetType = UNSET
    imported: (
        Annotated[
            Imported,
            key(
                'for imported files: `{"format": "...", "source": "file name", "unknown": ["home", ...], "notes": '
                '["what was left out", ...]}`; absent otherwise'
            ),
        ]
        | UnsetType
    ) = UNSET
    cells: (
        Annotated[
            CellColumns,
            key("for measurements of cells, not pairs: the coordinates of a cell and its values with units (below)"),
        ]
        | UnsetType
    ) = UNSET
    applicable: Annotated[bool, key("false where there is nothing to measure on this node")] | UnsetType = UNSET
    reason: Annotated[str, key("why not, a sentence")] | UnsetType = UNSET
    directed: Annotated[bool, key("true: a pair is measured in each direction, from `a` to `b`")] | UnsetType = UNSET
    message_bytes: Annotated[int, key("of LinkTest, as the next three: see there", ge=1, le=MOST)] | UnsetType = UNSET
    timed_by: Annotated[Literal["c", "python"], key("`python`: by mpi4py's own calls")] | UnsetType = UNSET
    ranks: Annotated[tuple[tuple[str, Count], ...], key("host and CPU of each rank")] | UnsetType = UNSET
    transport: Annotated[Transport, key("the parts of MPI that carry the messages")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.applicable is False and self.reason is UNSET:
            raise ValueError("key 'reason' is missing, though it is not applicable")


class Pass(Struct, tag_field="record", tag="pass"):
    """Which lines the pairs of a pass work on."""

    number: Count = field(name="pass")
    home: _Home
    line_set: tuple[Count, ...]


class Pair(Struct, tag_field="record", tag="pair", kw_only=True):
    """A pair of CPUs in a pass."""

    a: Count
    b: Count
    home: _Home
    number: Count = field(name="pass")
    latency_ns: _Latency
    flags: Flags
    ci_low_ns: _Nanoseconds | None = None
    ci_high_ns: _Nanoseconds | None = None
    min_ns: _Nanoseconds | None = None
    p25_ns: _Nanoseconds | None = None
    median_ns: _Nanoseconds | None = None
    p99_ns: _Nanoseconds | None = None
    line_sd_ns: _Nanoseconds | None = None
    lines: Count | UnsetType = UNSET
    round_trips: Annotated[int, Meta(ge=1, le=MOST)] | UnsetType = UNSET
    retries: Count | UnsetType = UNSET
    slow_share: _Share | None = None
    clock_a_ghz: Number | None = None
    clock_b_ghz: Number | None = None
    switches: Count | UnsetType = UNSET
    at_once: Count | UnsetType = UNSET
    slot: Count | UnsetType = UNSET
    line_ns: tuple[_Nanoseconds | None, ...] | UnsetType = UNSET
    cluster_ns: tuple[_Nanoseconds | None, ...] | UnsetType = UNSET


class Sentinel(Pair, tag_field="record", tag="sentinel", kw_only=True):
    """A pair that is measured repeatedly, to detect drift."""

    at_s: _Seconds


class Remeasurement(Pair, tag_field="record", tag="again", kw_only=True):
    """A pair that was measured once more, alone."""

    reason: Literal["passes_differ", "budget", "slowest"]


class Second(Open, tag_field="record", tag="second"):
    """Other activity of the machine in about a second."""

    at_s: _Seconds
    span_s: _Seconds
    steal_s: _Seconds | UnsetType = UNSET
    interrupts: Count | UnsetType = UNSET


class Census(Struct, tag_field="record", tag="census"):
    """How far the lines of a pool are from a CPU."""

    home: _Home
    cpu: Count
    reload_ns: tuple[tuple[Number, ...], tuple[Number, ...]]
    agreement: Annotated[float, Meta(ge=-1, le=1)] | UnsetType = UNSET


class Clusters(Struct, tag_field="record", tag="clusters"):
    """The places of a pool's lines, as clusters."""

    home: _Home
    address_bits: Count
    clusters: Annotated[int, Meta(ge=1, le=12)]
    reason: str | UnsetType = UNSET
    separation: Positive | UnsetType = UNSET
    agreement: _Share | UnsetType = UNSET
    sizes: tuple[Count, ...] | UnsetType = UNSET
    lines: tuple[Count, ...] | UnsetType = UNSET
    cluster: tuple[Count, ...] | UnsetType = UNSET


class WrongNumber(Struct):
    """A wrong result of arithmetic."""

    cpu: Count
    chain: Count
    lane: Count
    expected: _Hash
    found: _Hash


class Cell(Open, tag_field="record", tag="cell", kw_only=True):
    """A cell in a pass; the header names its coordinates and values."""

    number: Count = field(name="pass")
    flags: Flags
    difference: WrongNumber | UnsetType = UNSET


class Trailer(Open, tag_field="record", tag="trailer"):
    """How it ended."""

    elapsed_s: Number
    complete: bool
    busy_s: Number | UnsetType = UNSET
    prepare_busy_s: Number | UnsetType = UNSET
    pairs: Count | UnsetType = UNSET
    cells: Count | UnsetType = UNSET
    voluntary_switches: Count | UnsetType = UNSET
    involuntary_switches: Count | UnsetType = UNSET
    steal_s: Number | UnsetType = UNSET
    lost_share: _Share | UnsetType = UNSET
    lines_by_kind: dict[str, Count] | UnsetType = UNSET
    crc32: _Crc32 | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.lines_by_kind is UNSET) != (self.crc32 is UNSET):
            raise ValueError("keys 'lines_by_kind' and 'crc32' belong together")


class Offset(Open, tag_field="record", tag="offset"):
    """How far a CPU's counter is ahead."""

    cpu: Count
    offset_ns: Annotated[float, Meta(ge=-1e18, le=1e18)] | None


class SocketSecond(Struct):
    """A socket's work in a second."""

    socket: _Home
    flops_per_s: Positive
    core_hz: Positive
    lowest_core_hz: Positive
    lowest_cpu: Count


class Output(Struct, tag_field="record", tag="output"):
    """A line that a command of the site printed, a byte beyond ASCII as one character."""

    text: str


class LoadSecond(Open, tag_field="record", tag="load_second"):
    """A second of the kernel `load`."""

    number: Count = field(name="pass")
    second: Count
    sockets: Annotated[tuple[SocketSecond, ...], Meta(min_length=1)]
    power_w: dict[str, Annotated[float, Meta(ge=-1e9, le=1e9)]] | None


def _tag(kind: type[Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _by_tag(*kinds: type[Struct]) -> dict[str, type[Struct]]:
    return {_tag(kind): kind for kind in kinds}


#: Records beside the pairs and cells: what else was seen while they were measured (docs/formats.md).
COMPANIONS = _by_tag(Sentinel, Second, Remeasurement, Census, Clusters, Offset, LoadSecond, Output)
#: Every kind of line, by what it calls itself.
KINDS = _by_tag(Header, Pass, Pair, Cell, Trailer) | COMPANIONS
#: What is inside of lines and has no other members than its type says.
_INSIDE: tuple[type[Struct], ...] = (
    Clock,
    RampUp,
    DmaLatency,
    Imported,
    CellColumns,
    Transport,
    WrongNumber,
    SocketSecond,
)
_NO_OTHER = {"additionalProperties": False}

#: What the members of a line must be together: what its writers keep to, and readers need not know.
_TOGETHER: Mapping[type[Struct], Mapping[str, Any]] = {
    Header: {
        "allOf": [
            {
                "if": {"required": ["imported"]},
                "else": {
                    "required": ["boot_id", "seed", "start_time", "kernel_hash", "compiler", "clock", "pinned_by"]
                },
            },
            {
                "if": {"required": ["cells"]},
                "then": {"not": {"required": ["home"]}},
                "else": {"required": ["home"]},
            },
            {
                "if": {"required": ["applicable"], "properties": {"applicable": {"const": False}}},
                "then": {"required": ["reason"]},
            },
        ]
    },
    Clusters: {
        "if": {"required": ["lines"]},
        "then": {"required": ["sizes", "cluster"]},
        "else": {"properties": {"clusters": {"const": 1}}, "required": ["reason"]},
    },
    Trailer: {"oneOf": [{"required": ["pairs"]}, {"required": ["cells"]}]},
}


def schema() -> dict[str, Any]:
    """The JSON schema of a line, with a definition for each kind of record by its name."""
    _, made = msgspec.json.schema_components(KINDS.values())
    for kind in (*KINDS.values(), *_INSIDE):
        made[kind.__name__] |= {**_TOGETHER.get(kind, {}), **({} if issubclass(kind, Open) else _NO_OTHER)}
    definitions = {name: made.pop(kind.__name__) for name, kind in KINDS.items()}
    for name, definition in definitions.items():
        definition["properties"]["record"]["description"] = f"this is a {name}"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of a record file",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in KINDS],
        "$defs": definitions | made,
    }


def narrowed(kind: type[Struct], keys: Collection[str]) -> type[Struct]:
    """Return a type of line that decodes only these keys. Skipping the other keys is faster."""
    chosen = [of for of in msgspec.structs.fields(kind) if of.encode_name in keys]
    fields = [(of.name, of.type, field(name=of.encode_name, default=of.default)) for of in chosen]
    return msgspec.defstruct(kind.__name__, fields, kw_only=True, gc=False, tag_field="record", tag=_tag(kind))


@cache
def cells_of(dims: tuple[str, ...], values: tuple[str, ...]) -> type[Struct]:
    """The type of cells with these coordinates and values, which may be called anything."""
    common = [of for of in msgspec.structs.fields(Cell) if of.required]
    fields: list[tuple[str, Any, Any]] = [(of.name, of.type, field(name=of.encode_name)) for of in common]
    fields += [(f"dim{at}", int | str, field(name=name)) for at, name in enumerate(dims)]
    fields += [(f"value{at}", float | None, field(name=name, default=None)) for at, name in enumerate(values)]
    return msgspec.defstruct(Cell.__name__, fields, kw_only=True, gc=False, tag_field="record", tag=_tag(Cell))


#: Without as many digits as this no number is beyond 64 bits; each value of a line is looked at where there are.
_MANY_DIGITS = re.compile(rb"[0-9]{19}")


def record(where: str, number: int, line: bytes) -> dict[str, Any]:
    """The JSON object of a line; its kind is not checked yet. Raises NodeprintError naming file and line."""
    try:
        record = msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:  # also what is no UTF-8
        raise malformed(where, number, "not a JSON record") from error
    if not isinstance(record, dict):
        raise malformed(where, number, "not a JSON object")
    for name, value in record.items() if _MANY_DIGITS.search(line) else ():
        # a seed may have 64 bits; all else is counted in arrays of int64
        if _is_beyond(value, 2**64 if name == "seed" else 2**63):
            raise malformed(where, number, f"{printable(repr(name), 40)} has a whole number beyond 64 bits")
    return record


def _is_beyond(value: Any, limit: int) -> bool:
    """Whether a value, or one inside of it, is a whole number beyond a limit."""
    if isinstance(value, int):
        return not -limit <= value < limit
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_is_beyond(item, limit) for item in inner)


def checked(where: str, number: int, record: Mapping[str, Any], kind: type[Struct]) -> Any:
    """A record as its type. Raises NodeprintError naming file, line, key, and what that must be."""
    if kind is Header and isinstance(record.get("schema"), int) and record["schema"] != SCHEMA:
        raise NodeprintError(
            f"schema version {record['schema']}, this nodeprint reads {SCHEMA}",
            where=where,
            line=number,
            advice="use the nodeprint that wrote it",
        )
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        raise malformed(where, number, f"{_tag(kind)} {_explained(str(error), kind)}") from error


def malformed(where: str, line: int, problem: str) -> NodeprintError:
    """The error for a line that no kernel writes: `problem` is what is wrong with it."""
    return NodeprintError(problem, where=where, line=line, advice="set the file aside and measure the node again")


_MISSING = re.compile(r"Object missing required field `(.*)`")
#: Where in a line msgspec met what is wrong.
_PLACE = re.compile(r"(.*) - at `\$\.(.*)`")


def _explained(message: str, kind: type[Struct]) -> str:
    """Return the key that msgspec rejects in a line, and the expected value."""
    problem, path = match.groups() if (match := _PLACE.fullmatch(message)) else (message, "")
    if match := _MISSING.fullmatch(problem):
        return f"key {printable(repr('.'.join(filter(None, (path, match[1])))), 40)} is missing"
    if not path:
        return printable(problem)
    schema = msgspec.json.schema(kind)
    members = schema["$defs"][kind.__name__]
    # what a cell is of may be called anything, with dots and brackets
    parts = [path] if path in members["properties"] else re.findall(r"[^.\[\]]+", path)
    shown = printable(repr(path), 40)
    if problem.startswith("must "):
        return f"key {shown} {problem}"
    return f"key {shown} must be {_in_words(_rule_of(parts, members, schema), schema)}"


def _rule_of(parts: Iterable[str], rule: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The rule of a schema for the value at a path; empty where it has none of its own."""
    for part in parts:
        whole = schema["$defs"][rule["$ref"].rpartition("/")[2]] if "$ref" in rule else rule
        rule = whole.get("properties", {}).get(part) or whole.get("items") or whole.get("additionalProperties") or {}
    return rule


_WORDS = {
    "integer": "a whole number",
    "number": "a finite number",
    "string": "a text",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
}


def _in_words(rule: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the expected value of a schema in words."""
    if "$ref" in rule:
        inner = schema["$defs"][rule["$ref"].rpartition("/")[2]]
        return f"an object with {', '.join(inner.get('required', ()))}"
    if choices := rule.get("anyOf"):
        return " or ".join(_in_words(choice, schema) for choice in choices)
    if "allowed" in rule:
        return str(rule["allowed"])
    if "enum" in rule:
        return "one of " + ", ".join(map(str, rule["enum"]))
    if rule.get("type") == "array":
        of = rule.get("items")
        return "a list" + (f", each {_in_words(of, schema)}" if of else "")
    limits = {"minimum": "of at least", "exclusiveMinimum": "above", "maximum": "of at most"}
    ranges = [f"{words} {rule[limit]:g}" for limit, words in limits.items() if limit in rule]
    return " ".join([_WORDS.get(str(rule.get("type")), "as docs/formats.md says"), " and ".join(ranges)]).strip()
