"""Sections that a function fills."""

import pytest

from budgeteer import InvalidArgumentError, Layout, Section, get_counter, pack


def test_fills_are_called_once_in_order():
    """Each fill is called once, in order, with what its message leaves of its share."""
    asked = []

    def fill(name, answer):
        return lambda n: asked.append((name, n)) or answer

    allocation = Layout(
        100,
        [
            Section("a", fill=fill("a", "x y"), grow=1),
            Section("system", "b c"),
            Section("d", fill=fill("d", []), grow=1, basis=11),
            Section("e", fill=fill("e", "never"), max_tokens=4),
            Section("f", fill=fill("f", "never"), min_tokens=200),
        ],
        counter="words",
    ).fit()

    assert [("a", 36), ("d", 47)] == asked
    assert {"a": 40, "system": 6, "d": 51, "e": 0, "f": 0} == allocation.tokens
    assert ["f"] == allocation.dropped_sections
    assert ["e"] == allocation.cut_sections
    assert ["x y", "b c"] == [message["content"] for message in allocation.messages]


def test_a_packing_of_another_counter(backend):
    """A packing is counted anew by the layout's counter, and refused where it is too large."""
    chunks = ["日本のお茶を飲みます。" * 9]
    section = Section(
        "context", fill=lambda n: pack("", chunks, n, counter="chars_div4"), basis=40
    )

    with pytest.raises(InvalidArgumentError) as caught:
        Layout(100, [section]).fit()
    tokens = get_counter("o200k_base").count(chunks[0])
    assert str(caught.value) == (
        f"the fill of section 'context' answered a text of {tokens} tokens, more than the 36 that "
        "it was asked for: its packer counts by 'chars_div4', the layout by 'o200k_base'; give "
        "the packer the layout's counter, or the section query, chunks and packer in place of fill"
    )
    assert chunks[0] == Layout(100, [section], counter="words").fit().messages[0]["content"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "the fill of section 'a' must answer a Packing, messages or a str, not None"),
        (3, "must answer a Packing, messages or a str, not int"),
        (b"tea", "must answer a Packing, messages or a str, not bytes"),
        ({"role": "user"}, "must answer a Packing, messages or a str, not dict"),
        (["tea"], "the fill of section 'a': [0] must be a mapping, not str"),
        ([{"role": "user", "content": 3}], "the fill of section 'a': [0]['content'] must be"),
        ("hunter2 " * 30, "answered a text of 30 tokens, more than the 6 that it was asked for"),
        ([{"role": "user", "content": "hunter2 " * 7}],
         "the fill of section 'a' answered messages of 11 tokens, more than the 10 of its"),
    ],
)  # fmt: skip
def test_bad_fills(answer, message):
    """A fill that answers wrongly or too much is named, with both figures and no text."""
    layout = Layout(50, [Section("a", fill=lambda _: answer, basis=10)], counter="words")

    with pytest.raises(InvalidArgumentError) as caught:
        layout.fit()
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_messages_of_a_fill_have_their_own_roles():
    """A role would do nothing for messages, so it is refused; no messages need none."""
    say = {"role": "user", "content": "tea"}

    def layout(*answer):
        return Layout(50, [Section("a", fill=lambda _: answer, basis=10, role="user")])

    with pytest.raises(InvalidArgumentError, match="section 'a' answered messages, which have"):
        layout(say).fit()
    assert layout().fit().messages == []


def test_errors_of_a_fill_pass():
    """What a fill raises passes unchanged."""
    error = OSError("mine")

    def fill(_):
        raise error

    with pytest.raises(OSError, match="mine") as caught:
        Layout(50, [Section("a", fill=fill, basis=10)]).fit()
    assert error is caught.value
