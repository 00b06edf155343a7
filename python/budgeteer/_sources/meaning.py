"""What the JSON Schema of configurations says of a key, for the errors that name one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_KEY = re.compile(r"[a-z]\w*(?:\[\d+\])?(?:\.\w+)*", re.ASCII)
_MOST = 300
"""The most characters of a meaning: what is longer would hide what is wrong."""


def meaning_of(message: str, schema: dict[str, Any]) -> str:
    """
    Return a sentence that says what the key is for with which *message* begins.

    It is empty where the schema has no key of that name, or says too little or too much of it.

    Examples:
        >>> budget = {"properties": {"notice": {"description": "A last line."}}}
        >>> meaning_of("budget.notice must be a str", {"properties": {"budget": budget}})
        'notice: A last line.'

    """
    found = _KEY.match(message)
    if found is None:
        return ""
    names = re.sub(r"\[\d+\]", "[]", found[0]).replace("[]", ".[]").split(".")
    nodes = [schema]
    for name in names:
        nodes = [below for node in nodes for below in _below(node, name, schema)]
    said = next((node["description"] for node in nodes if "description" in node), "")
    return f"{names[-1]}: {said}" if 0 < len(said) <= _MOST else ""


def _below(node: dict[str, Any], name: str, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemas of the key *name*; ``[]`` is any place in a list."""
    if "$ref" in node:
        yield from _below(schema["$defs"][node["$ref"].rpartition("/")[2]], name, schema)
    for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _below(option, name, schema)
    if name == "[]" and "items" in node:
        yield node["items"]
    if name in node.get("properties", ()):
        yield node["properties"][name]
