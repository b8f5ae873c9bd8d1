"""YAML files of plain values, read as a type; an error is one sentence with file, key or line.

PyYAML reads them; jsonschema checks them by the schema of the type (docs/hooks.py). The loader adds rules for which
PyYAML has no option: plain values follow YAML 1.2, and duplicate keys and non-finite numbers are errors. The type of
config.yaml is a dataclass, because environments with Snakemake alone read it too.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_type_hints

import yaml

from nodeprint import reading
from nodeprint.errors import NodeprintError, nearest, printable, unreadable
from nodeprint.settings import former_keys
from nodeprint.settings.keys import schema_of

if TYPE_CHECKING:
    import jsonschema
    from _typeshed import DataclassInstance
    from msgspec import Struct

T = TypeVar("T")


def read(path: Path) -> dict[str, Any]:
    """A YAML mapping of plain, finite values. Raises NodeprintError naming file, line and column."""
    try:
        content = yaml.load(reading.content(path, follows=True).decode(), Loader=_Loader)
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        advice = "name a YAML file, in UTF-8"
        raise NodeprintError("not text", where=path, advice=advice) from error
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark, str(error.problem or error.context)
        advice = error.note or "write it as YAML: `key: value`, a line each"
        if "character '\\t'" in problem:
            problem, advice = "a tab begins the line", "indent it with blanks"
        elif "mapping values" in problem:
            problem, advice = "a second `: ` in a value", "put the value between quotation marks, or below `|`"
        raise NodeprintError(
            printable(problem),
            where=path,
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
            advice=advice,
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else "not YAML, but control characters"
        raise NodeprintError(what, where=path, advice="write it as YAML: `key: value`, a line each") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise NodeprintError("no keys with values", where=path, advice="write `key: value`, a line each")
    return content


def read_own(path: Path, advice: str) -> Any:
    """The YAML of a file of the project's own. Raises NodeprintError naming file and line.

    libyaml, if present, reads it in a twentieth of the time. It crashes on endless nesting, so `read` reads the files
    that a site writes.
    """
    try:
        return yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise unreadable(path, error) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise NodeprintError("not YAML", where=path, line=mark.line + 1 if mark else None, advice=advice) from error


#: Values whose type differs in YAML 1.1: exponents without a point or a sign are text, `no` and `on` truth values, and
#: days dates.
_EXPONENT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
_TRUTH = re.compile(r"(?:true|True|TRUE|false|False|FALSE)$")
_OTHERWISE = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")


class _Loader(yaml.SafeLoader):
    """YAML's plain values; a key that is no text or there twice or a number that cannot be: an error with its place."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (as in its base)
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _OTHERWISE]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "in brackets"
            is_text = key.tag in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")
            if name in seen or not is_text:
                what = "appears twice" if is_text else "must be text"
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {printable(name, 60)} {what}",
                    problem_mark=key.start_mark,
                    note="remove one of them" if is_text else "write it in quotes",
                )
            seen.add(name)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except ValueError as error:
            what = f"not a valid number ({str(error).partition(';')[0]})"
            raise yaml.constructor.ConstructorError(problem=what, problem_mark=node.start_mark) from error
        if isinstance(value, float) and not math.isfinite(value):
            raise yaml.constructor.ConstructorError(problem="not a finite number", problem_mark=node.start_mark)
        return value


class _Dumper(yaml.SafeDumper):
    """Writes a text in quotes where it would be read as something else."""


for _program in (_Loader, _Dumper):
    _program.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+.0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _TRUTH, list("tTfF"))


def typed(content: dict[str, Any], kind: type[T], path: Path | str) -> T:
    """`content` as a dataclass or a struct of msgspec, with its defaults. The schema of a dataclass is kept under its
    name, as Snakemake alone could not make it.

    Raises NodeprintError naming the file and the path of the outermost wrong key.
    """
    import jsonschema  # noqa: PLC0415 (a third of a second, for those who read such a file)

    kept = files("nodeprint") / f"schemas/{kind.__name__.lower()}.json"
    schema = json.loads(kept.read_text()) if is_dataclass(kind) else schema_of(kind, kind.__name__)
    draft = jsonschema.Draft202012Validator
    integers = draft.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)  # 2.0 is none
    strict = jsonschema.validators.extend(draft, type_checker=integers)  # type: ignore[no-untyped-call]
    validator = strict(schema, format_checker=jsonschema.FormatChecker(["date"]))
    error = min(validator.iter_errors(content), key=lambda e: (len(e.path), e.json_path), default=None)
    if error is not None:
        key, what, advice = _explained(error)
        raise NodeprintError(what, where=path, key=key, advice=advice or "config/README.md explains every key")
    if is_dataclass(kind):
        return cast(T, _filled(content, kind))
    import msgspec  # noqa: PLC0415 (not there where Snakemake alone reads config.yaml)

    return msgspec.convert(content, kind)


def _filled(content: dict[str, Any], kind: Any) -> Any:
    """Checked `content` as the dataclass `kind`."""
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in content.items():
        if is_dataclass(hints[name]):
            values[name] = _filled(value, hints[name])
        elif hints[name] is float:
            values[name] = float(value)
        elif isinstance(value, list) and is_dataclass(inner := get_args(hints[name])[0]):
            values[name] = tuple(_filled(item, inner) for item in value)
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def plain(value: DataclassInstance | Struct) -> dict[str, Any]:
    """A value as its file has it, with every default."""
    if is_dataclass(value):
        content: dict[str, Any] = json.loads(json.dumps(asdict(value)))
        return content
    import msgspec  # noqa: PLC0415 (as above)

    return msgspec.json.decode(msgspec.json.encode(value), type=dict[str, Any])


def text(value: DataclassInstance | Struct) -> str:
    """A value as a YAML file with every default."""
    return str(yaml.dump(plain(value), Dumper=_Dumper, sort_keys=False, width=120))


#: The required form of a value, by the type in the schema.
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "keys with values",
}
#: The error of a value, by the schema rule that it breaks.
_RULES = {
    "type": "must be {rule}, not {value}",
    "minimum": "must be at least {rule}, not {value}",
    "exclusiveMinimum": "must be more than {rule}, not {value}",
    "maximum": "must be at most {rule}, not {value}",
    "pattern": "{value} cannot be used",
    "minItems": "must not be empty",
    "minLength": "must not be empty",
    "format": "{value} is not a date",
}


#: By the type that a schema asks for what YAML reads as it.
_READ_AS = {"integer": (int,), "number": (int, float), "boolean": (bool,)}


def _unquoted_type(text: str) -> type:
    """The type of a text without its quotes."""
    try:
        return type(yaml.load(text, Loader=_Loader))
    except yaml.YAMLError:
        return str


def _explained(error: jsonschema.ValidationError) -> tuple[str, str, str]:
    """The key's path, the error, and a correction if more specific than the guide."""
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
        if now := former_keys.new_name(unknown, known):
            return printable(path), "a former name", f"write `{now}`"
        return printable(path), "unknown key", f"{nearest(unknown, known)} known are {', '.join(known)}".strip()
    if error.validator == "enum":
        return key, f"{shown} is not allowed", f"{nearest(str(value), rule)} choose from {', '.join(rule)}".strip()
    if error.validator == "required":
        return key, f"{next(name for name in rule if name not in value)} is missing", ""
    if error.validator in _RULES:
        what = _RULES[str(error.validator)].format(rule=_TYPES.get(str(rule), rule), value=shown)
        advice = f"write {schema['allowed']}" if "allowed" in schema else ""
        advice = "write it as 2026-12-31" if rule == "date" else advice
        advice = "leave the key out for its default" if error.validator == "minItems" else advice
        if isinstance(value, str) and _unquoted_type(value) in _READ_AS.get(str(rule), ()):
            advice = "write it without quotes"
        return key, what, "write it in quotes" if rule == "string" and isinstance(value, int | float) else advice
    return key, printable(error.message), ""
