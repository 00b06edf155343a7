"""The settings of an embedder in a YAML configuration, and what is too long for its model."""

import dataclasses
import json
import logging

import embedding_server as server
import pytest
from test_config import NOTE

from budgeteer import get_counter, ranking
from budgeteer.config import ConfigError
from budgeteer.embedding import EmbeddingError, OpenAIEmbedder

LONG = "tea " * 9_000
TOKENS = 9_005
"""Of the heading, as a title and in the text, and of what is below it."""

EVERY = {
    "model": "m",
    "url": "http://e.example/v1",
    "api_key_env": "K",
    "cache_dir": "cache",
    "dimensions": 5,
    "batch_size": 6,
    "max_batch_bytes": 7,
    "max_concurrency": 8,
    "timeout": 9.5,
    "connect_timeout": 1.5,
    "total_timeout": 20.5,
    "max_retries": 4,
    "backoff": 0.25,
    "max_response_bytes": 1_000,
    "max_cache_bytes": 2 << 20,
    "max_input_tokens": 11,
    "truncate": True,
    "ca_file": "own.pem",
    "allow_insecure_http": True,
}
"""A value other than the default for each option of an embedder."""


def yaml_of(options):
    return ", ".join(f"{name}: {str(value).lower()}" for name, value in options.items()).replace(
        "api_key_env: k", "api_key_env: K"
    )


def test_every_option_of_an_embedder(configured, tmp_path):
    """What OpenAIEmbedder takes, a file may say; paths are relative to the file."""
    fields = {item.name: item for item in dataclasses.fields(OpenAIEmbedder) if item.init}
    assert {*fields} == {*EVERY}
    assert not [name for name, item in fields.items() if item.default == EVERY[name]]
    config = configured(f"budget: {{embedding: {{{yaml_of(EVERY)}}}}}\n{NOTE}")

    paths = {"cache_dir": str(tmp_path / "cache"), "ca_file": str(tmp_path / "own.pem")}
    assert OpenAIEmbedder(**{**EVERY, **paths}) == config.embedder


def test_every_option_of_queries(configured, tmp_path):
    """A Qdrant source's own embedder has each option but those for a cache and for batches."""
    pytest.importorskip("qdrant_client")
    for_many = {
        *("cache_dir", "max_cache_bytes", "batch_size", "max_batch_bytes", "max_concurrency")
    }
    options = {name: value for name, value in EVERY.items() if name not in for_many}
    (tmp_path / "store").mkdir()
    config = configured(
        "sources: [{type: qdrant, collection: c, path: store, "
        f"embedding: {{{yaml_of(options)}}}}}]"
    )

    options["ca_file"] = str(tmp_path / "own.pem")
    assert OpenAIEmbedder(**options) == config.sources[0].embedder


@pytest.mark.parametrize(
    ("said", "is_cut"),
    [
        ("", True),
        ("truncate: true", True),
        ("truncate: false", False),
        ("model: m", False),
        ("model: m, max_input_tokens: 9", True),
        ("model: m, max_input_tokens: 9, truncate: false", False),
    ],
)
def test_long_texts_are_cut_where_the_limit_is_known(configured, said, is_cut):
    """truncate is true by default, unless nobody knows where to cut."""
    embedder = configured(f"budget: {{embedding: {{{said}}}}}\n{NOTE}").embedder
    assert is_cut is embedder.truncate


def test_embedding_settings_may_stay_under_another_ranking(configured, tmp_path):
    """Switching back from embedding is one line: its settings are checked, then ignored."""
    said = "{model: m, api_key_env: K, url: 'https://e.example', cache_dir: c}"
    config = configured(f"budget: {{ranking: manual, embedding: {said}}}\n{NOTE}")
    assert "input" == config.packer.ranking
    expected = {"api_key_env": "K", "url": "https://e.example", "cache_dir": tmp_path / "c"}
    assert OpenAIEmbedder("m", **expected) == config.embedder


def test_embedding_defaults(configured, tmp_path):
    """An embedder has the document's defaults, and its cache beside the file."""
    cache_dir = tmp_path / ".context_router_embeddings"
    config = configured(f"budget: {{embedding: {{}}}}\n{NOTE}")
    assert OpenAIEmbedder(cache_dir=cache_dir, truncate=True) == config.embedder
    assert "text-embedding-3-small" == config.embedder.model
    assert "https://api.openai.com/v1/embeddings" == config.embedder.url
    assert not cache_dir.exists()

    assert configured(NOTE).embedder is None
    said = "{url: 'http://e.example/v1', api_key_env: null, cache_dir: null}"
    config = configured(f"budget: {{embedding: {said}}}\n{NOTE}")
    expected = OpenAIEmbedder(url="http://e.example/v1", api_key_env=None, truncate=True)
    assert expected == config.embedder


def test_ranking_by_embedding(configured):
    """What budget.embedding describes ranks: all is embedded once, then the query alone."""
    with server.Endpoint() as endpoint:
        said = f"{{url: '{endpoint.url}', api_key_env: null}}"
        config = configured(
            f"budget: {{ranking: embedding, embedding: {said}}}\n"
            "sources: [{type: inline, text: Green tea.}, {type: inline, text: Rye bread.}]"
        )
        with config.embedder:
            packing = config.query("tea")
            config.query("rye")
        questions = [question["input"] for question in endpoint.questions]

    texts = ["Green tea.", "Rye bread."]
    scores = ranking.cosine_scores(server.expected(["tea"]), server.expected(texts)).tolist()
    assert {*enumerate(scores)} == {(kept.index, kept.score) for kept in packing.kept}
    assert max(scores) == packing.kept[0].score
    assert [texts, ["tea"], ["rye"]] == questions


def test_embedding_fails(configured):
    """Where the endpoint cannot be reached a query raises what the embedder does."""
    said = "{url: 'http://127.0.0.1:1/v1', api_key_env: null, cache_dir: null}"
    config = configured(f"budget: {{ranking: embedding, embedding: {said}}}\n{NOTE}")
    with pytest.raises(EmbeddingError):
        dataclasses.replace(
            config.packer,
            ranking=ranking.Embedding(dataclasses.replace(config.embedder, max_retries=0)),
        ).pack("tea", config.chunks())


# What is too long for the model.


@pytest.fixture
def embedding_docs(configured, endpoint):
    """Load a configuration of two sections, one too long, that ranks by embedding."""

    def embedding_docs(ranking="embedding", said="", source="{type: directory, path: docs}"):
        return configured(
            f"budget:\n  max_tokens: 100000\n  ranking: {ranking}\n"
            f"  embedding: {{url: '{endpoint.url}', api_key_env: null, cache_dir: null{said}}}\n"
            f"sources: [{source}]",
            **{"docs__a.md": f"## Install\n{LONG}\n## Use\nGreen tea."},
        )

    return embedding_docs


def warnings_of(caplog):
    return [record for record in caplog.records if record.name == "budgeteer"]


@pytest.mark.parametrize(
    "by", ["embedding", "hybrid", "{hybrid: {fusion: rrf}}", "{embedding: {fallback: bm25}}"]
)
def test_a_long_section_is_cut_with_a_warning(embedding_docs, endpoint, tmp_path, caplog, by):
    """Only what is embedded is cut; the warning, given once, names file and id."""
    config = embedding_docs(by)
    with config.embedder:
        packings = [config.query("tea") for _ in range(2)]
    (record,) = warnings_of(caplog)

    path = str(tmp_path / "docs" / "a.md")
    model = "text-embedding-3-small"
    assert logging.WARNING == record.levelno
    assert (
        f"{path}, chunk a.md#0 has {TOKENS} tokens, more than the 8191 that "
        f"'{model}' takes: the rest is not embedded"
    ) == record.getMessage()
    expected = {
        "source": f"{path}, chunk a.md#0", "tokens": TOKENS, "max_input_tokens": 8_191,
        "model": model,
    }  # fmt: skip
    assert expected == {name: getattr(record, name) for name in expected}

    (sent, _), *_ = endpoint.inputs()
    assert 8_191 == get_counter("cl100k_base").count(sent)
    assert f"Install\n## Install\n{LONG}".startswith(sent)
    for packing in packings:
        assert {f"## Install\n{LONG}".strip(), "## Use\nGreen tea."} == {
            kept.text for kept in packing.kept
        }


def test_a_long_line_is_named_by_its_id(embedding_docs, tmp_path, caplog):
    """A chunk of a file of lines is named by file and id, or by its number."""
    rows = [{"text": "Tea."}, {"text": LONG}, {"text": LONG, "id": "x", "title": "Tea"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    config = embedding_docs(source="{type: jsonl, path: a.jsonl, name: rows}")
    with config.embedder:
        config.chunks("tea")
        config.query("")  # is not embedded, and nor are the texts

    path = tmp_path / "a.jsonl"
    starts = [f"{path}, chunk 2 has 9", f"{path}, chunk x has 9"]
    found = [record.getMessage() for record in warnings_of(caplog)]
    assert len(starts) == len(found)
    assert all(map(str.startswith, found, starts))


@pytest.mark.parametrize("by", ["bm25", "recency", "{hybrid: {weights: {bm25: 1}}}"])
def test_no_warning_where_nothing_is_embedded(embedding_docs, endpoint, caplog, by):
    """Under rankings by words an embedder that stays in the file sees no text."""
    assert embedding_docs(by).query("tea").kept
    assert [] == warnings_of(caplog) == endpoint.questions


def test_a_long_section_is_an_error_on_request(embedding_docs, endpoint, tmp_path):
    """Under truncate: false the error names file, id and key, and nothing is sent."""
    with pytest.raises(ConfigError) as caught:
        embedding_docs(said=", truncate: false").query("tea")
    path = tmp_path / "docs" / "a.md"
    assert (
        f"{path}, chunk a.md#0 has {TOKENS} tokens, more than the 8191 that "
        "'text-embedding-3-small' takes; budget.embedding.truncate: true cuts what is embedded"
    ) == str(caught.value)
    assert [] == endpoint.questions


def test_a_long_section_falls_back_on_request(embedding_docs, caplog):
    """With a fallback the error of truncate: false is one for the packer, which falls back."""
    config = embedding_docs("{embedding: {fallback: {stemming: english}}}", ", truncate: false")
    packing = config.query("teas")
    assert ("bm25", 2) == (packing.fallback, len(packing.kept))
    (record,) = warnings_of(caplog)
    assert "the option truncate cuts it; that is the chunk of " in record.getMessage()
    assert record.getMessage().endswith("id 'a.md#0'")
    assert "bm25" == record.fallback


UNKNOWN = ", model: own, max_retries: 0"
KEY = "give the most tokens that it takes as max_input_tokens, to which truncate cuts"


def refused(message):
    return server.status(400, json.dumps({"error": {"message": message, "code": "too_long"}}))


def test_a_section_that_the_endpoint_names(embedding_docs, endpoint, caplog):
    """Where the limit is not known the endpoint's refusal names file, id and the key."""
    endpoint.always = refused("Invalid 'input[0]': maximum context length is 8192 tokens.")
    named = "id 'a.md#0'"
    with pytest.raises(EmbeddingError) as caught:
        embedding_docs(said=UNKNOWN).query("tea")
    assert "answered 400 (too_long) about texts[0]" in str(caught.value)
    assert KEY in str(caught.value)
    assert str(caught.value).endswith(named)
    assert 0 == caught.value.index

    config = embedding_docs("{embedding: {fallback: bm25}}", UNKNOWN)
    assert "bm25" == config.query("tea").fallback
    (record,) = warnings_of(caplog)
    assert KEY in record.getMessage()
    assert record.getMessage().endswith(named)


def test_a_section_that_the_endpoint_does_not_name(embedding_docs, endpoint):
    """A refusal that tells no text still says what may be wrong; a known limit is not that."""
    endpoint.always = refused("input[7] or input[1]?")
    with pytest.raises(EmbeddingError, match=KEY) as caught:
        embedding_docs(said=UNKNOWN).query("tea")
    assert caught.value.index is None
    assert "section" not in str(caught.value)
    with pytest.raises(EmbeddingError) as caught:
        embedding_docs(said=", max_retries: 0").query("tea")
    assert "max_input_tokens" not in str(caught.value)


def test_a_query_is_no_section(embedding_docs, endpoint):
    """A refusal of the query names no chunk."""
    endpoint.script.append(server.well)
    endpoint.always = refused("Invalid 'input[0]'")
    with pytest.raises(EmbeddingError, match=KEY) as caught:
        embedding_docs(said=UNKNOWN).query("tea")
    assert caught.value.index is None
    assert "section" not in str(caught.value)


def test_a_long_query_is_cut_with_a_warning(embedding_docs, endpoint, caplog):
    """A query is not cut in silence either."""
    config = embedding_docs(said=", max_input_tokens: 20", source="{type: inline, text: Tea.}")
    with config.embedder:
        config.query("tea " * 21)
    (record,) = warnings_of(caplog)
    assert (20, "text-embedding-3-small") == (record.max_input_tokens, record.model)
    assert record.getMessage().startswith("the query has more than the 20 tokens")
    assert [["Tea."], [" ".join(["tea"] * 20)]] == endpoint.inputs()
