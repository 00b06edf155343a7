"""
Counts chat messages and tool schemas: their texts and the tokens around them.

The rule for messages is the one that OpenAI publishes, or what the chat template of an open model
writes. There is no official rule for tools; the best known one renders them as the TypeScript
namespace that the model sees. OpenAI's rule is also applied to Claude and Gemini, whose makers
publish none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from budgeteer import _validate
from budgeteer._count.counter import TokenCounter
from budgeteer._count.resolve import get_counter
from budgeteer._messages.frames import Frame, Rule, frame_of, weakest
from budgeteer._messages.media import (
    CHARS_PER_TOKEN,
    IMAGES,
    LEAST,
    PAGED,
    TIMED,
    file_cost,
    image_cost,
)
from budgeteer._messages.shapes import (
    DEEPEST,
    RESULT_ROLES,
    AnyMessage,
    as_json,
    fields_of,
    mapping,
    text_key,
)
from budgeteer._messages.tools import framed_tools, render_tools
from budgeteer._messages.views import placed, view_of
from budgeteer._public import public
from budgeteer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from budgeteer._count.limits import ModelLimits

NO_TOOL, NAMED_TOOL = 1, 7
ToolChoice: TypeAlias = Literal["auto", "required", "any", "none"]
_TOOL_CHOICES: tuple[ToolChoice, ...] = get_args(ToolChoice)
_RECEIVED = ("id", "status", "phase", "type", "model", "usage", "stop_reason", "stop_sequence")
"""The fields of a message as an API answers it that are not of its text."""

Counter: TypeAlias = str | Callable[[str], int] | TokenCounter

Message: TypeAlias = Mapping[str, Any]
"""A message or a tool schema as callers give it, such as a TypedDict of OpenAI or Anthropic."""

Sent: TypeAlias = Any
"""The same as callers get it back: Any, as each client takes only its own TypedDicts."""

CALLS = ("tool_calls", "function_call")
"""The fields of a message that are calls of tools, OpenAI's newer and older one."""

SYSTEM_ROLES = ("system", "developer")
"""The roles of an application's instructions, OpenAI's older and newer one."""


@public("budgeteer.window")
class MessageCount(int):
    """
    A number of tokens that says whether it is exact. Made by `count_messages`; an int otherwise.

    Attributes:
        is_exact: Whether the counter is exact and no part was estimated, such as audio, a file,
            or an image of unknown size. Nor is it exact for open models, whose chat templates may
            write less than is counted, and for models of no known family.

    Examples:
        >>> count = count_messages([{"role": "user", "content": "Hello, world!"}])
        >>> count, count.is_exact
        (11, True)

    """

    is_exact: bool

    def __new__(cls, tokens: int = 0, *, is_exact: bool = True) -> MessageCount:  # noqa: PYI034
        count = super().__new__(cls, tokens)
        count.is_exact = is_exact
        return count


def count_messages(
    messages: Sequence[AnyMessage],
    *,
    counter: Counter | None = None,
    model: str | ModelLimits | None = None,
) -> MessageCount:
    """
    Return how many tokens chat messages take in a prompt, the priming of the reply included.

    A message costs 3 tokens, one more with a ``name``, and those of every text in it: role,
    content, name, the parts of a tool call; numbers and objects count as JSON. Priming the reply
    costs 3. For ``gpt-3.5-turbo-0301`` a message costs 4, and one less with a name. An empty list
    costs nothing.

    For an open model of a known family the tokens that its chat template writes count instead:
    around each message, tool call and result, once before them, and for the reply. Families are
    told by the name of the model: Qwen, Llama 3, Mistral, Gemma, DeepSeek and gpt-oss. Templates
    write less in some places, such as where a message is the first; the most counts. Claude,
    Gemini and all other models count by OpenAI's rule.

    A content may be a text, None, or a list of parts, as OpenAI and Anthropic define them. An
    image costs 85 and 170 for each tile, or 85 with low detail (``gpt-4o-mini``: 2833 and 5667).
    Its size is the part's ``width`` and ``height``, or is read from a ``data:`` URL or base64 of a
    PNG, JPEG, GIF or WebP. An image of unknown size costs as the largest: 1445 (``gpt-4o-mini``:
    48169). ``gpt-4.1-mini``, ``gpt-5-mini``, their ``nano`` models and ``o4-mini`` count patches
    of 32 pixels by their own factors. For Claude and Gemini their makers' rules count instead.
    Audio in a WAV costs 10 tokens a second for OpenAI's models and 32 for Gemini, and a page of a
    PDF 258 for Gemini, 560 for Gemini 3, and for others at most 3000 and an image of it.

    A part of any other type (audio, a file, a video, a tool of the server) is an estimate that
    errs high, and the result's ``is_exact`` is False. It costs the tokens of its JSON, or for
    audio and video one for every 16 characters of it; and at least 5000 where its type names
    audio, a video, a file or a document. What a part only refers to may still be larger. So is
    reasoning that only its provider can read: Gemini's thought signatures, and the signature of
    a thinking block whose text was omitted, count as text.

    Args:
        messages: Mappings with a ``role``, as the APIs take them, or objects of their packages:
            anything with ``model_dump()``, or with ``keys`` and ``[]``. Parts may be such too.
            Items of OpenAI's Responses, contents of Gemini, and messages of LangChain and
            LlamaIndex cost what they would as OpenAI's or Anthropic's.
        counter: Counts the texts, as for `get_counter`. None takes the counter of *model*, or
            ``o200k_base`` without a model.
        model: A model whose own costs apply.

    Raises:
        InvalidArgumentError: A message is not of a known shape; the error names its place.
        CounterError: As for `get_counter` and `TokenCounter.count`.

    Examples:
        >>> messages = [{"role": "user", "content": "Hello, world!"}]
        >>> count_messages(messages)
        11
        >>> count_messages([{"role": "user", "name": "Ada", "content": "Hello, world!"}])
        13
        >>> image = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}
        >>> count_messages([{"role": "user", "content": [image]}], model="gpt-4o")
        1452
        >>> count_messages(messages, model="gpt-oss-120b")
        90
        >>> audio = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
        >>> count = count_messages([{"role": "user", "content": [audio]}])
        >>> count, count.is_exact
        (5007, False)

    """
    name = model_name(model)
    counting = chosen(counter, model)
    costs = MessageCosts(counting.count, name)
    items = _validate.batch("messages", messages)
    if not items:
        return MessageCount(is_exact=counting.is_exact)
    total = costs.around + sum(costs.of(f"messages[{i}]", item) for i, item in enumerate(items))
    return MessageCount(total, is_exact=counting.is_exact and costs.is_exact)


class MessageCosts:
    """
    The costs of messages, all by one counter; `count_messages` is their sum and `around`.

    Each role is counted once for all messages, and any other text once for each message.

    Attributes:
        family: What stands around the messages.
        is_exact: Whether nothing so far was estimated.
        media: The tokens of images, audio, documents and files so far.
        media_basis: What these rest on, by the weakest of them.

    """

    __slots__ = (
        *("_around", "_count", "_model", "_per_message", "_per_name", "_roles"),
        *("family", "is_exact", "media", "media_basis"),
    )

    def __init__(
        self, count: Callable[[str], int], model: str, frame: Frame | None = None
    ) -> None:
        """Count by *count*, for the model of that name, with that frame or its family's."""
        self._count = count
        self._model = model
        self.family = frame = frame_of(model) if frame is None else frame
        self._per_message = frame.special + (count(frame.text) if frame.text else 0)
        self._per_name = frame.per_name
        if model.endswith("gpt-3.5-turbo-0301"):
            self._per_message, self._per_name = 4, -1
        self._roles: dict[str, int] = {}
        self._around: int | None = None
        self.is_exact = frame.is_exact
        self.media = 0
        self.media_basis: Rule = "published rule"

    @property
    def around(self) -> int:
        """The tokens before the first message and of the priming of the reply."""
        if self._around is None:
            frame = self.family
            texts = [text for text in (frame.prelude, frame.reply_text) if text]
            self._around = frame.start + frame.reply + sum(map(self._count, texts))
        return self._around

    def frame(self, role: str) -> int:
        """Return the tokens of a message of that role without its content."""
        tokens = self._roles.get(role)
        if tokens is None:
            family = self.family
            tokens = self._per_message + (self._count(role) if family.has_role else 0)
            tokens += family.per_result if role in RESULT_ROLES else 0
            self._roles[role] = tokens
        return tokens

    def of(self, where: str, message: object, result: Callable[[str], int] | None = None) -> int:
        """
        Return the tokens of *message*; *where* names it in an error.

        *result* counts the texts of tool results instead of the counter.
        """
        view = placed(where, message)
        return self.of_view(
            where, mapping(where, message) if view is None else view.fields, result
        )

    def of_view(  # noqa: C901 - one pass over the fields, most of it for speed
        self, where: str, items: Mapping[str, Any], result: Callable[[str], int] | None = None
    ) -> int:
        """Return the same for the fields of a message's view."""
        role = items.get("role")
        if type(role) is not str:
            role = role_of(where, items)
        total = self._roles.get(role) or self.frame(role)
        if len(items) == 2 and role not in RESULT_ROLES:
            content = items.get("content")
            if type(content) is str:  # as most messages are
                return total + self._count(content)
        if items.get("name") is not None:
            total += self._per_name
        count = self._count
        result = result or count
        per_call = self.family.per_call
        skipped = _RECEIVED if items.get("type") == "message" else ()
        for key, value in items.items():
            if key == "content":
                own = result if role in RESULT_ROLES else count
                if type(value) is str:
                    total += own(value)
                else:
                    total += self._content(f"{where}['content']", value, own, result)
                continue
            if key == "role" or key in skipped:
                continue
            if key in CALLS and value is not None:
                total += per_call * (len(value) if isinstance(value, (list, tuple)) else 1)
            if type(value) is str:
                total += count(value)
            elif value is not None:
                total += _tokens(f"{where}[{key!r:.80}]", value, count)
        return total

    def _content(
        self,
        where: str,
        value: Any,
        own: Callable[[str], int],
        result: Callable[[str], int],
        depth: int = 0,
    ) -> int:
        """Return the tokens of a content, whose own texts *own* counts, so deep in results."""
        if depth > DEEPEST:
            raise InvalidArgumentError(f"{where:.200} is nested deeper than {DEEPEST}")
        if value is None:
            return 0
        if isinstance(value, str):
            return own(value)
        if not isinstance(value, (list, tuple)):
            raise InvalidArgumentError(
                f"{where} must be a str, None or a list of parts, not {_validate.type_name(value)}"
            )
        parts = enumerate(value)
        return sum(self._part(f"{where}[{i}]", part, own, result, depth) for i, part in parts)

    def _part(
        self,
        where: str,
        value: Any,
        own: Callable[[str], int],
        result: Callable[[str], int],
        depth: int,
    ) -> int:
        if isinstance(value, str):
            return own(value)
        part = mapping(where, value)
        tokens = self._plain_part(where, part, own, result, depth)
        sealed = _sealed(part)
        if sealed is None:
            return tokens
        self.is_exact = False
        return tokens + self._count(sealed)

    def _plain_part(  # noqa: PLR0911 - a line for each kind
        self,
        where: str,
        part: Mapping[str, Any],
        own: Callable[[str], int],
        result: Callable[[str], int],
        depth: int,
    ) -> int:
        """Return the tokens of what can be read of a part."""
        kind = part.get("type")
        if kind is not None:
            _validate.text(f"{where}['type']", kind)
        key = text_key(part)
        if key is not None:
            return own(_validate.text(f"{where}[{key!r}]", part.get(key)))
        count = self._count
        if kind == "tool_use":
            given = as_json(f"{where}['input']", part.get("input"))
            texts = (part.get("id"), part.get("name"), given)
            tokens = self.family.per_call
            return tokens + sum(count(text) for text in texts if isinstance(text, str))
        if kind == "tool_result":
            reference = part.get("tool_use_id")
            tokens = count(reference) if isinstance(reference, str) else 0
            inner = part.get("content")
            tokens += self.family.per_result
            return tokens + self._content(f"{where}['content']", inner, result, result, depth + 1)
        if kind in IMAGES:
            return self._media(*image_cost(where, part, self._model))
        # The keys of a part without a type say what it is, as in {"document": ...}.
        named = " ".join(map(str, part)) if kind is None else kind
        if kind == "document" and _has_text(part):
            self.is_exact = False
            return _tokens(where, part, count)
        found = file_cost(named, part, self._model)
        if found is not None:
            return self._media(*found)
        self.is_exact = False
        tokens, is_media = _unknown(where, named, part, count)
        # What it only refers to may be of any size.
        return self._media(tokens, "estimate") if is_media else tokens

    def _media(self, tokens: int, basis: Rule) -> int:
        """Note and return the tokens of an image, audio, a document or a file."""
        self.is_exact &= basis == "published rule"
        self.media_basis = weakest((self.media_basis, basis))
        self.media += tokens
        return tokens


def count_tools(
    tools: Sequence[Message],
    *,
    counter: Counter | None = None,
    model: str | ModelLimits | None = None,
    tool_choice: ToolChoice | Mapping[str, Any] = "auto",
    has_system_message: bool = False,
) -> int:
    """
    Return about how many tokens tool schemas take in a prompt; an empty list costs nothing.

    There is no official rule. The schemas count as the TypeScript that the model sees, plus 9
    tokens, or 5 if there is a system message. The result errs high. Tools may have OpenAI's shape
    (with or without ``function`` or ``custom`` around it) or Anthropic's (``input_schema``). The
    ``format`` of a custom tool counts as its JSON.

    Args:
        tools: The schemas.
        counter: The counter, as for `count_messages`.
        model: As for `count_messages`.
        tool_choice: ``none`` costs 1 more; a mapping that names a tool costs 7 and the name.
        has_system_message: Whether the messages have one.

    Raises:
        InvalidArgumentError: A tool is not of a known shape; the error names its place.
        CounterError: As for `get_counter` and `TokenCounter.count`.

    Examples:
        >>> weather = {
        ...     "name": "weather",
        ...     "description": "Say how the weather is",
        ...     "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        ... }
        >>> count_tools([weather]), count_tools([{"type": "function", "function": weather}])
        (36, 36)
        >>> count_tools([weather], tool_choice="none", has_system_message=True)
        33

    """
    model_name(model)  # checked though the counter replaces it
    counted = chosen(counter, model)
    items = _validate.batch("tools", tools)
    has_system_message = _validate.flag("has_system_message", has_system_message)
    extra = _choice_tokens(tool_choice, counted)
    if not items:
        return 0
    return framed_tools(counted.count(render_tools("tools", items)) + extra, has_system_message)


def model_name(model: object) -> str:
    """Return the name of a model, "" for None."""
    if model is None:
        return ""
    if not isinstance(model, str):
        from budgeteer._count.limits import ModelLimits

        if isinstance(model, ModelLimits):
            return model.name
    return _validate.text("model", model)


def chosen(counter: Counter | None, model: str | ModelLimits | None) -> TokenCounter:
    """Return the given counter, that of the model, or the default."""
    if counter is not None or not model:
        return get_counter("o200k_base" if counter is None else counter)
    from budgeteer._count.limits import model_limits  # few programs name a model

    return get_counter(model_limits(model))  # a model that nobody knows has limits too


def has_system(messages: Sequence[AnyMessage]) -> bool:
    """Return whether counted messages include a system message."""
    views = map(view_of, messages)
    return any(view is not None and view.fields.get("role") in SYSTEM_ROLES for view in views)


def role_of(where: str, message: Mapping[str, Any]) -> str:
    """Return the role of a message."""
    return _validate.text(f"{where}['role']", message.get("role"))


def _tokens(where: str, value: Any, count: Callable[[str], int], depth: int = 0) -> int:
    """Return the tokens of every text in a value; numbers and truth values count as JSON."""
    if isinstance(value, str):
        return count(value)
    if value is None:
        return 0
    items = value if isinstance(value, (dict, list, tuple)) else fields_of(value)
    if items is None:
        return count(as_json(where, value))
    if depth > DEEPEST:
        raise InvalidArgumentError(f"{where} is nested deeper than {DEEPEST}")
    total = 0
    for item in items.values() if isinstance(items, Mapping) else items:
        total += count(item) if type(item) is str else _tokens(where, item, count, depth + 1)
    return total


def _unknown(
    where: str, named: str, part: Mapping[str, Any], count: Callable[[str], int]
) -> tuple[int, bool]:
    """Return an estimate that errs high of a part of unknown type, and whether it is media."""
    shown = as_json(where, part)
    if any(word in named for word in TIMED):
        return max(LEAST, -(-len(shown) // CHARS_PER_TOKEN)), True
    is_paged = any(word in named for word in PAGED)
    return max(LEAST if is_paged else 0, count(shown)), is_paged


def _sealed(part: Mapping[str, Any]) -> str | None:
    """
    Return the reasoning of a part that only its provider can read, None without.

    Google bills thought signatures as input. A thinking block of Anthropic's without a text, as
    newer models answer, has all of it in its signature; beside a text that is a mere seal.
    """
    found = part.get("thought_signature")
    if part.get("type") == "thinking" and part.get("thinking") == "":
        found = part.get("signature")
    return found if isinstance(found, str) and found else None


def _has_text(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a plain text that it has in itself, as Anthropic's may be."""
    source = fields_of(document.get("source")) or {}
    return source.get("type") == "text" and isinstance(source.get("data"), str)


def _choice_tokens(choice: object, counter: TokenCounter) -> int:
    if not isinstance(choice, Mapping):
        return NO_TOOL if _validate.choice("tool_choice", choice, _TOOL_CHOICES) == "none" else 0
    inner = choice.get("function")
    name = inner.get("name") if isinstance(inner, Mapping) else choice.get("name")
    if name is None and choice.get("type") in _TOOL_CHOICES:
        return NO_TOOL if choice["type"] == "none" else 0
    return NAMED_TOOL + counter.count(_validate.text("tool_choice['name']", name))
