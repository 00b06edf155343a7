"""What holds for every layout, on both backends."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, chunk_lists, counters, odd_texts, texts, using
from test_layout import LIMITS, counted, tool

from budgeteer import Layout, Packer, Section, get_counter
from budgeteer.window import count_messages

names = st.sampled_from(["system", "user", "assistant", "context", "a", "b", "c", "d", "e"])
sizes = st.integers(0, 60) | st.integers(0, 400)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant"]), "content": odd_texts},
        optional={"name": odd_texts},
    )
    | st.just({"role": "tool", "tool_call_id": "a", "content": "12"})
    | st.just({"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}),
    max_size=4,
)
tools = st.lists(st.builds(tool, st.sampled_from("fgh"), texts), min_size=1, max_size=3)


def fills(counter):
    """Fills that answer texts, messages and packings of at most what they are asked for."""

    def packing(chunks, own):
        def fill(max_tokens):
            chosen = Packer(max_tokens, counter=counter if own is None else own)
            answer = chosen.pack("tea", chunks)
            over = get_counter(counter).count(answer.text) > max_tokens
            return "" if over else answer

        return fill

    def text(whole):
        return lambda max_tokens: get_counter(counter).truncate(whole, max_tokens)

    def trimmed(history):
        def fill(max_tokens):
            fitting = list(history)
            while count_messages(fitting, counter=counter) > max_tokens:
                fitting.pop()
            return fitting

        return fill

    return (
        st.builds(packing, chunk_lists(max_size=4), st.sampled_from([None, "words"]))
        | odd_texts.map(text)
        | messages.map(trimmed)
    )


@st.composite
def section_lists(draw, counter):
    """Sections of every kind, with different names."""
    sections = []
    for name in draw(st.lists(names, max_size=5, unique=True)):
        sources = [{}, {"tokens": draw(sizes)}, {"content": draw(odd_texts)}]
        sources += [{"content": draw(messages)}, {"content": draw(tools)}]
        sources += [{"fill": draw(fills(counter))}]
        least = draw(st.just(0) | st.integers(0, 80))
        most = draw(st.none() | st.integers(least, least + 200))
        options = {
            "basis": draw(st.none() | sizes),
            "grow": draw(st.sampled_from([0, 0, 1, 2, 0.3])),
            "shrink": draw(st.sampled_from([0, 1, 1, 3, 0.2])),
            "min_tokens": least,
            "max_tokens": most,
            "priority": draw(st.integers(-1, 1)),
        }
        sections.append(Section(name, **draw(st.sampled_from(sources)), **options))
    return sections


@st.composite
def layouts(draw):
    counter = draw(counters)
    options = {"gap": draw(st.integers(0, 20)), "counter": counter}
    model = draw(st.sampled_from([None, None, "gpt-3.5-turbo-0301"]))
    window = draw(sizes)
    if draw(st.booleans()):
        most = draw(st.integers(0, window))
        window = replace(LIMITS, context_window=window, max_input_tokens=most)
    return Layout(window, draw(section_lists(counter)), model=model, **options)


def window_of(layout):
    """Return the window of a layout, and how much of it may be input."""
    window = layout.context_window
    if isinstance(window, int):
        return window, window
    return window.context_window, window.max_input_tokens


def reserved(layout, allocation):
    return sum(
        allocation.tokens[section.name]
        for section in layout.sections
        if section.content is None and section.fill is None
    )


@given(layouts(), st.sampled_from(BACKENDS))
def test_the_law(layout, name):
    """The counted prompt, what is reserved and the gap never exceed the window."""
    with using(name):
        allocation = layout.fit()
        total = counted(layout, allocation)

    window, most_input = window_of(layout)
    room = max(0, window - layout.gap)
    assert total <= max(0, most_input - layout.gap)
    assert total == allocation.total_tokens
    assert total + reserved(layout, allocation) <= room
    assert sum(allocation.tokens.values()) + allocation.free_tokens <= room
    assert total + reserved(layout, allocation) + allocation.free_tokens <= room
    assert allocation.free_tokens >= 0


@given(layouts(), st.sampled_from(BACKENDS))
def test_sections_keep_their_limits(layout, name):
    """A section is within its limits and uses at most its share, or it is dropped and 0."""
    with using(name):
        allocation = layout.fit()

    assert [section.name for section in layout.sections] == list(allocation.tokens)
    assert list(allocation.used_tokens) == list(allocation.tokens)
    for section in layout.sections:
        tokens = allocation.tokens[section.name]
        assert 0 <= allocation.used_tokens[section.name] <= tokens
        if section.name in allocation.dropped_sections:
            assert tokens == 0
            assert section.name not in allocation.cut_sections
        else:
            assert section.min_tokens <= tokens
            assert section.max_tokens is None or tokens <= section.max_tokens


@given(layouts())
def test_both_backends_fit_alike(layout):
    """Native and reference answer the same, and so does another call."""
    answers = []
    for name in (*BACKENDS, BACKENDS[0]):
        with using(name):
            answers.append(layout.fit())

    assert all(answer == answers[0] for answer in answers)


@given(st.integers(0, 400), section_lists("words"), st.integers(1, 30))
def test_growth(window, sections, more):
    """While the same sections are in, a larger window takes at most a token from any."""
    before, after = (
        Layout(size, sections, counter="words").fit() for size in (window, window + more)
    )

    if before.dropped_sections == after.dropped_sections:
        for name, tokens in before.tokens.items():
            assert tokens - 1 <= after.tokens[name]


@given(st.integers(0, 300), odd_texts, st.integers(2, 5), st.sampled_from([0, 1]))
def test_equal_sections(window, text, many, grow):
    """Equal sections differ by a token at most; renaming them changes nothing but order."""
    sections = [Section(f"{i}", text, grow=grow) for i in range(many)]
    allocation, turned = (
        Layout(window, some, counter="words").fit() for some in (sections, sections[::-1])
    )

    assert max(allocation.tokens.values()) - min(allocation.tokens.values()) <= 1
    assert list(allocation.tokens.values()) == list(turned.tokens.values())
    assert allocation.messages == turned.messages


@given(st.integers(0, 300), odd_texts, counters)
def test_texts_are_cut_to_their_share(window, text, counter):
    """A text is whole where it fits, else its beginning, and says that it was cut."""
    allocation = Layout(window, [Section("system", text)], counter=counter).fit()
    shown = allocation.messages[0]["content"] if allocation.messages else ""

    assert ("system" in allocation.cut_sections) == (shown != text)
    assert text.startswith(shown)
    if get_counter(counter).is_exact:
        whole = count_messages([{"role": "system", "content": text}], counter=counter)
        assert (whole <= window) == (shown == text)
