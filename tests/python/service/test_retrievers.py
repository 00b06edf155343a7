"""Retrievers that need nothing but files, and the error of an endpoint."""

import dataclasses
import json
from types import SimpleNamespace

import pytest
from service_support import SETTINGS

from budgeteer import Chunk, Corpus, InvalidArgumentError, Packer
from budgeteer.service import (
    ChunkRetriever,
    ContextLengthError,
    FolderRetriever,
    JsonlRetriever,
    PagedRetriever,
    RetrievalService,
    Retriever,
    context_length_error,
)

CHUNKS = [
    Chunk("Rye bread.", id="a"),
    {"text": "Green tea."},
    "Black tea.",
    Chunk("Mild.", title="Tea"),
]


ROWS = [
    {"text": "tea old", "kind": "table", "position": 2, "source": "s", "id": 5, "mtime": 9},
    {"text": "tea new", "kind": "prose", "position": 1, "source": "s", "id": 6, "mtime": 8},
]


@pytest.mark.parametrize("options", [{"order": "document"}, {"ranking": "recency"}])
@pytest.mark.parametrize("kind", [list, Corpus, ChunkRetriever, JsonlRetriever])
def test_rows_are_packed_as_they_are_without_a_retriever(kind, options, tmp_path, backend):
    """No retriever loses what packing reads of a row."""
    packer = Packer(60, template="tagged", **{"ranking": "input", **options})
    expected = packer.pack("tea", ROWS).text
    made = ROWS
    if kind is JsonlRetriever:
        made = tmp_path / "rows.jsonl"
        made.write_text("\n".join(map(json.dumps, ROWS)))
    made = kind(made)
    if kind is not list:
        made = made.retrieve("tea", 9)

    assert expected == packer.pack("tea", made).text
    first = "tea old" if "ranking" in options else "tea new"
    assert first in expected.splitlines()[0]
    assert "[table:5]" in expected


def test_chunks_by_their_keywords():
    """The chunks that share more keywords come first, ties in their order."""
    retriever = ChunkRetriever(CHUNKS)

    found = retriever.retrieve("green tea", 3)

    assert ["Green tea.", "Black tea.", "Mild."] == [chunk.text for chunk in found]
    assert [1.0, 0.5, 0.5] == [chunk.score for chunk in found]
    assert [] == retriever.retrieve("tea", 0)
    assert isinstance(retriever, Retriever)
    assert not isinstance(retriever, PagedRetriever)


def test_a_folder_and_a_file(tmp_path):
    """A folder of Markdown and a file of JSON lines are retrievers; refresh reads them again."""
    (tmp_path / "tea.md").write_text("## Green tea\nIt is mild.\n## Rye\nBread.", "utf-8")
    lines = tmp_path / "chunks.jsonl"
    lines.write_text('{"text": "Tea is a drink.", "id": 7}\n', "utf-8")
    folder, file = FolderRetriever(tmp_path, name="docs"), JsonlRetriever(lines)

    result = RetrievalService([folder, file], SETTINGS).retrieve("green tea")
    [first, second, _] = [kept.chunk for kept in result.packing.kept]
    assert ("docs", "Green tea", "tea.md#0") == (first.source, first.title, first.id)
    assert ("Tea is a drink.", "7") == (second.text, second.id)

    lines.write_text('{"text": "Coffee."}\n', "utf-8")
    assert "Tea is a drink." == file.retrieve("tea", 1)[0].text
    file.refresh()
    assert "Coffee." == file.retrieve("tea", 1)[0].text

    lines.write_text("nope", "utf-8")
    with pytest.raises(InvalidArgumentError, match="line 1, column 1: invalid JSON"):
        file.refresh()
    lines.unlink()
    with pytest.raises(InvalidArgumentError, match=r"cannot read .*chunks.jsonl"):
        file.refresh()
    assert "Coffee." == file.retrieve("tea", 1)[0].text


def test_a_folder_without_markdown_is_warned_of(tmp_path, caplog):
    """Each reading of a folder that has only other files is a warning, and no answer has it."""
    caplog.set_level("DEBUG", "budgeteer")
    (tmp_path / "tea.txt").write_text("Green tea.", "utf-8")
    retriever = FolderRetriever(tmp_path, name="docs")
    result = RetrievalService(retriever, SETTINGS).retrieve("tea")
    retriever.refresh()

    assert "" == result.packing.text
    warned = "docs: no file in the folder matches pattern '**/*.md'"
    assert [warned, "retrieval: nothing was found", warned] == caplog.messages
    assert ["no_files", "nothing_found", "no_files"] == [it.code for it in caplog.records]
    assert "Green tea." == FolderRetriever(tmp_path, pattern="*.txt").retrieve("tea", 1)[0].text
    assert 3 == len(caplog.records)


class Odd:
    """A chunk of another type, with a source that is no text."""

    text, source = "Green tea.", 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: FolderRetriever(path / "nope"), "path: .*nope does not exist"),
        (JsonlRetriever, "path must be a file, but .* is a directory"),
        (lambda path: FolderRetriever(3), "path must be a str or a path, not int"),
        (lambda path: FolderRetriever("a\0b"), "path: .* does not exist"),
        (lambda path: FolderRetriever(path, pattern="/x"), "pattern must be a glob below"),
        (lambda path: FolderRetriever(path, name=3), "name must be a str, not int"),
        (lambda path: ChunkRetriever("tea"), "chunks must be a sequence, not str"),
        (lambda path: ChunkRetriever(["a", 3]), r"chunks\[1\] must be a str, a mapping"),
        (lambda path: ChunkRetriever([Odd()]), r"chunks\[0\].source must be a str, not int"),
        (lambda path: ChunkRetriever([{"title": "a"}]), r"chunks\[0\] must be a str, a mapping"),
        (lambda path: ChunkRetriever(["a"]).retrieve(3, 1), "query must be a str, not int"),
        (lambda path: ChunkRetriever(["a"]).retrieve("q", -1), "limit must be from 0"),
    ],
)
def test_bad_arguments(make, message, tmp_path):
    """A wrong argument is named."""
    with pytest.raises(InvalidArgumentError, match=message):
        make(tmp_path)


class BadRequestError(Exception):
    """Shaped as openai's."""

    def __init__(self, message, body=None, code=None):
        super().__init__(message)
        self.message, self.body, self.code = message, body, code


@pytest.mark.parametrize(
    ("error", "figures"),
    [
        (
            BadRequestError(
                "This model's maximum context length is 8192 tokens. However, your messages "
                "resulted in 10,007 tokens. Please reduce the length of the messages.",
                code="context_length_exceeded",
            ),
            (8192, 10007),
        ),
        (
            BadRequestError(
                "Error code: 400",
                body={
                    "message": "This model's maximum context length is 4097 tokens. However, you "
                    "requested 5000 tokens (4000 in the messages, 1000 in the completion).",
                    "code": "context_length_exceeded",
                },
            ),
            (4097, 5000),
        ),
        (
            BadRequestError(
                "Input tokens exceed the configured limit of 272000 tokens. Your messages "
                "resulted in 300009 tokens. Please reduce the length of the messages.",
                {"error": {"code": "context_length_exceeded"}},
            ),
            (272000, 300009),
        ),
        (ValueError("prompt is too long: 205000 tokens > 200000 maximum"), (200000, 205000)),
        (BadRequestError("Your input exceeds the context window of this model."), (None, None)),
        (BadRequestError("no", code="context_length_exceeded"), (None, None)),
    ],
)
def test_the_error_of_an_endpoint(error, figures):
    """A refusal for the length is ours, with both figures and the endpoint's as its cause."""
    found = context_length_error(error)

    assert isinstance(found, ContextLengthError)
    assert figures == (found.context_window, found.requested_tokens)
    assert error is found.__cause__
    assert found is context_length_error(found)


REFUSALS = [
    # stackblitz-labs/bolt.diy 401
    ("prompt is too long: 202609 tokens > 200000 maximum", 200000, 202609),
    # continuedev/continue 6080
    (
        (
            "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease "
            "input length or `max_tokens` and try again"
        ),
        200000,
        207951,
    ),
    # anthropics/claude-code 4951, anymorph-ai/Claudable 3
    ("input length and `max_tokens` exceed context limit: \n  1 + 21333 > 200", 200, 21334),
    ("input length and max_tokens exceed context limit: 198981 + 21333 > 200000", 200000, 220314),
    # google-gemini/gemini-cli 6678
    (
        "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
        1200293,
    ),
    # aws-samples/bedrock-chat 95, daisuke-awaji/moca 254
    (
        (
            "An error occurred (validationException) when calling the "
            "InvokeModelWithResponseStream operation: Input is too long for requested model."
        ),
        None,
        None,
    ),
    (
        (
            "The model returned the following errors: prompt is too long: 200049 tokens > 200000 "
            "maximum"
        ),
        200000,
        200049,
    ),
    # Mistral's, as several clients on GitHub test for it; no thread was found
    (
        "Prompt contains 300000 tokens, too large for model with 131072 maximum context length",
        131072,
        300000,
    ),
    (
        (
            "Prompt contains 300000 tokens and 0 images too large for model with 262144 maximum "
            "context length"
        ),
        262144,
        300000,
    ),
    # cline/cline 5474, anomalyco/opencode 6071, deer-flow 310, refly-ai/refly 1177
    (
        (
            "400 Input tokens exceed the configured limit of 272000 tokens. Your messages "
            "resulted in 289650 tokens. Please reduce the length of the messages."
        ),
        272000,
        289650,
    ),
    (
        (
            "Your input exceeds the context window of this model. Please adjust your input and "
            "try again."
        ),
        None,
        None,
    ),
    (
        (
            "This model's maximum context length is 128000 tokens. However, your messages "
            "resulted in 202868 tokens (202767 in the messages, 101 in the functions)."
        ),
        128000,
        202868,
    ),
    (
        (
            "This endpoint's maximum context length is 32768 tokens. However, you requested about "
            "42832 tokens (42832 of text input)."
        ),
        32768,
        42832,
    ),
    # vllm-project/vllm 20409, AIDotNet/OpenCowork 82, xorbitsai/inference 3785
    (
        (
            "This model's maximum context length is 16384 tokens. However, you requested 122946 "
            "tokens (112946 in the messages, 10000 in the completion)."
        ),
        16384,
        122946,
    ),
    (
        (
            "This model's maximum context length is 262144 tokens. However, you requested 128000 "
            "output tokens and your prompt contains at least 134145 input tokens, for a total of "
            "at least 262145 tokens. Please reduce the length of the input prompt or the number "
            "of requested output tokens. (parameter=input_tokens, value=134145)"
        ),
        262144,
        262145,
    ),
    (
        "The decoder prompt (length 17772) is longer than the maximum model length of 16384.",
        16384,
        17772,
    ),
    # QwenLM/Qwen3 1321, sgl-project/sglang 4048, and sglang's own source
    (
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        40960,
        61709,
    ),
    (
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        59862,
        160062,
    ),
    (
        (
            "Requested token count exceeds the model's maximum context length of 64000 tokens. "
            "You requested a total of 71897 tokens: 7897 tokens from the input messages and 64000 "
            "tokens for the completion."
        ),
        64000,
        71897,
    ),
    # huggingface/chat-ui 340, huggingface/text-generation-inference 937
    (
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: "
            "1000 `inputs` tokens and 1024 `max_new_tokens`"
        ),
        1512,
        2024,
    ),
    ("Input validation error: `inputs` must have less than 1024 tokens. Given: 1872", 1024, 1872),
    # langchain-ai/openwiki 648, oobabooga/textgen 7257, rllm-team/rllm 55
    (
        (
            "400 request (131168 tokens) exceeds the available context size (131072 tokens), try "
            "increasing it"
        ),
        131072,
        131168,
    ),
    (
        (
            '{"error":{"code":400,"message":"the request exceeds the available context size. try '
            'increasing the context size or enable context shift",'
            '"type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}'
        ),
        8192,
        14429,
    ),
    ("Requested tokens (516) exceed context window of 512", 512, 516),
    # UKGovernmentBEIS/inspect_ai 2634: the answer alone would fill the window
    (
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum "
            "context length is 1000 tokens and your request has 203 input tokens "
            "(1000 > 1000 - 203). None"
        ),
        1000,
        1203,
    ),
    (
        (
            "You passed 31745 input tokens and requested 1024 output tokens. However, the model's "
            "context length is only 32768 tokens, resulting in a maximum input length of 31744 "
            "tokens. Please reduce the length of the input prompt."
        ),
        32768,
        32769,
    ),
    (
        (
            "You passed 900000 input characters. However, the model's context length is only 8192 "
            "tokens (at most 100000 characters)."
        ),
        8192,
        None,
    ),
    ("The input token count is 32785 but the model only supports up to 32768", 32768, 32785),
    # arkavo-org/arkavo-edge 371
    (
        "The input token count exceeds the maximum number of tokens allowed (1048576).",
        1048576,
        None,
    ),
    (
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
        1048576,
        None,
    ),
    (
        (
            "The model returned the following errors: Input Tokens Exceeded: Number of input "
            "tokens exceeds maximum length. Please update the input to try again."
        ),
        None,
        None,
    ),
    (
        (
            "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token "
            "count: 9279"
        ),
        8192,
        9279,
    ),
    # cohere-ai/sandbox-topically 4
    (
        (
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received "
            "4292. Try using a shorter prompt, or enabling prompt truncating."
        ),
        4081,
        4292,
    ),
    (
        (
            "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - "
            "received 6354. Try using a shorter prompt or a smaller max_tokens value."
        ),
        2048,
        6354,
    ),
    ("too many tokens: total number of tokens in the prompt cannot exceed 4081", 4081, None),
    ("exceed_context_size_error", None, None),
    ("context_length_exceeded", None, None),
    # lfnovo/open-notebook 350, n8n-io/n8n 11144, dyad-sh/dyad 3498: the last says how much it is
    # over, which is neither figure
    ("Ollama API error: the input length exceeds the context length", None, None),
    ("input length exceeds maximum context length", None, None),
    ("prompt too long; exceeded max context length by 540451 tokens (ref: 00ad71bb)", None, None),
]


@pytest.mark.parametrize(("words", "window", "asked"), REFUSALS)
def test_the_words_of_endpoints(words, window, asked):
    """Each endpoint's refusal is known by its words, alone and among others, with its figures."""
    for text in (words, f"Error code: 400 - {{'error': {{'message': \"{words}\", 'code': 400}}}}"):
        found = context_length_error(ValueError(text))
        assert (window, asked) == (found.context_window, found.requested_tokens)
    found = context_length_error(BadRequestError("no", {"error": {"message": words}}))
    assert (window, asked) == (found.context_window, found.requested_tokens)


def test_the_figures_beside_the_words():
    """llama.cpp says its figures beside its message (ggml-org/llama.cpp 15780)."""
    body = {"message": "the request exceeds the available context size", "code": 500}
    body |= {"type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256}

    found = context_length_error(BadRequestError("Error", {"error": body}))

    assert (256, 1407) == (found.context_window, found.requested_tokens)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("maximum"),
        BadRequestError("Rate limit reached: 100 tokens", {"error": {"code": "rate_limit"}}, 3),
        BadRequestError(None, body=[1], code=None),
        BadRequestError("x", {"error": "context"}, "invalid_api_key"),
        ValueError("max_tokens is too large: 9000. This model supports at most 4096 tokens."),
        ValueError("Rate limit reached for gpt-4o: Limit 30000, Used 29000, Requested 4000."),
        ValueError("it has 12 video files but the model only supports up to 10"),
        ValueError("too many tokens: max tokens must be less than or equal to 4096"),
        ValueError("Too many tokens, please wait before trying again."),
        ValueError("The maximum tokens you requested exceeds the model limit of 4096."),
        ValueError("Malformed input request: expected maxLength: 2048, actual: 8575"),
    ],
)
def test_another_error_of_an_endpoint(error):
    """Any other error is not."""
    assert context_length_error(error) is None


@pytest.mark.parametrize("error", ["prompt is too long", None, {"error": {}}, ValueError])
def test_no_error_of_an_endpoint(error):
    """What is no exception is refused by name."""
    with pytest.raises(InvalidArgumentError, match="error must be an exception, not "):
        context_length_error(error)


def test_ready_chunks_are_checked_once(monkeypatch):
    """A chunk that was made is not checked again, whoever gives it a score."""
    chunks = [
        Chunk(f"Green tea {i}.", id=str(i), source="s", title="t", score=i, metadata={"n": i})
        for i in range(9)
    ]
    retriever, corpus = ChunkRetriever(chunks), Corpus(chunks)
    checked = []
    with monkeypatch.context() as patched:
        patched.setattr(Chunk, "__post_init__", checked.append)
        found = [*retriever.retrieve("tea 3", 9), *corpus.retrieve("tea 3", 9)]

    assert [] == checked
    assert {type(chunk) for chunk in found} == {Chunk}
    for chunk in found:
        same = chunks[int(chunk.id)]
        assert dataclasses.replace(chunk, score=same.score) == same


def test_the_service_packs_the_retrievers_own_objects():
    """Kept and dropped chunks are the objects that a retriever returned."""
    chunks = [Chunk(f"Green tea {i}.", score=-i) for i in range(9)]
    retriever = SimpleNamespace(retrieve=lambda query, limit: chunks)
    packing = (
        RetrievalService(retriever, SETTINGS, packer=Packer(20, ranking="score"))
        .retrieve("tea")
        .packing
    )

    assert packing.dropped
    for kept in (*packing.kept, *packing.dropped):
        assert any(kept.chunk is chunk for chunk in chunks)
