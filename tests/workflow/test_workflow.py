"""The main job on this machine, through make: done, done again, killed in the middle, and given bad input."""

import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprint.data.format import records
from tests.support.made_records import record_files, record_texts
from tests.support.main_job import config, run
from tests.support.own_processes import is_ours
from tests.support.paced_kernel import PACED, paced  # noqa: F401 (a fixture)
from tests.support.real_parts import environment, need
from tests.support.schemas import valid_campaign

pytestmark = pytest.mark.machine


PASSES = 24


def job(house: Path, campaign: str, number: int = 1) -> Path:
    (node,) = (house / "results" / campaign / "nodes").iterdir()
    return node / f"job{number}"


@pytest.fixture(scope="session")
def done(house: Path) -> subprocess.CompletedProcess[str]:
    """The main job, once."""
    return run(house, config(house, "done"))


def test_the_main_job_ends_with_a_pdf(house: Path, done: subprocess.CompletedProcess[str]) -> None:
    need("pdftotext")
    assert done.returncode == 0, done.stderr
    pdf = house / "results/done/report/cluster.pdf"
    assert pdf.read_bytes().startswith(b"%PDF")
    assert "report: results/done/report/cluster.pdf" in done.stdout
    assert "NO PEERS" in done.stdout
    page = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True, check=True).stdout
    assert "NO PEERS" in page and "Measured and judged by nodeprint" in page


def test_a_call_shows_its_steps_and_leaves_snakemakes_words_in_the_log(
    house: Path, done: subprocess.CompletedProcess[str]
) -> None:
    steps = re.findall(r"^nodeprint: (\w+): (?:2 of 2 measurements; )?(?:\d+ min )?\d+ s$", done.stderr, re.MULTILINE)
    assert steps == ["measure", "gather", "judge", "report"]
    assert "Select jobs" not in done.stderr
    assert "node-run: run 1" not in done.stderr
    log = (house / "results/done/logs/run.log").read_text()
    assert "Select jobs to execute..." in log and "node-run: run 1 of 2: coherence-cas" in log
    assert "core-to-core" in done.stdout and " ns " in done.stdout


def test_every_pair_of_every_pass_is_there(house: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    files = record_files(job(house, "done"))
    assert [file.header["run"] for file in files] == [1, 2]
    for file in files:
        assert file.complete
        keys = list(zip(*(file.pairs[key] for key in ("a", "b", "home", "pass")), strict=True))
        assert len(keys) == len(set(keys))
        cpus = len(file.header["cpus"])
        assert len(keys) == cpus * (cpus - 1) // 2 * file.header["passes"]
    assert files[0].header["seed"] != files[1].header["seed"]


def test_every_file_is_as_its_schema_says(house: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert valid_campaign(house / "results/done") == ["fleet.json", "records", "status.json", "verdict.json"]


def test_a_second_call_waits_for_another_and_measures_nothing(
    house: Path, done: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    assert done.returncode == 0, done.stderr
    watched = [*(house / "results/done").rglob("run*.tar.?z"), *(house / "results/done").rglob("status.json")]
    before = {path: path.stat().st_mtime_ns for path in watched}
    assert before
    (house / "results/done/verdict.json").unlink()  # it is made again from what was measured
    lock = house / ".snakemake/nodeprint/results%2Fdone.lock"
    held = "echo held; read released"  # until the call waits, however slow this machine is
    command = ["flock", str(lock), "sh", "-c", held]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None and holder.stdout is not None and holder.stdout.readline() == "held\n"
    with (tmp_path / "stderr").open("w") as said:
        again = subprocess.Popen(
            [house / "workflow/run", "--config", "done.yaml"],
            cwd=house,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        deadline = time.monotonic() + 600
        while "another call is at work" not in (shown := (tmp_path / "stderr").read_text()):
            assert again.poll() is None and time.monotonic() < deadline, shown
            time.sleep(0.1)
        holder.communicate("now\n")
        printed = again.communicate(timeout=1500)[0]
    shown = (tmp_path / "stderr").read_text()
    assert again.returncode == 0, shown
    assert {path: path.stat().st_mtime_ns for path in watched} == before
    assert "report: results/done/report/cluster.pdf" in printed
    assert shown.count("all measurements of this node were there already") == 1
    assert "nodeprint: measure:" not in shown
    assert (house / "results/done/verdict.json").exists()


def test_what_a_site_adds_is_reported_without_measuring_or_judging(
    house: Path, done: subprocess.CompletedProcess[str]
) -> None:
    need("pdftotext")
    assert done.returncode == 0, done.stderr
    path, results = house / "done.yaml", house / "results/done"
    former = path.read_text()
    path.write_text(former + "site: {contract: clause 7 of ABC-42}\n")
    again = run(house, path)
    path.write_text(former)
    assert again.returncode == 0, again.stderr
    assert re.findall(r"^nodeprint: (\w+): (?:\d+ min )?\d+ s$", again.stderr, re.MULTILINE) == ["report"]
    words: list[str | Path] = ["pdftotext", results / "report/cluster.pdf", "-"]
    assert "clause 7 of ABC-42" in subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_a_blank_and_other_letters_in_the_path(house: Path, tmp_path: Path) -> None:
    """With an environment whose programs are called as pip and uv call them where a path has a blank."""
    copy = tmp_path / "zwei Wörter"
    shutil.copytree(house, copy, symlinks=True, ignore=shutil.ignore_patterns(".venv", "results", ".snakemake"))
    venv.create(copy / ".venv", symlinks=True)
    (site,) = (copy / ".venv/lib").glob("python*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for name, module in (("nodeprint", "nodeprint.cli"), ("snakemake", "snakemake.cli")):
        program = copy / ".venv/bin" / name
        begin = f"#!/bin/sh\n'''exec' '{copy}/.venv/bin/python' \"$0\" \"$@\"\n' '''\n"
        program.write_text(f"{begin}import sys\nfrom {module} import main\nsys.exit(main())\n")
        program.chmod(0o755)
    result = run(copy, config(copy, "words", "runs: 1\n"))
    assert result.returncode == 0, result.stderr
    assert "failed" not in result.stderr
    assert (copy / "results/words/report/cluster.pdf").read_bytes().startswith(b"%PDF")


def test_a_node_is_measured_again_as_a_new_job_and_a_verbose_call_shows_all(
    house: Path, done: subprocess.CompletedProcess[str]
) -> None:
    assert done.returncode == 0, done.stderr
    path = config(house, "twice")
    shutil.copytree(house / "results/done", house / "results/twice", symlinks=True)
    node = job(house, "twice").parent.name
    second = subprocess.run(
        [house / "workflow/run", "--config", path.name, "--again", node],
        cwd=house,
        env=environment() | {"VERBOSE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert second.returncode == 0, second.stderr
    assert len(record_files(job(house, "twice", 1))) == len(record_files(job(house, "twice", 2))) == 2
    assert "Building DAG of jobs..." in second.stderr
    assert "node-run: run 1 of 2: coherence-cas" in second.stderr


def processes(campaign: Path) -> dict[str, list[int]]:
    """Processes of these tests at work on a campaign, by what they are: run.py, snakemake, node-run, coherence."""
    processes: dict[str, list[int]] = {"run.py": [], "snakemake": [], "node-run": [], "coherence": []}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid() or not is_ours(int(entry.name)):
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            cwd = (entry / "cwd").readlink()
        except OSError:
            continue
        if not cwd.is_relative_to(campaign.parent.parent):  # another copy's, beside these tests
            continue
        if campaign.name not in " ".join(words) and not cwd.is_relative_to(campaign):
            continue
        for name, pids in processes.items():
            if any(Path(word).name == name for word in words[:3]):
                pids.append(int(entry.name))
    return processes


@pytest.fixture
def started(house: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Path, Path, subprocess.Popen[str]]]:
    """A call in the middle of a measurement: configuration, job folder, process."""
    campaign = f"killed-{request.node.callspec.id}".replace("+", "-")
    path = config(house, campaign, f"runs: 1\narguments: {{coherence-cas: --passes {PASSES} {PACED}}}\n")
    process = subprocess.Popen(
        [house / "workflow/run", "--config", path.name],
        cwd=house,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    folder = house / "results" / campaign
    deadline = time.monotonic() + 600
    while not any('"pair"' in path.read_text() for path in folder.glob("nodes/*/job1/run1/*.jsonl")):
        assert time.monotonic() < deadline, "nothing was measured in ten minutes"
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    yield path, job(house, campaign), process
    for pids in processes(folder).values():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    process.kill()
    process.communicate()


# node-run or the kernel alone: test_node_run
@pytest.mark.usefixtures("paced")
@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(("run.py",), marks=pytest.mark.long),
        pytest.param(("snakemake",), marks=pytest.mark.long),
        ("snakemake", "node-run", "coherence"),
    ],
    ids="+".join,
)
def test_killed_in_the_middle_then_continued(
    house: Path, started: tuple[Path, Path, subprocess.Popen[str]], victims: tuple[str, ...]
) -> None:
    path, folder, process = started
    (cut,) = folder.glob("run1/*.jsonl")
    alive = processes(folder.parent.parent.parent)
    for victim in victims:
        assert alive[victim], alive
        for pid in alive[victim]:
            os.kill(pid, signal.SIGKILL)
    process.wait(timeout=300)
    measured: list[float] = records.read(cut).pairs["latency_ns"].tolist() if "coherence" in victims else []
    result = run(house, path)
    assert result.returncode == 0, result.stdout + result.stderr
    (file,) = record_files(folder)
    assert file.complete
    keys = list(zip(*(file.pairs[key] for key in ("a", "b", "home", "pass")), strict=True))
    assert len(keys) == len(set(keys)) == len(file.header["cpus"]) * (len(file.header["cpus"]) - 1) // 2 * PASSES
    if "coherence" in victims:
        assert 0 < len(measured) < len(keys)
        assert list(file.pairs["latency_ns"][: len(measured)]) == measured
        assert len(file.headers) == 2, "the same file, continued once"


def test_a_configuration_error_ends_before_snakemake(house: Path) -> None:
    result = run(house, config(house, "wrong", "presets: quick\n"))
    assert result.returncode == 2
    assert "wrong.yaml: presets: unknown key" in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    assert not (house / "results/wrong").exists()


@pytest.mark.parametrize("text", ["", "# all as it is by default\n"])
def test_an_empty_configuration_is_refused_in_one_sentence(house: Path, text: str) -> None:
    path = house / "empty.yaml"
    path.write_text(text)
    result = run(house, path)
    assert result.returncode == 2
    assert result.stderr.startswith("nodeprint: empty.yaml: the file has no key; write at least one key")
    assert result.stderr.count("\n") == 1 and not result.stdout


def test_what_is_new_is_measured_and_other_nodes_ask_for_a_name(house: Path) -> None:
    text = "campaign: 2026-11-21\npreset: test\nruns: 1\nmeasure: [coherence-cas{more}]\n"
    path = house / "changed.yaml"
    path.write_text(text.format(more=""))
    assert run(house, path).returncode == 0
    folder = job(house, "2026-11-21")
    measured = record_texts(folder)

    path.write_text(text.format(more=", clock-alone"))
    second = run(house, path)
    assert second.returncode == 0, second.stderr
    changed = "changes in measure; new, and measured now: clock-alone on 1 node; complete measurements stay"
    assert changed in second.stderr
    now = record_texts(folder)
    assert "run1/clock-alone" in now and measured.items() <= now.items() and not (folder / "run1").exists()
    (node,) = json.loads((house / "results/2026-11-21/verdict.json").read_text())["nodes"].values()
    assert {row["measurement"] for row in node["cells"]} == {"clock-alone"} and node["classes"]

    path.write_text(path.read_text() + "launch: slurm\n")
    third = run(house, path)
    assert third.returncode == 2
    assert "launch: the campaign was begun with `launch: here`" in third.stderr
    call = f"make run CONFIG={path.name} CAMPAIGN=2026-11-21-2"
    assert third.stderr.endswith(f"; write another name at `campaign:`, as in `{call}`\n")
    assert third.stderr.count("\n") == 1


def test_a_kernels_refusal_of_its_arguments_ends_before_snakemake(house: Path) -> None:
    result = run(house, config(house, "refused", "arguments: {coherence-cas: --home nowhere}\n"))
    assert result.returncode == 2
    assert "refused.yaml: arguments.coherence-cas: --home takes first" in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    assert not (house / "results/refused").exists()


@pytest.fixture
def failing(house: Path) -> Iterator[Path]:
    """The house with a kernel that fails in the middle of a measurement of the campaign `fails`; the real kernel."""
    kernel = house / "kernels/build/coherence"
    real = kernel.rename(kernel.with_name("coherence.real"))
    fails = 'echo "coherence: the memory of node 0 is gone" >&2; exit 4'
    kernel.write_text(f'#!/bin/sh\ncase "$PWD $*" in */fails/*--out*) {fails} ;; esac\nexec {real} "$@"\n')
    kernel.chmod(0o755)
    yield real
    if real.exists():
        real.rename(kernel)


def test_a_kernel_that_fails_is_a_reason_not_a_crash_and_is_tried_again(house: Path, failing: Path) -> None:
    result = run(house, config(house, "fails"))
    assert "Traceback" not in result.stderr + result.stdout
    assert result.returncode == 1
    status = json.loads((job(house, "fails") / "status.json").read_text())
    assert status["outcome"] == "failed"
    assert "the memory of node 0 is gone" in status["measurements"][0]["message"]
    assert "NOT MEASURED" in result.stdout
    assert (house / "results/fails/report/cluster.pdf").exists()
    failing.rename(house / "kernels/build/coherence")
    again = run(house, house / "fails.yaml")
    assert again.returncode == 0, again.stdout + again.stderr
    assert all(file.complete for file in record_files(job(house, "fails")))


def test_a_results_folder_that_cannot_be_written(house: Path) -> None:
    (house / "blocked").write_text("a file, not a folder")
    result = run(house, config(house, "blocked-campaign", "results: blocked\n"))
    assert result.returncode == 2
    assert "blocked" in result.stderr
    assert "cannot be written" in result.stderr
    assert "Traceback" not in result.stderr
