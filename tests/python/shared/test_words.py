"""The words of the Python side: phrases that stop a reader are not used."""

import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = sorted(
    path
    for folder in ("python/budgeteer", "benches", "examples", "scripts")
    for path in (ROOT / folder).rglob("*.py")
)
PHRASES = {
    "so many": "the number of ..., at most N, or how many",
    "in its stead": "instead",
    "for whom": "a noun",
    "whose turn": "the one under consideration",
    "what is no": "a value that is not ...",
    "that is no": "that is not a ...",
}


def prose(path: Path) -> str:
    """Return the strings and comments of a file, with single spaces."""
    with path.open("rb") as file:
        texts = [
            token.string.lstrip("# ")
            for token in tokenize.tokenize(file.readline)
            if tokenize.tok_name[token.type] in ("COMMENT", "STRING", "FSTRING_MIDDLE")
        ]
    return re.sub(r"\s+", " ", " ".join(texts)).lower()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_words(path: Path) -> None:
    """Docstrings, comments and messages use plain words for the phrases of `PHRASES`."""
    found = re.findall(rf"\b({'|'.join(PHRASES)})\b(?! longer| more| less)", prose(path))
    assert not found, {phrase: f"say {PHRASES[phrase]}" for phrase in found}
