"""The nodes of a campaign gathered: gather.py CAMPAIGN"""

import sys
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.fleet import nodes

if __name__ == "__main__":
    try:
        nodes.gather(Path(sys.argv[1]))
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
