"""Packing: the laws hold for every input and every counter, on both backends."""

import json
import pickle
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import (
    END_MARKER,
    EXACT,
    FORMULAS,
    KNOWN_CLUSTERS,
    MIDDLE_MARKER,
    Pure,
    Recorder,
    budgets,
    chunk_lists,
    counters,
    exact_counters,
    formula_counters,
    long_texts,
    meeting_texts,
    notices,
    odd_texts,
    on_both,
    options,
    orders,
    pure_counters,
    queries,
    tag_of,
    templates,
    text_of,
    texts,
    using,
)

from budgeteer import (
    CounterError,
    InvalidArgumentError,
    Packer,
    Template,
    get_counter,
    pack,
    parse_context,
)
from budgeteer._pack.template import STYLES
from budgeteer.ranking import Lexical


@dataclass
class Call:
    """The arguments of a call of pack."""

    query: str
    chunks: list
    max_tokens: int
    counter: object = "chars_div4"
    options: dict = field(default_factory=dict)

    def __call__(self, **changed):
        return pack(
            self.query,
            self.chunks,
            self.max_tokens,
            **{"counter": self.counter, **self.options, **changed},
        )


calls = st.builds(Call, queries, chunk_lists(), budgets, counters, options)
formula_calls = st.builds(Call, queries, chunk_lists(), budgets, formula_counters, options)
pure_calls = st.builds(Call, queries, chunk_lists(), st.integers(0, 30), pure_counters, options)
cutting_calls = st.builds(
    Call,
    st.just(""),
    chunk_lists(long_texts | texts, max_size=4),
    st.integers(5, 40),
    counters,
    st.fixed_dictionaries(
        {"overflow": st.sampled_from(["truncate_end", "truncate_middle"])},
        optional={"order": orders, "template": templates, "notice": notices},
    ),
)
exact_calls = st.builds(
    Call, queries, chunk_lists(meeting_texts | texts), st.integers(0, 60), exact_counters, options
)
any_call = st.one_of(calls, formula_calls, pure_calls, exact_calls, cutting_calls)


@on_both
@given(call=any_call)
def test_the_text_fits(name, call):
    """total_tokens is what the counter answers for exactly the text, and within the budget."""
    with using(name):
        packing = call()
        counted = get_counter(call.counter).count(packing.text) if packing.text else 0

    assert counted == packing.total_tokens
    assert packing.total_tokens <= packing.budget_tokens
    assert max(0, call.max_tokens - call.options.get("reserve_tokens", 0)) == packing.budget_tokens


@on_both
@given(call=any_call)
def test_a_kept_chunks_tokens(name, call):
    """token_count is what the counter answers for the text of the chunk alone, as it was kept."""
    with using(name):
        packing = call()
        counter = get_counter(call.counter)
        expected = [counter.count(kept.text) for kept in packing.kept]

    assert expected == [kept.token_count for kept in packing.kept]


@on_both
@given(call=exact_calls)
def test_what_is_remembered_changes_nothing(name, call):
    """A packing is the same with all counts remembered, with none, and by a counter without."""
    with using(name):
        counter = get_counter(call.counter)
        counter.clear_cache()
        answers = [call().to_dict() for _ in range(2)]
        answers.append(call(counter=get_counter(call.counter, cache=False)).to_dict())

    assert [answers[0]] * 3 == answers


@on_both
@given(call=exact_calls)
def test_one_chunk_that_fits_is_kept(name, call):
    """Under an exact counter a chunk whose tokens are the whole budget is kept."""
    with using(name):
        counter = get_counter(call.counter)
        for chunk in call.chunks:
            text = text_of(chunk)
            packing = pack("", [chunk], counter.count(text), counter=counter)
            assert (text, [] if text else ["empty"]) == (
                packing.text,
                [dropped.reason for dropped in packing.dropped],
            )


@on_both
@given(call=any_call)
def test_every_chunk_is_answered_once(name, call):
    """Each index is either kept or dropped, once."""
    with using(name):
        packing = call()

    indices = [chunk.index for chunk in (*packing.kept, *packing.dropped)]
    assert list(range(len(call.chunks))) == sorted(indices)
    for chunk in (*packing.kept, *packing.dropped):
        assert chunk.chunk is call.chunks[chunk.index]


@on_both
@given(call=any_call)
def test_same_input_same_output(name, call):
    """The same input gives the same output."""
    with using(name):
        assert call().to_dict() == call().to_dict()


@on_both
@given(call=any_call)
def test_the_text_is_the_kept_texts(name, call):
    """The text is header, kept texts in their frames, notice and footer; spans point at them."""
    with using(name):
        packing = call()

    template = call.options.get("template", "plain")
    template = Template(template) if isinstance(template, str) else template
    if not packing.kept:
        assert packing.text == ""
        return
    if template.format in STYLES[1:]:
        found = [chunk.text for chunk in parse_context(packing.text, template)]
        assert [kept.text for kept in packing.kept] == found
        return
    layout = "{text}" if template.format == "plain" else template.format
    frames = [
        layout.format(text=kept.text, index=kept.index, **tag_of(kept.chunk, kept.index))
        for kept in packing.kept
    ]
    notice = call.options.get("notice")
    notice = "Chunks left out: {count}." if notice is True else notice
    separator = "\n\n" if template.separator is None else template.separator
    expected = [template.header + separator.join(frames) + template.footer]
    if packing.dropped and notice:
        frames.append(notice.replace("{count}", str(packing.dropped_count)))
        expected.append(template.header + separator.join(frames) + template.footer)
    assert packing.text in expected
    for kept in packing.kept:
        assert kept.text == packing.text[slice(*kept.span)]


@on_both
@given(call=any_call, notice=st.sampled_from([True, "{count}", "tea " * 9 + "{count}"]))
def test_the_notice_never_costs_the_best_chunk(name, call, notice):
    """The best chunk that fits by itself is kept with a notice too, whole if it fits whole."""
    most = call.options.get("max_chunks")
    with using(name):
        without = {"notice": None, "max_chunks": 1 if most is None else min(1, most)}
        alone = call(order="rank", **without)
        packing = call(order="rank", notice=notice)

    for best in alone.kept:
        kept = packing.kept[0]
        assert (best.index, kept.was_cut) == (kept.index, best.was_cut)
        assert best.was_cut or best.text == kept.text


@on_both
@given(call=any_call)
def test_kept_in_the_order_asked_for(name, call):
    """
    Kept chunks stand by (-score, index), in input order, by document, or best at the edges.

    Coverage has an order of its own, by which chunks are admitted.
    """
    with using(name):
        packing = call()

    kept = [*packing.kept]
    order = call.options.get("order", "rank")
    if order == "edges":
        half = (len(kept) + 1) // 2
        front, back = kept[:half], kept[half:][::-1]
        kept = [pair for pairs in zip_longest(front, back) for pair in pairs if pair is not None]
    found = [one.index for one in kept]
    ranking = call.options.get("ranking", "lexical")
    if order == "document":
        sources = [tag_of(one.chunk, one.index)["source"] for one in kept]
        assert len({*sources}) == len([*groupby(sources)])
        firsts = [
            min(i for s, i in zip(sources, found, strict=True) if s == one) for one in sources
        ]
        assert sorted(firsts) == firsts
    elif order == "input":
        assert sorted(found) == found
    elif call.options.get("selection") == "coverage":
        assert len({*found}) == len(found)
    elif ranking == "input":
        assert sorted(found) == found
    elif ranking in ("lexical", "bm25", "keyword") or isinstance(ranking, Lexical):
        keys = [(-one.score, one.index) for one in kept]
        assert sorted(keys) == keys


@on_both
@given(call=any_call)
def test_a_kept_text_is_whole_or_cut(name, call):
    """A kept text is the chunk's, or a cut of it: one per packing, and marked."""
    with using(name):
        packing = call()

    overflow = call.options.get("overflow", "skip")
    cut = [kept for kept in packing.kept if kept.was_cut]
    assert len(cut) <= (1 if overflow.startswith("truncate") else 0)
    is_by_words = call.counter in ("words", "whitespace")
    for kept in packing.kept:
        if not kept.was_cut:
            assert text_of(kept.chunk) == kept.text
    for kept in cut:
        # The words that go may be shorter than the marker.
        assert len(kept.text) <= len(text_of(kept.chunk)) or is_by_words
        assert any(rest in kept.text for rest in (END_MARKER, MIDDLE_MARKER))


@on_both
@given(call=cutting_calls)
def test_a_cut_never_splits_a_grapheme_cluster(name, call):
    """A cut is a start, the marker and an end of the text, all of whole grapheme clusters."""
    with using(name) as backend:
        packing = call()

        for kept in packing.kept:
            if kept.was_cut:
                assert kept.text in _cuts(backend, text_of(kept.chunk), call.options["overflow"])


def _cuts(backend, text, overflow):
    """Return every cut that the contract allows."""
    places = backend.grapheme_boundaries(text)
    if overflow == "truncate_end":
        return {text[:place] + END_MARKER for place in places[1:]}
    return {
        text[:head] + MIDDLE_MARKER + text[tail:]
        for head in places
        for tail in places
        if head <= tail and (head, tail) != (0, len(text))
    }


@on_both
@given(
    clusters=st.lists(st.sampled_from(KNOWN_CLUSTERS), min_size=9, max_size=40),
    overflow=st.sampled_from(["truncate_end", "truncate_middle"]),
    counter=st.sampled_from([*FORMULAS, *EXACT, Pure("bytes", 1), Pure("hash", 30)]),
    max_tokens=st.integers(1, 80),
)
def test_known_clusters_stay_whole(name, clusters, overflow, counter, max_tokens):
    """Flags, families, Hangul, conjuncts, marks and CR LF are not split; no table is asked."""
    spaced = [cluster + "." for cluster in clusters]
    with using(name):
        packing = pack("", ["".join(spaced)], max_tokens, overflow=overflow, counter=counter)

    for kept in packing.kept:
        marker = END_MARKER if overflow == "truncate_end" else MIDDLE_MARKER
        head, _, tail = kept.text.partition(marker)
        allowed = [*clusters, "."]
        assert _is_made_of(head, allowed)
        assert _is_made_of(tail, allowed)


def _is_made_of(text, parts):
    """Return whether *text* is a row of *parts*."""
    reached = {0}
    for place in range(len(text)):
        if place in reached:
            reached |= {place + len(part) for part in parts if text.startswith(part, place)}
    return len(text) in reached


@on_both
@given(call=any_call)
@example(call=Call("", ["a", "b"], 10, Pure("only_joined", 40)))
def test_dropped_for_the_budget(name, call):
    """A chunk dropped for the budget needed more than was left, unless packing had stopped."""
    with using(name):
        packing = call()

    stopped = False
    for dropped in packing.dropped:
        if dropped.reason != "budget":
            assert (0, 0) == (dropped.needed_tokens, dropped.available_tokens)
        elif not stopped:
            assert dropped.needed_tokens > dropped.available_tokens >= 0
            stopped = call.options.get("overflow") == "stop"


@on_both
@given(call=any_call)
def test_dropped_total_tokens(name, call):
    """dropped_total_tokens is the sum of the counts of all dropped texts."""
    with using(name):
        packing = call()
        counter = get_counter(call.counter)
        expected = sum(counter.count(text_of(dropped.chunk)) for dropped in packing.dropped)

        assert expected == packing.dropped_total_tokens


@on_both
@given(call=any_call)
@example(call=Call("", ["aaaa", "bbbb", "bbbb"], 8, Pure("chars", 1)))
def test_a_duplicate_names_its_kept_twin(name, call):
    """duplicate_of is a kept chunk, with an equal text unless near ones are asked for."""
    with using(name):
        packing = call()
    is_near = call.options.get("dedupe") == "near"

    kept = {kept.index for kept in packing.kept}
    for dropped in packing.dropped:
        if dropped.reason == "duplicate":
            assert dropped.duplicate_of in kept
            twin = call.chunks[dropped.duplicate_of]
            assert is_near or text_of(twin) == text_of(dropped.chunk)
        else:
            assert dropped.duplicate_of is None


@on_both
@given(call=any_call)
def test_no_text_is_kept_twice(name, call):
    """Under dedupe="exact" no two kept chunks have the same text, and no kept text is empty."""
    with using(name):
        packing = call(dedupe="exact")

    kept = [text_of(kept.chunk) for kept in packing.kept]
    assert len(set(kept)) == len(kept)
    assert "" not in kept


@on_both
@given(call=any_call)
def test_limits(name, call):
    """No more than max_chunks are kept, and none that scores below min_score."""
    with using(name):
        packing = call()

    if call.options.get("max_chunks") is not None:
        assert len(packing.kept) <= call.options["max_chunks"]
    if call.options.get("min_score") is not None:
        for kept in packing.kept:
            assert kept.score is None or kept.score >= call.options["min_score"]


@on_both
@given(call=pure_calls)
def test_how_often_a_callable_is_asked(name, call):
    """
    A callable is asked once per chunk considered and once per assembling, never for "".

    What stands around all, and the notice, is asked for once. Near-duplicates are considered. A
    text that a notice had to leave is assembled once more.
    """
    if call.options.get("overflow", "skip").startswith("truncate"):
        call.options["overflow"] = "skip"
    recorder = Recorder(call.counter, [])
    with using(name):
        packing = call(counter=recorder)

    is_near = call.options.get("dedupe") == "near"
    reasons = ["budget", *["duplicate"] * is_near]
    considered = [
        chunk
        for chunk in (*packing.kept, *packing.dropped)
        if getattr(chunk, "reason", "budget") in reasons
    ]
    left = sum(dropped.reason == "budget" for dropped in packing.dropped)
    yields = call.options.get("notice") is not None and bool(packing.kept and packing.dropped)
    assert "" not in recorder.asked
    assert len(recorder.asked) <= len(considered) + 1 + left + 2 + yields


@on_both
@given(st.integers(1, 12).map(lambda n: [f"chunk {i}" for i in range(n)]))
def test_a_callable_that_adds_up_is_asked_once_each(name, chunks):
    """Where all fits, a callable is asked for each chunk and for the text, and no more."""
    recorder = Recorder(Pure("words", 1), [])
    with using(name):
        packing = pack("", chunks, 10**9, counter=recorder)

    assert [*chunks, packing.text] == recorder.asked


@on_both
def test_reading_a_packing_asks_nothing(name):
    """Nothing by default counts what packing did not count; dropped_total_tokens does."""
    recorder = Recorder(len, [])
    with using(name):
        packing = pack("", ["a", "b", "c"], 9, counter=recorder, max_chunks=1)
        before = len(recorder.asked)
        repr(packing)
        packing.to_dict()
        packing.explain(2)
        assert before == len(recorder.asked)
        assert 2 == packing.dropped_total_tokens == packing.dropped_total_tokens

    assert before + 2 == len(recorder.asked)


@on_both
@pytest.mark.parametrize("bad", [-1, 1.5, None, "3", True, 2**64, -(2**70), 2**63])
def test_what_is_no_count(name, bad):
    """What is no int from 0 on is a CounterError that names the chunk, and quotes no text."""
    with (
        using(name),
        pytest.raises(CounterError, match=r"chunks\[2\]") as caught,
    ):
        pack("", ["a", "b", "secret", "d"], 9, counter=lambda text: bad if text == "secret" else 1)

    assert "secret" not in str(caught.value)


@on_both
def test_what_is_no_count_of_the_text(name):
    """A bad count of the assembled text is a CounterError too."""
    with using(name), pytest.raises(CounterError, match="assembled text"):
        pack("", ["a", "b"], 9, counter=lambda text: -1 if "\n" in text else 1)


@on_both
def test_what_is_no_count_of_a_dropped_chunk(name):
    """A bad count met by dropped_total_tokens names the chunk by its own index."""
    with using(name):
        packing = pack("", ["a", "b"], 9, counter=lambda text: 1 - 2 * (text == "b"), max_chunks=1)
        with pytest.raises(CounterError, match=r"chunks\[1\]"):
            _ = packing.dropped_total_tokens


@on_both
@pytest.mark.parametrize("overflow", ["skip", "truncate_end"])
@pytest.mark.parametrize("raising", ["x" * 40, "a\n\nb", "a\n\nb\n\n"])
def test_the_callables_own_exception(name, overflow, raising):
    """A callable's own exception passes unchanged, wherever it is raised."""
    error = KeyError("mine")

    def counter(text):
        if text == raising:
            raise error
        return len(text)

    with using(name):
        try:
            pack("", ["a", "b", "x" * 40], 20, counter=counter, overflow=overflow)
        except KeyError as caught:
            assert error is caught  # noqa: PT017
        else:
            assert (overflow, raising) in [
                ("skip", "a\n\nb\n\n"),
                ("truncate_end", "a\n\nb"),
            ]


@on_both
@given(call=any_call)
def test_packer_pickles(name, call):
    """A packer comes back from pickling equal, and packs alike."""
    packer = Packer(call.max_tokens, counter=call.counter, **call.options)
    again = pickle.loads(pickle.dumps(packer))
    with using(name):
        one = packer.pack(call.query, call.chunks)
        two = again.pack(call.query, call.chunks)

    assert packer == again
    assert one.to_dict() == two.to_dict()


@on_both
@given(call=any_call)
def test_packing_pickles(name, call):
    """A packing comes back from pickling with its texts, figures and reasons."""
    with using(name):
        packing = call()
    again = pickle.loads(pickle.dumps(packing))

    assert packing.to_dict() == again.to_dict()
    assert [kept.text for kept in packing.kept] == [kept.chunk for kept in again.kept]
    assert [None] * packing.dropped_count == [dropped.chunk for dropped in again.dropped]
    for index in range(len(call.chunks)):
        assert packing.explain(index) == again.explain(index)


@on_both
@given(call=any_call)
def test_explain(name, call):
    """explain says what became of every chunk, and what brought it in, and quotes no text."""
    with using(name):
        packing = call()

    for index in range(len(call.chunks)):
        said = packing.explain(index)
        assert said.startswith(f"Chunk {index} ")
        assert said.endswith(".")
        became, _, parts = said.partition(" Part of its score by words: ")
        for sentence in (became, parts):
            assert ". " not in sentence
        assert "\n" not in said
    for beyond in (len(call.chunks), -1, 2**63):
        with pytest.raises(InvalidArgumentError):
            packing.explain(beyond)


@on_both
@given(call=any_call)
def test_to_dict_is_json(name, call):
    """to_dict gives what JSON can hold, and comes back from it."""
    with using(name):
        data = call().to_dict()

    assert paired(data) == json.loads(json.dumps(data))


def paired(data):
    """Return *data* with each pair of surrogates as the character that JSON reads in it."""
    if isinstance(data, dict):
        return {key: paired(value) for key, value in data.items()}
    if isinstance(data, list):
        return [paired(value) for value in data]
    if isinstance(data, str):
        return data.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return data


@on_both
@given(chunks=st.lists(texts | odd_texts, max_size=9), max_tokens=budgets)
def test_repr_quotes_no_text(name, chunks, max_tokens):
    """The repr of a packing gives figures, never texts."""
    with using(name):
        packing = pack("", ["SECRET" + chunk for chunk in chunks], max_tokens)

    assert "SECRET" not in repr(packing)
    assert "\n" not in repr(packing)


@on_both
@pytest.mark.parametrize("cluster", KNOWN_CLUSTERS)
def test_known_cluster(name, cluster):
    """A known cluster is one, beside others too."""
    size = len(cluster)
    with using(name) as backend:
        assert [0, size, 2 * size, 3 * size] == backend.grapheme_boundaries(cluster * 3)
        assert [0, 1, 1 + len(cluster), 2 + len(cluster)] == backend.grapheme_boundaries(
            f"\u4e00{cluster}\u4e00"
        )
