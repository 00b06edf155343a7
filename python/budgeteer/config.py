r"""
The YAML configuration: a budget and the sources of its chunks.

A file may look like this:

    budget:
      max_tokens: 8000        # from 1 on
      reserve_tokens: 0       # taken off max_tokens
      counter: o200k_base     # or any other name that get_counter knows
      ranking: lexical        # or bm25, keyword, recency, input, score, embedding, hybrid
      min_score: null
      overflow: skip          # or stop, truncate_end, truncate_middle
      max_chunks: null
      dedupe: exact           # or near, null
      selection: rank         # or coverage
      units: chunk            # or sentence
      order: rank             # or input, document, edges, sticky
      template: plain         # or tagged, markdown, xml, json
      notice: null            # or true, or a text with {count}
      embedding: null         # settings for rankings by embeddings, see below
    sources:
      - {type: directory, path: docs, name: handbook, priority: 10, pattern: "**/*.md"}
      - {type: jsonl, path: chunks.jsonl, name: tickets}
      - {type: inline, text: "The office is closed on Friday.", name: note}
      - {type: qdrant, collection: docs, path: store}

The keys under ``budget`` are the options of `budgeteer.Packer`, and mean the same. The values
above are the defaults, which are Packer's, and 8000 where Packer has none. ``counter`` may be an
encoding or a model, such as ``cl100k_base`` or ``gpt-4o``, which count exactly, an estimate such
as ``chars_div4``, ``tiktoken:NAME`` or ``file:PATH``. A ranking with options is a mapping from its
name to them, and a template with options is a mapping of them:

    budget:
      ranking: {lexical: {stemming: german, feedback: false}}
      # ranking: {bm25: {stemming: english, k1: 1.5}}
      # ranking: {embedding: {fallback: lexical}}
      # ranking: {hybrid: {bm25: lexical, weights: {bm25: 0.3, embedding: 0.7}, fusion: rrf}}
      template: {format: "<{id}> {text}", separator: "\n", header: "Sources:\n"}

Older files have other spellings, which stay valid: ``estimator`` for ``counter``, ``truncation``
for ``overflow`` with ``drop`` for ``skip``, and under ``ranking`` ``relevance`` for ``keyword``
and ``manual`` for ``input``. In a file with one of them, ``counter`` is ``chars_div4`` by default,
``ranking`` is ``keyword`` and ``dedupe`` is null; it may give any other option too. An option in
both spellings is an error. What is spelled alike in both, such as ``ranking: recency``, decides
nothing: a file without an older spelling has the defaults above.

All paths, that of ``hf:`` included, are relative to the file. A directory's Markdown files are
read in the order of their relative paths and split at H2 headings; hidden files are read like all
others, links to directories are not followed. Sources with a higher ``priority`` (default 0) come
first, which decides under ``ranking: input`` and between equal scores.

A collection of Qdrant needs ``pip install 'budgeteer[qdrant]'``. It is in a folder (``path``) or
on a server (``url``, and ``api_key_env``, the environment variable that holds its key). With
``embedding: {model: ..., url: ..., api_key_env: ...}``, which must match how the collection was
made, the ``limit`` (500) chunks nearest to the query are read, nearest first. The default is the
``embedding`` of ``budget``; if there is none, or with ``embedding: null``, the whole collection is
read. ``fields: {text: body}`` maps a chunk's fields to payload keys; ``vector_name`` names the
vector to use.

The keys under ``embedding`` are the options of `budgeteer.embedding.OpenAIEmbedder`, with its
defaults but for two. null for ``api_key_env`` sends no key, null for ``cache_dir`` uses no cache.
That of a Qdrant source embeds nothing but queries, and has no options for a cache or for batches:

    budget:
      embedding:
        model: text-embedding-3-small
        api_key_env: OPENAI_API_KEY               # the variable that holds the key
        url: https://api.openai.com/v1/embeddings
        cache_dir: .context_router_embeddings     # relative to the file
        truncate: true                            # where the model's limit is known

A text above the model's limit, ``max_input_tokens``, is cut before it is embedded, and the logger
``budgeteer`` warns with its file and heading. The chunk itself stays whole. Under
``truncate: false`` it is an error.

Under rankings by embeddings the query, and the texts that the cache lacks, are sent to that URL;
this needs ``pip install 'budgeteer[embeddings]'``. For a Qdrant source the query is sent to the
URL of the source's own ``embedding`` or else to that of ``budget``, whatever the ``ranking``; with
``embedding: null`` in the source it is not sent. Texts are sent nowhere else. A failing endpoint
of a Qdrant source raises a `ConfigError`, not an `EmbeddingError`.
"""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgeteer import _validate
from budgeteer._files import decode, join, mapping, one_line, reason
from budgeteer._pack.packer import Packer, prepared_of
from budgeteer._rank.similarity import Embedder
from budgeteer._sources.budget import budget_of
from budgeteer._sources.embedder import check_sizes
from budgeteer._sources.meaning import meaning_of
from budgeteer._sources.sources import Qdrant, Source, place_of, source_of
from budgeteer.errors import BudgeteerError, InvalidArgumentError, RetrievalError

if TYPE_CHECKING:
    from budgeteer._chunk.chunk import Chunk
    from budgeteer._pack.packing import Packing
    from budgeteer.embedding import OpenAIEmbedder
else:
    OpenAIEmbedder = Embedder  # for annotations: ours is slow to load, few need it

__all__ = ["Config", "ConfigError", "json_schema", "load"]

_YAML = "tag:yaml.org,2002:"
_SCHEMA = Path(__file__).with_suffix(".schema.json")
"""Written by ``scripts/generate_schema.py``."""


class ConfigError(BudgeteerError, ValueError):
    """
    A configuration, or a source in it, cannot be read. The message is one line.

    Examples:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "budgeteer.yaml")
        ...     _ = path.write_text("budget: {max_tokens: 0}")
        ...     try:
        ...         load(path)
        ...     except ConfigError as error:
        ...         print(str(error).rpartition("budgeteer.yaml: ")[2])
        budget.max_tokens must be from 1 to 9223372036854775807, not 0. max_tokens: The most tokens
        of the text, from 1 on.

    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


@dataclass(frozen=True, slots=True)
class Config:
    """
    A configuration read by `load`. Immutable; its sources are not read yet.

    Attributes:
        path: The file it was read from.
        packer: A strict `Packer` with the options of ``budget``.
        sources: The sources in the order of the file. Each has ``name``, ``priority`` and
            ``read()``, which returns its chunks; a directory also has ``path`` and ``pattern``, a
            JSONL file ``path``, an inline text ``text``.
        embedder: An `OpenAIEmbedder` with the settings of ``budget.embedding``; None if there are
            none. The packer uses it if it ranks by embeddings.

    Examples:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "budgeteer.yaml")
        ...     _ = path.write_text("sources: [{type: inline, text: Green tea.}]")
        ...     config = load(path)
        >>> config.packer.max_tokens, config.sources[0].name
        (8000, 'inline')

    """

    path: Path
    packer: Packer
    sources: tuple[Source, ...]
    embedder: OpenAIEmbedder | None = None

    def chunks(self, query: str | None = None) -> list[Chunk]:
        """
        Read the sources and return their chunks, in order.

        The order is by priority, highest first, then by place in the file, then by place in the
        source. Each call reads the sources again. To pack several times without reading, keep the
        list and pass it to ``packer.pack``.

        Args:
            query: The query for sources that search; None reads them whole.

        Returns:
            The chunks, each with its source's name. Chunks of a directory have ``mtime`` and
            ``path`` in their metadata and ``path#n`` as id, where n is the section's number.

        Raises:
            ConfigError: A source cannot be read; the message names the file, and the line of a
                JSONL file. Or the endpoint that embeds *query* for a Qdrant source fails. Or a
                chunk has more tokens than the embedding model takes, under ``truncate: false`` and
                without a fallback.
            InvalidArgumentError: *query* is neither a str nor None.

        Examples:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "budgeteer.yaml")
            ...     _ = path.write_text(
            ...         "sources: [{type: inline, text: Low.}, "
            ...         "{type: inline, text: High., priority: 1}]"
            ...     )
            ...     config = load(path)
            >>> [chunk.text for chunk in config.chunks()]
            ['High.', 'Low.']

        """
        if query is not None:
            query = _validate.text("query", query)
        chunks: list[Chunk] = []
        places: list[str] = []
        try:
            for source in sorted(self.sources, key=lambda source: -source.priority):
                read = (
                    source.read(query, self.embedder)
                    if isinstance(source, Qdrant)
                    else source.read()
                )
                chunks += read
                places += [place_of(source, chunk, n) for n, chunk in enumerate(read, 1)]
            ranking = prepared_of(self.packer).ranking
            is_used = ranking.embedder == self.embedder and query != ""
            if self.embedder is not None and is_used:
                check_sizes(self.embedder, chunks, places, is_strict=ranking.fallback is None)
        except OSError as error:
            raise ConfigError(reason(error)) from error
        except InvalidArgumentError as error:
            raise ConfigError(str(error)) from None
        except RetrievalError as error:
            raise ConfigError(str(error)) from error
        return chunks

    def query(self, text: str) -> Packing[Chunk]:
        """
        Read the sources and pack the best of their chunks for the query *text*.

        Args:
            text: The question that the chunks should answer. May be empty: then every score by
                words is 0. For a Qdrant source it is embedded, whatever the ranking, by the
                source's ``embedding`` or else that of ``budget``, but not with ``embedding: null``
                in the source.

        Returns:
            A packing whose text has at most ``max_tokens - reserve_tokens`` tokens.

        Raises:
            ConfigError: As from `chunks`.
            EmbeddingError: The packer's embedder failed, under ``ranking: embedding``.
            InvalidArgumentError: *text* is not a str.

        Examples:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "budgeteer.yaml")
            ...     _ = path.write_text(
            ...         "{budget: {max_tokens: 3}, sources: [{type: inline, text: Green tea.}]}"
            ...     )
            ...     packing = load(path).query("tea")
            >>> packing.text, packing.total_tokens, packing.budget_tokens
            ('Green tea.', 3, 3)

        """
        _validate.text("text", text)
        return self.packer.pack(text, self.chunks(text))


def load(path: str | os.PathLike[str]) -> Config:
    r"""
    Read a configuration from a YAML file.

    Needs PyYAML: ``pip install 'budgeteer[cli]'``. The file is UTF-8; tags in it can only make
    plain data.

    Args:
        path: The file. Paths in it are relative to its directory.

    Returns:
        The configuration. Its sources exist, but are not read yet.

    Raises:
        ConfigError: The file cannot be read, is not YAML, or has an invalid value: the message
            names the key, the value, what is allowed and what the key is for. Or PyYAML is not
            installed.
        InvalidArgumentError: *path* is not a path.

    Examples:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "tea.md").write_text("## Green tea\nIt is mild.")
        ...     path = pathlib.Path(folder, "budgeteer.yaml")
        ...     _ = path.write_text("sources: [{type: directory, path: ., name: drinks}]")
        ...     packing = load(path).query("green tea")
        >>> packing.kept[0].chunk.title, packing.is_exact
        ('Green tea', True)

    """
    path = Path(_validate.path_like("path", path))
    try:
        return _config(document_of(decode(path.read_bytes())), path)
    except OSError as error:
        raise ConfigError(reason(error)) from error
    except ValueError as error:
        said = str(error)
        if meaning := meaning_of(said, json_schema()):
            said = f"{said}{'' if said.endswith('?') else '.'} {meaning}"
        raise ConfigError(f"{path}: {said}") from None


def json_schema() -> dict[str, Any]:
    """
    Return the JSON Schema of a configuration, for editors and other checks.

    ``budgeteer schema`` writes the same, and errors of `load` quote what it says of a key. It
    knows keys, types, choices and defaults, and what each option means; what depends on several
    options, on files or on numbers, `load` alone checks.

    Examples:
        >>> sorted(json_schema()["properties"])
        ['budget', 'sources']

    """
    found: dict[str, Any] = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    return found


def _config(document: object, path: Path) -> Config:
    if document is None:
        raise InvalidArgumentError("the file is empty; it must be a mapping with 'sources'")
    top = mapping("", document, ("budget", "sources"))
    base = path.absolute().parent  # the current directory may change before sources are read
    packer, embedder = budget_of(top.get("budget"), base)
    entries = top.get("sources")
    if entries is None or entries == []:
        raise InvalidArgumentError("sources is required and must list at least one source")
    if not isinstance(entries, list):
        raise InvalidArgumentError(f"sources must be a list, not {_validate.type_name(entries)}")
    sources = [source_of(f"sources[{i}]", entry, base) for i, entry in enumerate(entries)]
    return Config(path, packer, tuple(sources), embedder)


def document_of(text: str) -> object:
    """Return the one document of a YAML text as plain data."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise InvalidArgumentError(
            "reading it needs PyYAML: pip install 'budgeteer[cli]'"
        ) from None
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            return None if node is None else _Reader(loader).value(node, "")
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        message = f"the character #x{error.character:04x} is not allowed"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = mark.line + 1, mark.column + 1
        message = error.problem + (f" ({error.context})" if error.context else "")
    except RecursionError:
        raise InvalidArgumentError("nested too deeply") from None
    raise InvalidArgumentError(f"line {line}, column {column}: {message}")


class _Reader:
    """
    Makes plain data from YAML nodes as ``SafeLoader`` does, but stricter.

    A duplicate key is an error. Each node is made once, however many aliases name it, and merging
    (``<<``) is bounded by the number of keys, so that a short file stays cheap.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.made: dict[Any, object] = {}
        self.open: set[Any] = set()

    def value(self, node: Any, key: str) -> Any:
        if node in self.made:
            return self.made[node]
        if node in self.open:
            raise InvalidArgumentError(f"{key} contains itself")
        self.open.add(node)
        if node.id == "scalar":
            made = self._scalar(node, key)
        elif node.tag == _YAML + "seq":
            made = [self.value(item, f"{key}[{i}]") for i, item in enumerate(node.value)]
        elif node.tag == _YAML + "map":
            made = self._mapping(node, key)
        else:
            raise InvalidArgumentError(f"{key or 'the file'} has the unknown tag {node.tag!r:.80}")
        self.open.discard(node)
        self.made[node] = made
        return made

    def _scalar(self, node: Any, key: str) -> object:
        try:
            return self.loader.construct_object(node, deep=True)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            kind = node.tag.removeprefix(_YAML)
            raise InvalidArgumentError(
                f"{key} cannot be read as {kind}; quote it if it is text"
            ) from None

    def _mapping(self, node: Any, key: str) -> dict[str, object]:
        own: dict[str, object] = {}
        merged: dict[str, object] | None = None
        for name_node, value_node in node.value:
            is_merge = name_node.tag == _YAML + "merge"
            name = "<<" if is_merge else self.value(name_node, f"a key of {key or 'the file'}")
            if not isinstance(name, str):
                found = _validate.type_name(name)
                raise InvalidArgumentError(
                    f"{key or 'the file'} has a key that is {found}, not str"
                )
            path = join(key, name)
            if name in own:
                line = name_node.start_mark.line + 1
                raise InvalidArgumentError(f"{path} is given twice, again in line {line}")
            own[name] = self.value(value_node, path)
            if is_merge:
                merged = _merged(own[name], path)
        if merged is None:
            return own
        del own["<<"]
        return merged | own


def _merged(value: object, key: str) -> dict[str, object]:
    """Return the merged keys of the mapping or mappings *value*; the first one wins."""
    merged: dict[str, object] = {}
    for part in reversed(value if isinstance(value, list) else [value]):
        if not isinstance(part, dict):
            raise InvalidArgumentError(
                f"{key} must be a mapping or a list of mappings, not {_validate.type_name(part)}"
            )
        merged |= part
    return merged
