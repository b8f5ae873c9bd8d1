"""node-run, the driver on the node: a job that is killed, crashed, refused or starved is continued, and never lies.

Most tests drive `fake_kernel.sh`, which crashes and refuses on request; the last ones drive the real kernel.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from nodeprint.machine import counters, other_load, preflight
from nodeprint.machine.node_configuration import read_fingerprint
from nodeprint.machine.tree import open_tree
from nodeprint.settings import config as configuration
from tests.support import smbios
from tests.support.combinations import in_turn, one_of
from tests.support.made_records import record_texts
from tests.support.own_processes import MARK
from tests.support.real_parts import ROOT, built, missing, need, small_file_system
from tests.support.schemas import valid, valid_campaign, valid_records
from tests.support.server_files import CPU, EDAC, healthy
from tests.support.waiting import wait_for

pytestmark = pytest.mark.machine

NODE_RUN = ROOT / "kernels" / "node-run"
FAKE = ROOT / "tests/support/fake_kernel.sh"
SHELLS = {"dash": ["dash"], "busybox": ["busybox", "sh"]}
HOST = os.uname().nodename.split(".")[0]
BOOT_ID = "/proc/sys/kernel/random/boot_id"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every program of /bin and /sbin but likwid, lscpu, hwloc, dmidecode: a bare node, soon surveyed."""
    folder = tmp_path_factory.mktemp("tools")
    for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if not program.name.startswith(("likwid", "lscpu", "lstopo", "hwloc", "dmidecode")):
                link = folder / program.name
                if not link.is_symlink():
                    link.symlink_to(program)
    return folder


class Campaign:
    """A campaign folder, and node-run on it."""

    def __init__(self, folder: Path, tools: Path, shell: str) -> None:
        self.folder, self.shell = folder, SHELLS[shell]
        self.tmp = folder.parent / "tmp"
        self.kernels = folder.parent / "kernels"
        for path in (folder, self.tmp, self.kernels):
            path.mkdir(parents=True, exist_ok=True)
        shutil.copy(FAKE, self.kernels / "fake")
        # node-run appends the administrator's folders to PATH; here they are the bare ones
        self.environment = {**MARK, "PATH": str(tools), "TMPDIR": str(self.tmp), "HOME": str(folder.parent)}
        self.job = folder / "nodes" / "n1" / "job1"
        self.plan("a\tfake\t--steps 3")

    def plan(self, *lines: str) -> None:
        (self.folder / "plan.tsv").write_text("".join(line + "\n" for line in lines))

    def command(self, *arguments: str) -> list[str]:
        own = {
            "--campaign": str(self.folder),
            "--node": "n1",
            "--job": "1",
            "--runs": "1",
            "--kernels": str(self.kernels),
        }
        given = dict(zip(arguments[::2], arguments[1::2], strict=True))
        return [*self.shell, str(NODE_RUN), *(word for pair in {**own, **given}.items() for word in pair)]

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        process = self.start(*arguments, **environment)
        _, said = process.communicate(timeout=600)
        return process.returncode, said

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads((self.job / "status.json").read_text(encoding="ascii"))
        valid(status, "status")
        return status

    def outcomes(self) -> dict[tuple[int, str], dict[str, Any]]:
        return {(m["run"], m["name"]): m for m in self.status()["measurements"]}

    def records(self, name: str = "a", run: int = 1) -> list[dict[str, Any]]:
        text = record_texts(self.job).get(f"run{run}/{name}", b"")
        return [json.loads(line) for line in text.splitlines()]

    def archive(self, run: int = 1) -> Path:
        """The archive of a run."""
        (path,) = self.job.glob(f"run{run}.tar.*")
        return path

    def pairs(self, name: str = "a", run: int = 1) -> list[int]:
        return [r["n"] for r in self.records(name, run) if r["record"] == "pair"]

    def kernel_pid(self) -> int:
        header = wait_for(
            lambda: (self.job / "run1" / "a.jsonl").exists() and self.pairs() and self.records(), "a record"
        )
        return int([r for r in header if r["record"] == "header"][-1]["pid"])

    def is_whole(self, steps: int, name: str = "a", run: int = 1) -> bool:
        """Every pair is there once, with a trailer, and nothing is left beside it."""
        records = self.records(name, run)
        files = {path.name for path in self.job.glob(f"run{run}/{name}.*")}
        return (
            self.pairs(name, run) == list(range(steps))
            and records[-1]["record"] == "trailer"
            and files == (set() if [*self.job.glob(f"run{run}.tar.*")] else {f"{name}.jsonl.gz"})
        )


@pytest.fixture(params=SHELLS)
def campaign(request: pytest.FixtureRequest, tmp_path: Path, tools: Path) -> Iterator[Campaign]:
    need(SHELLS[request.param][0])
    need("flock")
    yield Campaign(tmp_path / "c", tools, request.param)


@pytest.fixture
def one_shell(tmp_path: Path, tools: Path) -> Campaign:
    """For what does not hang on the shell."""
    need("flock")
    return Campaign(tmp_path / "c", tools, "dash" if shutil.which("dash") else "busybox")


@pytest.mark.parametrize(("number", "kept"), [("4711", "4711"), ("", ""), ('4711", "x": "', "")])
def test_the_outcome_has_slurms_number_of_the_job(one_shell: Campaign, number: str, kept: str) -> None:
    one_shell.plan("a\tfake")
    code, said = one_shell.run("--runs", "1", SLURM_JOB_ID=number)
    assert code == 0, said
    assert one_shell.status().get("slurm_job", "") == kept


def test_a_job_is_measured_once_and_described(campaign: Campaign) -> None:
    need("zstd")
    campaign.plan("# what to measure", "a\tfake\t--steps 3", "", "b\tfake")
    code, said = campaign.run("--runs", "2")
    assert code == 0, said
    status = campaign.status()
    assert status["outcome"] == "complete"
    assert (status["schema"], status["node"], status["host"], status["job"], status["runs"]) == (1, "n1", HOST, 1, 2)
    assert status["cpus_allowed"] == len(os.sched_getaffinity(0))
    assert set(campaign.outcomes()) == {(1, "a"), (1, "b"), (2, "a"), (2, "b")}
    assert all(
        m["outcome"] == "done" and m["exit_code"] == 0 and m["pinned_by"] == "native" for m in status["measurements"]
    )
    assert campaign.is_whole(3, "a", 1) and campaign.is_whole(3, "b", 2)
    seeds = {campaign.records(name, run)[0]["seed"] for name in "ab" for run in (1, 2)}
    assert len(seeds) == 4, "each measurement of each run draws its own lines and order"
    assert not list(campaign.tmp.iterdir()), "nothing is left in the temporary folder"

    files = {path.name for path in campaign.job.iterdir()}
    made = {path for path in files if path.startswith("run")}
    assert made == {"run1.tar.zst", "run2.tar.zst"}, "an archive a run"
    before = {campaign.job / name: (campaign.job / name).read_bytes() for name in (*made, "survey.tar.gz")}
    assert campaign.run("--runs", "2")[0] == 0
    assert {path: path.read_bytes() for path in before} == before, "nothing is measured or surveyed twice"
    assert campaign.status()["measurements"] == status["measurements"]


def test_a_measurement_has_as_many_runs_as_the_plan_says(campaign: Campaign) -> None:
    """Spread evenly over the job; a row that does not say has those of --runs."""
    campaign.plan("a\tfake\t--steps 2\t6", "b\tfake\t--steps 3", "c\tfake\t--steps 2\t3")
    code, said = campaign.run("--runs", "2")
    assert code == 0, said
    status = campaign.status()
    assert status["outcome"] == "complete"
    made = [(m["run"], m["name"]) for m in status["measurements"]]
    rows = configuration.read_plan((campaign.folder / "plan.tsv").read_text(), 2)
    assert made == configuration.steps(rows)
    assert "".join(name for _, name in made) == "abcaacabaca"
    assert all(campaign.records(name, run)[0]["run"] == run for run, name in made)
    assert "run 6 of 6: a" in said and "run 2 of 2: b" in said
    before = record_texts(campaign.job)
    assert "run3/b" not in before
    again, _ = campaign.run("--runs", "3")
    assert again == 0 and set(record_texts(campaign.job)) == {*before, "run3/b"}
    assert before.items() <= record_texts(campaign.job).items(), "run 3 is packed anew, with what it had"
    assert len(campaign.status()["measurements"]) == 12 and not [*campaign.job.glob("run*/")]


@pytest.mark.parametrize(("victims", "after"), in_turn(["node-run", "kernel", "both"], [0.0, 0.35]))
def test_killed_in_the_middle_is_continued(campaign: Campaign, victims: str, after: float) -> None:
    # an orphan must run until the next call begins, on a busy machine too
    campaign.plan(f"a\tfake\t--steps 12 --pause {0.5 if victims == 'node-run' else 0.1}")
    process = campaign.start()
    kernel = campaign.kernel_pid()
    time.sleep(after)
    if victims in ("node-run", "both"):
        process.kill()
    if victims in ("kernel", "both"):
        os.kill(kernel, signal.SIGKILL)
    process.wait(timeout=300)
    assert process.stderr is not None
    process.stderr.close()  # an orphan finds nobody to talk to, and measures on
    assert not (campaign.job / "run1" / "a.jsonl.gz").exists() and not [*campaign.job.glob("run1.*")]
    if victims == "kernel":
        assert campaign.status()["outcome"] == "failed"
        assert "signal 9" in campaign.outcomes()[1, "a"]["message"]
    else:
        assert not (campaign.job / "status.json").exists()

    code, said = campaign.run()
    assert code == 0, said
    assert campaign.is_whole(12)
    assert campaign.status()["outcome"] == "complete"
    if victims == "node-run":
        assert f"node-run {process.pid} (node n1, since 20" in said and "its kernel still runs" in said
        assert len([r for r in campaign.records() if r["record"] == "header"]) == 1, "the orphan ended what it began"


@pytest.mark.parametrize("times", [1, 2])
def test_records_without_a_trailer_are_measured_again_whatever_the_kernel_ended_with(
    campaign: Campaign, times: int
) -> None:
    campaign.plan(f"a\tfake\t--garbage {times}")
    code, _ = campaign.run()
    assert code == 0
    (measurement,) = campaign.status()["measurements"]
    assert measurement["outcome"] == ("done" if times == 1 else "failed")
    assert times == 1 or "left records without a trailer" in measurement["message"]
    assert (campaign.job / "run1/a.jsonl.bad").read_text() == "not a record\n"


def test_a_kernel_that_is_deaf_to_sigterm_is_killed_and_named(campaign: Campaign) -> None:
    campaign.plan("a\tfake\t--deaf --steps 100000 --pause 0.1")
    process = campaign.start()
    records_of = campaign.job / "run1/a.jsonl"
    wait_for(lambda: records_of.exists() and records_of.stat().st_size, "records")
    process.send_signal(signal.SIGTERM)
    _, output = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM
    assert "node-run: fake does not stop on SIGTERM: killed" in output
    before = records_of.read_bytes()
    time.sleep(0.5)
    assert records_of.read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_the_kernel_first(campaign: Campaign, number: signal.Signals) -> None:
    campaign.plan("a\tfake\t--steps 40 --pause 0.1")
    process = campaign.start()
    kernel = campaign.kernel_pid()
    process.send_signal(number)
    _, said = process.communicate(timeout=300)
    assert process.returncode == -number
    assert not Path(f"/proc/{kernel}").exists(), "node-run waited for its kernel"
    assert "fake: leaving" in said and "run again to continue" in said
    assert "fake: leaving" in (campaign.job / "node-run.log").read_text()
    assert not (campaign.job / "status.json").exists()
    assert not list(campaign.tmp.iterdir())
    done = len(campaign.pairs())
    campaign.plan(f"a\tfake\t--steps {done + 2}")
    assert campaign.run()[0] == 0
    assert campaign.is_whole(done + 2)


@pytest.mark.parametrize("killed", ["before the archive", "before its name", "after it"])
def test_killed_between_two_steps_of_packing(campaign: Campaign, killed: str) -> None:
    campaign.plan("a\tfake\t--steps 3", "b\tfake\t--steps 2")
    assert campaign.run()[0] == 0
    before, archive, folder = record_texts(campaign.job), campaign.archive(), campaign.job / "run1"
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(before[f"run1/{name}"]))
    (folder / "a.jsonl").write_bytes(before["run1/a"])
    (folder / "a.jsonl.gz.tmp").write_bytes(b"half")
    if killed == "before its name":
        archive.with_name(archive.name + ".tmp").write_bytes(b"half")
    if killed != "after it":
        archive.unlink()
    assert record_texts(campaign.job) == before, "whatever is there is read once"
    assert campaign.run()[0] == 0
    assert record_texts(campaign.job) == before and campaign.status()["outcome"] == "complete"
    assert [path.name for path in campaign.job.glob("run*")] == [archive.name]


def test_killed_while_it_packs_again_and_again(one_shell: Campaign) -> None:
    """At whatever moment: all that was measured is there once, and what it was."""
    one_shell.plan("a\tfake\t--steps 2\t3", "b\tfake\t--steps 1")
    seen: dict[str, bytes] = {}
    for turn in range(60):
        process = one_shell.start()
        time.sleep(0.02 * turn)
        process.kill()
        process.communicate()
        whole = {name: text for name, text in record_texts(one_shell.job).items() if b'"trailer"' in text}
        assert seen.items() <= whole.items()
        seen = whole
        if (one_shell.job / "status.json").exists():
            break
    assert one_shell.run()[0] == 0
    assert seen.items() <= record_texts(one_shell.job).items()
    assert sorted(path.name[:4] for path in one_shell.job.glob("run*")) == ["run1", "run2", "run3"]


@pytest.mark.parametrize(("missing", "suffix"), [(("zstd",), "xz"), (("zstd", "xz"), "gz")])
def test_a_run_is_packed_by_what_there_is(campaign: Campaign, missing: tuple[str, ...], suffix: str) -> None:
    need("zstd", *(["xz"] if suffix == "xz" else []))
    assert campaign.run("--runs", "2")[0] == 0
    before = record_texts(campaign.job)
    bare = campaign.tmp.parent / "bare"
    bare.mkdir()
    for program in Path(campaign.environment["PATH"]).iterdir():
        if not program.name.startswith(missing):
            (bare / program.name).symlink_to(program)
    campaign.environment["PATH"] = str(bare)
    if campaign.shell[0] == "busybox":
        suffix = "gz"  # its own xz only unpacks
    said = campaign.run("--runs", "2")[1]
    assert record_texts(campaign.job) == before and "run1.tar.zst: zstd is not installed" in said
    shutil.rmtree(campaign.job)
    assert campaign.run("--runs", "2")[0] == 0
    assert campaign.archive(2).name == f"run2.tar.{suffix}"
    assert record_texts(campaign.job).keys() == before.keys() and campaign.status()["outcome"] == "complete"


def test_a_held_lock_is_waited_for_and_its_holder_named(campaign: Campaign) -> None:
    campaign.plan("a\tfake\t--steps 8 --pause 0.2")
    first = campaign.start()
    campaign.kernel_pid()
    second = campaign.start("--node", "n2")
    code = second.wait(timeout=300)
    assert first.wait(timeout=300) == 0 and code == 0
    assert second.stderr is not None and first.stderr is not None
    said = second.stderr.read()
    assert f"waiting: {HOST} is measured by process {first.pid} (node n1) since 20" in said
    ended = campaign.status()["ended"]
    begun = json.loads((campaign.folder / "nodes/n2/job1/status.json").read_text())["ended"]
    assert begun > ended, "never two at once"
    first.stderr.close()
    second.stderr.close()


def test_a_dead_owner_is_taken_over(campaign: Campaign) -> None:
    (campaign.folder / "locks").mkdir()
    (campaign.folder / "locks" / f"{HOST}.lock").write_text(f"{HOST}\t4194300\tn1\t2020-01-01T00:00:00Z\n")
    code, said = campaign.run()
    assert code == 0 and "waiting" not in said
    assert str(4194300) not in (campaign.folder / "locks" / f"{HOST}.lock").read_text()


def test_a_kernel_that_crashes_does_not_stop_the_others(campaign: Campaign) -> None:
    campaign.plan(
        "a\tfake\t--crash SEGV", "b\tfake\t--refuse 3 --words cannot\\040be\\040bound", "c\tfake", "d\tfake\t--refuse 7"
    )
    assert campaign.run()[0] == 0
    outcomes = campaign.outcomes()
    assert [outcomes[1, name]["outcome"] for name in "abcd"] == ["failed", "refused", "done", "failed"]
    assert not {"run1/b", "run1/d"} & record_texts(campaign.job).keys(), "an empty file is no damaged record"
    assert [outcomes[1, name]["exit_code"] for name in "abcd"] == [139, 3, 0, 7]
    assert "signal 11" in outcomes[1, "a"]["message"]
    assert outcomes[1, "b"]["message"] == "cannot be bound"
    assert campaign.status()["outcome"] == "partial"
    campaign.plan("a\tfake", "b\tfake", "c\tfake", "d\tfake")
    assert campaign.run()[0] == 0
    assert campaign.status()["outcome"] == "complete", "failed outcomes are tried again"
    assert all(m["message"] == "" for m in campaign.status()["measurements"])


@pytest.mark.parametrize("garbage", [b"\0" * 4096, b"what is this\n", b'{"record": "header"}\n\xff\xfe\n'])
def test_a_malformed_file_is_set_aside_and_measured_again(campaign: Campaign, garbage: bytes) -> None:
    file = campaign.job / "run1" / "a.jsonl"
    file.parent.mkdir(parents=True)
    (file.parent / "a.jsonl.bad").write_bytes(b"an older one")
    file.write_bytes(garbage)
    code, said = campaign.run()
    assert code == 0 and "a.jsonl.bad2" in said
    assert (file.parent / "a.jsonl.bad").read_bytes() == b"an older one"
    assert (file.parent / "a.jsonl.bad2").read_bytes() == garbage
    assert campaign.pairs() == [0, 1, 2]
    assert campaign.status()["outcome"] == "complete"


def test_a_cut_compressed_file_is_set_aside(campaign: Campaign) -> None:
    campaign.plan("a\tfake", "b\tfake\t--refuse 3")
    assert campaign.run()[0] == 0
    packed = campaign.job / "run1" / "a.jsonl.gz"
    packed.write_bytes(packed.read_bytes()[:-9])
    code, said = campaign.run()
    assert code == 0 and "a.jsonl.gz.bad" in said
    assert campaign.pairs() == [0, 1, 2]


def test_an_archive_that_is_gone_is_measured_again(campaign: Campaign) -> None:
    assert campaign.run("--runs", "2")[0] == 0
    campaign.archive().unlink()
    assert campaign.run("--runs", "2")[0] == 0
    assert campaign.is_whole(3, "a", 1) and campaign.is_whole(3, "a", 2)


@pytest.mark.parametrize("damage", one_of(["cut", "garbled", "bomb", "no archive"], 2))
def test_what_a_damaged_archive_lacks_is_measured_again(campaign: Campaign, damage: str) -> None:
    need("zstd")
    campaign.plan("a\tfake\t--steps 300", "b\tfake\t--steps 300")
    assert campaign.run()[0] == 0
    archive, before = campaign.archive(), record_texts(campaign.job)
    content = archive.read_bytes()
    tar = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    broken = {
        "cut": gzip.compress(tar[: tar.index(b"run1/b.jsonl") + 2000]),
        "garbled": gzip.compress(tar.replace(b"run1/b.jsonl", b"run1/\0\0\0\0\0\0\0")),
        "no archive": b"\0" * 3000,
        "bomb": gzip.compress(b"\0" * (300 << 20), 1),
    }[damage]
    archive.unlink()
    (campaign.job / "run1.tar.gz").write_bytes(broken)
    code, said = campaign.run()
    assert code == 0 and "run1.tar.gz is malformed: kept as run1.tar.gz.bad, what it lacks is measured again" in said
    assert campaign.is_whole(300, "a") and campaign.is_whole(300, "b")
    assert campaign.status()["outcome"] == "complete"
    now = record_texts(campaign.job)
    # the headers have the process numbers of their kernels
    assert (now["run1/a"] == before["run1/a"]) == (damage in ("cut", "garbled")) and now["run1/b"] != before["run1/b"]


def test_a_good_file_is_not_blamed_for_bad_arguments(campaign: Campaign) -> None:
    campaign.plan("a\tfake\t--steps 2 --crash KILL")
    assert campaign.run()[0] == 0
    file = campaign.job / "run1" / "a.jsonl"
    before = file.read_bytes()
    assert before
    campaign.plan("a\tfake\t--steps 2 --nonsense")
    code, said = campaign.run()
    assert code == 0 and "malformed" not in said and "a.jsonl is restored" in said
    assert campaign.outcomes()[1, "a"]["outcome"] == "refused"
    assert "unknown argument --nonsense" in campaign.outcomes()[1, "a"]["message"]
    assert file.read_bytes() == before
    assert not list(file.parent.glob("*.bad*"))
    file.unlink()
    assert "malformed" not in campaign.run()[1], "there is no file to blame"


def test_hostile_words_stay_words(campaign: Campaign) -> None:
    campaign.plan('a\tfake\t--refuse 3 --words "}\\\\\\047$(touch\\040pwned)`\\011\\001\\033[31m\\0377{"')
    assert campaign.run()[0] == 0
    message = campaign.outcomes()[1, "a"]["message"]
    assert message == '"}\\\'$(touch pwned)`   [31m?{"'
    assert not list(campaign.folder.parent.rglob("pwned"))
    (campaign.job / "outcomes.tsv").write_bytes(b'1\ta\tdone\t0\t"\\\xff\tx\n\0\0\n1\tb')
    assert campaign.run()[0] == 0
    assert campaign.outcomes()[1, "a"]["outcome"] == "refused"


@pytest.mark.parametrize("how, kept", [("no", ""), ("hash", "sha256:c98284978ea3"), ("yes", "S17 x")])
def test_a_survey_alone_with_serial_numbers_as_the_site_wants_them(campaign: Campaign, how: str, kept: str) -> None:
    (campaign.folder / "plan.tsv").unlink()
    programs = campaign.folder.parent / "programs"
    programs.mkdir()
    module = "Memory Device\\n\\tSize: 64 GB\\n\\tLocator: A1\\n\\tSerial Number: S17 x\\n"
    (programs / "dmidecode").write_text(f"#!/bin/sh\nprintf '{module}'\n")
    (programs / "lstopo-no-graphics").write_text(
        '#!/bin/sh\necho \'<object type="OSDev">\'\necho \' <info name="Address" value="aa:bb:cc:dd:ee:ff"/>\'\n'
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    done = subprocess.run(
        [*campaign.command("--serials", how), "--survey-only"],
        capture_output=True,
        text=True,
        timeout=600,
        env=campaign.environment | {"PATH": f"{programs}:{campaign.environment['PATH']}"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in campaign.job.iterdir()} == {"survey.tar.gz", "node-run.log"}
    survey = open_tree(campaign.job / "survey.tar.gz")
    assert f"\tSerial Number: {kept}\n" in (survey.read_text("nodeprint/dmidecode.txt") or "")
    assert ("aa:bb" in (survey.read_text("nodeprint/lstopo.xml") or "")) == (how == "yes")
    assert read_fingerprint(survey).get("serials", "") == (f"A1 {kept}" if kept else "")


def test_where_dmidecode_is_missing_the_survey_has_the_tables_without_serial_numbers(campaign: Campaign) -> None:
    (campaign.folder / "plan.tsv").unlink()
    folder = campaign.folder.parent / "sys/firmware/dmi/tables"
    folder.mkdir(parents=True)
    (folder / "DMI").write_bytes(smbios.tables([smbios.Slot("P0 CHANNEL A", "BANK 0", serial="S17 x")]))
    done = subprocess.run(
        [*campaign.command(), "--survey-only"],
        capture_output=True,
        text=True,
        timeout=600,
        env=campaign.environment | {"NODEPRINT_SYSFS": str(folder.parents[2])},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    survey = open_tree(campaign.job / "survey.tar.gz")
    assert "\tLocator: P0 CHANNEL A\n" in (survey.read_text("nodeprint/dmidecode.txt") or "")
    assert "S17" not in (survey.read_text("nodeprint/dmidecode.txt") or "")
    assert read_fingerprint(survey)["dimms"] == "1 x 64 GB DDR5"


def in_another_boot(campaign: Campaign) -> subprocess.CompletedProcess[str]:
    """node-run as after a reboot: the kernel gives another boot id."""
    need("unshare", root="mount another boot id, in a namespace of its own")
    boot = campaign.folder.parent / "boot_id"
    boot.write_text("b007b007-0000-4000-8000-000000000001\n")
    inside = ["unshare", "--mount", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"', str(boot)]
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode != 0:
        missing("no namespace of mounts here")
    return subprocess.run(
        [*inside, *campaign.command()],
        env=campaign.environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def surveyed_boot(campaign: Campaign) -> str:
    return (open_tree(campaign.job / "survey.tar.gz").read_text(BOOT_ID.lstrip("/")) or "").strip()


@pytest.mark.parametrize("begun", [False, True], ids=["between two measurements", "within one"])
def test_what_another_boot_has_begun_is_not_continued(campaign: Campaign, begun: bool) -> None:
    campaign.plan("a\tfake\t--steps 3", "b\tfake\t--steps 3 --crash SEGV")
    assert campaign.run()[0] == 0
    if not begun:
        (campaign.job / "run1/b.jsonl").unlink()
    before = {path: path.read_bytes() for path in campaign.job.rglob("run1/*")}
    survey = surveyed_boot(campaign)
    assert not campaign.status()["rebooted"]
    done = in_another_boot(campaign)
    assert done.returncode == 0, done.stderr
    assert campaign.status()["rebooted"] and campaign.status()["outcome"] == "partial"
    rest = campaign.outcomes()[1, "b"]
    assert rest["outcome"] == "refused" and rest["exit_code"] == -1
    assert rest["message"].startswith("the node was booted again since this job was begun; what is left is")
    assert {path: path.read_bytes() for path in campaign.job.rglob("run1/*")} == before
    assert surveyed_boot(campaign) == survey, "the survey is that of the records"


def test_a_job_of_another_boot_without_records_is_surveyed_anew(campaign: Campaign) -> None:
    campaign.plan("a\tfake\t--refuse 3")
    assert campaign.run()[0] == 0
    (campaign.job / "run1/a.jsonl").unlink(missing_ok=True)
    campaign.plan("a\tfake\t--steps 3")
    done = in_another_boot(campaign)
    assert done.returncode == 0, done.stderr
    assert campaign.is_whole(3) and not campaign.status()["rebooted"]
    assert surveyed_boot(campaign) == "b007b007-0000-4000-8000-000000000001"


@pytest.mark.parametrize("host", ["../../evil", "a b$(touch pwned)\"'", "-rf", "\x01\xff", "n1.example.org"])
def test_hostile_host_names(one_shell: Campaign, host: str) -> None:
    need("unshare", root="name a host, in a namespace of its own")
    rename = ["unshare", "--uts", "sh", "-c", 'printf %s "$0" >/proc/sys/kernel/hostname && exec "$@"', host]
    probe = subprocess.run([*rename, "true"], check=False, capture_output=True)
    if probe.returncode != 0:
        missing(f"no namespace of host names here: {probe.stderr.decode()}")
    done = subprocess.run(
        [*rename, *one_shell.command()], check=False, capture_output=True, env=one_shell.environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert one_shell.status()["outcome"] == "complete"
    locks = list((one_shell.folder / "locks").iterdir())
    assert len(locks) == 1 and locks[0].is_file()
    assert set(os.listdir(one_shell.folder)) == {"locks", "nodes", "plan.tsv"}  # noqa: PTH208
    assert not list(one_shell.folder.parent.rglob("pwned"))
    if host.startswith("n1."):
        assert one_shell.status()["host"] == "n1"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--node", "../x"], "--node '../x'"),
        (["--node", "-x"], "--node '-x'"),
        (["--node", ""], "--node ''"),
        (["--node", "a\nb"], "--node 'a b'"),
        (["--job", "0"], "--job must be at least 1"),
        (["--job", "one"], "--job takes a whole number"),
        (["--job", "08"], "--job takes a whole number"),
        (["--job", "99999999999999999999"], "--job takes a whole number"),
        (["--runs", "-1"], "--runs takes a whole number"),
        (["--expect-cpus", "1.5"], "--expect-cpus takes a whole number"),
        (["--serials", "maybe"], "--serials is no, hash or yes, not 'maybe'"),
        (["--campaign", "/dev/null/nowhere"], "no such directory"),
        (["--nonsense", "1"], "unknown argument '--nonsense'"),
    ],
)
def test_bad_arguments_get_one_sentence(campaign: Campaign, arguments: list[str], complaint: str) -> None:
    code, said = campaign.run(*arguments)
    assert code == 2
    assert complaint in said
    assert said.count("\n") == 1
    assert not (campaign.folder / "nodes").exists(), "bad arguments leave nothing behind"


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        ("", "line 0: there is no measurement in it"),
        ("# nothing\n", "there is no measurement in it"),
        ("a fake\n", "line 1: two to four columns"),
        ("a\tfake\nb/../c\tfake\n", "line 2: names of measurements"),
        ("a\t../fake\n", "line 1: names of measurements"),
        ("-a\tfake\n", "line 1: names of measurements"),
        ("a\tfake\n\na\tfake\t--steps 4\n", "line 3: this measurement appears twice"),
        ("a\tfa`touch pwned`ke\n", "line 1: names of measurements"),
    ],
)
def test_a_bad_plan_gets_one_sentence_with_its_line(campaign: Campaign, plan: str, complaint: str) -> None:
    (campaign.folder / "plan.tsv").write_text(plan)
    code, said = campaign.run()
    assert code == 2
    assert complaint in said and "plan.tsv" in said
    assert said.count("\n") == 1


def test_a_missing_plan(campaign: Campaign) -> None:
    (campaign.folder / "plan.tsv").unlink()
    code, said = campaign.run()
    assert code == 2 and "plan.tsv: cannot be read" in said and said.count("\n") == 1


def test_a_plan_from_elsewhere(campaign: Campaign) -> None:
    """Carriage returns, and a last line without its newline."""
    (campaign.folder / "plan.tsv").write_bytes(b"a\tfake\t--steps 1\r\n\r\nb\tfake\t--steps 2")
    assert campaign.run()[0] == 0
    assert campaign.is_whole(1, "a") and campaign.is_whole(2, "b")


def test_an_unknown_kernel_is_an_outcome(campaign: Campaign) -> None:
    campaign.plan("a\tfake", "b\tcoherance")
    assert campaign.run()[0] == 0
    assert campaign.outcomes()[1, "a"]["outcome"] == "done"
    failed = campaign.outcomes()[1, "b"]
    assert failed["outcome"] == "failed" and "no kernel coherance in" in failed["message"]  # codespell:ignore


def test_a_static_kernel_stands_in_for_one_that_does_not_start(campaign: Campaign) -> None:
    (campaign.kernels / "static").mkdir()
    shutil.copy(FAKE, campaign.kernels / "static" / "fake")
    (campaign.kernels / "fake").write_bytes(b"\x7fELF of another machine")
    code, said = campaign.run()
    assert code == 0, said
    assert campaign.is_whole(3)
    shutil.rmtree(campaign.kernels / "static")
    campaign.archive().unlink()
    assert campaign.run()[0] == 0
    assert "kernel fake does not start" in campaign.outcomes()[1, "a"]["message"]


def test_another_host_is_not_measured_under_this_name(campaign: Campaign) -> None:
    """A job that was started elsewhere would fill the records of its node."""
    host = os.uname().nodename.partition(".")[0]
    assert campaign.run("--host", f"{host}x.site.org")[0] == 0
    status = campaign.status()
    assert status["outcome"] == "failed" and not list(campaign.folder.glob("nodes/*/job1/run*"))
    assert {m["outcome"] for m in status["measurements"]} == {"refused"}
    assert f"this is host {host}, and " in status["measurements"][0]["message"]
    assert campaign.run("--host", f"{host}.site.org")[0] == 0
    assert campaign.status()["outcome"] == "complete"


def proc_of(folder: Path, *steps: str) -> str:
    """The machine's /proc of which no process is there but such ones of `steps` as Slurm has for a job's step; clusters
    of other tests have theirs in the real one."""
    folder.mkdir()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            (folder / entry.name).symlink_to(entry)
    for pid, step in enumerate(steps, 1):
        (folder / str(pid)).mkdir()
        (folder / str(pid) / "cmdline").write_text(f"slurmstepd: [{step}]\0")
    return str(folder)


def test_a_job_beside_ours_is_seen_and_said_with_what_it_took(campaign: Campaign, tmp_path: Path) -> None:
    groups = tmp_path / "sys/fs/cgroup/system.slice"
    for place, pid in (
        ("slurmstepd.scope/job_78/step_0/user", "4711"),
        ("slurmstepd.scope/job_79", ""),
        ("cn9_slurmstepd.scope/job_80", "4712"),
        ("slurmstepd.scope/job_5", "4713"),
    ):
        (groups / place).mkdir(parents=True)
        (groups / place / "cgroup.procs").write_text(pid)
    proc = proc_of(tmp_path / "proc", "77.batch", "5.batch")
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:  # what the jobs take
        code, said = campaign.run(
            NODEPRINT_SYSFS=f"{tmp_path}/sys", NODEPRINT_PROCFS=proc, SLURM_JOB_ID="5", SLURMD_NODENAME="n1"
        )
        busy.kill()
    assert code == 0 and campaign.status()["outcome"] == "complete", said
    assert said.count("other Slurm jobs run on this node: 77, 78\n") == said.count("Slurm job") == 1
    load = other_load.kept(campaign.job.parent)
    assert load is not None and load.is_busy and load.jobs == ("77", "78"), "79 has ended, 80 is another node's"
    assert re.fullmatch(
        r"Slurm jobs 77, 78 ran on the node, and other programs took \d+\.\d CPUs' time", load.text("took")
    )


def test_where_no_job_is_beside_ours_nothing_is_said(campaign: Campaign, tmp_path: Path) -> None:
    code, said = campaign.run(NODEPRINT_SYSFS=f"{tmp_path}/none", NODEPRINT_PROCFS=proc_of(tmp_path / "proc"))
    assert code == 0 and "Slurm jobs run on this node" not in said
    assert not (campaign.job / "other_load.json").exists()


def test_fewer_cpus_than_expected_is_refused(campaign: Campaign) -> None:
    allowed = len(os.sched_getaffinity(0))
    assert campaign.run("--expect-cpus", str(allowed + 1))[0] == 0
    outcome = campaign.outcomes()[1, "a"]
    assert outcome["outcome"] == "refused"
    assert f"only {allowed} of {allowed + 1} CPUs are allowed" in outcome["message"]
    assert (campaign.status()["cpus_allowed"], campaign.status()["cpus_expected"]) == (allowed, allowed + 1)
    assert not (campaign.job / "run1").exists(), "nothing is measured on a wrong mask"
    assert campaign.run("--expect-cpus", str(allowed))[0] == 0
    assert campaign.status()["outcome"] == "complete"


def test_cpus_that_are_offline_are_not_counted(campaign: Campaign, tmp_path: Path) -> None:
    """The mask of a process has them still: of two CPUs of which one is offline one can be measured."""
    folder = tmp_path / "sys/devices/system/cpu"
    folder.mkdir(parents=True)
    (folder / "online").write_text(f"{min(os.sched_getaffinity(0))},10000-10001\n")
    assert campaign.run("--expect-cpus", "2", NODEPRINT_SYSFS=f"{tmp_path}/sys")[0] == 0
    assert "only 1 of 2 CPUs are allowed" in campaign.outcomes()[1, "a"]["message"]


def test_setup_is_sourced_and_the_environment_is_clean(campaign: Campaign) -> None:
    setup = campaign.folder / "site setup.sh"
    setup.write_text("module() { :; }\nmodule load x\nexport SITE_LOADED='a\nb'\"'\"'c'\nexport OMP_STACKSIZE=1\n")
    campaign.plan("a\tfake\t--environment")
    code, said = campaign.run(
        "--setup", str(setup), HWLOC_XMLFILE="/nonexistent", MALLOC_ARENA_MAX="1", LD_BIND_NOW="1"
    )
    assert code == 0, said
    assert campaign.records()[0]["seen"] == "1", "SITE_LOADED alone"
    for name in ("HWLOC_XMLFILE", "MALLOC_ARENA_MAX", "OMP_STACKSIZE", "LD_BIND_NOW"):
        assert f"environment: {name} removed" in said


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo no such module >&2\nfalse\n", "exit code 1: no such module"),
        ("exit 5\n", "exit code 5"),
        ("exit 0\n", "exit code 0"),
        ("if then (\n", "exit code 2"),
        (None, "exit code"),
    ],
)
def test_a_setup_that_fails_is_an_outcome(campaign: Campaign, script: str | None, reason: str) -> None:
    setup = campaign.folder / "setup.sh"
    if script is not None:
        setup.write_text(script)
    assert campaign.run("--setup", str(setup))[0] == 0
    outcome = campaign.outcomes()[1, "a"]
    assert outcome["outcome"] == "failed"
    assert f"setup {setup} failed with {reason}" in outcome["message"]
    assert not (campaign.job / "run1").exists()


def test_the_survey_reads_like_a_root(campaign: Campaign, tmp_path: Path) -> None:
    assert campaign.run()[0] == 0
    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["tar", "-xzf", campaign.job / "survey.tar.gz", "-C", root], check=True)
    # addresses and identifiers in the command line are replaced
    assert (root / "proc/cmdline").read_bytes().split()[:1] == Path("/proc/cmdline").read_bytes().split()[:1]
    for path in ("proc/version", "sys/devices/system/cpu/online", "sys/devices/system/node/online"):
        if Path("/", path).exists():
            assert (root / path).read_bytes() == Path("/", path).read_bytes(), path
    assert (root / "nodeprint" / "hostname").read_text().strip() == HOST
    topology = "sys/devices/system/cpu/cpu0/topology/physical_package_id"
    if Path("/", topology).exists():
        assert (root / topology).stat().st_size < 16, "no padding"
    versions = dict(line.split("\t", 1) for line in (root / "nodeprint" / "versions.txt").read_text().splitlines())
    assert versions["linux"] == os.uname().release
    assert not (root / "nodeprint" / "lscpu.txt").exists(), "absent, not empty, where lscpu is not installed"


def test_the_survey_of_a_made_up_machine(campaign: Campaign, tmp_path: Path) -> None:
    """Links as the kernel has them, and words of a hostile BIOS."""
    fake = tmp_path / "fake"
    files = {path: text for path, text in healthy().items() if path.startswith("sys/")}
    files |= {"sys/devices/pci/hwmon/hwmon0/name": "k10temp\n", "sys/devices/pci/hwmon/hwmon0/temp1_input": "91000\n"}
    files |= {"sys/devices/virtual/dmi/id/bios_version": 'v1"$(reboot)\x1b[31m\n', f"{EDAC}/mc0/ce_count": "3\n"}
    files = {re.sub(r"cpu/cpu(\d+)/cpufreq/", r"cpu/cpufreq/policy\1/", path): text for path, text in files.items()}
    del files["sys/class/dmi/id/bios_version"]
    links = {f"{CPU}/cpu{cpu}/cpufreq": f"../cpufreq/policy{cpu}" for cpu in range(16)}
    links["sys/class/hwmon/hwmon0"] = "../../devices/pci/hwmon/hwmon0"
    links["sys/class/dmi/id"] = "../../devices/virtual/dmi/id"
    for path, text in files.items():
        (fake / path).parent.mkdir(parents=True, exist_ok=True)
        (fake / path).write_text(text)
    for path, target in links.items():
        (fake / path).parent.mkdir(parents=True, exist_ok=True)
        (fake / path).symlink_to(target)
    need("unshare", root="mount another /sys, in a namespace of its own")
    inside = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /sys && exec "$@"', str(fake / "sys")]
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode != 0:
        missing("no namespace of mounts here")
    subprocess.run([*inside, *campaign.command()], check=True, env=campaign.environment, timeout=300)
    survey, truth = open_tree(campaign.job / "survey.tar.gz"), open_tree(fake)
    names = ("governor", "boost", "bios", "cores_per_l3", "numa_distances", "memory_per_node_gib", "thp", "mitigations")
    said, expected = read_fingerprint(survey), read_fingerprint(truth)
    assert {name: said[name] for name in names} == {name: expected[name] for name in names}
    assert said["bios"] == 'v1"$(reboot)?[31m'
    assert {"hot", "edac"} <= {warning.id for warning in preflight.check(survey)}


@pytest.mark.parametrize(("tool", "package"), [("flock", "util-linux"), ("cksum", "coreutils")])
def test_without_a_tool(one_shell: Campaign, tools: Path, tmp_path: Path, tool: str, package: str) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(tools, bare, symlinks=True)
    (bare / tool).unlink()
    one_shell.shell = SHELLS["dash"] if shutil.which("dash") else one_shell.shell  # busybox has tools of its own
    # /sbin and /usr/sbin are appended by node-run; these tools are not there on any system we know
    code, _ = one_shell.run(PATH=str(bare))
    assert code == 0
    assert f"{tool} is not installed; install {package}" in one_shell.outcomes()[1, "a"]["message"]


@pytest.mark.parametrize(
    ("features", "lse"), [("fp asimd atomics cpuid", True), ("fp atomics", True), ("fp asimd atomicsx", False)]
)
def test_atomic_instructions_are_used_where_the_cpu_has_them(
    campaign: Campaign, tmp_path: Path, features: str, lse: bool
) -> None:
    (campaign.kernels / "lse").mkdir()
    other = campaign.kernels / "lse" / "fake"
    other.write_text((campaign.kernels / "fake").read_text().replace('"seen": ', '"lse": true, "seen": '))
    other.chmod(0o755)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(f"processor\t: 0\nFeatures\t: {features}\nCPU part\t: 0xd0c\n")
    assert campaign.run(NODEPRINT_PROCFS=f"{tmp_path}/proc")[0] == 0
    assert campaign.records()[0].get("lse", False) is lse


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 64 KiB, for root."""
    folder = tmp_path / "small"
    with small_file_system(folder, "64k"):
        yield folder


def test_a_full_disk_is_told_and_nothing_is_lost(tools: Path, small_disk: Path) -> None:
    campaign = Campaign(small_disk / "c", tools, "dash")
    campaign.environment["TMPDIR"] = "/tmp"
    campaign.plan("a\tfake\t--steps 2", "b\tfake\t--steps 2000")
    code, said = campaign.run()
    assert "No space left" in said or "cannot be written" in said
    assert campaign.is_whole(2, "a"), "what was measured before is there"
    if code == 0:
        assert campaign.outcomes()[1, "a"]["outcome"] == "done"
        assert campaign.outcomes()[1, "b"]["outcome"] == "failed"
    else:
        assert code == 1
        assert not (campaign.job / "status.json").exists()
        assert "status.json: cannot be written" in said
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    if (campaign.job / "run1" / "b.jsonl").exists():
        lines = (campaign.job / "run1" / "b.jsonl").read_bytes().splitlines(keepends=True)
        (campaign.job / "run1" / "b.jsonl").write_bytes(b"".join(line for line in lines if line.endswith(b"\n")))
    assert campaign.run()[0] == 0
    assert campaign.status()["outcome"] == "complete"
    assert campaign.is_whole(2, "a") and campaign.is_whole(2000, "b")


def test_read_only_results(tools: Path, small_disk: Path) -> None:
    campaign = Campaign(small_disk / "c", tools, "dash")
    campaign.environment["TMPDIR"] = "/tmp"
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    code, said = campaign.run()
    assert code == 1
    assert "cannot be written; check permissions, quota and free space" in said and said.count("\n") == 1


@pytest.fixture
def real(one_shell: Campaign) -> Campaign:
    """The campaign with the real kernel and all that is installed."""
    one_shell.kernels = built()
    one_shell.plan("a\tcoherence\t--op cas --passes 2")
    return one_shell


def pids_writing(file: Path) -> list[int]:
    """Processes that have `file` open."""
    found = []
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if descriptor.readlink() == file:
                found.append(int(descriptor.parts[2]))
        except OSError:
            continue
    return found


def test_the_real_kernel_without_likwid(real: Campaign) -> None:
    code, said = real.run()
    assert code == 0, said
    assert real.status()["outcome"] == "complete"
    assert valid_campaign(real.folder) == ["records", "status.json"]
    header = real.records()[0]
    assert (header["host"], header["job"], header["run"], header["pinned_by"]) == (HOST, 1, 1, "native")
    assert real.records()[-1]["complete"] is True


def test_the_real_kernel_under_likwid_pin(real: Campaign) -> None:
    need("likwid-pin")
    real.environment["PATH"] = os.environ["PATH"]
    code, said = real.run()
    assert code == 0, said
    assert real.outcomes()[1, "a"]["pinned_by"] == "likwid-pin"
    assert real.records()[0]["pinned_by"] == "likwid-pin"
    with tarfile.open(real.job / "survey.tar.gz") as archive:
        assert "nodeprint/likwid-topology.csv" in archive.getnames()


def test_likwid_pin_in_a_reduced_cpuset(real: Campaign) -> None:
    need("likwid-pin", "taskset", cpus=2)
    last = str(sorted(os.sched_getaffinity(0))[-1])
    real.environment["PATH"] = os.environ["PATH"]
    real.plan("a\tjitter\t--op detours --cpus cores --passes 1 --seconds 1")
    real.shell = ["taskset", "-c", last, *real.shell]
    code, said = real.run()
    assert code == 0, said
    # of a single CPU likwid-pin preloads nothing, so that the kernel pins its worker there itself
    assert real.outcomes()[1, "a"]["pinned_by"] == real.records()[0]["pinned_by"] == "native"
    assert [r["cpu"] for r in real.records() if r["record"] == "cell"] == [int(last)]
    with tarfile.open(real.job / "survey.tar.gz") as archive:
        told = archive.extractfile("nodeprint/likwid-pin.txt")
        assert told is not None and told.read() == b"works\n"


@pytest.mark.parametrize(
    ("fake", "word"),
    [
        # takes no notice of the list: every thread stays where the first of the set is
        ('shift 3; exec taskset -c "$FIRST" "$@"', "it pins to CPU"),
        # as 5.2.2: numbers are places in the cpuset unless it is told to ignore the set
        (
            '[ -n "${LIKWID_IGNORE_CPUSET:-}" ] || { echo logical >&2; exit 1; }; [ "$4" = cat ] || exit 1; '
            'exec taskset -c "$3" cat /proc/self/status',
            "the kernel pins itself",
        ),
        # refuses the list of the kernel, though not that of the trial
        (
            '[ "$4" = cat ] || { echo no such CPU >&2; exit 1; }; exec taskset -c "$3" cat /proc/self/status',
            "no such CPU",
        ),
    ],
)
def test_a_likwid_pin_that_pins_elsewhere_is_not_used(real: Campaign, fake: str, word: str) -> None:
    need("taskset", cpus=2)
    folder = real.tmp / "likwid"
    folder.mkdir()
    script = folder / "likwid-pin"
    script.write_text(f"#!/bin/sh\n{fake}\n")
    script.chmod(0o755)
    real.environment["PATH"] = f"{folder}:{real.environment['PATH']}"
    real.plan("a\tjitter\t--op detours --cpus cores --passes 1 --seconds 1")
    code, said = real.run(FIRST=str(min(os.sched_getaffinity(0))))
    assert code == 0, said
    assert "pins to CPU" in said or "the kernel pins itself" in said
    assert word in said
    assert real.outcomes()[1, "a"]["outcome"] == "done"
    assert real.outcomes()[1, "a"]["pinned_by"] == real.records()[0]["pinned_by"] == "native"


#: A likwid-perfctr that has one group of each kind, of which the second cannot be read, and runs what it is to count.
PERFCTR = r"""#!/bin/sh
[ "$1" != -a ] || { printf 'Group name\tDescription\n   MEM\tmemory\n  MEM_DP\tboth\n CLOCK\tclock\n'; exit; }
[ "$4" = CLOCK ] || { echo "no counters of group $4" >&2; exit 1; }
cpus=$2
shift 5
"$@" || exit
printf 'TABLE,Group 1 Metric,CLOCK,1\nMetric,HWThread %s\nClock [MHz],2600\n' "${cpus%%[-,]*}"
"""


def test_groups_are_counted_around_kernels_when_a_node_is_surveyed(real: Campaign) -> None:
    folder = real.tmp / "likwid"
    folder.mkdir()
    script = folder / "likwid-perfctr"
    script.write_text(PERFCTR)
    script.chmod(0o755)
    real.environment["PATH"] = f"{folder}:{real.environment['PATH']}"
    real.plan("a\tjitter\t--op detours --cpus 0 --passes 1 --seconds 1")
    code, said = real.run()
    assert code == 0, said
    counted = counters.read(open_tree(real.job / "survey.tar.gz"))
    assert counted is not None
    assert counted.counted_hz == 2.6e9 and counted.timed_hz > 1e8
    assert counted.not_readable == {"MEM": "no counters of group MEM"}


def test_the_real_kernel_is_killed_and_continues_its_file(real: Campaign) -> None:
    real.plan("a\tcoherence\t--op cas --passes 2000")
    process = real.start()
    file = real.job / "run1" / "a.jsonl"
    wait_for(lambda: file.exists() and b'"pair"' in file.read_bytes(), "the first pairs")
    process.kill()
    for pid in pids_writing(file):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=300)
    wait_for(lambda: not pids_writing(file), "the end of the kernel")
    whole_lines = file.read_bytes().rpartition(b"\n")[0] + b"\n"
    process = real.start()
    wait_for(lambda: len(file.read_bytes()) > len(whole_lines) + 1000, "a continuation")
    process.terminate()
    process.communicate(timeout=300)
    valid_records(file)
    text = file.read_bytes()
    assert text.startswith(whole_lines) and text.endswith(b"\n")
    records = [json.loads(line) for line in text.splitlines()]
    assert [r["segment"] for r in records if r["record"] == "header"] == [0, 1]
    done = [(r["a"], r["b"], r["home"], r["pass"]) for r in records if r["record"] == "pair"]
    assert len(done) == len(set(done)), "no pair is measured twice"


def test_the_folder_of_a_killed_node_run_goes_with_the_next_one_and_that_of_another_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another may have process numbers of its own, in a container: who holds the lock is at work."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    host = os.uname().nodename.split(".")[0]
    folders = {name: tmp_path / f"node-run.{host}.{name}" for name in ("killed", "lives", "strange")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "survey").touch()
    for name in ("killed", "lives"):
        (folders[name] / "lock").touch()
    (tmp_path / "c").mkdir()
    (tmp_path / "c/plan.tsv").write_text("a\tnone\t--op x\n")
    with (folders["lives"] / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = ["--campaign", f"{tmp_path}/c", "--node", "n", "--job", "1", "--runs", "1"]
        subprocess.run([ROOT / "kernels/node-run", *words], check=True, capture_output=True, timeout=120)
    assert sorted(path.name.rpartition(".")[2] for path in tmp_path.glob("node-run.*")) == ["lives", "strange"]


@pytest.mark.parametrize("shell", SHELLS)
def test_node_run_without_its_parts_names_what_is_missing(tmp_path: Path, shell: str) -> None:
    need(SHELLS[shell][0])
    alone = shutil.copy(NODE_RUN, tmp_path)
    (tmp_path / "plan.tsv").write_text("a\tfake\t--steps 3\n")
    words = [*SHELLS[shell], alone, "--campaign", tmp_path, "--node", "n", "--job", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    sentence = f"{tmp_path}/node/lock.sh: cannot be read; node-run needs the directory node/ of its kernels next to it"
    assert (done.returncode, done.stderr) == (1, f"node-run: {sentence}\n")


def test_what_heats_the_node_comes_last_and_the_node_cools(tmp_path: Path, tools: Path) -> None:
    campaign = Campaign(tmp_path / "campaign", tools, "dash")
    shutil.copy(FAKE, campaign.kernels / "load")
    campaign.plan("hot\tload\t--steps 2 --pause 0.7", "warm\tload\t--steps 1", "a\tfake\t--steps 1")
    hwmon = tmp_path / "sys/class/hwmon/hwmon0"
    hwmon.mkdir(parents=True)
    (hwmon / "temp1_input").write_text("41000\n")
    code, output = campaign.run("--runs", "2", NODEPRINT_SYSFS=str(tmp_path / "sys"))
    assert code == 0
    order = re.findall(r"run (\d) of 2: (\w+)", output)
    assert order == [("1", "a"), ("2", "a"), ("1", "hot"), ("2", "hot"), ("1", "warm"), ("2", "warm")]
    assert output.count("heats the node") == 1 and "it cools" not in output
    assert campaign.status()["outcome"] == "complete"


@pytest.mark.parametrize("reported", [True, False])
def test_a_node_that_stays_hot_is_waited_for_no_longer_than_it_was_heated(
    tmp_path: Path, tools: Path, reported: bool
) -> None:
    campaign = Campaign(tmp_path / "campaign", tools, "dash")
    sensor = tmp_path / "sys/class/hwmon/hwmon0/temp1_input"
    sensor.parent.mkdir(parents=True)
    heats = f"case $1 in --help) ;; *) echo 70000 >{sensor} ;; esac" if reported else ""
    (campaign.kernels / "load").write_text(f"#!/bin/sh\n{heats}\n. {FAKE}\n")
    (campaign.kernels / "load").chmod(0o755)
    if reported:
        sensor.write_text("41000\n")
    campaign.plan("hot\tload\t--steps 3 --pause 0.9")
    code, output = campaign.run("--runs", "2", NODEPRINT_SYSFS=str(tmp_path / "sys"))
    assert code == 0, output
    assert ("the node has 70 degrees and had 41 before" in output) == reported
    assert ("no temperature is reported: the node cools for" in output) == (not reported)
