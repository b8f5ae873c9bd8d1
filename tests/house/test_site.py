"""The documentation as a site: it builds without a warning, reads nothing from elsewhere, and is as long as it says."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT

#: What a page loads; links that a reader follows are not.
LOADED = re.compile(r"""(?:\bsrc=|<link[^>]*\bhref=|url\(|@import )["']?(?:https?:)?//""")
METHOD_LINES = 660


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 20
    assert [str(path.relative_to(site)) for path in files if LOADED.search(path.read_text())] == []


def test_reference_has_every_key_command_type_and_method(site: Path) -> None:
    text = {path.stem: path.read_text() for path in (site / "reference").glob("*.html")}
    assert "slurm.jobs_at_a_time" in text["configuration"] and "false_alarm_percent" in text["configuration"]
    assert "nodeprint judge" in text["command-line"] and "--fail-on" in text["command-line"]
    assert "deviations" in text["python"] and "floorplan" in text["python"]
    assert 'id="verdict-Finding"' in text["schemas"] and 'id="record-pair"' in text["schemas"]


def test_what_is_made_from_types_is_as_they_are() -> None:
    made = {name: make() for name, make in runpy.run_path(str(ROOT / "docs/hooks.py"))["KEPT"].items()}
    assert "nodeprint/schemas/config.json" in made and "config/README.md" in made
    assert [name for name, text in made.items() if (ROOT / name).read_text() != text] == [], "call python docs/hooks.py"


def test_method_is_short() -> None:
    written = [path for path in (ROOT / "docs/method").glob("*.md") if path.name != "constants.md"]
    assert sum(len(path.read_text().splitlines()) for path in written) <= METHOD_LINES


def test_every_constant_of_the_verdict_says_where_it_is_from() -> None:
    made = runpy.run_path(str(ROOT / "docs/constants.py"))
    names = {name for name, _, words in made["constants"]() if words}
    assert "stats/runs.OUTLIER" in names
    assert names == set(made["SOURCES"]), "name its source in docs/constants.py, and remove what is gone"
