"""What a site accepts: the defaults are those that config/README.md gives, and what follows from them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.judge.acceptance_file import Acceptance, CellRules, Metric, Tolerances, Waiver
from tests.support.real_parts import ROOT


def _documented() -> Iterator[tuple[str, object]]:
    """Each key of config/README.md that is a number, true or false, with its default."""
    text = (ROOT / "config/README.md").read_text()
    keys = text.partition("made by docs/hooks.py: acceptance -->")[2].partition("<!-- end -->")[0]
    for key, value in re.findall(r"^\| `([a-z_.<>]+)` \| `([0-9.]+|true|false)` \|", keys, re.MULTILINE):
        yield key, {"true": True, "false": False}.get(value) if value.isalpha() else float(value)
    cells = text.partition("made by docs/hooks.py: cells -->")[2].partition("<!-- end -->")[0]
    number = r" \| ([0-9.]+)"
    for term, percent, run, job, without in re.findall(
        rf"^\| `(\w+)`{3 * number} \|(?: ([0-9.]+))? \|", cells, re.MULTILINE
    ):
        of_boost = float(without) if without else msgspec.UNSET
        yield f"cells.{term}", CellRules(float(percent), float(run), float(job), of_boost)


@pytest.mark.parametrize(("key", "value"), list(_documented()))
def test_defaults_are_those_that_the_page_gives(key: str, value: object) -> None:
    of: object = Acceptance()
    names = key.split(".")
    if names[:2] == ["metrics", "<name>"]:
        of, names = Metric(), names[2:]
    for name in names:
        of = of[name] if isinstance(of, dict) else getattr(of, "class_" if name == "class" else name)
    assert of == value


def test_every_tolerance_has_a_documented_default() -> None:
    documented = {key for key, _ in _documented()}
    assert {f"tolerances.percent.{name.rstrip('_')}" for name in Tolerances().percent.__struct_fields__} <= documented
    assert len(documented) > 40


def test_shares_are_hundredths_of_what_the_file_has() -> None:
    rules = Acceptance()
    assert rules.false_alarm == pytest.approx(0.01) and rules.prior("run") == pytest.approx(0.0063)
    assert rules.tolerance("core") == pytest.approx(0.04) and rules.least_ns("core-in") == 2.0
    assert rules.least_ns("core-near") == 0.5 and rules.least_ns("ccx") == 1.0
    cell = CellRules(percent=8.0, run=0.6)
    assert (cell.tolerance, cell.run_sd, cell.job_sd) == pytest.approx((0.08, 0.006, 0.002))
    assert CellRules(8.0, 0.6, 0.3).job_sd == pytest.approx(0.003)


@pytest.mark.parametrize(("value", "allowed"), [(0, False), (0.01, True), (100, True), (100.5, False)])
def test_a_percentage_is_above_nothing_and_at_most_all(value: float, *, allowed: bool, tmp_path: Path) -> None:
    path = tmp_path / "acceptance.yaml"
    path.write_text(f"tolerances: {{percent: {{core: {value}}}, least_ns: 0}}\n")
    if allowed:
        assert acceptance.load(path).tolerance("core") == pytest.approx(value / 100)
        return
    with pytest.raises(NodeprintError, match=r"tolerances\.percent\.core"):
        acceptance.load(path)


def test_a_waiver_is_of_one_node_and_finding_until_its_last_day() -> None:
    until = datetime.date(2026, 12, 31)
    rules = msgspec.structs.replace(
        Acceptance(),
        waivers=(Waiver("cn01", "core-slow", "known", until), Waiver("cn02", "*", "x", until)),
    )
    assert rules.waived("cn01", "core-slow", "2026-12-31") == "until 2026-12-31: known"
    assert rules.waived("cn02", "link-slow", "2026-01-01") == "until 2026-12-31: x"
    for node, finding, day in (
        ("cn01", "core-slow", "2027-01-01"),
        ("cn01", "link-slow", "2026-01-01"),
        ("cn03", "core-slow", "2026-01-01"),
    ):
        assert rules.waived(node, finding, day) == ""
