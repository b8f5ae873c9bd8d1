"""The configuration of a campaign: read, checked against its schema, completed; and the plan that follows from it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml

from nodeprint.errors import NodeprintError, printable, unreadable

if TYPE_CHECKING:
    import jsonschema

#: What a measurement is, and what node-run says itself.
_NOT_ARGUMENTS = ("--op", "--mode", "--out", "--job", "--run", "--plan", "--help", "--launcher", "--nodes", "--ranks")
#: Arguments end up on a command line of node-run: words of option letters, numbers, names and lists.
_WORD = re.compile(r"[A-Za-z0-9_.,:=/+%@-]+")


def load(path: Path) -> dict[str, Any]:
    """Read a configuration. Returns it with every default filled in.

    Raises NodeprintError naming the file and the key's path.
    """
    config = read_yaml(path)
    if not config:
        advice = "write at least one key, such as `campaign: main`; all others have their defaults"
        raise NodeprintError("it has no key", where=path, advice=advice)
    complete(config, path)
    return config


def complete(config: dict[str, Any], path: Path) -> None:
    """Check a configuration that was read from `path` and fill its defaults in, in place.

    Raises NodeprintError naming the file and the key's path.
    """
    if config.get("launch") == "sweep":
        what = "`sweep` is not used any more, as a job of its own for each node is as quick and waits for no other"
        raise NodeprintError(what, where=path, key="launch", advice="write `launch: slurm`")
    asked = "measure" in config
    check(config, _package_yaml("schemas/config.yaml"), path)
    known = measurements()
    if not asked:
        config["measure"] += [name for name, what in known.items() if config["preset"] in what.get("by_default", ())]
    for number, name in enumerate(config["measure"]):
        if name not in known:
            raise NodeprintError(
                f"unknown measurement {printable(repr(name), 60)}",
                where=path,
                key=f"measure[{number}]",
                advice=f"known are {', '.join(known)}",
            )
    if not _planned(config | {"arguments": {}}, "node"):
        raise NodeprintError(
            f"preset {config['preset']} leaves out every measurement of nodes asked for",
            where=path,
            key="preset",
            advice="choose a longer preset or other measurements",
        )
    for name, words in config["arguments"].items():
        if name not in known:
            raise NodeprintError(
                "no such measurement",
                where=path,
                key=f"arguments.{printable(str(name), 60)}",
                advice=f"known are {', '.join(known)}",
            )
        bad = [word for word in words.split() if not _WORD.fullmatch(word)]
        if bad:
            raise NodeprintError(
                f"{printable(repr(bad[0]), 60)} cannot be an argument",
                where=path,
                key=f"arguments.{name}",
                advice="see the kernel's --help",
            )
        fixed = [word for word in words.split() if word in _NOT_ARGUMENTS]
        if fixed:
            raise NodeprintError(
                f"{fixed[0]} cannot be chosen here",
                where=path,
                key=f"arguments.{name}",
                advice="leave it out; another operation is a measurement of its own (config/README.md)",
            )


def check_files(config: Mapping[str, Any], path: Path) -> None:
    """See that the files of `acceptance`, `inventory`, `site.logo` and `site.setup` are there.

    That of `site.setup` must be on this machine where this is the one that is measured, or where it lies in the
    campaign's own folder, which all nodes see. Raises NodeprintError naming `path`, the configuration.
    """
    if not Path(str(config["acceptance"])).is_file():
        advice = "name a file (an empty one changes nothing), or take config/acceptance.yaml from `nodeprint sources`"
        raise NodeprintError(f"{config['acceptance']} is not there", where=path, key="acceptance", advice=advice)
    by_ansible, inventory = config["launch"] == "ansible", str(config["inventory"])
    if by_ansible and not (inventory and Path(inventory).exists()):
        what = f"{inventory} is not there" if inventory else "`launch: ansible` needs one"
        advice = "name an Ansible inventory; ansible/inventory.example.yml is an example"
        raise NodeprintError(what, where=path, key="inventory", advice=advice)
    logo = str(config["site"]["logo"])
    if logo and not Path(logo).is_file():
        advice = "name a PNG or SVG file, or leave it empty"
        raise NodeprintError(f"{logo} is not there", where=path, key="site.logo", advice=advice)
    setup = str(config["site"]["setup"])
    if setup and by_ansible and not Path(setup).is_absolute():
        advice = "name the file by its full path on the nodes"
        raise NodeprintError("the nodes do not see this folder", where=path, key="site.setup", advice=advice)
    if setup and (config["launch"] == "here" or not Path(setup).is_absolute()) and not Path(setup).is_file():
        advice = "name a file that can be sourced, or leave it empty"
        raise NodeprintError(f"{setup} is not there", where=path, key="site.setup", advice=advice)


def serials(config: Mapping[str, Any]) -> str:
    """What node-run is asked to do with serial numbers: `no`, `hash` or `yes`, of which YAML makes two truth values."""
    return {False: "no", True: "yes"}.get(config["serials"], str(config["serials"]))


def campaign_folder(config: Mapping[str, Any]) -> Path:
    """The folder of the configuration's campaign."""
    return Path(str(config["results"]), str(config["campaign"]))


def plan(config: Mapping[str, Any]) -> str:
    """plan.tsv: a line per measurement, with its name, kernel, arguments and number of runs (docs/formats.md).

    A measurement whose preset is null takes too long for it and is left out.
    """
    lines = []
    for name, arguments in _planned(config, "node"):
        runs = config["runs"] * runs_factor(name, config["preset"])
        what = measurements()[name]
        lines.append(f"{name}\t{what['kernel']}\t{arguments}\t{runs}\n")
    return "".join(lines)


@dataclass(frozen=True)
class PlanRow:
    """A line of a plan: a measurement, the kernel and arguments it is made by, and how many runs a job makes of it."""

    name: str
    kernel: str
    arguments: str
    runs: int


def read_plan(text: str, runs: int = 1) -> list[PlanRow]:
    """The lines of a plan.tsv; those without a fourth column have `runs` runs."""
    cells = [line.split("\t") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [
        PlanRow(row[0], row[1], row[2] if len(row) > 2 else "", int(row[3]) if row[3:] and row[3].isdecimal() else runs)
        for row in cells
        if len(row) > 1
    ]


def steps(plan: Sequence[PlanRow]) -> list[tuple[int, str]]:
    """Run and measurement in the order in which node-run makes them: runs of each are spread evenly over the job."""
    ordered = sorted(
        (Fraction(run, row.runs), number, run, row.name) for number, row in enumerate(plan) for run in range(row.runs)
    )
    return [(run + 1, name) for _, _, run, name in ordered]


def fabric_plan(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and arguments of what is measured between nodes, in one job over all of them."""
    return _planned(config, "fabric")


def _planned(config: Mapping[str, Any], scope: str) -> list[tuple[str, str]]:
    found = []
    for name in config["measure"]:
        what = measurements()[name]
        preset = what["presets"][config["preset"]]
        if preset is None or what.get("scope", "node") != scope:
            continue
        words = [what["arguments"], preset, config["arguments"].get(name, "")]
        if what["kernel"] == "linktest" and scope == "node" and config["mpi"]["launcher"]:
            words.append(f"--launcher {quote(config['mpi']['launcher'], safe='/:=,+@{}')}")  # one word, blanks as %20
        found.append((name, " ".join(" ".join(words).split())))
    return found


def planned(folder: Path) -> dict[str, str]:
    """The rows of the plan.tsv of a campaign or a job; none where there is no plan."""
    path = folder / "plan.tsv"
    return rows(path.read_text(errors="replace")) if path.exists() else {}


def rows(plan: str) -> dict[str, str]:
    """Of a plan the arguments of each measurement, by its name."""
    return {row.name: row.arguments for row in read_plan(plan)}


def plans_apart(before: Path, after: Path) -> dict[str, tuple[str, str]]:
    """Measurements that two campaigns made with other arguments, and these arguments."""
    old, new = planned(before), planned(after)
    return {name: (old[name], new[name]) for name in old if name in new and new[name] != old[name]}


def runs_factor(name: str, preset: str) -> int:
    """How many runs a job makes of a measurement for each that the configuration asks for."""
    return int(measurements()[name].get("runs", {}).get(preset, 1))


@cache
def measurements() -> dict[str, Any]:
    """Every measurement that can be asked for, by name (nodeprint/measurements.yaml)."""
    return _package_yaml("measurements.yaml")


@cache
def derived() -> dict[str, Any]:
    """Every quantity that is derived from records of a measurement, by name (nodeprint/derived.yaml)."""
    return _package_yaml("derived.yaml")


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping of plain, finite values. Raises NodeprintError naming file, line and column."""
    try:
        content = yaml.load(path.read_text(), Loader=_Loader)
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        advice = "name a YAML file, in UTF-8"
        raise NodeprintError("not text", where=path, advice=advice) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise NodeprintError(
            printable(str(error.problem or error.context)),
            where=path,
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
            advice="write it as YAML: `key: value`, a line each",
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else "not YAML, but control characters"
        raise NodeprintError(what, where=path, advice="write it as YAML: `key: value`, a line each") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise NodeprintError("no keys with values", where=path, advice="write `key: value`, a line each")
    return content


class _Loader(yaml.SafeLoader):
    """YAML's plain values, dates as they are written; a key that is there twice or a number that cannot be: an error
    with its place."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (as in its base)
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"{printable(key.value, 60)} is there twice", problem_mark=key.start_mark
                )
            seen |= {key.value} if isinstance(key, yaml.ScalarNode) else set()
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except ValueError as error:
            what = f"not a number that can be ({str(error).partition(';')[0]})"
            raise yaml.constructor.ConstructorError(problem=what, problem_mark=node.start_mark) from error
        if isinstance(value, float) and not math.isfinite(value):
            raise yaml.constructor.ConstructorError(problem="not a finite number", problem_mark=node.start_mark)
        return value


def check(
    content: dict[str, Any], schema: Mapping[str, Any], path: Path | str, guide: str = "config/README.md"
) -> None:
    """Check `content` against a JSON schema and fill its defaults in, in place; `guide` explains the keys.

    Raises NodeprintError naming the file and the path of the first wrong key.
    """
    import jsonschema  # noqa: PLC0415 (a tenth of a second, for those who read a configuration)

    error = min(
        jsonschema.Draft202012Validator(schema).iter_errors(content),
        key=lambda e: (len(e.path), e.json_path),
        default=None,
    )
    if error is not None:
        key, what, advice = _explained(error)
        raise NodeprintError(what, where=path, key=key, advice=advice or f"{guide} explains every key")
    _fill(content, schema)


#: What a value must be, by the type that a schema asks for.
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "keys with values",
}
#: What is wrong with a value, by the rule of the schema that it breaks.
_RULES = {
    "type": "must be {rule}, not {value}",
    "minimum": "must be at least {rule}, not {value}",
    "exclusiveMinimum": "must be more than {rule}, not {value}",
    "maximum": "must be at most {rule}, not {value}",
    "pattern": "{value} cannot be used",
    "minItems": "must not be empty",
    "minLength": "must not be empty",
    "uniqueItems": "{value} contains an item twice",
}


def _explained(error: jsonschema.ValidationError) -> tuple[str, str, str]:
    """The key's path, what is wrong with it, and what would be right where that is more than the guide says."""
    rule: Any = error.validator_value
    schema: Any = error.schema
    value: Any = error.instance
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    key = printable("".join(parts).removeprefix(".") or "the file")
    shown = "nothing" if value is None else printable(repr(value), 60)
    if error.validator == "additionalProperties":
        known = list(schema.get("properties", {}))
        unknown = next(str(name) for name in value if name not in known)
        path = f"{key}.{unknown}" if key != "the file" else unknown
        return printable(path), "unknown key", f"known are {', '.join(known)}"
    if error.validator == "enum":
        choices = ({False: "no", True: "yes"}.get(choice, choice) for choice in rule)  # as YAML spells them
        return key, f"{shown} is not allowed", f"choose from {', '.join(map(str, choices))}"
    if error.validator == "required":
        return key, f"{next(name for name in rule if name not in value)} is missing", ""
    if error.validator == "anyOf":
        return key, " or ".join(name for one in rule for name in one.get("required", ())) + " is missing", ""
    if error.validator in _RULES:
        what = _RULES[str(error.validator)].format(rule=_TYPES.get(str(rule), rule), value=shown)
        advice = f"write {schema['description']}" if "description" in schema else ""
        return key, what, "write it in quotes" if rule == "string" and isinstance(value, int | float) else advice
    return key, printable(error.message), ""


def _fill(content: dict[str, Any], schema: Mapping[str, Any]) -> None:
    for key, sub in schema.get("properties", {}).items():
        if "default" in sub and key not in content:
            default = sub["default"]
            content[key] = type(default)(default) if isinstance(default, list | dict) else default
        if isinstance(content.get(key), dict):
            _fill(content[key], sub)


@cache
def _package_yaml(name: str) -> dict[str, Any]:
    content = yaml.safe_load((files("nodeprint") / name).read_text())
    assert isinstance(content, dict)
    return content
