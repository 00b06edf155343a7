"""
Whether the default ranking serves text that is not in its language: the other half of a paragraph.

    python benches/eval_languages.py FILE [--languages NAME,...] [--all]
    python benches/eval_languages.py --smoke

FILE is JSON Lines (gzip or not), a text for each language: records of ``f``, the name of the
language, and ``text``, a paragraph a line. Each paragraph is cut in halves. Each half is a query,
and the halves of the other kind are the texts: that of the same paragraph is wanted. MRR is the
mean of one over its rank, ties counted by half; first is the share of queries that rank it first.

After both for BM25 come the gains of the default ranking in MRR, whole and with a part off, and
the 95 % interval of a paired bootstrap, with a star if that excludes 0. At the end is how many
languages gain and lose clearly: by chance alone, one in forty does each.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from questions import interval, shown
from texts import real_text

from budgeteer.ranking import bm25_scores, lexical_scores

LANGUAGES = (
    "arb,ben,ces,cmn_hans,cmn_hant,deu_1996,ell_monotonic,eng,fin,fra,heb,hin,hun,ind,ita,jpn,khm,"
    "kor,lao,mya,nld,pes_1,pol,por_PT,rus,spa,swe,swh,tam,tha,tur,ukr,vie"
)
SHORTEST = 20
"""The least characters of a paragraph."""

VARIANTS: dict[str, dict[str, Any]] = {
    "lexical": {},
    "no stems": {"stemming": None},
    "no feedback": {"feedback": False},
    "no repetitions": {"k3": 0},
}


def texts_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each language and its text."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield record["f"], record["text"]


def halves(paragraph: str) -> tuple[str, str]:
    """Cut at the space nearest to the middle, or in the middle where a script has few spaces."""
    middle = len(paragraph) // 2
    spaces = [place for place, letter in enumerate(paragraph) if letter.isspace()]
    nearest = min(spaces, key=lambda place: abs(place - middle), default=0)
    cut = nearest if abs(nearest - middle) < len(paragraph) // 4 else middle
    return paragraph[:cut], paragraph[cut:]


def placed(values: np.ndarray[Any, Any], wanted: int) -> float:
    """Return the rank of a text from 1 up; half of those with the same score stand before it."""
    before, same = (values > values[wanted]).sum(), (values == values[wanted]).sum()
    return 1 + float(before) + (float(same) - 1) / 2


def ranks_of(text: str) -> dict[str, list[float]]:
    """Return the ranks of the wanted halves in a text, by ranking."""
    paragraphs = (line.strip() for line in text.splitlines())
    cut = [halves(paragraph) for paragraph in paragraphs if len(paragraph) >= SHORTEST]
    ranks: dict[str, list[float]] = {"bm25": [], **{name: [] for name in VARIANTS}}
    for asked, found in ((0, 1), (1, 0)):
        texts = [pair[found] for pair in cut]
        for wanted, pair in enumerate(cut):
            ranks["bm25"].append(placed(bm25_scores(pair[asked], texts), wanted))
            for name, options in VARIANTS.items():
                scores = lexical_scores(pair[asked], texts, **options)
                ranks[name].append(placed(scores, wanted))
    return ranks


def main() -> None:
    """Print a line for each language."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--languages", default=LANGUAGES)
    parser.add_argument("--all", action="store_true", help="all languages of the file")
    parser.add_argument("--smoke", action="store_true", help="an English text: does it run?")
    arguments = parser.parse_args()
    made = [("made", "\n".join(real_text().split("\n\n")[:20]))] if arguments.smoke else []
    read = texts_of(arguments.file) if arguments.file else ()
    wanted = arguments.languages.split(",")
    print(f"{'':14}{'queries':>8}{'MRR':>7}{'first':>7}", end="")
    print("".join(f"{name:>26}" for name in VARIANTS))
    gains: dict[str, list[tuple[float, float, float]]] = {name: [] for name in VARIANTS}
    for language, text in [*made, *read]:
        if not (arguments.all or arguments.smoke or language in wanted):
            continue
        ranks = ranks_of(text)
        base = 1 / np.asarray(ranks["bm25"])
        print(
            f"{language[:13]:14}{len(base):8}{base.mean():7.3f}{(base == 1).mean():7.3f}", end=""
        )
        for name, found in gains.items():
            found.append(interval(list(1 / np.asarray(ranks[name]) - base)))
            print(f"   {shown(*found[-1])}", end="")
        print(flush=True)
    for name, found in gains.items():
        mean, low, high = interval([gain for gain, _, _ in found])
        up, down = sum(low > 0 for _, low, _ in found), sum(high < 0 for _, _, high in found)
        print(
            f"{name}: {mean:+.4f} [{low:+.4f} {high:+.4f}] over languages, {up} gain, {down} lose"
        )


if __name__ == "__main__":
    main()
