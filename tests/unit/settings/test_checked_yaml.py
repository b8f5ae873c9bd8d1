"""YAML as types: what is written reads back as the same, and what msgspec refuses is said in a sentence."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.judge.acceptance_file import Acceptance, ContractLimit, Waiver
from nodeprint.settings import checked_yaml, config
from nodeprint.settings.config_file import Config, Site, Slurm
from tests.support.real_parts import ROOT

DEFAULTS = Config(measure=("coherence-cas",))  # without a list its preset says which
CONFIGURATION = replace(
    DEFAULTS, campaign="2026-11-25", serials="no", site=Site(contact="no"), slurm=Slurm(deadline_hours=0.5)
)
ACCEPTANCE = Acceptance(
    limits=(ContractLimit(measurement="coherence-cas", class_="same CCX", at_most=30.0, reason="300e9"),),
    waivers=(Waiver("a", "*", "ticket", datetime.date(2026, 12, 31)),),
)


@pytest.mark.parametrize("value", [DEFAULTS, CONFIGURATION, Acceptance(), ACCEPTANCE])
def test_what_is_written_reads_back_as_the_same(value: Config | Acceptance, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(checked_yaml.text(value))
    assert checked_yaml.typed(checked_yaml.read(path), type(value), path) == value


def paths(content: dict[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of every key of nested mappings."""
    inside = [path for key, value in content.items() if isinstance(value, dict) for path in paths(value, (*above, key))]
    return [*((*above, key) for key in content), *inside]


@pytest.mark.parametrize("defaults", [DEFAULTS, Acceptance()])
@pytest.mark.parametrize("wrong", [None, {"odd": {}}, [[]], True, 7.5, "\n"])
def test_a_wrong_value_of_any_key_is_refused_with_the_key_and_in_words(
    defaults: Config | Acceptance, wrong: object
) -> None:
    """The schema must refuse whatever a strict conversion to the type refuses."""
    refused = 0
    kind = type(defaults)
    for path in paths(checked_yaml.plain(defaults)):
        content = checked_yaml.plain(defaults)
        inside = content
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = wrong
        try:
            msgspec.convert(content, kind)
        except msgspec.ValidationError:
            with pytest.raises(NodeprintError) as refusal:
                checked_yaml.typed(content, kind, "file.yaml")
            sentence = str(refusal.value)
            assert sentence.startswith(f"file.yaml: {'.'.join(path)}") and "`" not in sentence.partition(";")[0]
            refused += 1
    assert refused > 10


def test_empty_list_of_measurements_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("measure: []\n")
    with pytest.raises(NodeprintError, match="measure: must not be empty; leave the key out for its default"):
        config.load(path)
    row = next(line for line in (ROOT / "config/README.md").read_text().splitlines() if line.startswith("| `measure`"))
    assert row.startswith("| `measure` |  |")
