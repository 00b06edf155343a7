"""
Compare what the native module answers on this processor and on older ones, which qemu stands for.

    python scripts/check_processors.py [--seed N] [--chunks N]

Code for wide registers is chosen at run time, by what the processor has. Each processor below
lacks something that one such choice asks for; all must count, score and pack alike. Needs
`qemu-x86_64` (Debian's qemu-user), and budgeteer with its native module in this Python.
"""

import argparse
import hashlib
import platform
import random
import shutil
import subprocess
import sys
from array import array

from budgeteer import Packer, _native, get_counter

PROCESSORS = {
    "Nehalem": "SSE4.2 and popcnt, no AVX",
    "Nehalem,-popcnt": "no popcnt either",
    "SandyBridge": "AVX, no AVX2",
    "Haswell": "AVX2 and BMI, no AVX-512",
    "Haswell,-bmi1,-bmi2": "AVX2 without BMI",
    "Haswell,-popcnt": "AVX2 without popcnt",
}
WORDS = "the remote work policy needs a VPN naïve Straße Работа 政策は 中文 🎉 x=f(1); 12345 \n\n"
COUNTERS = ("o200k_base", "cl100k_base", "qwen2", "deepseek", "tekken", "gemma4", "chars_div4")
RANKINGS = ("lexical", "bm25", "keyword")


def main() -> None:
    """Compare, or as the program under qemu, answer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().partition("\n")[0])
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--chunks", type=int, default=120)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        sys.stdout.write(answers(given.seed, given.chunks))
        return
    qemu = shutil.which("qemu-x86_64")
    if platform.machine() != "x86_64" or not qemu:
        raise SystemExit("this needs qemu-x86_64, on x86-64")
    program = [sys.executable, __file__, f"--seed={given.seed}", f"--chunks={given.chunks}"]
    expected = output([*program, "--answer"])
    for processor, lacks in PROCESSORS.items():
        found = output([qemu, "-cpu", processor, *program, "--answer"])
        if found != expected:
            lines = zip(expected.splitlines(), found.splitlines(), strict=True)
            differ = [one for one, other in lines if one != other]
            raise SystemExit(f"{processor} ({lacks}) answers otherwise: {differ}")
        print(f"{len(found.splitlines())} equal answers: {processor} ({lacks})")


def output(command: list[str]) -> str:
    """Return what a command prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def answers(seed: int, size: int) -> str:
    """Return a line for each question: what was asked, and a hash of the answer."""
    chosen = random.Random(seed)
    words = WORDS.split(" ")
    chunks = [
        " ".join(chosen.choice(words) for _ in range(chosen.randrange(1, 160)))
        for _ in range(size)
    ]
    chunks += [chunk.replace("the", "a") for chunk in chunks[::9]]
    query = "remote work policy 政策"
    found = {f"count {name}": [get_counter(name).count(c) for c in chunks] for name in COUNTERS}
    for name in RANKINGS:
        for dedupe in ("exact", "near"):
            packer = Packer(900, ranking=name, dedupe=dedupe)
            packing = packer.pack(query, chunks)
            kept = [(chunk.index, chunk.score, chunk.token_count) for chunk in packing.kept]
            found[f"pack {name} {dedupe}"] = (packing.text, packing.total_tokens, kept)
    found["sentences"] = Packer(400, units="sentence").pack(query, chunks).text
    # numpy may refuse the oldest processors, so vectors are given without it.
    numbers = array("f", (chosen.uniform(-1, 1) for _ in range(70 * 67)))
    vectors = memoryview(numbers).cast("B").cast("f", shape=[70, 67])
    found["cosine"] = _native.cosine_scores(memoryview(numbers[:67]), vectors)
    return "".join(
        f"{question}: {hashlib.sha256(repr(answer).encode()).hexdigest()}\n"
        for question, answer in found.items()
    )


if __name__ == "__main__":
    main()
