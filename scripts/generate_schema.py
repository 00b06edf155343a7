"""
Write the JSON Schema of configuration files, `python/budgeteer/config.schema.json`.

    python scripts/generate_schema.py [--check]

It is made from what reads a configuration: the fields of `Packer`, of the rankings, of `Template`
and of `OpenAIEmbedder`, with their types, defaults and docstrings, and the keys of sources.
`--check` writes nothing, and fails where the file is not what would be written.
"""

import argparse
import inspect
import json
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from budgeteer import Packer, Template, _validate
from budgeteer._chunk.chunk import CHUNK_FIELDS
from budgeteer._sources import budget, embedder, sources
from budgeteer._sources.budget import MAX_TOKENS
from budgeteer.embedding import OpenAIEmbedder
from budgeteer.ranking import Bm25, Embedding, Hybrid, Lexical

FILE = Path(__file__).resolve().parent.parent / "python/budgeteer/config.schema.json"
NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
MINIMA = {"max_tokens": 1, "reserve_tokens": 0, "max_chunks": 0, "k1": 0, "b": 0, "k3": 0}
SAID = {
    "type": "What kind of source it is.",
    "path": "The folder or file, relative to the configuration.",
    "name": "What the source's chunks say they are from.",
    "priority": "Sources with a higher priority come first.",
    "pattern": "A glob of the files below the folder.",
    "text": "The text of the only chunk.",
    "collection": "The collection of Qdrant.",
    "url": "The server of Qdrant; give this or path.",
    "api_key_env": "The environment variable that holds the server's key.",
    "vector_name": "The vector to search, where a collection has several.",
    "fields": "The payload key of each field of a chunk.",
    "limit": "The most chunks to read.",
}
"""What the keys of a source mean; those of the options stand in docstrings."""


SAID_OF_OPTIONS = {
    "max_tokens": "The most tokens of the text, from 1 on.",
    "counter": "A name known to get_counter: an encoding, an estimate or a model.",
}
"""What options of Packer mean here, where a file can say less than a program."""


def types_of(hint: Any) -> list[dict[str, Any]]:
    """Return the schemas of a type, as far as YAML can write it."""
    if isinstance(hint, type) or get_origin(hint) is Callable:
        return [{"type": NAMES[hint]}] if hint in NAMES else []
    if get_origin(hint) is Literal:
        return [{"enum": [*get_args(hint)]}]
    found = [schema for part in get_args(hint) for schema in types_of(part)]
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Collection):
        return [{"type": "array", "items": any_of(found)}]
    return found


def any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema for any of several, each once."""
    found: list[dict[str, Any]] = []
    for schema in schemas:
        if schema not in found:
            found.append(schema)
    return found[0] if len(found) == 1 else {"anyOf": found}


def described(item: type) -> dict[str, str]:
    """Return what the docstring of a class says of each argument: its first sentence."""
    text = inspect.getdoc(item) or ""
    _, _, text = text.partition("\nArgs:\n")
    text = re.split(r"\n(?=\S)", text)[0]
    found = re.split(r"^    (\w+): ", text, flags=re.MULTILINE)
    pairs = zip(found[1::2], found[2::2], strict=True)
    said = {name: re.sub(r"[*`]+", "", " ".join(words.split())) for name, words in pairs}
    return {name: re.split(r"(?<=\.) (?=[A-Z])", words)[0] for name, words in said.items()}


def options(item: type, *without: str, **others: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a mapping of options, some of which have a schema of their own."""
    hints, said = get_type_hints(item), described(item)
    properties: dict[str, Any] = {}
    for field in fields(item):
        if not field.init or field.name in without:
            continue
        schema = {**others.get(field.name, any_of(types_of(hints[field.name])))}
        for part in schema.get("anyOf", [schema]):
            if field.name in MINIMA and part.get("type") in ("integer", "number"):
                part["minimum"] = MINIMA[field.name]
        if type(field.default) in NAMES and field.default is not MISSING:
            schema["default"] = field.default
        if field.name in said:
            schema["description"] = embedder.in_yaml(said[field.name])
        properties[field.name] = schema
    return {"type": "object", "properties": properties, "additionalProperties": False}


def ref(name: str) -> dict[str, Any]:
    """Return a reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def only(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a mapping from that name to options."""
    return {
        "type": "object",
        "properties": {name: schema},
        "required": [name],
        "additionalProperties": False,
    }


def definitions() -> dict[str, Any]:
    """Return the schemas that others refer to."""
    by_words = [only("lexical", ref("lexical")), only("bm25", ref("bm25"))]
    names = {"enum": ["lexical", "bm25"]}
    settings = options(OpenAIEmbedder)
    for name in ("cache_dir", "ca_file"):
        settings["properties"][name] |= {"anyOf": [{"type": "string"}, {"type": "null"}]}
    settings["properties"]["cache_dir"]["default"] = embedder._CACHE_DIR  # noqa: SLF001
    for_queries = {
        name: schema
        for name, schema in settings["properties"].items()
        if name not in embedder._FOR_MANY  # noqa: SLF001
    }
    weight = {"type": "number", "minimum": 0}
    weights = {
        "anyOf": [
            {
                "type": "object",
                "properties": dict.fromkeys(("bm25", "embedding", "score"), weight),
                "additionalProperties": False,
            },
            {"type": "null"},
        ]
    }
    fallback = {"anyOf": [names, *by_words, ref("bm25"), {"type": "null"}]}
    embedding = options(Embedding, "embedder", fallback=fallback)
    template = options(Template)
    template["required"] = ["format"]
    return {
        "lexical": options(Lexical, "statistics"),
        "bm25": options(Bm25, "statistics"),
        "byEmbedding": embedding,
        "hybrid": options(
            Hybrid,
            weights=weights,
            bm25={"anyOf": [names, *by_words, ref("bm25")]},
            embedding=ref("byEmbedding"),
        ),
        "template": template,
        "embedder": settings,
        "embedderForQueries": {**settings, "properties": for_queries},
        **{f"{kind}Source": source(kind) for kind in sources._KEYS},  # noqa: SLF001
    }


def source(kind: str) -> dict[str, Any]:
    """Return the schema of a kind of source."""
    special: dict[str, dict[str, Any]] = {
        "type": {"const": kind},
        "priority": {"type": "number", "default": 0},
        "pattern": {"type": "string", "default": sources.PATTERN},
        "limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        "embedding": {"anyOf": [ref("embedderForQueries"), {"type": "null"}]},
        "fields": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {key: {"type": "string"} for key in CHUNK_FIELDS},
                    "additionalProperties": False,
                },
                {"type": "null"},
            ]
        },
    }
    text = {"type": ["string", "null"] if kind == "qdrant" else "string"}
    properties = {}
    for name in sources._KEYS[kind]:  # noqa: SLF001
        schema = {**special.get(name, {"type": "string"} if name == "collection" else text)}
        properties[name] = schema | ({"description": SAID[name]} if name in SAID else {})
    required = {"inline": ["type", "text"], "qdrant": ["type", "collection"]}
    return {
        "type": "object",
        "properties": properties,
        "required": required.get(kind, ["type", "path"]),
        "additionalProperties": False,
    }


def budget_schema() -> dict[str, Any]:
    """Return the schema of the section ``budget``."""
    names = [*budget.NAMES, *budget._RANKINGS]  # noqa: SLF001
    ranking = {
        "anyOf": [
            {"enum": names},
            only("lexical", ref("lexical")),
            only("bm25", ref("bm25")),
            only("embedding", ref("byEmbedding")),
            only("hybrid", ref("hybrid")),
        ]
    }
    template = {"anyOf": [{"enum": [*budget.STYLES]}, ref("template")]}
    schema = options(Packer, ranking=ranking, template=template)
    properties = schema["properties"]
    properties["max_tokens"] |= {"default": MAX_TOKENS, "maximum": _validate.MAX_TOKENS}
    for name, words in SAID_OF_OPTIONS.items():
        properties[name]["description"] = words
    properties["embedding"] = {
        "anyOf": [ref("embedder"), {"type": "null"}],
        "description": "The endpoint for rankings by embeddings.",
    }
    properties["estimator"] = {"type": "string", "description": "The older name of counter."}
    properties["truncation"] = {
        "enum": [*budget._TRUNCATIONS],  # noqa: SLF001
        "description": "The older name of overflow.",
    }
    schema["allOf"] = [
        {"not": {"required": [older, newer]}}
        for older, newer in budget._OLDER.items()  # noqa: SLF001
    ]
    return schema


def made() -> str:
    """Return the schema as text."""
    kinds = [ref(f"{kind}Source") for kind in sources._KEYS]  # noqa: SLF001
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "budgeteer",
        "description": "A budget and the sources of its chunks.",
        "type": "object",
        "properties": {
            "budget": {"anyOf": [budget_schema(), {"type": "null"}]},
            "sources": {"type": "array", "minItems": 1, "items": {"oneOf": kinds}},
        },
        "required": ["sources"],
        "additionalProperties": False,
        "$defs": definitions(),
    }
    return json.dumps(schema, indent=2) + "\n"


def main() -> None:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--check", action="store_true", help="write nothing, and compare")
    if not parser.parse_args().check:
        FILE.write_text(made(), encoding="utf-8")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != made():
        sys.exit(f"{FILE.name} is not up to date: run scripts/generate_schema.py")


if __name__ == "__main__":
    main()
