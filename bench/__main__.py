"""All benchmarks one after another, each with its table: `make bench`, or `python -m bench [NAME ...]` for some."""

from __future__ import annotations

import argparse
import subprocess
import sys

from bench.table import ROOT

#: Names and arguments; `python -m bench.NAME --help` shows more.
ALL = {
    "coherence": (),
    "lines": (),
    "fresh": (),
    "numa": (),
    "peers": (),
    "remap": (),
    "faults": (),
    "plans": (),
    "structure": (),
    "verdict": (),
    "calibration": (),
    "linktest": (),
    "slurm": (),
    "iodie": (),
    "report": (),
    "fleet": (),
    "scale": (),
    "history": (),
}


def main() -> int:
    """Run them; 1 where one could not be run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)}")
    names = parser.parse_args().names or list(ALL)
    unknown = [name for name in names if name not in ALL]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(ALL)}")
    ended = [
        subprocess.run([sys.executable, "-m", f"bench.{name}", *ALL[name]], cwd=ROOT, check=False).returncode
        for name in names
    ]
    return int(any(ended))


if __name__ == "__main__":
    sys.exit(main())
