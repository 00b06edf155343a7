"""Reference of ``rust/core/src/output/log.rs``: which lines of a log stay first."""

import re
from itertools import zip_longest

from budgeteer._reference._output.lines import BLANK, Lines, is_object, split
from budgeteer._reference._output.share import place_from_ends, scores_of

EDGE = 2
"""How many lines at either end of a log stay after its errors and warnings."""

CONTEXT = 2
"""How many lines on either side of an error stay after those."""

FEWEST = 4
"""The fewest lines of a log."""

LOOKED_AT = 64
"""How many code points of a line may say that it is one of a log."""

ANSWER, ERROR, LAST, INSIDE, WARNING, END, AROUND = range(7)
ERROR_AGAIN, OTHER, WARNING_AGAIN, AGAIN = range(7, 11)
"""The order in which lines stay: the last and the other repeats of an error, those of the rest."""

REPEATS = {ANSWER: ERROR_AGAIN, ERROR: ERROR_AGAIN, WARNING: WARNING_AGAIN}
"""Where a line stands for which a similar one stands already; others are the last."""

ERRORS = frozenset(
    "abort aborted crit critical emerg emergency err error errors exception fail failed failure "
    "fatal panic panicked segfault severe traceback".split()
)
DIAGNOSTICS = (
    "error: ",
    "error[",
    "fatal: ",
    "fatal error: ",
    "ERROR: ",
    "ERROR ",
    "[ERROR]",
    "FAILED: ",
    "FAILED ",
    "FAIL ",
    "--- FAIL: ",
    "make: *** ",
    "npm ERR! ",
    "Traceback (most recent call last):",
)
"""How the errors of builds begin where no place stands before them."""

MARKDOWN = ("```", "## ", "|")
"""How lines of a page begin, which may quote an error: no build has them."""

WARNINGS = frozenset(["warn", "warning", "warnings"])

_WORD = re.compile(r"[A-Za-z]+")
_MASKED = re.compile(r"[0-9A-Za-z]+")
_LEVEL = re.compile(
    r"(?<![A-Za-z])(?:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|TRACE)(?![A-Za-z])"
)
_LEVEL_OF_OBJECT = re.compile(
    r'"(?:level|lvl|levelname|loglevel|log\.level|severity|severitytext)"'
    r'[ \t]*:[ \t]*(?:"([A-Za-z]+)|([0-9]+))',
    re.ASCII | re.IGNORECASE,
)
_MARK = re.compile(r"[0-9/\\_=\[\]<>{}|]")
_CLOCK = re.compile(r"[0-9][0-9]:[0-9][0-9]")


def log_of(text: str, query: str | None) -> Lines:
    """
    Return a log: answers and errors first, then warnings, the ends, what is around errors.

    Answers and errors take turns. Of similar lines the one that answers best stands for all;
    without a query, the first. The last of similar errors is early, too. Their other repeats take
    turns with the rest, so that neither a flood of one error hides the rest, nor the rest an error
    that came back.
    """
    units = split(text)
    lines = [text[unit.start : unit.body] for unit in units]
    scores = scores_of(query, lines)
    tell = [tells(line) for line in lines]
    # Lines that differ in a level that is a number are not alike.
    masks = [f"{told}{mask(line)}" for told, line in zip(tell, lines, strict=True)]
    count = len(lines)
    tiers = []
    heads = [*range(count)]
    """The error that a line is inside of, else the line."""
    best: dict[str, int] = {}
    last: dict[str, int] = {}
    was_error = False
    for i, line in enumerate(lines):
        told = tell[i]
        is_inside = was_error and line[:1] in (" ", "\t")
        was_error = told == ERROR or is_inside
        if is_inside:
            heads[i] = heads[i - 1]
            told = INSIDE
        elif told == ERROR:
            last[masks[i]] = i
        tiers.append(ANSWER if scores[i] > 0.0 else told)
        if scores[i] > scores[best.setdefault(masks[i], i)]:
            best[masks[i]] = i
    for i in range(count):
        if best[masks[i]] != i:
            tiers[i] = LAST if last.get(masks[i]) == i else REPEATS.get(tiers[i], AGAIN)
    for i in [i for i in range(count) if tiers[i] <= INSIDE]:
        for near in range(max(0, i - CONTEXT), min(count, i + CONTEXT + 1)):
            if tiers[near] == OTHER:
                tiers[near] = AROUND
    for i in [*range(min(EDGE, count)), *range(max(0, count - EDGE), count)]:
        tiers[i] = min(tiers[i], END)
    places = [place_from_ends(head, count) for head in heads]
    order = sorted(range(count), key=lambda i: (tiers[i], -scores[i], places[i], i))
    order = taking_turns(taking_turns(order, tiers, ANSWER), tiers, ERROR_AGAIN)
    return Lines(text, units, order, "line", masks)


def taking_turns(order: list[int], tiers: list[int], tier: int) -> list[int]:
    """Return lines in order of their tiers, but those of a tier in turns with the next one's."""
    both = [[i for i in order if tiers[i] == at] for at in (tier, tier + 1)]
    turns = [i for pair in zip_longest(*both) for i in pair if i is not None]
    before = [i for i in order if tiers[i] < tier]
    return before + turns + [i for i in order if tiers[i] > tier + 1]


def tells(line: str) -> int:
    """Return whether a line tells of an error, of a warning, or of neither."""
    level = _LEVEL_OF_OBJECT.search(line) if is_object(line) else None
    if level and level[2]:
        return told_by(level[2])
    words = [level[1]] if level else _WORD.findall(line)
    if line.startswith("E  ") or any(map(is_error, words)):
        return ERROR
    return WARNING if any(map(is_warning, words)) else OTHER


def told_by(number: str) -> int:
    """Return what a level tells that is a number: as in syslog below 10, else as in pino."""
    if len(number) == 1:
        return ERROR if number <= "3" else WARNING if number == "4" else OTHER
    return ERROR if len(number) > 2 or number >= "50" else WARNING if number >= "40" else OTHER


def is_error(word: str) -> bool:
    """Return whether a word of a line tells of an error; `-Werror` does not."""
    return word.lower() in ERRORS or word.endswith(("Error", "Exception", "ERROR", "EXCEPTION"))


def is_warning(word: str) -> bool:
    """Return whether a word of a line tells of a warning."""
    word = word.lower()
    return word in WARNINGS or word.endswith("warning")


def mask(line: str) -> str:
    """Return a line with its numbers, times and identifiers masked."""

    def masked(found: re.Match[str]) -> str:
        word = found[0]
        has_digit = any(char in "0123456789" for char in word)
        is_hex = len(word) >= 4 and not word.strip("0123456789abcdefABCDEF")
        return "#" if has_digit or is_hex else word

    return _MASKED.sub(masked, line)


def is_log(text: str) -> bool:
    """
    Return whether a text is a log, by its lines that are not blank.

    Half of them have a level or a clock's time; or all are objects of JSON; or one of them is the
    error of a build, and half have digits, slashes or the like, and none begins as in Markdown.
    """
    every = text.split("\n")
    lines = [line for line in every if line.strip(BLANK)]
    if len(lines) > 1 and all(map(is_object, lines)):
        return True
    starts = [line[:LOOKED_AT] for line in lines]
    found = sum(1 for start in starts if _LEVEL.search(start) or _CLOCK.search(start))
    marked = sum(1 for line in lines if _MARK.search(line))
    is_build = 2 * marked >= len(lines) and any(map(is_diagnostic, lines))
    is_build = is_build and not any(line.startswith(MARKDOWN) for line in lines)
    return len(lines) >= FEWEST and (2 * found >= len(lines) or is_build)


def is_diagnostic(line: str) -> bool:
    """Return whether a line is an error of a compiler, a test or a script."""
    if line.startswith(DIAGNOSTICS):
        return True
    for sign in (": error", ": fatal error"):
        place, _, said = line.partition(sign)
        is_place = bool(place) and " " not in place and "\t" not in place
        if is_place and said.startswith((": ", " ") if place.endswith(")") else ": "):
            return True
    return False
