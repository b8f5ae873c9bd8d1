"""The nodes of a campaign gathered: gather.py CAMPAIGN"""

import sys
from pathlib import Path

from nodeprint.data import nodes
from nodeprint.errors import NodeprintError

if __name__ == "__main__":
    try:
        nodes.gather(Path(sys.argv[1]))
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
