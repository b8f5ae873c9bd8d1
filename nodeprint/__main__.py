"""`python -m nodeprint`: the command line."""

import sys

try:
    from nodeprint.cli import main
except KeyboardInterrupt:
    sys.exit(130)
except ModuleNotFoundError as missing:
    if (missing.name or "").startswith("nodeprint"):
        raise
    print(
        f"nodeprint: the Python package {missing.name} is missing: `make setup` installs it into .venv of this clone, "
        "`snakemake --sdm conda` makes an environment that has it",
        file=sys.stderr,
    )
    sys.exit(2)

main()
