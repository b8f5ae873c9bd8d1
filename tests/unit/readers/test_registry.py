"""Which readers there are: one a file of nodeprint's own, and those that another package adds by an entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_file, tool_logs, tools
from nodeprint.readers.parsing import lines_of
from nodeprint.readers.registry import readers
from nodeprint.readers.tool_output import ToolEvidence
from tests.support.real_parts import ROOT
from tests.support.tool_output import FILES, OUTPUTS

Add = Callable[..., None]

#: A whole reader, as somebody else writes one.
PAGE = (ROOT / "docs/how-to/add-a-reader.md").read_text()
READER, ENTRY_POINT = (PAGE.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("python", "toml"))


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Install a made-up distribution of one module, whose entry point names it."""

    def adder(source: str, module: str = "gputool_reader") -> None:
        site = tmp_path / "site"
        folder = site / f"{module}-1.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
        group, _, point = ENTRY_POINT.replace('"', "").partition("\n")
        points = f"{group.replace('project.entry-points.', '')}\n{point.replace('gputool_reader', module)}"
        (folder / "entry_points.txt").write_text(points)
        (site / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(site)
        readers.cache_clear()

    yield adder
    monkeypatch.undo()
    readers.cache_clear()


def test_every_module_of_tools_is_a_reader_in_a_clone_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    readers.cache_clear()
    found = {**readers("matrix"), **readers("values")}
    files = {path.stem for folder in tools.__path__ for path in Path(folder).glob("[!_]*.py")}
    assert {str(vars(reader)["__name__"]).rpartition(".")[2] for reader in found.values()} == files
    assert len(found) == len(files) == 28


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("*.*")), ids=lambda path: path.name)
def test_an_output_is_claimed_by_its_tool_alone(path: Path) -> None:
    claimed = [name for name, reader in readers("values").items() if reader.evidence(lines_of(path))]
    assert len(claimed) == 1 and path.name.startswith(claimed[0])


@pytest.mark.parametrize("name", FILES)
def test_the_evidence_of_a_matrix_is_greatest_for_its_tool(name: str) -> None:
    evidence = {tool: reader.evidence(FILES[name].splitlines()) for tool, reader in readers("matrix").items()}
    assert [tool for tool in evidence if evidence[tool] == max(evidence.values())] == [name]


def test_a_package_adds_a_reader_with_one_file(tmp_path: Path, add: Add) -> None:
    for node in range(1, 5):
        rates = "".join(f"gpu {gpu} {900 + gpu + node / 10}\n" for gpu in range(4))
        (tmp_path / f"cn{node:03d}.log").write_text(f"gputool 1.0\n{rates}")
    with pytest.raises(NodeprintError, match="of no known tool"):
        tool_logs.read_logs(tmp_path)
    add(READER)
    frame = tool_logs.read_logs(tmp_path).frame
    assert frame["metric"].unique().tolist() == ["gputool-rate"]
    assert frame.groupby("node")["gpu"].apply(list).tolist() == [["0", "1", "2", "3"]] * 4
    done = CliRunner().invoke(app, ["judge", str(tmp_path)])
    assert done.exit_code == 0 and "gputool-rate" in done.output, done.output


@pytest.mark.parametrize(
    ("module", "source", "said"),
    [
        ("half_a_reader", 'NAME = "half"\n', "the reader half_a_reader has no KINDS"),
        ("other_reader", READER.replace("gputool", "stream"), "two readers are called stream"),
    ],
)
def test_a_reader_that_cannot_be_used_is_one_sentence(add: Add, module: str, source: str, said: str) -> None:
    add(source, module)
    with pytest.raises(NodeprintError, match=said):
        readers("values")


def test_a_reader_that_fails_to_load_leaves_the_others(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    add("import nothing_of_this_name\n", "broken_reader")
    assert len(readers("values")) == 19
    assert "add-on gputool (broken_reader) fails to load: No module named" in capsys.readouterr().err


def test_a_text_that_may_be_of_two_tools_is_rejected(tmp_path: Path) -> None:
    """Each of them names itself, and nothing says which one is asked for."""
    path = tmp_path / "both.txt"
    path.write_text(" 0-> 1:  78.0us (13443 MB/s)\nRESULT: Min Time: 1\nCache line offset: 0\nx,50.5\n50.5,x\n")
    with pytest.raises(NodeprintError, match="may be of chips-and-cheese or linktest; give one output a file"):
        matrix_file.read_output(path)
    assert matrix_file.read_output(path, "linktest").tool == "linktest"


def test_a_tool_s_own_line_is_surer_than_its_layout() -> None:
    head, rows = (
        "avg latency to communicate a modified line from one core to another",
        [" 1 2", "0: 12.5 88.0", "1: 87"],
    )
    multichase = readers("matrix")["multichase-pingpong"]
    assert multichase.evidence([head, *rows]) == ToolEvidence.NAME > multichase.evidence(rows) == ToolEvidence.LAYOUT
    assert readers("matrix")["core-to-core-latency"].evidence(["1,2", "3,4"]) == ToolEvidence.NUMBERS
