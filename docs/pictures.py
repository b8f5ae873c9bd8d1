"""The pictures in the README and of each page in reports/pictures: `make pictures`.

Simulated nodes, marked so on each page, but for page-real.png, which needs results/main.

Needs pdftoppm (poppler-utils) and Chromium.
"""

from __future__ import annotations

import io
import subprocess
import tempfile
from pathlib import Path

from nodeprint.verdict.campaign_verdict import judge
from PIL import Image

from nodeprint.report import documents as report
from nodeprint.simulate import Plan, write
from nodeprint.topology.presets import preset
from tests.browser import browser

DOCS = Path(__file__).parent
#: A small picture of each page, beside the templates.
EACH = DOCS.parent / "reports/pictures"
#: A real campaign of this machine, where there is one.
REAL = DOCS.parent / "results/main"


def pages(pdf: Path, *numbers: int, dots: int = 80) -> list[Image.Image]:
    """Pages of a PDF as images, so many dots an inch."""
    out = []
    for number in numbers:
        command = ["pdftoppm", "-r", str(dots), "-f", str(number), "-l", str(number), "-png", str(pdf)]
        done = subprocess.run(command, check=True, capture_output=True)
        out.append(Image.open(io.BytesIO(done.stdout)).convert("RGB"))
    return out


def each(pdf: Path, name: str) -> None:
    """A small picture of each page of a PDF, instead of those that are there."""
    EACH.mkdir(exist_ok=True)
    for old in EACH.glob(f"{name}-*.png"):
        old.unlink()
    said = subprocess.run(["pdfinfo", pdf], check=True, capture_output=True, text=True).stdout
    for number in range(1, int(said.split("Pages:")[1].split()[0]) + 1):
        (image,) = pages(pdf, number, dots=45)
        image.quantize(48).save(EACH / f"{name}-{number}.png", optimize=True)
    print(EACH / f"{name}-*.png")


def save(name: str, images: list[Image.Image]) -> None:
    """Images side by side, in 256 colours."""
    width = sum(one.width for one in images) + 12 * (len(images) - 1)
    both = Image.new("RGB", (width, images[0].height), "lightgrey")
    at = 0
    for one in images:
        both.paste(one, (at, 0))
        at += one.width + 12
    both.quantize(256).save(DOCS / name, optimize=True)
    print(DOCS / name)


def main() -> None:
    """Make all of them."""
    with tempfile.TemporaryDirectory(prefix="nodeprint-pictures-") as folder:
        plan = Plan(
            preset("rome-2x64"), nodes=8, jobs=2, runs=3, cells=True, defects=("node005: core 37 +6%",)
        )  # fmt: skip
        campaign = write(plan, Path(folder) / "sim")
        judge(campaign)
        report.write(campaign)
        save("page.png", pages(campaign / "report/node005.pdf", 1, 2))
        save("cluster.png", pages(campaign / "report/cluster.pdf", 1, 2))
        each(campaign / "report/node005.pdf", "node")
        each(campaign / "report/cluster.pdf", "cluster")
        with browser() as page:
            page.open(campaign / "report/cluster.html", "document.body?.dataset.ready === 'yes'")
            page.run("document.getElementById('explorer').scrollIntoView()")
            x, y = page.run(
                "(() => { const r = document.getElementById('map').getBoundingClientRect(); return [r.x, r.y] })()"
            )
            page.move(x + 187, y + 430)
            save("explorer.png", [Image.open(io.BytesIO(page.picture())).convert("RGB").resize((960, 735))])
    if (REAL / "report/cluster.pdf").exists():
        save("page-real.png", pages(REAL / "report/cluster.pdf", 1))


if __name__ == "__main__":
    main()
