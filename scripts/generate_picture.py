"""
Write docs/packing.svg: what the README's first command does, drawn from its answer.

    python scripts/generate_picture.py [--check]

The bars are the six best parts of examples/handbook, best first, each as long as its tokens.
`--check` writes nothing and fails if the file is another.
"""

import json
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "packing.svg"
QUESTION = "What is the remote work policy?"
BUDGET = 150
ENOUGH = 8_000
"""A budget that drops nothing but what scores 0."""

ROWS = 6
"""How many parts are drawn."""

LEFT, SCALE, ROW, TOP = 250, 1.6, 26, 62
"""Where the bars begin, pixels for a token, the height of a row, and where the rows begin."""

STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .quiet { fill: #59636e }
    .kept { fill: #1a7f37 }
    .dropped { fill: none; stroke: #818b98; stroke-dasharray: 3 2 }
    .back { fill: #ffffff }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .quiet { fill: #9198a1 }
      .kept { fill: #3fb950 }
      .back { fill: #0d1117 }
    }
"""


def ask(budget: int) -> Any:
    """Return the answer of the command as JSON."""
    command = [sys.executable, "-m", "budgeteer", "ask", "examples/handbook", QUESTION]
    options = ["-n", str(budget), "-m", "gpt-4o", "-o", "json"]
    done = subprocess.run(command + options, cwd=ROOT, capture_output=True, check=True)
    return json.loads(done.stdout)


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text."""
    of_kind = f' class="{kind}"' if kind else ""
    return f'  <text x="{x:g}" y="{y:g}"{of_kind} text-anchor="{anchor}">{escape(words)}</text>'


def bar(x: float, y: float, tokens: int, kind: str) -> str:
    """Return a bar as long as its tokens."""
    width = tokens * SCALE
    return f'  <rect x="{x:g}" y="{y:g}" width="{width:g}" height="16" rx="2" class="{kind}"/>'


def picture() -> str:
    """Return the picture as SVG."""
    packed, everything = ask(BUDGET), ask(ENOUGH)
    kept = {chunk["id"] for chunk in packed["kept"]}
    found = everything["kept"][:ROWS]
    total = len(everything["kept"]) + len(everything["dropped"])
    lines = [
        text(12, 24, f"\u201c{QUESTION}\u201d, asked of {total} parts of examples/handbook"),
        text(12, 46, f"The best {ROWS}:", "quiet"),
    ]
    for row, chunk in enumerate(found):
        y = TOP + row * ROW
        tokens, kind = chunk["token_count"], "kept" if chunk["id"] in kept else "dropped"
        title = chunk["title"].rpartition(" > ")[2]
        lines += [
            text(LEFT - 12, y + 13, title, "quiet" if kind == "dropped" else "", "end"),
            bar(LEFT, y, tokens, kind),
            text(LEFT + tokens * SCALE + 8, y + 13, f"{tokens} tokens, {kind}", "quiet"),
        ]
    y = TOP + len(found) * ROW + 14
    tokens = packed["total_tokens"]
    lines += [
        text(LEFT - 12, y + 13, "the packed text", anchor="end"),
        bar(LEFT, y, tokens, "kept"),
        bar(LEFT, y, BUDGET, "dropped"),
        text(LEFT + BUDGET * SCALE + 8, y + 13, f"{tokens} of {BUDGET} tokens, exact"),
    ]
    width, height = 720, y + 36
    said = f"{len(kept)} of {total} parts are kept: {tokens} of {BUDGET} tokens."
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">'
    )
    back = f'  <rect width="{width}" height="{height}" rx="6" class="back"/>'
    parts = [head, f"  <title>{escape(said)}</title>", f"  <style>{STYLE}  </style>", back]
    return "\n".join([*parts, *lines, "</svg>", ""])


def main() -> None:
    """Write or check the file."""
    drawn = picture()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(drawn, encoding="utf-8")
    elif drawn != FILE.read_text(encoding="utf-8"):
        sys.exit(f"{FILE.relative_to(ROOT)} is another: run python scripts/generate_picture.py")


if __name__ == "__main__":
    main()
