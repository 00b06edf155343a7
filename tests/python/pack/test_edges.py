"""What few programs do with packings: read back other texts, pickle lists, ask twice."""

import pickle

import pytest
from support import BACKENDS, Pure, Recorder, compared, outcome, using

from budgeteer import (
    Chunk,
    InvalidArgumentError,
    Packer,
    Template,
    compare,
    pack,
    parse_context,
)

XML = pack("tea", ["Green tea.", "Rye."], 90, template="xml", counter="words").text
TAGGED = pack("tea", ["Green tea.", "Rye."], 90, counter="words").text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("json", '{"a": "b"}'),
        ("json", "["),
        ("json", "[1]"),
        ("json", '[{"id": 1, "text": "a"}]'),
        ("json", '[{"id": "a"}]'),
        ("json", '[{"notice": "a", "b": "c"}]'),
        ("xml", "<documents>\nnope\n</documents>"),
        ("xml", "<documents>"),
        ("xml", XML.replace("</document>\n<document ", "</document> <document ")),
        ("tagged", "nope"),
        ("tagged", f"nope {TAGGED}"),
        ("markdown", "## Title\n\nnope"),
        (Template("tagged", header="HEAD\n"), "[document:0] Tea."),
    ],
)
def test_a_text_of_something_else(template, text):
    """A text that no packing with the template gives is refused, and nothing is guessed."""
    with pytest.raises(InvalidArgumentError, match=r"text must be one that '.*' was packed with"):
        parse_context(text, template)


def test_a_list_of_chunks_is_a_list_to_others():
    """The list of kept chunks is unequal to what is no sequence, and pickles as a list."""
    kept = pack("tea", ["Green tea.", "Rye."], 90).kept
    assert kept != "Green tea."
    assert kept != 2
    copied = pickle.loads(pickle.dumps(kept))
    assert type(copied) is list
    assert copied == kept


def test_requests_that_are_none():
    """No requests have no answers; one without its chunks, or with more, is named."""
    packer = Packer(9)
    assert [] == list(packer.pack_batch([]))
    for wrong in ({"query": "tea"}, {"query": "tea", "chunks": [], "budget": 3}):
        with pytest.raises(InvalidArgumentError, match=r"^requests\[0\] must have 'query' and"):
            list(packer.pack_batch([wrong]))


def test_a_number_beyond_a_float():
    """An int that no float holds is named, and is no OverflowError."""
    with pytest.raises(InvalidArgumentError, match=r"^min_score is beyond the range of a float$"):
        Packer(9, min_score=10**400)


def test_what_has_not_changed():
    """The page of two packings that are the same says so."""
    same = compare(*[pack("tea", ["Green tea."], 9)] * 2)
    assert same.is_same
    assert "Nothing" in same.to_html() or "same" in same.to_html()


@pytest.mark.parametrize("ranking", ["input", "recency"])
def test_a_curve_without_scores(backend, ranking):
    """A ranking that does not score has the points that packing again would have."""
    chunks = [
        Chunk("Green tea is mild.", metadata={"timestamp": f"2024-01-0{day}"})
        for day in range(1, 8)
    ]
    packer = Packer(60, ranking=ranking, counter="words", template="plain")
    for point in packer.pack("tea", chunks).budget_curve(step=7):
        again = packer.pack("tea", chunks, max_tokens=point.max_tokens)
        assert again.total_tokens == point.total_tokens
        assert len(again.kept) == point.to_dict()["kept_count"]
        assert [*point.admitted] == point.to_dict()["admitted"]


FEW = [
    {"text": "Green tea is <mild>, and it is & stays green.", "title": "Tea", "score": 3.0},
    {"text": "Rye bread.\nDark e\u0301\u0301.", "source": "rye/a.md", "score": 2.5},
    {"text": "a < b && b > c <tea> & <rye>\n" * 5, "title": "<&>", "score": 2.9},
    *("Rye bread.\nDark e\u0301\u0301.", "green TEA is mild and it is and stays green"),
    {"text": "Green tea is mild.\n\nSo is oolong tea.", "source": "rye/b.md", "score": 2.0},
    *("", "Coffee."),
]
ALIKE = [
    {"template": Template("plain", header="Read:\n", footer="\nDone.")},
    {"template": "xml", "notice": "{count} left out", "order": "document"},
    {"template": Template("> {text}", separator="\n--\n"), "notice": True, "order": "input"},
    {"template": "json", "max_chunks": 3, "dedupe": "near", "notice": "{count}"},
]


@compared
@pytest.mark.parametrize("chosen", ALIKE, ids=["plain", "xml", "own", "json"])
@pytest.mark.parametrize("overflow", ["skip", "stop", "truncate_end", "truncate_middle"])
@pytest.mark.parametrize(
    "counter",
    ["words", "chars_per_token:2.5", "o200k_base", len, Pure("joints", 3)],
    ids=["words", "ratio", "o200k", "len", "joints"],
)
def test_both_backends_answer_alike_at_every_budget(counter, overflow, chosen):
    """From nothing to all, what is packed and what a counter is asked are the same."""
    options = {**chosen, "overflow": overflow, "ranking": "score"}
    for budget in range(0, 320, 5) if callable(counter) else range(100):
        answers = []
        for name in BACKENDS:
            recorder = Recorder(counter, []) if callable(counter) else counter
            with using(name):
                packing = outcome(pack, "tea", FEW, budget, counter=recorder, **options)
            told = packing if isinstance(packing, tuple) else packing.to_dict()
            answers.append((told, getattr(recorder, "asked", [])))
        assert answers[0] == answers[1], budget


class Failing:
    """A counter of characters that answers -1 once."""

    def __init__(self, at):
        self.left = at

    def __call__(self, text):
        self.left -= 1
        return -1 if self.left < 0 else len(text)


@compared
@pytest.mark.parametrize("chosen", ALIKE, ids=["plain", "xml", "own", "json"])
def test_a_bad_answer_is_named_alike(chosen):
    """Whatever is counted when a counter fails, the error names the same chunk or text."""
    options = {**chosen, "overflow": "truncate_middle", "ranking": "score"}
    messages = set()
    for at in range(40):
        answers = []
        for name in BACKENDS:
            with using(name):
                found = outcome(pack, "tea", FEW, 200, counter=Failing(at), **options)
            answers.append(found if isinstance(found, tuple) else found.to_dict())
        assert answers[0] == answers[1], at
        messages.add(str(answers[0]))
    assert sum("chunks[" in message for message in messages) >= 2
    assert any("the assembled text" in message for message in messages)
