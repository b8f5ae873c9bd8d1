"""Pages of the site's reference, made from the code when it is built (mkdocs.yml names this file), and what is kept in
the repository and made from types (`KEPT`): tables of documents and schemas, which `python docs/hooks.py` writes.
"""

from __future__ import annotations

import json
import os
import re
import runpy
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer
import typer.cli
from msgspec import UNSET

from nodeprint.campaign import gathered, job_status, node_sheet
from nodeprint.campaign.job_status import JobStatus
from nodeprint.cli import app
from nodeprint.data.format import record_format
from nodeprint.data.store import manifest
from nodeprint.judge import verdict
from nodeprint.judge.acceptance_file import OTHER, Acceptance, cells
from nodeprint.judge.outcome import Drain, FleetOutcome, Kind, Outcome, OutcomeClass
from nodeprint.machine.topology import serialized
from nodeprint.settings.config_file import Config
from nodeprint.settings.keys import schema_of
from nodeprint.settings.measurements import terms
from nodeprint.structure import printed_structure

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
#: More choices than these are counted, not listed.
_MOST_CHOICES = 16
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true, false",
    "null": "null",
    "array": "list",
    "object": "keys",
}

Schema = Mapping[str, Any]


def rows_of_keys(rule: Schema, schema: Schema, prefix: str = "") -> Iterator[str]:
    """A row for each key below `rule`: its default, what it may be, and its meaning; those inside it below."""
    for name, value in rule["properties"].items():
        items = value.get("items") or value.get("additionalProperties") or value
        inside = schema["$defs"][items["$ref"].rpartition("/")[2]] if "$ref" in items else None
        kind = value_of(value, "") if inside is None else "list of keys" if "items" in value else "keys"
        shown = "default" in value and (inside is None or items is not value)
        shown = shown and not ("minItems" in value and not value["default"])  # left out it is not empty
        default = default_of(value["default"]) if shown else ""
        meaning = value.get("description") or " ".join((inside or {}).get("description", "").split())
        yield f"| `{prefix}{name}` | {default} | {value.get('allowed', kind)} | {meaning} |"
        if inside is not None:
            mark = "." if items is value else "[]." if "items" in value else ".<name>."
            yield from rows_of_keys(inside, schema, f"{prefix}{name}{mark}")


def default_of(value: Any) -> str:
    """A default as YAML has it."""
    if isinstance(value, list | tuple) and value:
        return ", ".join(f"`{item}`" for item in value)
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"


def table_of_keys(kind: type[object]) -> str:
    """The keys of a file that is read as `kind`."""
    schema = msgspec.json.schema(kind)
    rows = rows_of_keys(schema["$defs"][kind.__name__], schema)
    return "\n".join(("| key | default | value | meaning |", "|---|---|---|---|", *rows)) + "\n"


def table_of_cells() -> str:
    """The tolerances and priors of measurements that are no pairs, with their reasons."""
    sources = {name: term.source for name, term in terms().items()} | {"other": OTHER[1]}
    rows = [
        f"| `{term}` | {cell.percent:g} | {cell.run:g} | {100 * cell.job_sd:.2g} "
        f"| {'' if cell.percent_without_boost is UNSET else f'{cell.percent_without_boost:g} '}| {sources[term]} |"
        for term, cell in cells().items()
    ]
    head = "| term | percent | run | job | percent without boost | reason |"
    return "\n".join((head, "|---|---|---|---|---|---|", *rows)) + "\n"


def table_of_header() -> str:
    """The keys of a record file's header."""
    header = record_format.schema()["$defs"]["header"]
    rows = []
    for name, rule in header["properties"].items():
        always = "yes" if name in header["required"] else ""
        value = "keys" if "$ref" in rule else value_of(rule, "record")
        rows.append(f"| `{name}` | {value} | {always} | {rule['description']} |")
    return "\n".join(("| key | value | always | meaning |", "|---|---|---|---|", *rows)) + "\n"


def table_of_columns() -> str:
    """The columns of nodes.tsv."""
    rows = [f"| `{name}` | {words} |" for name, words in node_sheet.columns().items()]
    return "\n".join(("| column | meaning |", "|---|---|", *rows)) + "\n"


def table_of_types() -> str:
    """The types that a verdict is made of, each with its keys."""
    out = ["| type | keys | meaning |", "|---|---|---|"]
    for name, rule in verdict.schema()["$defs"].items():
        if keys := rule.get("properties"):
            words = " ".join(rule.get("description", "").split())
            out.append(f"| {name} | {', '.join(f'`{key}`' for key in keys)} | {words} |")
    return "\n".join(out) + "\n"


def table_of_outcomes() -> str:
    """What follows from each outcome of a node."""
    out = ["| class | outcome | `--fail-on` | JUnit | drain.sh | the fleet is at least |", "|---|---|---|---|---|---|"]
    for outcome in sorted(Outcome, key=lambda outcome: list(OutcomeClass).index(outcome.outcome_class)):
        entry = outcome.entry
        kinds = ", ".join(f"`{kind}`" for kind in Kind if kind in entry.fails)
        fleet = f"`{entry.fleet}`"
        if entry.fleet is FleetOutcome.NO_PEERS:
            fleet = f"`{FleetOutcome.INCONCLUSIVE}`, {fleet} if no node was compared"
        drain = "" if entry.drain is Drain.NOTHING else entry.drain
        cells = (f"`{outcome}`", kinds, entry.junit or "passed", drain, fleet)
        out.append(f"| {' | '.join((outcome.outcome_class, *cells))} |")
    return "\n".join(out) + "\n"


TABLES = {
    "config": lambda: table_of_keys(Config),
    "acceptance": lambda: table_of_keys(Acceptance),
    "cells": table_of_cells,
    "columns": table_of_columns,
    "header": table_of_header,
    "outcomes": table_of_outcomes,
    "status": lambda: table_of_keys(JobStatus),
    "verdict": table_of_types,
}


def filled(path: Path) -> str:
    """A page that is kept in the repository, with its tables as the types are today."""
    made = re.compile(r"(<!-- made by docs/hooks\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
    return made.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}", path.read_text())


#: What is kept in the repository and made here, below its top.
KEPT: Mapping[str, Callable[[], str]] = {
    "config/README.md": lambda: filled(ROOT / "config/README.md"),
    "docs/how-to/reports.md": lambda: filled(ROOT / "docs/how-to/reports.md"),
    "docs/formats.md": lambda: filled(ROOT / "docs/formats.md"),
    "nodeprint/README.md": runpy.run_path(str(ROOT / "docs/rooms.py"))["page"],
    "docs/method/constants.md": runpy.run_path(str(ROOT / "docs/constants.py"))["page"],
    "nodeprint/schemas/config.json": lambda: _json(schema_of(Config, "config.yaml of nodeprint")),
}


def _json(schema: Schema) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def configuration_page() -> str:
    """What config/README.md says, with links of this site."""
    text = re.sub(r"<!--.*?-->\n+", "", filled(ROOT / "config/README.md"))
    return linked(text, ROOT / "docs/reference")


def linked(text: str, folder: Path) -> str:
    """Names of pages, as `docs/how-to/slurm.md`, as links from `folder`, called as the page's title is."""

    def link(match: re.Match[str]) -> str:
        page = ROOT / match[1]
        title = page.read_text().partition("\n")[0].removeprefix("# ")
        return f"[{title}]({os.path.relpath(page, folder)})"

    return re.sub(r"`(docs/[\w/-]+\.md)`", link, text)


def command_line_page() -> str:
    """Every command with its arguments and options, as typer writes them."""
    command = typer.main.get_command(app)
    text = typer.cli.get_docs_for_click(obj=command, ctx=typer.Context(command), name="nodeprint")
    text = re.sub(r"\n\* `--(install|show)-completion`.*", "", text)
    return text.strip().replace("# `nodeprint`\n", "# Command line\n", 1) + "\n"


def value_of(rule: Schema, name: str) -> str:
    """What a value may be, in words; `name` is that of its schema."""
    if "const" in rule:
        return f"`{json.dumps(rule['const'])}`"
    if "enum" in rule:
        choices = rule["enum"]
        values = (f"`{choice}`" if isinstance(choice, str) else f"`{json.dumps(choice)}`" for choice in choices)
        return ", ".join(values) if len(choices) <= _MOST_CHOICES else "a name"
    if "$ref" in rule:
        part = rule["$ref"].rpartition("/")[2]
        return f"[{part}](#{name}-{part})"
    if choices := rule.get("anyOf") or rule.get("oneOf"):
        return " or ".join(value_of(choice, name) for choice in choices)
    types = [rule["type"]] if isinstance(rule.get("type"), str) else rule.get("type", [])
    words = " or ".join(_TYPES[kind] for kind in types)
    if "items" in rule and isinstance(rule["items"], dict):
        words += f" of {value_of(rule['items'], name)}" if rule["items"].get("type") != "object" else " of keys"
    limits = [f"at least {rule['minimum']}"] if "minimum" in rule else []
    limits += [f"more than {rule['exclusiveMinimum']}"] if "exclusiveMinimum" in rule else []
    # a limit that only protects arithmetic does not help a reader
    limits += [f"at most {rule['maximum']}"] if rule.get("maximum", 2**53) < 2**53 else []
    return ", ".join([words or "any", *limits])


def schema_rows(schema: Schema, name: str, prefix: str = "") -> Iterator[str]:
    """A row for each key of an object, those of objects inside it below."""
    required = schema.get("required", ())
    for key, rule in schema.get("properties", {}).items():
        yield f"| `{prefix}{key}` | {value_of(rule, name)} | {'yes' if key in required else ''} |"
        inner = rule.get("items", rule)
        if isinstance(inner, dict) and "properties" in inner:
            yield from schema_rows(inner, name, f"{prefix}{key}{'[]' if 'items' in rule else ''}.")
        values = rule.get("additionalProperties")
        if isinstance(values, dict) and "properties" in values:
            yield from schema_rows(values, name, f"{prefix}{key}.<name>.")


def schema_table(schema: Schema, name: str) -> str:
    """The table of an object's keys, with what its type says of it."""
    description = " ".join(schema.get("description", "").split())
    rows = "\n".join(schema_rows(schema, name))
    return (f"{description}\n\n" if description else "") + f"| key | value | always |\n|---|---|---|\n{rows}\n"


def schemas_page() -> str:
    """Every schema, a table for each object that it names."""
    folder = files("nodeprint") / "schemas"
    schemas = {
        path.name.removesuffix(".json"): json.loads(path.read_text())
        for path in sorted(folder.iterdir(), key=lambda path: path.name)
        if path.name.endswith(".json")
    }
    schemas |= {
        "iodie": json.loads((ROOT / "nodeprint_addons/iodie/iodie.json").read_text()),
        "acceptance": schema_of(Acceptance, "acceptance.yaml of nodeprint"),
        "record": record_format.schema(),
        "status": job_status.schema(),
        "structure": printed_structure.schema(),
        "topology": serialized.schema(),
        "fleet": gathered.schema(),
        "manifest": manifest.schema(),
        "verdict": verdict.schema(),
    }
    out = ["# Schemas\n\n[Files](../formats.md) explains the keys; here are their types, by file.\n"]
    for name, schema in schemas.items():
        out.append(f"\n## {name} {{#{name}}}\n\n{schema.get('title', '')}\n\n")
        out.append(schema_table(schema, name) if schema.get("properties") else "")
        for part, rule in schema.get("$defs", {}).items():
            table = schema_table(rule, name) if rule.get("properties") else f"{value_of(rule, name)}\n"
            out.append(f"\n### {part} {{#{name}-{part}}}\n\n{table}")
    return "".join(out)


PAGES = {
    "reference/configuration.md": configuration_page,
    "reference/command-line.md": command_line_page,
    "reference/schemas.md": schemas_page,
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The site's files with those that are made here, as mkdocs calls it."""
    from mkdocs.structure.files import File  # noqa: PLC0415 (the kept tables are made without mkdocs)

    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    return files


if __name__ == "__main__":
    for kept, make in KEPT.items():
        (ROOT / kept).write_text(make())
