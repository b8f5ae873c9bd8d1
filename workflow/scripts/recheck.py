"""A round of the recheck: recheck.py CAMPAIGN ROUND MINUTES SUSPECTS

Waits until the jobs of the nodes in SUSPECTS (with the control nodes, a line each) are MINUTES old, and gives them new
ones.
"""

import sys
import time
from pathlib import Path

from nodeprint.campaign import node_lists, recheck
from nodeprint.campaign.progress import span
from nodeprint.errors import NodeprintError


def main(campaign: Path, number: int, minutes: float, names: list[str]) -> None:
    """Write the list of a round, which is empty where no node is suspected."""
    if names:
        wait_s = recheck.wait_s(campaign, names, minutes)
        when = f"in {span(wait_s)}" if wait_s >= 1 else "now"
        sentence = f"recheck {number} of at most {recheck.ROUNDS}, {when}: {node_lists.fold(names)}"
        print(f"nodeprint: {sentence}", file=sys.stderr)
        time.sleep(wait_s)
    recheck.begin(campaign, number, names)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]).read_text().split())
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
