import sys
from pathlib import Path

from nodeprint import fleet
from nodeprint.errors import NodeprintError

try:
    fleet.gather(Path(snakemake.params.campaign))
except NodeprintError as error:
    sys.exit(f"nodeprint: {error}")
