"""Templates that are functions: the law, what is asked of the function, and what is refused."""

import asyncio
import pickle
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    Liar,
    Pure,
    Recorder,
    around,
    budgets,
    chunk_lists,
    compared,
    counters,
    on_both,
    options,
    queries,
    text_of,
    using,
)

from budgeteer import (
    Chunk,
    Corpus,
    InvalidArgumentError,
    Packer,
    Template,
    get_counter,
    pack,
    parse_context,
    presets,
)
from budgeteer._pack.prepared import prepared

KINDS = ("same", "longer", "shorter", "odd_empty", "newlines", "equal", "wide", "joint", "half")


@dataclass
class Writer:
    """Writes a chunk in a hostile way, and remembers for which chunks it was asked."""

    kind: str
    asked: list = field(default_factory=list)

    def __call__(self, chunk):
        self.asked.append(chunk)
        return self.written(chunk)

    def written(self, chunk):
        """Return what it writes, without remembering."""
        text = text_of(chunk)
        return {
            "same": text,
            "longer": f"{text} {text}\n## tea {text}",
            "shorter": text[:3],
            "odd_empty": text if len(text) % 2 else "",
            "newlines": f"{text}\n\n",
            "equal": "tea",
            "wide": f"\u8336{text}\U0001f375",
            "joint": f"\n {text}'",
            "half": f"\ude00{text}\ud83d",
        }[self.kind]


writers = st.builds(Writer, st.sampled_from(KINDS))
separators = st.sampled_from([None, "\n", "", " ", "'", "\n\n\n", "\u3000"])
written_options = options.map(
    lambda drawn: {
        name: value
        for name, value in drawn.items()
        if name != "template" and not (name == "overflow" and value.startswith("trunc"))
    }
)


@on_both
@given(
    chunks=chunk_lists(),
    writer=writers,
    counter=counters,
    budget=budgets,
    chosen=written_options,
    query=queries,
    separator=separators,
    header=around,
    footer=around,
    in_corpus=st.booleans(),
)
def test_the_law(
    name, chunks, writer, counter, budget, chosen, query, separator, header, footer, in_corpus
):
    """The text is what was written, joined, within the budget; each chunk is written once."""
    writer.asked.clear()
    template = Template(writer, separator=separator, header=header, footer=footer)
    with using(name):
        packer = Packer(budget, counter=counter, template=template, **chosen)
        packing = packer.pack(query, Corpus(chunks) if in_corpus else chunks)
        counted = get_counter(counter).count(packing.text) if packing.text else 0
    assert counted == packing.total_tokens <= packing.budget_tokens

    kept = [*packing.kept]
    parts = [writer.written(chunk.chunk) for chunk in kept]
    assert parts == [chunk.text for chunk in kept]
    glue = "\n\n" if separator is None else separator
    expected = {header + glue.join(parts) + footer} if kept else {""}
    notice = chosen.get("notice")
    if notice and packing.dropped and kept:
        notice = "Chunks left out: {count}." if notice is True else notice
        notice = notice.replace("{count}", str(packing.dropped_count))
        expected.add(header + glue.join([*parts, notice]) + footer)
    assert packing.text in expected
    for chunk in kept:
        assert chunk.chunk is chunks[chunk.index]
        assert packing.text[slice(*chunk.span)] == chunk.text
        with using(name):
            assert get_counter(counter)._count_chunk(chunk.text, 0) == chunk.token_count
    _check_asked(packing, writer, chunks)


def _check_asked(packing, writer, chunks):
    """Each kept chunk was asked for, none twice, and none that was refused before."""
    asked = [id(chunk) for chunk in writer.asked if not isinstance(chunk, str)]
    assert len(asked) == len(set(asked))
    for kept in packing.kept:
        assert any(kept.chunk is chunk for chunk in writer.asked)
    for dropped in packing.dropped:
        if dropped.reason in ("out_of_scope", "cap", "duplicate") and not isinstance(
            chunks[dropped.index], str
        ):
            assert id(dropped.chunk) not in asked or any(
                other is dropped.chunk
                for place, other in enumerate(chunks)
                if place != dropped.index
            )


@compared
@given(
    chunks=chunk_lists(),
    kind=st.sampled_from(KINDS),
    counter=counters,
    budget=budgets,
    chosen=written_options,
    query=queries,
    separator=separators,
    header=around,
)
def test_both_backends_answer_alike(
    chunks, kind, counter, budget, chosen, query, separator, header
):
    """Native and reference return the same packing, and ask for the same chunks in one order."""
    answers = []
    for name in ("native", "reference"):
        with using(name):
            writer = Writer(kind)
            template = Template(writer, separator=separator, header=header)
            packer = Packer(budget, counter=counter, template=template, **chosen)
            packing = packer.pack(query, chunks)
            asked = [id(chunk) for chunk in writer.asked]
            answers.append((packing.to_dict(), packing.explain(), asked))
    assert answers[0] == answers[1]


@compared
@given(chunks=chunk_lists(), kind=st.sampled_from(KINDS), budget=budgets)
def test_a_counter_is_asked_the_same_by_both(chunks, kind, budget):
    """A caller's counter is asked for the written texts, in the same order by both backends."""
    asked = []
    for name in ("native", "reference"):
        with using(name):
            recorder = Recorder(Pure("chars", 1), [])
            Packer(budget, counter=recorder, template=Template(Writer(kind))).pack("tea", chunks)
            asked.append(recorder.asked)
    assert asked[0] == asked[1]


ROWS = [
    {"text": "Green tea is mild.", "title": "Tea", "n": 1},
    {"text": "", "n": 2},
    {"text": "Green tea is mild.", "title": "Tea", "n": 3},
    {"text": "Rye bread is dark.", "n": 4},
    {"text": "Black tea is strong.", "n": 5},
]


@on_both
def test_only_what_is_considered_is_written(name):
    """Chunks out of scope, empty ones, duplicates, and those beyond a cap are never written."""
    asked = []

    def write(row):
        asked.append(row["n"])
        return f"{row['n']}: {row['text']}"

    with using(name):
        packer = Packer(90, template=Template(write), min_score=0.01, max_chunks=2)
        packing = packer.pack("green tea", ROWS)
        assert packing.text == "1: Green tea is mild.\n\n5: Black tea is strong."
        assert asked == [1, 5]
        asked.clear()
        near = [*ROWS, {"text": "green tea is mild", "n": 6}]
        replace(packer, dedupe="near", max_chunks=None).pack("green tea", near)
        assert asked == [1, 5]
        asked.clear()
        replace(packer, max_chunks=1).pack("green tea", ROWS)
        assert asked == [1]


@on_both
def test_nothing_is_written_without_a_token(name):
    """Once no token is left, and behind the end of "stop", nothing is written any more."""
    asked = []

    def write(row):
        asked.append(row["n"])
        return row["text"]

    with using(name):
        packing = Packer(5, counter="words", template=Template(write), ranking="input").pack(
            "", [{"text": "a b c d e", "n": 0}, {"text": "f", "n": 1}, {"text": "g", "n": 2}]
        )
        assert (asked, len(packing.kept)) == ([0], 1)
        dropped = packing.dropped[0]
        assert ("budget", 1, 0) == (
            dropped.reason,
            dropped.needed_tokens,
            dropped.available_tokens,
        )
        assert "it needs at least 1 token, and 0 of 5 were left" in packing.explain(1)
        asked.clear()
        stop = Packer(
            *(6,), counter="words", template=Template(write), ranking="input", overflow="stop"
        )
        stop.pack("", [{"text": "a b c d", "n": 0}, {"text": "f g h", "n": 1}, *ROWS])
        assert asked == [0, 1]


@on_both
def test_what_a_template_writes_is_dropped_if_empty(name):
    """A chunk for which nothing is written is dropped as empty, and says so."""
    with using(name):
        packing = pack("tea", ["a", "tea"], 9, template=Template(lambda text: text[1:]))
        assert ("ea", ["empty"]) == (packing.text, [one.reason for one in packing.dropped])
        said = packing.explain(0)
    assert said.endswith("its text is empty, or what the template writes for it.")


@on_both
@pytest.mark.parametrize(
    ("value", "shown"), [(None, "None"), (b"tea", "bytes"), (3, "int")], ids=str
)
@pytest.mark.parametrize("in_corpus", [False, True])
def test_a_function_must_return_a_str(name, value, shown, in_corpus):
    """Anything else than a str is an error that names the chunk; a subclass is read as it is."""
    chunks = ["rye", "bread", "tea"]
    with using(name):
        batch = Corpus(chunks) if in_corpus else chunks
        template = Template(lambda text: value if text == "tea" else text)
        with pytest.raises(InvalidArgumentError) as caught:
            Packer(9, template=template, ranking="input").pack("tea", batch)
        assert f"template must return a str for chunks[2], not {shown}" == str(caught.value)
        assert pack("tea", ["tea"], 9, template=Template(Liar)).text == "tea"


@on_both
def test_exceptions_pass(name):
    """What the function raises reaches the caller unchanged."""
    error = KeyError("no such field")

    def write(_):
        raise error

    with using(name), pytest.raises(KeyError) as caught:
        pack("tea", ["tea"], 9, template=Template(write))
    assert error is caught.value


@on_both
def test_sticky_order(name):
    """The text begins as the previous one does, as far as the same chunks are kept."""
    template = Template(lambda row: f"* {row['text']}", separator="\n", header="Read:\n")
    with using(name):
        packer = Packer(90, template=template, order="sticky")
        first = packer.pack("green tea", ROWS)
        second = packer.pack("rye bread", ROWS[::-1], previous=first)
        assert first.text == second.text
        assert second.stable_prefix_tokens == first.total_tokens


@on_both
def test_everywhere_a_packer_is_called(name):
    """A batch, a coroutine, a preset that cites or gates, and a pickled packer pack alike."""
    template = Template(_shout)
    with using(name):
        packer = Packer(30, template=template)
        expected = packer.pack("tea", ["green tea", "rye"])
        assert expected.text == "GREEN TEA\n\nRYE"
        assert [expected.text] == [
            one.text for one in packer.pack_batch([("tea", ["green tea", "rye"])], workers=2)
        ]
        assert asyncio.run(packer.apack("tea", ["green tea", "rye"])).text == expected.text
        assert pickle.loads(pickle.dumps(packer)).pack("tea", ["green tea"]).text == "GREEN TEA"
        back = pickle.loads(pickle.dumps(expected))
        assert (back.to_dict(), back.kept[0].chunk) == (expected.to_dict(), "GREEN TEA")
        cited = replace(presets.agentic_rag(90), template=template, notice=None)
        packing = cited.pack("tea", [Chunk("green tea", source="a.md")])
        assert ("GREEN TEA", 3) == (packing.text, packing.kept[0].token_count)
        gate = replace(presets.context_gate(90), template=template)
        assert gate.pack("tea", ["green tea"]).text == "GREEN TEA"
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(Packer(9, template=Template(lambda text: text)))


def _shout(text):
    return (text if isinstance(text, str) else text.text).upper()


def test_packing_with_a_function_is_not_quick():
    """A coroutine lets a function of the caller's run in a thread, for more than a little text."""
    from budgeteer._pack.call import begun

    plain, written = (
        begun(prepared(Packer(9, template=template)), "tea", ["tea"] * 20)
        for template in ("plain", Template(_shout))
    )
    assert (True, False) == (plain.is_quick(9), written.is_quick(9))


BAD = [
    (lambda: Template(3), "format must be a str or a function from a chunk to a str, not int"),
    (lambda: Template(_shout, nonce=True), "nonce must be left out with format=a function"),
    (lambda: Template(_shout, nonce="seed"), "nonce must be left out with format=a function"),
    (lambda: Template(_shout, separator=3), "separator must be a str, not int"),
    (
        lambda: Packer(9, template=Template(_shout), overflow="truncate_end"),
        "overflow must be 'skip' or 'stop' where template is a function, .* not 'truncate_end'",
    ),
    (
        lambda: Packer(9, template=Template(_shout), units="sentence"),
        "units must be 'chunk' where template is a function, .* not 'sentence'",
    ),
    (
        lambda: replace(presets.context_router(9), template=Template(_shout)),
        "template must be a name or a format string in this preset, .* not a function",
    ),
    (lambda: parse_context("TEA", Template(_shout)), "template must be one of .* nor a function"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_input(call, message):
    """What a function cannot do is an error that names the argument and what is allowed."""
    with pytest.raises(InvalidArgumentError, match=message):
        call()


FIELDS = {"file_name": "handbook_2024.md", "section": "Leave and absence", "page_label": "12"}


def _documents():
    words = [
        "leave",
        "request",
        "manager",
        "office",
        "days",
        "year",
        "policy",
        "remote",
        "a",
        "to",
    ]
    texts = [" ".join(words[(i * j + j) % 10] for j in range(40)) for i in range(1, 13)]
    return [SimpleNamespace(page_content=text, metadata=dict(FIELDS)) for text in texts]


def _langchain(documents):
    prompts = pytest.importorskip("langchain_core.prompts")
    schema = pytest.importorskip("langchain_core.documents")
    shown = prompts.PromptTemplate.from_template(
        "Source: {file_name}, {section}, page {page_label}\n{page_content}"
    )
    found = [schema.Document(page_content=d.page_content, metadata=d.metadata) for d in documents]
    return found, lambda document: prompts.format_document(document, shown)


def _jinja(documents):
    jinja = pytest.importorskip("jinja2")
    shown = jinja.Template(
        "{% for k, v in d.metadata.items() %}{{ k }}: {{ v }}\n{% endfor %}\n{{ d.page_content }}"
    )
    return documents, lambda document: shown.render(d=document)


def _llama_index(documents):
    schema = pytest.importorskip("llama_index.core.schema")
    nodes = [schema.TextNode(text=d.page_content, metadata=d.metadata) for d in documents]
    return nodes, lambda node: node.get_content(schema.MetadataMode.LLM)


@pytest.mark.parametrize("framework", [_langchain, _jinja, _llama_index])
def test_what_a_framework_writes_is_within_the_budget(framework):
    """Rendered after plain packing a framework's text overruns; as a template it never does."""
    documents, write = framework(_documents())
    counter = get_counter("o200k_base")
    before = pack("leave policy", documents, 400)
    assert counter.count("\n\n".join(write(kept.chunk) for kept in before.kept)) > 400
    packing = pack("leave policy", documents, 400, template=Template(write))
    assert packing.text == "\n\n".join(write(kept.chunk) for kept in packing.kept)
    assert 330 <= counter.count(packing.text) == packing.total_tokens <= 400
