"""``budgeteer query``: what it answers, and what it refuses."""

import json
from pathlib import Path

import embedding_server as server
import pytest

from budgeteer import ranking
from budgeteer.config import load

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "budgeteer.yaml")
POLICY = "What is the remote work policy?"
ANSWER_KEYS = [
    "total_tokens", "budget_tokens", "was_truncated", "is_exact", "chunks", "dropped",
    "dropped_count", "elapsed_ms", "text", "fallback", "kept",
]  # fmt: skip
CHUNK_KEYS = [
    "content", "id", "source", "title", "path", "relevance_score", "token_count", "was_cut",
    "index", "metadata",
]  # fmt: skip
DROPPED_KEYS = {
    "id", "source", "title", "relevance_score", "reason", "needed_tokens", "available_tokens",
    "duplicate_of", "index", "score",
}  # fmt: skip
PLACE = {"id", "source", "title"}


def test_query_reports_what_is_in_and_then_the_context(run):
    """Text output is the totals, a line for each kept chunk, and the context itself."""
    status, out, err = run("query", "--config", EXAMPLE, "--text", POLICY)
    assert (0, "") == (status, err)
    packing = load(EXAMPLE).query(POLICY)
    head, *listed = out.split("\n\n", 1)[0].splitlines()
    assert head == (
        f"{packing.total_tokens} of {packing.budget_tokens} tokens: "
        f"{len(packing.kept)} kept, {packing.dropped_count} dropped "
        f"(budget: {packing.dropped_count})"
    )
    assert "  [handbook] Remote Work Policy: score=17.02, tokens=64" == listed[0]
    assert [f"  [{k.chunk.source}] {k.chunk.title or 'untitled'}" for k in packing.kept] == [
        line.rsplit(":", 1)[0] for line in listed
    ]
    assert out.endswith(f"\n\n{packing.text}\n")


def test_query_answers_in_json(run):
    """JSON output has the documented keys in their order, and says what packing said."""
    status, out, err = run("query", "-c", EXAMPLE, "-t", POLICY, "-o", "json")
    assert (0, "") == (status, err)
    assert out.startswith('{\n  "total_tokens": ')
    answer = json.loads(out)
    packing = load(EXAMPLE).query(POLICY)
    assert ANSWER_KEYS == list(answer)
    assert all(CHUNK_KEYS == list(chunk) for chunk in answer["chunks"])
    assert all(DROPPED_KEYS == {*chunk} for chunk in answer["dropped"])
    assert packing.total_tokens == answer["total_tokens"]
    assert packing.budget_tokens == answer["budget_tokens"]
    assert packing.text == "\n\n".join(chunk["content"] for chunk in answer["chunks"])
    assert packing.dropped_count == answer["dropped_count"] == len(answer["dropped"])
    assert [17.0163, 5.5896] == [chunk["relevance_score"] for chunk in answer["chunks"][:2]]
    first = answer["chunks"][0]
    assert ("remote-work.md", first["metadata"]["path"]) == (first["path"], "remote-work.md")
    assert 0 <= answer["elapsed_ms"] == round(answer["elapsed_ms"], 3)


def test_query_is_deterministic(run):
    """Two runs answer the same, but for the time that they took."""
    answers = []
    for _ in range(2):
        answer = json.loads(run("query", "-c", EXAMPLE, "-t", POLICY, "-o", "json")[1])
        del answer["elapsed_ms"]
        answers.append(answer)
    assert answers[0] == answers[1]


def test_query_lists_odd_titles_on_one_line(run, tmp_path):
    """A line of the listing stays one line, shows the id for want of a title, and says cut."""
    rows = [
        {"text": "tea a", "title": "two\nlines\x1b[2J", "source": "s\u2028"},
        {"text": "tea b", "id": 5},
        {"text": "tea c " * 30},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(
        "budget: {max_tokens: 20, truncation: truncate_end}\n"
        "sources: [{type: jsonl, path: a.jsonl, name: n}]",
        encoding="utf-8",
    )
    _, out, _ = run("query", "-c", tmp_path / "c.yaml", "-t", "tea")
    head, *listed = out.split("\n\n", 1)[0].split("\n")
    assert head.endswith(": 3 kept, 0 dropped")
    assert [
        r"  [s\u2028] two\nlines\x1b[2J: score=1.00, tokens=2",
        "  [n] 5: score=1.00, tokens=2",
        "  [n] untitled: score=1.00, tokens=17, cut",
    ] == listed


def test_query_ranks_by_embedding(run, refused, tmp_path):
    """The endpoint that a configuration names ranks; where it fails, so does the query."""
    path = tmp_path / "budgeteer.yaml"
    texts = ["Green tea.", "Rye bread.", "Coffee."]
    with server.Endpoint() as endpoint:
        path.write_text(
            "budget:\n  ranking: embedding\n"
            f"  embedding: {{url: '{endpoint.url}', api_key_env: null, cache_dir: null}}\n"
            f"sources: [{', '.join(f'{{type: inline, text: {text}}}' for text in texts)}]\n"
        )
        arguments = ("query", "--config", path, "--text", "tea", "--output", "json")
        status, out, err = run(*arguments)
        endpoint.always = server.status(401)
        failure = refused(*arguments)

    scores = ranking.cosine_scores(server.expected(["tea"]), server.expected(texts)).tolist()
    order = sorted(range(3), key=lambda i: -scores[i])
    chunks = json.loads(out)["chunks"]
    assert (0, "") == (status, err)
    assert [texts[i] for i in order] == [chunk["content"] for chunk in chunks]
    assert [round(scores[i], 4) for i in order] == [chunk["relevance_score"] for chunk in chunks]
    assert "401" in failure


def test_query_of_an_empty_packing_has_no_context(run, tmp_path):
    """Where nothing fits, the report is its first line."""
    path = tmp_path / "c.yaml"
    path.write_text("budget: {max_tokens: 1}\nsources: [{type: inline, text: A note.}]")
    expected = "0 of 1 tokens: 0 kept, 1 dropped (budget: 1)\n"
    assert (0, expected, "") == run("query", "-c", path, "-t", "note")


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("source", ["{type: directory, path: .}", "{type: inline, text: ''}"])
def test_query_of_sources_without_text_is_status_1(run, tmp_path, source, output):
    """Where there is nothing to pack, a line says so, and the report is as ever."""
    (tmp_path / "tea.txt").write_text("Green tea.")
    path = tmp_path / "c.yaml"
    path.write_text(f"sources: [{source}]")
    status, out, err = run("query", "-c", path, "-q", "tea", "-o", output)
    assert (1, f"budgeteer: there is no text in the sources of {path}\n") == (status, err)
    assert out.startswith("0 of 8000 tokens: 0 kept, " if output == "text" else "{\n")


@pytest.mark.parametrize("name", ["gone.yaml", "."])
def test_query_names_a_configuration_that_cannot_be_read(refused, tmp_path, name):
    """A missing file and a directory in its place are one line."""
    message = refused("query", "-c", tmp_path / name, "-t", "x")
    assert message.startswith(f"cannot read {tmp_path / name}: ")


def test_query_says_what_is_wrong_with_a_configuration(refused, tmp_path):
    """An error of the configuration, or of a source, is one line and no output."""
    path = tmp_path / "c.yaml"
    path.write_text("budget: {ranking: relevence}\nsources: []")
    assert refused("query", "-c", path, "-t", "x").endswith("; did you mean 'relevance'?")
    path.write_text("budget: {order: sticky}\nsources: [{type: inline, text: x}]")
    assert refused("query", "-c", path, "-t", "x").startswith("order must not be 'sticky' in bu")
    path.write_text("sources: [{type: inline, text: x}, {type: jsonl, path: a.jsonl}]")
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n{"text": 5}')
    message = refused("query", "-c", path, "-t", "x")
    assert f"{tmp_path / 'a.jsonl'}: line 2: text must be a str, not int" == message


def test_query_says_estimated_of_estimates_only(run, tmp_path):
    """A configuration counts exactly unless it names an estimate, or spells options as before."""
    path = tmp_path / "c.yaml"
    source = "sources: [{type: inline, text: Green tea.}]"
    for budget, counted in [
        ("", "3 of 8000 tokens: "),
        ("budget: {counter: chars_div4}\n", "3 of 8000 tokens (estimated): "),
        ("budget: {truncation: drop}\n", "3 of 8000 tokens (estimated): "),
        ("budget: {estimator: gpt-4o}\n", "3 of 8000 tokens: "),
    ]:
        path.write_text(budget + source, encoding="utf-8")
        assert run("query", "-c", path, "-t", "tea")[1].startswith(counted)


def test_query_shows_what_only_the_metadata_says(run, tmp_path):
    """A chunk without an id or a title of its own has those in its metadata, as in templates."""
    inner = {"id": 7, "title": "Tea"}
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "Green tea.", "metadata": inner}))
    (tmp_path / "c.yaml").write_text("sources: [{type: jsonl, path: a.jsonl, name: rows}]")

    lines = run("query", "-c", tmp_path / "c.yaml", "-q", "tea")[1].splitlines()
    answer = json.loads(run("query", "-c", tmp_path / "c.yaml", "-q", "tea", "-o", "json")[1])

    assert lines[1].startswith("  [rows] Tea: ")
    for chunk in (answer["kept"][0], answer["chunks"][0]):
        assert (7, "rows", "Tea") == (chunk["id"], chunk["source"], chunk["title"])


def test_explain_names_a_dropped_chunk_by_the_id_in_its_metadata(run, tmp_path):
    """The id that a template would show."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "Tea.", "metadata": {"id": "t"}}))
    options = ("--explain", "--dropped", "all", "-n", "0")
    said = run("pack", "-q", "tea", "--input", tmp_path / "a.jsonl", *options)[2]
    assert "Chunk 0 (t) was dropped: " in said
