"""
The cache of embeddings: one SQLite file, shared by threads and processes.

The cache never fails a call. If the file cannot be used, that is logged, and texts are embedded
without it. A damaged row is embedded again.
"""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from budgeteer import _process
from budgeteer._log import log

if TYPE_CHECKING:
    from budgeteer.embedding._protocol import Vectors

T = TypeVar("T")

FILE = "embeddings-v1.sqlite3"
MIN_BYTES = 1 << 20

_COLUMNS = ["id", "key", "vector", "checksum"]
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, "
    "vector BLOB NOT NULL, checksum BLOB NOT NULL)"
)
_BUSY_SECONDS = 1.0
"""How long a locked file is waited for; then not at all, until it is free again."""
_LOOK_SECONDS = 0.005
_KEYS_AT_ONCE = 500  # below the limit of 999 variables in old SQLite
_ROW_BYTES = 160  # of a row without its vector: both keys, checksum, overhead
_WAL_BYTES = 4 << 20

_making = _process.RenewedLock()
"""Held while a file is made, so that no other thread opens it meanwhile."""


class Keys:
    """Makes the key of a text: a hash of the whole text, the model, its size and the URL."""

    def __init__(self, url: str, model: str, dimensions: int | None) -> None:
        self._hash = hashlib.blake2b(digest_size=32, person=b"budgeteer.embed")
        for part in (url, model, str(dimensions)):
            data = part.encode()
            self._hash.update(len(data).to_bytes(8, "little") + data)

    def __call__(self, text: str) -> bytes:
        """Return the key of *text*, which has no lone surrogates."""
        key = self._hash.copy()
        key.update(text.encode())
        return key.digest()


class Cache:
    """
    The file in *folder*, of at most *max_bytes*: the oldest rows are deleted first.

    Safe to share between threads. A forked process must make its own. The file is closed while a
    process is forked: of SQLite's locks on it, which belong to a process, a child would believe
    that it has them.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._path = folder / FILE
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._told = ""
        self._at_fork = _process.ForkLock(self._lock, _BUSY_SECONDS, self._close)

    def get(self, keys: Sequence[bytes], ends: float = math.inf) -> dict[bytes, Vectors]:
        """Return the stored vectors of *keys*; nobody is waited for after the time *ends*."""
        if not keys:
            return {}
        return self._use(lambda connection: _get(connection, keys), ends) or {}

    def put(self, keys: Sequence[bytes], vectors: Vectors, ends: float = math.inf) -> None:
        """Store *vectors*, shape ``(n, d)``, under the *n* keys; *ends* as for `get`."""
        blobs = [row.astype("<f4", copy=False).tobytes() for row in vectors]
        rows = [(key, blob, _checksum(key, blob)) for key, blob in zip(keys, blobs, strict=True)]
        self._use(lambda connection: _put(connection, rows, self._max_bytes), ends)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._close()

    def _use(self, work: Callable[[sqlite3.Connection], T], ends: float) -> T | None:
        left = min(max(0.0, ends - time.monotonic()), threading.TIMEOUT_MAX)
        if not self._lock.acquire(timeout=left):
            return None
        try:
            return self._used(work, ends)
        finally:
            self._lock.release()

    def _used(self, work: Callable[[sqlite3.Connection], T], ends: float) -> T | None:
        for _ in range(2):
            patience = 0.0 if self._told else min(_BUSY_SECONDS, ends - time.monotonic())
            milliseconds = max(0, int(patience * 1_000))
            try:
                if self._is_gone():
                    self._close()
                if self._connection is None:
                    self._connection = self._open(milliseconds)
                self._connection.execute(f"PRAGMA busy_timeout = {milliseconds}").fetchall()
                done = work(self._connection)
            except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
                # Only a corrupt file raises the base class itself, or has bytes for names.
                if type(error) not in (sqlite3.DatabaseError, UnicodeDecodeError):
                    self._tell(str(error))
                    return None
            else:
                self._told = ""
                return done
            self._set_aside()
        return None

    def _tell(self, problem: str) -> None:
        """Log a problem, once for as long as it lasts."""
        if problem != self._told:
            log().warning(
                *("the embedding cache %s cannot be used: %s", self._path, problem),
                extra={"cache": str(self._path), "problem": problem},
            )
            self._told = problem

    def _open(self, milliseconds: int) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make(self._path)
        self._inode = self._path.stat().st_ino
        seconds = milliseconds / 1_000
        connection = sqlite3.connect(
            self._path, timeout=seconds, isolation_level=None, check_same_thread=False
        )
        try:
            _write_ahead(connection, time.monotonic() + seconds)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}").fetchall()
            if not _columns(connection):  # so that a file that another one writes to can be read
                with _transaction(connection):
                    connection.execute(_SCHEMA)
            _check_columns(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _is_gone(self) -> bool:
        """Return whether the open file was removed or replaced: no other process sees its rows."""
        if self._connection is None:
            return False
        try:
            return self._path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    def _set_aside(self) -> None:
        """Rename the corrupt file, over an earlier one, unless another process has done so."""
        self._close()
        aside = f"{self._path}.corrupt"
        try:
            if self._path.stat().st_ino != self._inode:
                return
            self._path.replace(aside)
            for end in ("-wal", "-shm"):
                Path(f"{self._path}{end}").unlink(missing_ok=True)
        except OSError as error:
            log().warning(
                *("the corrupt embedding cache %s cannot be renamed: %s", self._path, error),
                extra={"cache": str(self._path), "problem": str(error)},
            )
            return
        log().warning(
            *("the embedding cache %s is corrupt; it is now %s", self._path, aside),
            extra={"cache": str(self._path), "renamed_to": aside},
        )


def _make(path: Path) -> None:
    """
    Make an empty file, its owner's alone, where there is none.

    SQLite gives its side files the permissions of this one. One that is there is not opened: at
    the end of that, POSIX would drop all locks that other connections of this process have on it,
    and another process would take it for its own.
    """
    with _making.now:
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, stat.S_IRUSR | stat.S_IWUSR))


def _write_ahead(connection: sqlite3.Connection, ends: float) -> None:
    """
    Switch the file to write-ahead logging, by the time *ends*.

    SQLite itself does not wait if several processes do so at the same time, as each of them has
    read and wants to write.
    """
    while not _writes_ahead(connection, is_patient=time.monotonic() < ends):
        time.sleep(_LOOK_SECONDS)


def _writes_ahead(connection: sqlite3.Connection, *, is_patient: bool) -> bool:
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    except sqlite3.OperationalError as error:
        if not is_patient or "locked" not in str(error):
            raise
        return False
    return True


def _columns(connection: sqlite3.Connection) -> list[str]:
    return [row[1] for row in connection.execute("PRAGMA table_info(vectors)")]


def _check_columns(connection: sqlite3.Connection) -> None:
    if _columns(connection) != _COLUMNS:
        raise sqlite3.DatabaseError("it is not a cache of embeddings")


def _checksum(key: bytes, blob: bytes) -> bytes:
    return hashlib.blake2b(key + blob, digest_size=16).digest()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def _get(connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
    import numpy as np

    found: dict[bytes, Vectors] = {}
    damaged: list[tuple[int]] = []
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys[start : start + _KEYS_AT_ONCE]
        marks = ",".join("?" * len(some))
        query = f"SELECT id, key, vector, checksum FROM vectors WHERE key IN ({marks})"  # noqa: S608
        for row, key, blob, checksum in connection.execute(query, some):
            is_whole = isinstance(blob, bytes) and len(blob) % 4 == 0 and len(blob) > 0
            if is_whole and _checksum(key, blob) == checksum:
                found[key] = np.frombuffer(blob, dtype="<f4")
            else:
                damaged.append((row,))
    if damaged:
        log().warning(
            *("%d rows of the embedding cache are damaged; embedding again", len(damaged)),
            extra={"rows": len(damaged)},
        )
        with _transaction(connection):
            connection.executemany("DELETE FROM vectors WHERE id = ?", damaged)
    return found


def _put(
    connection: sqlite3.Connection, rows: list[tuple[bytes, bytes, bytes]], max_bytes: int
) -> None:
    needed = sum(len(blob) + _ROW_BYTES for _, blob, _ in rows)
    if needed > max_bytes // 2:
        half = len(rows) // 2
        if half:
            _put(connection, rows[:half], max_bytes)
            _put(connection, rows[half:], max_bytes)
        return
    with _transaction(connection):
        while _live_bytes(connection) + needed > max_bytes:
            oldest = "DELETE FROM vectors WHERE id IN (SELECT id FROM vectors ORDER BY id LIMIT ?)"
            if connection.execute(oldest, (len(rows),)).rowcount <= 0:
                break
        connection.executemany(
            "INSERT OR REPLACE INTO vectors (key, vector, checksum) VALUES (?, ?, ?)", rows
        )


def _live_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file in use; deleted rows' space is reused before it grows."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
