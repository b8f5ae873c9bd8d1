"""Pages of the site's reference, made from the code when it is built (mkdocs.yml names this file), and the table of
config/README.md, which is kept in the repository: `python docs/hooks.py` writes it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import typer.cli
import yaml

from nodeprint.cli import app
from nodeprint.judge import verdict

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
README = ROOT / "config/README.md"
#: What is above and below the table in config/README.md.
BEGIN, END = "<!-- keys: made from nodeprint/schemas/config.yaml by docs/hooks.py -->\n", "<!-- end of keys -->\n"
#: A default of more items than this is called what it is.
_MOST_ITEMS = 3
_TYPES = {
    "string": "text", "integer": "whole number", "number": "number", "boolean": "true, false", "null": "null",
    "array": "list", "object": "keys",
}  # fmt: skip

Schema = Mapping[str, Any]


def configuration_keys(schema: Schema, prefix: str = "") -> Iterator[tuple[str, Schema]]:
    """Each key of a configuration that has a value of its own, with what the schema says of it."""
    for key, rule in schema.get("properties", {}).items():
        if "properties" in rule:
            yield from configuration_keys(rule, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", rule


def configuration_table() -> str:
    """A row for each key of config.yaml: its default and its meaning."""
    schema = yaml.safe_load((files("nodeprint") / "schemas/config.yaml").read_text())
    rows = ["| key | default | what it is |", "|---|---|---|"]
    for key, rule in configuration_keys(schema):
        default = rule["default"]
        if isinstance(default, list) and len(default) > _MOST_ITEMS:
            shown = "all of `config/config.yaml`"
        elif isinstance(default, bool):  # YAML's `no` is one, too
            shown = "`no`" if "enum" in rule else f"`{str(default).lower()}`"
        else:
            shown = f"`{json.dumps(default) if default in ('', {}) else default}`"
        rows.append(f"| `{key}` | {shown} | {rule['description'].strip()} |")
    return "\n".join(rows) + "\n"


def config_readme() -> str:
    """config/README.md with the table of today."""
    text = README.read_text()
    head, rest = text.split(BEGIN)
    return head + BEGIN + "\n" + configuration_table() + "\n" + END + rest.split(END)[1]


def configuration_page() -> str:
    """What config/README.md says, with links of this site, and acceptance.yaml."""
    text = re.sub(r"<!--.*?-->\n+", "", config_readme())
    return (
        linked(text, ROOT / "docs/reference")
        + "\n## acceptance.yaml\nEvery key with its default; `config/acceptance.yaml` has what a site changes."
        + "\n\n```yaml\n"
        + (files("nodeprint.judge") / "acceptance.yaml").read_text()
        + "```\n"
    )


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
        return ", ".join(f"`{choice}`" for choice in rule["enum"])
    if "$ref" in rule:
        part = rule["$ref"].rpartition("/")[2]
        return f"[{part}](#{name}-{part})"
    if "anyOf" in rule:
        return " or ".join(value_of(choice, name) for choice in rule["anyOf"])
    types = [rule["type"]] if isinstance(rule.get("type"), str) else rule.get("type", [])
    words = " or ".join(_TYPES[kind] for kind in types)
    if "items" in rule and isinstance(rule["items"], dict):
        words += f" of {value_of(rule['items'], name)}" if rule["items"].get("type") != "object" else " of keys"
    limits = [f"at least {rule['minimum']}"] if "minimum" in rule else []
    limits += [f"more than {rule['exclusiveMinimum']}"] if "exclusiveMinimum" in rule else []
    limits += [f"at most {rule['maximum']}"] if "maximum" in rule else []
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
    schemas["verdict"] = verdict.schema()
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
    from mkdocs.structure.files import File  # noqa: PLC0415 (the kept table is made without mkdocs)

    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    return files


if __name__ == "__main__":
    README.write_text(config_readme())
