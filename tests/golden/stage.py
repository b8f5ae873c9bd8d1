"""A folder in which a golden campaign is made by the command line, and everything that is said of it."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import nodeprint
from nodeprint.settings.commit import commit
from tests.golden import painting
from tests.support import machines
from tests.support.changed_records import with_header
from tests.support.command_line import call

#: How far long work is: it depends on how fast the machine is.
_PROGRESS = re.compile(r"^nodeprint: .*(?:left|\d of \d+ [a-z ]+)\n", re.MULTILINE)
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_TERMINAL = {"COLUMNS": "100", "LINES": "40", "TERM": "dumb", "TZ": "UTC", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}

#: A socket with two CCDs of two CCXs, with four, and with one of larger CCXs: few cores, so that campaigns are quick.
EIGHT = machines.Epyc(0x31, 0x17, "AMD EPYC 7252 8-Core Processor", (0, 2), 2, 2, 4, lambda ccd: ccd // 2)
SIXTEEN = machines.Epyc(0x31, 0x17, "AMD EPYC 7302 16-Core Processor", (0, 2, 4, 6), 2, 2, 4, lambda ccd: ccd // 2)
CCX = machines.Epyc(0x31, 0x17, "AMD EPYC 7262 8-Core Processor", (0,), 2, 4, 4, lambda ccd: ccd // 2)
MACHINES = {
    "eight": machines.epyc(EIGHT, sockets=1, threads=1),
    "sixteen": machines.epyc(SIXTEEN, sockets=1, threads=1),
    "sockets": machines.epyc(EIGHT, sockets=2, threads=1),
    "ccx": machines.epyc(CCX, sockets=1, threads=1),
    "nps4": machines.epyc(SIXTEEN, sockets=1, threads=1, nps=4),
    "threads": machines.epyc(EIGHT, sockets=1, threads=2),
    "xeon": machines.xeon(sockets=2, cores=4, threads=1),
    "arm": machines.arm(cores=8),
}


#: What decides, and is enough for most campaigns.
DECIDING = ("coherence-cas", "chase-latency", "bandwidth-nodes", "clock-together")


class Stage:
    """What commands said, in the order in which they were called, with the files that they wrote."""

    def __init__(self) -> None:
        self.terminal: list[str] = []

    def run(self, *words: str) -> None:
        """Call a command as somebody would and keep what it says."""
        code, said = _called(words)
        self.terminal.append(f"$ nodeprint {' '.join(words)}\n{said}exit status {code}\n")

    def prepare(self, *words: str) -> None:
        """Call a command whose words are not kept, and which has to succeed."""
        code, said = _called(words)
        assert code == 0, said

    def simulate(
        self,
        campaign: str,
        *defects: str,
        machine: str = "eight",
        nodes: int = 5,
        measured: Sequence[str] = DECIDING,
        **options: object,
    ) -> None:
        """Make a campaign of a small machine, with some measurements, all if none is named."""
        root = Path("machines", machine)
        if not root.exists():
            MACHINES[machine].write(root)
        usual: dict[str, object] = {"nodes": nodes, "runs": 1, "passes": 1}
        words = [f"--{name}" if value is True else f"--{name}={value}" for name, value in (usual | options).items()]
        self.prepare("simulate", str(root), "--out", campaign, *words, *(f"--defect={defect}" for defect in defects))
        if measured:
            _leave_out(Path(campaign), measured)

    def judge(self, campaign: str = "main", *options: str, pages: bool = True) -> None:
        """Judge a campaign, show it and write its pages."""
        self.run("judge", campaign, "--fail-on", "found", *options)
        if pages:
            self.prepare("report", campaign)
        self.run("show", campaign)

    def sources(self) -> dict[str, str]:
        """What every printed number has to come from: the values of each judged campaign as they are exported, and the
        headers of its records."""
        out: dict[str, str] = {}
        for path in sorted(Path().rglob("verdict.json")):
            campaign = path.parent
            nodes = json.loads(path.read_text(encoding="utf-8"))["nodes"].values()
            measured = {row["measurement"] for node in nodes for row in (*node["classes"], *node["cells"])}
            for name in sorted(measured):
                code, _ = _called(["export", str(campaign), "--to", "values.csv", "--table", name])
                out |= {f"{campaign}/values/{name}": Path("values.csv").read_text("utf-8")} if code == 0 else {}
            heads = dict.fromkeys(_first_line(of) for of in sorted(campaign.rglob("*.jsonl.gz")))
            out[f"{campaign}/headers"] = "\n".join(head for head in heads if head.endswith("}"))
        return out

    def artifacts(self) -> dict[str, str]:
        """Everything that was said, by what it is."""
        out = {"terminal": "\n".join(self.terminal)}
        for path in sorted(Path().rglob("*")):
            if path.parts[0] == "machines" or (path.name not in _READ and path.suffix not in _PAGES):
                continue
            if path.name in _READ or path.parts[-2] in ("report", "protocol"):
                out[str(path)] = path.read_text(encoding="utf-8")
        for table in sorted(Path().rglob("deviations.nc")):
            code, said = _called(["export", str(table.parent), "--to", "deviations.csv", "--table", "deviations"])
            name = f"{table.parent}/deviations"
            text = Path("deviations.csv").read_text(encoding="utf-8") if code == 0 else said
            out[f"{name}.{'csv' if code == 0 else 'txt'}"] = text
        return {name: _without_origin(text) for name, text in out.items()}


#: Files that commands write, which are kept whatever folder they are in, and pages, of which reports consist.
_READ = ("verdict.json", "card.json", "verdict.xml", "verdict.prom", "drain.sh")
_PAGES = (".html", ".pdf")


def _first_line(path: Path) -> str:
    """The header of a record file; of one that was cut off nothing."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.readline().strip()
    except (EOFError, OSError):
        return ""


def _called(words: Sequence[str]) -> tuple[int, str]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = call(*words)
    return code, _PROGRESS.sub("", out.getvalue())


def _without_origin(text: str) -> str:
    """A text without what differs from call to call: version, commit, the checksums of files that have these, and the
    folder."""
    text = _DIGEST.sub("DIGEST", text).replace(f"{Path().resolve()}/", "").replace(str(Path().resolve()), ".")
    return text.replace(commit() or "no commit", "COMMIT").replace(nodeprint.__version__, "VERSION")


def _leave_out(campaign: Path, measured: Sequence[str]) -> None:
    """Make a campaign one of some measurements alone, as if it had been planned so."""
    plan = campaign / "plan.tsv"
    rows = plan.read_text().splitlines(keepends=True)
    plan.write_text("".join(row for row in rows if row.startswith("#") or row.partition("\t")[0] in measured))
    for path in campaign.glob("nodes/*/job*/run*/*"):
        if path.name.partition(".")[0] not in measured:
            path.unlink()
    for path in campaign.glob("nodes/*/job*/status.json"):
        status = json.loads(path.read_text())
        status["measurements"] = [of for of in status["measurements"] if of["name"] in measured]
        path.write_text(json.dumps(status))


@contextmanager
def elsewhere(folder: Path) -> Iterator[None]:
    """Work in a folder, on any machine as on any other: one CPU, one terminal, one language; figures are their data and
    PDF pages their text."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, _TERMINAL))
        stack.enter_context(mock.patch.object(os, "sched_getaffinity", lambda _: {0}))
        stack.enter_context(painting.as_text())
        stack.enter_context(chdir(folder))
        yield


# --- what no command makes ---


def change_records(pattern: str, change: Callable[[dict[str, object]], Mapping[str, object]]) -> None:
    """Change the lines of record files, which then have the right checksum."""
    paths = sorted(Path().glob(pattern))
    assert paths, pattern
    for path in paths:
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
        text = "".join(json.dumps({**row, **change(row)}) + "\n" for row in rows)
        path.write_bytes(gzip.compress(with_header(text).encode(), 1, mtime=0))


def take_job(source: str, target: str, nodes: Sequence[str], job: int) -> None:
    """Put a job of another campaign in the place of the same job of some nodes."""
    for node in nodes:
        place = Path(target, "nodes", node, f"job{job}")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(Path(source, "nodes", node, f"job{job}"), place)
