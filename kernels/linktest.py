"""LinkTest: messages between every pair of MPI ranks, within a node or between nodes (docs/method/messages.md)."""

from __future__ import annotations

import sys

from linktest import launch, ranks
from linktest.settings import DONE, RefusalError, parse, say


def main() -> int:
    """Plan, be a rank, or start the ranks."""
    try:
        settings = parse(sys.argv[1:])
        if settings.plan:
            print(settings.plan_text(), end="")
            if not settings.between_nodes and (lack := launch.missing(settings)):
                print(f"unavailable {lack}")
            return DONE
        return ranks.main(settings) if settings.as_rank else launch.measure(settings)
    except RefusalError as error:
        say(str(error))
        return error.code


if __name__ == "__main__":
    sys.exit(main())
