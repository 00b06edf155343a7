"""The budget for retrieval, and the surface of budgeteer.window."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgeteer import BudgetExhaustedError, InvalidArgumentError, get_counter, window
from budgeteer.window import InputValidationError, retrieval_budget


def test_dynamic_budget_calculation():
    """Seed 003, criterion 1: 4096 - 200 - 500 - 50 = 3346."""
    assert 3346 == retrieval_budget(
        context_window=4096, system_tokens=200, max_output_tokens=500, query_tokens=50
    )


def test_given_huge_query_when_retrieving_then_returns_error():
    """Seed 003, criterion 3: nothing is left, the error says why, and nothing is retrieved."""
    retrieved = []

    def retrieve(query):
        budget = retrieval_budget(
            context_window=4096, system_tokens=200, max_output_tokens=500, query_tokens=query
        )
        retrieved.append(budget)

    with pytest.raises(InputValidationError) as caught:
        retrieve("tea " * 10_000)

    tokens = get_counter("o200k_base").count("tea " * 10_000)
    assert [] == retrieved
    assert str(caught.value) == (
        "nothing is left for retrieval: context_window 4096 - system_tokens 200 - "
        f"max_output_tokens 500 - query_tokens {tokens} = {4096 - 200 - 500 - tokens}"
    )


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_difference_or_an_error(total, system, output, query):
    """The budget is the difference, and the error comes where that is below 1."""
    options = {"system_tokens": system, "max_output_tokens": output, "query_tokens": query}
    left = total - system - output - query
    if left > 0:
        assert left == retrieval_budget(context_window=total, **options)
    else:
        with pytest.raises(InputValidationError):
            retrieval_budget(context_window=total, **options)


def test_texts_stand_for_numbers():
    """Texts are counted by the counter, o200k_base unless told otherwise."""
    prompt, query = "Answer from the context.", "What is green tea?"
    count = get_counter("o200k_base").count

    assert 4096 - count(prompt) - count(query) == retrieval_budget(
        context_window=4096, system_tokens=prompt, query_tokens=query
    )
    assert 4096 - 8 == retrieval_budget(
        context_window=4096, system_tokens=prompt, query_tokens=query, counter="words"
    )


def test_the_error_is_a_budget_exhausted_error():
    """It is caught as one, and as a ValueError; it quotes no text."""
    with pytest.raises(BudgetExhaustedError) as caught:
        retrieval_budget(context_window=1, query_tokens="hunter2 hunter2")

    assert isinstance(caught.value, ValueError)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context_window": "4096"}, "context_window must be an int, not str"),
        ({"context_window": -1}, "context_window must be from 0 to"),
        ({"system_tokens": 1.5}, "system_tokens must be an int or a str, not float"),
        ({"max_output_tokens": "x"}, "max_output_tokens must be an int, not str"),
        ({"query_tokens": None}, "query_tokens must be an int or a str, not None"),
        ({"query_tokens": -1}, "query_tokens must be from 0 to"),
        ({"counter": "wrods"}, "did you mean 'words'"),
    ],
)
def test_refused(options, message):
    """A wrong argument is named, with what was found and what is allowed."""
    with pytest.raises(InvalidArgumentError, match=message):
        retrieval_budget(**{"context_window": 4096, **options})


def test_surface():
    """Every public name is there, sorted, documented, and has an example."""
    assert sorted(window.__all__) == window.__all__
    for name in window.__all__:
        item = getattr(window, name)
        assert inspect.getdoc(item)
        if not (isinstance(item, type) and issubclass(item, Exception)):
            assert ">>>" in item.__doc__, name
