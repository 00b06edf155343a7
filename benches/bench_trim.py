"""
Trimming a growing history turn after turn, beside langchain-core and litellm.

    python benches/bench_trim.py [--turns N] [--window N] [--smoke]

A provider caches the beginning of a prompt that stays the same. So the history is trimmed before
each reply of the model, and each prompt is compared with the one before it:

- changed: of the turns in which something was left out, cut or masked, the share in which the last
  prompt is not the beginning of this one;
- unused: the part of the window that these prompts leave empty, on average;
- cached: the part of their tokens that stood at the same place in the prompt before;
- ms: the time of a call, which is not comparable between packages that count differently;
- us: the same for each message of the history, in microseconds.

The conversations have the shapes of recorded ones: a chat, agents that call tools, whose results
have long tails, with many questions or a single one, and a mix. Their sizes are scaled so that a
turn takes on average the share of the window that the table says. Texts are pieces of the language
reference that ships with Python, always the same. Every prompt is counted by `count_messages`.
langchain-core gets that count for each message; litellm counts with its own. A package that is not
installed is left out.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from pydoc_data.topics import topics
from random import Random
from typing import Any, TypeAlias

from texts import vocabulary

from budgeteer import trim_messages
from budgeteer.window import count_messages

WINDOW, TURNS = 16_000, 300
SHARES = (0.015, 0.05)
CALL = 60  # tokens of a call without its results, about
MODEL = "gpt-4o"
TEXT = "\n".join(topics.values())
CHARS_PER_TOKEN = 4.2  # of this text, about
SYSTEM = {"role": "system", "content": "You are a careful assistant. Use the tools. " * 6}

Message: TypeAlias = dict[str, Any]
Turn: TypeAlias = tuple[list[Message], list[Message]]
"""What is asked, or what tools returned, and what the model replies."""
Trim: TypeAlias = Callable[[list[Message], int], list[Message]]


class Conversation:
    """Makes the messages of a conversation, with sizes in tokens on average."""

    def __init__(self, seed: int) -> None:
        """Draw from *seed*."""
        self.random = Random(seed)
        self.calls = 0

    def text(self, tokens: float, spread: float) -> str:
        """Return a text whose size has a long tail: a log-normal of that mean."""
        mean = math.log(max(tokens, 1)) - spread**2 / 2
        chars = int(CHARS_PER_TOKEN * min(self.random.lognormvariate(mean, spread), 6 * tokens))
        start = self.random.randrange(len(TEXT) - chars - 1)
        return TEXT[start : start + chars + 1]

    def question(self, tokens: float) -> Message:
        """Return a message of the user."""
        return {"role": "user", "content": self.text(tokens, 0.7)}

    def answer(self, tokens: float) -> Message:
        """Return a reply of the model."""
        return {"role": "assistant", "content": self.text(tokens, 0.5)}

    def call(self, tokens: float, results: int) -> tuple[Message, list[Message]]:
        """Return a reply that calls tools, and their results."""
        calls, made = [], []
        for _ in range(results):
            self.calls += 1
            key = f"call_{self.calls}"
            function = {"name": "read", "arguments": f'{{"path": "src/{self.calls}.py"}}'}
            calls.append({"id": key, "type": "function", "function": function})
            content = self.text(tokens / results, 1.1)
            made.append({"role": "tool", "tool_call_id": key, "content": content})
        said = self.text(25, 0.4)
        return {"role": "assistant", "content": said, "tool_calls": calls}, made

    def chat(self, size: float) -> Iterator[Turn]:
        """Yield questions and answers."""
        while True:
            yield [self.question(size * 0.25)], [self.answer(size * 0.75)]

    def agent(self, size: float, rounds: Callable[[], int]) -> Iterator[Turn]:
        """Yield questions, each followed by calls of tools and an answer."""
        while True:
            asked = [self.question(size * 0.3)]
            for _ in range(rounds()):
                parallel = self.random.choice([1, 1, 1, 2, 3])
                reply, results = self.call(max(size - CALL, 20), parallel)
                yield asked, [reply]
                asked = results
            yield asked, [self.answer(size * 0.5)]

    def mixed(self, size: float) -> Iterator[Turn]:
        """Yield both in turn, some turns of each."""
        chat = self.chat(size)
        agent = self.agent(size, lambda: self.random.randrange(2, 6))
        while True:
            for source in (chat, agent):
                for _ in range(self.random.randrange(3, 12)):
                    yield next(source)


def shapes(size: float) -> dict[str, Iterator[Turn]]:
    """Return endless conversations whose turns have *size* tokens on average."""
    many = Conversation(1)
    return {
        "chat": Conversation(2).chat(size),
        "agent": many.agent(size, lambda: many.random.randrange(3, 13)),
        "one question": Conversation(3).agent(size, lambda: 10**9),
        "mixed": Conversation(4).mixed(size),
    }


class Ours:
    """Trims by the options of `trim_messages`; with *previous*, by what was returned last."""

    def __init__(self, *, stays: bool, **options: Any) -> None:
        """Begin a conversation."""
        self.stays, self.options = stays, options
        self.sent: list[Message] | None = [] if stays else None

    def __call__(self, history: list[Message], window: int) -> list[Message]:
        """Return what is sent."""
        sent = trim_messages(history, window, model=MODEL, previous=self.sent, **self.options)
        if self.stays:
            self.sent = sent
        return sent


def langchain_run() -> Trim:
    """Trim with langchain-core, by the same count."""
    core = importlib.import_module("langchain_core.messages")
    known: dict[str, int] = {}
    converted: dict[int, tuple[Message, Any]] = {}

    def message(item: Message) -> Any:
        if id(item) not in converted:
            made = core.convert_to_messages([item])[0]
            made.id = str(len(converted))
            known[made.id] = count_messages([item], model=MODEL) - 3
            converted[id(item)] = item, made
        return converted[id(item)][1]

    def run(history: list[Message], window: int) -> list[Message]:
        back = {message(item).id: item for item in history}
        left = core.trim_messages(
            [message(item) for item in history],
            max_tokens=window,
            token_counter=lambda items: 3 + sum(known[item.id] for item in items),
            strategy="last",
            include_system=True,
            start_on=("human", "ai"),
        )
        return [back[item.id] for item in left]

    return run


def litellm_run() -> Trim:
    """Trim with litellm, by its own count and its default ratio."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it uses the network
    os.environ["TIKTOKEN_CACHE_DIR"] = str(vocabulary.cache_dir())
    trim = importlib.import_module("litellm.utils").trim_messages

    def run(history: list[Message], window: int) -> list[Message]:
        left: list[Message] = trim([dict(item) for item in history], MODEL, max_tokens=window)
        return left

    return run


PEERS = {"langchain-core": ("langchain_core", langchain_run), "litellm": ("litellm", litellm_run)}


def runs() -> dict[str, Callable[[], Trim]]:
    """Return what to compare: each makes a trim for one conversation."""
    found: dict[str, Callable[[], Trim]] = {
        "previous": lambda: Ours(stays=True),
        "previous, keep_results=3": lambda: Ours(stays=True, keep_results=3),
        "neither": lambda: Ours(stays=False),
    }
    for name, (package, make) in PEERS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{name} is not installed: left out", file=sys.stderr)
        else:
            found[name] = make
    return found


def measured(trim: Trim, turns: Iterator[Turn], number: int, window: int) -> list[float]:
    """Return the turns with something left out, the shares changed, unused, cached, and times."""
    history: list[Message] = [SYSTEM]
    before: list[Message] = []
    trimmed = changed = 0
    unused = cached = total = spent = given = 0.0
    for _ in range(number):
        asked, replies = next(turns)
        history += asked
        start = time.process_time()
        sent = list(trim(history, window))
        spent += time.process_time() - start
        given += len(history)
        if sent != history:
            tokens = count_messages(sent, model=MODEL)
            stable = 0
            while stable < min(len(sent), len(before)) and sent[stable] == before[stable]:
                stable += 1
            trimmed += 1
            changed += stable < len(before)
            unused += 1 - tokens / window
            cached += max(0, count_messages(sent[:stable], model=MODEL) - 3)
            total += tokens
        before = sent
        history += replies
    most = max(trimmed, 1)
    shares = [changed / most, unused / most, cached / max(total, 1)]
    return [trimmed, *shares, spent / number * 1e3, spent / max(given, 1) * 1e6]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--window", type=int, default=WINDOW)
    parser.add_argument("--smoke", action="store_true", help="few turns: does it run, and hold?")
    arguments = parser.parse_args()
    number, window = (80, 3_000) if arguments.smoke else (arguments.turns, arguments.window)
    shares = (0.05,) if arguments.smoke else SHARES
    found_runs = runs()
    print(f"Python {sys.version.split()[0]}: {number} turns, a window of {window} tokens")
    names = ("trimmed", "changed", "unused", "cached", "ms", "us")
    for share in shares:
        print(f"\na turn of {share:.1%} of the window{'':4}" + "".join(f"{n:>9}" for n in names))
        for shape in shapes(1):
            # All that follows the newest question stays, so that its calls fill any window.
            length = min(number, window * 2 // 5 // CALL) if shape == "one question" else number
            for name, make in found_runs.items():
                found = measured(make(), shapes(share * window)[shape], length, window)
                shown = f"{found[0]:9.0f}" + "".join(f"{part:9.1%}" for part in found[1:4])
                print(f"{shape:13}{name:26}{shown}{found[4]:9.2f}{found[5]:9.2f}", flush=True)
                if arguments.smoke and name == "previous" and found[1] > 0.5:
                    raise SystemExit("the beginning of the prompt changes in most turns")


if __name__ == "__main__":
    main()
