"""The configuration of a campaign: read and checked; and the plan that follows from it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nodeprint import addons, reading
from nodeprint.errors import NodeprintError, nearest, printable
from nodeprint.settings import checked_yaml
from nodeprint.settings.config_file import COMMAND, Config, SiteMeasurement
from nodeprint.settings.measurements import METRIC_WORDS, imported, measurements, terms

#: Options that define a measurement, or that node-run sets.
_NOT_ARGUMENTS = ("--op", "--mode", "--out", "--job", "--run", "--plan", "--help", "--launcher", "--nodes", "--ranks")
#: Arguments end up on a command line of node-run: words of option letters, numbers, names and lists.
_WORD = re.compile(r"[A-Za-z0-9_.,:=/+%@-]+")
#: What a directory or a package with measurements of the site has.
_SITE_FILE = "measurements.yaml"


def load(path: Path) -> Config:
    """Read a configuration. Raises NodeprintError naming the file and the key's path."""
    content = checked_yaml.read(path)
    if not content:
        advice = "write at least one key, such as `campaign: main`; all others have their defaults"
        raise NodeprintError("the file has no key", where=path, advice=advice)
    return checked(content, path)


def checked(content: dict[str, Any], path: Path | str) -> Config:
    """Return the content of a configuration as its type. Raises NodeprintError naming `path` and the key's path."""
    config = checked_yaml.typed(_with_site_file(content, path), Config, path)
    if "measure" not in content:
        by_default = (name for name, known in measurements().items() if config.preset in known.by_default)
        config = replace(config, measure=tuple(by_default))
    if not addons.has(addons.LAUNCHERS, config.launch):
        raise NodeprintError(addons.unknown(addons.LAUNCHERS, config.launch), where=path, key="launch")
    _check_rack_pattern(config.slurm.rack_pattern, path)
    _check_site_measurements(config.measurements, content, path)
    _check_measure(config, path)
    _check_arguments(config.arguments, path)
    return config


def kept(campaign: Path) -> Config:
    """The configuration of a campaign's newest call, from its directory. Raises NodeprintError without one."""
    path = campaign / "config.yaml"
    return checked_yaml.typed(checked_yaml.read(path), Config, path)


def again(campaign: Path, nodes: str) -> str:
    """The call that measures a campaign's `nodes` (a list as of Slurm) again as they were measured.

    It names the configuration in the campaign's directory, if any, which has the preset of the newest call. The
    project's `config/config.yaml` may have another preset, or name another campaign.
    """
    try:
        own = f" CONFIG={campaign_folder(kept(campaign)) / 'config.yaml'}"
    except NodeprintError:
        own = ""
    return f"make run{own} NODES={shlex.quote(nodes)}"


def _with_site_file(content: dict[str, Any], path: Path | str) -> dict[str, Any]:
    """The content of a configuration with the measurements of the file that its key `measurements` names."""
    named = content.get("measurements")
    if not isinstance(named, str):
        return content
    file = _site_file(named)
    if not file.is_file():
        advice = f"name a {_SITE_FILE}, its directory or an installed package's entry point, or write the list here"
        raise NodeprintError(f"{file} is not there", where=path, key="measurements", advice=advice)
    own = checked_yaml.read(file)
    if set(own) != {"measurements"}:
        raise NodeprintError("has not the one key `measurements`", where=file, advice="write the list under this key")
    checked_yaml.typed(own, Config, file)
    return {**content, **own}


def _site_file(named: str) -> Path:
    """The file of a path, a directory or the name of an installed package's entry point."""
    if addons.has(addons.MEASUREMENTS, named):
        return Path(addons.load_one(addons.MEASUREMENTS, named).__file__).parent / _SITE_FILE
    path = Path(named)
    return path / _SITE_FILE if path.is_dir() else path


def _check_site_measurements(own: Sequence[SiteMeasurement], content: Mapping[str, Any], path: Path | str) -> None:
    """See that each of the site's measurements has a name of its own, a command and a known reader."""
    named = content.get("measurements")
    where, names = (_site_file(named) if isinstance(named, str) else path), [of.name for of in own]
    known = _readers() if own else ()
    for number, of in enumerate(own):
        if of.name in names[:number]:
            key, what, advice = "name", f"{of.name} appears twice", "rename one of the two"
        elif of.name in {*measurements(), *imported(), *terms(), *METRIC_WORDS}:
            key, what, advice = "name", f"nodeprint has a measurement or metric {of.name}", "choose another name"
        elif not of.command.strip() or "\0" in of.command:
            key, what, advice = "command", "no command", "write what `sh -c` is to run"
        elif known and of.reader not in known:
            key, what = "reader", f"unknown reader {printable(repr(of.reader), 60)}"
            advice = f"{nearest(of.reader, known)} known are {', '.join(known)}".strip()
        else:
            continue
        raise NodeprintError(what, where=where, key=f"measurements[{number}].{key}", advice=advice)


def _readers() -> Sequence[str]:
    """The names of readers of values; none where Snakemake alone plans a clone and cannot load them."""
    try:
        names: Sequence[str] = addons.load_one(addons.SITE_VALUES, "names")()
    except ModuleNotFoundError:
        return ()
    return names


def _check_measure(config: Config, path: Path | str) -> None:
    known = sorted({*measurements(), *(of.name for of in config.measurements)})
    for number, name in enumerate(config.measure):
        if name not in known:
            what = f"unknown measurement {printable(repr(name), 60)}"
            advice = f"{nearest(name, known)} known are {', '.join(known)}".strip()
        elif name in config.measure[:number]:
            what, advice = f"{name} appears twice", "remove one of the two"
        else:
            continue
        raise NodeprintError(what, where=path, key=f"measure[{number}]", advice=advice)
    if not config.measurements and not _planned(replace(config, arguments={}), "node"):
        raise NodeprintError(
            f"preset {config.preset} leaves out every measurement of nodes asked for",
            where=path,
            key="preset",
            advice="choose a longer preset or other measurements",
        )


def _check_arguments(arguments: Mapping[str, str], path: Path | str) -> None:
    known = measurements()
    for name, given in arguments.items():
        words = given.split()
        if name not in known:
            what, advice = "no such measurement", f"{nearest(name, known)} known are {', '.join(known)}".strip()
        elif bad := [word for word in words if not _WORD.fullmatch(word)]:
            what, advice = f"{printable(repr(bad[0]), 60)} cannot be an argument", "see the kernel's --help"
        elif fixed := [word for word in words if word in _NOT_ARGUMENTS]:
            what = f"{fixed[0]} cannot be chosen here"
            advice = "leave it out; another operation is a measurement of its own (config/README.md)"
        else:
            continue
        raise NodeprintError(what, where=path, key=f"arguments.{printable(name, 60)}", advice=advice)


def _check_rack_pattern(pattern: str, path: Path | str) -> None:
    """See that a rack is found by a regular expression with one group. Raises NodeprintError naming `path`."""
    advice = "put what names the rack in one pair of brackets, as in (r[0-9]+)n[0-9]+"
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        what = f"{printable(repr(pattern), 60)} is no regular expression ({error})"
        raise NodeprintError(what, where=path, key="slurm.rack_pattern", advice=advice) from error
    if pattern and groups != 1:
        raise NodeprintError("must have exactly one group", where=path, key="slurm.rack_pattern", advice=advice)


def check_files(config: Config, path: Path, *, is_here: bool, shares_directory: bool) -> None:
    """Check that the files of `acceptance`, `site.logo` and `site.setup` exist.

    `site.setup` must exist on this machine if it is measured (`is_here`) or the path is relative. A relative path needs
    nodes that see the campaign's own directory (`shares_directory`). Raises NodeprintError naming `path`, the
    configuration.
    """
    if not Path(config.acceptance).is_file():
        advice = "name a file (an empty one changes nothing), or take config/acceptance.yaml from `nodeprint sources`"
        raise NodeprintError(f"{config.acceptance} is not there", where=path, key="acceptance", advice=advice)
    logo = config.site.logo
    if logo and not Path(logo).is_file():
        advice = "name a PNG or SVG file, or leave it empty"
        raise NodeprintError(f"{logo} is not there", where=path, key="site.logo", advice=advice)
    setup = config.site.setup
    if setup and not shares_directory and not Path(setup).is_absolute():
        advice = "name the file by its full path on the nodes"
        raise NodeprintError("the nodes do not see this directory", where=path, key="site.setup", advice=advice)
    if setup and (is_here or not Path(setup).is_absolute()) and not Path(setup).is_file():
        advice = "name a file that can be sourced, or leave it empty"
        raise NodeprintError(f"{setup} is not there", where=path, key="site.setup", advice=advice)


def is_host_list(inventory: str) -> bool:
    """Whether an inventory is a list of hosts, as in cn[01-04],gpu7, and no path. A single host ends with a comma."""
    return any(sign in inventory for sign in ",[")


def campaign_folder(config: Config) -> Path:
    """The directory of the configuration's campaign."""
    return Path(config.results, config.campaign)


def plan(config: Config) -> str:
    """plan.tsv: a line per measurement, with its name, kernel, arguments and number of runs (docs/formats.md).

    A measurement whose preset is null takes too long for it and is left out.
    """
    lines = []
    for name, arguments in _planned(config, "node"):
        runs = config.runs * runs_factor(name, config.preset)
        lines.append(f"{name}\t{measurements()[name].kernel}\t{arguments}\t{runs}\n")
    own = [of for of in config.measurements if of.name in config.measure] or config.measurements
    lines += [f"{of.name}\t{COMMAND}\t{_command_arguments(of)}\t{config.runs}\n" for of in own]
    return "".join(lines)


#: The option of the kernel `command` that affects no value: results with another limit are compared.
_LIMIT = re.compile(r" --limit \d+$")


def _command_arguments(of: SiteMeasurement) -> str:
    """The command as one word, as node-run splits arguments at blanks."""
    return f"--command {quote(of.command, safe='/:=,+@;|&<>()$*?[]~!#^{}')} --limit {of.time_limit}"


@dataclass(frozen=True)
class PlanRow:
    """A line of a plan: a measurement, the kernel and arguments it is made by, and how many runs a job makes of it."""

    name: str
    kernel: str
    arguments: str
    runs: int


def read_plan(text: str, runs: int = 1) -> list[PlanRow]:
    """The lines of a plan.tsv; those without a fourth column have `runs` runs."""
    cells = [line.split("\t") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [
        PlanRow(row[0], row[1], row[2] if len(row) > 2 else "", _runs(row[3:], runs)) for row in cells if len(row) > 1
    ]


#: A job makes no more runs of a measurement; each of them has its place in the order of the plan.
_MOST_RUNS = 1000


def _runs(cells: Sequence[str], otherwise: int) -> int:
    number = reading.whole_number(cells[0]) if cells else None
    return otherwise if number is None else min(number, _MOST_RUNS)


def steps(plan: Sequence[PlanRow]) -> list[tuple[int, str]]:
    """Run and measurement in the order in which node-run makes them: runs of each are spread evenly over the job."""
    ordered = sorted(
        (Fraction(run, row.runs), number, run, row.name) for number, row in enumerate(plan) for run in range(row.runs)
    )
    return [(run + 1, name) for _, _, run, name in ordered]


def left_out(config: Config) -> list[str]:
    """Names of requested measurements for which the preset has no time."""
    known = measurements()
    return [name for name in config.measure if name in known and known[name].presets[config.preset] is None]


def fabric_plan(config: Config) -> list[tuple[str, str]]:
    """Names and arguments of measurements between nodes, in one job over all of them."""
    return _planned(config, "fabric")


def _planned(config: Config, scope: str) -> list[tuple[str, str]]:
    planned = []
    known = measurements()
    for name in filter(known.__contains__, config.measure):
        measurement = known[name]
        preset = measurement.presets[config.preset]
        if preset is None or measurement.scope != scope:
            continue
        words = [measurement.arguments, preset, config.arguments.get(name, "")]
        if measurement.kernel == "linktest" and scope == "node" and config.mpi.launcher:
            words.append(f"--launcher {quote(config.mpi.launcher, safe='/:=,+@{}')}")  # one word, blanks as %20
        planned.append((name, " ".join(" ".join(words).split())))
    return planned


def planned(folder: Path) -> dict[str, str]:
    """The rows of the plan.tsv of a campaign or a job; none where there is no plan. Raises NodeprintError where it
    cannot be read."""
    path = folder / "plan.tsv"
    return rows(reading.required(path)) if path.exists() else {}


def rows(plan: str) -> dict[str, str]:
    """The arguments of each measurement of a plan that affect its values, by name."""
    return {
        row.name: _LIMIT.sub("", row.arguments) if row.kernel == COMMAND else row.arguments for row in read_plan(plan)
    }


def plans_apart(before: Path, after: Path) -> dict[str, tuple[str, str]]:
    """Measurements that two campaigns made with other arguments, and these arguments."""
    old, new = planned(before), planned(after)
    return {name: (old[name], new[name]) for name in old if name in new and new[name] != old[name]}


def runs_factor(name: str, preset: str) -> int:
    """How many runs a job makes of a measurement for each that the configuration asks for."""
    return measurements()[name].runs.get(preset, 1)
