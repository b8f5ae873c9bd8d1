"""The command line as a whole: help, completion, version, and the demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import typer.cli
from typer.testing import CliRunner

from nodeprint import __version__
from nodeprint.cli import app
from nodeprint.cli.app import GROUPS, RESEARCH
from nodeprint.judge.outcome import FleetOutcome, Kind, Outcome
from nodeprint.settings import commit
from tests.support.command_line import call
from tests.support.real_parts import ROOT


def output(*words: str) -> str:
    """What a command prints that must succeed."""
    done = CliRunner(env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_help_fits_a_screen_and_lists_every_command() -> None:
    """It had 46 lines: a terminal showed the last half of them."""
    program = Path(sys.executable).with_name("nodeprint")
    text = subprocess.run(
        [program, "--help"], env=os.environ | {"COLUMNS": "80"}, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    lines = text.splitlines()
    assert len(lines) <= 29 and max(map(len, lines)) <= 80
    rows = re.findall(r"^([A-Z][a-z]*| ) +([a-z][a-z-]*)  +(\S.*)$", text, re.MULTILINE)
    assert [group for group, *_ in rows if group.strip()] == list(GROUPS)
    assert all(what.endswith(".") for *_, what in rows), "a sentence each, on one line"
    (addons,) = re.findall(rf"^{RESEARCH}  (.*)$", text, re.MULTILINE)
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert sorted([name for _, name, _ in rows] + addons.split(", ")) == sorted(known)


def command_names() -> list[str]:
    """Every command, with those of `baseline`."""
    click = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return [name for name in click if name != "baseline"] + ["baseline save", "baseline export", "baseline"]


def test_the_reference_has_the_commands_in_the_order_of_the_help() -> None:
    command = typer.main.get_command(app)
    text = typer.cli.get_docs_for_click(obj=command, ctx=typer.Context(command), name="nodeprint")
    listed = re.findall(r"^## `nodeprint ([a-z-]+)`$", text, re.MULTILINE)
    assert listed[:3] == ["here", "doctor", "discover"]
    assert listed[-5:] == ["sources", "atlas", "iodie", "publish", "verify-card"]


@pytest.mark.parametrize("name", command_names())
def test_the_help_of_every_command_has_an_example_of_it(name: str) -> None:
    text = " ".join(output(*name.split(), "--help").split())
    assert f"nodeprint {name} " in text.partition("Example")[2] + " "


def test_a_former_command_is_rejected_with_the_new_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("since", "results/before", "results/after") == 2
    assert capsys.readouterr() == (
        "",
        "nodeprint: since: this command has another name now; call `nodeprint diff A B` for two campaigns, or "
        "`nodeprint history` for many\n",
    )


def test_an_interrupted_command_says_so_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nodeprint.report.pages.brief.campaign", interrupted)
    assert call("show", tmp_path) == 130
    assert capsys.readouterr() == ("", "nodeprint: interrupted\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_of_another_encoding_gets_other_letters(encoding: str, tmp_path: Path) -> None:
    name = "n\N{GREEK SMALL LETTER OMEGA}de"
    (tmp_path / "nodes.tsv").write_text(f"node\thost\tjob\n{name}\t{name}\t1\n")
    done = subprocess.run(
        [sys.executable, "-m", "nodeprint", "status", tmp_path],
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": encoding, "LC_ALL": "C"},
    )
    text = (done.stdout + done.stderr).decode(encoding)
    assert "Traceback" not in text and "n?de" in text


def test_no_kind_of_outcome_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unset variable of a script must not count as a wish for 0."""
    assert call("judge", tmp_path, "--fail-on", " , ") == 2
    assert capsys.readouterr().err == (
        "nodeprint: --fail-on: names no kind of outcome; choose from found, not-same, configuration, not-measured, "
        "invalid, nothing\n"
    )


def test_bash_completes_commands() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("nodeprint")],
        env={"_NODEPRINT_COMPLETE": "complete_bash", "COMP_WORDS": "nodeprint de", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["demo"]


def test_the_version_has_the_commit_of_the_checkout() -> None:
    made_from = commit.commit()
    said = output("--version")
    assert said == (f"nodeprint {__version__} (commit {made_from})\n" if made_from else f"nodeprint {__version__}\n")


def test_only_a_checkout_of_its_own_is_described(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x.org", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "file").touch()
    git("add", "file")
    git("commit", "-qm", "first")
    described = commit.described(tmp_path)
    assert described and git("rev-parse", "HEAD").startswith(described)
    (tmp_path / "file").write_text("changed")
    assert commit.described(tmp_path) == f"{described}-dirty"
    inside = tmp_path / ".venv/lib/site-packages"
    inside.mkdir(parents=True)
    assert commit.described(inside) == ""


def test_an_archive_knows_its_commit(tmp_path: Path) -> None:
    """`git archive` writes it into the module, as GitHub does for what it offers to download."""
    assert "nodeprint/settings/commit.py export-subst" in (ROOT / ".gitattributes").read_text()
    assert "$Format:%h$" in (ROOT / "nodeprint/settings/commit.py").read_text()


@pytest.mark.timeout(300)
def test_the_demo_names_the_slow_core_and_says_that_it_is_simulated(tmp_path: Path) -> None:
    out = tmp_path / "results/demo"
    out.mkdir(parents=True)
    (out / "plan.tsv").write_text("# simulated\n")  # an earlier demo
    *_, last = lines = output("demo", "--out", str(out)).splitlines()
    assert lines[0].startswith("SIMULATED")
    assert any(line.startswith("SIMULATED: ") and "7 of 8 nodes" in line for line in lines)
    assert any("node005" in line and "Core 37" in line for line in lines)
    assert last == f"report: {out}/report/cluster.pdf"
    assert Path(out, "report/cluster.pdf").read_bytes().startswith(b"%PDF")
    assert [path.name for path in out.parent.iterdir()] == ["demo"]


def test_the_demo_replaces_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "plan.tsv").write_text("coherence-cas\tcoherence\n")
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert "holds no simulated campaign" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.tsv"]


def test_help_of_fail_on_names_every_outcome_that_is_found() -> None:
    words = " ".join(output("judge", "--help").split())
    listed = words.partition("(found): ")[2].partition(".")[0].split(", ")
    found = {str(outcome) for outcome in Outcome if Kind.FOUND in outcome.entry.fails}
    assert found <= set(listed) and str(FleetOutcome.NON_UNIFORM) in listed
