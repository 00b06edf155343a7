"""
Views of messages of any shape as a message of OpenAI's chat or of Anthropic.

Shapes are told apart by their keys and attributes; nothing is imported from the packages that
have them. A view is for reading: `origin` says where in the caller's object a text of it is, and
`replaced` makes a copy of that object with another text there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from copy import copy
from typing import Any, Literal, NamedTuple, TypeAlias

from budgeteer import _validate
from budgeteer._messages import shapes
from budgeteer._messages.shapes import RESULT_ROLES, fields_of, text_key
from budgeteer.errors import InvalidArgumentError

Path: TypeAlias = tuple[str | int, ...]
Shape: TypeAlias = Literal["chat", "langchain", "llamaindex", "output", "item", "gemini", "part"]

_LANGCHAIN = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "function",
    "HumanMessageChunk": "user",
    "AIMessageChunk": "assistant",
    "SystemMessageChunk": "system",
    "ToolMessageChunk": "tool",
    "FunctionMessageChunk": "function",
}
_CALL_BLOCKS = {"tool_call", "function_call", "invalid_tool_call"}
"""The kinds of a LangChain message's blocks that hold its calls."""
_SENT_BACK = ("reasoning", "__gemini_function_call_thought_signatures__")
"""Where LangChain's messages have what only its provider can read, and gets back."""
_SEALED = ("text", "thinking", "image", "image_url")
"""The kinds of blocks whose thought signature is not among what counts of them."""
_RESPONSE_TEXTS = ("output", "result", "error")
"""The keys of a Gemini function's response that hold all of it, where there is only one."""


class View(NamedTuple):
    """
    A message as one of OpenAI's chat or Anthropic's.

    Attributes:
        fields: Its fields: ``role``, ``content``, and what else is sent.
        shape: What it was: ``chat`` for both of these; ``gemini`` for a content of Gemini's, and
            ``part`` for a part that stands for one.

    """

    fields: Mapping[str, Any]
    shape: Shape


class Slot(NamedTuple):
    """
    A text of a tool result.

    Attributes:
        text: The text, or the JSON of a result that is an object.
        path: Where it is in the view.

    """

    text: str
    path: Path


def view_of(message: Any) -> View | None:  # noqa: PLR0911 - a line for each shape
    """Return the view of a message, None for what has no fields."""
    if type(message) is dict and "role" in message and "parts" not in message:
        kind = message.get("type")
        if kind is None or kind == "message":
            return View(message, "chat")
    if not isinstance(message, (Mapping, type)):
        if hasattr(message, "blocks") and hasattr(message, "additional_kwargs"):
            return View(_from_llamaindex(message), "llamaindex")
        if hasattr(message, "response_metadata") and hasattr(message, "additional_kwargs"):
            return View(_from_langchain(message), "langchain")
    fields = fields_of(message)
    if fields is None:
        return None
    kind = fields.get("type")
    if "parts" in fields:
        return View(_from_gemini(fields), "gemini")
    if _is_part(fields):
        return View(_from_gemini(fields), "part")
    if "role" in fields or not isinstance(kind, str):
        return View(fields, "chat")
    return _from_item(fields, kind)


def placed(where: str, message: Any) -> View | None:
    """Return the view of a message; an error about what is in it names *where* it is."""
    try:
        return view_of(message)
    except InvalidArgumentError as error:
        if (fields_of(message) or {}).get("type") == "item_reference":  # its id is named
            raise
        raise InvalidArgumentError(f"{where}: {error}") from None


def viewed_fields(message: Any) -> Mapping[str, Any]:
    """Return the fields of the view of a message, none for what has no fields."""
    view = view_of(message)
    return {} if view is None else view.fields


def _is_part(fields: Mapping[str, Any]) -> bool:
    """Return whether these are the fields of a part of Gemini's that stands for a message."""
    if "role" in fields or "type" in fields:
        return False
    known = ("text", *_CALLS, *_RESPONSES, *_MEDIA, *_CODE)
    return any(key in fields for key in known) or _is_file(fields)


def _is_file(fields: Mapping[str, Any]) -> bool:
    """Return whether these are the fields of what Google's client returns for an upload."""
    return "uri" in fields and any(key in fields for key in _FILE_TYPES)


def _from_langchain(message: Any) -> dict[str, Any]:
    role = getattr(message, "role", None)
    role = role if isinstance(role, str) else _LANGCHAIN.get(message.type, message.type)
    content = message.content
    if isinstance(content, list):
        content = _with_seals(message, content)
    fields: dict[str, Any] = {"role": role, "content": content}
    if isinstance(getattr(message, "name", None), str):
        fields["name"] = message.name
    if isinstance(getattr(message, "tool_call_id", None), str):
        fields["tool_call_id"] = message.tool_call_id
    parts = content if isinstance(content, list) else ()
    given = [part.get("type") if isinstance(part, dict) else None for part in parts]
    kinds = [kind if isinstance(kind, str) else None for kind in given]
    # What could not be read as a call is sent as one all the same.
    calls = [*_list(message, "tool_calls"), *_list(message, "invalid_tool_calls")]
    if calls and "tool_use" not in kinds:
        fields["tool_calls"] = [
            _call(call.get("id"), call.get("name"), call.get("args")) for call in calls
        ]
        if not _CALL_BLOCKS.isdisjoint(kinds):  # the same calls once more
            fields["content"] = [
                {"type": "text", "text": ""} if kind in _CALL_BLOCKS else part
                for kind, part in zip(kinds, parts, strict=True)
            ]
    elif not calls:
        _take(fields, message.additional_kwargs, ("tool_calls", "function_call"))
    for key in _SENT_BACK:
        if isinstance(message.additional_kwargs.get(key), Mapping):
            fields[key] = message.additional_kwargs[key]
    return fields


def _with_seals(message: Any, content: list[Any]) -> list[Any]:
    """Return the blocks of a message with Gemini's thought signatures as those of parts."""
    told = message.response_metadata
    provider = told.get("model_provider") if isinstance(told, Mapping) else None
    is_google = isinstance(provider, str) and provider.startswith("google")

    def sealed(block: Any) -> Any:
        if not isinstance(block, dict) or block.get("type") not in _SEALED:
            return block
        extras = block.get("extras")
        seal = extras.get("signature") if isinstance(extras, Mapping) else None
        if seal is None and is_google:  # Anthropic's, beside a text, is a mere seal
            seal = block.get("signature") if block.get("thinking") else None
        return block if seal is None else {**block, "thought_signature": plain_text(seal)}

    return [sealed(block) for block in content]


def _list(message: Any, name: str) -> Iterable[Any]:
    return getattr(message, name, None) or ()


def _from_llamaindex(message: Any) -> dict[str, Any]:
    role = getattr(message.role, "value", message.role)
    role = {"chatbot": "assistant", "model": "assistant"}.get(role, role)
    fields: dict[str, Any] = {"role": role, "content": [_block(block) for block in message.blocks]}
    has_calls = any(part.get("type") == "tool_use" for part in fields["content"])
    kept = () if has_calls else ("tool_calls", "function_call")
    _take(fields, message.additional_kwargs, (*kept, "tool_call_id", "name"))
    seals = message.additional_kwargs.get("thought_signatures")
    if isinstance(seals, (list, tuple)) and any(seals):  # Gemini's, of the blocks in their order
        fields["thought_signatures"] = [*map(plain_text, seals)]
        for part in fields["content"]:  # the same once more
            part.pop("thought_signature", None)
    return fields


def _block(block: Any) -> dict[str, Any]:
    """Return a block of LlamaIndex as a part."""
    kind = getattr(block, "block_type", None)
    if kind == "text":
        return {"type": "text", "text": block.text}
    if kind == "thinking":
        thought = {"type": "thinking", "thinking": block.content or ""}
        more = getattr(block, "additional_information", None) or {}
        _take(thought, more, ("signature",))
        seal = more.get("encrypted_content")
        if seal is not None:  # OpenAI's, beside a summary of it
            thought["thought_signature" if block.content else "signature"] = seal
        if more.get("thought_signature") is not None:
            thought["thought_signature"] = plain_text(more["thought_signature"])
        return thought
    if kind == "tool_call":
        return {
            "type": "tool_use",
            "id": block.tool_call_id,
            "name": block.tool_name,
            "input": block.tool_kwargs,
        }
    if kind in ("citable", "citation"):
        quoted = getattr(block, "content", None) or [getattr(block, "cited_content", None)]
        told = {name: getattr(block, name, None) for name in ("title", "source")}
        return {"type": kind, **told, "content": [_block(one) for one in quoted if one]}
    if kind == "cache":  # a mark for the provider
        return {"type": "text", "text": ""}
    data = getattr(block, kind, None) if kind in ("image", "audio", "video") else None
    data = getattr(block, "data", None) if kind == "document" else data
    url = getattr(block, "url", None)
    source = (
        {"data": plain_text(data)} if data is not None else {"type": "url", "url": str(url or "")}
    )
    part: dict[str, Any] = {"type": str(kind), "source": source}
    if kind == "image" and getattr(block, "detail", None):
        part["detail"] = block.detail
    return part


def _take(fields: dict[str, Any], given: Any, keys: tuple[str, ...]) -> None:
    for key in keys:
        if isinstance(given, Mapping) and given.get(key) is not None:
            fields[key] = given[key]


def _call(key: object, name: object, given: object) -> dict[str, Any]:
    """Return a call of OpenAI's chat."""
    arguments = given if isinstance(given, str) else _json({} if given is None else given)
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=shapes.plain)
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgumentError(
            "the arguments and results of a message's calls must be of JSON's types, and not "
            "nested too deeply"
        ) from None


def _from_item(fields: Mapping[str, Any], kind: str) -> View:
    """Return the view of an item of OpenAI's Responses that has no role."""
    if kind == "item_reference":
        raise InvalidArgumentError(
            f"the item_reference {fields.get('id')!r:.80} stands for an item that only the "
            "provider has, so its tokens are not known: send the item itself"
        )
    key = fields.get("call_id")
    if kind == "mcp_approval_request":
        key = fields.get("id")
    if kind == "mcp_approval_response":
        return _from_output(fields, fields.get("approval_request_id"))
    # What the provider found by itself has no id: it stays with the search before it.
    is_own = kind == "tool_search_output" and key is None
    if kind.endswith("_output") and not is_own:
        return _from_output(fields, key)
    if kind in ("function_call", "custom_tool_call"):
        given = fields.get("arguments", fields.get("input"))
        calls = [_call(key, fields.get("name"), given)]
        if "caller_id" in (fields_of(fields.get("caller")) or {}):  # the program that calls
            calls[0]["caller"] = fields["caller"]
        return View({"role": "assistant", "content": None, "tool_calls": calls}, "item")
    if kind == "reasoning":
        shown = {name: fields.get(name) for name in ("summary", "content", "encrypted_content")}
        return View({"role": "assistant", "reasoning": shown}, "item")
    calls = [{"id": key}] if isinstance(key, str) else []
    part = {name: value for name, value in fields.items() if value is not None}
    parts = [part]
    if kind == "image_generation_call" and isinstance(part.get("result"), str):
        parts.append({"type": "image", "source": {"data": part.pop("result")}})
    return View({"role": "assistant", "content": parts, "tool_calls": calls}, "item")


def _from_output(fields: Mapping[str, Any], key: object) -> View:
    """Return the view of the result of a call, whose id is *key*."""
    output = fields.get("output")
    view: dict[str, Any] = {"role": "tool", "tool_call_id": key}
    if "output" not in fields:  # as of a program, a search for tools or an approval
        return View({**view, "content": [dict(fields)]}, "item")
    if isinstance(output, (str, list, tuple)) or output is None:
        return View({**view, "content": output}, "output")
    shot = fields_of(output) or {}
    if shot.get("type") != "computer_screenshot":
        return View({**view, "content": [dict(fields)]}, "item")
    view["content"] = [{"type": "input_image", "image_url": shot.get("image_url")}]
    return View({**view, "checks": fields.get("acknowledged_safety_checks")}, "item")


_CALLS = ("function_call", "functionCall")
_RESPONSES = ("function_response", "functionResponse")
_SIGNATURES = ("thought_signature", "thoughtSignature")
_MEDIA = ("inline_data", "inlineData", "file_data", "fileData")
_CODE = ("executable_code", "executableCode", "code_execution_result", "codeExecutionResult")
_FILE_TYPES = ("mime_type", "mimeType")


def _from_gemini(fields: Mapping[str, Any]) -> dict[str, Any]:
    given = fields.get("parts", (fields,)) or ()
    given = given if fields_of(given) is None else (given,)
    # A value that is not iterable is refused where the content is read.
    content = [_part(part) for part in given] if isinstance(given, Iterable) else given
    # Gemini's client takes a call by itself for the model's, and any other part for the user's.
    has_call = "parts" not in fields and any(fields.get(key) is not None for key in _CALLS)
    role = fields.get("role") or ("model" if has_call else "user")
    return {"role": "assistant" if role == "model" else role, "content": content}


def _part(value: object) -> dict[str, Any]:
    """Return a part of Gemini's as one of Anthropic's, with its thought signature."""
    if isinstance(value, str):
        return {"type": "text", "text": value}
    fields = fields_of(value)
    if fields is None:  # nothing of it would be counted
        raise InvalidArgumentError(
            f"a part must be a str or a mapping, not {_validate.type_name(value)}; an object must "
            "have model_dump()"
        )
    part = {key: inner for key, inner in fields.items() if inner not in (None, "")}
    made = _kind_of_part(part)
    if made["type"] != "part":  # else it is among its fields
        for key in _SIGNATURES:
            if key in part:
                made["thought_signature"] = plain_text(part[key])
    return made


def _kind_of_part(part: Mapping[str, Any]) -> dict[str, Any]:  # noqa: PLR0911 - one for each
    for key in _CALLS:
        if key in part:
            call = _inner(part, key)
            return {
                "type": "tool_use",
                "id": call.get("id"),
                "name": call.get("name"),
                "input": call.get("args") or {},
            }
    for key in _RESPONSES:
        if key in part:
            return _response(_inner(part, key))
    for key in _MEDIA:
        if key in part:
            return _gemini_media(_inner(part, key))
    if _is_file(part):
        return _gemini_media({**part, "file_uri": part["uri"]})
    if "text" in part:
        kind = "thinking" if part.get("thought") else "text"
        return {"type": kind, kind: part["text"]}
    if not part:  # an empty text, as a section without chunks leaves
        return {"type": "text", "text": ""}
    return {"type": "part", **{key: plain_text(inner) for key, inner in part.items()}}


def _inner(part: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the fields of what a part holds; of anything else nothing would be counted."""
    fields = fields_of(part[key])
    if fields is None:
        raise InvalidArgumentError(
            f"the {key} of a part must be a mapping, not {_validate.type_name(part[key])}"
        )
    return fields


def _response(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function's response, its media beside its text."""
    given = answer.get("response")
    if given is not None and fields_of(given) is None:  # its text would count nothing
        raise InvalidArgumentError(
            "the response of a function must be a mapping, such as {'output': ...}, not "
            f"{_validate.type_name(given)}"
        )
    content: Any = response_text(given)[0]
    media = answer.get("parts")
    if media:
        if not isinstance(media, (list, tuple)):
            raise InvalidArgumentError("the parts of a function's response must be a list")
        content = [{"type": "text", "text": content}, *map(_part, media)]
    reference = answer.get("id") or None
    return {
        "type": "tool_result",
        "tool_use_id": reference,
        "name": answer.get("name"),
        "content": content,
    }


def _gemini_media(blob: Mapping[str, Any]) -> dict[str, Any]:
    mime = blob.get("mime_type") or blob.get("mimeType") or ""
    kind = mime.partition("/")[0] if isinstance(mime, str) else ""
    kind = kind if kind in ("image", "audio", "video") else "document"
    data = blob.get("data")
    url = blob.get("file_uri") or blob.get("fileUri") or ""
    source = {"type": "url", "url": url} if data is None else {"data": plain_text(data)}
    return {"type": kind, "source": {**source, "media_type": mime}}


def plain_text(value: Any) -> Any:
    """Return bytes as base64, anything else as it is."""
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    return value


def response_text(response: Any) -> tuple[str, str | None]:
    """Return the text of a Gemini function's response and its key; None for JSON of the whole."""
    fields = fields_of(response) or {}
    if len(fields) == 1:
        [(key, value)] = fields.items()
        if key in _RESPONSE_TEXTS and isinstance(value, str):
            return value, key
    return (_json(dict(fields)) if fields else ""), None


def slots_of(view: View) -> Iterator[Slot]:
    """Yield the texts of tool results, in the order in which they are counted."""
    fields = view.fields
    content = fields.get("content")
    is_result = fields.get("role") in RESULT_ROLES
    if is_result or isinstance(content, (list, tuple)):
        yield from _slots(content, ("content",), is_result)


def _slots(value: Any, path: Path, is_result: bool) -> Iterator[Slot]:
    if isinstance(value, str):
        yield Slot(value, path)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            if isinstance(part, str):
                if is_result:
                    yield Slot(part, (*path, i))
                continue
            fields = fields_of(part) or {}
            if fields.get("type") == "tool_result":
                yield from _slots(fields.get("content"), (*path, i, "content"), is_result=True)
            elif is_result:
                key = text_key(fields)
                if key is not None and isinstance(fields.get(key), str):
                    yield Slot(fields[key], (*path, i, key))


def result_texts(message: Any) -> list[str]:
    """Return the texts of the tool results of a message of any shape, in their order."""
    view = view_of(message)
    if view is None or view.shape == "chat":
        return shapes.result_texts(message)
    return [slot.text for slot in slots_of(view)]


def with_results(message: Any, texts: Iterable[str]) -> Any:
    """
    Return a copy of a message of any shape that has *texts*, in order, for those of its results.

    All else in it is the caller's, in the caller's types; itself if nothing would change.
    """
    view = view_of(message)
    if view is None or view.shape == "chat":
        return shapes.with_results(message, iter(texts))
    made = message
    for slot, text in zip(slots_of(view), texts, strict=True):
        if slot.text != text:
            made = with_text(made, view, slot.path, text)
    return made


def with_result(message: Any, text: str) -> Any:
    """Return a copy of a message each of whose tool results is *text*, as by `with_results`."""
    view = view_of(message)
    if view is None or view.shape == "chat":
        return shapes.with_result(message, text)
    return with_results(message, [text for _ in slots_of(view)])


def without_results(message: Any, numbers: Container[int]) -> Any:
    """Return a copy of a message without the parts that are its results of these *numbers*."""
    view = view_of(message)
    assert view is not None  # noqa: S101 - it has results
    parts = enumerate(view.fields["content"])
    places = [i for i, part in parts if (fields_of(part) or {}).get("type") == "tool_result"]
    dropped = {place for number, place in enumerate(places) if number in numbers}

    def kept(content: Any) -> Any:
        parts = [part for i, part in enumerate(content) if i not in dropped]
        return tuple(parts) if isinstance(content, tuple) else parts

    key = {"gemini": "parts", "output": "output"}.get(view.shape, "content")
    return replaced(message, (key,), kept)


def with_text(message: Any, view: View, path: Path, text: str) -> Any:
    """Return a copy of *message* with another text at *path* of its view."""
    at, new = path, text
    if view.shape == "output":
        at = ("output", *path[1:])
    elif view.shape == "llamaindex":
        at = ("blocks", *path[1:])
    elif view.shape in ("gemini", "part"):
        return _with_response(message, path, text)
    return replaced(message, at, lambda _: new)


def _with_response(message: Any, path: Path, text: str) -> Any:
    """Return a copy of a content of Gemini's with another text of a function's response."""
    at = part_path(message, path[1])
    part = _at(message, at)
    key = next(key for key in _RESPONSES if _has(part, key))

    def changed(response: Any) -> Any:
        return {response_text(response)[1] or "output": text}

    return replaced(message, (*at, key, "response"), changed)


def part_path(message: Any, place: int | str) -> Path:
    """Return where the part at a *place* of a content of Gemini's is; a part alone is itself."""
    if not _has(message, "parts"):
        return ()
    return ("parts",) if fields_of(_get(message, "parts")) is not None else ("parts", place)


def _has(value: Any, key: str) -> bool:
    return (fields_of(value) or {}).get(key) is not None


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = _get(value, key)
    return value


def _get(value: Any, key: str | int) -> Any:
    if isinstance(key, int):
        return value[key]
    if isinstance(value, Mapping):
        return value.get(key)  # a function's response may have none, as an object's is None
    if hasattr(value, "model_copy"):
        return getattr(value, key)
    return (fields_of(value) or {})[key]


def replaced(value: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    """
    Return a copy of *value* in which *change* was applied to what is at *path*.

    All that is on the path is copied, in its own type where it can be; all else is the caller's.
    """
    if not path:
        return change(value)
    key = path[0]
    new = replaced(_get(value, key), path[1:], change)
    if isinstance(value, (list, tuple)):
        items = [*value]
        items[int(key)] = new
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        copied = copy(value)
        copied[key] = new
        return copied
    if hasattr(value, "model_copy"):
        return value.model_copy(update={str(key): new})
    return {**(fields_of(value) or {}), str(key): new}
