"""The sources of a configuration, read into chunks in the same order on every machine."""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from budgeteer import _validate
from budgeteer._chunk.chunk import CHUNK_FIELDS, Chunk, ChunkField, metadata_of
from budgeteer._codes import TEXT_KEYS
from budgeteer._files import decode, json_lines, mapping, one_line, reason
from budgeteer._log import log
from budgeteer._sources.embedder import embedder_of
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from budgeteer.embedding import OpenAIEmbedder

PATTERN = "**/*.md"
"""The default pattern of the files to read in a directory."""

_KEYS = {
    "directory": ("type", "path", "name", "priority", "pattern"),
    "jsonl": ("type", "path", "name", "priority"),
    "inline": ("type", "text", "name", "priority"),
    "qdrant": (
        *("type", "collection", "path", "url", "name", "priority"),
        *("api_key_env", "vector_name", "fields", "embedding", "limit"),
    ),
}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class Directory:
    """
    The Markdown files under *path* whose relative path matches *pattern*, a chunk per section.

    Hidden files and directories are read like all others. Links to files are followed, links to
    directories are not, and anything else is left out.
    """

    path: Path
    name: str
    priority: float = 0.0
    pattern: str = PATTERN

    def read(self) -> list[Chunk]:
        """Return the sections of all files, by the files' relative paths; warn of what is lost."""
        chunks = []
        files = sorted(self._files())
        if not files:  # else a folder of other texts would answer nothing, and nobody would know
            log().warning(
                "%s",
                one_line(f"{self.name}: no file in the folder matches pattern {self.pattern!r}"),
                extra={"code": "no_files", "source": self.name, "pattern": self.pattern},
            )
        odd: list[str] = []
        for relative in files:
            path = self.path / relative
            data = path.read_bytes().removeprefix(codecs.BOM_UTF8)
            text = data.decode("utf-8", "replace")
            if text.encode() != data:
                odd.append(relative)
            mtime = path.stat().st_mtime
            chunks += [
                Chunk(
                    section,
                    id=f"{relative}#{n}",
                    source=self.name,
                    title=title,
                    metadata={"mtime": mtime, "path": relative},
                )
                for n, (title, section) in enumerate(split_markdown(text, path.stem))
            ]
        if odd:  # its words match nothing, and nobody would know
            more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
            log().warning(
                "%s",
                one_line(f"{self.name}: not UTF-8, so characters are lost: {odd[0]}{more}"),
                extra={"code": "not_utf8", "source": self.name, "files": len(odd)},
            )
        return chunks

    def _files(self) -> Iterator[str]:
        """Yield the relative paths of matching files, in no particular order."""
        pattern = [part for part in self.pattern.split("/") if part not in ("", ".")]
        for folder, _, names in os.walk(self.path, onerror=_raise):
            for name in names:
                path = Path(folder, name)
                relative = path.relative_to(self.path)
                if matches(relative.parts, pattern) and path.is_file():
                    yield relative.as_posix()


@dataclass(frozen=True, slots=True)
class Jsonl:
    """
    A file with a JSON object per line: ``text`` or ``content``, and other fields of `Chunk`.

    What packing reads of the metadata may stand beside the text. Other keys and blank lines are
    ignored.
    """

    path: Path
    name: str
    priority: float = 0.0

    def read(self) -> list[Chunk]:
        """Return a chunk for each line."""
        data = self.path.read_bytes()
        try:
            return [_chunk(row, n, self.name) for n, row in json_lines(decode(data))]
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{self.path}: {error}") from None


@dataclass(frozen=True, slots=True)
class Inline:
    """A text in the configuration itself."""

    text: str = field(repr=False)
    name: str
    priority: float = 0.0

    def read(self) -> list[Chunk]:
        """Return the text as one chunk."""
        return [Chunk(self.text, source=self.name)]


@dataclass(frozen=True, slots=True)
class Qdrant:
    """
    A collection of Qdrant, in a folder or on a server.

    With an *embedder*, or else that of the configuration, it reads the *limit* chunks
    nearest to the query; without one, or if *is_whole*, the first *limit* by their ids. The limit
    None is 500 of the nearest, or all.
    """

    collection: str
    name: str
    priority: float = 0.0
    path: Path | None = None
    url: str | None = field(default=None, repr=False)
    api_key_env: str | None = field(default=None, repr=False)
    vector_name: str | None = None
    fields: Mapping[ChunkField, str] | None = None
    embedder: OpenAIEmbedder | None = None
    limit: int | None = None
    is_whole: bool = False

    def read(self, query: str | None = None, embedder: Any = None) -> list[Chunk]:
        """
        Return the chunks for *query*; without a query or an embedder, those of any query.

        Args:
            query: The query. All chunks are equally near to an empty one.
            embedder: The embedder of the configuration.

        """
        from budgeteer._guard import Guard
        from budgeteer._sources.qdrant import QdrantRetriever  # an extra that few need

        with Guard(self.name):
            embedder = None if not query or self.is_whole else self.embedder or embedder
            retriever = QdrantRetriever(
                self.collection,
                embedder=embedder,
                path=self.path,
                url=self.url,
                api_key_env=self.api_key_env,
                vector_name=self.vector_name,
                fields=self.fields,
                name=self.name,
            )
            try:
                if embedder is None or not query:
                    found = retriever.read(_ALL if self.limit is None else self.limit)
                else:
                    found = retriever.retrieve(
                        query, _NEAREST if self.limit is None else self.limit
                    )
            finally:
                retriever.close()
                if self.embedder is not None:
                    self.embedder.close()
        return [chunk if chunk.source else replace(chunk, source=self.name) for chunk in found]


_ALL, _NEAREST = _validate.MAX_TOKENS, 500

Source = Directory | Jsonl | Inline | Qdrant


def place_of(source: Source, chunk: Chunk, number: int) -> str:
    """Return where a chunk is, for messages: its file or source, and its id or *number* in it."""
    name = source.path if isinstance(source, Jsonl) else source.name
    if isinstance(source, Directory) and chunk.metadata is not None:
        name = source.path / chunk.metadata["path"]
    return f"{name}, chunk {number if chunk.id is None else chunk.id}"


def source_of(key: str, value: object, base: Path) -> Source:
    """
    Return the source that the entry *value* of a configuration describes.

    Args:
        key: The entry's own key, for errors.
        value: The entry.
        base: The directory of relative paths.

    Raises:
        InvalidArgumentError: The entry is invalid, or its path does not exist.

    """
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{key} must be a mapping, not {_validate.type_name(value)}")
    kind = _validate.choice(f"{key}.type", _required(key, "type", value), tuple(_KEYS))
    entry = mapping(key, value, _KEYS[kind])
    priority = _validate.number(f"{key}.priority", entry.get("priority", 0))
    if kind == "inline":
        text = _validate.text(f"{key}.text", _required(key, "text", entry))
        return Inline(text, _validate.text(f"{key}.name", entry.get("name", "inline")), priority)
    if kind == "qdrant":
        return _qdrant(key, entry, base, priority)
    written = _validate.text(f"{key}.path", _required(key, "path", entry))
    name = _validate.text(f"{key}.name", entry.get("name", written))
    path = _existing(f"{key}.path", written, base, kind)
    if kind == "jsonl":
        return Jsonl(path, name, priority)
    pattern = _validate.text(f"{key}.pattern", entry.get("pattern", PATTERN))
    if not pattern or pattern.startswith("/") or ".." in PurePosixPath(pattern).parts:
        raise InvalidArgumentError(
            f"{key}.pattern must be a glob below the directory, such as {PATTERN!r}, "
            f"not {pattern[:80]!r}"
        )
    return Directory(path, name, priority, pattern)


def _qdrant(key: str, entry: dict[str, Any], base: Path, priority: float) -> Qdrant:
    from budgeteer._sources.qdrant import filled

    collection = filled(f"{key}.collection", _required(key, "collection", entry))
    texts = {
        name: _validate.text(f"{key}.{name}", entry[name])
        for name in ("name", "path", "url", "api_key_env", "vector_name")
        if entry.get(name) is not None
    }
    for name in ("url", "api_key_env"):
        if name in texts:
            filled(f"{key}.{name}", texts[name])
    if ("path" in texts) == ("url" in texts):
        raise InvalidArgumentError(f"{key} must have a path or a url, and not both")
    if "api_key_env" in texts and "url" not in texts:
        raise InvalidArgumentError(f"{key}.api_key_env needs a url to go with")
    path = texts.pop("path", None)
    fields = entry.get("fields")
    if fields is not None:
        for name, value in mapping(f"{key}.fields", fields, CHUNK_FIELDS).items():
            _validate.text(f"{key}.fields.{name}", value)
    embedding = entry.get("embedding")
    limit = entry.get("limit")
    return Qdrant(
        collection=collection,
        priority=priority,
        path=None if path is None else _existing(f"{key}.path", path, base, "directory"),
        fields=fields,
        embedder=(
            None
            if embedding is None
            else embedder_of(f"{key}.embedding", embedding, base, is_for_queries=True)
        ),
        limit=None if limit is None else _validate.tokens(f"{key}.limit", limit, minimum=1),
        is_whole="embedding" in entry and embedding is None,
        **{"name": collection, **texts},
    )


def _existing(key: str, written: str, base: Path, kind: str) -> Path:
    """Return the path *written* in a configuration, which must exist as *kind*."""
    if not written:
        raise InvalidArgumentError(f"{key} must not be empty")
    path = base / written
    try:
        exists, is_directory = path.exists(), path.is_dir()
    except OSError as error:  # such as a name that is too long, or a folder that may not be read
        raise InvalidArgumentError(f"{key}: {reason(error)}") from None
    if not exists:
        raise InvalidArgumentError(f"{key}: {path} does not exist")
    if is_directory != (kind == "directory"):
        allowed, found = ("directory", "file") if kind == "directory" else ("file", "directory")
        raise InvalidArgumentError(f"{key} must be a {allowed}, but {path} is a {found}")
    return path


def _required(key: str, name: str, entry: Mapping[str, Any]) -> Any:
    if name in entry:
        return entry[name]
    allowed = f": one of {', '.join(map(repr, _KEYS))}" if name == "type" else ""
    raise InvalidArgumentError(f"{key}.{name} is required{allowed}")


def split_markdown(text: str, stem: str) -> list[tuple[str, str]]:
    r"""
    Return title and text of each section of a Markdown file, the heading line included.

    A section starts at a line that starts with ``## `` outside fenced code. The text before the
    first is a section too, titled by the first H1 or *stem*. Sections of only whitespace are left
    out. Line ends become ``\n``.

    Examples:
        >>> split_markdown("# Tea\nA drink.\n## Green\nMild.\n", "drinks")
        [('Tea', '# Tea\nA drink.'), ('Green', '## Green\nMild.')]

    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts, titles, fence = [0], [""], ""
    for i, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and ("`" not in mark[1] or "`" not in mark[2]):
            fence = mark[1]
        elif line.startswith("## "):
            starts.append(i)
            titles.append(heading(line[3:]))
        elif line.startswith("# ") and len(starts) == 1 and not titles[0]:
            titles[0] = heading(line[2:])
    titles[0] = titles[0] or stem
    ends = [*starts[1:], len(lines)]
    sections = ["\n".join(lines[i:j]).strip() for i, j in zip(starts, ends, strict=True)]
    return [pair for pair in zip(titles, sections, strict=True) if pair[1]]


def heading(text: str) -> str:
    """Return the text of a heading without closing hashes."""
    text = text.strip()
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else text


def matches(parts: tuple[str, ...], pattern: list[str]) -> bool:
    """
    Return whether a relative path matches a glob, both given in parts.

    ``**`` matches any number of parts, including none; case matters on every machine.

    Examples:
        >>> matches(("top.md",), ["**", "*.md"]), matches(("a", "b", "deep.md"), ["**", "*.md"])
        (True, True)

    """
    places = _reach({0}, pattern)
    for part in parts:
        reached = set()
        for i in places:
            if i < len(pattern) and pattern[i] == "**":
                reached.add(i)
            elif i < len(pattern) and fnmatchcase(part, pattern[i]):
                reached.add(i + 1)
        places = _reach(reached, pattern)
    return len(pattern) in places


def _reach(places: set[int], pattern: list[str]) -> set[int]:
    """Return *places* and those that follow if each ``**`` matches no part."""
    reached = set(places)
    for i, part in enumerate(pattern):
        if i in reached and part == "**":
            reached.add(i + 1)
    return reached


def _chunk(row: object, line: int, source: str) -> Chunk:
    """Return the chunk of a JSON object; *source* is its source if it names none."""
    if not isinstance(row, dict):
        found = _validate.type_name(row)
        raise InvalidArgumentError(f"line {line}: must be a JSON object, not {found}")
    key = next((key for key in TEXT_KEYS if key in row), None)
    if key is None:
        raise InvalidArgumentError(
            f"line {line}: must have a key 'text', 'content' or 'page_content'"
        )
    identifier: Any = row.get("id")
    if isinstance(identifier, (int, float)) and not isinstance(identifier, bool):
        identifier = str(identifier)
    try:
        return Chunk(
            _validate.text(key, row[key]),
            id=identifier,
            source=source if row.get("source") is None else row["source"],
            title="" if row.get("title") is None else row["title"],
            score=row.get("score"),
            metadata=metadata_of(row, row.get("metadata")),
        )
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"line {line}: {error}") from None


def _raise(error: OSError) -> NoReturn:
    raise error
