"""Set-up that is interrupted at a terminal: a real Ctrl-C, sent through a pty to the foreground process group, while
substitutes for apt-get and dpkg are at work. tests/system/fresh/run does the same with Debian's own."""

import os
import pty
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT
from tests.support.waiting import wait_for

CTRL_C = b"\x03"
#: apt-get notes what it is called for, is slow where a file says so, and brings `likwid-pin` in two steps: in between
#: the system is half installed.
APT_GET = """\
case " $* " in
*" update "*) echo update >>{top}/calls; exit ;;
*" --download-only "*) echo download >>{top}/calls; [ ! -e {top}/slow-download ] || exec sleep 60 ;;
*" --fix-broken "*) echo fix-broken >>{top}/calls ;;
*)
    echo unpack >>{top}/calls
    [ ! -e {top}/slow-unpack ] || sleep 2
    printf '#!/bin/sh\\n' >{top}/bin/likwid-pin
    chmod 755 {top}/bin/likwid-pin
    echo unpacked >>{top}/calls
    ;;
esac
"""


class Terminal:
    """A command in a terminal of its own: its session leader, as a user's shell is."""

    def __init__(self, *command: str, cwd: Path, path: str) -> None:
        self.output = b""
        self.pid, self.leader = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            environment = {"PATH": path, "DPKG_ADMINDIR": str(cwd / "dpkg"), "TERM": "dumb"}
            os.execvpe(command[0], command, environment)

    def read(self) -> None:
        """Take what was written meanwhile, waiting for a moment."""
        os.set_blocking(self.leader, False)
        try:
            self.output += os.read(self.leader, 1 << 16)
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:  # nobody has the other side open any more
            time.sleep(0.02)

    def shows(self, text: str) -> None:
        """Wait until a text is shown."""

        def is_shown() -> bool:
            self.read()
            return text.encode() in self.output

        wait_for(is_shown, f"{text!r} on the terminal", seconds=30)

    def type(self, keys: bytes) -> None:
        os.write(self.leader, keys)

    def end(self) -> int:
        """Wait for the command; its wait status."""
        ended = (0, 0)

        def has_ended() -> bool:
            nonlocal ended
            self.read()
            ended = os.waitpid(self.pid, os.WNOHANG)
            return ended[0] != 0

        wait_for(has_ended, "the command to end", seconds=30)
        for _ in range(10):
            self.read()
        os.close(self.leader)
        return ended[1]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A checkout with its Python packages, on a machine without likwid: what make needs, and the substitutes."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "setup", tmp_path / "setup")
    programs = {
        "apt-get": APT_GET.format(top=tmp_path),
        "apt-cache": "exit 0",
        "id": "echo 0",
        "dpkg": f'echo "dpkg $*" >>{tmp_path}/calls; rm -f {tmp_path}/dpkg/updates/*',
        "dpkg-query": "exit 0",
        **dict.fromkeys(("cc", "mpirun", "mpicc", "flock"), "exit 0"),
    }
    (tmp_path / "bin").mkdir()
    for tool in (
        "sh",
        "make",
        "sed",
        "tr",
        "uniq",
        "mktemp",
        "tail",
        "rm",
        "cat",
        "chmod",
        "dirname",
        "grep",
        "tee",
        "date",
        "mkdir",
        "stty",
        "touch",
        "sleep",
        "setsid",
        "printf",
        "env",
    ):
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    for name, script in programs.items():
        (tmp_path / "bin" / name).unlink(missing_ok=True)
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    environment = tmp_path / ".venv/bin"
    environment.mkdir(parents=True)
    (environment / "python").write_text("#!/bin/sh\n")
    (environment / "python").chmod(0o755)
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    (tmp_path / ".venv/packages.stamp").touch()
    return tmp_path


def begin(house: Path, *command: str) -> Terminal:
    """A command in a terminal."""
    return Terminal(*command, cwd=house, path=str(house / "bin"))


def set_up(house: Path) -> Terminal:
    """Set-up in a terminal, where what it will do was agreed to."""
    terminal = begin(house, "make", "-s", "able-to-run")
    terminal.shows("go on?")
    terminal.type(b"y\n")
    return terminal


def calls(house: Path) -> list[str]:
    return (house / "calls").read_text().splitlines()


def called(house: Path, name: str) -> None:
    """Wait until a substitute was called for something."""
    wait_for(lambda: (house / "calls").exists() and name in calls(house), f"apt-get to {name}", seconds=30)


def assert_the_next_call_installs(house: Path) -> None:
    (house / "calls").unlink()
    terminal = set_up(house)
    assert terminal.end() == 0, terminal.output
    assert calls(house) == ["update", "download", "unpack", "unpacked"]


def test_a_download_is_stopped_at_once(house: Path) -> None:
    (house / "slow-download").touch()
    terminal = set_up(house)
    called(house, "download")
    terminal.type(CTRL_C)
    assert terminal.end() != 0
    assert "download of system packages stopped after" in terminal.output.decode()
    assert calls(house) == ["update", "download"]
    (house / "slow-download").unlink()
    assert_the_next_call_installs(house)


def test_packages_that_are_being_installed_are_finished(house: Path) -> None:
    (house / "slow-unpack").touch()
    terminal = set_up(house)
    called(house, "unpack")
    terminal.type(CTRL_C)
    terminal.shows("finishing the packages first")
    terminal.type(CTRL_C)
    status = terminal.end()
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) != 0
    assert "system packages finished after" in terminal.output.decode()
    assert "unpacked" in calls(house), "make waits for them"
    again = begin(house, "make", "-s", "able-to-run")
    assert again.end() == 0 and not again.output, "all is there"


def test_packages_are_finished_where_nobody_reads_along_any_more(house: Path) -> None:
    """In a pipe the Ctrl-C ends the reader, too, and with this shell its terminal."""
    (house / "slow-unpack").touch()
    terminal = begin(house, "sh", "-c", "make able-to-run 2>&1 | cat; exit 1")
    called(house, "unpack")
    terminal.type(CTRL_C)
    terminal.end()
    called(house, "unpacked")
    assert begin(house, "make", "-s", "able-to-run").end() == 0


def test_a_closed_terminal_leaves_whole_packages(house: Path) -> None:
    (house / "slow-unpack").touch()
    terminal = set_up(house)
    called(house, "unpack")
    os.close(terminal.leader)
    called(house, "unpacked")
    wait_for(lambda: os.waitpid(terminal.pid, os.WNOHANG)[0] != 0, "make to end", seconds=30)


def test_an_interrupted_installation_is_mended_before_anything_else(house: Path) -> None:
    (house / "dpkg/updates").mkdir(parents=True)
    (house / "dpkg/updates/0001").touch()
    terminal = set_up(house)
    assert terminal.end() == 0, terminal.output
    assert calls(house) == ["dpkg --configure -a", "update", "fix-broken", "update", "download", "unpack", "unpacked"]
    assert b"an installation of packages was interrupted; will run: dpkg --configure -a" in terminal.output


def test_a_half_installed_package_is_mended_though_its_program_is_there(house: Path) -> None:
    shutil.copy(house / "bin/cc", house / "bin/likwid-pin")
    (house / "bin/dpkg-query").write_text("#!/bin/sh\necho installed ok\necho half-configured ok\n")
    terminal = set_up(house)
    assert terminal.end() == 0, terminal.output
    assert calls(house) == ["dpkg --configure -a", "update", "fix-broken"]


def test_who_may_not_mend_names_the_command(house: Path) -> None:
    (house / "dpkg/updates").mkdir(parents=True)
    (house / "dpkg/updates/0001").touch()
    (house / "bin/id").write_text("#!/bin/sh\necho 1000\n")
    terminal = begin(house, "make", "able-to-run")
    assert terminal.end() == 0
    assert b"    dpkg --configure -a   (an installation of packages was interrupted)" in terminal.output
    assert b"    apt-get install -y --no-install-recommends likwid" in terminal.output
    assert not (house / "calls").exists()


def test_an_environment_in_which_pip_was_stopped_is_made_anew(house: Path) -> None:
    """What pip has half unpacked looks whole to it."""
    (house / ".venv/packages.stamp").unlink()
    log = house / ".venv/pip.log"
    (house / "bin/python3").write_text(
        "#!/bin/sh\ncase $* in *version_info*) echo 3.13 ;; "
        '"-m venv --clear .venv") rm .venv/pip.log; echo >made ;; esac\n'
    )
    (house / "bin/python3").chmod(0o755)

    def prepare() -> bool:
        terminal = begin(house, "setup/python")
        assert terminal.end() == 0
        return (house / "made").exists()

    log.write_text("Collecting numpy\nERROR: no network\npip ended with 1\n")
    assert not prepare(), "nothing was unpacked yet"
    log.write_text("Collecting numpy\nInstalling collected packages: numpy\npip ended with 0\n")
    assert not prepare()
    log.write_text("Collecting numpy\nInstalling collected packages: numpy\n")
    assert prepare()


def test_signals_of_the_terminal_are_those_that_are_waited_out(house: Path) -> None:
    """A phase that a signal ended says by which, so that make ends, too."""
    terminal = begin(house, "setup/phase", "packages", "sleep", "60")
    terminal.shows("packages")
    terminal.type(CTRL_C)
    status = terminal.end()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT
