"""Judge values of other programs, as a fleet in memory or as a campaign directory for all other commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET

from nodeprint import files
from nodeprint.data.store import packed
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance as accepted
from nodeprint.judge import judge as method
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.judge import Judged
from nodeprint.judge.verdict import rounded
from nodeprint.readers import table_fleet
from nodeprint.readers.units import Better
from nodeprint.readers.value_table import ValueTable

#: The SHA-256 of the judged table or outputs, as sha256sum writes it in the campaign directory. An acceptance report is
#: based on them, and they may have changed since.
TABLES = "table.sha256"


def rules_of(
    figures: ValueTable,
    acceptance: Path | None = None,
    tolerances: Sequence[str] = (),
    better: Sequence[str] = (),
) -> Acceptance:
    """The rules for a table: an `acceptance` file (None: the defaults), and options as in `acceptance.with_options`.
    Raises NodeprintError with the key or option that is invalid."""
    metrics = tuple(dict.fromkeys(figures.frame["metric"]))
    return accepted.with_options(accepted.load(acceptance), metrics, tolerances, better)


def judge(figures: ValueTable, name: str, rules: Acceptance) -> Judged:
    """Judge a table, called `name`, by the rules for it. Writes nothing."""
    judged = method.judge(table_fleet.packed_table(figures, name, _better(rules)), rules)
    called = "the defaults" if rules == Acceptance() else "acceptance.yaml and options of the call"
    versions = {**judged.verdict.versions, "acceptance": accepted.name_of(rules, called)}
    verdict = rounded(msgspec.structs.replace(judged.verdict, versions=versions))
    return msgspec.structs.replace(judged, verdict=verdict)


def as_campaign(figures: ValueTable, folder: Path, rules: Acceptance) -> None:
    """Write a table and its rules as a campaign directory, for `judge.campaign` and all later steps.

    Raises NodeprintError if the directory holds another campaign or table, or cannot be written.
    """
    if (folder / "nodes.tsv").exists() or (folder / "nodes").exists():
        raise NodeprintError("holds a campaign that was measured", where=folder, advice="name a new one with --to")
    _see_whether_free(folder, figures)
    packed.write(table_fleet.packed_table(figures, files.real(folder).name, _better(rules)), folder)
    accepted.keep_rules(rules, folder)
    source = Path(figures.source)
    paths = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    if figures.digest and source.exists():
        files.write(folder / TABLES, files.sums(paths, folder))


def _see_whether_free(folder: Path, figures: ValueTable) -> None:
    """Raise NodeprintError if a directory holds values of another table. The same file may have changed."""
    if not (folder / packed.FOLDER).exists() or _is_of(folder, Path(figures.source)):
        return
    held = packed.read(folder).versions.get("table", "")
    if not (figures.digest and held.endswith(figures.digest)):
        what = f"holds what was judged of another table ({held.partition(', SHA-256 ')[0] or 'of unknown name'})"
        advice = "name a new one with --to, or remove this one"
        raise NodeprintError(what, where=folder, advice=advice)


def _is_of(folder: Path, source: Path) -> bool:
    """Whether the values in a directory come from this file, or from outputs in this directory."""
    kept = folder / TABLES
    names = [line.partition("  ")[2] for line in kept.read_text().splitlines()] if kept.is_file() else []
    return bool(names) and all(files.real(folder / name).is_relative_to(files.real(source)) for name in names)


def _better(rules: Acceptance) -> Mapping[str, Better]:
    return {name: metric.better for name, metric in rules.metrics.items() if metric.better is not UNSET}
