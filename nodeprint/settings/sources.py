"""Files of nodeprint outside this package: kernels, workflow, profiles, configuration and reports."""

from __future__ import annotations

import shutil
from pathlib import Path

from nodeprint import files
from nodeprint.errors import CannotWriteError, NodeprintError, printable

#: What `copy` takes along.
ROOMS = ("kernels", "workflow", "ansible", "profiles", "config", "reports", "environment.yml")


def folder() -> Path:
    """The directory of these files: in the installed package, else in the checkout. Raises NodeprintError."""
    package = Path(__file__).parents[1]
    for place in (package / "_sources", package.parent):
        if (place / "kernels" / "node-run").is_file():
            return place
    raise NodeprintError(
        "this installation has no kernels' sources and no workflow", advice="install nodeprint from its wheel"
    )


def kernels() -> Path:
    """The directory of the built kernels; static ones are in `static/` below it. Raises NodeprintError without any."""
    built = folder() / "kernels" / "build"
    if any((place / "coherence").is_file() for place in (built, built / "static")):
        return built
    advice = "install a wheel that has them, or a C compiler and then nodeprint again; in a checkout: make kernels"
    raise NodeprintError("this installation has no kernels", advice=advice)


def copy(to: Path) -> Path:
    """Copy them into the new or empty directory `to`, without what was built. Raises NodeprintError where it holds
    something or cannot be written; returns it.
    """
    place = folder()
    try:
        files.make_directories(to)
        if any(to.iterdir()):
            raise NodeprintError("is not empty", where=to, advice="name a new directory")
        for room in ROOMS:
            if (place / room).is_dir():
                shutil.copytree(place / room, to / room, ignore=shutil.ignore_patterns("build", "__pycache__"))
            else:
                shutil.copy2(place / room, to / room)
    except OSError as error:
        why = error.strerror or printable(str(error.args[0][0][2]), 200)  # shutil.Error: of the first of many files
        advice = "make room or make the directory writable, or name a new directory"
        raise CannotWriteError(f"cannot be written ({why})", where=to, advice=advice) from error
    return to
