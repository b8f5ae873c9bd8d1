"""The configuration of a campaign: read, checked against its schema, completed; and the plan that follows from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from nodeprint.errors import NodeprintError, printable

#: Arguments end up on a command line of node-run: words of option letters, numbers, names and lists.
_WORD = re.compile(r"[A-Za-z0-9_.,:=/+%@-]+")


def load(path: Path) -> dict[str, Any]:
    """Read a configuration. Returns it with every default filled in.

    Raises NodeprintError naming the file and the key's path.
    """
    config = read_yaml(path)
    complete(config, path)
    return config


def complete(config: dict[str, Any], path: Path) -> None:
    """Check a configuration that was read from `path` and fill its defaults in, in place.

    Raises NodeprintError naming the file and the key's path.
    """
    check(config, _package_yaml("schemas/config.yaml"), path)
    known = measurements()
    for number, name in enumerate(config["measure"]):
        if name not in known:
            raise NodeprintError(
                f"unknown measurement {printable(repr(name), 60)}",
                where=path,
                key=f"measure[{number}]",
                advice=f"known are {', '.join(known)}",
            )
    if all(known[name]["presets"][config["preset"]] is None for name in config["measure"]):
        raise NodeprintError(
            f"preset {config['preset']} leaves out every measurement asked for",
            where=path,
            key="preset",
            advice="choose a longer preset or other measurements",
        )
    for name, words in config["arguments"].items():
        if name not in known:
            raise NodeprintError(
                "no such measurement",
                where=path,
                key=f"arguments.{printable(name, 60)}",
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


def campaign_folder(config: Mapping[str, Any]) -> Path:
    """The folder of the configuration's campaign."""
    return Path(str(config["results"]), str(config["campaign"]))


def plan(config: Mapping[str, Any]) -> str:
    """plan.tsv: a line a measurement, with its name, kernel and arguments (docs/formats.md).

    A measurement whose preset is null takes too long for it and is left out.
    """
    lines = []
    for name in config["measure"]:
        what = measurements()[name]
        preset = what["presets"][config["preset"]]
        if preset is None:
            continue
        words = [what["arguments"], preset, config["arguments"].get(name, "")]
        lines.append(f"{name}\t{what['kernel']}\t{' '.join(' '.join(words).split())}\n")
    return "".join(lines)


@cache
def measurements() -> dict[str, Any]:
    """Every measurement that can be asked for, by name (nodeprint/measurements.yaml)."""
    return _package_yaml("measurements.yaml")


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping. Raises NodeprintError naming file, line and column."""
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise NodeprintError(
            f"cannot be read ({error.strerror})", where=path, advice="name an existing file"
        ) from error
    except UnicodeDecodeError as error:
        raise NodeprintError("not text", where=path) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise NodeprintError(
            f"not YAML ({error.problem})",
            where=path,
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
        ) from error
    except yaml.YAMLError as error:
        raise NodeprintError("not YAML", where=path) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise NodeprintError("not a mapping of keys to values", where=path)
    return content


def check(content: dict[str, Any], schema: Mapping[str, Any], path: Path) -> None:
    """Check `content` against a JSON schema and fill its defaults in, in place.

    Raises NodeprintError naming the file and the path of the first wrong key.
    """
    error = min(
        jsonschema.Draft202012Validator(schema).iter_errors(content),
        key=lambda e: (len(e.path), e.json_path),
        default=None,
    )
    if error is not None:
        key, what, advice = _explained(error)
        raise NodeprintError(what, where=path, key=key, advice=advice)
    _fill(content, schema)


def _explained(error: jsonschema.ValidationError) -> tuple[str, str, str]:
    """The key's path, what is wrong with it, and what would be right."""
    rule: Any = error.validator_value
    schema: Any = error.schema
    value: Any = error.instance
    key = error.json_path.removeprefix("$").removeprefix(".") or "the file"
    if error.validator == "additionalProperties":
        known = list(schema.get("properties", {}))
        unknown = next(str(name) for name in value if name not in known)
        path = f"{key}.{unknown}" if key != "the file" else unknown
        return printable(path), "unknown key", f"known are {', '.join(known)}"
    if error.validator == "enum":
        return (
            key,
            f"{printable(repr(value), 60)} is not allowed",
            f"choose from {', '.join(map(str, rule))}",
        )
    return printable(key), printable(error.message), "see config/README.md"


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
