"""`python -m nodeprint`: the command line."""

from nodeprint.cli import main

main()
