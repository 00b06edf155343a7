"""Reference of ``rust/core/src/score/bm25.rs``."""

import struct
from array import array
from collections import Counter
from collections.abc import Sequence

from budgeteer._codes import TEXT_TYPE, TITLE_TYPE
from budgeteer._reference._rank.terms import DEFAULT_WORDS, Terms, Words

K1, B = 1.2, 0.75
"""The default parameters."""


def score(
    query: str,
    texts: Sequence[tuple[str, str]],
    k1: float,
    b: float,
    words: Words = DEFAULT_WORDS,
) -> list[float]:
    """
    Return the BM25 score of each text with its title, over all of them.

    The order of the operations is part of the result, as the native backend uses the same.
    """
    scores = []
    for found in parts(query, texts, k1, b, words)[1]:
        value = 0.0
        for _, part in found:
            value += part
        scores.append(value)
    return scores


def parts(
    query: str, texts: Sequence[tuple[str, str]], k1: float, b: float, words: Words
) -> tuple[list[float], list[list[tuple[int, float]]]]:
    """Return the weight of each term of the query, and the score it adds to each text."""
    terms = Terms(words)
    wanted = terms.of_query(query)
    if not wanted:
        return [], [[] for _ in texts]
    split = terms.of_texts(part for pair in texts for part in pair)
    counted = [Counter(text + title) for text, title in zip(split[::2], split[1::2], strict=True)]
    lengths = [float(sum(counts.values())) for counts in counted]
    total = 0.0
    for length in lengths:
        total += length
    size = float(len(counted))
    idf = []
    for term in wanted:
        frequency = float(len([counts for counts in counted if term in counts]))
        idf.append(ln(1.0 + (size - frequency + 0.5) / (frequency + 0.5)))
    found: list[list[tuple[int, float]]] = []
    for counts, length in zip(counted, lengths, strict=True):
        found.append([])
        for number, (term, weight) in enumerate(zip(wanted, idf, strict=True)):
            if term in counts:
                count = float(counts[term])
                norm = k1 * ((1.0 - b) + b * (length / (total / size)))
                found[-1].append((number, weight * ((count * (k1 + 1.0)) / (count + norm))))
    return idf, found


def bm25_scores(
    query: str,
    texts: Sequence[object],
    titles: Sequence[object] | None,
    k1: float,
    b: float,
    words: Words,
) -> bytearray | tuple[int, int]:
    """Score each text as float64; or return a code and the index of an item that is not a str."""
    pairs = pairs_of(texts, titles)
    if isinstance(pairs, tuple):
        return pairs
    return bytearray(array("d", score(query, pairs, k1, b, words)).tobytes())


def pairs_of(
    texts: Sequence[object], titles: Sequence[object] | None
) -> list[tuple[str, str]] | tuple[int, int]:
    """Return each text with its title; or a code and the index of an item that is not a str."""
    pairs = []
    for i, text in enumerate(texts):
        title = "" if titles is None else titles[i]
        if not isinstance(text, str):
            return TEXT_TYPE, i
        if not isinstance(title, str):
            return TITLE_TYPE, i
        pairs.append((str.__str__(text), str.__str__(title)))
    return pairs


def _from_bits(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


LN2_HI = _from_bits(0x3FE62E42FEE00000)
LN2_LO = _from_bits(0x3DEA39EF35793C76)
LG = [
    _from_bits(bits)
    for bits in (
        0x3FE5555555555593, 0x3FD999999997FA04, 0x3FD2492494229359, 0x3FCC71C51D8E78AF,
        0x3FC7466496CB03DE, 0x3FC39A09D078C69F, 0x3FC2F112DF3E5244,
    )
]  # fmt: skip


def ln(x: float) -> float:
    """
    Return the natural logarithm of *x*, which must be finite and at least 1.

    This is fdlibm's ``__ieee754_log`` without its cases for other numbers, so that every platform
    gives the same result; the native backend uses it too.
    """
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    high = bits >> 32
    exponent = (high >> 20) - 1023
    high &= 0x000FFFFF
    # A mantissa above the square root of 2 is halved.
    half = (high + 0x95F64) & 0x100000
    exponent += half >> 20
    f = _from_bits((high | (half ^ 0x3FF00000)) << 32 | bits & 0xFFFFFFFF) - 1.0
    dk = float(exponent)

    if (0x000FFFFF & (2 + high)) < 3:  # |f| < 2**-20
        if f == 0.0:
            return 0.0 if exponent == 0 else dk * LN2_HI + dk * LN2_LO
        r = f * f * (0.5 - 0.3333333333333333 * f)
        return f - r if exponent == 0 else dk * LN2_HI - ((r - dk * LN2_LO) - f)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    t1 = w * (LG[1] + w * (LG[3] + w * LG[5]))
    t2 = z * (LG[0] + w * (LG[2] + w * (LG[4] + w * LG[6])))
    r = t2 + t1
    if (high - 0x6147A) | (0x6B851 - high) > 0:
        hfsq = 0.5 * f * f
        if exponent == 0:
            return f - (hfsq - s * (hfsq + r))
        return dk * LN2_HI - ((hfsq - (s * (hfsq + r) + dk * LN2_LO)) - f)
    if exponent == 0:
        return f - s * (f - r)
    return dk * LN2_HI - ((s * (f - r) - dk * LN2_LO) - f)
