"""An output that is not whole yet: it grows in a folder beside its place, and survives a kill."""

from __future__ import annotations

import json
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from budgeteer._files import place_of
from budgeteer.errors import BudgeteerError, InvalidArgumentError

_ROWS, _STATE, _LOCK, _NEW = "rows", "state.json", "lock", "new"
_READ = 2**20


@dataclass
class State:
    """
    How far a run has come.

    Attributes:
        place: Behind what was read of the input.
        line: The number of the next line.
        requests: How many have been packed.
        failed: How many of them have an error.
        ids: Of which types their ids are.
        size: The bytes of their rows.
        crc: Their checksum.
        is_done: Whether there are no more.

    """

    place: int = 0
    line: int = 1
    requests: int = 0
    failed: int = 0
    ids: int = 0
    size: int = 0
    crc: int = 0
    is_done: bool = False


class Part:
    """
    The folder ``OUTPUT.part``: rows of answers, and how far they are whole.

    Rows are on the disk before the state says so, and the state is replaced at once. So whenever
    a process ends, what stands behind the state's size is no loss, and is cut off.

    Attributes:
        state: How far the rows have come; `commit` makes it last.
        is_at_its_place: Whether all is done but for removing the folder.

    """

    def __init__(self, output: str, run: Mapping[str, str]) -> None:
        """
        Open the folder, or make it; nobody else can until it is closed.

        Args:
            output: The name of the output.
            run: What the rows depend on, by name.

        Raises:
            InvalidArgumentError: The folder is of another run, or damaged, or in use.

        """
        self._output = Path(output)
        with self._writing():
            self._output = Path(place_of(output))
        self.folder = Path(f"{self._output}.part")
        self._run = dict(run)
        self._whole = _ROWS
        self.is_at_its_place = False
        if not self._output.parent.is_dir():
            raise InvalidArgumentError(
                f"--output: there is no folder {str(self._output.parent)!r}; make it first"
            )
        if self._output.is_dir():
            raise InvalidArgumentError(f"--output: {output!r} is a folder, not a file")
        if self._output.exists() and not self._output.is_file():  # and would be replaced
            raise InvalidArgumentError(f"--output: {output!r} is a pipe or a device, not a file")
        if self.folder.is_file():
            raise InvalidArgumentError(
                f"--output: {str(self.folder)!r} is a file, and the rows are in a folder of that "
                "name until all is packed: move it, or give another name"
            )
        with self._writing():
            self.folder.mkdir(exist_ok=True)
            self._lock: IO[bytes] = (self.folder / _LOCK).open("ab")
        try:
            self.state = self._restored()
            rows = Path(os.devnull) if self.is_at_its_place else self.folder / _ROWS
            with self._writing():
                self._rows = rows.open("ab", buffering=0)
                if not self.is_at_its_place:
                    self._rows.truncate(self.state.size)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Let others go on with the folder; one without rows is removed."""
        self._rows.close()
        if not (self.state.requests or self.is_at_its_place):
            with suppress(OSError):
                self._remove()
        self._lock.close()

    def append(self, data: bytes) -> None:
        """Write rows, which last from the next `commit` on."""
        with self._writing():
            rest = memoryview(data)
            while rest:
                rest = rest[self._rows.write(rest) or 0 :]
        self.state.size += len(data)
        self.state.crc = zlib.crc32(data, self.state.crc)

    def commit(self) -> None:
        """Make the rows and the state last."""
        document = {"run": self._run, **asdict(self.state)}
        with self._writing():
            os.fsync(self._rows.fileno())
            new = self.folder / f"{_STATE}.{_NEW}"
            with new.open("w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.folder / _STATE)

    @contextmanager
    def rewritten(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """Give the rows to read, and a file to write, which takes their place."""
        with (
            (self.folder / _ROWS).open("rb") as rows,
            self._writing(),
            (self.folder / _NEW).open("wb") as new,
        ):
            yield rows, new
            new.flush()
            os.fsync(new.fileno())
        self._whole = _NEW

    def finish(self) -> None:
        """Put what was written at its place, in one step, and remove the folder."""
        self._rows.close()
        with self._writing():
            if not self.is_at_its_place:
                whole = self.folder / self._whole
                if self._output.exists():  # what is replaced keeps its permissions
                    whole.chmod(stat.S_IMODE(self._output.stat().st_mode))
                whole.replace(self._output)
                _sync(self._output.parent)
                self.is_at_its_place = True
            self._remove()

    def _remove(self) -> None:
        self._lock.close()
        for name in (_ROWS, _NEW, f"{_STATE}.{_NEW}", _LOCK, _STATE):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it
            self.folder.rmdir()

    def _restored(self) -> State:
        """Return the state of a run that was stopped, or a new one."""
        if not _is_locked(self._lock):
            name = str(self._output)
            raise InvalidArgumentError(
                f"another process is writing {name!r}: let it end, or give another --output"
            )
        try:
            document = json.loads((self.folder / _STATE).read_text(encoding="utf-8"))
            run = document.pop("run")
            state = State(**document)
            if not state.requests:
                return State()
            self._check(run)
        except FileNotFoundError:
            return State()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, BudgeteerError):
                raise
            raise self._damaged(f"{_STATE} cannot be read") from None
        try:
            is_whole = _checksum(self.folder / _ROWS, state.size) == state.crc
        except FileNotFoundError:
            self.is_at_its_place = state.is_done and self._output.exists()
            if self.is_at_its_place:
                return state
            raise self._damaged(f"{_ROWS} is missing") from None
        if not is_whole:
            raise self._damaged(f"{_ROWS} is not what was written")
        return state

    def _check(self, found: Mapping[str, str]) -> None:
        for name in (*self._run, *found):
            before, now = found.get(name), self._run.get(name)
            if before != now:
                raise InvalidArgumentError(
                    f"{str(self.folder)!r} is of a run that was stopped, and {name} is {now} now "
                    f"and was {before}: give what was given then to go on, or remove the folder "
                    f"to begin anew"
                )

    def _damaged(self, how: str) -> InvalidArgumentError:
        folder = str(self.folder)
        return InvalidArgumentError(f"{folder!r} is damaged, {how}: remove it to begin anew")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BudgeteerError(
                f"cannot write {str(self._output)!r}: {error.strerror or error}"
            ) from None


def _checksum(path: Path, size: int) -> int:
    crc = 0
    with path.open("rb") as file:
        while size and (data := file.read(min(size, _READ))):
            crc = zlib.crc32(data, crc)
            size -= len(data)
    return -1 if size else crc


def _is_locked(file: IO[bytes]) -> bool:
    """Lock a file for this process, and return whether it is."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sync(folder: Path) -> None:
    """Make the names in a folder last."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
