"""The launcher that a configuration names: one of nodeprint's own, or one that another package adds."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

from nodeprint import addons
from nodeprint.campaign.launchers.launcher import Launcher, Scheduler
from nodeprint.errors import NodeprintError
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config


@cache
def launcher(name: str) -> Launcher:
    """The launcher that is called `name` in `launch`. Raises NodeprintError if it is unknown or cannot be used."""
    made = addons.load_one(addons.LAUNCHERS, name)
    advice = "install its package again, or choose another"
    if not (inspect.isclass(made) and issubclass(made, Launcher)):
        raise NodeprintError(f"{name} is no Launcher", key="launch", advice=advice)
    stated = [key for base in made.__mro__ for key in inspect.get_annotations(base) if not hasattr(made, key)]
    if lacking := sorted(made.__abstractmethods__) or stated:
        raise NodeprintError(f"the launcher {name} has no {lacking[0]}", key="launch", advice=advice)
    return made()


def check(config: Config, path: Path) -> None:
    """Check the files that a configuration and its launcher need. Raises NodeprintError naming `path`, the
    configuration."""
    named = launcher(config.launch)
    named.check(config, path)
    configuration.check_files(config, path, is_here=named.is_here, shares_directory=named.shares_directory)


def scheduler(name: str) -> Scheduler:
    """The launcher `name`, which submits jobs. Raises NodeprintError if it does not."""
    named = launcher(name)
    if not isinstance(named, Scheduler):
        raise NodeprintError(f"`launch: {name}` submits no jobs", key="launch", advice="measure with `make run`")
    return named
