"""Files whose process is killed, whose disk is full or whose folder is read-only."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from support import ONLY_REFERENCE

from budgeteer import Calibration, Corpus, Packer
from budgeteer.embedding._cache import MIN_BYTES, Cache

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(ONLY_REFERENCE, reason="BUDGETEER_BACKEND=reference was asked for"),
    pytest.mark.skipif(sys.platform != "linux", reason="is about files as Linux has them"),
]

KILLS = int(os.environ.get("BUDGETEER_TEST_KILLS", "5"))
KINDS = ["corpus", "calibration", "embeddings"]
WRITER = """
import itertools, sys
from pathlib import Path
import numpy as np
from budgeteer import Calibration, Corpus
from budgeteer.embedding._cache import Cache

kind, folder, first = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
cache = Cache(folder, 1 << 24)
print("ready", flush=True)
for i in itertools.count(first):
    if kind == "corpus":
        Corpus([f"tea {i}"] * (i % 50 + 1) + ["rye " * 3_000]).save(folder / kind)
    elif kind == "calibration":
        calibration = Calibration()
        for _ in range(20):
            calibration.observe(1_000 + i % 1_000, 2 * (1_000 + i % 1_000), model="chars_div4")
        calibration.save(folder / kind)
    else:
        # The same 2,000 keys again and again: new ones would drive the others' out.
        start = 20 * (first + i % 100)
        keys = [b"%032d" % (start + k) for k in range(20)]
        cache.put(keys, np.array([[start + k] * 64 for k in range(20)], dtype=np.float32))
"""


def is_right(kind, folder):
    """Whether the file there is whole; False if there is none yet. Anything wrong is an error."""
    path = folder / kind
    if kind == "embeddings":
        cache = Cache(folder, 1 << 24)
        found = cache.get([b"%032d" % i for i in range(20_000)])
        cache.close()
        for key, vector in found.items():
            assert np.array_equal(np.full(64, int(key), dtype=np.float32), vector)
        assert not [*folder.glob("*corrupt*")]
        return bool(found)
    if not path.exists():
        return False
    if kind == "corpus":
        chunks = [*Corpus.open(path)]
        i = int(chunks[0].split()[1])
        assert [f"tea {i}"] * (i % 50 + 1) + ["rye " * 3_000] == chunks
    else:
        assert 20_000 == Calibration.load(path).counter("chars_div4").count("x" * 40_000)
    return True


@contextmanager
def writers(kind, folder, count):
    """Processes that write the same file again and again."""
    command = [sys.executable, "-c", WRITER, kind, folder]
    made = [
        subprocess.Popen([*command, str(100 * i)], stdout=subprocess.PIPE) for i in range(count)
    ]
    try:
        for process in made:
            assert b"ready\n" == process.stdout.readline()
        yield made
    finally:
        for process in made:
            process.kill()
            process.communicate()


def wait_for_a_file(folder):
    ends = time.monotonic() + 60
    while not [*folder.iterdir()] and time.monotonic() < ends:
        time.sleep(0.001)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_writer_leaves_a_whole_file(kind, tmp_path):
    """Whenever a writer is killed, the file is the one before or the one after."""
    rng = random.Random(kind)
    seen = 0
    for _ in range(KILLS):
        with writers(kind, tmp_path, 1) as (process,):
            wait_for_a_file(tmp_path)
            time.sleep(rng.uniform(0, 0.2))
            process.send_signal(signal.SIGKILL)
            assert -signal.SIGKILL == process.wait(30)
        seen += is_right(kind, tmp_path)
    assert seen


@pytest.mark.parametrize("kind", KINDS)
def test_eight_writers(kind, tmp_path):
    """While eight processes write one file, each reader sees a whole one."""
    with writers(kind, tmp_path, 8) as processes:
        ends, seen = time.monotonic() + 1, 0
        while time.monotonic() < ends or not seen:
            seen += is_right(kind, tmp_path)
            assert [None] * 8 == [process.poll() for process in processes]
    assert is_right(kind, tmp_path)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of one and a half megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", place]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except OSError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip("may not mount a disk")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(place):
    with (place / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass


def test_a_full_disk(small_disk):
    """What cannot be written is an error that leaves the file before, and nothing beside it."""
    corpus, bills = small_disk / "corpus", small_disk / "bills"
    Corpus(["green tea"]).save(corpus)
    calibration = Calibration()
    calibration.observe(1_000, 1_100, model="chars_div4")
    calibration.save(bills)
    before = corpus.read_bytes(), bills.read_bytes()
    fill(small_disk)
    for i in range(100):
        calibration.observe(1_000 + i, 1_100 + i, model=f"chars_per_token:{2 + i}")
    with pytest.raises(OSError, match="No space left"):
        Corpus([f"{i} rye bread" for i in range(9_000)]).save(corpus)
    with pytest.raises(OSError, match="No space left"):
        calibration.save(bills)

    assert before == (corpus.read_bytes(), bills.read_bytes())
    assert ["bills", "corpus", "filler"] == sorted(path.name for path in small_disk.iterdir())
    assert "green tea" == Packer(9).pack("tea", Corpus.open(corpus)).text


def test_a_full_disk_of_embeddings(small_disk, caplog):
    """A cache that cannot be written answers what it has, and fails no call."""
    cache = Cache(small_disk, MIN_BYTES)
    keys, one = [b"%032d" % 1], np.ones((1, 64), dtype=np.float32)
    cache.put(keys, one)
    fill(small_disk)
    for i in range(2, 2_000, 50):
        more = [b"%032d" % k for k in range(i, i + 50)]
        cache.put(more, np.full((50, 64), i, dtype=np.float32))
        for key, vector in cache.get(more).items():
            assert key in more
            assert np.array_equal(np.full(64, i, dtype=np.float32), vector)
    assert np.array_equal(one[0], cache.get(keys).get(keys[0], one[0]))
    assert "cannot be used" in caplog.text
    cache.close()


READ_ONLY = """
import os, sys, tempfile
from budgeteer import Calibration, Corpus
with tempfile.TemporaryDirectory() as other:  # imports what is imported late
    Corpus(["rye"]).save(f"{other}/corpus")
    Calibration().save(f"{other}/bills")
    Corpus.open(f"{other}/corpus")
if os.geteuid() == 0:
    os.setuid(65534)  # root may write everywhere
for work in (Corpus(["rye"]).save, Calibration().save):
    for name in ("corpus", "new"):
        try:
            work(name)
        except PermissionError:
            continue
        sys.exit(f"{work} wrote {name}")
assert ["green tea"] == [*Corpus.open("corpus")]
"""


def test_a_read_only_folder():
    """Where nothing may be written, saving says so, and what is there can be read."""
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are for their owner alone
    try:
        Corpus(["green tea"]).save(folder / "corpus")
        (folder / "corpus").chmod(0o444)
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY], cwd=folder, capture_output=True, check=False
        )
        assert (0, b"") == (done.returncode, done.stderr)
    finally:
        folder.chmod(0o755)
        (folder / "corpus").unlink()
        folder.rmdir()


def test_flipped_bits_of_embeddings(tmp_path):
    """Of a cache in which a byte is damaged a vector is as it was stored, or is not there."""
    keys = [b"%032d" % i for i in range(12)]
    vectors = np.arange(12 * 16, dtype=np.float32).reshape(12, 16)
    cache = Cache(tmp_path, MIN_BYTES)
    cache.put(keys, vectors)
    cache.close()
    (path,) = tmp_path.iterdir()
    good = path.read_bytes()
    for n, at in enumerate(range(0, len(good), len(good) // 100)):
        folder = tmp_path / str(n)
        folder.mkdir()
        (folder / path.name).write_bytes(
            good[:at] + bytes([good[at] ^ 1 << n % 8]) + good[at + 1 :]
        )
        cache = Cache(folder, MIN_BYTES)
        for _ in range(2):
            for key, vector in cache.get(keys).items():
                assert np.array_equal(vectors[keys.index(key)], vector)
            cache.put(keys, vectors)
        cache.close()
