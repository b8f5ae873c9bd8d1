"""The picture in the README and those of each page in reports/pictures, of the simulated demo: `make pictures`.

Needs pdftoppm (poppler-utils).
"""

from __future__ import annotations

import io
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from nodeprint.cli.shared import judge_and_write
from nodeprint.report import documents
from nodeprint.simulate import demo

DOCS = Path(__file__).parent
#: A small picture of each page, beside the templates.
EACH = DOCS.parent / "reports/pictures"


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
    facts = subprocess.run(["pdfinfo", pdf], check=True, capture_output=True, text=True).stdout
    for number in range(1, int(facts.split("Pages:")[1].split()[0]) + 1):
        (image,) = pages(pdf, number, dots=45)
        image.quantize(48).save(EACH / f"{name}-{number}.png", optimize=True)
    print(EACH / f"{name}-*.png")


def save(name: str, images: list[Image.Image]) -> None:
    """Images side by side, in 256 colors."""
    width = sum(image.width for image in images) + 12 * (len(images) - 1)
    both = Image.new("RGB", (width, images[0].height), "lightgrey")
    at = 0
    for image in images:
        both.paste(image, (at, 0))
        at += image.width + 12
    both.quantize(256).save(DOCS / name, optimize=True)
    print(DOCS / name)


def main() -> None:
    """Make all of them."""
    with tempfile.TemporaryDirectory(prefix="nodeprint-pictures-") as folder:
        campaign = Path(folder) / "demo"
        demo.write(campaign)
        judge_and_write(campaign)
        documents.write(campaign)
        save("page.png", pages(campaign / "report/node005.pdf", 1, 2))
        each(campaign / "report/node005.pdf", "node")
        each(campaign / "report/cluster.pdf", "cluster")


if __name__ == "__main__":
    main()
