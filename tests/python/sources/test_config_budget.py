"""The budget of a YAML configuration: Packer's options by their names, and older spellings."""

import dataclasses

import pytest
from test_config import NOTE

from budgeteer import Packer, Template, pack
from budgeteer._sources import budget
from budgeteer.ranking import Bm25, Embedding, Hybrid, Lexical

OPTIONS = {
    "max_tokens": ("7", 7),
    "reserve_tokens": ("3", 3),
    "counter": ("cl100k_base", "cl100k_base"),
    "ranking": ("score", "score"),
    "min_score": ("0.5", 0.5),
    "overflow": ("stop", "stop"),
    "max_chunks": ("4", 4),
    "dedupe": ("null", None),
    "selection": ("coverage", "coverage"),
    "units": ("sentence", "sentence"),
    "order": ("input", "input"),
    "template": ("xml", "xml"),
    "notice": ("true", True),
}
"""For each option of Packer a value other than its default: in YAML and in Python."""

OLDER = {"counter": "chars_div4", "ranking": "keyword", "dedupe": None}
"""The defaults of a file with an older spelling, where they are not Packer's."""

TEA = [
    *("Green tea is mild.", "Black tea is strong.", "Green tea is mild.", "Coffee."),
    "Working with tea all day.",
]


def names_of(kind):
    """Return the options that a file may have; statistics are no text."""
    options = [item for item in dataclasses.fields(kind) if item.init]
    return {item.name: item.default for item in options if item.name != "statistics"}


def options_of(packer):
    return {name: getattr(packer, name) for name in names_of(Packer)}


def test_every_option_of_packer_has_a_key():
    """The table above, the keys of a file and the older defaults have each option of Packer."""
    assert {*names_of(Packer)} == {*OPTIONS} == {*budget.OLDER_DEFAULTS}
    assert {*budget.KEYS} == {*OPTIONS, "embedding", "estimator", "truncation"}
    assert not [name for name, (_, value) in OPTIONS.items() if value == names_of(Packer)[name]]


@pytest.mark.parametrize("ranking", ["lexical", "{bm25: {k1: 2}}"])
def test_the_cut_off_that_is_found(configured, ranking):
    """The word of Python is the word of YAML, and what scores far below the best is left out."""
    config = configured(f"budget: {{min_score: auto, ranking: {ranking}}}\n{NOTE}")
    assert "auto" == config.packer.min_score
    packing = config.packer.pack("mild green tea", TEA)
    reasons = {one.index: one.reason for one in packing.dropped}
    assert {2: "duplicate", 3: "out_of_scope"}.items() <= reasons.items()


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_means_what_it_means_to_packer(configured, name):
    """Each option reaches the packer, and all others stay Packer's defaults."""
    said, meant = OPTIONS[name]
    packer = configured(f"budget: {{{name}: {said}}}\n{NOTE}").packer
    assert Packer(**{"max_tokens": 8_000, name: meant}) == packer


@pytest.mark.parametrize(
    "said",
    [
        *("", "budget:\n", "budget: {}\n", "budget: {embedding: null}\n"),
        "budget: {max_tokens: 8000, reserve_tokens: 0}\n",
    ],
)
def test_defaults_are_packers(configured, said):
    """A file without an older spelling has Packer's defaults, and 8000 tokens."""
    assert Packer(8_000) == configured(said + NOTE).packer


@pytest.mark.parametrize("ranking", ["recency", "embedding"])
def test_what_is_spelled_alike_decides_nothing(configured, ranking):
    """A ranking of both vocabularies leaves Packer's defaults."""
    packer = configured(f"budget: {{ranking: {ranking}, embedding: {{}}}}\n{NOTE}").packer
    assert ("o200k_base", "exact") == (packer.counter, packer.dedupe)


@pytest.mark.parametrize(
    ("said", "option", "meant"),
    [
        ("estimator: words", "counter", "words"),
        ("estimator: gpt-4o", "counter", "gpt-4o"),
        ("ranking: relevance", "ranking", "keyword"),
        ("ranking: manual", "ranking", "input"),
        ("truncation: drop", "overflow", "skip"),
        ("truncation: truncate_end", "overflow", "truncate_end"),
        ("truncation: truncate_middle", "overflow", "truncate_middle"),
    ],
)
def test_older_spellings_keep_their_defaults(configured, said, option, meant):
    """A file with one of them estimates, ranks by keywords and keeps duplicates, by default."""
    packer = configured(f"budget: {{{said}}}\n{NOTE}").packer
    assert Packer(8_000, **{**OLDER, option: meant}) == packer


def test_an_older_file_whole(configured):
    """A budget in the older words throughout is the packer that it has always been."""
    packer = configured(
        f"""
        budget:
          max_tokens: 4000
          ranking: relevance
          truncation: truncate_end
          estimator: whitespace
          reserve_tokens: 500
        {NOTE}
        """
    ).packer
    expected = {"ranking": "keyword", "overflow": "truncate_end", "counter": "whitespace"}
    assert Packer(4_000, reserve_tokens=500, dedupe=None, **expected) == packer


def test_an_older_file_may_say_all_else(configured):
    """Other options, in today's words, go with an older spelling; the defaults stay the older."""
    said = "truncation: drop, ranking: bm25, order: input, dedupe: near, max_chunks: 5"
    packer = configured(f"budget: {{{said}}}\n{NOTE}").packer
    expected = {"ranking": "bm25", "order": "input", "dedupe": "near", "max_chunks": 5}
    assert Packer(8_000, counter="chars_div4", **expected) == packer


def test_an_older_file_depends_on_no_default_of_packer(configured, monkeypatch):
    """Every option is given, so that a new default of Packer changes no older file."""
    given = {}

    def record(**options):
        given.update(options)
        return Packer(**options)

    monkeypatch.setattr(budget, "Packer", record)
    configured(f"budget: {{truncation: drop}}\n{NOTE}")
    assert {*OPTIONS} == {*given}


def test_duplicates(configured):
    """An older file packs a text as often as its sources have it; others pack it once."""
    twice = "sources: [{type: inline, text: Tea.}, {type: inline, text: Tea.}]"
    assert 2 == len(configured(f"budget: {{estimator: words}}\n{twice}").query("tea").kept)
    assert 1 == len(configured(f"budget: {{counter: words}}\n{twice}").query("tea").kept)


BM25 = {"stemming": "english", "stopwords": ["tea"], "k1": 1.5, "b": 0.5}
SAID_BM25 = "{stemming: english, stopwords: [tea], k1: 1.5, b: 0.5}"
OFF = {"headings": False, "links": False, "feedback": False}
LEXICAL = {**BM25, "stemming": "german", **OFF, "k3": 0.5}
SAID_LEXICAL = (
    "{stemming: german, stopwords: [tea], k1: 1.5, b: 0.5, headings: false, links: false, "
    "feedback: no, k3: 0.5}"
)
TEMPLATE = {
    "format": "<{id}-{nonce}> {text}",
    "separator": "\n",
    "header": "Sources:\n",
    "footer": "end",
    "nonce": "seed",
}
SAID_TEMPLATE = (
    r'{format: "<{id}-{nonce}> {text}", separator: "\n", header: "Sources:\n", footer: end, '
    "nonce: seed}"
)
HYBRID = {
    "weights": {"bm25": 0.3, "embedding": 0.7},
    "fusion": "rrf",
    "k": 9.0,
    "bm25": Bm25(k1=2),
}


def test_the_values_below_are_of_every_option():
    """Each option of an object in a file is tried below, with another value than its default."""
    assert {*names_of(Bm25)} == {*BM25}
    assert {*names_of(Lexical)} == {*LEXICAL}
    assert {*names_of(Template)} == {*TEMPLATE}
    assert {*names_of(Hybrid)} == {*HYBRID, "embedding"}
    assert {*names_of(Embedding)} == {"embedder", "fallback"}
    for kind, options in (
        (Bm25, BM25),
        (Lexical, LEXICAL),
        (Template, TEMPLATE),
        (Hybrid, HYBRID),
    ):
        assert not [name for name, value in options.items() if value == names_of(kind)[name]]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("ranking: lexical", "lexical"),
        ("ranking: {lexical: {}}", Lexical()),
        (f"ranking: {{lexical: {SAID_LEXICAL}}}", Lexical(**LEXICAL)),
        ("ranking: {hybrid: {weights: {bm25: 2}, bm25: lexical}}",
         Hybrid({"bm25": 2}, bm25=Lexical())),
        ("ranking: {hybrid: {weights: {bm25: 2}, bm25: bm25}}", Hybrid({"bm25": 2})),
        (f"ranking: {{hybrid: {{weights: {{bm25: 2}}, bm25: {{lexical: {SAID_LEXICAL}}}}}}}",
         Hybrid({"bm25": 2}, bm25=Lexical(**LEXICAL))),
        (f"ranking: {{hybrid: {{weights: {{bm25: 2}}, bm25: {{bm25: {SAID_BM25}}}}}}}",
         Hybrid({"bm25": 2}, bm25=Bm25(**BM25))),
        ("ranking: bm25", "bm25"),
        ("ranking: {bm25: {}}", Bm25()),
        (f"ranking: {{bm25: {SAID_BM25}}}", Bm25(**BM25)),
        (f"ranking: {{hybrid: {{weights: {{bm25: 2}}, bm25: {SAID_BM25}}}}}",
         Hybrid({"bm25": 2}, bm25=Bm25(**BM25))),
        ("ranking: {hybrid: {weights: {bm25: 1, score: 0.5}}}", Hybrid({"bm25": 1, "score": 0.5})),
        (f"template: {SAID_TEMPLATE}", Template(**TEMPLATE)),
        ("template: {format: xml, header: H}", Template("xml", header="H")),
    ],
)  # fmt: skip
def test_objects_are_mappings(configured, said, meant):
    """A ranking or template with options is a mapping of them, and packs as in Python."""
    packer = configured(f"budget: {{{said}}}\n{NOTE}").packer
    option = said.partition(":")[0]
    assert Packer(8_000, **{option: meant}) == packer
    expected = pack("working tea", TEA, 8_000, **{option: meant})
    assert expected.text == packer.pack("working tea", TEA).text


def test_rankings_by_embeddings_are_mappings(configured):
    """Their embedder is the one of the file; a fallback is a name or a mapping."""
    both = "{weights: {bm25: 0.3, embedding: 0.7}, fusion: rrf, k: 9, bm25: {k1: 2}"
    for said, meant in [
        ("embedding", Embedding),
        ("{embedding: {}}", Embedding),
        ("{embedding: {fallback: null}}", Embedding),
        ("{embedding: {fallback: bm25}}", lambda own: Embedding(own, fallback="bm25")),
        ("{embedding: {fallback: lexical}}", lambda own: Embedding(own, fallback="lexical")),
        (
            f"{{embedding: {{fallback: {{lexical: {SAID_LEXICAL}}}}}}}",
            lambda own: Embedding(own, fallback=Lexical(**LEXICAL)),
        ),
        (
            f"{{embedding: {{fallback: {SAID_BM25}}}}}",
            lambda own: Embedding(own, fallback=Bm25(**BM25)),
        ),
        ("hybrid", lambda own: Hybrid(embedding=Embedding(own))),
        (f"{{hybrid: {both}}}}}", lambda own: Hybrid(**HYBRID, embedding=Embedding(own))),
        (
            f"{{hybrid: {both}, embedding: {{fallback: bm25}}}}}}",
            lambda own: Hybrid(**HYBRID, embedding=Embedding(own, fallback="bm25")),
        ),
    ]:
        config = configured(f"budget: {{ranking: {said}, embedding: {{}}}}\n{NOTE}")
        assert meant(config.embedder) == config.packer.ranking


def test_paths_of_a_counter_are_relative_to_the_file(configured, tmp_path):
    """hf: names a file beside the configuration under either name of the option."""
    for name in ("counter", "estimator"):
        with pytest.raises(ValueError, match=rf"budget\.{name} 'hf:.*'"):
            configured(f"budget: {{{name}: 'hf:a.json'}}\n{NOTE}", **{"a.json": "{}"})
