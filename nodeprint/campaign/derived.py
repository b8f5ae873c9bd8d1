"""The directory with data derived from a campaign's records: it can be removed at any time, and is regenerated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

#: Of all that is in it, and of the rules that it is made by: one more where either changes.
SCHEMA = 15

FOLDER = "store"
#: The fleet as arrays; what is read of each node for itself; what came of each node, which the workflow waits for.
FLEET, NODES, STATES = f"{FOLDER}/fleet", f"{FOLDER}/nodes", f"{FOLDER}/fleet.json"
#: Characters of a name that is made of a metric's; file systems take 255 bytes with what follows it.
_LONGEST_STEM = 100
#: What came of a node. `wrong`: a benchmark of a table or a site's own command found its own result wrong on it.
State = Literal["measured", "refused", "not measured", "wrong"]


def file_stem(measurement: str) -> str:
    """A file name for a measurement. A metric of a foreign table may contain slashes, or be longer than a file name."""
    return re.sub(r"[^A-Za-z0-9_.-]|^\.", "_", measurement)[:_LONGEST_STEM]


def values_file(folder: Path, measurement: str, number: int) -> Path:
    """The file with the values of a measurement; the number alone tells measurements apart."""
    return folder / f"{file_stem(measurement)}-{number}.npy"
