"""Shards of a corpus: what is exact of their merged ranks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, queries, texts, using

from budgeteer import Corpus, Packer

BEST = 5


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
        size = -(-len(pool) // shards) or 1
        found = []
        for shard in range(shards):
            places = range(len(pool))
            places = places[shard::shards] if is_dealt else places[shard * size :][:size]
            kept = packer.pack(query, Corpus([pool[place] for place in places])).kept
            found += [(-chunk.score, places[chunk.index]) for chunk in kept]
        one = packer.pack(query, Corpus(pool)).kept

    assert [(-chunk.score, chunk.index) for chunk in one] == sorted(found)[:BEST]


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
