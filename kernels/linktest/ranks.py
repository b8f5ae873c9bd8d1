"""What every rank does: pin itself, meet all others, then measure its pairs when their turn comes. Rank 0 writes."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from linktest import records, samples, schedule, timed, transport
from linktest.settings import MODES, RefusalError, Settings, cores

#: Ranks that wait sleep so long at a time: spinning ones would take the clock and the caches of those that measure.
_NAP_S, _LONGEST_NAP_S = 50e-6, 500e-6
#: All ranks must have exchanged a first message after so long.
_MEET_S = 30.0
#: Room for the name of a host (Linux: 64).
_HOST_BYTES = 65
_BATON, _RESULT, _MEET, _LOST = 11, 12, 13, 14
_STOP = -1


@dataclass(frozen=True)
class Step:
    """Pairs that are measured one after another or at once: a round, or what is left of it."""

    number: int
    size: int
    pairs: schedule.Round
    together: bool
    again: bool = False


@dataclass(frozen=True)
class Seen:
    """What a rank saw of itself in all its pairs."""

    moved: bool
    voluntary: int
    involuntary: int
    took_ns: float
    lost_ns: float


class Rank:
    """One rank: its place, and what it needs for a message. `comm` is a communicator of LinkTest's own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        early = _rank_before_mpi()
        if early is not None and not settings.between_nodes:
            _pin(settings.cpus[early % len(settings.cpus)])
        import mpi4py  # noqa: PLC0415

        mpi4py.rc.threads = False
        from mpi4py import MPI  # noqa: PLC0415

        self.mpi = MPI
        self.rank, self.size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
        if self.size != settings.ranks:
            raise RefusalError(_wrong_number(self.size, settings))
        self.host = platform.node().partition(".")[0]
        hosts = self._meet()
        self.comm = MPI.COMM_WORLD.Dup()
        self.cpu = self._place(hosts)
        _pin(self.cpu)
        self.places = self.comm.allgather((self.host, self.cpu))
        self.timed = timed.choose(MPI, self.comm, settings.sizes)
        size = max(settings.sizes)
        self.buffers = timed.CudaBuffers(size, self.rank) if settings.in_gpu else timed.Buffers(size)
        #: How long all samples took here, and for how long of it this rank did not run.
        self.took_ns = self.lost_ns = 0.0

    def _place(self, hosts: list[str]) -> int:
        """This rank's CPU. Raises RefusalError where ranks are not on the nodes that were asked for."""
        settings = self.settings
        if not settings.between_nodes:
            if len(set(hosts)) > 1:
                raise RefusalError(
                    f"ranks are on {', '.join(sorted(set(hosts)))}: within a node all must be on one; see mpi.launcher"
                )
            return settings.cpus[self.rank % len(settings.cpus)]
        crowded = sorted(host for host in set(hosts) if hosts.count(host) != settings.per_node)
        if crowded:
            raise RefusalError(
                f"{hosts.count(crowded[0])} ranks are on {crowded[0]}, not {settings.per_node}; see mpi.launcher"
            )
        mine = cores(os.sched_getaffinity(0))
        if len(mine) < settings.per_node:
            raise RefusalError(f"{self.host} gives {len(mine)} cores to {settings.per_node} ranks; use --per-node")
        local = hosts[: self.rank].count(self.host)
        return mine[local * len(mine) // settings.per_node]

    def _meet(self) -> list[str]:
        """Exchange host names with every other rank, so that connections are made before anything is timed.

        It comes before all collective calls: these would wait for ever where two ranks cannot connect. Returns the
        hosts of all ranks.
        """
        world = self.mpi.COMM_WORLD
        mine = self.host.encode()
        names = {rank: bytearray(_HOST_BYTES) for rank in range(self.size) if rank != self.rank}
        waiting = {rank: world.Irecv(name, rank, _MEET) for rank, name in names.items()}
        sent = {rank: world.Isend(mine, rank, _MEET) for rank in names if rank > self.rank}
        until = time.monotonic() + _MEET_S
        while waiting or sent:
            for rank in [rank for rank, one in waiting.items() if one.Test()]:
                del waiting[rank]
                if rank < self.rank:  # an answer: two ranks that connect to each other at once may crash Open MPI
                    sent[rank] = world.Isend(mine, rank, _MEET)
            sent = {rank: one for rank, one in sent.items() if not one.Test()}
            if time.monotonic() > until:
                met = {name.rstrip(b"\0").decode() for rank, name in names.items() if rank not in waiting}
                unheard = sorted({*self.settings.nodes} - met - {self.host}) or [f"rank {r}" for r in (*waiting, *sent)]
                _last_words(
                    f"{self.host} and {', '.join(unheard)} exchanged no message in {_MEET_S:.0f} s: a firewall, or "
                    "networks that do not reach each other; open MPI's ports, or choose the network "
                    "(OMPI_MCA_btl_tcp_if_include) in site.setup"
                )
                time.sleep(2)  # the other side of each broken link says so, too
                world.Abort(3)
            time.sleep(_NAP_S)
        return [names[rank].rstrip(b"\0").decode() if rank in names else self.host for rank in range(self.size)]

    def measure(self, a: int, b: int, size: int, together: bool) -> dict[str, Any] | None:
        """This rank's part of a pair (a starts); the pair's numbers on rank a."""
        settings, me = self.settings, self.rank
        pair = timed.Pair(
            mode=MODES.index(settings.mode),
            first=me == a,
            partner=b if me == a else a,
            bytes=size,
            warm_up=settings.warm_up,
            samples=settings.samples,
            messages=settings.messages,
            together=together,
        )
        times = self.timed.measure(pair, self.buffers)
        self.took_ns, self.lost_ns = self.took_ns + pair.took_ns, self.lost_ns + pair.lost_ns
        if me != a:
            self.comm.send(pair.lost_ns, a, _LOST)
            return None
        # while one rank does not run the other waits for it: both lose the same time
        lost_ns = max(pair.lost_ns, float(self.comm.recv(source=b, tag=_LOST)))
        messages = pair.messages * (2 if settings.mode == "semidirectional" else 1)
        # ranks that share a CPU take it from each other, which has a flag of its own
        found = samples.summary(times, messages, 0.0 if settings.oversubscribed else lost_ns)
        return {**found, "round_trips": pair.messages}

    def rest(self, size: int) -> None:
        """A round in which this rank has no partner: it begins with the others all the same."""
        self.timed.measure(timed.Pair(partner=-1, together=1, bytes=size), self.buffers)

    def moved(self) -> bool:
        """Whether the pinning did not hold."""
        return os.sched_getaffinity(0) != {self.cpu} or _current_cpu() != self.cpu

    def transport(self) -> dict[str, Any]:
        """Which components of MPI carry the messages, and what chose them."""
        selected = transport.components(self.mpi)
        single_copy = "/".join(selected["smsc"])  # of Open MPI 5; before, a setting of its shared memory
        if not single_copy:
            single_copy = self.timed.single_copy() if selected["btl"] else "unknown"
        wishes = {name: value for name, value in os.environ.items() if re.match(r"(OMPI_MCA_(pml|btl|mtl)|UCX_)", name)}
        return {
            "library": self.mpi.Get_library_version().partition(",")[0],
            "pml": selected["pml"],
            "btl": selected["btl"],
            "mtl": selected["mtl"],
            "single_copy": single_copy,
            "ucx": "ucx" in selected["pml"],
            "environment": wishes,
        }


def _rank_before_mpi() -> int | None:
    """What the launcher says of this rank, so that MPI's own memory is touched on its CPU, too."""
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return None


def _wrong_number(size: int, settings: Settings) -> str:
    launcher = settings.launcher.split()[0]
    if size == 1:
        return (
            f"every process is an MPI of its own: {launcher} and Open MPI do not speak the same PMIx; "
            "use srun --mpi=pmix, or the mpirun of this Open MPI, in mpi.launcher"
        )
    of = "nodes" if settings.between_nodes else "CPUs"
    wanted = f"{settings.ranks} ranks for {len(settings.nodes) or len(settings.cpus)} {of}"
    return f"{launcher} started {size} ranks, not {wanted}; write {{ranks}} for their number in mpi.launcher"


def _pin(cpu: int) -> None:
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as error:
        raise RefusalError(
            f"a rank cannot be pinned to CPU {cpu} ({error.strerror}); let the launcher bind to none"
        ) from error
    if _current_cpu() != cpu:
        raise RefusalError(f"a rank that is pinned to CPU {cpu} runs on CPU {_current_cpu()}")


def _current_cpu() -> int:
    return int(ctypes.CDLL(None).sched_getcpu())


def _last_words(sentence: str) -> None:
    """A sentence that the launcher's side ends with."""
    print(f"linktest-refused: {sentence}", file=sys.stderr, flush=True)


def _sleepily(request: Any, scribe: Scribe | None) -> None:
    """Wait for an MPI request without spinning, at first for a short time; rank 0 takes results meanwhile."""
    nap = _NAP_S
    while not request.Test():
        if scribe is not None:
            scribe.receive()
        time.sleep(nap)
        nap = min(1.5 * nap, _LONGEST_NAP_S)


# --- the order of things ---


def steps(
    settings: Settings, seed: int, done: set[records.Key], name: Callable[[int], int], passes: range | None = None
) -> list[Step]:
    """All rounds of all sizes and of all (or these) passes without what is `done`; `name` gives a rank's number in
    records."""
    found = []
    for number in range(settings.passes) if passes is None else passes:
        for size in settings.sizes:
            key = size if len(settings.sizes) > 1 else 0
            mine = {(a, b) for p, s, a, b in done if (p, s) == (number, key)}
            rounds = settings.rounds(seed + number)
            ranks = {pair: _named(pair, settings, name) for one in rounds for pair in one}
            left = schedule.without(rounds, {pair for pair, named in ranks.items() if named in mine})
            found += [Step(number, size, one, settings.parallel) for one in left]
    return found


def _named(pair: tuple[int, int], settings: Settings, name: Callable[[int], int]) -> tuple[int, int]:
    a, b = name(pair[0]), name(pair[1])
    return (a, b) if settings.directed or a < b else (b, a)


def run(settings: Settings) -> None:
    """A rank's whole life."""
    rank = Rank(settings)

    def name(number: int) -> int:
        return number if settings.by_rank else settings.cpus[number]

    scribe = Scribe(rank, settings, name) if rank.rank == 0 else None
    seed, done = rank.comm.bcast((scribe.seed, set(scribe.former.done)) if scribe else None, 0)
    work = steps(settings, seed, done, name)
    if scribe:
        scribe.begin(sum(len(step.pairs) for step in work))
    _measure_all(rank, work, scribe)
    passes = settings.passes
    while rank.comm.bcast(scribe is not None and scribe.seconds < settings.min_seconds, 0):
        more = steps(settings, seed, done, name, range(passes, passes + 1))
        if scribe:
            scribe.go_on(sum(len(step.pairs) for step in more))
        _measure_all(rank, more, scribe)
        work, passes = [*work, *more], passes + 1
    looks = rank.comm.bcast(scribe.slowest(work) if scribe else None, 0)
    _measure_all(rank, looks, scribe)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seen = rank.comm.gather(Seen(rank.moved(), usage.ru_nvcsw, usage.ru_nivcsw, rank.took_ns, rank.lost_ns), 0)
    if scribe:
        scribe.end(seen or [])


def _measure_all(rank: Rank, work: list[Step], scribe: Scribe | None) -> None:
    """Every step, on every rank; returns when all are done.

    Every rank knows the order. Pairs at once begin by a barrier in C; of pairs one after another each hands a baton to
    both ranks of the next, and all other ranks sleep.
    """
    if scribe is not None:
        scribe.expect(work)
    load = bytearray(rank.settings.load * rank.size), bytearray(rank.settings.load * rank.size)
    former: tuple[int, int] | None = None
    for at, step in enumerate(work):
        if rank.settings.load:
            _all_to_all(rank, *load, scribe)
        if step.together:
            _take(rank, at, step, next((pair for pair in step.pairs if rank.rank in pair), None), scribe)
            former = None
        else:
            following = work[at + 1] if at + 1 < len(work) else None
            after = following.pairs[0] if following is not None and not following.together else None
            chain = [former, *step.pairs, after]
            for before, pair, then in zip(chain, chain[1:], chain[2:], strict=False):
                if pair is None or rank.rank not in pair:
                    continue
                if before is not None and before[0] != rank.rank:
                    _sleepily(rank.comm.Irecv(bytearray(0), before[0], _BATON), scribe)
                _take(rank, at, step, pair, scribe)
                if rank.rank == pair[0]:
                    for other in then or ():
                        if other != rank.rank:
                            rank.comm.Send(bytearray(0), other, _BATON)
            former = step.pairs[-1]
        if scribe is not None:
            scribe.collect(at)
    _sleepily(rank.comm.Ibarrier(), scribe)


def _all_to_all(rank: Rank, sent: bytearray, received: bytearray, scribe: Scribe | None) -> None:
    """The load between two rounds, which must not begin before the last pair of a round has ended; rank 0 times it."""
    _sleepily(rank.comm.Ibarrier(), scribe)
    began = time.perf_counter()
    rank.comm.Alltoall([sent, rank.mpi.BYTE], [received, rank.mpi.BYTE])
    if scribe is not None:
        scribe.alltoall_s.append(time.perf_counter() - began)


def _take(rank: Rank, at: int, step: Step, pair: tuple[int, int] | None, scribe: Scribe | None) -> None:
    """This rank's part of the step number `at`: measured, and its numbers sent to rank 0."""
    if pair is None:
        rank.rest(step.size)
        return
    result = rank.measure(*pair, step.size, step.together)
    if result is not None and scribe is None:
        rank.comm.send((at, *pair, result), 0, _RESULT)
    elif result is not None and scribe is not None:
        scribe.take(at, *pair, result)


class Scribe:
    """Rank 0's second task: the record file, progress, and which pairs are looked at again."""

    def __init__(self, rank: Rank, settings: Settings, name: Callable[[int], int]) -> None:
        self._rank, self._settings, self._name = rank, settings, name
        identity = records.identity(settings, rank.host)
        self.former = records.read(settings.out, identity)
        self.seed = next(
            (s for s in (self.former.seed, settings.seed) if s is not None), int.from_bytes(os.urandom(4), "big")
        )
        self._identity = identity
        self._writer = records.Writer(settings.out, self.former)
        self._pending: list[dict[str, Any]] = []
        self._work: list[Step] = []
        self._missing: list[int] = []
        self._left = self._total = 0
        self._at = {cpu: i for i, cpu in enumerate(settings.cpus)}
        #: What each all-to-all between rounds took on this rank.
        self.alltoall_s: list[float] = []

    def begin(self, total: int) -> None:
        """Write the header; `total` pairs are to be measured."""
        self._total = self._left = total
        self._began = self._shown = self._written = time.monotonic()
        self._steal = _steal_s([cpu for host, cpu in self._rank.places if host == self._rank.host])
        self._writer.add([self._header()])
        self._say()

    @property
    def seconds(self) -> float:
        """How long it has been measuring."""
        return time.monotonic() - self._began

    def go_on(self, more: int) -> None:
        """So many pairs more are to be measured."""
        self._total, self._left = self._total + more, self._left + more

    def _header(self) -> dict[str, Any]:
        settings, rank = self._settings, self._rank
        sizes = settings.sizes
        what: dict[str, Any] = {"home": None, "message_bytes": sizes[0]}
        if len(sizes) > 1:
            values = ("latency_ns", "ci_low_ns", "ci_high_ns", "min_ns", "median_ns", "p99_ns")
            what = {"cells": {"dims": ["a", "b", "size_bytes"], "values": dict.fromkeys(values, "ns")}}
        pages = {"bytes": 2 * max(sizes), "bound": False, "verified_by": "nothing", "pages": "base"}
        return {
            "record": "header",
            "schema": 1,
            "segment": self.former.segments,
            **self._identity,
            "quantity": "message",
            "unit": "ns",
            "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "seed": self.seed,
            "start_time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "compiler": rank.timed.compiler,
            "clock": {"source": "clock_gettime", "hz": 1e9, "step_ns": 1.0},
            "passes": settings.passes,
            **what,
            "batches": settings.samples,
            "directed": settings.directed,
            "pinned_by": "native",
            "placement": {} if settings.in_gpu else {"buffers": pages},
            "timed_by": rank.timed.name,
            "transport": rank.transport(),
            "parallel": settings.ranks // 2 if settings.parallel else 1,
            **({"ranks": [list(place) for place in rank.places]} if settings.by_rank else {}),
        }

    def expect(self, work: list[Step]) -> None:
        """These steps come next."""
        self._work, self._missing = work, [len(step.pairs) for step in work]

    def take(self, at: int, a: int, b: int, result: dict[str, Any]) -> None:
        """A pair's numbers. A result carries the number `at` of its step: that of the next may arrive before it."""
        settings, step = self._settings, self._work[at]
        named = _named((a, b), settings, self._name)
        record: dict[str, Any] = {"record": "again" if step.again else "pair", "a": named[0], "b": named[1]}
        if len(settings.sizes) > 1:
            record |= {"record": "cell", "size_bytes": step.size}
        else:
            record["home"] = -1
        record |= {"pass": step.number, **result}
        if step.again:
            record["reason"] = "slowest"
        elif len(settings.sizes) > 1:
            del record["round_trips"]
        if settings.oversubscribed:
            record["flags"] = [*record["flags"], "oversubscribed"]
        self._pending.append(record)
        self._missing[at] -= 1
        if not step.again:
            self._left -= 1
            size = step.size if len(settings.sizes) > 1 else 0
            self.former.done[step.number, size, *named] = record["latency_ns"]

    def collect(self, at: int) -> None:
        """Receive what is missing of the step number `at`, and write all there is."""
        while self._missing[at]:
            self.receive()
            time.sleep(_NAP_S)
        self._write()

    def receive(self) -> None:
        """Take the results that have arrived, and write them once a second."""
        status = self._rank.mpi.Status()
        while self._rank.comm.iprobe(tag=_RESULT, status=status):
            self.take(*self._rank.comm.recv(source=status.source, tag=_RESULT))
        if self._pending and time.monotonic() - self._written > 1:
            self._write()

    def _write(self) -> None:
        self._writer.add(self._pending)
        self._pending, self._written = [], time.monotonic()
        if self._written - self._shown > 5:
            self._say()

    def _say(self) -> None:
        """Progress and the time left."""
        self._shown = time.monotonic()
        done = self._total - self._left
        left = f", {(self._shown - self._began) / done * self._left:.0f} s left" if done else ""
        share = 100 * done / self._total if self._total else 100
        print(f"linktest: pairs: {done} of {self._total} ({share:.0f}%){left}", file=sys.stderr, flush=True)

    def slowest(self, work: list[Step]) -> list[Step]:
        """Steps of one pair each for the slowest pairs, by their lowest time over passes."""
        settings = self._settings
        best: dict[tuple[int, int], float] = {}
        for (_, _, a, b), time_ns in self.former.done.items():
            best[a, b] = min(time_ns, best.get((a, b), time_ns))
        slow = sorted(best, key=lambda pair: -best[pair])[: settings.retest]
        rank = (lambda number: number) if settings.by_rank else self._at.__getitem__
        return [
            Step(settings.passes + i, settings.sizes[0], [(rank(a), rank(b))], together=False, again=True)
            for i, (a, b) in enumerate(slow)
            if (a, b) not in self.former.again
        ]

    def end(self, seen: list[Seen]) -> None:
        """Write the trailer. Raises RefusalError where a rank was moved meanwhile."""
        moved = [place for place, of_rank in zip(self._rank.places, seen, strict=True) if of_rank.moved]
        if moved:
            host, cpu = moved[0]
            raise RefusalError(f"the rank on CPU {cpu} of {host} was moved to another CPU; let nothing else pin it")
        mine = [cpu for host, cpu in self._rank.places if host == self._rank.host]
        self._say()
        self._writer.end(
            {
                "record": "trailer",
                "elapsed_s": round(time.monotonic() - self._began, 3),
                "cells" if len(self._settings.sizes) > 1 else "pairs": len(self.former.done),
                "voluntary_switches": sum(of_rank.voluntary for of_rank in seen),
                "involuntary_switches": sum(of_rank.involuntary for of_rank in seen),
                "steal_s": round(max(0.0, _steal_s(mine) - self._steal), 2),
                **_lost_share(seen),
                **self._alltoall(),
                "complete": True,
            }
        )

    def _alltoall(self) -> dict[str, Any]:
        """The median all-to-all, where there were any."""
        if not self.alltoall_s:
            return {}
        seconds = float(f"{median(self.alltoall_s):.6g}")
        return {"alltoall_s": seconds, "alltoall_bytes": self._settings.load, "alltoall_ranks": self._rank.size}


def _lost_share(seen: list[Seen]) -> dict[str, float]:
    """The share of the samples' time in which their ranks did not run; nothing where all of them slept."""
    took_ns = sum(of_rank.took_ns for of_rank in seen)
    return {"lost_share": round(sum(of_rank.lost_ns for of_rank in seen) / took_ns, 5)} if took_ns else {}


def _steal_s(cpus: list[int]) -> float:
    """Time that a hypervisor has taken from these CPUs of this node so far."""
    names = {f"cpu{cpu}" for cpu in cpus}
    rows = (line.split() for line in Path("/proc/stat").read_text().splitlines())
    return sum(int(row[8]) for row in rows if row[0] in names and len(row) > 8) / os.sysconf("SC_CLK_TCK")


def main(settings: Settings) -> int:
    """Run as a rank; what goes wrong on one ends all."""
    try:
        run(settings)
    except RefusalError as error:
        _last_words(str(error))
        _abort(error.code)
        return error.code
    except ImportError as error:
        _last_words(f"mpi4py does not start ({error}); install an Open MPI that it can load (libopenmpi3)")
        return 3
    except Exception as error:  # noqa: BLE001 a rank that ended quietly would leave the others waiting
        _last_words(f"{type(error).__name__}: {error}")
        _abort(1)
        return 1
    return 0


def _abort(code: int) -> None:
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized():
        time.sleep(0.5)  # until the launcher has passed on what this rank said
        mpi.COMM_WORLD.Abort(code)
