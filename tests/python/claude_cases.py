"""
Texts with the counts of ctok for three families of Claude, which Rust counts alike.

    python3.12 -m venv VENV && VENV/bin/pip install ctok==1.3.0
    VENV/bin/python tests/python/claude_cases.py

writes `tests/cases/claude.json` anew; `rust/core/src/count/claude/tests.rs` reads it.
`scripts/oracle_claude.py` compares many more texts than fit a file.
"""
# ruff: noqa: RUF001  # letters of many scripts

from pathlib import Path
from random import Random

from cases import write
from ctok import token_count

FILE = Path(__file__).parents[1] / "cases/claude.json"

FRAMES = {"3.0": 7, "4.7": 11, "4.8": 6}
"""The tokens of a message besides its text, by the version that ctok knows a family by."""

LETTERS = [
    "abcdefghijklmnopqrstuvwxyz",
    "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßœšžčćđłńśźżğışőűȘțẞİ",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZÀÁÉÈÖÜÇŠŽ",
    "αβγδεζηθικλμνξοπρσςτυφχψωάέήΑΒΓΔΣΩϴϓϒ",
    "абвгдежзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗЯїієґ",
    "אבגדהוזחטיכלמנסעפצקרשת\u05b0\u05b8\u05bc\u05c1",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤ\u064b\u064e\u0651٠١٢٣٤٥٦٧٨٩۰۱۲",
    "अआइकखगघचजटतदनपबमयरलवशसह\u093c\u093e\u093f\u0940\u0941\u0947\u094d०१२३।",
    "กขคงจฉชซญดตถทนบปผพฟมยรลวสหอ\u0e31\u0e34\u0e35\u0e48\u0e49\u0e32\u0e33\u0e4d",
    "அஆஇகஙசஞடணதநபமயரலவழளறன\u0bbe\u0bbf\u0bc0\u0bc1\u0bcd",
    "ܐܒܓܕܗܘܙܚܛ\u0711\u0730\u0733\u073f\u0740\u0742",
    "あいうえおかきくけこアイウエオカキクケコーヶ々〆･",
    "的一是不了人我在有他这中大来上国個、。？！（），：",
    "가나다라마바사아자차카타파하한글ᄀᄂ\u1161\u1162\u11a8\u11ab",
    "ⒶⓐⅣⅳᛮ〄〒→√•·│─█№†§€£©®™×÷±²³½¾①②Ⓩ�□△►－ǅǄ",
    "\u0300\u0301\u0308\u0323\u0327\u0338\u20d0\u3099\u0903\u0345\u1abb\ufe0f\ufe0e\ufe00",
    "😀👍🏽👩\u200d💻❤\ufe0f🇩🇪🧑🏿⚖𝔘𝟘𞤀",
    "'\"’‘“”„«»‚`´",
    " \n\t\u00a0\u3000\u2003\u2028\u200b\r\x0b\x85\x00",
    "\x01\x07\x1b\x7f\x9f\u200c\u200d\u2060\ufeff\ue000\uf8ff\ufdd0\ufdd1\ufdd4\ufffe",
    "0123456789",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
]

WORDS = """
Hello world the of and don't can't NASA HTTPServer iPhone WiFi getElementById tokenizers naïve
façade Straße GROẞE İstanbul Überraschung ΟΔΟΣ Εὐκλείδης Привет мир МИР café CAFE cafe\u0301 x'S
it's we'll 'tis rock'n'roll for(int i=0;i<10;++i){ self.assertEqual( </div> === --> ::
... !!! "), 1234567 3.14 0xFF 12:30 №5 §7 10€ 5′ ½ १२ ٣٤ 你好 こんにちは 한국어 ภาษาไทย हिन्दी தமிழ்
עברית العربية
""".split()  # noqa: SIM905  # easier to read


def _run(rng):
    """Return many of one character."""
    return rng.choice(" \n\t.-=*#_/'\"~a0") * rng.randrange(1, 70)


def _any(rng):
    """Return any character, of low code more often."""
    code = rng.randrange(rng.choice([0x3100, 0x110000]))
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)


def _word(rng):
    """Return a word in any case."""
    return rng.choice([str, str, str.upper, str.capitalize, str.swapcase])(rng.choice(WORDS))


def _contraction(rng):
    """Return an apostrophe with letters that may join what is before it."""
    return "'" + rng.choice(["s", "t", "d", "m", "ll", "re", "ve", "S", "x", "lls"])


def _letters(rng):
    """Return letters of one script."""
    return "".join(rng.choices(rng.choice(LETTERS), k=rng.randrange(1, 7)))


UNITS = [
    *(_word, _run, _any, _contraction),
    *[_letters] * 5,
    lambda rng: rng.choice([" ", "  ", "\n", "\n\n", "\t", "   ", " \n"]),
    lambda rng: rng.choice("!\"#$%&'()*+,-./:;<=>?@[]_{}") * rng.randrange(1, 4),
    lambda rng: "".join(rng.choices("0123456789", k=rng.randrange(1, 9))),
    lambda rng: "".join(rng.choices("abcABC", k=rng.randrange(1, 9))),
]


def made(number, seed):
    """Return texts made at random."""
    rng = Random(seed)
    texts = []
    for _ in range(number):
        units = []
        for _ in range(rng.randrange(1, rng.choice([3, 8, 25]))):
            units.append(rng.choice(UNITS)(rng))
            if rng.random() < 0.3:
                units.append(" ")
        if rng.random() < 0.1:
            units.append("\n" * rng.randrange(1, 45))
        texts.append("".join(units))
    return [text for text in texts if text]


def counts(text):
    """Return the tokens of a text without the frame, by family."""
    return [token_count(text, version) - frame for version, frame in FRAMES.items()]


def cases():
    """Return texts with their counts."""
    texts = [
        *WORDS,
        *(f" {word}" for word in WORDS[:20]),
        *("\n" * length for length in (1, 2, 3, 28, 29, 40, 200)),
        *(f"x{newlines}" for newlines in ("\n", "\n\n", "\n" * 28, "\n" * 29, " \n", "\n \n")),
        *(" " * length for length in (1, 2, 3, 16, 17, 100, 300)),
        *(
            "a" + space + "b"
            for space in (" ", "  ", "\t", "\u00a0", "\u3000", "\0", "\x01", "\r\n")
        ),
        *(
            "1",
            " 1",
            "中",
            " 中",
            "\u00a0a",
            "\x01 a",
            " \u00a0a",
            "'tis",
            " 'tis",
            "\u0301",
            "\ue000",
        ),
        *(" \u00b2\u20e3a's", " \u00bd\ufe0f ", "-'", "'\u2167"),
        *("é\u00b9's", "中's", "1's", "٣'s", ")'s", "a''s", "Ⓐ's", "x 'REXX", "\u093e's"),
        *(
            " १²",
            "१²",
            "x १२",
            "१२ 中",
            "文？ 1",
            "1 ？。1",
            "⚖\ufe0f x",
            "中\ufe0e x",
            "a\u0338 b",
        ),
        *("ABC", "ABCD", "ÀÉÎÕ", "ⅣⅣⅣⅣ", "ǅabc", "ヲBUTTヲ", "ϴΑΒΓ", "Aİbc", "AẞB", "ꟋꟋꟋꟋ"),
        *(
            "\u0e4d\u0e32",
            "\u0e4d\x01\u0e32",
            "\u0e4d\ue000\u0e32",
            "e\x01\u0301",
            "\u2126",
            "\u1100\u1161",
        ),
        *(" ".join(made(1, seed)) * 40 for seed in range(900, 903)),
        *made(300, 18),
    ]
    return [[text, counts(text)] for text in texts]


if __name__ == "__main__":
    write(FILE, [cases])
