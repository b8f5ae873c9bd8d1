"""What a site accepts: its file, completed by the defaults, which is kept in the campaign that is judged by it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import get_args

from msgspec import UNSET
from msgspec.structs import replace

from nodeprint import files
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.acceptance_file import Acceptance, ContractLimit, PairClass
from nodeprint.settings import checked_yaml
from nodeprint.settings.config import measurements

#: What a campaign is judged by, in its folder.
_KEPT = "acceptance.yaml"


def load(path: Path | None = None) -> Acceptance:
    """Read an acceptance file; keys that it leaves out, or all without `path`, have the defaults.

    Raises NodeprintError naming the key's path.
    """
    if path is None:
        return Acceptance()
    rules = checked_yaml.typed(checked_yaml.read(path), Acceptance, path)
    for number, limit in enumerate(rules.limits):
        key = f"limits[{number}]"
        if limit.at_most is UNSET and limit.at_least is UNSET:
            raise NodeprintError("at_most or at_least is missing", where=path, key=key, advice="write one of them")
        if (limit.class_ is UNSET) == (limit.row is UNSET):
            what = "class or row is missing" if limit.row is UNSET else "class and row are both given"
            raise NodeprintError(what, where=path, key=key, advice="write one of them")
    return replace(rules, cells={**Acceptance().cells, **rules.cells})


def check_limits(path: Path, planned: Collection[str]) -> None:
    """See that each limit of an acceptance file is of a figure that a node may have where `planned` is measured. (Which
    rows a node has is known when it is measured: then a limit of no row keeps a fleet from being UNIFORM.)

    Raises NodeprintError naming the limit's key.
    """
    for number, limit in enumerate(load(path).limits):
        problem, advice = _without_figure(limit, planned)
        if problem:
            raise NodeprintError(f"{limit.measurement} {problem}", where=path, key=f"limits[{number}]", advice=advice)


def _without_figure(limit: ContractLimit, planned: Collection[str]) -> tuple[str, str]:
    """Why no node can have the figure of a limit, and what to do; empty where one may have it."""
    measurement = measurements()[limit.measurement]
    labels = measurement.model.get("rows", ())
    if measurement.scope != "node":
        return "is measured between nodes, and limits are of a node", "leave the limit out"
    if limit.measurement not in planned:
        return "is not measured", "add it to `measure` of the configuration, or leave the limit out"
    if measurement.model.get("places") == "pairs":
        classes = get_args(PairClass)
        wrong, advice = limit.figure not in classes, f"its classes are {', '.join(classes)}"
    else:
        # `nodeprint.judge.figures.of_rows` makes the names
        parts = [part for part in limit.figure.split(", ") if not part.startswith("mean of homes ")]
        wrong = len(parts) > len(labels) if labels else parts != ["all"]
        advice = f"its rows are named by {', '.join(labels)} as verdict.json has them" if labels else "its row is `all`"
    return (f"has no figure {printable(limit.figure, 60)!r}", advice) if wrong else ("", "")


def keep(path: Path, campaign: Path) -> Path:
    """Write the file `path`, completed by the defaults, into the folder `campaign`, whose verdict then follows from it.

    A copy that says the same already is left alone, so that nothing is judged again for it. Returns the copy's path.
    Raises NodeprintError naming the key's path, or where it cannot be written.
    """
    kept, text = campaign / _KEPT, _text(load(path))
    if not kept.is_file() or kept.read_bytes() != text.encode():
        files.write(kept, text)
    return kept


def kept(campaign: Path) -> Path | None:
    """The file that a campaign is judged by; None where that is the defaults."""
    path = campaign / _KEPT
    return path if path.exists() else None


def name(path: Path | None) -> str:
    """What an acceptance is called in verdict.json and the report: the file and the SHA-256 of what it says, completed
    by the defaults (of a campaign's copy that of the file itself)."""
    file = f"{_KEPT} of the campaign" if path is not None else "the defaults"
    return f"{file}, SHA-256 {hashlib.sha256(_text(load(path)).encode()).hexdigest()}"


def _text(rules: Acceptance) -> str:
    head = "# What this campaign is judged by, with all defaults; made from the site's file.\n"
    return head + checked_yaml.text(rules)
