"""Shards of a corpus: what is exact of their merged ranks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, queries, texts, using

from budgeteer import Chunk, Corpus, Packer
from budgeteer.ranking import Bm25, Lexical, Statistics

BEST = 5


def cut(pool, shards, is_dealt):
    """Return the places of each shard: dealt in turns, or cut as they stand."""
    places, size = range(len(pool)), -(-len(pool) // shards) or 1
    return [
        places[shard::shards] if is_dealt else places[shard * size :][:size]
        for shard in range(shards)
    ]


@pytest.mark.parametrize("name", BACKENDS)
@given(
    pool=st.lists(texts, max_size=20),
    query=queries,
    shards=st.integers(1, 4),
    is_dealt=st.booleans(),
)
def test_ranks_by_keyword_merge(name, pool, query, shards, is_dealt):
    """Under keyword the best of shards, merged by score and place, are those of one corpus."""
    packer = Packer(10**9, counter="words", ranking="keyword", max_chunks=BEST, dedupe=None)
    with using(name):
        found = []
        for places in cut(pool, shards, is_dealt):
            kept = packer.pack(query, Corpus([pool[place] for place in places])).kept
            found += [(-chunk.score, places[chunk.index]) for chunk in kept]
        one = packer.pack(query, Corpus(pool)).kept

    assert [(-chunk.score, chunk.index) for chunk in one] == sorted(found)[:BEST]


@pytest.mark.parametrize("name", BACKENDS)
@given(
    pool=st.lists(st.builds(Chunk, texts, title=st.just("") | texts), max_size=20),
    query=queries,
    shards=st.integers(1, 4),
    is_dealt=st.booleans(),
    stemming=st.sampled_from([None, "english", "russian"]),
    stopwords=st.sampled_from([None, "english", "french", ("tea",)]),
    ranking=st.sampled_from([Bm25, Lexical]),
)
def test_with_statistics_ranks_by_words_merge(
    name, pool, query, shards, is_dealt, stemming, stopwords, ranking
):
    """Words weigh in each shard what they weigh in one corpus, to the bit, but for links."""
    words = {"stemming": stemming, "stopwords": stopwords}
    alone = {} if ranking is Bm25 else {"links": False, "feedback": False}
    with using(name):
        places = cut(pool, shards, is_dealt)
        parts = [Corpus([pool[place] for place in shard]) for shard in places]
        statistics = Statistics.merged(part.statistics(**words) for part in parts)
        assert statistics == Corpus(pool).statistics(**words)
        by = ranking(statistics=statistics, **words, **alone)
        packer = Packer(10**9, counter="words", ranking=by, max_chunks=BEST, dedupe=None)
        found = [
            (-kept.score, shard[kept.index])
            for shard, part in zip(places, parts, strict=True)
            for kept in packer.pack(query, part).kept
        ]
        one = packer.pack(query, Corpus(pool)).kept
        again = packer.pack(query, [pool[place] for place in sorted(at for _, at in found)]).kept

    best = sorted(found)[:BEST]
    assert best == [(-kept.score, kept.index) for kept in one]
    assert [score for score, _ in best] == [-kept.score for kept in again]


def test_ranked_again_links_cross_shards(backend):
    """A chunk that only a link leads to is found though another shard has its link."""
    linking = "The Winter Garden\nA novel that Ada Moreau wrote."
    linked = "Ada Moreau\nShe grew up in Lyon."
    others = [f"Tea number {i}\nTea is picked in spring." for i in range(20)]
    pool = [linking, linked, *others]
    query = "Who is behind The Winter Garden?"
    shards = [Corpus(pool[first::2]) for first in range(2)]

    found = [chunk for shard in shards for chunk in shard.retrieve(query, len(pool))]
    alone = shards[1].retrieve(query, 1)

    assert [linking, linked] == [
        kept.chunk.text for kept in Packer(1_000, max_chunks=2).pack(query, found).kept
    ]
    assert 0 == alone[0].score


def test_statistics_come_in_order(backend):
    """They are the same in each process, to the byte."""
    found = Corpus(["Rye, green tea, black coffee.", "Bread of rye."]).statistics()
    words = list(found.frequencies)

    assert sorted(words) == words
    assert 4 < len(words)
