"""The launcher's side: starts the ranks, watches them, and says in one sentence why they ended."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import os
import platform
import re
import selectors
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from linktest import records
from linktest.settings import DONE, NO_GPU_PACKAGE, NOT_AS_ASKED, UNAVAILABLE, RefusalError, Settings, gpu_package, say

_PROGRAM = Path(__file__).with_name("__main__.py")
_REFUSED = "linktest-refused: "
_OURS = "linktest: "
#: A launcher that was asked to end has so long to end its ranks.
_GRACE_S = 20.0
#: So often ranks are started that crash before one of them wrote a record: with Slurm 22.05 and PMIx 4.2 a message may
#: reach a rank that is still within MPI_Init, and Open MPI 4.1 then crashes.
_STARTS = 3
_CRASHES = {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV}
#: A launcher ends with 128 and the number of the signal that killed a rank.
_SIGNALED = 128
#: srun names them, and may end with the signal by which it then ended the other tasks.
_CRASHED_TASK = re.compile(r"tasks? [\d,-]+: (?:Segmentation fault|Aborted|Bus error)")
#: Which rank was killed, as far as the launcher says it. Open MPI 5 breaks its lines anywhere.
_KILLED_RANK = re.compile(r"(?:process rank|task) (\d+)\D(?:.{,80}?on node (\S+))?")
#: What a launcher says, and what it means; the first that is found.
_MEANINGS = (
    (
        r"plugin name for mpi/pmix|Invalid MPI type '?pmix|mpi/pmix.*(fail|cannot)",
        "Slurm has no such PMIx plugin here: `srun --mpi=list` names those that it has; install Slurm's PMIx plugin, "
        "or write another command into mpi.launcher (between nodes mpi.fabric_launcher), e.g. mpirun",
    ),
    (
        r"OMPI was not built with SLURM|not built with PMI|PMI support|OPAL ERROR: Unreachable in file ext\w+_client",
        "this Open MPI does not speak Slurm's PMI: use srun --mpi=pmix with an Open MPI that has PMIx, or mpirun",
    ),
    (
        r"DUE TO TIME LIMIT",
        "Slurm ended the job at its time limit: a firewall may keep ranks waiting, else raise slurm.minutes",
    ),
    (
        r"unable to find network interfaces",
        "Open MPI finds no network interface that is up, not even the loopback: `ip link set lo up`",
    ),
    (
        r"(?:ORTE was unable to reliably start|PRTE has lost communication|unable to launch .*daemon|Could not resolve "
        r"hostname|Host key verification failed|Permission denied \(|plm_rsh_agent)",
        "mpirun could not start its daemon on a node by ssh: the name, the key or the network is wrong; try "
        "`mpirun --host NODE hostname`, or write another command into mpi.launcher (between nodes mpi.fabric_launcher)",
    ),
    # Ubuntu 26.04 has the launcher without its texts: it names the text that it would print
    (
        r"not enough slots|rmaps-base:alloc-error",
        "the launcher has fewer slots than ranks: add --oversubscribe, or name slots by --host",
    ),
    (r"allow-run-as-root|OMPI_ALLOW_RUN_AS_ROOT", "mpirun does not start as root: run as a user"),
    (r"Unable to allocate resources: (.*)", "Slurm gives no allocation: {0}"),
    (
        r"Connection refused|No route to host|Connection timed out|unreachable|unable to reach|no route",
        "ranks cannot reach each other: a firewall, or networks apart; open MPI's ports between the nodes, or choose "
        "the network (OMPI_MCA_btl_tcp_if_include) in site.setup",
    ),
    (r"error while loading shared libraries: (\S+)", "MPI does not start: {0} is missing; install Open MPI"),
    *(
        (rf"error: (\S+): tasks? ([\d,-]+): ({ends})", "rank {1} on {0} ended: {2}")
        for ends in ("Segmentation fault|Aborted|Bus error", "Killed|Terminated")
    ),  # the cause first
    (r"(?:NODE FAILURE|Node failure on|node failure)", "a node failed"),
)


def _signal(code: int) -> int:
    """The signal that killed a rank, from the launcher's exit code; 0 if none did."""
    number = code - _SIGNALED
    return number if 0 < number < signal.NSIG else 0


def _killed_rank(text: str) -> str:
    match = _KILLED_RANK.search(" ".join(text.split()))
    if match is None:
        return "a rank"
    return f"rank {match[1]} on {match[2]}" if match[2] else f"rank {match[1]}"


def meaning(said: Sequence[str], code: int) -> str:
    """Why ranks ended, from what they and their launcher said and the exit code, with the remedy."""
    own = list(dict.fromkeys(line.removeprefix(_REFUSED) for line in said if line.startswith(_REFUSED)))
    if own:
        return own[0]
    text = "\n".join(line for line in said if not line.startswith(_OURS))
    for pattern, sentence in _MEANINGS:
        match = re.search(pattern, text)
        if match:
            return sentence.format(*match.groups())
    if killer := _signal(code):
        return f"{_killed_rank(text)} was killed by signal {killer}"
    if code < 0:
        return f"the launcher was killed by signal {-code}"
    # Open MPI frames what it says by lines of dashes
    framed = re.findall(r"^-{20,}\n(.+?)\n-{20,}$", text, re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if line.strip(" -*")]
    cause = (framed[:1] or lines[-1:] or ["no message"])[0]  # the first frame has the cause, later ones what follows
    shown = textwrap.shorten(cause, 300, placeholder=" ...")
    return f"MPI ended with exit code {code} ({shown}); try the launcher with `hostname` in place of LinkTest"


def measure(settings: Settings) -> int:
    """Start the ranks and wait for them; the exit code. Raises RefusalError where nothing can be measured."""
    host = platform.node().partition(".")[0]
    former = _former(settings, host)
    if former is not None and former.complete:
        say(f"{settings.out} is complete")
        return DONE
    command = settings.command()
    if lack := missing(settings):
        raise RefusalError(lack, NOT_AS_ASKED if settings.between_nodes else UNAVAILABLE)
    if settings.oversubscribed:
        say(f"{settings.ranks} ranks share {len(settings.cpus)} CPUs: their records are flagged oversubscribed")
    command += [sys.executable, str(_PROGRAM), *_own_words(settings), "--as-rank"]
    for left in reversed(range(_STARTS)):
        code, said, stopped_by = _watched(command, settings)
        kept = _former(settings, host)
        if code == DONE and kept is not None and kept.complete:
            return DONE
        if stopped_by:
            say(f"stopped by signal {stopped_by}; the same call continues {settings.out}")
            return 128 + stopped_by
        crashed = _signal(code) in _CRASHES or any(map(_CRASHED_TASK.search, said))
        if not left or kept != former or not crashed:
            break
        say(f"{meaning(said, code)} before anything was measured; starting the ranks again")
    count = f"; {len(kept.done)} pairs are kept, the same call continues them" if kept is not None and kept.done else ""
    raise RefusalError(meaning(said, code) + count, code if code in (2, 3) else NOT_AS_ASKED)


def _former(settings: Settings, host: str) -> records.Former | None:
    """What is on disk; None between nodes where another host than this one wrote it, as rank 0 checks it then."""
    wanted = records.identity(settings, host)
    if settings.between_nodes:
        del wanted["host"]
    return records.read(settings.out, wanted)


def _own_words(settings: Settings) -> list[str]:
    """The command line for a rank: everything decided."""
    words = list(settings.words)
    if not settings.between_nodes:
        words += ["--cpus", ",".join(map(str, settings.cpus))]
    words += ["--out", str(settings.out.absolute()), "--job", str(settings.job), "--run", str(settings.run)]
    words[words.index("--launcher") + 1] = quote(settings.launcher, safe="")
    return [*words, *([] if settings.seed is None else ["--seed", str(settings.seed)])]


def missing(settings: Settings) -> str:
    """What of MPI, or for buffers of a GPU, is not installed here; empty where all is."""
    launcher = settings.command()[0]
    if shutil.which(launcher) is None:
        return (
            f"no MPI here: {launcher} is not installed; install Open MPI (Debian: openmpi-bin), load its module in "
            "site.setup, or set mpi.launcher"
        )
    if importlib.util.find_spec("mpi4py") is None:
        return f"no mpi4py in {sys.executable}; install it there (pip install mpi4py)"
    if settings.in_gpu and not settings.between_nodes and not gpu_package():
        return NO_GPU_PACKAGE
    return ""


def _environment(settings: Settings) -> dict[str, str]:
    env = dict(os.environ)
    if not settings.between_nodes and settings.command()[0].endswith("mpirun"):
        # on one node mpirun starts the ranks itself; in a job it would ask Slurm to, and for another step
        env = {name: value for name, value in env.items() if not name.startswith(("SLURM_", "PMI_", "PMIX_"))}
    if settings.oversubscribed:
        env["OMPI_MCA_mpi_yield_when_idle"] = "1"
        env["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    if os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return env


def _ends_with_us() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _watched(command: list[str], settings: Settings) -> tuple[int, list[str], int]:
    """Run the launcher: its exit code (negative if a signal killed it), its lines, and the signal that stopped us or 0.

    Passes on what is ours, and ends the launcher if it is silent for too long or a signal comes.
    """
    stopped: list[int] = []
    launcher = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(settings),
        preexec_fn=_ends_with_us,  # noqa: PLW1509 there are no threads yet
    )
    ends = math.inf  # when the launcher is killed that was asked to end

    def end() -> None:
        nonlocal ends
        launcher.terminate()
        ends = min(ends, time.monotonic() + _GRACE_S)

    def stop(number: int, _: object) -> None:
        stopped.append(number)
        if len(stopped) == 1:
            end()
        else:
            launcher.kill()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    said: list[str] = []
    heard = size = -1.0
    rest = b""
    assert launcher.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(launcher.stdout, selectors.EVENT_READ)
        heard = time.monotonic()
        while True:
            ended = launcher.poll() is not None  # what it started may hold its output open, as ssh without an answer
            if waiting.select(0 if ended else 1.0):
                block = os.read(launcher.stdout.fileno(), 65536)
                if not block:
                    break
                *lines, rest = (rest + block).split(b"\n")
                for line in (one.decode(errors="replace") for one in lines):
                    said.append(line)
                    if not line.startswith(_REFUSED):
                        print(line, file=sys.stderr, flush=True)
                heard = time.monotonic()
            elif ended:
                break
            now_size = settings.out.stat().st_size if settings.out.exists() else 0
            if now_size != size:
                size, heard = now_size, time.monotonic()
            if time.monotonic() - heard > settings.patience_s and ends == math.inf:
                said.append(
                    f"{_REFUSED}the ranks reported nothing for {settings.patience_s:.0f} s: the job does not "
                    "start, or a firewall or a dead node keeps them waiting; see queue and network, or use --patience"
                )
                end()
            elif time.monotonic() > ends:
                launcher.kill()
    return launcher.wait(), said, stopped[0] if stopped else 0
