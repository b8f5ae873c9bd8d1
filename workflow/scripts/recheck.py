"""Which nodes are measured again, and when: recheck.py CAMPAIGN ROUND MINUTES ACCEPTANCE

Judges the campaign, waits until the jobs of suspects and their companions are MINUTES old, and gives them new ones.
"""

import sys
import time
from pathlib import Path

from nodeprint import node_lists, recheck
from nodeprint.errors import NodeprintError
from nodeprint.progress import span
from nodeprint.verdict import campaign_verdict


def main(campaign: Path, number: int, minutes: float, acceptance: Path) -> None:
    """Write the list of a round."""
    names = campaign_verdict.judge(campaign, acceptance=acceptance).recheck
    if names:
        wait_s = recheck.wait_s(campaign, names, minutes)
        when = f"in {span(wait_s)}" if wait_s >= 1 else "now"
        folded = node_lists.fold(names)
        said = f"recheck {number} of at most {recheck.ROUNDS}, {when}: {folded}"
        print(f"nodeprint: {said}", file=sys.stderr, flush=True)
        time.sleep(wait_s)
    recheck.begin(campaign, number, names)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
