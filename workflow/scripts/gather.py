"""The nodes of a campaign gathered: gather.py CAMPAIGN"""

import sys
from pathlib import Path

from nodeprint.data.store import manifest, packing
from nodeprint.errors import NodeprintError

if __name__ == "__main__":
    try:
        packing.pack(Path(sys.argv[1]))
        manifest.write(Path(sys.argv[1]))
    except NodeprintError as error:
        sys.exit(f"nodeprint: {error}")
