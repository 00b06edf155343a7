"""
The texts of the suite, the same on every machine.

They are made from files of packages in the group ``test``, whose versions are pinned there. The
SHA-256 of each is here and checked: another version, and so another text, stops the run.

- English, French, Russian, Chinese, Japanese, Arabic: the messages of Plone's user interface.
- code: Python of theaios-context-router. JSON: the subdivisions of countries, of pycountry.
- emoji: each with its name in English, of emoji.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files, version

from texts import CHARS, fresh

CATALOGUES = ("plone", "plonefrontpage", "widgets", "cmfeditions", "cmfplacefulworkflow")
ENTRY = re.compile(
    r'(?:^#\. Default: "(?P<default>.*)"$(?:\n#.*)*\n)?'
    r'^msgid (?P<id>(?:".*"\n)+)msgstr (?P<said>(?:".*"\n?)+)',
    re.MULTILINE,
)
WORDS, WIDE, PAIRS = r"[^\W\d_]{4,}", r"[^\W\d_a-zA-Z]{4,}", r"[^\W\d_a-zA-Z]{2}"
"""A word of a query: any, one that has no letter of English, or two letters without one."""

LENGTHS = (3, 8, 32, 100)
"""How many words a query has."""


class TextError(Exception):
    """A text is not the one that the figures are for, or cannot be made."""


def content(package: str, ending: str) -> str:
    """Return the content of the one file of an installed package whose path ends so."""
    (path,) = [path for path in files(package) or () if str(path).endswith(ending)]
    return path.locate().read_text(encoding="utf-8")  # type: ignore[no-any-return, unused-ignore]


def unquoted(lines: str) -> str:
    """Return the string that quoted lines make."""
    return "".join(ast.literal_eval(line) for line in lines.splitlines())


def messages(language: str) -> str:
    """Return the messages of Plone in a language that are not the English ones, or those."""
    found = []
    for name in CATALOGUES:
        of = "fr" if language == "en" else language
        catalogue = content("plone.app.locales", f"/locales/{of}/LC_MESSAGES/{name}.po")
        for entry in ENTRY.finditer(catalogue):
            quoted = entry["default"]
            english = unquoted(f'"{quoted}"' if quoted else entry["id"])
            said = unquoted(entry["said"])
            if language == "en":
                found.append(english)
            elif said != english:
                found.append(said)
    return "\n".join(one for one in dict.fromkeys(found) if one and "Content-Type:" not in one)


def code() -> str:
    """Return the modules of theaios-context-router."""
    paths = sorted(str(p) for p in files("theaios-context-router") or () if p.suffix == ".py")
    return "\n".join(content("theaios-context-router", path) for path in paths)


def subdivisions() -> str:
    """Return the subdivisions of countries as JSON, as they are in the file."""
    return content("pycountry", "databases/iso3166-2.json")


def emoji() -> str:
    """Return emoji in rows of eight, each with the name of its first."""
    named = json.loads(content("emoji", "unicode_codes/emoji.json"))
    rows = [[*named][at : at + 8] for at in range(0, len(named), 8)]
    names = [named[row[0]]["en"].strip(":").replace("_", " ") for row in rows]
    return "\n".join(f"{name}: {''.join(row)}" for name, row in zip(names, rows, strict=True))


@dataclass(frozen=True)
class Source:
    """How a text is made, of which packages, and its SHA-256."""

    package: str
    make: Callable[[], str]
    sha256: str
    word: str = WORDS
    """What a word of a query is."""


def plone(language: str, sha256: str, word: str = WORDS) -> Source:
    """Return the messages of a language as a source."""
    return Source("plone.app.locales", functools.partial(messages, language), sha256, word)


SOURCES = {
    "English": plone("en", "18b3427cba6d4ecc61e65d87ff37f1ea1feaf7150369f9a8dedac59f87f65381"),
    "code": Source(
        "theaios-context-router",
        code,
        "f77b065249e7fa30f2ceb52e2d8230d66311b935f5faf7d7d6f169b3f46c38eb",
    ),
    "JSON": Source(
        "pycountry",
        subdivisions,
        "78c90ef7fc25b5c2631aac5f089bc9ff6ec22c025c05b6ddbc087a1f1be2e46a",
    ),
    "French": plone("fr", "39923eac2466132f4891e7d3f52c3eca96a0555075dc71d37a713bf666b28262"),
    "Russian": plone(
        "ru", "d10e702404a0300fdefe8ce002ee791f13676d1ad22dc5ea3c3b4815b71932c6", WIDE
    ),
    "Chinese": plone(
        "zh_CN", "ccb0a5d1988f7642f53c9cf0cf8642f1a78d06c87e98be2bb3c2f1195ed74fc3", PAIRS
    ),
    "Japanese": plone(
        "ja", "c25de3a198dc788332655153d1f000fa50dbcc38f741850484bdf407ce682039", PAIRS
    ),
    "Arabic": plone(
        "ar", "4948c34e4113bb74e8a245db04e65bd38a1286f43a0a4e018067e0dbfc6c6849", WIDE
    ),
    "emoji": Source(
        "emoji", emoji, "47ac499b6c943c78a7cdfd61ee254f3cf6fc4cfc7decc733ed5a38b01e96b9ce"
    ),
}


@functools.cache
def text_of(name: str) -> str:
    """
    Return a text by its name.

    Raises:
        TextError: Its package is not installed, or the text is another one.

    """
    source = SOURCES[name]
    try:
        text = source.make()
        found = version(source.package)
    except (PackageNotFoundError, ValueError) as error:
        raise TextError(
            f"the text {name!r} needs {source.package}: pip install --group test"
        ) from error
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    if sha256 != source.sha256:
        raise TextError(
            f"the text {name!r}, of {source.package} {found}, has the SHA-256 {sha256}, and not"
            f" {source.sha256}: install the version that the group 'test' names"
        )
    return text


def chunks_of(name: str, count: int) -> list[str]:
    """Return *count* chunks of a text, which begin at different places, as new strings."""
    return fresh(text_of(name), count)


def pieces_of(name: str, most: int) -> list[str]:
    """Return the whole chunks of a text, one behind the other, no more than *most*."""
    text = text_of(name)
    return [text[at : at + CHARS] for at in range(0, len(text) - CHARS + 1, CHARS)][:most]


@functools.cache
def query_of(name: str, words: int) -> str:
    """
    Return a query of *words* different words of a text, from all over it.

    In Chinese and Japanese a word is two letters that follow one another.
    """
    found = list(dict.fromkeys(re.findall(SOURCES[name].word, text_of(name))))
    return " ".join(found[:: len(found) // words][:words])
