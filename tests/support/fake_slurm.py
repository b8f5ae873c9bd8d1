"""A Slurm that answers like one and runs nothing: `fake_slurm.sh` under the names of Slurm's commands."""

import os
from pathlib import Path

COMMANDS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo")


def environment(folder: Path) -> dict[str, str]:
    """Environment variables with which these commands are found first, and look into `folder`, which must exist."""
    commands = folder / "bin"
    commands.mkdir()
    for name in COMMANDS:
        (commands / name).symlink_to(Path(__file__).with_suffix(".sh").absolute())
    return {"FAKE_SLURM": str(folder), "PATH": f"{commands}:{os.environ['PATH']}"}
