"""A kernel that replays a simulated fleet: whole calls whose figures are those of machines that are not here."""

from __future__ import annotations

import gzip
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprint import simulate
from nodeprint.campaign import node_sheet
from nodeprint.machine.topology.presets import from_part
from tests.support.changed_records import with_header

#: Nodes, jobs of each, and the node that is slow in each of them.
NODES, JOBS, SUSPECT = 8, 3, "node003"

#: In a campaign of these tests: the records that the simulated node's job has, as if measured here. A campaign
#: `...-soon` has all its jobs begin with the first one: a job so soon confirms nothing.
REPLAY = """\
#!/bin/sh
case $PWD in
*/results/recheck-*/nodes/*/job*) ;;
*) exec {real} "$@" ;;
esac
case "$*" in *--plan* | *--help*) exit 0 ;; esac
while [ $# -gt 0 ]; do
    case $1 in --out) out=$2 ;; --job) job=$2 ;; --run) run=$2 ;; esac
    shift
done
node=${{PWD%/*}} node=${{node##*/}} began=hours
case $PWD in *-soon/*) began=soon ;; esac
cp {fleet}/nodes/$node/job$job/survey.tar.gz .
# hours lie between simulated jobs: what the login node's clock says of these is kept out by a folder in its place
[ -d followed.json ] || {{ rm -f followed.json && mkdir followed.json; }}
cat {fleet}/nodes/$node/job$job/run$run/$began.jsonl >"$out"
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated fleet of which one node is slow in every job, hours apart."""
    plan = simulate.Plan(from_part("EPYC 7302", 1), NODES, JOBS, 2, 3, 3, defects=(f"{SUSPECT}: core 5 +40%",))
    folder = simulate.write(plan, tmp_path_factory.mktemp("recheck") / "fleet")
    host = node_sheet.short(socket.gethostname())
    for path in folder.glob("nodes/*/job*/run*/coherence-cas.jsonl.gz"):
        text = gzip.decompress(path.read_bytes()).decode()
        time = re.sub("T0.", "T01", json.loads(text.partition("\n")[0])["start_time"])
        path.with_name("hours.jsonl").write_text(with_header(text, host=host))
        path.with_name("soon.jsonl").write_text(with_header(text, host=host, start_time=time))
    return folder


@pytest.fixture
def replaying(house: Path, fleet: Path) -> Iterator[None]:
    """The house with a kernel that replays the fleet."""
    kernel = house / "kernels/build/coherence"
    real = kernel.rename(kernel.with_name("coherence.real"))
    kernel.write_text(REPLAY.format(real=real, fleet=fleet))
    kernel.chmod(0o755)
    yield
    real.rename(kernel)
