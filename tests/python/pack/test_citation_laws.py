"""Citations: what holds for every input, on both backends."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, counters, odd_texts, on_both, options, outcome, scores, texts, using

from budgeteer import Chunk, get_counter
from budgeteer.presets import agentic_rag, citations, estimate_citation_tokens, sources_footer

names = st.none() | texts | odd_texts | st.text(max_size=8)
metadata = st.none() | st.dictionaries(
    st.text(max_size=4),
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts | st.lists(st.integers(), max_size=2) | st.dates(),
    max_size=3,
)  # fmt: skip
chunks = st.lists(
    st.builds(
        Chunk, texts, id=names, source=names.map(lambda name: name or ""), score=scores,
        metadata=metadata,
    )
    | st.fixed_dictionaries(
        {"text": texts}, optional={"id": names, "source": names, "score": scores}
    )
    | texts,
    max_size=8,
)  # fmt: skip


@on_both
@given(chunks, counters, st.integers(0, 120), st.integers(0, 80))
def test_property_of_the_document(name, chunks, counter, max_tokens, buffer):
    """Texts, citations and buffer stay within the budget, each rounded up on its own."""
    with using(name):
        packing = agentic_rag(max_tokens, buffer_tokens=buffer, counter=counter).pack("", chunks)
        count = get_counter(counter).count

        kept = packing.kept
        parts = sum(chunk.token_count + chunk.citation_tokens for chunk in kept)
        assert parts + min(buffer, max_tokens) <= max_tokens
        assert packing.total_tokens <= max(0, max_tokens - buffer)
        assert (count(packing.text) if kept else 0) == packing.total_tokens
        for chunk in kept:
            assert not chunk.was_cut
            assert chunk.token_count == count(chunk.text)
            assert chunk.citation_tokens == estimate_citation_tokens(
                [chunk.chunk], counter=counter
            )
        assert [cited.span for cited in citations(packing)] == [chunk.span for chunk in kept]


@on_both
@given(chunks, counters, st.integers(0, 120), st.integers(0, 80))
def test_footer_is_paid_for(name, chunks, counter, max_tokens, buffer):
    """Whatever ids, sources and counter: the footer costs at most what is set aside."""
    with using(name):
        packing = agentic_rag(max_tokens, buffer_tokens=buffer, counter=counter).pack("", chunks)
        count = get_counter(counter).count
        footer = sources_footer(packing)

        aside = buffer + sum(kept.citation_tokens for kept in packing.kept)
        if footer:
            assert count(footer) <= aside
            assert count(f"{packing.text}\n\n{footer}") <= max_tokens
            assert footer.startswith("Sources: ")
            assert 1 == len(footer.splitlines())


@given(chunks)
def test_footer_names_all(chunks):
    """Under the document's counter and buffer no source is left out."""
    packing = agentic_rag().pack("", chunks)
    names = [" ".join(f"{c.source} {c.id or ''}".split()) for c in citations(packing)]
    expected = list(dict.fromkeys(name.replace("; ", ", ") for name in names if name))

    footer = sources_footer(packing)
    assert expected == (footer.removeprefix("Sources: ").split("; ") if footer else [])


@pytest.mark.skipif(len(BACKENDS) < 2, reason="BUDGETEER_BACKEND=reference was asked for")
@given(chunks, counters, st.integers(0, 120), options)
def test_identity(chunks, counter, max_tokens, options):
    """Both backends cite alike, and within the budget, whatever other options a packer has."""
    packer = replace(agentic_rag(max_tokens, counter=counter), reserve_tokens=5)
    cuts = options.get("overflow", "").startswith("truncate")
    packer = replace(packer, **{**options, "overflow": "stop"} if cuts else options)
    answers = []
    for name in BACKENDS:
        with using(name):
            answers.append(outcome(lambda: packer.pack("green tea", chunks).to_dict()))

    assert answers[0] == answers[1]
    if isinstance(answers[0], dict):
        kept, budget = answers[0]["kept"], answers[0]["budget_tokens"]
        assert sum(item["token_count"] + item["citation_tokens"] for item in kept) <= budget
        assert answers[0]["total_tokens"] <= budget
