"""The command line as a whole: groups of commands, options, and exit statuses of errors."""

from __future__ import annotations

import gc
import io
import re
import sys
from textwrap import fill
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nodeprint import __version__, processes
from nodeprint.errors import NodeprintError, NoServiceError, printable
from nodeprint.settings.commit import commit

#: The commands of each group, in the order of the help. Those of add-ons are in the group `RESEARCH`.
GROUPS = {
    "Measure": ("here", "doctor", "discover", "status", "next"),
    "Judge": ("judge", "check", "diff", "history", "drift", "baseline", "verify"),
    "Show": ("show", "report", "protocol", "export"),
    "Data": ("topology", "structure", "import", "simulate", "demo", "sources"),
}
RESEARCH = "Research"
#: The new names of renamed commands.
RENAMED = {"since": "`nodeprint diff A B` for two campaigns, or `nodeprint history` for many"}
_END = (
    "`nodeprint COMMAND --help` explains a command, with an example.",
    "Options: --version, --install-completion (of commands, for your shell).",
)


class Grouped(TyperGroup):
    """Groups of commands in the help. An interrupted command prints one line."""

    def invoke(self, ctx: Any) -> Any:
        """Call a command, as click does, with status 130 after an interrupt."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("nodeprint: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of the help, as click asks for the documentation."""
        of_groups = [name for names in GROUPS.values() for name in names]
        return [*of_groups, *sorted(self.commands.keys() - set(of_groups))]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, as click does, and reject a former name with the new one."""
        if args[0] in RENAMED:
            raise NodeprintError("this command has another name now", key=args[0], advice=f"call {RENAMED[args[0]]}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, which fits a screen: a row for each command, and one for those of add-ons."""
        formatter.write_usage("nodeprint", "COMMAND [ARGUMENTS]")
        formatter.write(f"{fill(self.help or '', formatter.width)}\n")
        formatter.write_paragraph()
        columns = (len(RESEARCH), max(len(name) for names in GROUPS.values() for name in names))

        def write(group: str, name: str, text: str) -> None:
            first = f"{group:{columns[0]}}  {name:{columns[1]}}"
            formatter.write_dl([(first, text)], col_max=len(first))

        for group, names in GROUPS.items():
            for number, name in enumerate(names):
                write("" if number else group, name, self.commands[name].get_short_help_str(200))
        if addons := self.list_commands(ctx)[sum(map(len, GROUPS.values())) :]:
            write(RESEARCH, ", ".join(addons), "")
        formatter.write_paragraph()
        for line in _END:
            formatter.write(f"{fill(line, formatter.width)}\n")


app = typer.Typer(
    cls=Grouped,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure the nodes of a cluster and find those that do not match their peers.",
)


def main() -> None:
    """Run the command line. Wrong input prints one sentence and exits with status 2."""
    processes.end_by_signal()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of another encoding gets ? for letters that it lacks
            stream.reconfigure(errors="replace")
    gc.set_threshold(100_000)  # what is read and judged stays: looking for cycles at every 700 objects is a tenth of it
    try:
        if empty := [word for word in sys.argv[1:] if not word or re.fullmatch(r"--[a-z-]+=", word)]:
            advice = "leave it out, or set the variable of the shell that it is from"
            raise NodeprintError(f"an argument is empty{f' ({empty[0]})' if empty[0] else ''}", advice=advice)
        app()
    except NodeprintError as error:
        print(f"nodeprint: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, NoServiceError) else 2)
    except ModuleNotFoundError as error:  # a package that conda-forge lacks, as typst
        package = (error.name or "").partition(".")[0]
        if package.startswith("nodeprint"):
            raise
        print(f"nodeprint: the Python package {package} is missing: `pip install {package}`", file=sys.stderr)
        sys.exit(2)
    except UnicodeEncodeError as error:  # a path of other bytes than the encoding's, which Python has as surrogates
        before, after = error.object[: error.start], error.object[error.start :]
        name = printable(re.split("[/\n]", before)[-1] + re.split("[/\n]", after)[0], 80)
        advice = "rename the folder or file, or set LC_ALL=C.UTF-8 where only this shell has another encoding"
        print(f"nodeprint: the name `{name}` is not UTF-8; {advice}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # a path that is too long or a loop, or a broken disk
        what = f"{printable(str(error.filename))}: {error.strerror}" if error.filename else printable(str(error))
        print(f"nodeprint: {what}; check the path, its file system and your rights there", file=sys.stderr)
        sys.exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        made_from = commit()
        typer.echo(f"nodeprint {__version__}" + (f" (commit {made_from})" if made_from else ""))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and the commit."),
    ] = False,
) -> None:
    pass
