"""How long do pages take, and how large are they? Simulated nodes; the fleet is that of bench.fleet.

    python -m bench.report                          nodes of 128 and 256 cores, a fleet of 64 nodes of 128
    python -m bench.report --fleet FOLDER           a campaign that is there and judged, such as of bench.fleet --keep
    python -m bench.report --large FOLDER           and one of 1,000 nodes

Wall times mean something on a quiet machine alone; CPU seconds are of nodeprint and its processes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from bench import fleet, table
from bench.table import Row, row
from nodeprint.machine.topology.presets import preset
from nodeprint.report import documents, verdict_files
from nodeprint.simulate import Plan, write
from tests.support.browser import browser

#: Only cluster.pdf and cluster.html.
_CLUSTER = (
    "import sys; from pathlib import Path; from nodeprint.report import documents; "
    "documents.write(Path(sys.argv[1]), Path(sys.argv[2]), of_nodes=False)"
)


def node_page(folder: Path, machine: str, limit: float | None) -> tuple[Path, list[Row]]:
    """The pages of a node of a machine, in a process that has printed some, and the campaign that it is of."""
    slow = tuple(f"node{number:03d}: core {number} +9%" for number in range(8))  # other nodes have no figures
    campaign = write(Plan(preset(machine), nodes=8, jobs=1, cells=True, defects=slow), folder / machine)
    fleet.nodeprint("judge", campaign)
    names = sorted(verdict_files.read(campaign).nodes)
    task = documents.Task(campaign, folder / "pages", tuple(names), None, False)
    took = []
    for name in names:  # no node twice, as Typst keeps what it has laid out
        begun = time.process_time()
        task.chunk([name])
        took.append(time.process_time() - begun)
    size = (folder / "pages" / f"{names[0]}.pdf").stat().st_size
    return campaign, [
        row(f"pages of a node, {machine}, warm", took[3:], limit, "s CPU"),
        row(f"its PDF, {machine}", size / 1e3, None, "kB"),
    ]


def hover(campaign: Path, folder: Path) -> list[Row]:
    """What it takes cluster.html to say what is under the pointer, at 256 CPUs; a browser paints 60 frames a second.

    The pointer moves in every frame of two seconds.
    """
    _, html = documents.write(campaign, folder / "browser", of_nodes=False)[:2]
    with browser() as page:
        page.open(html, "document.body?.dataset.ready === 'yes'")
        took = page.run(
            "(() => { const map = document.getElementById('map'), out = [];"
            " for (let i = 0; i < 300; i++) { const begun = performance.now();"
            " map.dispatchEvent(new MouseEvent('mousemove', {clientX: map.getBoundingClientRect().x + i,"
            " clientY: map.getBoundingClientRect().y + 2 * i})); out.push(performance.now() - begun) } return out })()"
        )
        frames = page.run(
            "new Promise(done => { const map = document.getElementById('map'), at = map.getBoundingClientRect();"
            " const times = []; const frame = now => { times.push(now);"
            " if (now - times[0] > 2000) return done(times.slice(1).map((time, i) => time - times[i]));"
            " const x = at.x + times.length % 300, y = at.y + 2 * times.length % 300;"
            " map.dispatchEvent(new MouseEvent('mousemove', {clientX: x, clientY: y}));"
            " requestAnimationFrame(frame) }; requestAnimationFrame(frame) })"
        )
    return [
        row("cluster.html, 256 CPUs, a move of the pointer", took, 1000 / 60, "ms"),
        row("cluster.html, 256 CPUs, a frame while the pointer moves", frames, 1.05 * 1000 / 60, "ms"),
    ]


def of_fleet(campaign: Path, folder: Path, wall: float | None, html: float | None) -> list[Row]:
    """cluster.pdf and cluster.html of a judged campaign."""
    nodes = len(verdict_files.read(campaign).nodes)
    took, cpu, memory = fleet.timed("-c", _CLUSTER, campaign, folder / f"of-{nodes}")
    size = (folder / f"of-{nodes}" / "cluster.html").stat().st_size
    return [
        row(f"{nodes} nodes: cluster.pdf and cluster.html", took, wall, "s wall"),
        row(f"{nodes} nodes: cluster.pdf and cluster.html, CPU", cpu, None, "s CPU"),
        row(f"{nodes} nodes: largest process", memory, 2, "GiB"),
        row(f"{nodes} nodes: cluster.html", size / 1e6, html, "MB"),
    ]


def main() -> int:
    """Measure and print; 1 where a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleet", type=Path, help="a judged campaign instead of one that is made")
    parser.add_argument("--large", type=Path, help="a judged campaign of 1,000 nodes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nodeprint-bench-") as made:
        folder = Path(made)
        _, rows = node_page(folder, "rome-2x64", 1.5)
        large, more = node_page(folder, "bergamo-2x128", None)
        rows += [*more, *hover(large, folder)]
        campaign = arguments.fleet
        if campaign is None:
            campaign = fleet.made(folder, 64)
            fleet.nodeprint("judge", campaign)
        rows += of_fleet(campaign, folder, None, 4)
        if arguments.large:
            rows += of_fleet(arguments.large, folder, 120, None)
    table.keep("report", rows, 0.0)
    return int(any(result.missed for result in rows))


if __name__ == "__main__":
    sys.exit(main())
