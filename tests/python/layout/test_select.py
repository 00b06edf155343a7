"""Tools that are too many: those to keep, then the best for a question, each with its schema."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgeteer import InvalidArgumentError, Layout, Section, fit_request
from budgeteer.window import count_tools

NAMES = ("readFile", "send_mail", "search_files", "weather", "make_invoice", "play_music")


def tool(name, *, wrapped=True):
    text = {"weather": "Say whether it rains", "make_invoice": "Bill a customer"}.get(name, "")
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": name}}}
    inner = {"name": name, "description": text, "parameters": schema}
    return {"type": "function", "function": inner} if wrapped else inner


TOOLS = [tool(name) for name in NAMES]


def names_in(window, query, keep=(), tools=TOOLS):
    section = Section("tools", tools, select="bm25", query=query, keep=keep)
    allocation = Layout(window, [section]).fit()
    assert count_tools(allocation.tools) == allocation.total_tokens <= window
    assert all(any(item is tool for tool in tools) for item in allocation.tools)
    return [item["function"]["name"] for item in allocation.tools]


def test_the_best_for_the_question():
    """Words of the question in a name, a description or a parameter decide; order is kept."""
    one = max(count_tools([item]) for item in TOOLS)
    assert ["weather"] == names_in(one, "Does it rain in Rome?")
    assert ["make_invoice"] == names_in(one, "Bill the customers!")
    assert ["search_files"] == names_in(one, "search")
    assert ["readFile"] == names_in(one, "read this")
    everything = count_tools(TOOLS)
    assert list(NAMES) == names_in(everything, "read")
    assert 6 > len(names_in(everything - 1, "read"))
    files = names_in(count_tools([TOOLS[0], TOOLS[2]]), "Which file has it?")
    assert ["readFile", "search_files"] == files


def test_what_is_kept_comes_first():
    """Tools to keep are in whatever the question says, and set the section's minimum."""
    kept = [TOOLS[5], TOOLS[1]]
    least = count_tools(kept)
    assert ["send_mail", "play_music"] == names_in(least, "rain", keep=["play_music", "send_mail"])
    section = Section("tools", TOOLS, select="bm25", query="rain", keep=["play_music"])
    smaller = Layout(count_tools([TOOLS[5]]) - 1, [section]).fit()
    assert (["tools"], []) == (smaller.dropped_sections, smaller.tools)
    other = Section("text", "tea " * 100)
    shared = Layout(least + 30, [section, other], counter="words").fit()
    assert 0 < len(shared.tools) < 6 or shared.cut_sections == ["text"]


@settings(max_examples=40, deadline=None)
@given(
    window=st.integers(0, 300),
    query=st.text(max_size=20) | st.sampled_from(NAMES),
    keep=st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
)
def test_laws(window, query, keep):
    """The tools fit, a larger window never has fewer, and what is kept is in or none is."""
    chosen = names_in(window, query, keep=keep)
    assert chosen == [name for name in NAMES if name in chosen]
    if chosen:
        assert {*keep} <= {*chosen}
    if window >= count_tools(TOOLS):
        assert chosen == list(NAMES)


def test_an_application_without_tools():
    """There may be none to choose among."""
    assert [] == names_in(9, "rain", tools=[])


def test_it_shrinks_for_others():
    """Beside other sections it gives up tools, where a section without select is rigid."""
    system = Section("system", "Be brief. " * 20, shrink=0, priority=1)
    tools = Section("tools", TOOLS, select="bm25", query="rain")
    counts = [
        len(Layout(window, [system, tools]).fit().tools)
        for window in range(60, 70 + count_tools(TOOLS), 20)
    ]
    assert counts == sorted(counts)
    assert {0, 1, 5} <= {*counts} or len({*counts}) > 3
    assert all(after - before <= 2 for before, after in pairwise(counts))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select": "bm25"}, "query is required with select"),
        ({"select": "best", "query": "a"}, "select must be one of 'bm25', not 'best'"),
        ({"keep": ["a"]}, "keep is for tools that select='bm25' chooses among"),
        ({"query": "a"}, "query is for chunks, which are not given"),
        ({"select": "bm25", "query": 3}, "query must be a str, not int"),
        ({"select": "bm25", "query": "a", "keep": ["wether"]}, "did you mean 'weather'?"),
        ({"select": "bm25", "query": "a", "keep": "weather"}, "keep must be a sequence, not str"),
        ({"select": "bm25", "query": "a", "content": "text"}, "select is for a content of tools"),
        ({"select": "bm25", "query": "a", "content": [{"x": 1}]}, "content[0]['name'] must be"),
    ],
)
def test_refused(options, message):
    """An option that does nothing, and a name that no tool has, are errors."""
    with pytest.raises(InvalidArgumentError) as caught:
        Section("tools", **{"content": TOOLS, **options})
    assert message in str(caught.value)


class Fields(dict):
    """The fields of a tool, which says how often they were read."""

    reads = 0

    def items(self):
        Fields.reads += 1
        return super().items()


@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-5", "qwen3"])
def test_each_tool_is_rendered_once(model, monkeypatch):
    """Each is tried with many others; rendering all of these again took seconds for 1,000."""
    many = [tool(f"read_{i}") for i in range(60)]
    for item in many:
        inner = item["function"]["parameters"]
        inner["properties"] = Fields(inner["properties"])
    section = Section("tools", many, select="bm25", query="read", max_tokens=1_000)
    for fit in (
        lambda: Layout(9_000, [section], model=model).fit().tools,
        lambda: fit_request(
            {"model": model, "messages": [{"role": "user", "content": "?"}], "tools": section}
        ).request["tools"],
    ):
        monkeypatch.setattr(Fields, "reads", 0)
        assert 10 < len(fit()) < 60
        assert Fields.reads <= 60 * 6
