"""The kernel that runs a site's own command: its directory, environment, limits, and what it records."""

import json
import os
import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from nodeprint.data.format import records
from tests.support.real_parts import ROOT
from tests.support.waiting import wait_for

pytestmark = pytest.mark.machine

SCRIPT = ROOT / "kernels/command/command.sh"


def start(folder: Path, command: str, *more: str) -> subprocess.Popen[str]:
    words = ["--command", quote(command), "--out", str(folder / "own.jsonl"), "--cpus", "cores", "--siblings", *more]
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(temporary), "NODEPRINT_NODE": "cn01"}
    return subprocess.Popen(["sh", SCRIPT, *words], stderr=subprocess.PIPE, text=True, env=environment)


def run(folder: Path, command: str, *more: str) -> tuple[int, str]:
    process = start(folder, command, *more)
    said = process.communicate(timeout=60)[1]
    assert list((folder / "tmp").iterdir()) == [], "its directory is removed"
    return process.returncode, said


def printed(folder: Path) -> list[str]:
    text = (folder / "own.jsonl").read_text().replace("@KERNEL_HASH@", "0" * 16)
    file = records.read(folder / "own.jsonl", raw=text.encode())
    return [line["text"] for line in file.companions if line["record"] == "output"]


def test_it_has_an_empty_directory_of_its_own_and_the_names_of_the_run(tmp_path: Path) -> None:
    command = "ls -A | wc -l; pwd; touch made; echo $NODEPRINT_NODE $NODEPRINT_JOB $NODEPRINT_RUN; cat"
    assert run(tmp_path, command, "--job", "2", "--run", "3") == (0, "")
    count, place, names = printed(tmp_path)
    assert count.strip() == "0" and names == "cn01 2 3"
    assert place.startswith(str(tmp_path / "tmp"))
    assert os.getuid() == (tmp_path / "own.jsonl").stat().st_uid


def test_every_byte_comes_home_in_order_from_both_streams(tmp_path: Path) -> None:
    assert run(tmp_path, "printf 'a\"b\\\\c\\td %%\\n\\303\\274\\n\\n'; echo late >&2")[0] == 0
    assert printed(tmp_path) == ['a"b\\c\td %', "Ã¼", "", "late"]


@pytest.mark.parametrize(
    ("command", "status", "why"),
    [
        ("echo no license; exit 3", 3, "exited with status 3; last words: no license"),
        ("kill -KILL $$", 137, "killed by signal 9; last words: none"),
        ("sleep 30 & sleep 30", 124, "did not end within 1 s; raise its time_limit if it needs longer"),
        ("yes", 141, "printed more than 4 MiB"),
        ("no-such-program", 127, "name its path or load it in site.setup; last words: sh: "),
        ("printf 'a\\033[31m\\200\\201b\\n\\377\\n'; exit 5", 5, "exited with status 5; last words: a?[31m?b"),
    ],
)
def test_a_failure_keeps_the_output_and_has_one_reason(tmp_path: Path, command: str, status: int, why: str) -> None:
    code, said = run(tmp_path, command, "--limit", "1" if "sleep" in command else "20")
    assert code == 1 and why in said.splitlines()[-1]
    last = json.loads((tmp_path / "own.jsonl").read_text().splitlines()[-1])
    assert last["record"] == "trailer" and (last["status"], last["complete"]) == (status, False)


def test_another_attempt_keeps_the_output_of_the_failed_one(tmp_path: Path) -> None:
    run(tmp_path, "echo first; exit 1")
    assert run(tmp_path, "echo second")[0] == 0
    assert printed(tmp_path) == ["second"]
    assert '"text":"first"' in (tmp_path / "own.jsonl.failed").read_text()


def test_a_stopped_one_stops_its_command_and_keeps_what_it_printed(tmp_path: Path) -> None:
    process = start(tmp_path, f"echo $$ >{tmp_path}/pid; echo begun; sleep 60")
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the command runs")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    assert printed(tmp_path) == ["begun"] and "trailer" not in (tmp_path / "own.jsonl").read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_its_plan_is_its_time_limit() -> None:
    words = ["sh", str(SCRIPT), "--command", "x", "--limit", "7", "--cpus", "0-3", "--plan"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "seconds 7\n"
