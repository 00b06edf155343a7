"""What the tests of the bulk command share: requests, files of them, and the program."""

import gzip
import importlib
import json
import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from budgeteer.cli._requests import ENDINGS as NAMES
from budgeteer.errors import BudgeteerError


def zstd():
    """Return the module of Python 3.14, or its backport; None if neither is installed."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return importlib.import_module(name)
    return None


NEEDS_ZSTD = pytest.mark.skipif(zstd() is None, reason="backports.zstd is not installed")
ENDINGS = [pytest.param(name, marks=NEEDS_ZSTD) if "zst" in name else name for name in NAMES]
WORDS = ("green", "tea", "leaves", "dried", "rye", "bread", "baked", "remote", "work", "policy")


def requests(number, chunks=20, seed=5):
    """Yield requests, some 3 KB each."""
    chosen = random.Random(seed)
    for i in range(number):
        yield {
            "id": i,
            "query": " ".join(chosen.choices(WORDS, k=3)),
            "chunks": [
                {
                    "text": " ".join(chosen.choices(WORDS, k=chosen.randint(4, 40))),
                    "score": chosen.random(),
                }
                for _ in range(chunks)
            ],
        }


def write(name, items, group=None):
    """Write a file of requests as its name says."""
    name = str(name)
    if name.endswith(".parquet"):
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist([*items]), name, row_group_size=group)
        return
    opened = gzip.open if name.endswith(".gz") else zstd().open if name.endswith(".zst") else open
    with opened(name, "wb") as file:
        for item in items:
            file.write(f"{json.dumps(item)}\n".encode())


def read(name):
    """Return the rows of an output."""
    if name.endswith(".parquet"):
        from pyarrow import parquet

        return parquet.ParquetFile(name).read().to_pylist()
    data = Path(name).read_bytes()
    if name.endswith(".gz"):
        data = gzip.decompress(data)
    elif name.endswith(".zst"):
        data = zstd().decompress(data)
    return [json.loads(line) for line in data.splitlines()]


def packed(items, packer):
    """Return the rows that `Packer.pack` gives."""
    rows = []
    for item in items:
        row = {"id": item["id"], "text": None, "total_tokens": None, "kept": None, "error": None}
        try:
            if "chunks" not in item:
                row["error"] = "chunks must be a list, not None"
            else:
                found = packer.pack(item["query"], item["chunks"])
                row |= {"text": found.text, "total_tokens": found.total_tokens}
                row["kept"] = [kept.index for kept in found.kept]
        except BudgeteerError as error:
            row["error"] = str(error)
        rows.append(row)
    return rows


def process(
    source, output, *options, workers=1, check=True, code=None, wait=True, backend=None, **more
):
    """Run the program in a process of its own, to its end or not."""
    options = options or ("-n", "40", "-m", "words")
    program = ("-m", "budgeteer") if code is None else ("-c", code)
    command = [sys.executable, *program, "pack", "--input", source, *options, "-o", output]
    command += ["--workers", str(workers)]
    env = {**os.environ, **({"BUDGETEER_BACKEND": backend} if backend else {})}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": env, **more}
    if not wait:
        return subprocess.Popen(command, **streams)
    done = subprocess.run(command, check=False, timeout=120, **streams)
    assert not check or (0, b"") == (done.returncode, done.stdout), done.stderr.decode()
    return done


STOP = (
    "import os, sys, budgeteer.cli._part as part, budgeteer.cli as cli\n"
    "commit = part.Part.commit\n"
    "def stop(self):\n"
    "    commit(self)\n"
    "    os._exit(9)\n"
    "part.Part.commit = stop\n"
    "cli.main(sys.argv[1:])"
)
"""The program, which is killed once the first rows are whole."""
