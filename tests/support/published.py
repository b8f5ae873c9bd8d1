"""What is known of machines whose matrices were published with core-to-core-latency, by the name of the file.

The sources are the data's README and the vendors' pages of the processors: cores of a CCX, place of the sibling. A
level that is not listed is not there to find.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nodeprint.readers import matrix_file
from tests.support.latencies import Labels, Made


def _parts(cpus: int, sibling: int, **cores: int) -> dict[str, Labels]:
    """Parts of `cpus` threads whose siblings are `sibling` numbers apart (0: none), of so many cores each."""
    number = np.arange(cpus)
    core = number if not sibling else number // 2 if sibling == 1 else number % sibling
    parts = {level: core // size for level, size in cores.items()}
    return parts | ({"smt": core} if sibling else {})


_MACHINES: dict[str, dict[str, Labels]] = {
    "AMD EPYC 7773X": _parts(128, 64, ccx=8, quadrant=16),
    "AMD EPYC 7R13 48-Core Processor": _parts(192, 96, ccx=8, socket=48),
    "Dual AMD EPYC 7742 64-Core Processor": _parts(256, 128, ccx=4, quadrant=16, socket=64),
    "AMD Ryzen Threadripper 3960X, 3.80GHz, 24 Cores, Zen 2, 3rd Gen, 2019-Q4": _parts(48, 24, ccx=3, quadrant=6),
    "AMD Ryzen Threadripper 1950X": _parts(32, 16, ccx=4, quadrant=8),
    "AMD Ryzen 9 5950X @ 3.40 GHz": _parts(32, 16, ccx=8),
    "AMD Ryzen 9 5900X": _parts(24, 1, ccx=6),
    "AMD Ryzen 9 7950X": _parts(32, 1, ccx=8),
    "AMD Ryzen 7 2700X Eight-Core Processor": _parts(16, 1, ccx=4),
    "AMD Ryzen 7 5700X": _parts(16, 8),
    "AMD Ryzen 7 5800U": _parts(16, 1),
    "AMD Ryzen 9 5900HX @ 3.3 GHz": _parts(16, 1),
    "Dual Intel(R) Xeon Gold 6242 @ 2.8GHz": _parts(64, 32, socket=16),
    "Dual Intel(R) Xeon(R) CPU E5-2630 v4 @ 2.20GHz": _parts(40, 20, socket=10),
    "Dual Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz": _parts(56, 28, socket=14),
    "Dual Intel(R) Xeon(R) CPU E5-2690 0 @ 2.90GHz": _parts(32, 16, socket=8),
    "Dual Intel(R) Xeon(R) CPU X5650  @ 2.67GHz": _parts(24, 12, socket=6),
    "Intel(R) Xeon(R) CPU E5-2695 v4 @ 2.10GHz": _parts(72, 36, socket=18),
    "Intel(R) Xeon(R) Platinum 8275CL CPU @ 3.00GHz": _parts(96, 48, socket=24),
    "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz": _parts(128, 64, socket=32),
    "Intel(R) Xeon Gold 6242 @ 2.8GHz": _parts(32, 16),
    "AWS Graviton2": _parts(64, 0),
    "AWS Graviton3": _parts(64, 0),
    "Intel(R) Core(TM) i5-4590 CPU @ 3.30GHz": _parts(4, 0),
    "Loongson 3A5000HV, 2.5GHz, 4 Cores, 2021-Q3": _parts(4, 0),
    "Intel(R) Xeon Phi(TM) CPU 7210 @ 1.30GHz": _parts(64, 0, group=2),
    "HiSilicon Kunpeng 920-6426 @ 2.6GHz": _parts(64, 0, group=32),
    "Dual IBM Power7 8 cores@3.3 GHz 2010-Q1": _parts(16, 0, socket=8),
    "Dual Sun-Oracle SPARC T4 8 cores@2.85 GHz": _parts(16, 0, socket=8),
    "Apple M1 Pro": {"group": np.array([0, 0, 1, 1, 1, 2, 2, 2])},
    "Intel Core i9-12900K": {
        "smt": np.concatenate([np.repeat(np.arange(8), 2), np.arange(8, 16)]),
        "group": np.concatenate([np.repeat(np.arange(8), 2), np.repeat([8, 9], 4)]),
    },
}
#: The two halves: thresholds may be chosen on the first and are reported on the second.
CHOSEN_ON = sorted(_MACHINES)[::2]
HELD_OUT = sorted(_MACHINES)[1::2]
#: Two-socket EPYCs that a tool measured with one line for all pairs.
ARTEFACT = ("AMD EPYC 7R13 48-Core Processor", "Dual AMD EPYC 7742 64-Core Processor")


def machine(folder: Path, name: str) -> Made:
    """The published matrix with what is known of it; `folder` holds the CSV files."""
    cores = matrix_file.read_output(folder / f"{name}.csv").core_matrix()
    return Made(cores.ns, _MACHINES[name])
