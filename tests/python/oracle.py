"""
Exact counts beside tiktoken's, on texts made to be odd: the long run, which no gate waits for.

    python tests/python/oracle.py --strings 1000000 --seed 7

counts that many random texts by each encoding, and with ``--all`` every code point and every
offset, too. It says how many counts differed, and shows the shortest texts of those as literals.
The tests of exact counters take their texts from here and count fewer of them.
"""

import argparse
import functools
import importlib.metadata
import itertools
import os
import random
import string
import sys
import sysconfig
import time
import unicodedata
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import tiktoken
from support import (
    KNOWN_CLUSTERS,
    NOT_STRIPPED,
    ODD_CHARACTERS,
    PUNCTUATION,
    VOCABULARY,
    WHITESPACE,
)

from budgeteer import get_counter

ENCODINGS = ("cl100k_base", "o200k_base")
LAST_CODE_POINT = 0x10FFFF


class Difference(NamedTuple):
    """A text that two paths count differently."""

    encoding: str
    path: str
    text: str
    expected: int
    counted: object


@functools.cache
def reference(name):
    """Return the encoding that is the reference; tiktoken's own lookup takes a lock."""
    return tiktoken.get_encoding(name)


def expected_counts(name, texts):
    """Return what tiktoken counts."""
    encode = reference(name).encode_ordinary
    return [len(encode(text)) for text in texts]


def differences(name, texts, *, every=16):
    """
    Return where the counts of *texts* are not tiktoken's.

    All are counted in one batch, and one of *every* in all the other ways as well.
    """
    texts = list(texts)
    expected = expected_counts(name, texts)
    fresh, kept = get_counter(name, cache=False), get_counter(name)
    paths = [("count_batch", texts, expected, fresh.count_batch(texts).tolist())]
    texts, expected = texts[::every], expected[::every]
    if texts:
        pairs = list(zip(texts, expected, strict=True))
        till = fresh.count_till_limit
        paths += [
            ("count", texts, expected, [fresh.count(text) for text in texts]),
            ("cached", texts, expected, [kept.count(text) for text in texts]),
            ("cached batch", texts, expected, kept.count_batch(texts).tolist()),
            ("limit", texts, expected, [till(text, count) for text, count in pairs]),
            (
                "limit below",
                texts,
                [None if count else 0 for count in expected],
                [till(text, max(count - 1, 0)) for text, count in pairs],
            ),
        ]
    return [
        Difference(name, path, *found)
        for path, *columns in paths
        if columns[1] != columns[2]
        for found in zip(*columns, strict=True)
        if found[1] != found[2]
    ]


def assert_equal(texts, *, every=16, names=ENCODINGS):
    """Assert that each text is counted as tiktoken counts it, in every way there is."""
    texts = list(texts)
    for name in names:
        found = differences(name, texts, every=every)
        assert not found, [smallest(difference) for difference in shortest(found)]


def shortest(found, size=5):
    """Return the differences of the shortest texts."""
    return sorted(found, key=lambda difference: len(difference.text))[:size]


def smallest(difference, seconds=5.0, compare=None):
    """
    Return the difference with all taken out of its text that it does not need.

    *compare* takes an encoding and texts, and returns differences; by default `differences`.
    """
    compare = compare or functools.partial(differences, every=1)
    deadline = time.monotonic() + seconds
    text, best = difference.text, difference
    size = max(1, len(text) // 2)
    while time.monotonic() < deadline:
        for start in range(0, len(text), size):
            shorter = text[:start] + text[start + size :]
            still = [
                found
                for found in compare(difference.encoding, [shorter])
                if found.path == difference.path
            ]
            if still:
                text, best = shorter, still[0]
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return best


# Texts that exist.

SUFFIXES = frozenset(
    [".py", ".pyi", ".pyx", ".c", ".h", ".cpp", ".hpp", ".rs", ".js", ".ts", ".css", ".html",
     ".htm", ".xml", ".svg", ".json", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".md", ".rst",
     ".txt", ".csv", ".tsv", ".sh", ".bat", ".po", ".mo", ".tcl", ".sql", ".pl", ".f90", ".ipynb"]
)  # fmt: skip
NAMES = ("METADATA", "LICENSE", "LICENCE", "README", "COPYING", "NOTICE", "AUTHORS", "RECORD")
REPOSITORY = Path(__file__).resolve().parents[2]


def _is_text(path):
    return path.suffix.lower() in SUFFIXES or path.name.upper().startswith(NAMES)


def _below(folder, limit):
    """Return the first *limit* texts in a folder, if there is one."""
    found = (
        Path(root, name)
        for root, folders, names in os.walk(folder)
        if folders.sort() is None
        for name in sorted(names)
    )
    return list(itertools.islice(filter(_is_text, found), limit))


def files_of_the_machine():
    """Return files that hold texts: of this project, Python, its packages and the system."""
    project = [
        path
        for name in (
            "README.md",
            "CHANGELOG.md",
            "DECISIONS.md",
            "CONTRIBUTING.md",
            "pyproject.toml",
        )
        if (path := REPOSITORY / name).is_file()
    ]
    for name in ("python", "rust", "tests"):
        project += _below(REPOSITORY / name, 200)
    library = _below(sysconfig.get_path("stdlib"), 4_000)
    packages = [
        Path(distribution.locate_file(path))
        for distribution in importlib.metadata.distributions()
        for path in itertools.islice(filter(_is_text, distribution.files or ()), 300)
    ]
    shared = []
    for name in ("doc", "i18n", "locale", "common-licenses", "perl", "zoneinfo", "misc", "info"):
        shared += _below(Path("/usr/share", name), 600)
    return project, library, packages, shared


def texts_of_the_machine(rng, seconds, size=60_000):
    """Yield the starts of files, in a mixed order, until time is up."""
    groups = [group for group in files_of_the_machine() if group]
    for group in groups:
        rng.shuffle(group)
    deadline = time.monotonic() + seconds
    for path in (path for row in itertools.zip_longest(*groups) for path in row if path):
        if time.monotonic() > deadline:
            return
        try:
            with path.open("rb") as file:
                data = file.read(size)
        except OSError:
            continue  # a record of a file that is gone, or not ours to read
        # What is no UTF-8 becomes lone surrogates.
        yield data.decode("utf-8", "surrogateescape")


def windows(rng, text, count, longest=2_000):
    """Return pieces of a text that start and end anywhere."""
    pieces = []
    for _ in range(count if text else 0):
        start = rng.randrange(len(text))
        pieces.append(text[start : start + int(longest ** rng.random())])
    return pieces


@functools.cache
def real_texts():
    """Return pieces of what is on this machine, the same ones for every test of a run."""
    rng = random.Random(4)
    return [
        piece
        for text in texts_of_the_machine(rng, seconds=1.0, size=30_000)
        for piece in windows(rng, text, 3, 1_000)
    ]


SAMPLES = (
    ('{"id": 17, "name": "Zo\u00eb", "tags": ["a", null, -1.5e-07], "nested": {"k\\u00e9y": '
     '"\\n"}}\n'),
    "\tif (x != NULL && --n >= 0) {\r\n\t\treturn &buf[i++];  // HTMLParser's\r\n\t}\r\n",
    'fn main() -> Result<(), Box<dyn Error>> {\n    println!("{:?}", vec![1u8; 3]);\n}\n',
    "SELECT u.id, COUNT(*) AS n FROM users u WHERE u.name LIKE '%O''Brien%' GROUP BY 1;\n",
    "const f = async ({a, ...rest}) => `${a}/${rest?.b ?? 'none'}`; // camelCase $scope\n",
    "<p class=\"x\">I\u2019m here &mdash; don't <b>SHOUT</b>!</p>\n\n\n<!-- ok -->\n",
    ("def __init__(self, *args: int, **kwargs: Any) -> None:\n    '''It's a doc.'''\n    "
     "pass\n\n\n"),
    "#!/bin/sh\nfor f in *.txt; do echo \"${f%.txt}\" | sed -e 's/\\/\\//\\//g' >> out; done\n",
    "| a | b |\n|---|:-:|\n| 1,234.50 | 99% |\n\n* item\n  * nested\n\n```\ncode\n```\n",
    ("\u0412 2024 \u0433\u043e\u0434\u0443 \u041e\u041e\u041e "
     "\u00ab\u0420\u043e\u043c\u0430\u0448\u043a\u0430\u00bb "
     "\u043f\u043e\u043b\u0443\u0447\u0438\u043b\u043e 1\u00a0000\u00a0000 "
     "\u0440\u0443\u0431.\n"),
    ("\u6771\u4eac\u90fd\u306e\u5929\u6c17\u306f\u3001\u6674\u308c\u3002\u6c17\u6e29"
     "\u306f\uff12\uff15\u5ea6\u3067\u3059\u3002\u300c\u4eca\u65e5\u306f\u300d\u3068"
     "\u30b3\u30fc\u30d2\u30fc\u3002\n"),
    ("\uc548\ub155\ud558\uc138\uc694, \uc138\uacc4! "
     "\u1112\u1161\u11ab\uad6d\uc5b4\u00b7\ud55c\uad6d\uc5b4.\n"),
    ("\u0645\u0631\u062d\u0628\u0627\u064b \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c "
     "\u0661\u0662\u0663\u0664 \u2066\u05e9\u05dc\u05d5\u05dd\u2069 "
     "\u05e2\u05b4\u05d1\u05b0\u05e8\u05b4\u05d9\u05ea.\n"),
    ("\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e "
     "\u0967\u0968\u0969\u0964 "
     "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 "
     "\u0e51\u0e52\u0e53\n"),
    ("Ti\u1ebfng Vi\u1ec7t c\u00f3 d\u1ea5u; Ti\u00ea\u0301ng Vi\u00ea\u0323t. \u00c7a va? "
     "STRASSE/Stra\u00dfe \ufb01n \u01c5ungla\n"),
    ("\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd!! "
     "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 1\ufe0f\u20e3 \U0001d54f\U0001d7d9\U0001d7da "
     "\U00020000\U0002a6d6\n"),
)  # fmt: skip


@functools.cache
def scripts():
    """Return the characters of each script, as far as their names say it."""
    found = defaultdict(list)
    for code in range(LAST_CODE_POINT + 1):
        name = unicodedata.name(chr(code), "")
        if name:
            found[name.partition(" ")[0]].append(chr(code))
    return [characters for characters in found.values() if len(characters) >= 20]


# Texts made to be odd.

EXHAUSTIVE = (
    "a \n\t!/'s1A\u00e9\u0301",
    "a \r\n'\u017fS1\u01c5\u02b0\u0301\u4e2d",
    "eL'lA \u3000\x85\x1c\u0301\u200b_",
)
"""Alphabets, of which each text up to some length is counted."""

CONTRACTIONS = sorted(
    {
        "".join(letters)
        for word in ("s", "d", "m", "t", "ll", "ve", "re", "l", "v", "r", "n", "rs", "lv")
        for letters in itertools.product(
            *[{letter, letter.upper(), *("\u017f" if letter == "s" else "")} for letter in word]
        )
    }
)

DIGITS = ("1", "\u0663", "\u096a", "\uff17", "\u00b2", "\u2167", "\u00bd", "\U0001d7d9", "\u3007")
"""Of several scripts and of the categories Nd, No, Nl."""

SNIPPETS = (
    "", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", " \n ", "\r\n", "\r", "\t", "\t\t", "\x0b",
    "\x0c",
    "\x00", "\x1c", "\x1f", "\x7f", "\x85", "\xa0", "\u2028", "\u3000", "\u3000\n", "\u200b",
    "\ufeff",
    "'s", "'S", "'\u017f", "'ll", "'Ve", "'l", "''s", "\u2019s", "'", "' s", "n't", "'d've",
    "1", "12", "123", "1234", "\u0663\u0664", "\u00b2", "\u2167", "1a", "a1",
    "!", "!!", "!\n", "!/\n", "/", "//", "/\n/", "!\r\n/", " !", "  !", "\u2014", "\u3002",
    "\u20ac",
    "A", "AB", "aB", "ABc", "Ab", "\u00e9", "\u00c9", "\u01c5", "\u02b0", "\u0301", "e\u0301",
    "\u0301e", " \u0301",
    "\u4e2d", "\u4e2d\u6587", "\uac00", "\u0e01\u0e31", "\u0915\u094d", "\u05d0", "\ufb01",
    "\u00df", "\u1e9e", "\u0130", "\u0131",
    "\U0001f600", "\U0001f1e9\U0001f1ea", "\U0001f468\u200d\U0001f469", "\U0001d54f",
    "\U00020000", "\U000e0067", "\U0010ffff",
    "\ufffd", "\ud800", "\udc00", "\ud83d\ude00", "\ude00\ud83d", "\ud83d\ud83d\ude00",
    "<|endoftext|>", "<|im_start|>",
)  # fmt: skip

FILLERS = ("x", "X", "word ", "Word.", "7", " ", "\n", "!", "/", " \n", "a1", "xY")
"""What a snippet is set into, of ASCII alone."""

WIDENERS = ("", "\u00e9", "\u4e2d", "\U0001f600")
"""One of these makes a str one, one, two or four bytes wide for each character."""

SPECIAL = (
    "<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|endofprompt|>",
    "<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|start|>", "<|return|>", "<|endoftext|",
)  # fmt: skip

FRAGMENTS = sorted(
    {*SNIPPETS, *CONTRACTIONS, *("'" + word for word in CONTRACTIONS), *DIGITS, *SPECIAL,
     *VOCABULARY, *WHITESPACE, *ODD_CHARACTERS, *PUNCTUATION, *NOT_STRIPPED, *KNOWN_CLUSTERS,
     "HTMLParser", "camelCase", "XMLHttpRequest", "iPhone", "McDonald's", "O'Neill", "snake_case",
     "https://example.com/a?b=c&d", "</div>", "    ", "        ", "\n\n    ", "/*", "*/", "://",
     "...",
     "0.1", "1,000", "-1", "0x7f"}
)  # fmt: skip


def short_texts(alphabet, longest):
    """Yield every text of an alphabet up to a length."""
    for size in range(longest + 1):
        yield from map("".join, itertools.product(alphabet, repeat=size))


def contractions():
    """Yield every contraction, in every case, after and before what may change it."""
    before = ("", "a", "A", " ", "1", "\u00e9", "\u4e2d", "!", "\n", "\u02b0", "\u0301", " '")
    after = ("", "a", "A", "s", " ", "'s", "1", "\u0301", "\u02b0", "\n", "\u017f", "!")
    for parts in itertools.product(before, ("'", "''", "\u2019", "'\n"), CONTRACTIONS, after):
        yield "".join(parts)


def digits():
    """Yield runs of 1 to 20 digits of each kind, alone and mixed, in several contexts."""
    for size, one, two in itertools.product(range(1, 21), DIGITS, DIGITS):
        run = (one + two) * size
        for before, after in (("", ""), (" ", " "), ("a", "b"), ("-", "."), ("\n", "\n")):
            yield before + run[:size] + after


def whitespace():
    """Yield each pair of whitespace characters, and their runs, in several contexts."""
    for one, two in itertools.product([*WHITESPACE, "\u200b", "\ufeff", "\u180e"], repeat=2):
        for run in (one + two, one * 2 + two, one + two * 3, f"{one}\n{two}", f"{one} {two}"):
            for before, after in (("", ""), ("a", "b"), ("!", "/"), ("\n", "1"), ("'", "s")):
                yield before + run + after


def code_points(codes, per_text=1):
    """Yield texts that hold each code point beside a letter, a space and itself."""
    codes = iter(codes)
    while group := list(map(chr, itertools.islice(codes, per_text))):
        yield "\n".join([f"x{c}y {c}\n{c} a{c}{c}A{c}b" for c in group])


def embedded(offsets, fillers=FILLERS, wideners=WIDENERS, snippets=SNIPPETS, size=64):
    """Yield each snippet at each offset of a text long enough that blocks have edges there."""
    for filler, widener, offset in itertools.product(fillers, wideners, offsets):
        head = (filler * (offset + 1))[:offset]
        tail = filler * (size // len(filler) + 1)
        for snippet in snippets:
            yield head + snippet + tail + widener
            if widener and offset:
                yield widener + head[1:] + snippet + tail


def runs(starts, lengths):
    """Yield runs of one kind of character that start and end at each place of a block."""
    kinds = "aA1 \n\t!/'\u0301\u00e9\u4e2d\U0001f600\u3000"
    for kind, start, length in itertools.product(kinds, starts, lengths):
        for before, after in (("w", "w"), ("", "!"), (" ", "1"), ("x", "")):
            yield (before * start)[:start] + kind * length + after


def seams(size, around, snippets=SNIPPETS):
    """Yield long texts with each snippet across one place."""
    fillers = ("word ", "x", "\u4e2d", "Wo\u0142a ", "a\U0001f600")
    for filler, snippet, shift in itertools.product(fillers, snippets, around):
        head = (filler * (size // len(filler) + 20))[: size + shift]
        yield head + snippet + filler * 3


@functools.cache
def tokens(name):
    """Return the tokens that are texts by themselves."""
    values = reference(name).token_byte_values()
    return [text for value in values if "\ufffd" not in (text := value.decode(errors="replace"))]


def pairs_of_tokens(rng, name, count):
    """Yield texts of two to four tokens."""
    values = tokens(name)
    for _ in range(count):
        yield "".join(rng.choices(values, k=rng.choice((2, 2, 2, 3, 4))))


class RandomTexts:
    """Makes one odd text after the other, of all kinds; *words* are joined as tokens are."""

    def __init__(self, seed, real=(), words=None):
        self.rng = random.Random(seed)
        self.words = words
        self.real = [text for text in (*SAMPLES, *real) if text]
        self.kinds = (
            *(self._short, self._fragments, self._fragments, self._any, self._scripts, self._real),
            *(self._edge, self._repeated, self._tokens, self._word, self._changed),
        )

    def __call__(self):
        """Return a text; one of eight is two kinds in one."""
        text = self.rng.choice(self.kinds)()
        return text + self.rng.choice(self.kinds)() if self.rng.random() < 0.125 else text

    def _size(self, longest):
        return int(longest ** self.rng.random())

    def _short(self):
        alphabet = self.rng.choice(EXHAUSTIVE)
        return "".join(self.rng.choices(alphabet, k=self.rng.randrange(6, 30)))

    def _fragments(self):
        return "".join(self.rng.choices(FRAGMENTS, k=self._size(24)))

    def _any(self):
        last = self.rng.choice((0x7F, 0xFF, 0x7FF, 0xFFFF, 0x1FFFF, LAST_CODE_POINT))
        return "".join(chr(self.rng.randint(0, last)) for _ in range(self._size(16)))

    def _scripts(self):
        words = []
        for _ in range(self._size(8)):
            characters = self.rng.choice(scripts())
            words.append("".join(self.rng.choices(characters, k=self._size(12))))
        return self.rng.choice((" ", " ", "", "\n", "'", "-", "\u3000")).join(words)

    def _real(self):
        (piece,) = windows(self.rng, self.rng.choice(self.real), 1, 300)
        return piece

    def _changed(self):
        text = list(self._real())
        for _ in range(self._size(6)):
            place = self.rng.randrange(len(text) + 1)
            text[place : place + self.rng.randrange(3)] = self.rng.choice(FRAGMENTS)
        return self.rng.choice((str, str, str.upper, str.lower, str.swapcase))("".join(text))

    def _edge(self):
        filler = self.rng.choice(FILLERS)
        head = (filler * 200)[: self.rng.choice((32, 64, 128, 192)) + self.rng.randint(-6, 6)]
        return (
            self.rng.choice(WIDENERS) + head + self.rng.choice(FRAGMENTS) + filler * self._size(80)
        )

    def _repeated(self):
        unit = "".join(self.rng.choices(FRAGMENTS, k=self._size(3)))
        return unit * self._size(60) + self.rng.choice(FRAGMENTS)

    def _tokens(self):
        words = self.words or tokens(self.rng.choice(ENCODINGS))
        return "".join(self.rng.choices(words, k=self._size(8)))

    def _word(self):
        letters = self.rng.choice(("ab", "etaoin", string.ascii_lowercase, "ae\u00e9\u00df"))
        if self.rng.random() < 0.3:
            letters = self.rng.choice(scripts())
        return "".join(self.rng.choices(letters, k=self._size(300)))


# The long run.


def all_of_it():
    """Yield every code point by itself, every offset up to 300, and every short text."""
    yield from code_points(range(LAST_CODE_POINT + 1))
    for alphabet in EXHAUSTIVE:
        yield from short_texts(alphabet, 6)
    yield from itertools.chain(contractions(), digits(), whitespace())
    yield from embedded(range(301), size=140)
    yield from runs(range(140), range(1, 140))
    for name in ENCODINGS:
        yield from tokens(name)


def main():
    """Compare, and say what was found; the exit code is 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0].strip())
    parser.add_argument("--strings", type=int, default=1_000_000, help="how many random texts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="every code point and offset, too")
    arguments = parser.parse_args()

    import vocabulary

    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(vocabulary.cache_dir()))
    rng = random.Random(arguments.seed)
    real = [
        piece for text in texts_of_the_machine(rng, 20.0) for piece in windows(rng, text, 2, 4_000)
    ]
    make = RandomTexts(arguments.seed, real)
    texts = (make() for _ in range(arguments.strings))
    if arguments.all:
        texts = itertools.chain(texts, all_of_it())

    strings = characters = 0
    found = []
    while group := list(itertools.islice(texts, 20_000)):
        strings += len(group)
        characters += sum(map(len, group))
        for name in ENCODINGS:
            found += differences(name, group)
    sys.stdout.write(f"{strings} strings, {characters} characters, {len(found)} differences\n")
    for difference in dict.fromkeys(map(smallest, shortest(found, 20))):
        sys.stdout.write(f"{difference!a}\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
