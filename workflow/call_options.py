"""The options of workflow/run. Each has a variable of make, and five replace a key of the configuration."""

from __future__ import annotations

import argparse
import hashlib
import shlex
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, NoReturn, get_args, get_type_hints
from urllib.parse import quote

import yaml

from nodeprint import addons, files
from nodeprint.campaign import node_lists
from nodeprint.campaign.launchers.launcher_registry import launcher
from nodeprint.errors import NodeprintError
from nodeprint.judge import outcome
from nodeprint.judge.outcome import Kind
from nodeprint.settings import checked_yaml
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config

#: What counts as found if --fail-on is not given.
FOUND = Kind.FOUND
#: The options that replace a key of the configuration; for the last two the launcher says which one.
KEYS = ("campaign", "preset", "launch", "partition", "hosts")
#: The variables of make that a call needs to use an option, as an example.
EXAMPLES = {
    "config": "CONFIG=config/config.yaml",
    "campaign": "CAMPAIGN=main-2",
    "preset": "PRESET=quick",
    "launch": "LAUNCH=slurm PARTITION=x",
    "partition": "LAUNCH=slurm PARTITION=x",
    "hosts": "LAUNCH=ansible HOSTS=a,b,c",
    "again": "NODES='cn[01-04]'",
    "fail-on": "FAIL_ON=not-same",
}
#: The options that not every launcher has, and one that has it, as advice.
_LAUNCH = {"partition": "slurm", "hosts": "ansible"}


class Parser(argparse.ArgumentParser):
    """Reject bad options with one sentence and an example to copy."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 after one line, as argparse calls it."""
        names = (name for name in EXAMPLES if message.startswith(f"argument --{name}:"))
        advice = next((f"for example `make run {EXAMPLES[name]}`" for name in names), f"see {self.prog} --help")
        self.exit(2, f"nodeprint: {message}; {advice}\n")


def parser(description: str | None = None) -> Parser:
    """Return the parser of the options."""
    out = Parser(
        "workflow/run",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        epilog="VERBOSE=1 in the environment shows Snakemake's output.",
    )
    choices = get_type_hints(Config)
    out.add_argument("--config", metavar="FILE", type=_value, default="config/config.yaml", help="the configuration")
    out.add_argument("--campaign", metavar="NAME", type=_value, help="instead of `campaign` of the configuration")
    out.add_argument(
        "--preset", choices=get_args(choices["preset"]), help="instead of `preset`, in a campaign of its own"
    )
    out.add_argument(
        "--launch", choices=addons.names(addons.LAUNCHERS), help="instead of `launch`, in a campaign of its own"
    )
    out.add_argument("--partition", metavar="NAME", type=_value, help="instead of `slurm.partition`")
    out.add_argument(
        "--hosts", metavar="HOSTS", type=_host_list, help="instead of `inventory`: hosts for Ansible, as in cn[01-04]"
    )
    out.add_argument(
        "--again",
        metavar="NODES",
        type=_named_nodes,
        help="measure these nodes again as a new job, as in cn[001-004],gpu7",
    )
    out.add_argument(
        "--fail-on",
        metavar="KIND,...",
        default=[FOUND],
        type=_fail_kinds,
        help=f"exit with 3 if an outcome of a node, the fleet or messages is: {', '.join(Kind)} (default {FOUND})",
    )
    out.add_argument("--report-only", action="store_true", help="judge and report again what is there")
    return out


def call_words(arguments: argparse.Namespace, **others: str) -> str:
    """Return the call of make with these arguments and with `others` instead of some. NODES is left out, as it would
    begin new jobs."""
    given = vars(arguments) | others
    words = ["make report" if arguments.report_only else "make run"]
    if Path(given["config"]) != Path(parser().get_default("config")):
        words.append(f"CONFIG={shlex.quote(given['config'])}")
    words += [f"{name.upper()}={shlex.quote(given[name])}" for name in KEYS if given[name] is not None]
    if given["fail_on"] != [FOUND]:
        words.append(f"FAIL_ON={','.join(given['fail_on'])}")
    return " ".join(words)


def call_as_another_campaign(arguments: argparse.Namespace, folder: Path) -> str:
    """Return the call that measures the same as a new campaign beside `folder`."""
    names = (f"{folder.name}-{number}" for number in count(2))
    return call_words(arguments, campaign=next(name for name in names if not folder.with_name(name).exists()))


def configuration_file(arguments: argparse.Namespace, folder: Path) -> Path:
    """Return the configuration of a call: the site's own file, or one in `folder` with the keys that options replace.

    Another preset or way of launching has a campaign of its own, named after it, if --campaign names none. Raises
    NodeprintError if the configuration or an option is wrong.
    """
    path = Path(arguments.config)
    config = configuration.load(path)  # errors of the site's own file name that file
    given = {name: value for name in KEYS if (value := vars(arguments)[name]) is not None}
    if not given:
        return path
    _check_launch(arguments, config, given)
    keys = {name: name for name in KEYS} | dict(launcher(given.get("launch", config.launch)).call_keys)
    own_names = [given[name] for name in ("preset", "launch") if given.get(name, "") not in ("", _of(config, name))]
    content = _with_keys(
        checked_yaml.read(path) | {"campaign": "-".join([config.campaign, *own_names])},
        {keys[name]: _inventory(value) if name == "hosts" else value for name, value in given.items()},
    )
    where = call_words(arguments)
    try:
        configuration.checked(content, where)
    except NodeprintError as error:
        name = next((name for name in given if error.problem.startswith(f"{where}: {keys[name]}:")), "campaign")
        raise NodeprintError(f"{error}; for example `make run {EXAMPLES[name]}`") from error
    text = yaml.safe_dump(content, sort_keys=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return files.write(folder / f"{quote(str(path), safe='')}-{digest[:12]}.yaml", text)


def _of(config: Config, name: str) -> str:
    return str(getattr(config, name))


def _check_launch(arguments: argparse.Namespace, config: Config, given: Mapping[str, str]) -> None:
    """Raise NodeprintError if an option is for another way of launching, or Ansible has no hosts."""
    launch = given.get("launch", config.launch)
    takes = launcher(launch).call_keys
    for name, needed in _LAUNCH.items():
        if name in given and name not in takes:
            problem = f"is for `launch: {needed}`, and this call has `launch: {launch}`"
            others = dict.fromkeys(given.keys() & _LAUNCH.keys() - {name}) | {"launch": needed}
            call = call_words(argparse.Namespace(**vars(arguments) | others))
            raise NodeprintError(problem, key=name.upper(), advice=f"call `{call}`")
    if "launch" in given and "hosts" in takes and not config.inventory and "hosts" not in given:
        call = call_words(arguments, hosts="a,b,c")
        raise NodeprintError(f"`launch: {launch}` needs hosts", key="LAUNCH", advice=f"call `{call}` with your hosts")


def _with_keys(content: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of a configuration with `values` by the path of their key, as in `slurm.partition`."""
    out = dict(content)
    for path, value in values.items():
        section, _, key = path.rpartition(".")
        out |= {section: (out.get(section) or {}) | {key: value}} if section else {key: value}
    return out


def _value(text: str) -> str:
    """Return the argument of an option, which is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; set it, or leave it out")
    return text


def _host_list(text: str) -> str:
    """Return the argument of --hosts, which names at least one."""
    try:
        names = node_lists.expand(text, "")
    except NodeprintError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix(": ")) from error
    if not names:
        raise argparse.ArgumentTypeError("names no host; name some, or leave it out")
    return ",".join(text.split())


def _inventory(hosts: str) -> str:
    """Return a list of hosts as `inventory` takes it: a single host ends with a comma, as for Ansible."""
    return hosts if configuration.is_host_list(hosts) else f"{hosts},"


def _named_nodes(text: str) -> str:
    """Return the argument of --again. An empty list, of a command that names no node, must not measure all of them."""
    if not text.strip(" ,"):
        raise argparse.ArgumentTypeError("names no node; name some, or leave it out")
    return text


def _fail_kinds(text: str) -> tuple[Kind, ...]:
    """Return the argument of --fail-on."""
    try:
        return outcome.kinds(text)
    except NodeprintError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--fail-on: ")) from error  # argparse names it
