"""The context gate: what seed 004 fixes, and what holds for every input, on both backends."""

import io
import json
import math
import pickle
from collections import UserDict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    BACKENDS,
    counters,
    odd_texts,
    on_both,
    options,
    options_of,
    outcome,
    plain_texts,
    texts,
    using,
)

from budgeteer import Chunk, InvalidArgumentError, get_counter
from budgeteer._codes import GATE
from budgeteer.cli import main
from budgeteer.presets import context_gate, gate_bundle
from budgeteer.ranking import Hybrid, keyword_scores

EXAMPLE = Path(__file__).parents[3] / "examples/bundle.json"
BUNDLE = json.loads(EXAMPLE.read_text("utf-8"))

DEFAULT_OUTPUT = """\
[system:sys] You are a focused retrieval assistant. Always cite sources.
[task:task] Answer the user's question based only on retrieved documents.
[message:user] What is the capital of France?
[document:doc1] The capital of France is Paris. It is known for the Eiffel Tower.
[document:doc2] France uses the Euro as its currency. The capital city is Paris.

Admitted: 5  Excluded: 1
- doc3 (out_of_scope)
"""
REDUCED_OUTPUT = """\
[system:sys] You are a focused retrieval assistant. Always cite sources.
[task:task] Answer the user's question based only on retrieved documents.

Admitted: 2  Excluded: 4
- doc3 (out_of_scope)
- user (budget)
- doc1 (budget)
- doc2 (budget)
"""

AUTHORITY = {"system": 1000, "developer": 800, "user": 600, "tool": 400, "other": 200}
KIND = {"system": 120, "task": 100, "message": 60, "document": 50, "tool_output": 40, "other": 10}


def artifact(name, kind="document", authority="tool", priority=0, content="tea"):
    return {
        "id": name,
        "kind": kind,
        "authority": authority,
        "priority": priority,
        "content": content,
    }


USER = artifact("user", "message", "user", content="What is green tea?")


def gated(*artifacts, **options):
    """Return the ids that a bundle's gate admits, and those it excludes with their reasons."""
    packing = gate_bundle({"artifacts": artifacts}, **options)
    return (
        [kept.chunk["id"] for kept in packing.kept],
        [(dropped.chunk["id"], dropped.reason) for dropped in packing.dropped],
    )


def documents_code(artifacts, budget_tokens, max_docs):
    """Do what the document's printed code does, a cost being what is added to the text."""
    user_q = next((a["content"] for a in artifacts if a["kind"] == "message"), "")
    admitted, excluded, filtered = [], [], []
    for a in artifacts:
        if a["kind"] == "document" and keyword_scores(user_q, [a["content"]])[0] == 0:
            excluded.append((a["id"], "out_of_scope"))
            continue
        filtered.append(a)
    ranked = sorted(
        filtered,
        key=lambda a: AUTHORITY.get(a["authority"], 0) + KIND.get(a["kind"], 0) + a["priority"],
        reverse=True,
    )
    text = ""
    doc_count = 0
    for a in ranked:
        if not a["content"]:
            excluded.append((a["id"], "empty"))
            continue
        if a["kind"] == "document":
            doc_count += 1
            if doc_count > max_docs:
                excluded.append((a["id"], "cap"))
                continue
        longer = f"{text}\n" if admitted else ""
        longer += f"[{a['kind']}:{a['id']}] {a['content']}"
        if math.ceil(len(longer) / 3) > budget_tokens:
            excluded.append((a["id"], "budget"))
            continue
        admitted.append(a["id"])
        text = longer
    return admitted, excluded, text


@pytest.fixture
def run(capsys):
    """Run the command line; return status, output and errors."""

    def run(*arguments):
        status = main(list(map(str, arguments)))
        return (status, *capsys.readouterr())

    return run


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], DEFAULT_OUTPUT),
        (["--budget-tokens", 120], DEFAULT_OUTPUT),
        (["--budget-tokens", 60], REDUCED_OUTPUT),
    ],
)
def test_outputs_of_the_document(backend, run, options, expected):
    """The bundle gives the two printed outputs, to the byte."""
    assert (0, expected, "") == run("gate", EXAMPLE, *options)


def test_example_is_the_documents():
    """The shipped bundle has the document's six artifacts."""
    assert ["sys", "task", "doc1", "doc2", "doc3", "user"] == [
        artifact["id"] for artifact in BUNDLE["artifacts"]
    ]


def test_total_tokens(backend):
    """A third of the assembled text's characters, labels and line ends included."""
    packing = gate_bundle(BUNDLE)

    assert (119, 120, False) == (packing.total_tokens, packing.budget_tokens, packing.is_exact)
    assert math.ceil(len(packing.text) / 3) == packing.total_tokens


def test_scenario_1_irrelevant_documents(backend):
    """Documents that share no keyword with the question are filtered out, titles or not."""
    related = artifact("related", content="Green leaves.")
    titled = {**artifact("titled", content="Rye bread."), "title": "Green tea"}
    tool = artifact("tool", "tool_output", content="Rye bread.")

    assert (["user", "related", "tool"], [("titled", "out_of_scope")]) == gated(
        titled, related, tool, USER
    )


def test_scenario_2_budget_overrun(backend):
    """What does not fit is dropped, and a smaller one behind it may still enter."""
    long = artifact("long", priority=5, content="tea " * 100)
    short = artifact("short", priority=1, content="Green tea.")

    assert (["user", "short"], [("long", "budget")]) == gated(long, short, USER, budget_tokens=40)


def test_scenario_3_loss_of_control(backend):
    """System and task come first, however many documents there are and wherever they stand."""
    documents = [artifact(f"d{i}", priority=9, content=f"Tea {i}.") for i in range(50)]
    bundle = [
        *documents,
        USER,
        artifact("task", "task", "developer", content="Answer."),
        artifact("sys", "system", "system", content="Be brief."),
    ]
    admitted, excluded = gated(*bundle)

    assert ["sys", "task", "user", "d0", "d1", "d2"] == admitted
    assert [("cap")] * 47 == [reason for _, reason in excluded]


def test_scenario_4_document_overload(backend):
    """A hard cap on documents, whatever else there is; it spares what is no document."""
    documents = [artifact(f"d{i}", priority=-i) for i in range(12)]
    others = [artifact(f"t{i}", "tool_output") for i in range(5)]
    admitted, excluded = gated(*documents, *others, USER, budget_tokens=999, max_docs=2)

    assert ["user", "d0", "d1", "t0", "t1", "t2", "t3", "t4"] == admitted
    assert [(f"d{i}", "cap") for i in range(2, 12)] == excluded


def test_cap_counts_considered_documents(backend):
    """A document that then misses the budget has used the cap up."""
    long = artifact("long", priority=5, content="tea " * 100)

    assert (["user"], [("long", "budget"), ("short", "cap")]) == gated(
        long, artifact("short"), USER, max_docs=1
    )
    assert (["user"], [("short", "cap")]) == gated(artifact("short"), USER, max_docs=0)


def test_order_of_the_questions(backend):
    """Out of scope first, in input order; then by rank empty, cap and budget."""
    bundle = [
        artifact("empty", "tool_output", content=""),
        artifact("last", priority=-1),
        artifact("blank", content=""),
        artifact("first", priority=1),
        artifact("far", content="Rye."),
        USER,
    ]

    assert (
        ["user", "first"],
        [("blank", "out_of_scope"), ("far", "out_of_scope"), ("last", "cap"), ("empty", "empty")],
    ) == gated(*bundle, max_docs=1)


@pytest.mark.parametrize("message", [[], [artifact("user", "message", "user", content="")]])
def test_without_a_question(backend, message):
    """Without a message, or with an empty one, every document is out of scope."""
    _, excluded = gated(artifact("a"), *message, artifact("b", content=""))

    assert [("a", "out_of_scope"), ("b", "out_of_scope")] == excluded[:2]


def test_first_message_asks(backend):
    """The question is the first message in the input, whatever its rank, kept or not."""
    second = artifact("second", "message", "system", 99, content="Rye bread?")

    assert (["second", "user", "a"], []) == gated(USER, second, artifact("a"))
    assert (["user", "second"], [("a", "out_of_scope")]) == gated(
        artifact("user", "message", "system", 100, "Rye bread?"), second, artifact("a")
    )


@pytest.mark.parametrize("field", ["kind", "authority"])
def test_unknown_kinds_and_authorities(backend, field):
    """They weigh nothing, like none at all, and are no error."""
    known = artifact("known", "other", "other", -209)
    unknown = {**artifact("unknown", "other", "other"), field: "nobody"}
    unknown["priority"] = -(AUTHORITY["other"] if field == "kind" else KIND["other"])

    assert ["known", "unknown"] == gated(unknown, known)[0]


def test_ties_keep_the_input_order(backend):
    """What weighs the same stands as it came; -0.0 is 0."""
    bundle = [
        artifact(f"a{i}", "other", "tool", priority) for i, priority in enumerate([0.0, -0.0])
    ]

    assert ["a0", "a1"] == gated(*bundle)[0]


def test_priorities_may_be_any_number(backend):
    """Fractions, negative numbers and infinities order as numbers do."""
    priorities = [0.5, -math.inf, 1, math.inf, -3]
    bundle = [artifact(f"a{i}", "other", "x", p) for i, p in enumerate(priorities)]

    assert ["a3", "a2", "a0", "a4", "a1"] == gated(*bundle)[0]


def test_empty_bundle(backend, run, tmp_path):
    """Nothing in, nothing out."""
    assert ([], []) == gated()
    path = tmp_path / "bundle.json"
    path.write_text('{"artifacts": []}', "utf-8")
    assert (0, "Admitted: 0  Excluded: 0\n", "") == run("gate", path)


@pytest.mark.parametrize(
    ("bundle", "message"),
    [
        ([], "bundle must be a mapping, not list"),
        (None, "bundle must be a mapping, not None"),
        ({}, "bundle must have a key 'artifacts'"),
        ({"artifacts": {}}, "bundle['artifacts'] must be a list, not dict"),
        ({"artifacts": "x"}, "bundle['artifacts'] must be a list, not str"),
        ({"artifacts": [USER, "x"]}, "bundle['artifacts'][1] must be a mapping, not str"),
        ({"artifacts": [{"id": "a"}]}, "bundle['artifacts'][0] must have a key 'content'"),
        ({"artifacts": [{"content": "a"}]}, "bundle['artifacts'][0] must have a key 'id'"),
        (
            {"artifacts": [{**USER, "content": None}]},
            "bundle['artifacts'][0]['content'] must be a str, not None",
        ),
        (
            {"artifacts": [{**USER, "content": ["a"]}]},
            "bundle['artifacts'][0]['content'] must be a str, not list",
        ),
        (
            {"artifacts": [{**USER, "id": 3}]},
            "bundle['artifacts'][0]['id'] must be a str, not int",
        ),
        (
            {"artifacts": [{**USER, "kind": 3}]},
            "bundle['artifacts'][0]['kind'] must be a str, not int",
        ),
        (
            {"artifacts": [{**USER, "authority": []}]},
            "bundle['artifacts'][0]['authority'] must be a str, not list",
        ),
        (
            {"artifacts": [{**USER, "title": 3}]},
            "bundle['artifacts'][0]['title'] must be a str, not int",
        ),
        (
            {"artifacts": [{**USER, "priority": "high"}]},
            "bundle['artifacts'][0]['priority'] must be a float, not str",
        ),
        (
            {"artifacts": [{**USER, "priority": math.nan}]},
            "bundle['artifacts'][0]['priority'] must be a number, not NaN",
        ),
        (
            {"artifacts": [{**USER, "text": "another"}]},
            "bundle['artifacts'][0] must not have a key 'text' beside 'content'",
        ),
        (
            {"artifacts": [USER, artifact("a"), {**artifact("user")}]},
            "bundle['artifacts'][2]['id'] must not be that of another artifact, but is that of 0",
        ),
    ],
)
def test_malformed_bundles(backend, bundle, message):
    """A malformed bundle is an error that says where."""
    with pytest.raises(InvalidArgumentError) as error:
        gate_bundle(bundle)
    assert message == str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: gate_bundle(BUNDLE, -1),
            "budget_tokens must be from 0 to 9223372036854775807, not -1",
        ),
        (lambda: gate_bundle(BUNDLE, 60, "3"), "max_docs must be an int, not str"),
        (lambda: context_gate(max_docs=None), "max_docs must be an int, not None"),
        (lambda: context_gate(1.5), "max_tokens must be an int, not float"),
        (
            lambda: context_gate().pack("", [Chunk("a"), Chunk("b", metadata={"kind": 3})]),
            "chunks[1].kind must be a str, not int",
        ),
        (
            lambda: context_gate().pack("", [{"text": "a", "authority": b"x"}]),
            "chunks[0].authority must be a str, not bytes",
        ),
        (
            lambda: context_gate().pack("", [{"text": "a", "priority": math.nan}]),
            "chunks[0].priority must be a number, not NaN",
        ),
    ],
)
def test_bad_arguments(backend, call, message):
    """A bad argument is an error that names it."""
    with pytest.raises(InvalidArgumentError) as error:
        call()
    assert message == str(error.value)


def test_any_chunks(backend):
    """Kind, authority and priority are metadata, or keys of the mapping; strings are documents."""
    chunks = [
        "Green tea is mild.",
        Chunk("Be brief.", id="sys", metadata={"kind": "system", "authority": "system"}),
        SimpleNamespace(page_content="Oolong tea.", metadata={"priority": 7}),
        UserDict({"content": "Why tea?", "kind": "message", "authority": "user", "id": "u"}),
        {"text": "Tea log.", "kind": "x", "metadata": {"kind": "tool_output"}, "id": "t"},
        Chunk("Rye bread."),
    ]
    packing = context_gate().pack("", chunks)

    assert (
        "[system:sys] Be brief.\n[message:u] Why tea?\n[document:2] Oolong tea.\n"
        "[document:0] Green tea is mild.\n[tool_output:t] Tea log."
    ) == packing.text
    assert [0.0, 1.0, 0.5, 0.5, 0.5] == [kept.score for kept in packing.kept]


def test_query_asks_where_there_is_no_message(backend):
    """The query of pack is the question of chunks that have no message among them."""
    packer = context_gate()
    chunks = ["Green tea is mild.", "Rye bread."]

    assert ["Rye bread."] == [kept.text for kept in packer.pack("bread", chunks).kept]
    chunks.append({"text": "tea?", "kind": "message"})
    assert [0, 2] == sorted(kept.index for kept in packer.pack("bread", chunks).kept)


def test_explain(backend):
    """What the gate does is said in words."""
    packing = gate_bundle(
        {"artifacts": [artifact("a", content="Rye."), artifact("b"), USER]}, 99, 0
    )

    assert [
        "Chunk 0 (score 0.00) was dropped: it shares no keyword with the question.",
        "Chunk 1 (score 0.50) was dropped: 0 documents had been considered before it.",
        "Chunk 2 (score 1.00) was kept with 6 tokens, characters 15 to 33 of the text.",
    ] == [packing.explain(i) for i in range(3)]


def test_options_of_a_copy_are_explained(backend):
    """A copy with a least score or a most of chunks says so, and not what the gate does."""
    copy = replace(context_gate(), min_score=0.9).pack("green tea", ["green bread", "rye"])
    assert [copy.explain(i) for i in range(2)] == [
        "Chunk 0 (score 0.50) was dropped: its score is below min_score.",
        "Chunk 1 (score 0.00) was dropped: it shares no keyword with the question.",
    ]
    copy = replace(context_gate(), max_chunks=1).pack("green tea", ["green tea", "green tea leaf"])
    assert copy.explain(1) == (
        "Chunk 1 (score 1.00) was dropped: max_chunks was reached with 1 chunk kept."
    )


def test_every_option_is_fixed():
    """The preset says each option of Packer, so that changed defaults change none."""
    assert context_gate() == context_gate(120, max_docs=3)
    packer = context_gate(9, max_docs=4)
    assert {
        "max_tokens": 9,
        "reserve_tokens": 0,
        "counter": "chars_per_token:3",
        "ranking": "input",
        "min_score": None,
        "overflow": "skip",
        "max_chunks": None,
        "dedupe": None,
        "selection": "rank",
        "units": "chunk",
        "order": "rank",
        "template": "tagged",
        "notice": None,
        "max_docs": 4,
    } == options_of(packer)
    assert (GATE, 4) == packer._policy
    assert packer != context_gate(9)


def test_packer_of_a_gate(backend):
    """It is frozen and picklable, and its budget may be had for a call."""
    packer = pickle.loads(pickle.dumps(context_gate()))

    assert context_gate() == packer
    with pytest.raises(AttributeError):
        packer.max_tokens = 3
    assert (
        gate_bundle(BUNDLE, 60).to_dict()
        == packer.pack("", BUNDLE["artifacts"], max_tokens=60).to_dict()
    )
    packing = pickle.loads(pickle.dumps(packer.pack("", BUNDLE["artifacts"])))
    assert packing.explain(4).endswith("it shares no keyword with the question.")


def test_json_output(run):
    """As JSON, the command says the same."""
    status, out, err = run("gate", EXAMPLE, "-o", "json", "--max-docs", 1)
    answer = json.loads(out)

    assert (0, "") == (status, err)
    assert ["sys", "task", "user", "doc1"] == answer["admitted"]
    assert [
        {"id": "doc3", "reason": "out_of_scope"},
        {"id": "doc2", "reason": "doc_cap"},
    ] == answer["excluded"]
    assert gate_bundle(BUNDLE, max_docs=1).text == answer["text"]


def test_cap_is_spelt_as_in_the_document(run):
    """The command prints doc_cap, and an id on one line."""
    status, out, _ = run("gate", EXAMPLE, "--max-docs", 1)

    assert 0 == status
    assert out.endswith("Admitted: 4  Excluded: 2\n- doc3 (out_of_scope)\n- doc2 (doc_cap)\n")


def test_standard_input(run, monkeypatch):
    """A bundle may come from standard input; what cannot be printed on a line is escaped."""
    bundle = {"artifacts": [artifact("a\nb")]}
    stdin = SimpleNamespace(buffer=io.BytesIO(json.dumps(bundle).encode()))
    monkeypatch.setattr("sys.stdin", stdin)

    assert (0, "Admitted: 0  Excluded: 1\n- a\\nb (out_of_scope)\n", "") == run("gate", "-")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("{", [], "bundle.json"),
        ("[]", [], "bundle must be a mapping, not list"),
        ('{"artifacts": [{"id": "a"}]}', [], "bundle['artifacts'][0] must have a key 'content'"),
        ('{"artifacts": []}', ["--budget-tokens", "-1"], "budget_tokens must be from 0"),
        ('{"artifacts": []}', ["--budget-tokens", "x"], "must be a whole number from 0 to"),
    ],
)
def test_refusals(run, tmp_path, content, options, message):
    """An error is one line on standard error, and status 2."""
    path = tmp_path / "bundle.json"
    path.write_text(content, "utf-8")
    status, out, err = run("gate", path, *options)

    assert (2, "", 1) == (status, out, len(err.splitlines()))
    assert message in err


def test_missing_file(run, tmp_path):
    """A file that is not there is an error."""
    status, out, err = run("gate", tmp_path / "none.json")

    assert (2, "") == (status, out)
    assert "none.json" in err


bundles = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["document", "document", "message", *KIND, "unknown"]),
            "authority": st.sampled_from([*AUTHORITY, "unknown"]),
            "priority": st.integers(-50, 50) | st.sampled_from([0.5, -0.0, 400, math.inf]),
            # What looks like a label is escaped, which the document's code does not do.
            "content": (texts | plain_texts | odd_texts).map(lambda text: text.replace("[", "(")),
        }
    ),
    max_size=8,
).map(lambda artifacts: [{"id": f"a{i}", **artifact} for i, artifact in enumerate(artifacts)])


@on_both
@given(bundles, st.integers(0, 60) | st.just(10**9), st.integers(0, 4))
def test_gate_is_the_documents_code(name, bundle, budget, max_docs):
    """Admitted, excluded and the text are those of the document's printed code."""
    with using(name):
        packing = gate_bundle({"artifacts": bundle}, budget, max_docs)
        admitted, excluded = gated(*bundle, budget_tokens=budget, max_docs=max_docs)

        assert documents_code(bundle, budget, max_docs) == (admitted, excluded, packing.text)
        assert packing.total_tokens == math.ceil(len(packing.text) / 3) <= budget


gated_chunks = st.lists(
    texts
    | st.builds(
        Chunk,
        texts,
        title=texts,
        metadata=st.fixed_dictionaries(
            {},
            optional={
                "kind": st.sampled_from([*KIND, "unknown", "\ud800"]),
                "authority": st.sampled_from([*AUTHORITY, "unknown", "\udfff"]),
                "priority": st.integers(-5, 5) | st.floats(allow_nan=False),
            },
        ),
    ),
    max_size=8,
)


@on_both
@given(gated_chunks, counters, st.integers(0, 60), st.integers(0, 4))
def test_law(name, chunks, counter, max_tokens, max_docs):
    """Under any counter the text is within the budget, and each chunk is answered once."""
    packer = replace(context_gate(max_tokens, max_docs=max_docs), counter=counter)
    with using(name):
        packing = packer.pack("green tea", chunks)
        count = get_counter(counter).count

        assert (count(packing.text) if packing.kept else 0) == packing.total_tokens <= max_tokens
        answered = [item.index for item in [*packing.kept, *packing.dropped]]
        assert list(range(len(chunks))) == sorted(answered)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_docs": -1}, "max_docs must be from 0"),
        ({"max_docs": None}, "max_docs must be an int, not None"),
        ({"ranking": "bm25"}, "ranking must be 'input' in a context_gate, .* not 'bm25'"),
        ({"ranking": Hybrid()}, "ranking must be 'input' in a context_gate, .* not an object"),
    ],
)
def test_copies_are_checked(changed, message):
    """A copy takes no ranking, and as few documents as the preset."""
    with pytest.raises(InvalidArgumentError, match=message):
        replace(context_gate(), **changed)


@pytest.mark.skipif(len(BACKENDS) < 2, reason="BUDGETEER_BACKEND=reference was asked for")
@given(gated_chunks, counters, st.integers(0, 60), st.integers(0, 4), options)
def test_identity(chunks, counter, max_tokens, max_docs, options):
    """Both backends gate alike, whatever other options a packer has."""
    packer = context_gate(max_tokens, max_docs=max_docs)
    packer = replace(packer, counter=counter, **{**options, "ranking": "input"})
    answers = []
    for name in BACKENDS:
        with using(name):
            answers.append(outcome(lambda: packer.pack("green tea", chunks).to_dict()))

    assert answers[0] == answers[1]
