"""
Work a process hard for as long as is asked for, and see that each answer is the one it always is.

    python scripts/soak.py threads [--seconds 600]
    python scripts/soak.py forks [--count 1000]
    python scripts/soak.py memory [--calls 1000000]

`threads`: eight threads share packers, a corpus, counters and a calibration. `forks`: processes
are forked while four such threads work, and each answers all calls once more. `memory`: the calls
of `threads` in one thread, errors included, until there were that many; the resident memory may
grow by 4 MiB from the first tenth on, in which caches fill.

The exit status is 1 where an answer differs, a child does not end well, or memory grows.
"""

import argparse
import gc
import os
import pickle
import random
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from budgeteer import (
    BudgeteerError,
    Calibration,
    Chunk,
    Corpus,
    Packer,
    Template,
    fit_output,
    fit_request,
    get_counter,
    parse_context,
    trim_messages,
)
from budgeteer.window import retrieval_budget

GROWTH = 4 << 20
FORK_SECONDS = 60
WORDS = (
    "green",
    "tea",
    "rye",
    "bread",
    "caf\u00e9",
    "remote",
    "policy",
    "teas",
    "\u8336",
    "\U0001f375",
)


def texts(count: int, seed: int = 0) -> list[str]:
    """Return texts of a dozen words."""
    rng = random.Random(seed)
    return [f"{i} " + " ".join(rng.choices(WORDS, k=12)) for i in range(count)]


def calls(folder: Path) -> dict[str, Callable[[], object]]:
    """Return calls by name. Each answers the same whenever it is made."""
    chunks = texts(60)
    titled = [
        Chunk(text, title="Teas", source="shelf", id=str(i)) for i, text in enumerate(chunks)
    ]
    question = "Is green tea remote? \u8336"
    corpus = Corpus(titled)
    corpus.save(folder / "teas.corpus")
    opened = Corpus.open(folder / "teas.corpus")
    calibration = Calibration()
    calibration.observe(1_000, 1_100, model="chars_div4")
    packers = {
        "plain": Packer(200),
        "near": Packer(200, dedupe="near", counter="cl100k_base"),
        "middle": Packer(200, overflow="truncate_middle", order="edges", template="xml"),
        "sentences": Packer(200, units="sentence", ranking="bm25"),
        "a function": Packer(400, counter=len, template="tagged", overflow="truncate_end"),
        "a format": Packer(90, counter="words", template=Template("<{title}> {text}")),
    }
    found: dict[str, Callable[[], object]] = {}
    for name, packer in packers.items():
        found[f"pack {name}"] = lambda packer=packer: packer.pack(question, titled).to_dict()
    for name, source in {"made": corpus, "opened": opened}.items():
        found[f"a corpus {name}"] = lambda source=source: Packer(99).pack(question, source).text
    for name in ("o200k_base", "cl100k_base", "qwen3.5", "gemma4", "claude4.8", "words"):
        counter = get_counter(name)
        found[f"count {name}"] = lambda counter=counter: [*map(counter.count, chunks)]
        found[f"cut {name}"] = lambda counter=counter: counter.truncate(chunks[0] * 9, 20)
    log = "".join(
        f"12:30 {'ERROR' if i % 9 == 0 else 'INFO'} {text}\n" for i, text in enumerate(chunks)
    )
    rows = [{"id": i, "text": text} for i, text in enumerate(chunks)]
    messages = [
        {"role": "system", "content": "Answer."},
        *(
            {"role": ("user", "assistant")[i % 2], "content": text}
            for i, text in enumerate(chunks)
        ),
    ]
    found |= {
        "fit a log": lambda: fit_output(log, 200),
        "fit rows": lambda: fit_output(rows, 200, kind="table", query=question),
        "trim": lambda: trim_messages(messages, 200, model="gpt-4o"),
        "request": lambda: fit_request({"model": "gpt-4o", "messages": messages}).request,
        "parse": lambda: parse_context(
            packers["middle"].pack(question, titled).text, template="xml"
        ),
        "batch": lambda: [
            one.text for one in packers["plain"].pack_batch([(question, chunks)] * 3)
        ],
        "calibrated": lambda: calibration.counter("chars_div4").count(chunks[0]),
        "pickled": lambda: (
            pickle.loads(pickle.dumps(packers["plain"])).pack(question, chunks).text
        ),
        "bad budget": lambda: Packer(-1),
        "bad chunk": lambda: packers["plain"].pack(question, [*chunks, {"body": "tea"}]),
        "bad counter": lambda: Packer(9, counter=lambda _: "many").pack(question, chunks),
        "bad file": lambda: Corpus.open(folder / "none.corpus"),
        "no budget": lambda: retrieval_budget(
            context_window=4_096, system_tokens=3_900, max_output_tokens=200, query_tokens=50
        ),
    }
    return found


def answer(call: Callable[[], object]) -> str:
    """Return what a call answers, or its error."""
    try:
        return repr(call())
    except (BudgeteerError, OSError) as error:
        return f"{type(error).__name__}: {error}"


class Soak:
    """Calls, and what each answered in the beginning."""

    def __init__(self, folder: Path) -> None:
        self.calls = calls(folder)
        self.expected = {name: answer(call) for name, call in self.calls.items()}
        self.names = [*self.calls]
        self.wrong: list[str] = []

    def make(self, name: str) -> None:
        """Make a call, and note where it answers anything else."""
        if answer(self.calls[name]) != self.expected[name]:
            self.wrong.append(name)

    def until(self, over: threading.Event, seed: int) -> int:
        """Make calls in an order of its own until it is *over*; return how many."""
        rng, made = random.Random(seed), 0
        while not over.is_set():
            self.make(rng.choice(self.names))
            made += 1
        return made


def threads(soak: Soak, seconds: float) -> str:
    """Let eight threads make calls."""
    over = threading.Event()
    with ThreadPoolExecutor(8) as pool:
        counts = [pool.submit(soak.until, over, seed) for seed in range(8)]
        time.sleep(seconds)
        over.set()
        made = sum(count.result() for count in counts)
    return f"8 threads made {made:,} calls in {seconds:g} s"


def forks(soak: Soak, count: int) -> str:
    """Fork while four threads make calls."""
    over, failed = threading.Event(), 0
    workers = [
        threading.Thread(target=soak.until, args=(over, seed), daemon=True) for seed in range(4)
    ]
    for worker in workers:
        worker.start()
    for _ in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                soak.wrong.clear()
                for name in soak.names:
                    soak.make(name)
                status = len(soak.wrong)
            finally:
                os._exit(status)
        failed += status_of(child) != 0
    over.set()
    for worker in workers:
        worker.join(FORK_SECONDS)
    soak.wrong += ["in a forked process"] * failed
    return f"{count:,} forks beside 4 threads, each with {len(soak.names)} calls: {failed} failed"


def status_of(child: int) -> int:
    """Return how a child ended; end it where it hangs."""
    ends = time.monotonic() + FORK_SECONDS
    while time.monotonic() < ends:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.001)
    os.kill(child, 9)
    return os.waitpid(child, 0)[1]


def resident() -> int:
    """Return the bytes of memory that the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def memory(soak: Soak, count: int) -> str:
    """Make that many calls in turn."""
    most = start = 0
    for made in range(count):
        soak.make(soak.names[made % len(soak.names)])
        if made >= count // 10 and made % max(1, count // 100) == 0:
            gc.collect()
            start = start or resident()
            most = max(most, resident())
    if most - start > GROWTH:
        soak.wrong.append(f"the memory, which grew by {most - start:,} bytes")
    return f"{count:,} calls: the memory grew by {(most - start) / 2**20:.2f} MiB"


def main() -> None:
    """Do what the command line says, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    modes = parser.add_subparsers(dest="mode", required=True)
    modes.add_parser("threads").add_argument("--seconds", type=float, default=600)
    modes.add_parser("forks").add_argument("--count", type=int, default=1_000)
    modes.add_parser("memory").add_argument("--calls", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder))
        if arguments.mode == "threads":
            print(threads(soak, arguments.seconds))
        elif arguments.mode == "forks":
            print(forks(soak, arguments.count))
        else:
            print(memory(soak, arguments.calls))
    if soak.wrong:
        sys.exit(f"{len(soak.wrong):,} wrong: {', '.join(sorted({*soak.wrong}))}")


if __name__ == "__main__":
    main()
