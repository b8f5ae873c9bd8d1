"""Every subcommand with input that is missing, empty, binary, of another kind, unreadable: a sentence each."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.settings import checked_yaml, config
from tests.support.combinations import in_turn
from tests.support.command_line import MATRIX, call
from tests.support.real_parts import private_device

#: What may lie where a file or a folder is expected, by name.
CONTENT: dict[str, bytes] = {
    "empty": b"",
    "binary": bytes(range(256)) * 4,
    "nul": b"a: b\0c\n1,2\0,3\n",
    "text": b"hello\nworld, this is text\n",
    "latin1": "caf\xe9".encode("latin1"),
    "list": b"[1, 2, 3]",
    "none": b"null",
    "huge-number": b'{"record": "header", "schema": 1e999, "runs": ' + b"9" * 5000 + b"}",
    "deep-json": b"[" * 50_000,
    "deep-yaml": b"{a: " * 3000,
    "cut-gzip": b"\x1f\x8b\x08\0garbage",
    "twice": b"runs: 1\nruns: 2\n",
    "xml": b"<topology><object type='Machine'/></topology>",
    "matrix": b"1,2,3\n4,5,1e999\n",
}
#: What is not a file that can be read.
NO_FILES = ("missing", "folder", "loop", "below-a-file", "too-long", "unreadable", "device")


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Paths that are not what is expected there."""
    folder = tmp_path_factory.mktemp("bad")
    paths = {name: folder / name for name in CONTENT}
    for name, content in CONTENT.items():
        paths[name].write_bytes(content)
    loop = folder / "loop"
    loop.symlink_to(loop)
    (folder / "folder").mkdir()
    device = folder / "device"
    private_device(device) if os.geteuid() == 0 else device.symlink_to("/dev/null")  # as root it could be replaced
    return paths | {
        "missing": folder / "missing",
        "folder": folder / "folder",
        "loop": loop,
        "below-a-file": folder / "text/x",
        "too-long": folder / ("x" * 5000),
        "unreadable": Path("/proc/self/mem"),
        "device": device,
    }


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged campaign of one imported matrix."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "a.csv").write_text(MATRIX)
    assert call("import", folder / "a.csv", "--out", folder / "campaign") == 0
    assert call("judge", folder / "campaign") == 0
    return folder / "campaign"


#: Commands whose word IN is bad input; OUT is a path that is free, GOOD a judged campaign, MATRIX a good matrix.
COMMANDS = [
    "discover --config IN",
    "topology --root IN",
    "topology --xml IN",
    "topology --cpuid IN",
    "topology --root IN --json",
    "structure IN",
    "structure MATRIX --root IN",
    "structure MATRIX --xml IN",
    "structure MATRIX --cpuid IN",
    "structure --format intel-mlc IN",
    "structure --format c2clat IN",
    "structure --format multichase-pingpong IN",
    "import IN --out OUT",
    "import MATRIX --xml IN --out OUT",
    "import MATRIX --part IN --out OUT",
    "import MATRIX --out IN",
    "simulate IN --nodes 1 --out OUT",
    "simulate naples-2x32 --nodes 1 --out IN",
    "simulate naples-2x32 --defect IN --out OUT",
    "judge IN",
    "judge IN --json",
    "judge GOOD --acceptance IN",
    "judge GOOD --baseline IN",
    "judge GOOD --recheck IN",
    "drift IN",
    "drift GOOD --acceptance IN",
    "since IN GOOD",
    "since GOOD IN",
    "export IN --to OUT.csv",
    "export GOOD --to IN",
    "report IN",
    "show IN",
    "baseline save IN --to OUT",
    "baseline save GOOD --to IN",
    "sources --to IN",
]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "judge . --fail-on foo",
            "--fail-on: 'foo' is no kind of outcome; choose from found, not-same, ",
        ),
        ("show nowhere", "nowhere: not a campaign directory; specify one that `make run` made"),
        ("status nowhere", "nowhere: not a campaign directory; specify one that `make run` made"),
        ("discover", "config/config.yaml: --config: there is no configuration; call it in"),
    ],
)
def test_bad_usage_is_one_sentence(
    words: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(*words.split()) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"nodeprint: {says}")
    assert said.err.count("\n") == 1 and not said.out


@pytest.mark.parametrize(("command", "name"), in_turn(COMMANDS, [*CONTENT, *NO_FILES], of_each=7))
def test_no_input_gives_a_traceback(
    command: str,
    name: str,
    bad: dict[str, Path],
    good: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matrix.csv").write_text(MATRIX)
    path = bad[name]
    if name in CONTENT:  # a call may write where it is told to
        (path := tmp_path / name).write_bytes(CONTENT[name])
    elif name == "folder":
        (path := tmp_path / name).mkdir()
    words = {"IN": str(path), "GOOD": str(good), "MATRIX": "matrix.csv", "OUT": "out"}
    code = call(*(words.get(word, word.replace("OUT", words["OUT"])) for word in command.split()))
    said = capsys.readouterr()
    assert code in (0, 1, 2)
    assert "Traceback" not in said.err + said.out
    if code == 2 and "Usage" not in said.err:
        assert said.err.startswith("nodeprint: "), said.err
        assert said.err.count("\n") == 1, said.err
        assert ";" in said.err, "no advice"


#: Files of a campaign that are read again.
FILES = (
    "nodes.tsv",
    "plan.tsv",
    "config.yaml",
    "store/fleet.json",
    "verdict.json",
    "store/fleet/index.json",
    "nodes/a/job1/status.json",
    "nodes/a/job1/survey.tar.gz",
    "store/nodes/a/survey.msgpack.zst",
    "store/nodes/a/jobs.msgpack.zst",
    "nodes/a/job1/run1/*",
)


@pytest.mark.parametrize(("spoiled", "name"), in_turn(FILES, list(CONTENT), of_each=3))
def test_no_file_of_a_campaign_gives_a_traceback(
    good: Path, tmp_path: Path, spoiled: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = tmp_path / "campaign"
    shutil.copytree(good, campaign)
    for path in list(campaign.glob(spoiled)) or [campaign / spoiled]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT[name])
    for command in ("show", "drift", "judge", "diff"):
        code = call(command, campaign, *([campaign] if command == "diff" else []))
        said = capsys.readouterr()
        assert code in (0, 1, 2), (command, said.err)
        assert "Traceback" not in said.err + said.out
        if code == 2:
            assert said.err.startswith("nodeprint: "), (command, said.err)
            assert said.err.count("\n") == 1, (command, said.err)


@pytest.mark.parametrize(
    ("name", "locale"),
    [(b"caf\xe9", {}), ("\N{CYRILLIC SMALL LETTER YA}".encode(), {"LC_ALL": "C", "PYTHONUTF8": "0"})],
)
@pytest.mark.parametrize("command", ["judge", "protocol"])
def test_folder_whose_name_is_not_text_is_one_sentence(
    command: str, name: bytes, locale: dict[str, str], good: Path, tmp_path: Path
) -> None:
    campaign = tmp_path / os.fsdecode(name)
    shutil.copytree(good, campaign)
    done = subprocess.run(
        [sys.executable, "-m", "nodeprint", command, campaign],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | locale,
        cwd=tmp_path,
    )
    assert done.returncode == 2, done.stderr
    shown = "".join(letter if letter.isascii() else "?" for letter in name.decode("ascii", "surrogateescape"))
    assert done.stderr.startswith(f"nodeprint: the name `{shown}` is not UTF-8; rename")
    assert done.stderr.count("\n") == 1


KNOWN = "waivers: [{node: a, finding: core-slow, reason: c, until: %s}]"


@pytest.mark.parametrize("number", ["300e9", "300.0e9", "300E+9", "3.e11", "300_000_000_000", "+300e+9"])
def test_numbers_of_engineers_are_numbers(tmp_path: Path, number: str) -> None:
    path = tmp_path / "limits.yaml"
    path.write_text(f"at_least: {number}\ntext: '{number}'\nname: 300e9x\n")
    assert checked_yaml.read(path) == {"at_least": 300e9, "text": number, "name": "300e9x"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (KNOWN % "tomorrow", "waivers[0].until: 'tomorrow' is not a date; write it as 2026-12-31"),
        (KNOWN % "null", "waivers[0].until: must be text, not nothing"),
        (KNOWN % "2026-13-31", "waivers[0].until: '2026-13-31' is not a date"),
        ("waivers: [{node: a}]", "waivers[0]: finding is missing"),
        ("limits: [{measurement: clock-alone, row: all, reason: x}]", "limits[0]: at_most or at_least is missing"),
        ("tolerances:", "tolerances: must be keys with values, not nothing"),
        ("tolerances: {percent: {core: 0}}", "tolerances.percent.core: must be more than 0, not 0"),
        ("tolerances: {percent: {core: .nan}}", "line 1, column 30: not a finite number"),
        ("tolerances: {}\ntolerances: {}", "line 2, column 1: the key tolerances appears twice; remove one of them"),
        ("tolerances:\n\tpercent: {}", "line 2, column 1: a tab begins the line; indent it with blanks"),
        (
            "tolerances: {percent: {core: '4'}}",
            "tolerances.percent.core: must be a number, not '4'; write it without quotes",
        ),
        ("tolerances: {percent: {core: four}}", "not 'four'; config/README.md explains every key"),
    ],
)
def test_what_is_wrong_with_an_acceptance_file_is_said(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "acceptance.yaml"
    path.write_text(text)
    with pytest.raises(NodeprintError) as refusal:
        acceptance.load(path)
    assert str(path) in str(refusal.value)
    assert says in str(refusal.value)
    assert "; " in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("runs: many", "runs: must be a whole number, not 'many'"),
        ("runs: 0", "runs: must be at least 1, not 0"),
        ("measure:", "measure: must be a list, not nothing"),
        ("measure: coherence-cas", "measure: must be a list, not 'coherence-cas'"),
        ("measure: []", "measure: must not be empty"),
        ("measure: [clock-alon]", "measure[0]: unknown measurement 'clock-alon'; did you mean clock-alone? known are "),
        ("arguments: {coherence-cas: }", "arguments.coherence-cas: must be text, not nothing"),
        ("runs: 2.0", "runs: must be a whole number, not 2.0"),
        ("recheck: no", "recheck: must be true or false, not 'no'"),
        ("serials: true", "serials: True is not allowed; choose from hash, no, yes"),
        ("slurm: {nods: cn01}", "slurm.nods: unknown key; did you mean nodes? known are partition, nodes, "),
        ("measure: [clock-alone, clock-alone]", "measure[1]: clock-alone appears twice; remove one"),
        ("arguments: {coherence-ca: x}", "arguments.coherence-ca: no such measurement; did you mean coherence-cas?"),
        ("arguments: {1: x}", "line 1, column 13: the key 1 must be text; write it in quotes"),
        ("runs: 1\nruns: 2", "line 2, column 1: the key runs appears twice"),
        ("runs: " + "9" * 5000, "line 1, column 7: not a valid number"),
        ("recheck_minutes: .inf", "line 1, column 18: not a finite number"),
        ("campaign: '../x'", "campaign: '../x' cannot be used; write letters, digits, `_`, `-` and `.`"),
        ("campaign: 2026", "campaign: must be text, not 2026; write it in quotes"),
        ("", "the file has no key; write at least one key, such as `campaign: main`"),
        ("[1]: 2", "line 1, column 1: the key in brackets must be text"),
        ("a: \0", "control characters"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_said(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(NodeprintError) as refusal:
        config.load(path)
    assert str(path) in str(refusal.value)
    assert says in str(refusal.value)
    assert "; " in str(refusal.value)


@pytest.mark.parametrize(
    ("taken", "command", "advice"),
    [
        ("report", "report", "make it writable, or specify another directory with `--to`"),
        (
            "pseudonyms.tsv/",
            "report --pseudonyms --to elsewhere",
            "make the campaign writable or work in a copy of it,",
        ),
        ("export/coherence-cas.nc/", "export", "make it writable, or write a table elsewhere with `--to`"),
    ],
)
def test_campaign_that_cannot_be_written_names_the_option(
    good: Path,
    tmp_path: Path,
    taken: str,
    command: str,
    advice: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good, "campaign")
    path = Path("campaign", taken)
    path.mkdir(parents=True) if taken.endswith("/") else path.write_text("")
    os.utime(path, (0, 0))  # older than the records
    name, *options = command.split()
    assert call(name, "campaign", *options) == 2
    error = capsys.readouterr().err
    assert f"; {advice}" in error and error.count("\n") == 1, error


#: Options that would have no effect beside the others, and what is said of it.
WITHOUT_EFFECT = {
    "judge table.csv --node n1": "--node: it is for campaigns; write table.csv as one first, with --to FOLDER",
    "judge table.csv --path x-{node}": "--path: it is for outputs, and a table has a column of nodes; leave",
    "judge GOOD --tolerance 5": "--tolerance: it is for tables, and GOOD is a campaign; leave it out",
    "judge GOOD --reference nowhere": "nowhere: cannot be read (No such file or directory); check the name",
    "judge GOOD --fail-on found,nothing": "--fail-on: nothing counts no outcome, and others are named; leave it out",
    "judge table.csv --tolerance triad=3 --tolerance triad=4": "--tolerance: is given twice of triad; leave one out",
    "judge table.csv --better lower --better higher": "--better: is given twice of all metrics; leave one out",
    "report GOOD --figures --style table.csv": "table.csv, line 1: missing colon; see matplotlib's style sheets",
    "report table.csv": "table.csv: not a campaign directory; specify one that `make run` made",
    "status table.csv": "table.csv: not a campaign directory; specify one that `make run` made",
    "judge GOOD --json --reference published": "--reference: it prints sentences, and --json has none; leave",
    "judge GOOD --node b": "GOOD: no node b in this campaign; its nodes are a",
    "judge GOOD --notify=": "an argument is empty (--notify=); leave it out, or set the variable of the shell",
    "import matrix.csv --out": "an argument is empty; leave it out, or set the variable of the shell that it is from",
    "import matrix.csv --out OUT --sockets 2": "--sockets: it is of a part; name the processor with --part, or",
    "import matrix.csv --out OUT --smt": "--smt: it is of a part; name the processor with --part, or leave it out",
    "import matrix.csv --out OUT --xml a.xml --part x": "--part: --xml has the topology; leave one of them out",
    "import matrix.csv --out table.csv": "table.csv is a file; name a directory, or a free path",
    "export GOOD --table cells": "--table: it is written into a file; name one with --to FILE.csv",
    "export GOOD --hwloc --to x.csv": "--to: a table is written without --hwloc; call it twice",
    "status GOOD --json --watch": "--watch: it prints sentences; leave --json out",
    "report GOOD --width 90": "--width: is for figures as files; add --figures",
    "topology --root / --xml x.xml": "--root: one source of labels is read, and there are several; leave it out",
    "iodie GOOD --xml x.xml": "--xml: it is for files, and GOOD has its labels; leave it out",
    "structure matrix.csv --pdf x.png": "x.png: --pdf: does not end in .pdf; name a file that ends in .pdf",
}


@pytest.mark.parametrize("command", WITHOUT_EFFECT)
def test_an_option_without_effect_is_refused_with_what_to_do(
    command: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matrix.csv").write_text(MATRIX)
    (tmp_path / "table.csv").write_text("node,triad\nn1,100\nn2,101\n")
    words = [str(good) if word == "GOOD" else word for word in command.split()]
    assert call(*words, *([""] if command.endswith("--out") else [])) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1
    assert WITHOUT_EFFECT[command].replace("GOOD", str(good)) in said.err


@pytest.mark.parametrize(
    "command",
    [
        "show IN",
        "judge IN",
        "status IN",
        "report IN",
        "drift IN",
        "export IN",
        "verify IN",
        "check IN a",
        "protocol IN",
    ],
)
def test_a_directory_of_campaigns_lists_them(
    command: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cn-2", "main"):
        shutil.copytree(good, tmp_path / "results" / name)
    assert call(*command.replace("IN", "results").split()) == 2
    assert capsys.readouterr().err == (
        "nodeprint: results: not a campaign, but a directory of campaigns (cn-2, main); "
        "specify one, for example results/cn-2\n"
    )


#: What is given to each option: nothing, negative, beyond any integer, no number, markup, too long.
ODD = ("0", "-1", "99999999999999999999", "nan", "\x1b[31mred", "y" * 3000)


@pytest.mark.parametrize("command", ["judge GOOD", "import matrix.csv --out OUT", "simulate graviton3-64 --out OUT"])
def test_odd_values_of_every_option_end_in_a_sentence(
    command: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused before anything is done; a walk over all commands and values takes minutes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matrix.csv").write_text(MATRIX)
    words = [str(good) if word == "GOOD" else word for word in command.split()]
    name = words[0]
    monkeypatch.setattr("nodeprint.simulate.write", lambda plan, out: out)  # what is asked for is checked before
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    options = [option for option in group.commands[name].params if option.param_type_name == "option"]
    for option in (
        max(option.opts, key=len)
        for option in options
        if not getattr(option, "is_flag", False) and option.name != "out"
    ):
        for value in ODD:
            code = call(*words, option, value)
            said = capsys.readouterr()
            assert code in (0, 2) and "Traceback" not in said.err, (option, value)
            assert code == 0 or "Usage" in said.err or said.err.count("\n") == 1, (option, value, said.err)
            assert "\x1b" not in said.err, (option, value)
            assert code == 2 or option not in ("--nodes", "--jobs", "--runs", "--passes"), (option, value)


@pytest.mark.parametrize("command", ["judge -", "structure -", "import - --out OUT", "iodie -"])
def test_what_comes_in_is_called_so_where_it_is_wrong(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not by the copy that is read, which is gone by then."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert call(*command.replace("OUT", str(tmp_path / "out")).split()) == 2
    assert capsys.readouterr().err.startswith("nodeprint: standard input: empty; ")


@pytest.mark.parametrize(
    ("style", "says"),
    [
        ("font.size: 9\nfont.sise: 8\n", "line 2: bad key font.sise; "),  # codespell:ignore
        ("lines.linewidth: thick\n", "line 1: bad value; "),
        ("font.size: 9\nfont.size: 8\n", "line 2: duplicate key; "),
        ("\udcff", "cannot be read ('utf-8' codec"),
    ],
)
def test_no_line_of_a_style_is_left_out(
    style: str, says: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "a.mplstyle").write_bytes(style.encode(errors="surrogateescape"))
    assert call("report", good, "--figures", "--style", path, "--to", tmp_path / "report") == 2
    error = capsys.readouterr().err
    assert says in error and error.startswith(f"nodeprint: {path}") and error.count("\n") == 1


def test_style_without_figures_is_refused(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("report", good, "--style", "nofile") == 2
    assert capsys.readouterr().err == "nodeprint: --style: is for figures as files; add --figures\n"


@pytest.mark.parametrize(
    "command", ["protocol LOOP", "since LOOP", "baseline save LOOP --to OUT", "judge LOOP --to OUT"]
)
def test_links_that_lead_to_each_other_and_names_of_two_lines_are_one_sentence(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (loop := tmp_path / "loop").symlink_to("loop")
    for name in (str(loop), f"{tmp_path}/a\nb\u202ec"):
        assert (
            call(*(word.replace("LOOP", name).replace("OUT", str(tmp_path / "out")) for word in command.split())) == 2
        )
        error = capsys.readouterr().err
        assert error.startswith("nodeprint: ") and error.count("\n") == 1 and "\u202e" not in error, error
        assert ";" in error, error


def test_what_cannot_be_copied_whole_has_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk in the middle of a folder: shutil has a reason for each file, and none for all."""

    def full(*_: object, **__: object) -> None:
        raise shutil.Error([("from", "to", "[Errno 28] No space left on device: 'to'")])

    monkeypatch.setattr(shutil, "copytree", full)
    assert call("sources", "--to", tmp_path / "out") == 2
    assert "cannot be written ([Errno 28] No space left on device: 'to'); make room" in capsys.readouterr().err
