"""The YAML configuration: its defaults, its sources, and what it is to Python."""

import dataclasses
import json
import pickle
from pathlib import Path

import embedding_server as server
import pytest

from budgeteer import InvalidArgumentError, Packer, get_counter, ranking
from budgeteer.config import Config, load
from budgeteer.embedding import EmbeddingError, OpenAIEmbedder

NOTE = "sources: [{type: inline, text: A note.}]"
POLICY = "What is the remote work policy?"


def texts(config):
    return [chunk.text for chunk in config.chunks()]


# The budget.


@pytest.mark.parametrize(
    "budget", ["", "budget:\n", "budget: {}\n", "budget: {embedding: null}\n"]
)
def test_defaults_are_the_documents(configured, budget):
    """An absent, null or empty budget is 8000, relevance, drop, chars_div4 and 0."""
    packer = configured(budget + NOTE).packer
    assert 8000 == packer.max_tokens
    assert "keyword" == packer.ranking
    assert "skip" == packer.overflow
    assert "chars_div4" == packer.counter
    assert 0 == packer.reserve_tokens
    assert (None, None, "exact", "rank", "rank", "plain") == (
        packer.min_score, packer.max_chunks, packer.dedupe, packer.selection, packer.order,
        packer.template,
    )  # fmt: skip


def test_every_option_of_packer_is_given(configured, monkeypatch):
    """No default of Packer reaches a configuration, so that a new one changes none."""
    given = {}

    def record(max_tokens, **options):
        given.update(options, max_tokens=max_tokens)
        return Packer(max_tokens, **options)

    monkeypatch.setattr("budgeteer.config.Packer", record)
    configured(NOTE)
    public = {option.name for option in dataclasses.fields(Packer) if option.init}
    assert public == set(given)


@pytest.mark.parametrize(
    ("said", "option", "meant"),
    [
        ("max_tokens: 1", "max_tokens", 1),
        ("max_tokens: 1000000000", "max_tokens", 10**9),
        ("reserve_tokens: 500", "reserve_tokens", 500),
        ("ranking: relevance", "ranking", "keyword"),
        ("ranking: recency", "ranking", "recency"),
        ("ranking: manual", "ranking", "input"),
        ("truncation: drop", "overflow", "skip"),
        ("truncation: truncate_end", "overflow", "truncate_end"),
        ("truncation: truncate_middle", "overflow", "truncate_middle"),
    ],
)
def test_the_documents_words_are_translated(configured, said, option, meant):
    """Each value of the document's table has its option of Packer."""
    assert meant == getattr(configured(f"budget: {{{said}}}\n{NOTE}").packer, option)


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        *{"chars_div4": 2, "words": 2, "whitespace": 2, "chars_per_token:2.5": 3}.items(),
        *(
            (name, 3)
            for name in (
                "o200k_base",
                "cl100k_base",
                "gpt-4o",
                "gpt-4-0613",
                "tiktoken:o200k_base",
            )
        ),
    ],
)
def test_the_estimator_counts_whole_chunks(configured, name, tokens):
    """Estimator takes what get_counter takes, and every figure is in its tokens."""
    packing = configured(f"budget: {{estimator: '{name}'}}\n{NOTE}").query("note")
    assert tokens == packing.total_tokens == packing.kept[0].token_count
    assert get_counter(name).is_exact == packing.is_exact


WORDS = {"type": "WordLevel", "vocab": {"note": 0, "?": 1}, "unk_token": "?"}
TOKENIZER = json.dumps({"model": WORDS, "pre_tokenizer": {"type": "Whitespace"}})


@pytest.mark.parametrize("written", ["models/tokenizer.json", "models", "./models/", "{}/models"])
def test_a_tokenizer_is_found_beside_the_file(configured, tmp_path, monkeypatch, written):
    """The path of ``hf:`` is relative to the configuration, like any other path in it."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    said = f"budget: {{estimator: 'hf:{written.format(tmp_path)}'}}\n{NOTE}"
    packing = configured(said, **{"models__tokenizer.json": TOKENIZER}).query("note")
    assert (3, True) == (packing.total_tokens, packing.is_exact)


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
    assert OpenAIEmbedder(cache_dir=cache_dir) == config.embedder
    assert "text-embedding-3-small" == config.embedder.model
    assert "https://api.openai.com/v1/embeddings" == config.embedder.url
    assert not cache_dir.exists()

    assert configured(NOTE).embedder is None
    said = "{url: 'http://e.example/v1', api_key_env: null, cache_dir: null}"
    config = configured(f"budget: {{embedding: {said}}}\n{NOTE}")
    assert OpenAIEmbedder(url="http://e.example/v1", api_key_env=None) == config.embedder


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


def test_packing_is_strict(configured):
    """The text holds its budget where the document's program would overrun it."""
    text = "budget: {max_tokens: 9, truncation: truncate_middle}\nsources:\n" + "".join(
        f"  - {{type: inline, text: {letter * 20}}}\n" for letter in "abc"
    )
    packing = configured(text).query("")
    assert packing.total_tokens <= 9
    assert (len(packing.text) + 3) // 4 == packing.total_tokens


def test_reserve_of_the_whole_budget_leaves_nothing(configured):
    """A reserve of max_tokens or more returns no chunks."""
    packing = configured(f"budget: {{max_tokens: 5, reserve_tokens: 9}}\n{NOTE}").query("note")
    assert ("", 0, 0) == (packing.text, packing.budget_tokens, len(packing.kept))


def test_paths_are_relative_to_the_file(configured, tmp_path, monkeypatch):
    """Where the process stands does not matter to a configuration."""
    config = configured("sources: [{type: directory, path: docs}]", **{"docs__a.md": "one"})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert ["one"] == texts(config)
    config = load("../budgeteer.yaml")
    assert Path("../budgeteer.yaml") == config.path
    monkeypatch.chdir(tmp_path.parent)
    assert ["one"] == texts(config)


def test_aliases_and_merges_are_plain_yaml(configured):
    """Anchors, aliases and merge keys mean what they mean to safe_load."""
    config = configured(
        """
        sources:
          - &a {type: inline, text: one, name: n}
          - *a
          - {<<: *a, text: two}
          - {<<: [{priority: 1}, *a], name: m}
        """
    )
    assert ["one", "one", "one", "two"] == texts(config)
    assert [("n", 0), ("n", 0), ("n", 0), ("m", 1)] == [
        (source.name, source.priority) for source in config.sources
    ]


def test_a_config_is_a_value(configured):
    """A configuration is frozen and can be pickled."""
    config = configured(NOTE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.path = Path()
    assert config.chunks() == pickle.loads(pickle.dumps(config)).chunks()
    assert isinstance(config, Config)


def test_a_byte_order_mark_and_line_ends_are_no_matter(tmp_path):
    """A configuration saved by any editor is read."""
    path = tmp_path / "budgeteer.yaml"
    path.write_bytes(b"\xef\xbb\xbfbudget:\r\n  max_tokens: 7\r\n" + NOTE.encode() + b"\r\n")
    assert 7 == load(str(path)).packer.max_tokens


def test_the_query_must_be_text(configured):
    """A query that is no str is refused before a source is read."""
    with pytest.raises(InvalidArgumentError, match="text must be a str, not int"):
        configured(NOTE).query(5)


# The example that comes with the library.


def test_the_example_answers_its_question():
    """The handbook of the examples ranks its remote work policy first."""
    examples = Path(__file__).parents[3] / "examples"
    packing = load(examples / "budgeteer.yaml").query(POLICY)
    first = packing.kept[0]
    assert ("Remote Work Policy", 1.0) == (first.chunk.title, first.score)
    assert packing.total_tokens <= packing.budget_tokens
    assert {"handbook", "tickets"} <= {kept.chunk.source for kept in packing.kept}
    assert all(kept.score < 1 for kept in packing.kept[1:])
