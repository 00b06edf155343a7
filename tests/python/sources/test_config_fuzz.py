"""Any configuration, of bytes or of known keys with any values, is read or refused in a line."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from budgeteer import get_counter
from budgeteer.config import ConfigError, document_of, json_schema, load

jsonschema = pytest.importorskip("jsonschema")

SCHEMA = json_schema()


LINES = [
    "budget:",
    "sources:",
    "- {type: inline, text: Tea.}",
    "  max_tokens: 9",
    "&a [*a]",
    "<<: *a",
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["lexical", "words", "xml", "tea", ".", "{text}"])
    | st.text(max_size=12)
)
VALUES = st.recursive(
    SCALARS,
    lambda values: (
        st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=6), values, max_size=3)
    ),
    max_leaves=6,
)
WRONG = 40
"""One value of so many is any value."""
OF_TYPE = {
    "null": st.none(),
    "boolean": st.booleans(),
    "number": st.floats(0, 2) | st.integers(0, 9),
    "string": st.sampled_from(["words", "tea.md", "rows.jsonl", "*.md", "<{id}> {text}"]),
}
OLDER = {"estimator", "truncation"}
"""They stand for other keys, and beside these are an error."""
PATHS = st.sampled_from([".", ".", "rows.jsonl", "rows.jsonl", "none"])
REMOTE = ({"$ref": "#/$defs/qdrantSource"}, {"$ref": "#/$defs/embedder"})
"""What needs the network to be read."""


def of(schema):
    """Return a strategy of what a part of the schema allows, and now and then of anything."""
    valid = valid_of(schema)
    return st.integers(1, WRONG).flatmap(lambda place: VALUES if place == WRONG else valid)


def valid_of(schema):
    if "$ref" in schema:
        return valid_of(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return st.one_of([valid_of(part) for part in choices if part not in REMOTE])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type", "null")
    if isinstance(kind, list):
        return st.one_of([valid_of({**schema, "type": one}) for one in kind])
    if kind == "array":
        return st.lists(of(schema.get("items", {})), min_size=1, max_size=3)
    if kind == "integer":
        least = schema.get("minimum", 0)
        return st.integers(least, least + 60)
    if kind == "object":
        known = schema.get("properties", {}).items()
        keys = {
            key: PATHS if key == "path" else of(part) for key, part in known if key not in OLDER
        }
        needed = {key: keys.pop(key) for key in schema.get("required", [])}
        return st.fixed_dictionaries(needed, optional=keys)
    return OF_TYPE[kind]


DOCUMENTS = of(SCHEMA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with what sources read."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "tea.md").write_text("## Green tea\nIt is mild.")
    (folder / "rows.jsonl").write_text('{"text": "Rye bread."}\n')
    return folder


def outcome(call, argument):
    """Return what a call returns, or None where it refuses in one line."""
    try:
        return call(argument)
    except ConfigError as error:
        said = str(error)
        assert 1 == len(said.splitlines()), said
        return None


def loaded(folder, content):
    path = folder / "budgeteer.yaml"
    path.write_bytes(content)
    return outcome(load, path)


@settings(suppress_health_check=[HealthCheck.too_slow])
@example(b"\xff\xfe")
@example(b"a: &a [*a]")
@example(b"[" * 20_000)
@example(b"? {a: b}\n: c")
@example(b"sources: !!python/object/apply:os.system [ls]")
@example(b"budget: {max_tokens: 1e400}\nsources: [{type: inline, text: 2001-13-45}]")
@given(
    st.binary(max_size=200)
    | st.text(max_size=120).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.lists(st.sampled_from(LINES) | st.text(max_size=9), max_size=6).map(
        lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass")
    )
)
def test_any_bytes_are_read_or_refused(folder, content):
    """Nothing but a `ConfigError` of one line comes out, whatever the file has."""
    loaded(folder, content)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(DOCUMENTS)
def test_known_keys_with_any_values(folder, document):
    """What is read is valid by the schema, and packs within its budget or says what is missing."""
    text = json.dumps(document)
    config = loaded(folder, text.encode())
    if config is None:
        return
    jsonschema.validate(document_of(text), SCHEMA)
    packing = outcome(config.query, "green tea")
    if packing is None:
        return  # a source is not there
    assert packing.total_tokens <= packing.budget_tokens
    counter = get_counter(config.packer.counter)
    assert not packing.text or counter.count(packing.text) == packing.total_tokens
