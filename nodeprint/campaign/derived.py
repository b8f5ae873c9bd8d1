"""The one folder of a campaign that is made of its records: it may be removed at any time, and is made again."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

#: Of all that is in it, and of the rules that it is made by: one more where either changes.
SCHEMA = 12

FOLDER = "store"
#: The fleet as arrays; what is read of each node for itself; what came of each node, which the workflow waits for.
FLEET, NODES, STATES = f"{FOLDER}/fleet", f"{FOLDER}/nodes", f"{FOLDER}/fleet.json"
#: What came of a node. `wrong`: of a table alone, that a benchmark found its own result wrong on it.
State = Literal["measured", "refused", "not measured", "wrong"]


def values_file(folder: Path, measurement: str, number: int) -> Path:
    """Where the values of a quantity are."""
    return folder / f"{measurement}-{number}.npy"
