"""LinkTest: messages between every pair of MPI ranks, within a node or between nodes (docs/method/messages.md)."""

from __future__ import annotations

import sys
from pathlib import Path

# It is started by its path, on other nodes, too: what imports it as `linktest` is the folder above.
sys.path[0] = str(Path(__file__).parents[1])

from linktest import figure, launch, ranks  # noqa: E402
from linktest.settings import DONE, RefusalError, parse, say  # noqa: E402


def main() -> int:
    """Plan, be a rank, or start the ranks."""
    try:
        settings = parse(sys.argv[1:])
        if settings.plan:
            print(settings.plan_text(), end="")
            if not settings.between_nodes and (lack := launch.missing(settings)):
                print(f"unavailable {lack}")
            return DONE
        if settings.as_rank:
            return ranks.main(settings)
        code = launch.measure(settings)
        if code == DONE and (settings.csv or sys.stdout.isatty()):
            measured = figure.read(settings.out)
            print((figure.csv if settings.csv else figure.text)(measured), end="")
        return code
    except RefusalError as error:
        say(str(error))
        return error.code


if __name__ == "__main__":
    sys.exit(main())
