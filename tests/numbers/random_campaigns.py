"""python -m tests.numbers.random_campaigns COUNT --seed SEED: numbers and claims without a source in new campaigns.

Each campaign is drawn by a seed, so nobody has read its pages before.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator

from tests.golden.recording import of_stage
from tests.golden.stage import DECIDING, MACHINES, Stage
from tests.numbers import check

#: Defects that are drawn with a size of either sign, and others, by what follows the node's name.
_SIZED = (
    *("core {n}", "half-row {n}", "core-clock {n}", "global", "fabric", "intermittent core {n}", "ccd 0", "ccd-port 0"),
    *("memory-channel node 0", "power-limit socket 0", "cooling socket 0", "link q0-q1", "socket 1", "socket-link"),
    *("memory node1-to-node0", "ccd 1 to-others", "memory ccd1-to-node0", "idle-state"),
)
_OTHERS = (
    *("fingerprint microcode=0xa", "missing", "cut", "busy core 1 run 1", "renumbered", "nps 1", "harvest 1"),
    "fragmented node 0 40%",
)
#: The machines that have the part of a defect, where not all have it.
_ON = {
    "link q0-q1": ("sockets", "nps4", "xeon"),
    "memory node1-to-node0": ("sockets", "nps4", "xeon"),
    "socket 1": ("sockets", "xeon"),
    "ccd 1 to-others": ("eight", "sixteen", "sockets", "nps4", "threads", "xeon"),
    "memory ccd1-to-node0": ("eight", "sixteen", "sockets", "nps4", "threads"),
}


def drawn(seed: int) -> Callable[[Stage], None]:
    """The campaign of a seed: machine, nodes, jobs, runs, noise, measurements and defects."""
    generator = random.Random(seed)
    machine = generator.choice(list(MACHINES))
    nodes = generator.choice((1, 2, 3, 5, 6, 8))
    options = {
        "nodes": nodes,
        "jobs": generator.choice((1, 1, 2, 3)),
        "runs": generator.choice((1, 2, 3)),
        "seed": seed,
    }
    options |= {"noise": generator.choice((1, 1, 1, 3))} if nodes > 1 else {}
    measured = generator.choice((DECIDING, DECIDING, ("coherence-cas",), ()))
    defects = [_defect(machine, nodes, generator) for _ in range(generator.randrange(4))]

    def make(stage: Stage) -> None:
        stage.simulate("main", *defects, machine=machine, measured=measured, **options)
        stage.judge()
        stage.run("protocol", "main", "--to", "protocol")

    return make


def _defect(machine: str, nodes: int, generator: random.Random) -> str:
    kind = generator.choice([of for of in (*_SIZED, *_OTHERS) if machine in _ON.get(of, (machine,))])
    size = f" {generator.choice('+-')}{generator.randint(2, 40)}%" if kind in _SIZED else ""
    return f"node{generator.randrange(nodes):03}: {kind.format(n=generator.randrange(4))}{size}"


def without_source(seed: int) -> Iterator[str]:
    """Statements about the campaign of a seed that have no source."""
    made = of_stage(drawn(seed))
    yield from check.without_source(made.artifacts, check.Defects(*made))


def main() -> int:
    """Print the statements without a source by seed, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of the first campaign")
    arguments = parser.parse_args()
    lines = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        for line in without_source(seed):
            lines += 1
            sys.stdout.write(f"seed {seed}: {line.rstrip()}\n")
            sys.stdout.flush()
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
