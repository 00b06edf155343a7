"""Threads, forks and memory: the short form of `scripts/soak.py`, and processes of each kind."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from support import ONLY_REFERENCE

from budgeteer import Corpus, Packer, get_counter

SOAK = Path(__file__).parents[3] / "scripts" / "soak.py"
native = pytest.mark.skipif(ONLY_REFERENCE, reason="BUDGETEER_BACKEND=reference was asked for")
CHUNKS = [f"{i} green tea, rye bread and \u8336" for i in range(200)]


@native
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(
    "arguments",
    [
        ("threads", "--seconds", "5"),
        ("forks", "--count", "50"),
        pytest.param(
            ("memory", "--calls", "20000"),
            marks=pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc"),
        ),
    ],
    ids=lambda arguments: arguments[0],
)
def test_soak(arguments):
    """
    Each call answers as it did first.

    That holds beside seven other threads, in a process that is forked meanwhile, and 20,000 calls
    later, without memory that is not given back.
    """
    environment = {**os.environ, "BUDGETEER_BACKEND": "native"}
    done = subprocess.run(
        [sys.executable, SOAK, *arguments],
        env=environment,
        capture_output=True,
        check=False,
        timeout=250,
    )
    assert (0, b"") == (done.returncode, done.stderr)


@native
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_pools(method, tmp_path):
    """Packers, corpora and counters reach the processes of a pool, however these are started."""
    Corpus(CHUNKS).save(tmp_path / "teas")
    packer, corpus = Packer(60), Corpus.open(tmp_path / "teas")
    counter = get_counter("o200k_base")
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        packings = [pool.submit(packer.pack, "tea", each) for each in (corpus, CHUNKS)]
        count = pool.submit(counter.count, "green tea")
        assert [packer.pack("tea", CHUNKS).text] * 2 == [one.result(120).text for one in packings]
        assert counter.count("green tea") == count.result(120)


SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters  # 3.13 on
except ImportError:
    import _xxsubinterpreters as interpreters
code = '''
import sys
sys.path[:] = {path!r}
try:
    import budgeteer
    found = budgeteer.pack("tea", ["green tea", "rye"], 2).text
except ImportError as error:
    found = "ImportError"
if found not in ("green tea", "ImportError"):
    raise AssertionError(found)
'''.replace("{path!r}", repr(sys.path))
import budgeteer
expected = budgeteer.pack("tea", ["green tea", "rye"], 2).text
for _ in range(3):
    interpreter = interpreters.create()
    problem = interpreters.run_string(interpreter, code)
    if problem is not None:
        sys.exit(repr(problem))
    interpreters.destroy(interpreter)
sys.exit(expected != budgeteer.pack("tea", ["green tea", "rye"], 2).text)
"""


@native
def test_subinterpreters():
    """In another interpreter of the process budgeteer works or cannot be imported."""
    done = subprocess.run(
        [sys.executable, "-c", SUBINTERPRETER], capture_output=True, check=False, timeout=120
    )
    assert 0 == done.returncode, done.stderr.decode()
