"""Folders of text: which of their files are read, and which are not and why."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from budgeteer._files import decode
from budgeteer.errors import InvalidArgumentError

_IGNORE_FILE = ".gitignore"
BINARY = "binary"
"""The problem of a file that has no text."""
_NAMED = 20
"""The most files that are named where they cannot be read."""
_EXAMPLES = 2
"""The most that are named where they are passed over."""
_VERSION_CONTROL = frozenset(("CVS", "_darcs"))
"""Folders of version control that are not hidden."""


class TextFile(NamedTuple):
    """
    A file that was read, or the reason why it was not.

    Attributes:
        name: The path of the argument that led to it, and the relative path below that; with
            slashes on every machine.
        below: The relative path alone; that of a file that was named itself is its last part.
        text: What the file holds, without a byte order mark; None where it is not read.
        problem: Why it is not read: ``binary``, ``line 2: not UTF-8`` or what the system says.

    """

    name: str
    below: str
    text: str | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Rules:
    """
    The patterns of one ignore file, for paths below the folder that it stands in.

    Attributes:
        folder: That folder.
        files: The patterns as they are written.
        folders: The patterns without the slash behind them, as pathspec knows no folders: it asks
            for that slash, and lets patterns that have one yield to those that have none.

    """

    folder: Path
    files: Any
    folders: Any

    def says(self, path: Path, *, is_folder: bool) -> bool | None:
        """Return whether *path* is ignored, None where no pattern is about it."""
        spec = self.folders if is_folder else self.files
        ignored: bool | None = spec.check_file(path.relative_to(self.folder).as_posix()).include
        return ignored


def text_files(paths: Iterable[str], globs: Iterable[str] = ()) -> Iterator[TextFile]:
    r"""
    Yield the files that *paths* name, and those of the folders among them.

    The files of a folder come by the parts of their relative paths, in the order of code points,
    on every machine. Left out are hidden files and folders, folders of version control, what a
    ``.gitignore`` of the folder or of the repository around it ignores, and sockets and the like.
    Links to files are followed, links to folders are not. A file that is named itself is always
    read.

    Args:
        paths: Files and folders.
        globs: Patterns as in a ``.gitignore``, for the files of folders. Where one or more have
            no ``!`` in front, only files that match are read. Those with ``!`` leave files out.
            The last pattern that matches a file decides.

    Raises:
        InvalidArgumentError: There is an ignore file or a glob, and pathspec is not installed or
            it is none.
        OSError: A folder cannot be read.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "tea.md").write_text("Green tea.")
        ...     _ = Path(folder, "tea.png").write_bytes(b"\x89PNG\0")
        ...     for file in text_files([folder]):
        ...         file.below, file.text, file.problem
        ('tea.md', 'Green tea.', '')
        ('tea.png', None, 'binary')

    """
    globs = [*globs]
    chosen = _choice(globs) if globs else None
    only = any(not glob.startswith("!") for glob in globs)
    for written in paths:
        path = Path(written)
        if not written or not path.is_dir():  # an empty path is no name of the folder it is in
            yield _read(path, written, path.name)
            continue
        root = Path(os.path.abspath(path))  # noqa: PTH100 - links stay as they are written
        for relative in sorted(_walk(root, _rules_around(root)), key=lambda file: file.parts):
            below = relative.as_posix()
            if chosen is not None:
                match = chosen.check_file(below).include
                if match is False or (match is None and only):
                    continue
            yield _read(path / relative, (path / relative).as_posix(), below)


def unread(problems: Sequence[tuple[str, str]], most: int = _NAMED) -> str:
    """Return what cannot be read and why, the first by name; *problems* are not empty."""
    named = [f"{name}: {problem}" for name, problem in problems[:most]]
    if len(problems) > most:
        named.append(f"and {len(problems) - most} more")
    return f"cannot read {'; '.join(named)}"


def passed_over(problems: Sequence[tuple[str, str]]) -> str:
    """Return the same where it costs no more than a notice, with an example or two."""
    return unread(problems, _EXAMPLES)


def _walk(folder: Path, rules: tuple[_Rules, ...]) -> Iterator[PurePath]:
    """Yield the paths of the files that are not ignored, relative to *folder*, in no order."""
    waiting = [(folder, rules)]
    while waiting:
        here, around = waiting.pop()
        inside = (*around, *_rules_of(here))
        for entry in os.scandir(here):
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name.startswith(".") or (is_folder and entry.name in _VERSION_CONTROL):
                continue
            if _is_ignored(path, inside, is_folder=is_folder):
                continue
            if is_folder:
                waiting.append((path, inside))
            elif _may_be_read(entry):
                yield path.relative_to(folder)


def _may_be_read(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a file, or a link of which only reading says what it is not."""
    try:
        return entry.is_file()
    except OSError:  # a link to itself, or into a folder that is closed
        return True


def _is_ignored(path: Path, rules: tuple[_Rules, ...], *, is_folder: bool) -> bool:
    """Return what the nearest ignore file that has a pattern for *path* says."""
    says = (rule.says(path, is_folder=is_folder) for rule in reversed(rules))
    return next((ignored for ignored in says if ignored is not None), False)


def _rules_around(folder: Path) -> tuple[_Rules, ...]:
    """Return the rules of the folders above *folder*, up to the root of its repository."""
    above = [folder, *folder.parents]
    root = next((i for i, path in enumerate(above) if (path / ".git").exists()), 0)
    rules: tuple[_Rules, ...] = ()
    for path, inner in zip(reversed(above[1 : root + 1]), reversed(above[:root]), strict=True):
        rules += _rules_of(path)
        if _is_ignored(inner, rules, is_folder=True):
            return ()  # it was asked for by name, though the repository ignores it
    return rules


def _rules_of(folder: Path) -> tuple[_Rules, ...]:
    try:
        data = (folder / _IGNORE_FILE).read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return ()
    where = str(folder / _IGNORE_FILE)
    lines = [line.rstrip("\r") for line in os.fsdecode(data).split("\n")]
    return (_Rules(folder, _spec(where, lines), _spec(where, [_bare(line) for line in lines])),)


def _bare(line: str) -> str:
    """Return a pattern without the slash that keeps it to folders."""
    return line.rstrip(" ").removesuffix("/")


def _choice(globs: list[str]) -> Any:
    """Return the patterns as they are for paths of files, the last that matches deciding."""
    return _pathspec().PathSpec(_spec("a glob", globs).patterns)


def _spec(where: str, lines: list[str]) -> Any:
    pathspec = _pathspec()
    try:
        return pathspec.GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise InvalidArgumentError(f"{where}: {error}") from None


def _pathspec() -> Any:
    try:
        return importlib.import_module("pathspec")
    except ImportError:
        raise InvalidArgumentError(
            "reading .gitignore and globs needs pathspec: pip install 'budgeteer[cli]'"
        ) from None


def _read(path: Path, name: str, below: str) -> TextFile:
    try:
        data = path.read_bytes()
    except OSError as error:
        return TextFile(name, below, None, error.strerror or str(error))
    if b"\0" in data:
        return TextFile(name, below, None, BINARY)
    try:
        return TextFile(name, below, decode(data))
    except InvalidArgumentError as error:
        return TextFile(name, below, None, str(error))
