"""The messages of a request count what `count_messages` says, though most of them is known."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_support import Fake
from support import backend_named, compared, using

from budgeteer import Chunk, Packer, get_counter
from budgeteer._count import counter as counters
from budgeteer.presets import agentic_rag, context_router
from budgeteer.service import LlmSettings, RetrievalService, chat_messages
from budgeteer.window import count_messages

TEXTS = st.text("abcdefgh ABC.,\n\r\t'0123\u00e9\u0301\u8336\U0001f375", max_size=60)
NAMES = ("o200k_base", "cl100k_base", "claude-sonnet-4-5", "qwen3-32b", "llama3.1:70b", "words")


@compared
@given(TEXTS, TEXTS, TEXTS, st.sampled_from(NAMES), st.sampled_from([1.0, 1.3, 0.4]))
def test_a_count_around_a_known_part_is_the_count(front, part, back, name, factor):
    """Counting what is around a part of a text, and knowing the part, counts the text."""
    with using("native"):
        counter = get_counter(name)._times(factor) if factor != 1 else get_counter(name)
        text = front + part * 3 + back
        start, end = len(front), len(front) + 3 * len(part)

        assert counter.count(text) == counter._count_around(
            text, start, end, counter.count(part * 3)
        )


def quoted(system, context, query):
    """Write the context between other texts, and once more escaped."""
    content = f"<context>{context}</context>\n{context!r}\n{context}\n{query}"
    return [{"role": "user", "content": content}, {"role": "system", "content": system}]


def parts(system, context, query):
    """Write the context as a part, behind one that begins like it."""
    texts = [context[:70], context[:-1], context, query]
    content = [{"type": "text", "text": text} for text in texts if text]
    return [{"role": "system", "content": system}, {"role": "user", "content": content}]


CHUNKS = [
    Chunk(f"Tea {i} is green, isn't it?\n\nBread {i} {'rye ' * (i % 7)}", score=1 - i / 100)
    for i in range(60)
]


@pytest.mark.parametrize("builder", [chat_messages, quoted, parts])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "llama3.1:70b", "qwen3-32b"])
@pytest.mark.parametrize(
    "packer",
    [None, Packer(600, template="xml", ranking="lexical"), agentic_rag(500), context_router(50)],
)
def test_the_messages_are_counted_as_from_outside(backend, builder, model, packer):
    """For every builder, model and packer ``tokens.input`` is the count of the messages."""
    service = RetrievalService(
        Fake(*CHUNKS),
        LlmSettings(model=model, context_window=2_000, max_output_tokens=500),
        system_prompt="Be brief.",
        packer=packer,
        message_builder=builder,
    )

    result = service.retrieve("Is tea 7 green?")

    assert result.packing.text
    assert result.tokens.input == count_messages(result.messages, model=model)
    assert result.tokens.input + result.tokens.output <= result.tokens.context_window


def test_the_packed_text_is_not_counted_again():
    """What the packing counted is known: no text as long as it is counted for the messages."""
    native = backend_named("native")
    counted = []

    class Watched:
        def __getattr__(self, name):
            return getattr(native, name)

        def count(self, kind, ratio, text):
            counted.append(len(text))
            return native.count(kind, ratio, text)

    # The patch ends before the backend changes back.
    with using("native"), pytest.MonkeyPatch.context() as patch:
        settings = LlmSettings(model="gpt-4o", context_window=2_000, max_output_tokens=500)
        service = RetrievalService(Fake(*CHUNKS), settings, system_prompt="Be brief.")
        patch.setattr(counters, "backend", Watched())
        result = service.retrieve("Is tea 7 green?")

    assert len(result.packing.text) > 1_000
    assert counted
    assert max(counted) < 100


class Part:
    """An object of an API's package, in a message that is another."""

    def __init__(self, **fields):
        self.fields = fields

    def model_dump(self):
        return {
            name: [part.model_dump() for part in value] if isinstance(value, list) else value
            for name, value in self.fields.items()
        }


def test_messages_that_are_objects_are_plain_in_a_dict():
    """What is counted of an object of an API's package is what JSON gets of it."""

    def builder(system, context, query):
        return [Part(role="user", content=[Part(type="text", text=context + query)])]

    settings = LlmSettings("gpt-4o")
    result = RetrievalService(Fake("Green tea."), settings, message_builder=builder).retrieve("?")
    said = json.loads(json.dumps(result.to_dict()))["messages"]
    assert [{"role": "user", "content": [{"type": "text", "text": "Green tea.?"}]}] == said
    assert isinstance(result.messages[0], Part)
