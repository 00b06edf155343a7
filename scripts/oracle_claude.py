"""
Compare the counts for Claude with those of ctok, from whose measurements they are reconstructed.

    python3.12 -m venv VENV && VENV/bin/pip install ctok==1.3.0
    VENV/bin/python scripts/oracle_claude.py [--texts 5000] [--seed 0] [FILE ...]

Counts texts made at random, every character on its own, and the files given: text, or lines of
JSON with a key "text" (also compressed by gzip). It runs the counts of Rust as a test of the core,
and says which texts differ. The empty text is left out: ctok counts the frame's marker, the core
nothing.
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ctok import token_count

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = {"3.0": 7, "4.7": 11, "4.8": 6}
"""The frame of a message in tokens, by the version of ctok."""

LETTERS = {
    "latin": "abcdefghijklmnopqrstuvwxyz",
    "accents": "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßœšžčćđłńśźżğışőűȘțẞİ",
    "capitals": "ABCDEFGHIJKLMNOPQRSTUVWXYZÀÁÉÈÖÜÇŠŽ",
    "greek": "αβγδεζηθικλμνξοπρσςτυφχψωάέήΑΒΓΔΣΩϴϓϒ",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗЯїієґ",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשת\u05b0\u05b8\u05bc\u05c1",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤ\u064b\u064e\u0651٠١٢٣٤٥٦٧٨٩۰۱۲",
    "devanagari": "अआइकखगघचजटतदनपबमयरलवशसह\u093c\u093e\u093f\u0940\u0941\u0947\u094d०१२३।",
    "thai": "กขคงจฉชซญดตถทนบปผพฟมยรลวสหอ\u0e31\u0e34\u0e35\u0e48\u0e49\u0e32\u0e33\u0e4d",
    "tamil": "அஆஇகஙசஞடணதநபமயரலவழளறன\u0bbe\u0bbf\u0bc0\u0bc1\u0bcd",
    "syriac": "ܐܒܓܕܗܘܙܚܛ\u0711\u0730\u0733\u073f\u0740\u0742",
    "kana": "あいうえおかきくけこアイウエオカキクケコーヶ々〆･",
    "han": "的一是不了人我在有他这中大来上国個、。？！（），：",
    "hangul": "가나다라마바사아자차카타파하한글ᄀᄂ\u1161\u1162\u11a8\u11ab",
    "symbols": "ⒶⓐⅣⅳᛮ〄〒→√•·│─█№†§€£©®™×÷±²³½¾①②Ⓩ�□△►－",
    "marks": "\u0300\u0301\u0308\u0323\u0327\u0338\u20d0\u3099\u0903\u0345\u1abb\ufe0f\ufe0e\ufe00",
    "emoji": "😀👍🏽👩\u200d💻❤\ufe0f🇩🇪🧑🏿⚖𝔘𝟘𞤀",
    "quotes": "'\"’‘“”„«»‚`´",
    "space": " \n\t\u00a0\u3000\u2003\u2028\u200b\r\x0b\x85\x00",
    "control": "\x01\x07\x1b\x7f\x9f\u200c\u200d\u2060\ufeff\ue000\uf8ff\ufdd0\ufdd1\ufdd4\ufffe",
    "digits": "0123456789",
    "signs": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
}


def text(pieces, generator):
    """One text, of a few units."""
    units = []
    for _ in range(generator.randrange(1, generator.choice([3, 8, 25]))):
        match generator.randrange(14):
            case 0 | 1:
                word = generator.choice(pieces)
                units.append(generator.choice([str, str, str.upper, str.capitalize, str.swapcase])(word))
            case 2:
                units.append(generator.choice([" ", " ", "  ", "\n", "\n\n", "\t", "   ", " \n"]))
            case 3:
                units.append(generator.choice("!\"#$%&'()*+,-./:;<=>?@[]_{}") * generator.randrange(1, 4))
            case 4:
                units.append("".join(generator.choices("0123456789", k=generator.randrange(1, 9))))
            case 5:
                units.append("'" + generator.choice(["s", "t", "d", "m", "ll", "re", "ve", "S", "x", "lls"]))
            case 6:
                units.append(generator.choice(" \n\t.-=*#_/'\"~a0") * generator.randrange(1, 70))
            case 7:
                code = generator.randrange(0x110000 if generator.random() < 0.5 else 0x3100)
                units.append("\ufffd" if 0xD800 <= code < 0xE000 else chr(code))
            case 8:
                units.append("".join(generator.choices("abcABC", k=generator.randrange(1, 9))))
            case _:
                letters = LETTERS[generator.choice(list(LETTERS))]
                units.append("".join(generator.choices(letters, k=generator.randrange(1, 7))))
        if generator.random() < 0.3:
            units.append(" ")
    if generator.random() < 0.1:
        units.append("\n" * generator.randrange(1, 45))
    return "".join(units)


def made(number, seed):
    """Texts made at random, and each character in a few places."""
    generator = random.Random(seed)
    found = ROOT.joinpath("README.md").read_text().split()
    pieces = [*found, *"hello world NASA iPhone don't tokenizers getElementById naïve façade".split()]
    return [text(pieces, generator) for _ in range(number)]


def characters(step):
    """Every character, or of those beyond the first plane each `step`th, with neighbours."""
    codes = [*range(1, 0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, step)]
    return [f"a{char}b {char} c{char}{char} 1{char}1 中{char}. {char}A" for char in map(chr, codes)]


def read(path):
    """The texts of a file."""
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8")
    with opened as file:
        content = file.read()
    if ".jsonl" in path.name:
        return [json.loads(line)["text"] for line in content.splitlines()]
    return [content]


def count(texts):
    """The counts of the core, by text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts")
        path.write_text("".join(json.dumps(text) + "\n" for text in texts))
        test = ["cargo", "test", "-q", "--release", "-p", "budgeteer", "--features", "claude", "--lib"]
        subprocess.run(
            [*test, "--", "--ignored", "--exact", "count::claude::tests::oracle"],
            cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
            env={**os.environ, "BUDGETEER_ORACLE": str(path)},
        )  # fmt: skip
        lines = Path(f"{path}.counts").read_text().splitlines()
    return [tuple(map(int, line.split())) for line in lines]


def main():
    """Compare, and exit with 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--characters", type=int, metavar="STEP")
    parser.add_argument("files", type=Path, nargs="*")
    arguments = parser.parse_args()
    texts = made(arguments.texts, arguments.seed)
    if arguments.characters:
        texts += characters(arguments.characters)
    for path in arguments.files:
        texts += read(path)
    texts = [text for text in texts if text]
    counts = count(texts)
    if len(counts) != len(texts):
        sys.exit(f"There are {len(texts)} texts, but {len(counts)} were counted.")
    start = time.perf_counter()
    different = 0
    for text, ours in zip(texts, counts):
        theirs = tuple(token_count(text, version) - frame for version, frame in VERSIONS.items())
        if ours != theirs:
            different += 1
            if different <= 10:
                print(f"{text[:200]!r}: {ours}, but ctok says {theirs}")
    took = time.perf_counter() - start
    size = sum(len(text.encode()) for text in texts)
    print(f"{len(texts):,} texts, {size:,} bytes, {different:,} differences; ctok took {took:.0f} s")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
