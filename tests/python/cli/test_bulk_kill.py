"""``budgeteer pack --output FILE`` is killed, interrupted, or out of room, and goes on."""

import json
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
from bulk_support import NEEDS_ZSTD, packed, process, read, requests, write
from support import ONLY_REFERENCE
from test_cli_terminal import Terminal

from budgeteer import Packer

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals differ there")

NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="has no /proc")
NUMBER = 400 if ONLY_REFERENCE else 2_000
SECONDS = 60


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def wait_until(check, running=None):
    """Wait until *check* says yes, or the process has ended; return whether it still runs."""
    ends = time.monotonic() + SECONDS
    while not check():
        if running is not None and running.poll() is not None:
            return False
        assert time.monotonic() < ends, "it takes too long"
        time.sleep(0.002)
    return running is None or running.poll() is None


def size_of(path):
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


def children_of(pid):
    """Return the processes that a process has started."""
    return [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and status_of(path.name).get("PPid") == str(pid)
    ]


def status_of(pid):
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it has ended
        return {}
    return {
        key: value.strip() for key, _, value in (line.partition(":") for line in text.split("\n"))
    }


def is_alive(pid):
    return status_of(pid).get("State", "Z")[0] not in "ZX"


KILLS = 8
SLOW = (
    "import sys, time, budgeteer.cli as cli, budgeteer.cli._part as part\n"
    "append = part.Part.append\n"
    "def slow(*arguments):\n"
    "    append(*arguments); time.sleep(0.2)\n"
    "part.Part.append = slow\n"
    "sys.exit(cli.main(sys.argv[1:]))"
)
"""The program, which takes some seconds for the requests of `slow`."""


def slow(**options):
    """Start such a program, and return it when the first rows are safe."""
    write("in.jsonl", requests(1_000))
    child = process("in.jsonl", "out.jsonl", wait=False, code=SLOW, **options)
    assert wait_until(lambda: size_of("out.jsonl.part/state.json") > 0, child)
    return child


@pytest.mark.parametrize(
    ("source", "output"),
    [
        (".jsonl", ".jsonl"),
        (".jsonl", ".parquet"),
        (".parquet", ".jsonl.gz"),
        pytest.param(".jsonl.zst", ".jsonl.zst", marks=NEEDS_ZSTD),
    ],
)
def test_a_kill_at_any_moment_loses_nothing_and_doubles_nothing(source, output):
    """The output is what a run writes that nobody stops, however often another is killed."""
    write(f"in{source}", requests(NUMBER))
    process(f"in{source}", f"whole{output}", workers=2)
    whole = read(f"whole{output}")
    assert NUMBER == len(whole)
    chosen = random.Random(f"{source}{output}")
    size = (
        sum(len(str(row)) for row in whole) if output == ".parquet" else size_of(f"whole{output}")
    )
    moments = sorted(chosen.random() * size for _ in range(KILLS - 2))
    kills = 0
    part = f"killed{output}.part"
    for moment in (None, *moments, None):
        child = process(f"in{source}", f"killed{output}", workers=chosen.randint(1, 3), wait=False)
        if moment is None:  # whatever it does then
            time.sleep(chosen.random() / 2)
        else:
            wait_until(lambda moment=moment: size_of(f"{part}/rows") > moment, child)
            time.sleep(chosen.random() / 50)
        child.kill()
        _, said = child.communicate()
        kills += child.returncode == -signal.SIGKILL
        assert b"budgeteer/" not in said, "a worker that Python just starts may have a traceback"
        if child.returncode == 0:  # it was faster
            assert whole == read(f"killed{output}")
            Path(f"killed{output}").unlink()
    process(f"in{source}", f"killed{output}", workers=2)
    assert kills >= 5, "of four outputs at least 20"
    assert whole == read(f"killed{output}")
    assert Path(f"whole{output}").read_bytes() == Path(f"killed{output}").read_bytes()
    assert not Path(part).exists()


def test_a_kill_while_the_table_is_written():
    """It is written anew."""
    write("in.jsonl", requests(50))
    process("in.jsonl", "whole.parquet")
    code = (
        "import os, signal, sys, budgeteer.cli._bulk as bulk, budgeteer.cli as cli\n"
        "write = bulk.write_table\n"
        "def killed(*arguments):\n"
        "    next(write(*arguments)); os.kill(os.getpid(), signal.SIGKILL)\n"
        "bulk.write_table = killed\n"
        "cli.main(sys.argv[1:])"
    )
    done = process("in.jsonl", "killed.parquet", check=False, code=code)
    assert -signal.SIGKILL == done.returncode
    assert not Path("killed.parquet").exists()
    assert size_of("killed.parquet.part/new") > 0
    process("in.jsonl", "killed.parquet")
    assert Path("whole.parquet").read_bytes() == Path("killed.parquet").read_bytes()


@NEEDS_PROC
def test_workers_end_with_a_process_that_is_killed():
    """Nothing is left behind, and nothing writes."""
    child = slow(workers=2)
    workers = children_of(child.pid)
    assert len(workers) >= 2
    child.kill()
    child.communicate()
    wait_until(lambda: not any(map(is_alive, workers)))
    assert not Path("out.jsonl").exists()


@NEEDS_PROC
def test_ctrl_c_ends_all_and_leaves_what_is_done():
    """Status 130, one line, no process; the same command goes on."""
    child = slow(workers=2, start_new_session=True)
    workers = children_of(child.pid)
    start = time.monotonic()
    os.killpg(child.pid, signal.SIGINT)
    assert 130 == child.wait(SECONDS)
    assert time.monotonic() - start < 2  # 0.1 s where nothing else runs
    assert (b"", b"budgeteer: stopped; the same command goes on\n") == child.communicate()
    wait_until(lambda: not any(map(is_alive, workers)))
    done = process("in.jsonl", "out.jsonl", workers=2)
    assert re.fullmatch(rb"budgeteer: going on after \d+ requests\n", done.stderr)
    assert packed(requests(1_000), Packer(40, counter="words")) == read("out.jsonl")


@NEEDS_PROC
def test_a_worker_that_is_killed_is_said():
    """With its requests, as its memory may not be enough for them; then it goes on."""
    child = slow()
    (worker,) = (
        pid
        for pid in children_of(child.pid)
        if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(worker, signal.SIGKILL)
    _, said = child.communicate(timeout=SECONDS)
    assert 2 == child.returncode
    expected = rb"budgeteer: error: a worker ended by signal 9 at the requests \d+ to \d+ of the "
    assert re.match(expected, said), said
    process("in.jsonl", "out.jsonl")
    assert 1_000 == len(read("out.jsonl"))


@pytest.mark.parametrize("output", [".jsonl", ".parquet"])
def test_a_full_disk_is_one_line_and_no_output(output):
    """What cannot be written is said; with more room the same command goes on."""
    pytest.importorskip("resource")
    write("in.jsonl", requests(600))
    process("in.jsonl", f"whole{output}")
    limit = size_of(f"whole{output}") // 2
    code = (
        "import resource, sys, budgeteer.cli as cli\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    done = process("in.jsonl", f"out{output}", check=False, code=code)
    said = f"budgeteer: error: cannot write 'out{output}': File too large\n"
    assert (2, said) == (done.returncode, done.stderr.decode())
    assert not Path(f"out{output}").exists()
    process("in.jsonl", f"out{output}")
    assert Path(f"whole{output}").read_bytes() == Path(f"out{output}").read_bytes()


# Memory, and the bar.


def peaks(source, output):
    """Return the most kilobytes that the processes had, from the smallest on."""
    code = (  # else the smaller output would be less than a row group
        "import sys, budgeteer.cli._requests as requests, budgeteer.cli as cli\n"
        "requests._GROUP = 2**17\n"
        "if __name__ == '__main__': sys.exit(cli.main(sys.argv[1:]))"
    )
    env = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    child = process(source, output, wait=False, code=code, env=env)
    found = {}

    def is_over():
        for pid in (child.pid, *children_of(child.pid)):
            peak = status_of(pid).get("VmHWM")
            if peak is not None:  # before its program begins, a process has its parent's
                found[pid] = int(peak.split()[0])
        return child.poll() is not None

    wait_until(is_over)
    assert 0 == child.wait(), child.communicate()[1]
    child.communicate()
    return sorted(found.values())


@NEEDS_PROC
@pytest.mark.skipif(ONLY_REFERENCE, reason="takes minutes, and reads and writes the same")
@pytest.mark.parametrize(
    ("source", "output", "share"),
    [
        (".jsonl", ".jsonl.gz", 0.25),
        pytest.param(".jsonl.zst", ".jsonl.zst", 0.25, marks=NEEDS_ZSTD),
        (".parquet", ".parquet", 0.75),  # a group of rows is larger in a larger table
    ],
)
def test_memory_does_not_grow_with_the_input(source, output, share):
    """Ten times as many requests take at most a share of their text more, in each process."""
    write(f"one{source}", requests(1_000))
    write(f"ten{source}", requests(10_000))
    text = sum(len(json.dumps(request)) for request in requests(9_000)) // 1024
    # A short run may end before anybody looks at a process that has loaded all.
    runs = [peaks(f"one{source}", f"{i}.packed{output}") for i in range(3)]
    ones = [max(peak) for peak in zip(*runs, strict=True)]
    tens = peaks(f"ten{source}", f"ten.packed{output}")
    assert 10_000 == len(read(f"ten.packed{output}"))
    assert text > 20_000
    grown = [ten - one for one, ten in zip(ones, tens, strict=True)]
    assert all(more < text * share for more in grown), (runs, tens)


def test_a_terminal_sees_a_bar():
    """It counts requests, and says how many a second."""
    write("in.jsonl", requests(NUMBER * 2))
    code = (
        "import sys, budgeteer.cli as cli, budgeteer.cli._progress as progress\n"
        "progress._DELAY = 0.01\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    arguments = ("pack", "--input", "in.jsonl", "-n", 40, "-m", "words", "-o", "out.jsonl")
    status, out, seen = Terminal(*arguments, code=code).finish()
    assert (0, b"") == (status, out)
    assert re.search(rb"Packing: [1-9]\d* \([1-9]\d*/s\)", seen), seen
    assert NUMBER * 2 == len(read("out.jsonl"))
