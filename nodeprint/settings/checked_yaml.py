"""YAML files of plain values, checked against a schema: what is wrong is one sentence with file, key or line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from nodeprint.errors import NodeprintError, nearest, printable, unreadable

if TYPE_CHECKING:
    import jsonschema


def read(path: Path) -> dict[str, Any]:
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


#: Numbers that YAML 1.1 takes for text: without a point, or without a sign in the exponent.
_EXPONENT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")


class _Loader(yaml.SafeLoader):
    """YAML's plain values, dates as they are written, and 300e9 a number as in YAML 1.2; a key that is there twice or a
    number that cannot be: an error with its place."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (as in its base)
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for _first in "-+.0123456789":
        yaml_implicit_resolvers[_first] = [*yaml_implicit_resolvers[_first], ("tag:yaml.org,2002:float", _EXPONENT)]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {printable(key.value, 60)} is there twice", problem_mark=key.start_mark
                )
            seen |= {key.value} if isinstance(key, yaml.ScalarNode) else set()
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
        return printable(path), "unknown key", f"{nearest(unknown, known)} known are {', '.join(known)}".strip()
    if error.validator == "enum":
        choices = [str({False: "no", True: "yes"}.get(choice, choice)) for choice in rule]  # as YAML spells them
        return (
            key,
            f"{shown} is not allowed",
            f"{nearest(str(value), choices)} choose from {', '.join(choices)}".strip(),
        )
    if error.validator == "required":
        return key, f"{next(name for name in rule if name not in value)} is missing", ""
    if error.validator in ("anyOf", "oneOf"):
        names = [name for one in rule for name in one.get("required", ())]
        both = error.validator == "oneOf" and set(names) <= set(value)
        return key, f"{' and '.join(names)} are both given" if both else f"{' or '.join(names)} is missing", ""
    if error.validator in _RULES:
        what = _RULES[str(error.validator)].format(rule=_TYPES.get(str(rule), rule), value=shown)
        advice = f"write {schema['allowed']}" if "allowed" in schema else ""
        return key, what, "write it in quotes" if rule == "string" and isinstance(value, int | float) else advice
    return key, printable(error.message), ""


def _fill(content: dict[str, Any], schema: Mapping[str, Any]) -> None:
    for key, sub in schema.get("properties", {}).items():
        if "default" in sub and key not in content:
            default = sub["default"]
            content[key] = type(default)(default) if isinstance(default, list | dict) else default
        if isinstance(content.get(key), dict):
            _fill(content[key], sub)
