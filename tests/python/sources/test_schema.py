"""The JSON Schema of configurations: what editors check and complete."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import jsonschema
import pytest
from test_config import NOTE
from test_config_refused import WRONG_BUDGETS, WRONG_KEYS, WRONG_SOURCES

from budgeteer._sources import budget, sources
from budgeteer.cli import main
from budgeteer.config import ConfigError, document_of, json_schema, load
from budgeteer.embedding import OpenAIEmbedder

ROOT = Path(__file__).parents[3]
SCHEMA = json_schema()
SEEN = re.compile(
    r"is not a known key|must be one of '|must be (an int|a number|a str|a bool), not (?!float)"
    r"|must be a mapping|is required(?! when)|must list|must be from [01] .* not -"
)
"""Errors about keys, types and choices, which a schema sees."""


def is_valid(document):
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(document)


def test_it_is_a_schema():
    """The schema itself is valid, and up to date."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    subprocess.run(
        [sys.executable, ROOT / "scripts/generate_schema.py", "--check"], check=True, timeout=60
    )


def test_it_has_every_key():
    """Each key of a budget, of an embedder and of a source is there, and says what it means."""
    section = SCHEMA["properties"]["budget"]["anyOf"][0]["properties"]
    kinds = {kind: SCHEMA["$defs"][f"{kind}Source"]["properties"] for kind in sources._KEYS}
    embedder = SCHEMA["$defs"]["embedder"]["properties"]

    assert {*budget.KEYS} == {*section}
    assert {kind: {*keys} for kind, keys in sources._KEYS.items()} == {
        kind: {*properties} for kind, properties in kinds.items()
    }
    assert {item.name for item in fields(OpenAIEmbedder) if item.init} == {*embedder}
    for properties in (section, embedder):
        assert not [name for name, schema in properties.items() if not schema.get("description")]


REFUSED = [
    (text, message)
    for text, message in (
        *WRONG_KEYS,
        *((f"budget: {text}\n{NOTE}", why) for text, why in WRONG_BUDGETS),
        *((f"sources: {text}", why) for text, why in WRONG_SOURCES),
    )
    if SEEN.search(message) and "or a model such as" not in message and "NaN" not in message
]
"""What `load` refuses for a key, a type or a choice."""


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_it_refuses_wrong_keys_types_and_choices(text, message):
    """The schema refuses it too, or it is no plain YAML."""
    try:
        document = document_of(text)
    except ValueError as error:
        document = str(error)
    assert message == document or not is_valid(document)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "budget: {min_score: a}",
            'min_score: Chunks that score lower are dropped as "out_of_scope".',
        ),
        (
            "budget: {counter: o20}",
            "counter: A name known to get_counter: an encoding, an estimate",
        ),
        ("budget: {estimator: o20}", "estimator: The older name of counter."),
        (
            "budget: {ranking: {bm25: {b: 2}}}",
            "b: How strongly long texts are marked down, from 0",
        ),
        (
            "budget: {ranking: {hybrid: {weights: {bm25: 1}, bm25: {lexical: {k1: a}}}}}",
            "k1: How much repetitions of a term in a chunk add, from 0 (nothing) to 1,000,000.",
        ),
        ("budget: {template: {format: 1}}", 'format: "plain", "tagged", "markdown", "xml" or'),
        ("budget: {ranking: embedding}", "embedding: The endpoint for rankings by embeddings."),
        ("sources: [{type: jsonl, path: 1}]", "path: The folder or file, relative to the"),
        ("budget: {overflw: skip}", None),
        ("[]", None),
        ("sources: [{type: inlin}]", "type: What kind of source it is."),
    ],
)
def test_errors_quote_it(tmp_path, text, says):
    """An error about a key ends with what the schema says of the key, however deep it stands."""
    path = tmp_path / "budgeteer.yaml"
    path.write_text(text if text.startswith(("sources", "[")) else f"{text}\n{NOTE}")
    with pytest.raises(ConfigError) as caught:
        load(path)
    message = str(caught.value)
    if says is None:
        assert not re.search(r"[.?] \w+: [A-Z\"]", message)
    else:
        assert re.search(rf"[.?] {re.escape(says)}", message)


def test_the_examples_are_valid():
    """The configurations of the examples are valid."""
    for path in (ROOT / "examples").glob("*.yaml"):
        jsonschema.validate(document_of(path.read_text(encoding="utf-8")), SCHEMA)


def test_the_command_writes_it(capsys):
    """``budgeteer schema`` writes what `json_schema` returns."""
    assert 0 == main(["schema"])
    assert SCHEMA == document_of(capsys.readouterr().out)
