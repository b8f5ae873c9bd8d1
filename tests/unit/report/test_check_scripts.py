"""What was found on a node measured again: the script beside the page, copied from it by other programs than ours, and
run with records of the node, of a healthy one, and with the real kernels of this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.cli.shared import judge_and_write
from nodeprint.data.store import node_states
from nodeprint.judge.verdict import Component, Finding
from nodeprint.report import check_scripts, documents, names, protocol, text, verdict_files
from nodeprint.settings.measurements import measurements
from tests.support import verdicts
from tests.support.changed_records import with_header
from tests.support.command_line import call
from tests.support.made_records import record_texts
from tests.support.real_parts import built, need

#: A node each: of pairs, the core (in two CCXs' worth of contrasts), a CCD and the link of two quadrants; of cells
#: latency, bandwidth, clock, wake-ups, huge pages and load.
DEFECTS = (
    "node001: core 9 +12%",
    "node002: ccd 3 +9%",
    "node003: link q0-q2 +10%",
    "node004: socket-link +7%",
    "node001: core-clock 17 -15%",
    "node002: memory-channel node 1 -25%",
    "node003: memory ccd2-to-node0 +20%",
    "node004: fragmented node 1 40%",
    "node003: idle-state +200%",
    "node004: cooling socket 0 -20%",
)
HEALTHY = "node000"
#: The time of the whole machine, where nothing else runs.
#: The values of a pair that a peer has.
QUICKER = r'("latency_ns"|"ci_low_ns"|"ci_high_ns"):[0-9.]+'
QUIET = "cpu  0 0 0 0 0 0 0 0 0 0\n"
#: In place of a kernel: the next of some record files.
REPLAY = """#!/bin/sh
[ "$1" = --help ] && exit 0
echo "$@" >"$REPLAY/arguments"
run=$(($(cat "$REPLAY/run" 2>/dev/null || echo 0) + 1))
echo $run >"$REPLAY/run"
while [ "$1" != --out ]; do shift; done
cp "$REPLAY/$run" "$2"
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged campaign of simulated nodes with records, most of which have a defect."""
    folder = tmp_path_factory.mktemp("checks") / "fleet"
    defects = (word for defect in DEFECTS for word in ("--defect", defect))
    assert call("simulate", "rome-2x64", "--nodes", "9", "--runs", "2", "--passes", "1", *defects, "--out", folder) == 0
    judge_and_write(folder)
    return folder


def found(folder: Path, node: str) -> list[check_scripts.Again]:
    verdict, jobs = verdict_files.read(folder), node_states.jobs_of(folder, node)
    return check_scripts.again(jobs, verdict.nodes[node].counted)


def run(script: str, place: Path, number: int, runs: list[bytes], shell: str = "dash") -> tuple[int, str]:
    """The exit status and last line of a script beside kernels that give these records."""
    place.mkdir(exist_ok=True)
    for kernel in {measurement.kernel for measurement in measurements().values()}:
        (place / kernel).write_text(REPLAY)
        (place / kernel).chmod(0o755)
    for index in range(3):
        (place / str(index + 1)).write_bytes(runs[index % len(runs)])
    (place / "run").unlink(missing_ok=True)
    (place / "stat").write_text(QUIET)
    (place / "node-check.sh").write_text(script.replace("/proc/stat", str(place / "stat")))
    done = subprocess.run(
        [*shell.split(), place / "node-check.sh", str(number)],
        env={**os.environ, "REPLAY": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "awk" not in done.stderr and "not found" not in done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()[-1]


def records(folder: Path, node: str, measurement: str) -> list[bytes]:
    content = record_texts(folder / "nodes" / node / "job1")
    return [raw for name, raw in sorted(content.items()) if Path(name).name.partition(".")[0] == measurement]


def test_a_finding_of_every_kind_fails_on_its_node_and_passes_on_a_healthy_one(fleet: Path, tmp_path: Path) -> None:
    terms: set[str] = set()
    for node, verdict in verdict_files.read(fleet).nodes.items():
        again = found(fleet, node)
        script = check_scripts.script(node, again, "", 25.0)
        for number, finding in enumerate(verdict.counted, 1):
            terms.add(finding.component.term)
            code, line = run(script, tmp_path / "own", number, records(fleet, node, finding.measurement))
            assert (code, line[:6]) == (1, "FAIL: "), line
            accepted = check_scripts.accepted(finding)
            assert names.quantity(finding.value, finding.unit)[:2] in line, "the judge's own value, measured again"
            (limit,) = re.findall(r"at (?:most|least) ([0-9.]+)", line)
            assert float(limit) == pytest.approx(float(accepted.split()[2].removesuffix("%")), rel=5e-3), (
                "in three digits on the page"
            )
            code, line = run(script, tmp_path / "own", number, records(fleet, HEALTHY, finding.measurement))
            assert (code, line[:6]) == (0, "PASS: "), line
    assert terms >= {"core", "ccd", "link", "class", "bandwidth", "numa", "clock", "wake", "huge", "load"}


@pytest.fixture
def core(fleet: Path) -> tuple[str, int, Finding]:
    """The script of the node with a slow core, and that finding with its number."""
    counted = verdict_files.read(fleet).nodes["node001"].counted
    number = next(number for number, finding in enumerate(counted, 1) if finding.component.term == "core")
    return check_scripts.script("node001", found(fleet, "node001"), "", 25.0), number, counted[number - 1]


@pytest.mark.parametrize("shell", ["dash", "busybox sh"])
def test_what_cannot_be_judged_is_neither_passed_nor_failed(
    fleet: Path, core: tuple[str, int, Finding], tmp_path: Path, shell: str
) -> None:
    need(shell.split(maxsplit=1)[0])
    script, number, finding = core
    own, healthy = (records(fleet, node, finding.measurement) for node in ("node001", HEALTHY))
    assert run(script, tmp_path, number, own, shell)[0] == 1
    disturbed = [re.sub(rb'"flags": ?\[\]', b'"flags":["disturbed"]', raw) for raw in healthy]
    empty = [raw[: raw.index(b"\n") + 1] for raw in healthy]
    refused = [b'{"record":"header","applicable":false,"reason":"one CPU"}\n']
    for runs, why in (
        (disturbed, "disturbed"),
        (empty, "were not measured"),
        (refused, "one CPU"),
        ([own[0], *healthy], "at most"),
    ):
        code, line = run(script, tmp_path, number, runs, shell)
        assert code == 3 and line.startswith("INCONCLUSIVE: ") and why in line


def test_other_programs_at_work_make_a_run_that_is_not_judged(
    fleet: Path, core: tuple[str, int, Finding], tmp_path: Path
) -> None:
    """The time of all CPUs rises by ten seconds while the kernel is at work."""
    script, number, finding = core
    load = f'echo "cpu  1000 0 0" >{tmp_path / "stat"}; measure "$1" >/dev/null'
    busy = script.replace('measure "$1" >/dev/null', load)
    code, line = run(busy, tmp_path, number, records(fleet, "node001", finding.measurement))
    assert code == 3 and "other programs took" in line


def test_what_an_earlier_run_left_is_never_judged(fleet: Path, core: tuple[str, int, Finding], tmp_path: Path) -> None:
    script, number, finding = core
    own = records(fleet, "node001", finding.measurement)
    run(script, tmp_path, number, own)
    (tmp_path / "check.jsonl").write_bytes(own[0])
    (tmp_path / "records.jsonl").write_bytes(own[0])
    (tmp_path / "coherence").write_text('#!/bin/sh\n[ "$1" = --help ] || { echo no memory >&2; exit 3; }\n')
    done = subprocess.run(
        ["sh", "node-check.sh", str(number)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and "the kernel coherence ended with 3" in done.stdout
    assert done.stderr.count("no memory") == 1, "a kernel that refuses is called once"


def test_the_kernel_gets_the_pairs_and_arguments_of_the_finding(
    fleet: Path, core: tuple[str, int, Finding], tmp_path: Path
) -> None:
    script, number, finding = core
    run(script, tmp_path, number, records(fleet, "node001", finding.measurement))
    words = (tmp_path / "arguments").read_text()
    assert "--op cas" in words and "--pairs" in words and "--cpus" not in words and "--seed" not in words
    assert finding.expected is not None
    weights = dict(zip(finding.expected.at, finding.expected.weights, strict=True))
    assert {9 in place for place, weight in weights.items() if weight > 0} == {True}, "the core's own pairs"
    assert sum(weights.values()) == pytest.approx(0, abs=1e-3), "against those of the other cores"


def test_a_script_is_clean_and_refuses_what_is_no_finding(core: tuple[str, int, Finding], tmp_path: Path) -> None:
    need("shellcheck")
    path = tmp_path / "x-check.sh"
    path.write_text(core[0])
    subprocess.run(["shellcheck", path], check=True)
    for words in (["0"], ["99"], ["one"], ["1", "2"]):
        done = subprocess.run(["sh", path, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and done.stderr.startswith("usage: sh x-check.sh"), words
    (tmp_path / "empty").mkdir()
    done = subprocess.run(["sh", path, "1"], cwd=tmp_path / "empty", capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "there is no kernel" in done.stdout


EXTRACTORS = (["pdftotext"], ["pdftotext", "-layout"], ["mutool", "draw", "-F", "txt"])


def extracted(program: list[str], page: Path) -> list[str]:
    """The lines of a page as a viewer copies them."""
    to = ["-"] if program[0] == "pdftotext" else []
    return subprocess.run([*program, page, *to], capture_output=True, text=True, check=True).stdout.splitlines()


def typed(line: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A line typed into a shell."""
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_the_line_of_a_page_survives_copying_and_runs(fleet: Path, tmp_path: Path) -> None:
    need("pdftotext", "mutool")
    page, script = documents.write(fleet, tmp_path, nodes=["node001"])
    assert script.name == "node001-check.sh"
    first = verdict_files.read(fleet).nodes["node001"].counted[0]
    beside = tmp_path / "beside"
    run(script.read_text(), beside, 1, records(fleet, "node001", first.measurement))  # lays out the kernels
    shutil.move(beside / "node-check.sh", beside / script.name)
    for program in EXTRACTORS:
        line = next(line.strip() for line in extracted(program, page) if line.strip().startswith("sh "))
        assert line == "sh node001-check.sh 1", "plain blanks and hyphens"
        (beside / "run").unlink()
        done = typed(line, beside, {"REPLAY": str(beside)})
        assert done.returncode == 1 and done.stdout.startswith(f"FAIL: finding 1, {text.noun_phrase(first)}")


def test_every_output_names_the_same_command(fleet: Path, tmp_path: Path) -> None:
    command = "sh report/node001-check.sh 1"
    facts = json.loads((fleet / "verdict.json").read_text())
    assert facts["nodes"]["node001"]["findings"][0]["check"] == command
    assert f"To check it: `{command}`." in (fleet / "verdict.xml").read_text()
    documents.write(fleet, fleet / "report", nodes=["node001"])
    assert typed(f"{command} 99", fleet, {}).stderr.startswith("usage: sh node001-check.sh"), "it runs from there"
    content = protocol.content(
        [protocol.judged(fleet)], "", documents.Task(fleet, fleet, None, None, False).source.site
    )
    assert "report/NODE-check.sh" in str(next(of for of in content.pages[0].sections if of.title == "Open items"))


def test_names_of_nodes_make_short_names_of_files() -> None:
    assert check_scripts.command("cn017", 2) == "sh cn017-check.sh 2"
    long = ("rack-42-node-0001.cluster.example.org", "rack-42-node-0002.cluster.example.org", "a" * 300, "a b;rm")
    assert len({check_scripts.file_name(name) for name in long}) == len(long)
    assert all(len(check_scripts.file_name(name)) < 60 and " " not in check_scripts.file_name(name) for name in long)


def test_what_one_node_cannot_check_says_why() -> None:
    header = {"kernel": "coherence"}
    link = verdicts.fabric().findings[0]
    wrong = Component("wrong-result", "wrong-result", {"cpus": "3"})
    for finding, head, why in (
        (link, header, "between nodes"),
        (verdicts.finding(), {}, "not in this campaign"),
        (verdicts.finding(), header, "no single value"),
        (verdicts.finding(measurement=""), header, "The system counted it"),
        (
            verdicts.finding(id="wrong-result", measurement="", component=wrong),
            header,
            "`kernels/build/load --op check --cpus 3 ",
        ),
        (verdicts.finding(), {"imported": {"format": "x"}}, "another tool"),
    ):
        assert why in check_scripts.Again(finding, head).why_not


def test_check_refuses_nodes_and_findings_that_are_not_there(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, what in (
        (("node999",), "no node node999 in this campaign; its nodes are node[000-008]"),
        ((HEALTHY,), "nothing to check"),
        (("node001", "9"), "no finding of it; choose from 1 ("),
        (("node001", "foo"), "no finding of it"),
    ):
        assert call("check", fleet, *words) == 2
        assert what in capsys.readouterr().err


#: Measurements of the real kernels here, with what a run of the preset `test` has.
REAL = ("coherence-cas", "chase-latency", "clock-alone", "wake-futex", "fault-rate", "bandwidth-machine")


@pytest.fixture
def measured(campaign: Callable[..., Path], two_cpus: None) -> Path:
    """This machine measured by the real kernels: slower than three peers that were made of its pairs, and with every
    other figure outside a contract's limit."""
    folder = campaign("here", "peer1", "peer2", "peer3")
    for run, number in ((run, int(run.name[3:])) for run in (folder / "nodes/here/job1").glob("run?")):
        (run / "coherence-cas.jsonl").unlink()
        for name in REAL if number == 1 else REAL[:1]:
            measurement = measurements()[name]
            words = f"{measurement.arguments} {measurement.presets['test']} --run {number}".split()
            command: list[str | Path] = [built() / measurement.kernel, *words, "--out", run / f"{name}.jsonl"]
            subprocess.run(command, check=True, capture_output=True, timeout=100)
            record = run / f"{name}.jsonl"
            record.write_text(with_header(record.read_text(), host="here"))
        pairs = (run / "coherence-cas.jsonl").read_text()
        for peer in ("peer1", "peer2", "peer3"):
            quick = with_header(re.sub(QUICKER, r"\1:6.5", pairs), host=peer)
            (folder / f"nodes/{peer}/job1/{run.name}/coherence-cas.jsonl").write_text(quick)
    (folder / "plan.tsv").write_text("".join(f"{name}\t{measurements()[name].kernel}\t\n" for name in REAL))
    judge_and_write(folder)
    limits = [
        {"measurement": row.measurement, "row": row.name, "reason": "contract", "at_most": row.median / 1000}
        for row in verdict_files.read(folder).nodes["here"].cells
    ]
    rules = folder / "limits.yaml"
    rules.write_text(json.dumps({"limits": limits}))
    judge_and_write(folder, acceptance=rules)
    return folder


@pytest.mark.machine
def test_real_kernels_measure_again_what_the_page_says(measured: Path, tmp_path: Path) -> None:
    """Copied out of the page and run here. How busy this machine is does not matter, as nothing is near its limit, be
    it that a wake-up took ten times as long when the limits were made; of a virtual one whose CPUs move the runs
    disagree, which is no answer and never the wrong one."""
    need("mutool")
    page, script = documents.write(measured, tmp_path / "out", nodes=["here"])
    (tmp_path / "stat").write_text(QUIET)
    content = script.read_text().replace("/proc/stat", str(tmp_path / "stat")).replace("percent=25", "percent=100")
    script.write_text(content)
    copied = extracted(["mutool", "draw", "-F", "txt"], page)
    commands = [line for line in copied if re.fullmatch(r"sh here-check\.sh \d+", line)]
    findings = verdict_files.read(measured).nodes["here"].counted
    assert {finding.measurement for finding in findings} == set(REAL)
    assert commands == [f"sh here-check.sh {number}" for number in range(1, len(findings) + 1)]
    kernels = {"NODEPRINT_KERNELS": str(built())}
    answers = []
    for command, finding in zip(commands, findings, strict=True):
        done = typed(command, script.parent, kernels)
        answers.append((done.returncode, done.stdout[:5]))
        assert answers[-1] in ((1, "FAIL:"), (3, "CANNO")), (finding.measurement, done.stdout, done.stderr)
    assert (1, "FAIL:") in answers
    script.write_text(re.sub(r"(?m)^( +end)=.*", r"\1=1e99", content))
    done = typed("sh here-check.sh", script.parent, kernels)
    assert done.returncode in (0, 3) and "FAIL" not in done.stdout
    assert any(line.startswith("PASS: finding ") for line in done.stdout.splitlines())
