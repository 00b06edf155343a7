"""Reference of ``rust/core/src/keywords.rs``."""

STRIPPED = ".,;:!?\"'()[]{}/-"
"""Punctuation that is stripped from both ends of a word."""

STOPWORDS = frozenset(
    "a about above after all also an and any are as at be been before being below between both "
    "but by can could did do does during each every few for from had has have he her here him how "
    "i if in into is it its just may me might more most my no not of on only or other our out own "
    "same she should so some such than that the their them then there they this through to too up "
    "us very was we what when where which who will with would your".split()
)


def keywords(text: str) -> list[str]:
    """Return the keywords of *text*, each once, in order of first occurrence."""
    found: dict[str, None] = {}
    for raw in text.lower().split():
        word = raw.strip(STRIPPED)
        if len(word) > 1 and word not in STOPWORDS:
            found[word] = None
    return list(found)
