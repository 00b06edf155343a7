"""The native backend neither panics into Python nor keeps the interpreter from a signal."""

import os
import signal
import subprocess
import sys
import time

import pytest

from budgeteer import InternalError

pytestmark = pytest.mark.skipif(
    os.environ.get("BUDGETEER_BACKEND") == "reference", reason="is about the native backend"
)

LONG = """
import signal, sys
import budgeteer

signal.signal(signal.SIGINT, signal.default_int_handler)
chunks = ["word " * 10_000_000] * 5_000
packer = budgeteer.Packer(10, dedupe=None)
print("ready", flush=True)
try:
    packer.pack("the query that is never found", chunks)
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_a_panic_is_an_internal_error(capfd):
    """A defect in the native code is an InternalError with its message, not a PanicException."""
    from budgeteer import _native

    with pytest.raises(InternalError, match=r"a defect of budgeteer.*names no such counter"):
        _native.count(99, 1.0, "text")
    assert 1 == _native.count(0, 1.0, "text")


SHARED = """
import os, signal, sys
os.environ["BUDGETEER_NUM_THREADS"] = "3"
import budgeteer

signal.signal(signal.SIGINT, signal.default_int_handler)
chunks = ["green tea \\u8336 " * 2_000] * 1_000_000
packer = budgeteer.Packer(10)
print("ready", flush=True)
try:
    packer.pack("the query that is never found", chunks)
except KeyboardInterrupt:
    sys.exit(7)
"""


NEAR = """
import random, signal, sys
import budgeteer

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = random.Random(0)
parts = [" ".join(f"w{rng.randrange(10**6)}" for _ in range(12)) for _ in range(300)]
chunks = [" ".join(rng.sample(parts, 40)) for _ in range(60_000)]
packer = budgeteer.Packer(10**9, counter="words", ranking="input", dedupe="near")
print("ready", flush=True)
try:
    packer.pack("", chunks)
except KeyboardInterrupt:
    sys.exit(7)
"""


CUT = """
import signal, sys
import budgeteer

signal.signal(signal.SIGINT, signal.default_int_handler)
log = "12:30 INFO " + "tea " * 300 + "\\n"
log *= 100_000
print("ready", flush=True)
try:
    budgeteer.fit_output(log, 1_000)
except KeyboardInterrupt:
    sys.exit(7)
"""


@pytest.mark.parametrize(
    "program", [LONG, SHARED, NEAR, CUT], ids=["reading", "sharing", "comparing", "cutting"]
)
def test_an_interrupt_stops_a_long_call(program):
    """Ctrl-C ends a call of many seconds within 200 ms."""
    # 200 ms of ours; the rest is for the interpreter's end on a busy machine.
    tries = (seconds_to_stop(program, after) for after in (0.5, 0.25, 0.1))
    assert any(took < 0.6 for took in tries if took is not None), "not once of three times"


def seconds_to_stop(program, after):
    """
    Interrupt a program so many seconds after it says that it is ready.

    Return what it then takes to end; None where it had ended by itself, on a fast machine.
    """
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert b"ready" in process.stdout.readline()
        time.sleep(after)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        return time.monotonic() - start if process.wait(30) == 7 else None
