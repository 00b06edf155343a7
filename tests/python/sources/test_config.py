"""The YAML configuration: its defaults, its sources, and what it is to Python."""

import dataclasses
import json
import os
import pickle
from pathlib import Path

import pytest

from budgeteer import InvalidArgumentError, get_counter
from budgeteer.config import Config, load

NOTE = "sources: [{type: inline, text: A note.}]"
POLICY = "What is the remote work policy?"


def texts(config):
    return [chunk.text for chunk in config.chunks()]


# The budget.


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


@pytest.mark.parametrize("query", [5, b"tea", ["tea"]])
def test_sources_are_read_for_a_text_or_none(configured, query):
    """What `chunks` is given is checked, whether or not a source searches by it."""
    with pytest.raises(
        InvalidArgumentError, match=f"query must be a str, not {type(query).__name__}"
    ):
        configured(NOTE).chunks(query)


def test_a_path_may_be_of_bytes(configured):
    """An entry of a directory that was listed as bytes is a path too."""
    folder = os.fsencode(configured(NOTE).path.parent)
    (entry,) = [entry for entry in os.scandir(folder) if entry.name.endswith(b".yaml")]
    assert 8_000 == load(entry).packer.max_tokens


# The example that comes with the library.


def test_the_example_answers_its_question():
    """The handbook of the examples ranks its remote work policy first."""
    examples = Path(__file__).parents[3] / "examples"
    packing = load(examples / "budgeteer.yaml").query(POLICY)
    first = packing.kept[0]
    assert "Remote Work Policy" == first.chunk.title
    assert packing.is_exact
    assert packing.total_tokens <= packing.budget_tokens
    assert {"handbook", "tickets"} <= {kept.chunk.source for kept in packing.kept}
    assert all(kept.score < first.score for kept in packing.kept[1:])
