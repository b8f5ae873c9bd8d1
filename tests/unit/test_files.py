"""Whatever nodeprint writes replaces regular files alone: devices, pipes, sockets, folders and links stay."""

import ast
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprint import files
from nodeprint.campaign import node_sheet, preparation
from nodeprint.data.store.packing import pack
from nodeprint.errors import CannotWriteError, NodeprintError
from nodeprint.settings.config_file import Config
from tests.support import made_status
from tests.support.combinations import in_turn, one_of
from tests.support.command_line import MATRIX, call
from tests.support.real_parts import PACKAGES, ROOT, need, private_device
from tests.support.untouched import condition

KINDS = ("device", "pipe", "socket", "folder", "link to a file", "link to a device", "link to nothing")


def plant(path: Path, kind: str) -> Callable[[], object]:
    """Put what is no regular file at `path`; returns a function whose result changes where it is harmed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    outside = path.parent.parent / f"outside-{path.name}"
    if kind == "device":
        private_device(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:  # by a short name: a socket's has 108 bytes at most
            folder = os.open(path.parent, os.O_PATH)
            one.bind(f"/proc/self/fd/{folder}/{path.name}")
            os.close(folder)
    elif kind == "folder":
        path.mkdir()
        (path / "inside").write_text("mine")
    else:
        if kind == "link to a file":
            outside.write_text("mine")
        elif kind == "link to a device":
            private_device(outside)
        path.symlink_to(outside)

    def look() -> object:
        facts: list[Any] = []
        for one in (path, outside):
            if not os.path.lexists(one):
                facts.append("nothing")
                continue
            found = one.lstat()
            facts += [found.st_mode, found.st_ino, found.st_rdev]
            facts += [one.readlink()] if one.is_symlink() else []
            facts += [one.read_text()] if stat.S_ISREG(found.st_mode) else []
        return [*facts, (path / "inside").read_text() if kind == "folder" else ""]

    return look


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_a_regular_file_is_replaced(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "campaign" / "table.csv"
    look = plant(path, kind)
    before = look()
    with pytest.raises(CannotWriteError, match=r"table\.csv: is a .*, and only a file is replaced; name"):
        files.write(path, "new")
    if kind != "folder":
        with pytest.raises(CannotWriteError, match="only a folder is replaced"), files.replacing_folder(path):
            pass
    source = tmp_path / "campaign" / "source"
    source.write_text("x")
    with pytest.raises(CannotWriteError):
        files.rename(source, path.name)
    files.remove(path)
    assert look() == before
    assert names_in(path.parent) == ["source", "table.csv"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_appended_to_is_a_regular_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "logs" / "run.log"
    look = plant(path, kind)
    before = look()
    with pytest.raises(CannotWriteError, match=r"run\.log: is a .*, and only a file is replaced"):
        files.opened(path)
    assert look() == before


def test_what_is_appended_to_has_no_other_name(tmp_path: Path) -> None:
    theirs, log = tmp_path / "theirs", tmp_path / "run.log"
    theirs.write_text("mine")
    log.hardlink_to(theirs)
    sentence = r"run\.log: has another name \(a hard link\).*; remove it, then run again"
    for refuses in (files.opened, files.check):
        with pytest.raises(CannotWriteError, match=sentence):
            refuses(log)
    files.write(log, "new")
    assert (theirs.read_text(), log.read_text()) == ("mine", "new"), "what is replaced may have one"


def test_an_appended_file_keeps_what_it_has(tmp_path: Path) -> None:
    for text in (b"one", b"two"):
        descriptor = files.opened(tmp_path / "new" / "log")
        os.write(descriptor, text)
        os.close(descriptor)
    assert (tmp_path / "new" / "log").read_bytes() == b"onetwo"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x"
    files.write(path, "one")
    with pytest.raises(ZeroDivisionError), files.replacing(path) as partial:
        partial.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "one" and names_in(path.parent) == ["x"]
    with files.replacing_folder(path.parent) as folder:
        (folder / "y").write_text("two")
    assert names_in(tmp_path) == ["new"] and names_in(path.parent) == ["y"]


@pytest.mark.parametrize("name", ["-", ".", "/", ".."])
def test_what_names_no_file_is_refused_with_advice(name: str) -> None:
    with pytest.raises(CannotWriteError, match="; name"):
        files.write(Path(name), "x")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged campaign of one imported matrix, `a`, that nobody changes."""
    folder = tmp_path_factory.mktemp("judged")
    (folder / "a.csv").write_text(MATRIX)
    assert call("import", folder / "a.csv", "--out", folder / "campaign") == 0
    assert call("judge", folder / "campaign") == 0
    return folder / "campaign"


#: Every option that names an output: OUT is the path; a folder that is there is right for those that take one.
OUTPUTS = [
    "judge GOOD --recheck OUT",
    "export GOOD --to OUT",
    "baseline save GOOD --to OUT",
    "import MATRIX --out OUT",
    "simulate naples-2x32 --nodes 1 --out OUT",
    "sources --to OUT",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", OUTPUTS)
def test_no_output_option_harms_what_is_there(
    command: str, kind: str, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix, out = tmp_path / "matrix.csv", tmp_path / "there" / "out.csv"
    matrix.write_text(MATRIX)
    look = plant(out, kind)
    before = look()
    words = {"GOOD": shared, "OUT": out, "MATRIX": matrix}
    code = call(*(words.get(word, word) for word in command.split()))
    said = capsys.readouterr().err
    assert look() == before
    if not (kind == "folder" and command.startswith(("baseline", "import"))):
        assert code == 2
        assert said.startswith("nodeprint: ") and said.count("\n") == 1 and ";" in said, said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("judge", ["verdict.json", "verdict.xml", "verdict.prom", "drain.sh"]),
        ("report", ["report/cluster.pdf", "report/cluster.html"]),
        ("gather", ["store/fleet.json", "store/nodes/a/survey.msgpack.zst", "store/nodes/a/jobs.msgpack.zst"]),
        ("discover", ["plan.tsv", "nodes/a/job1/status.former.json", "logs/judge.log", "report/a.pdf"]),
    ],
)
def test_nothing_in_a_campaign_is_harmed(
    command: str, names: list[str], kind: str, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "campaign"
    shutil.copytree(shared, folder)
    for name in names:
        if kind == "folder" and name in ("logs/judge.log", "report/a.pdf"):
            continue  # nothing writes into it
        path = folder / name
        path.unlink(missing_ok=True)
        look = plant(path, kind)
        before = look()
        if command in ("judge", "report"):
            assert call(command, folder) == 2
            assert f"{path}: is a" in capsys.readouterr().err
        else:
            with pytest.raises(NodeprintError, match="is a "):
                _gather_or_discover(command, folder)
        assert look() == before
        subprocess.run(["rm", "-r", path], check=True)


@pytest.mark.parametrize(
    ("name", "code"),
    [("acceptance.yaml", 2), ("config.yaml", 0), ("plan.tsv", 2), ("store/fleet/coherence-cas-0.npy", 0)],
)
def test_no_command_waits_for_a_pipe_in_a_campaign(name: str, code: int, shared: Path, tmp_path: Path) -> None:
    """What is made of records is made again, what is not asked is not read, and of all else there is a sentence."""
    folder = tmp_path / "campaign"
    shutil.copytree(shared, folder)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    command: list[str | Path] = [sys.executable, "-m", "nodeprint", "judge", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    assert not code or f"{folder / name}: cannot be read (it is no regular file)" in done.stderr


def test_a_verdict_that_is_a_pipe_is_not_waited_for(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(shared, tmp_path / "campaign")
    (folder / "verdict.json").unlink()
    os.mkfifo(folder / "verdict.json")
    assert call("show", folder) == call("report", folder) == 2
    assert "verdict.json: is a pipe" in capsys.readouterr().err


def _gather_or_discover(command: str, folder: Path) -> None:
    if command == "gather":
        shutil.rmtree(folder / "store/fleet", ignore_errors=True)
        pack(folder)
        return
    made_status.put(folder / "nodes/a/job1", "failed")
    settings = Config(results=str(folder.parent), campaign=folder.name)
    preparation.prepare(settings, lambda: [node_sheet.Node("a", "a")], [], {})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", ["coherence --op cas", "jitter --op detours"])
def test_no_kernel_harms_what_is_there(words: str, kind: str, tmp_path: Path) -> None:
    need(cpus=2)
    out = tmp_path / "there" / "out.jsonl"
    look = plant(out, kind)
    before = look()
    kernel, *options = words.split()
    done = subprocess.run(
        [ROOT / "kernels/build" / kernel, *options, "--out", out],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (2, 3), done.stderr
    assert look() == before


#: What node-run calls the archive of a run.
ARCHIVE = "run1.tar.zst"


#: Files that node-run replaces.
REPLACED = ("status.json", "node-run.log", "outcomes.tsv", "survey.tar.gz", "run1/a.jsonl", "run1/a.jsonl.gz", ARCHIVE)


@pytest.mark.parametrize(("name", "kind"), in_turn(REPLACED, KINDS))
def test_node_run_harms_nothing(name: str, kind: str, tmp_path: Path) -> None:
    need("flock", "setsid", "zstd")
    folder = tmp_path / "campaign"
    job = folder / "nodes/n1/job1"
    job.mkdir(parents=True)
    (folder / "plan.tsv").write_text("a\tfake\t--steps 1\n")
    (tmp_path / "build").mkdir()
    shutil.copy(ROOT / "tests/support/fake_kernel.sh", tmp_path / "build/fake")
    look = plant(job / name, kind)
    before = look()
    command = [f"{ROOT}/kernels/node-run", "--node", "n1", "--job", "1", "--runs", "1", "--campaign", str(folder)]
    command += ["--kernels", f"{tmp_path}/build"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert look() == before
    assert f"{name}: is no regular file, and only those are replaced; remove it, then run again" in done.stderr
    assert done.returncode == (0 if name.startswith("run1") else 1)


#: What node-run appends to, and what it makes anew.
APPENDED = ("node-run.log", "outcomes.tsv", "run1/a.jsonl", "../../../locks/HOST.lock")
ANEW = ("status.json.tmp", "survey.tar.gz.tmp", "run1/a.jsonl.gz.tmp", f"{ARCHIVE}.tmp", "other_load.json", "plan.tsv")


@pytest.mark.parametrize("name", one_of([*APPENDED, *ANEW], 3))
def test_node_run_changes_no_file_that_has_another_name(name: str, tmp_path: Path) -> None:
    need("flock", "setsid", "zstd")
    folder, host = tmp_path / "campaign", os.uname().nodename.split(".", maxsplit=1)[0]
    path = folder / "nodes/n1/job1" / name.replace("HOST", host)
    (folder / "nodes/n1/job1").mkdir(parents=True)
    path.parent.mkdir(exist_ok=True)
    (folder / "plan.tsv").write_text("a\tfake\t--steps 1\n")
    (tmp_path / "build").mkdir()
    shutil.copy(ROOT / "tests/support/fake_kernel.sh", tmp_path / "build/fake")
    theirs = tmp_path / "theirs"
    theirs.write_text("mine\n")
    path.hardlink_to(theirs)
    command = [f"{ROOT}/kernels/node-run", "--node", "n1", "--job", "1", "--runs", "1", "--campaign", str(folder)]
    command += ["--kernels", f"{tmp_path}/build"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert theirs.read_text() == "mine\n"
    appended = "has another name (a hard link), and what is written would change that file, too; remove it"
    assert (appended in done.stderr) == (name in APPENDED), done.stderr
    assert done.returncode == (1 if name in APPENDED and not name.startswith("run1") else 0)


def test_no_kernel_changes_a_file_that_has_another_name(tmp_path: Path) -> None:
    theirs, out = tmp_path / "theirs", tmp_path / "out.jsonl"
    theirs.write_text('{"cut')  # which a kernel would cut off
    out.hardlink_to(theirs)
    jitter: list[str | Path] = [ROOT / "kernels/build/jitter", "--op", "detours"]
    linktest: list[str | Path] = [sys.executable, ROOT / "kernels/linktest", "--cpus", "0,1"]
    for words in (jitter, linktest):
        done = subprocess.run([*words, "--out", out], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 2 and "has another name (a hard link); remove it, then run again" in done.stderr
    assert theirs.read_text() == '{"cut'


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "2 GiB"])
@pytest.mark.parametrize(
    "name", ["plan.tsv", "nodes/n1/job1/outcomes.tsv", "nodes/n1/job1/plan.tsv", "locks/HOST.lock"]
)
def test_node_run_reads_no_list_that_is_none(name: str, kind: str, tmp_path: Path) -> None:
    """Nothing is waited for, and no line as long as a sparse file is taken into memory."""
    need("flock", "setsid")
    folder, host = tmp_path / "campaign", os.uname().nodename.split(".", maxsplit=1)[0]
    path = folder / name.replace("HOST", host)
    path.parent.mkdir(parents=True)
    (folder / "plan.tsv").write_text("a\tfake\t--steps 1\n")
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 2 << 30)
    command = [f"{ROOT}/kernels/node-run", "--node", "n1", "--job", "1", "--campaign", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    why = "has more than 4 MiB" if kind == "2 GiB" else "is no regular file"
    assert f"{path}: {why}" in done.stderr
    assert done.returncode == (2 if name == "plan.tsv" else 1)


@pytest.mark.parametrize("name", ["nodes", "nodes/n1", "nodes/n1/job1", "locks"])
def test_node_run_follows_no_folder_that_is_a_link(name: str, tmp_path: Path) -> None:
    need("flock", "setsid")
    folder, theirs = tmp_path / "campaign", tmp_path / "theirs"
    (folder / name).parent.mkdir(parents=True)
    theirs.mkdir()
    (folder / name).symlink_to(theirs)
    (folder / "plan.tsv").write_text("a\tfake\t--steps 1\n")
    command = [f"{ROOT}/kernels/node-run", "--node", "n1", "--job", "1", "--campaign", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, list(theirs.iterdir())) == (1, [])
    assert f"{name}: is a symbolic link, and results need a directory; remove it" in done.stderr


@pytest.mark.parametrize("name", ["nodes", "nodes/n1", "launch", "logs", "logs/discover.log", "launch/lock"])
def test_a_campaign_with_a_link_in_the_place_of_its_own_is_not_begun(name: str, tmp_path: Path) -> None:
    settings = Config(results=str(tmp_path), campaign="c", launch="slurm")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (tmp_path / "c" / name).parent.mkdir(parents=True)
    (tmp_path / "c" / name).symlink_to(theirs)
    with pytest.raises(CannotWriteError, match="symbolic link"):
        preparation.prepare(settings, lambda: [node_sheet.Node("n1", "n1")], [], {})
    assert not list(theirs.iterdir())


def test_a_job_whose_folder_is_a_link_is_neither_read_nor_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Config(results=str(tmp_path), campaign="c", launch="slurm")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    made_status.put(theirs)
    (tmp_path / "c/nodes/n1").mkdir(parents=True)
    (tmp_path / "c/nodes/n1/job1").symlink_to(theirs)
    folder = preparation.prepare(settings, lambda: [node_sheet.Node("n1", "n1")], [], {})
    assert [node.job for node in node_sheet.read_sheet(folder / "nodes.tsv")] == [2]
    assert "job1 is a symbolic link, and none is followed: n1 is measured in a new job" in capsys.readouterr().err
    assert [path.name for path in theirs.iterdir()] == ["status.json"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_dump_of_cpuid_harms_nothing(kind: str, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    out = tmp_path / "there" / f"pu{cpu}"
    look = plant(out, kind)
    before = look()
    done = subprocess.run(
        [ROOT / "kernels/build/cpuid", out.parent], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in (2, 3), done.stderr
    assert look() == before


#: Calls that write, and where they are right: they fill a partial file of files.py or a temporary folder, and `sources`
#: fills a folder that it found empty.
WRITING = {
    "write_text", "write_bytes", "to_netcdf", "savefig", "symlink_to", "hardlink_to", "rename", "unlink", "copyfile",
    "shutil.copy", "copy2", "copytree", "rmtree", "shutil.move", "mknod", "rmdir", "touch", "makedirs",
}  # fmt: skip
RIGHT = {
    "campaign/plans.py": {"write_text"},
    "cli/shared.py": {"open"},
    "data/export/datasets.py": {"to_netcdf", "copyfile"},
    "data/export/netcdf_table.py": {"File"},
    "data/export/table_files.py": {"open"},
    "data/store/packed.py": {"write_bytes"},
    "data/store/packing.py": {"rmtree"},
    "data/store/store.py": {"rmtree", "rmdir"},
    "interface/export.py": {"rename"},
    "judge/baseline_folder.py": {"copy2", "copytree", "write_text"},
    "report/figures/figure_data.py": {"rename"},
    "report/figures/render.py": {"savefig"},
    "report/figures/strips.py": {"rename"},
    "report/run_check.py": {"write_text"},
    "report/pdf.py": {"copy", "write_text", "write_bytes"},
    "settings/sources.py": {"copytree", "copy2"},
    "simulate/demo.py": {"rmtree", "rename"},
    "nodeprint_addons/atlas/atlas_site.py": {"write_text", "write_bytes"},
    "nodeprint_addons/atlas/signing.py": {"write_text"},
}


def test_one_module_writes() -> None:
    found: dict[str, set[str]] = {}
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        name = str(path.relative_to(ROOT)).removeprefix("nodeprint/")
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or name == "files.py":
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            modes = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            writes = (
                called in WRITING
                or f"{owner}.{called}" in WRITING
                or (called in ("open", "File") and any(set(mode) & set("wax+") for mode in modes))
            )
            # Path.replace has one argument, str.replace two
            writes |= called == "replace" and owner != "" and len(node.args) == 1 and not node.keywords
            if writes and owner != "files":
                found.setdefault(name, set()).add(called)
    assert found == RIGHT


def test_the_suite_notices_what_it_changes_and_signals_its_own_alone(tmp_path: Path) -> None:
    device, file = tmp_path / "null", tmp_path / "hosts"
    private_device(device)
    file.write_text("one")
    before = condition([device, file])
    assert condition([device, file]) == before
    device.unlink()
    device.write_text("a table")
    files.write(file, "two")
    after = condition([device, file])
    assert [path for path in before if after[path] != before[path]] == [device, file]
    with pytest.raises(AssertionError, match="did not start"):
        os.kill(os.getppid(), 0)
    child = subprocess.Popen(["sh", "-c", "setsid sleep 60 >&2 & echo $!"], stdout=subprocess.PIPE, text=True)
    orphan = int(child.communicate()[0])
    os.kill(orphan, signal.SIGKILL)
