"""Paths of outputs: a missing directory is created with a message, and never in `/`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

import pytest
import typer
from typer.models import OptionInfo

from nodeprint.cli import app
from tests.support.command_line import call

#: A directory that root could create.
MISSING = Path("/nodeprint-missing")
#: Every option for an output, with the arguments that its command needs. Those of directories end with "/".
OUTPUTS = {
    ("here", "--csv"): (),
    ("here", "--pdf"): (),
    ("here", "--svg"): (),
    ("judge", "--recheck"): ("main",),
    ("judge", "--to/"): ("table.csv",),
    ("diff", "--figures/"): ("a", "b"),
    ("history", "--page"): (),
    ("baseline save", "--to/"): ("main",),
    ("baseline export", "--to"): ("main",),
    ("report", "--to/"): ("main",),
    ("protocol", "--to/"): ("main",),
    ("export", "--to"): ("main",),
    ("structure", "--pdf"): ("m.csv",),
    ("structure", "--svg"): ("m.csv",),
    ("import", "--out/"): ("m.csv",),
    ("simulate", "--out/"): ("naples-2x32", "--nodes", "1"),
    ("demo", "--out/"): (),
    ("sources", "--to/"): (),
    ("publish", "--to"): (),
    ("atlas", "--to/"): ("cards",),
    ("iodie", "--pdf"): ("main",),
}
#: Options that name what is read.
INPUTS = {"acceptance", "baseline", "config", "cpuid", "fingerprint", "hashes", "reference", "root", "sign", "signers"}
INPUTS |= {"style", "xml"}


def options(commands: typer.Typer, group: str = "") -> Iterator[tuple[str, str]]:
    """The options of all commands that take a path."""
    for inner in commands.registered_groups:
        assert inner.typer_instance is not None
        yield from options(inner.typer_instance, f"{inner.name} ")
    for command in commands.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.rstrip("_")
        for parameter, hint in get_type_hints(command.callback, include_extras=True).items():
            kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            if Path in (kind, *get_args(kind)) and isinstance(notes[0], OptionInfo):
                yield f"{group}{name}", f"--{parameter}"


def test_every_path_is_an_input_or_an_output() -> None:
    outputs = {(command, option.rstrip("/")) for command, option in OUTPUTS}
    assert {(command, option) for command, option in options(app) if option.removeprefix("--") not in INPUTS} == outputs


@pytest.fixture
def root() -> Iterator[Path]:
    yield MISSING
    shutil.rmtree(MISSING, ignore_errors=True)


@pytest.mark.parametrize(("command", "option"), OUTPUTS)
def test_no_command_creates_a_directory_of_the_root(
    command: str,
    option: str,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As root `--csv /nonexistent/x` created /nonexistent. Nothing is read or measured before."""
    monkeypatch.chdir(tmp_path)
    path = root if option.endswith("/") else root / "deep/file"
    code = call(*command.split(), *OUTPUTS[command, option], option.rstrip("/"), path)
    assert (code, capfd.readouterr().err) == (
        2,
        "nodeprint: /nodeprint-missing: does not exist, and nodeprint creates no directory in `/`; create it, or name "
        "another path\n",
    )
    assert not root.exists()


def test_a_directory_is_created_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    out = Path("new/deep/fleet")
    assert call("simulate", "naples-2x32", "--nodes", "1", "--runs", "1", "--passes", "1", "--out", out) == 0
    assert capfd.readouterr().err == "nodeprint: created the directory new\n"
    assert (out / "nodes.tsv").is_file()
    assert call("report", out, "--to", "other/report") == 2
    assert "created" not in capfd.readouterr().err and not Path("other").exists(), "the command failed before it"
