"""The command line. Each command is thin: read its arguments, call one function, print."""

from nodeprint.cli import data, judge, machines, measure, show
from nodeprint.cli.app import app, main

__all__ = ["app", "data", "judge", "machines", "main", "measure", "show"]
