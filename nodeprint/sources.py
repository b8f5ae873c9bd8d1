"""What belongs to nodeprint beside this package: kernels, workflow, profiles, configuration and reports."""

from __future__ import annotations

import shutil
from pathlib import Path

from nodeprint.errors import NodeprintError

#: What `copy` takes along.
ROOMS = ("kernels", "workflow", "ansible", "profiles", "config", "reports", "environment.yml")


def folder() -> Path:
    """The folder that holds them: in an installed package its own, else the checkout's. Raises NodeprintError."""
    package = Path(__file__).parent
    for place in (package / "_sources", package.parent):
        if (place / "kernels" / "node-run").is_file():
            return place
    raise NodeprintError(
        "this installation has no kernels' sources and no workflow", advice="install nodeprint from its wheel"
    )


def copy(to: Path) -> Path:
    """Copy them into the new or empty folder `to`, without what was built. Raises NodeprintError where it holds
    something or cannot be written; returns it.
    """
    place = folder()
    try:
        to.mkdir(parents=True, exist_ok=True)
        if any(to.iterdir()):
            raise NodeprintError("is not empty", where=to, advice="name a new folder")
        for room in ROOMS:
            if (place / room).is_dir():
                shutil.copytree(place / room, to / room, ignore=shutil.ignore_patterns("build", "__pycache__"))
            else:
                shutil.copy2(place / room, to / room)
    except OSError as error:
        raise NodeprintError(f"cannot be written ({error.strerror})", where=to, advice="name a new folder") from error
    return to
