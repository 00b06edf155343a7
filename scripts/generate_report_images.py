"""
Draw the pictures of reports in ``docs/images``: five chunks and five thousand, light and dark.

They are taken in a Chromium of the system, wide and narrow. Needs playwright and pillow:
``python scripts/generate_report_images.py``.
"""

import io
import random
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from budgeteer import Chunk, Packer, Packing, get_counter
from budgeteer._sources.pieces import pieces_of

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
QUESTION = "What is the remote work policy?"
WIDE, NARROW = (1000, 900), (390, 844)
COLOURS = 128
MANY = 5_000


def handbook() -> list[Chunk]:
    """Return the sections of the handbook."""
    counter = get_counter("o200k_base")
    return [
        Chunk(piece.text, id=f"{path.name}:{piece.line}", source=path.name, title=piece.title)
        for path in sorted((ROOT / "examples/handbook").glob("*.md"))
        for piece in pieces_of(path.name, path.read_text(encoding="utf-8"), counter, 100)
    ]


def few() -> Packing[Chunk]:
    """Pack the four best sections and a copy: one is cut, one is a duplicate."""
    best = [kept.chunk for kept in Packer(10**6, max_chunks=4).pack(QUESTION, handbook()).kept]
    first = best[0]
    copy = Chunk(first.text, id="old/remote-work.md:5", source="old", title=first.title)
    packer = Packer(200, reserve_tokens=30, overflow="truncate_end")
    return packer.pack(QUESTION, [*best, copy])


def many() -> Packing[Chunk]:
    """Pack sections whose words were shuffled."""
    chooser = random.Random(1)
    sections = handbook()
    chunks = []
    for i in range(MANY):
        section = sections[i % len(sections)]
        words = section.text.split() * chooser.randint(1, 4)
        chooser.shuffle(words)
        chunks.append(Chunk(" ".join(words), id=f"doc-{i}", source=section.source))
    return Packer(8_000).pack(QUESTION, chunks)


def take(browser: Browser, page: Path, name: str, *, scheme: str, size: tuple[int, int]) -> None:
    """Take a picture of a page, and write it with few colours."""
    width, height = size
    context = browser.new_context(
        color_scheme=scheme,  # type: ignore[arg-type]  # light or dark
        viewport={"width": width, "height": height},
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    if "5000" in name:
        tab.get_by_label("Search in names").fill("remote policy")
        tab.locator("tbody tr[hidden]").first.wait_for(state="attached")
        tab.evaluate("document.querySelector('#chunks-title').scrollIntoView()")
        tab.wait_for_timeout(500)
    is_whole = "5-wide" in name
    picture = Image.open(io.BytesIO(tab.screenshot(full_page=is_whole)))
    picture = picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)
    picture.save(IMAGES / f"{name}.png", optimize=True)
    context.close()


def main() -> None:
    """Write all pictures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("has no chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for number, packing in ((5, few()), (MANY, many())):
            page = Path(folder, f"{number}.html")
            page.write_text(packing.report(), encoding="utf-8")
            for shape, size in (("wide", WIDE), ("narrow", NARROW)):
                for scheme in ("light", "dark"):
                    name = f"report-{number}-{shape}-{scheme}"
                    take(browser, page, name, scheme=scheme, size=size)
        browser.close()


if __name__ == "__main__":
    main()
