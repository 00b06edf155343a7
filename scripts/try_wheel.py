"""
Use the installed package once in each of its parts: a wheel is released that passes this.

    python -I scripts/try_wheel.py
"""

import sys

import budgeteer
from budgeteer import Corpus, Packer, get_counter, pack, trim_messages

TEXT = "Für Qwen: naïve tokens, 中文 and code(); 12345\n\n\t end"
COUNTS = {
    "cl100k_base": 19,
    "o200k_base": 18,
    "qwen2": 22,
    "qwen3.5": 22,
    "deepseek": 18,
    "glm4": 18,
    "tekken": 21,
    "gemma4": 21,
}


def main() -> None:
    """Fail where an answer is not the one that is known."""
    for name, count in COUNTS.items():
        expect(count, get_counter(name).count(TEXT))
    chunks = ["Employees may work remotely.", "Lunch is at noon.", "Remote work needs a VPN."]
    packing = pack("remote work policy", chunks, 14)
    expect("Employees may work remotely.\n\nRemote work needs a VPN.", packing.text)
    expect((11, True), (packing.total_tokens, packing.is_exact))
    expect(packing.text, Packer(14).pack("remote work policy", Corpus(chunks)).text)
    message = {"role": "user", "content": "Hello!"}
    expect([message], trim_messages([message], 20))
    expect(True, "budgeteer._native" in sys.modules)
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"budgeteer {budgeteer.__version__} packs and counts in Python {python}")


def expect(expected: object, found: object) -> None:
    """Fail unless both are equal."""
    if expected != found:
        raise SystemExit(f"{found!r} is not {expected!r}")


if __name__ == "__main__":
    main()
