"""
Ranking by words in many languages, beside English in the same run.

    python benches/bench_languages.py [--languages FILE] [--rounds N] [--smoke]

500 chunks of 800 characters are packed for a question in their own language, by characters
divided by four, so that ranking is nearly all of the time. The chunks are sentences of a language
in many orders. FILE is JSON Lines (gzip or not) of ``f``, the name of a language, and ``text``:
with it its sentences stand in place of the few below.

Each round has one pass of each language and ranking, on new strings. Times are processor times,
medians over the rounds; the ratio is to English in the same run.
"""

# ruff: noqa: RUF001 - letters of many scripts

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from functools import partial
from pathlib import Path

from texts import CHARS
from timing import Case, interleaved

from budgeteer import Packer

RANKINGS = ("keyword", "bm25", "lexical")
CHUNKS = 500

QUESTIONS = {
    "eng": "What are the rights of a family to education?",
    "fra": "Quels sont les droits à l'éducation de la société?",
    "rus": "Каковы права семьи на образование и защиту?",
    "ell_monotonic": "Ποια είναι τα δικαιώματα της οικογένειας στην εκπαίδευση;",
    "arb": "ما هي حقوق الأسرة في التعليم والحماية؟",
    "hin": "परिवार और शिक्षा के अधिकार क्या हैं?",
    "cmn_hans": "家庭和教育的权利是什么，国家如何保护？",
    "jpn": "家族と教育に対する権利は何ですか。",
    "kor": "가족과 교육에 대한 권리는 무엇입니까?",
    "tha": "สิทธิของครอบครัวและการศึกษาคืออะไร",
}
SENTENCES = {
    "eng": "Every family has a right to rest. Education is free for all children. "
    "The state protects the home. Nobody may be held without a reason.",
    "fra": "Chaque famille a droit au repos. L'éducation est gratuite pour les élèves. "
    "L'État protège la société. Nul ne peut être détenu sans raison.",
    "rus": "Каждая семья имеет право на отдых. Образование бесплатно для всех детей. "
    "Государство защищает дом. Никто не может быть задержан без причины.",
    "ell_monotonic": "Κάθε οικογένεια έχει δικαίωμα στην ανάπαυση. Η εκπαίδευση είναι δωρεάν. "
    "Το κράτος προστατεύει το σπίτι. Κανείς δεν κρατείται χωρίς λόγο.",
    "arb": "لكل أسرة الحق في الراحة. التعليم مجاني لجميع الأطفال. "
    "الدولة تحمي البيت. لا يجوز احتجاز أحد دون سبب.",
    "hin": "हर परिवार को आराम का अधिकार है। शिक्षा सभी बच्चों के लिए मुफ़्त है। "
    "राज्य घर की रक्षा करता है। किसी को बिना कारण नहीं रोका जा सकता।",
    "cmn_hans": "每个家庭都有休息的权利。教育对所有儿童免费。国家保护家庭。任何人不得无故被拘留。",
    "jpn": "すべての家族には休む権利がある。教育はすべての子どもに無料である。国は家庭を守る。",
    "kor": "모든 가족은 쉴 권리가 있다. 교육은 모든 아이에게 무료이다. 국가는 가정을 보호한다.",
    "tha": "ทุกครอบครัวมีสิทธิพักผ่อน การศึกษาไม่มีค่าใช้จ่าย รัฐคุ้มครองบ้าน ห้ามกักขังโดยไม่มีเหตุผล",
}


def texts_of(path: Path | None) -> dict[str, str]:
    """Return a text in each language."""
    if path is None:
        return SENTENCES
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        found = {one["f"]: one["text"] for one in map(json.loads, lines)}
    return {name: found[name] for name in QUESTIONS if name in found}


def chunks_of(text: str, count: int) -> list[str]:
    """Return chunks of the sentences of a text, in many orders."""
    sentences = re.findall(r"[^.。।\n]+[.。।]?\s*", text)
    rng = random.Random(20)
    found = ""
    while len(found) < count * CHARS:
        found += "".join(rng.sample(sentences, len(sentences))) + "\n"
    return [found[at * CHARS : (at + 1) * CHARS] for at in range(count)]


def fresh(chunks: list[str]) -> list[str]:
    """Return new strings of the chunks."""
    return [(chunk + " ")[:-1] for chunk in chunks]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--languages", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--smoke", action="store_true", help="one round: does it run?")
    arguments = parser.parse_args()
    chunks = {
        name: chunks_of(text, CHUNKS) for name, text in texts_of(arguments.languages).items()
    }
    packers = [Packer(8_000, ranking=ranking, counter="chars_div4") for ranking in RANKINGS]
    cases = {
        (name, ranking): Case(partial(packer.pack, QUESTIONS[name]), partial(fresh, own))
        for name, own in chunks.items()
        for ranking, packer in zip(RANKINGS, packers, strict=True)
    }
    times = interleaved(cases, 1 if arguments.smoke else arguments.rounds)
    print("Nanoseconds a chunk, and how many times as long as in English\n")
    print(f"| | {' | '.join(RANKINGS)} |\n|---|{'---|' * len(RANKINGS)}")
    for name in chunks:
        cells = []
        for ranking in RANKINGS:
            taken = times.median((name, ranking)) / CHUNKS * 1e9
            ratio = times.ratio((name, ranking), ("eng", ranking))
            cells.append(f"{taken:.0f} ({ratio:.1f})")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
