"""Former names of keys are rejected with the new ones, in every file that is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import xarray as xr

import nodeprint
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.machine.topology.presets import preset
from nodeprint.report import verdict_files
from nodeprint.settings import former_keys, measurements
from nodeprint.simulate import Plan
from tests.support.campaigns import judged_weeks
from tests.support.real_parts import ROOT


@pytest.mark.parametrize(
    ("written", "key", "now"),
    [
        ("bounds: {percent: {core: 8}}", "bounds", "tolerances"),
        ("decides: [core-to-core]", "decides", "criteria"),
        ("metrics: {triad: {decides: false}}", "metrics.triad.decides", "criterion"),
        ("metrics: {triad: {bound: 3}}", "metrics.triad.bound", "tolerance"),
        ("suppressions: []", "suppressions", "waivers"),
    ],
)
def test_a_former_key_of_acceptance_names_the_new_one(tmp_path: Path, written: str, key: str, now: str) -> None:
    path = tmp_path / "acceptance.yaml"
    path.write_text(written)
    with pytest.raises(NodeprintError) as error:
        acceptance.load(path)
    assert f"{key}: a former name" in str(error.value)
    assert f"write `{now}`" in str(error.value)


def test_a_campaign_of_a_former_version_keeps_its_rules(tmp_path: Path) -> None:
    """nodeprint wrote the campaign's own copy of the rules, so nobody has to edit it."""
    waiver = {"node": "node003", "finding": "*", "reason": "known", "until": "2027-01-31"}
    former = {"suppressions": [waiver], "decides": ["bandwidth"], "metrics": {"triad": {"bound": 4, "decides": True}}}
    (tmp_path / "acceptance.yaml").write_text(json.dumps(former))
    rules = acceptance.rules_of(tmp_path)
    assert [waived.node for waived in rules.waivers] == ["node003"]
    assert rules.criteria == ("bandwidth",)
    assert (rules.metrics["triad"].tolerance, rules.metrics["triad"].criterion) == (4, True)


def test_a_former_key_of_measurements_names_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "measurements.yaml"
    path.write_text("terms: {fence: {name: f, what: f, bound: 5, run: 1, source: a}}\nmeasurements: {}\n")
    with pytest.raises(NodeprintError, match=r"terms\.fence\.bound: a former name; write `tolerance`"):
        measurements.read_file(path)


def test_files_with_former_keys_name_the_new_ones(tmp_path: Path) -> None:
    (campaign,) = judged_weeks(tmp_path, Plan(preset("naples-2x32"), nodes=3, runs=2, passes=1, pair_runs=2), [0])
    verdict = json.loads((campaign / "verdict.json").read_text())
    verdict["schema"] -= 1
    verdict["decides"] = verdict.pop("criteria")
    (campaign / "verdict.json").write_text(json.dumps(verdict))
    with pytest.raises(NodeprintError, match=r"decides \(now criteria or criterion\).*run `nodeprint judge"):
        verdict_files.read(campaign)

    table = xr.load_dataset(campaign / "deviations.nc", engine="h5netcdf")
    former = {new: old for old, names in former_keys.RENAMED.items() for new in names if new in {*table, *table.coords}}
    assert former == {"tolerance": "bound", "metric": "subject", "component_type": "family"}
    (campaign / "deviations.nc").unlink()
    (campaign / "store/deviations.seal.json").unlink()
    table.rename(former).rename(component="part").to_netcdf(campaign / "deviations.nc", engine="h5netcdf")
    with pytest.raises(NodeprintError, match=r"bound \(now tolerance\)"):
        nodeprint.open(campaign).deviations()


def test_every_new_name_is_a_key() -> None:
    """A key that is renamed once more needs its line in `RENAMED` changed."""
    pages = ("docs/formats.md", "config/README.md", "nodeprint/settings/measurements.py")
    known = " ".join((ROOT / page).read_text() for page in pages)
    assert [name for names in former_keys.RENAMED.values() for name in names if name not in known] == []
