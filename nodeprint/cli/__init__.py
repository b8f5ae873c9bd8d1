"""The command line. Each command is thin: read its arguments, call one function, print."""

from nodeprint import addons
from nodeprint.cli import (
    data_commands,
    here_commands,
    history_commands,
    judge_commands,
    machine_commands,
    measure_commands,
    show_commands,
)
from nodeprint.cli.app import app, main

for _commands in addons.load(addons.COMMANDS).values():
    app.registered_commands += _commands.registered_commands

__all__ = [
    "app",
    "data_commands",
    "here_commands",
    "history_commands",
    "judge_commands",
    "machine_commands",
    "main",
    "measure_commands",
    "show_commands",
]
