"""Retrievers that need nothing but files, and the error of an endpoint."""

import pytest
from service_support import SETTINGS

from budgeteer import Chunk, InvalidArgumentError
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


@pytest.mark.parametrize(
    "error",
    [
        ValueError("maximum"),
        BadRequestError("Rate limit reached: 100 tokens", {"error": {"code": "rate_limit"}}, 3),
        BadRequestError(None, body=[1], code=None),
        BadRequestError("x", {"error": "context"}, "invalid_api_key"),
    ],
)
def test_another_error_of_an_endpoint(error):
    """Any other error is not."""
    assert context_length_error(error) is None
