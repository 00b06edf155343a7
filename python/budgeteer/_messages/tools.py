"""Tool schemas, as the TypeScript that a model is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from budgeteer import _validate
from budgeteer._messages.shapes import AROUND_TOOLS, DEEPEST, as_json, mapping
from budgeteer.errors import InvalidArgumentError

_PER_TOOLS, _WITH_SYSTEM = 9, -4
_SIMPLE = {
    **{kind: kind for kind in ("string", "number", "boolean", "null")},
    "integer": "number",
}

_BESIDE = ("$defs", "definitions", "$ref", "allOf", "anyOf", "oneOf")
"""Where a tool's schema says more of its fields, as that of nested classes does in ``$defs``."""

ToolTexts: TypeAlias = dict[int, str | None]
"""What tools are rendered as, by their ids, while others hold these; None until one is."""


def framed_tools(tokens: int, has_system_message: bool) -> int:
    """Return the tokens of tool schemas whose text counts *tokens*."""
    return max(0, tokens + _PER_TOOLS + (_WITH_SYSTEM if has_system_message else 0))


def render_tools(name: str, tools: Sequence[Any], known: ToolTexts | None = None) -> str:
    """
    Return tool schemas as the TypeScript that a model sees; *name* is theirs in an error.

    Those of *known* are rendered once.

    Examples:
        >>> print(render_tools("tools", [{"name": "now", "description": "Say what time it is"}]))
        namespace functions {
        <BLANKLINE>
        // Say what time it is
        type now = () => any;
        <BLANKLINE>
        } // namespace functions

    """
    texts = [tool_text(known, f"{name}[{i}]", tool, _render_tool) for i, tool in enumerate(tools)]
    return "\n".join(["namespace functions {", "", *texts, "} // namespace functions"])


def tool_text(
    known: ToolTexts | None, where: str, tool: Any, render: Callable[[str, Any], str]
) -> str:
    """Return what *render* makes of *tool*; of one whose id is in *known* it is made once."""
    if known is None or id(tool) not in known:
        return render(where, tool)
    text = known[id(tool)]
    if text is None:
        text = known[id(tool)] = render(where, tool)
    return text


def _render_tool(where: str, item: Any) -> str:
    lines = []
    tool = mapping(where, item)
    around = next((key for key in AROUND_TOOLS if tool.get(key) is not None), None)
    if around is not None:
        where = f"{where}[{around!r}]"
        tool = mapping(where, tool[around])
    called = _validate.text(f"{where}['name']", tool.get("name"))
    key = "input_schema" if tool.get("input_schema") is not None else "parameters"
    schema = {} if tool.get(key) is None else mapping(f"{where}[{key!r}]", tool[key])
    if _says_something(tool.get("description")):
        told = _validate.text(f"{where}['description']", tool["description"])
        lines.append(f"// {told}")
    fields = []
    if tool.get("format") is not None:  # of a custom tool, such as a grammar
        fields.append(as_json(f"{where}['format']", tool["format"]))
    where = f"{where}[{key!r}]"
    if _says_something(schema.get("properties")):
        fields.append(_properties(where, schema, 0))
    beside = [part for part in schema if part in _BESIDE and _says_something(schema[part])]
    if beside:
        fields.append(as_json(where, {part: schema[part] for part in beside}))
    if fields:
        lines += [f"type {called} = (_: {{", *fields, "}) => any;", ""]
    else:
        lines += [f"type {called} = () => any;", ""]
    return "\n".join(lines)


def _says_something(value: object) -> bool:
    """Return whether a value is not empty; an array of numpy, which does not say, is not."""
    try:
        return bool(value)
    except ValueError:
        return True


def _properties(where: str, schema: Mapping[str, Any], indent: int, depth: int = 0) -> str:
    required = schema.get("required")
    known = required if isinstance(required, (list, tuple)) else ()
    needed = frozenset(name for name in known if isinstance(name, str))
    lines = []
    place = f"{where}['properties']" if depth < 2 else where
    fields = schema.get("properties")
    for name, value in mapping(place, fields if _says_something(fields) else {}).items():
        field = value if isinstance(value, Mapping) else {}
        if isinstance(field.get("description"), str) and field["description"]:
            lines.append(f"// {field['description']}")
        mark = "" if name in needed else "?"
        lines.append(f"{name}{mark}: {_type(f'{place}[{name!r:.80}]', value, indent, depth)},")
    return "\n".join(" " * indent + line for line in lines)


def _type(where: str, schema: Any, indent: int, depth: int) -> str:
    """Return a schema as a TypeScript type, or as JSON if it has none, which errs high."""
    if depth > DEEPEST:
        raise InvalidArgumentError(f"{where[:200]} is nested deeper than {DEEPEST}")
    if not isinstance(schema, Mapping):
        return as_json(where, schema)
    if isinstance(schema.get("enum"), (list, tuple)):
        return " | ".join(as_json(where, value) for value in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, (list, tuple)):
        # Each once: repeated types within one another would double the text at each level.
        once = {one if isinstance(one, str) else i: one for i, one in enumerate(kind)}
        return " | ".join(
            as_json(where, typed)
            if isinstance(typed["type"], (list, tuple))
            else _type(where, typed, indent, depth + 1)
            for typed in ({**schema, "type": one} for one in once.values())
        )
    if kind == "array":
        items = schema.get("items")
        return f"{_type(where, items, indent, depth + 1)}[]" if _says_something(items) else "any[]"
    if kind == "object":
        return "\n".join(["{", _properties(where, schema, indent + 2, depth + 1), "}"])
    simple = _SIMPLE.get(kind) if isinstance(kind, str) else None
    return as_json(where, schema) if simple is None else simple
