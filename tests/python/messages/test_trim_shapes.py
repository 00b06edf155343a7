"""Histories in the shapes of other providers and of frameworks are trimmed as OpenAI's are."""

import contextlib
import copy
import json
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from request_support import KEYS, TURNS, VALIDATORS, conversation
from support import BACKENDS, using

from budgeteer import BudgetExhaustedError, fit_request, trim_messages
from budgeteer._messages.mask import MASK
from budgeteer._messages.turn import MARKER
from budgeteer.window import count_messages

LONG = [("What is there?", [["a line of the log " * 90]], True), ("And now?", [], False)]
SHAPES = ("openai_chat", "openai_responses", "anthropic", "gemini", "langchain", "llamaindex")


def langchain(item):
    """Return a message of OpenAI's chat as one of LangChain."""
    from langchain_core.messages import convert_to_messages

    return convert_to_messages([item])[0]


def llamaindex(item):
    """Return a message of OpenAI's chat as one with the fields of LlamaIndex's."""
    import pydantic

    class TextBlock(pydantic.BaseModel):
        block_type: str = "text"
        text: str

    class ChatMessage(pydantic.BaseModel):
        role: str
        blocks: list[TextBlock]
        additional_kwargs: dict

    kwargs = {key: item[key] for key in ("tool_calls", "tool_call_id") if key in item}
    blocks = [TextBlock(text=item["content"])] if item["content"] else []
    return ChatMessage(role=item["role"], blocks=blocks, additional_kwargs=kwargs)


def history_of(shape, turns):
    """Return a history of that shape, and the same as mappings of a provider's shape."""
    provider = shape if shape in KEYS else "openai_chat"
    items = conversation(provider, turns)[KEYS[provider]]
    make = {"langchain": langchain, "llamaindex": llamaindex}.get(shape)
    return (items if make is None else [make(item) for item in items]), items, provider


def same_objects(one, other):
    return len(one) == len(other) and all(map(operator.is_, one, other))


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=60, deadline=None)
@given(
    turns=TURNS,
    share=st.floats(0.1, 1.1),
    previous=st.sampled_from([None, []]),
    keep=st.sampled_from([None, 0, 2]),
    name=st.sampled_from(["words", "o200k_base"]),
    backend=st.sampled_from(BACKENDS),
)
def test_the_laws(shape, turns, share, previous, keep, name, backend):
    """
    What is kept fits by another count and is valid for its provider, and nothing is changed.

    The messages are the caller's objects unless shortened. Trimming again changes nothing.
    """
    messages, plain, provider = history_of(shape, turns)
    before = copy.deepcopy(messages)
    with using(backend):
        limit = int(count_messages(messages, counter=name) * share)
        options = {"counter": name, "previous": previous, "keep_results": keep}
        try:
            left = trim_messages(messages, limit, **options)
        except BudgetExhaustedError:
            assert share < 1
            return
        finally:
            assert before == messages
        assert count_messages(left, counter=name) == left.total_tokens <= limit
        places = [i for i in range(len(messages)) if i not in left.left_out]
        for i, item in zip(places, left, strict=True):
            assert (item is messages[i]) == (i not in left.shortened)
            assert type(item) is type(messages[i])
        key = KEYS[provider]
        kept = [plain[i] for i in places]
        frame = {"role": "user", "content": "", "parts": [{"text": ""}]}
        start = [frame] if provider in ("anthropic", "gemini") else []
        VALIDATORS[provider]({key: start + kept})
        assert share < 1 or same_objects(messages, left)
        again = trim_messages(messages, limit, **{**options, "previous": left})
        assert same_objects(left, again)
        assert same_objects(left, trim_messages(left, limit, counter=name))


@pytest.mark.parametrize("shape", SHAPES)
def test_they_are_kept_as_their_mappings(shape):
    """At every limit the same messages are kept, masked and cut as of the mappings."""
    messages, plain, _ = history_of(shape, LONG)
    seen = set()
    for limit in range(count_messages(plain, counter="words"), 5, -7):
        for keep in (None, 0):
            options = {"counter": "words", "keep_results": keep}
            try:
                left, own = (trim_messages(given, limit, **options) for given in (messages, plain))
            except BudgetExhaustedError:
                break
            assert (left.left_out, left.shortened) == (own.left_out, own.shortened)
            assert left.total_tokens == own.total_tokens
            seen.add((len(left.left_out) > 0, len(left.shortened) > 0))
    assert {(False, False), (True, False), (False, True)} <= seen


@pytest.mark.parametrize("shape", SHAPES)
def test_results_are_masked_and_cut_where_they_are(shape):
    """The text that stands for a result is where the result was, and all else is as it was."""
    messages, _, _ = history_of(shape, LONG)
    every = count_messages(messages, counter="words")
    masked = trim_messages(messages, every - 1, counter="words", keep_results=0)
    [place] = masked.shortened
    assert MASK in str(masked[place])
    assert "a line of the log" not in str(masked[place])
    asked, _, _ = history_of(shape, [(LONG[0][0], LONG[0][1], False)])
    cut = trim_messages(asked, 150, counter="words")
    [place] = cut.shortened
    assert repr(MARKER)[1:-1] in str(cut[place]) or MARKER in str(cut[place])
    assert count_messages(cut, counter="words") <= 150
    assert cut[place] != asked[place]
    assert same_objects(cut[:place], asked[:place])


def test_reasoning_stays_with_what_follows_it():
    """OpenAI's Responses refuse an item without the reasoning before it, and the reverse."""
    messages, _, _ = history_of("openai_responses", [("tea " * 9, [["x"], ["y"]], True)] * 6)
    starts = set()
    for limit in range(count_messages(messages, counter="words"), 80, -3):
        left = trim_messages(messages, limit, counter="words")
        VALIDATORS["openai_responses"]({"input": left})
        starts.add(left[0].get("type", left[0].get("role")))
    assert starts <= {"user", "reasoning", "message"}
    assert {"user", "reasoning"} <= starts


@pytest.mark.parametrize("shape", SHAPES)
def test_the_beginning_stays_turn_after_turn(shape):
    """With what was kept last time, most turns only add; a copy of it is found by content."""
    turns = [(f"question {i}", [[f"result {i} " * 20]], True) for i in range(16)]
    messages, _, _ = history_of(shape, turns)
    first, second = (len(history_of(shape, turns[:n])[0]) for n in (1, 2))
    sent, read, changed, trimmed = [], [], 0, 0
    for end in range(first, len(messages) + 1, second - first):
        before, sent = sent, trim_messages(messages[:end], 400, previous=sent, counter="words")
        read = trim_messages(messages[:end], 400, previous=copy.deepcopy([*read]), counter="words")
        assert same_objects(sent, read)
        assert sent.stable_prefix_tokens == read.stable_prefix_tokens
        trimmed += bool(sent.left_out)
        changed += not same_objects(before, sent[: len(before)])
    assert trimmed > 5
    assert changed <= trimmed / 2


def test_one_mask():
    """A masked result is the same text whether a history or a whole request was fitted."""
    messages, _, _ = history_of("openai_chat", LONG)
    left = trim_messages(messages, 150, counter="words", keep_results=0)
    request = {"messages": messages}
    fitted = fit_request(request, context_window=150, counter="words").request["messages"]
    assert [m for m in left if m["role"] == "tool"] == [m for m in fitted if m["role"] == "tool"]
    assert any(m["content"] == MASK for m in fitted)


SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "tea"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
CODE = {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {"code": "f()"}}
RAN = {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {"stdout": "tea"}}
CALLER = {"type": "code_execution_20260120", "tool_id": "s1"}
PROGRAM = {"type": "program", "id": "p1", "call_id": "s1", "code": "f()", "fingerprint": "a"}
ENDED = {"type": "program_output", "id": "o1", "call_id": "s1", "result": "tea"}


def answered(key, **more):
    """Return a call of the caller's tool and its result, in Anthropic's shape."""
    use = {"type": "tool_use", "id": key, "name": "f", "input": {}, **more}
    result = {"type": "tool_result", "tool_use_id": key, "content": "tea " * 20}
    return use, {"role": "user", "content": [result]}


def said(*parts):
    return {"role": "assistant", "content": [*parts]}


def paused():
    return [said({"type": "text", "text": "Let me see. " * 9}, SEARCH), said(FOUND)]


def beside_a_call():
    use, result = answered("c1")
    return [said(SEARCH, use), result, said(FOUND)]


def by_a_program():
    (first, one), (second, two) = answered("c1", caller=CALLER), answered("c2", caller=CALLER)
    return [said(CODE, first), one, said(second), two, said(RAN)]


def by_a_program_of_openais():
    rounds = []
    for key in ("c1", "c2"):
        caller = {"type": "program", "caller_id": "s1"}
        call = {"type": "function_call", "call_id": key, "name": "f", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": key, "output": "tea " * 20}
        rounds += [{**call, "caller": caller}, {**output, "caller": caller}]
    return [PROGRAM, *rounds, ENDED]


@pytest.mark.parametrize("make", [paused, beside_a_call, by_a_program, by_a_program_of_openais])
@pytest.mark.parametrize("is_ended", [False, True])
def test_what_a_provider_runs_stays_together(make, is_ended):
    """A call of the provider and its answer in a later message, and calls by it, are one round."""
    rounds = make() if is_ended else make()[:-1]
    is_openais = make is by_a_program_of_openais
    key, results = ("input", ()) if is_openais else ("messages", answered("c9"))
    last = [said(results[0]), results[1]] if results else [{"role": "assistant", "content": "So."}]
    before = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}]
    items = [*before, {"role": "user", "content": "Which tea?"}, *rounds, *last]
    whole = [one for one in rounds if "tea " * 9 not in json.dumps(one)]  # results may be cut
    request = {key: items}
    seen = set()
    for window in range(5, 400, 5):
        with contextlib.suppress(BudgetExhaustedError):
            kept = trim_messages(items, window, counter="words")
            seen.add('"s1"' in json.dumps(kept))
            assert '"s1"' not in json.dumps(kept) or all(one in kept for one in whole)
        with contextlib.suppress(BudgetExhaustedError):
            kept = fit_request(request, context_window=window, counter="words").request[key]
            seen.add('"s1"' in json.dumps(kept))
            assert '"s1"' not in json.dumps(kept) or all(one in kept for one in whole)
    assert True in seen
