"""Reports of windows: what a layout divided, what a request holds, what was negotiated."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_support import HOSTILE, Page
from support import on_both, using

from budgeteer import Layout, Section, fit_request
from budgeteer._layout import shown as layout_shown
from budgeteer._request import shown as request_shown
from budgeteer.window import _shown as window_shown
from budgeteer.window import negotiate

MODELS = st.sampled_from(["gpt-4", "x"])
CALL = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
REQUEST = {
    "model": "gpt-4o",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What does the log say?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "Started. " * 500},
        {"role": "assistant", "content": "That it started."},
        {"role": "user", "content": "How often?"},
    ],
}


def allocation(window=60):
    return Layout(
        window,
        [
            Section("system", "Be brief.", shrink=0, priority=2),
            Section("history", "Hello there. " * 9, priority=-1, min_tokens=20),
            Section("context", query="tea", chunks=["Green tea. " * 9, "Rye."], grow=1),
            Section("answer", tokens=20, shrink=0, priority=2),
        ],
    ).fit()


def fitted(window=200):
    return fit_request(REQUEST, context_window=window, max_output_tokens=60)


@on_both
@pytest.mark.parametrize("window", [0, 20, 30, 45, 60, 90, 4_000])
def test_sections_of_a_layout(name, window):
    """The parts are the sections with their shares, and what is free: together the space."""
    with using(name):
        found = allocation(window)
    report = layout_shown.report_of(found)

    assert [*found.tokens.items(), ("free", found.free_tokens)] == [
        (part.name, part.tokens) for part in report.parts
    ]
    notes = {part.name: part.note for part in report.parts if part.note}
    assert {name for name, note in notes.items() if note == "dropped"} == {*found.dropped_sections}
    assert {name for name, note in notes.items() if note == "cut"} == {*found.cut_sections}
    assert [*found.used_tokens.values(), 0] == [part.others[0] for part in report.parts]
    Page(found.report())


@on_both
@pytest.mark.parametrize("window", [150, 200, 2_000])
def test_sections_of_a_request(name, window):
    """The parts are the sections of the report and add up to the window; changes are listed."""
    with using(name):
        found = fitted(window)
    report = request_shown.report_of(found.report)

    assert window == sum(part.tokens for part in report.parts)
    assert found.total_tokens == sum(p.tokens for p in report.parts if p.kind == "used")
    assert f"The request has {found.total_tokens} of " in report.lead
    page = found.report.to_html()
    assert [change.place for change in found.report.changes] == re.findall(
        r'<th scope="row">(messages\[\d+\])</th>', page
    )
    assert ("Nothing: the request fits as it is." in page) == (not found.report.changes)
    Page(page)


@given(
    messages=st.integers(0, 60),
    output=st.integers(1, 9_000),
    model=st.sampled_from(["gpt-4", "x"]),
)
def test_parts_of_a_negotiation(messages, output, model):
    """The parts are those of the window; they add up to it, if it does not overflow."""
    found = negotiate(model=model, messages=messages, max_output_tokens=output)
    report = window_shown.report_of(found)
    total = sum(part.tokens for part in report.parts)

    assert total == found.context_window or (
        total > found.context_window and "exceed the window" in report.lead
    )
    assert found.input_token_count == sum(p.tokens for p in report.parts if p.kind == "used")
    Page(found._repr_html_())


@pytest.mark.parametrize(
    "made",
    [
        allocation,
        fitted,
        lambda: fitted().report,
        lambda: negotiate(model="gpt-4", messages=9, max_output_tokens=900),
    ],
    ids=["allocation", "request", "report", "negotiation"],
)
def test_notebooks(made):
    """A notebook shows a sentence, a bar and its sections, without scripts or styles."""
    found = made()._repr_html_()
    page = Page(found)

    assert page.of("svg")[0]["role"] == "img"
    assert "</strong>" in found
    assert not page.of("script")
    assert not page.of("style")


def test_hostile_names():
    """The name of a section is text, on the page and in the picture's words."""
    sections = [Section(name, "Tea.") for name in HOSTILE]
    found = Layout(400, sections).fit()
    for text in (found.report(), found._repr_html_()):
        text.encode()
        assert not {"img", "b"} & {tag for tag, _ in Page(text).elements}


def test_the_pages_quote_no_texts():
    """Unlike that of a packing, these pages can be shown to those who may not read the prompt."""
    assert "Green tea" not in allocation().report()
    assert "Started" not in fitted().report.to_html()
