"""What `budgeteer.testing` gives to the tests of other programs."""

import subprocess
import sys

import pytest
from hypothesis import find, given, reject, settings
from hypothesis.errors import NoSuchExample

from budgeteer import (
    BudgetExhaustedError,
    InvalidArgumentError,
    Layout,
    Packer,
    Section,
    fit_output,
    get_counter,
    pack,
)
from budgeteer.testing import _fits, assert_fits, chunks, conversation, strategies
from budgeteer.window import count_messages, trim_messages

pytest_plugins = ["pytester"]


def test_what_fits():
    """Texts, packings, outputs, messages and prompts are counted, and the count is returned."""
    text = "Green tea is not oxidized."
    counter = get_counter("o200k_base")
    allocation = Layout(90, [Section("system", text)]).fit()
    message = {"role": "user", "content": text}

    assert counter.count(text) == assert_fits(text, counter, 9)
    assert assert_fits(pack("tea", [text], 9), "o200k_base", 9) == counter.count(text)
    assert fit_output([1, 2], 20).total_tokens == assert_fits(fit_output([1, 2], 20), counter, 20)
    assert count_messages([message], model="gpt-4o") == assert_fits([message], "gpt-4o", 90)
    assert count_messages([message], counter="words") == assert_fits([message], "words", 90)
    assert allocation.total_tokens == assert_fits(allocation, "o200k_base", 90)
    assert 0 == assert_fits([], "gpt-4o", 0)


def test_tools_count():
    """The tools of a prompt count, too."""
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    sections = [Section("system", "Be brief."), Section("tools", [tool])]
    allocation = Layout(200, sections).fit()

    assert allocation.total_tokens == assert_fits(allocation, "o200k_base", 200)
    with pytest.raises(AssertionError, match=rf"its prompt takes {allocation.total_tokens} tok"):
        assert_fits(allocation, "o200k_base", allocation.total_tokens - 1)


@pytest.mark.parametrize(
    ("fitted", "counter", "limit", "says"),
    [
        ("a b", "words", 1, "the text takes 2 tokens under words, 1 above the limit of 1"),
        ("a", len, 0, "the text takes 1 token under <built-in function len>, 1 above .* of 0"),
        (
            [{"role": "user", "content": "a"}] * 2,
            "gpt-4o",
            10,
            "2 messages take 13 tokens under gpt-4o, 3 above the limit of 10",
        ),
    ],
)
def test_what_does_not_fit(fitted, counter, limit, says):
    """The error says what takes how much, under what counter, and how much is too much."""
    with pytest.raises(AssertionError, match=says):
        assert_fits(fitted, counter, limit)


@pytest.mark.parametrize(("counter", "message"), [("o200k_bse", "o200k_base"), (None, "not None")])
def test_nothing_is_counted_by_what_nobody_knows(counter, message):
    """A misspelt name is an error for messages too: nobody knows how far the guess is off."""
    allocation = Layout(90, [Section("system", "Green tea.")]).fit()
    for fitted in "a", [{"role": "user", "content": "a"}], [], allocation:
        with pytest.raises(InvalidArgumentError, match=message):
            assert_fits(fitted, counter, 90)


def test_bad_arguments():
    """An error names the argument, the value and what is allowed."""
    with pytest.raises(InvalidArgumentError, match=r"fitted must be a str, a Packing,.* not int"):
        assert_fits(3, "words", 3)
    with pytest.raises(InvalidArgumentError, match="limit must be from 0 to"):
        assert_fits("a", "words", -1)
    with pytest.raises(InvalidArgumentError, match="o200k"):
        assert_fits("a", "o200k", 3)
    for made in chunks, conversation:
        with pytest.raises(
            InvalidArgumentError, match="count must be from 0 to 100000000, not -1"
        ):
            made(-1)
        with pytest.raises(InvalidArgumentError, match="chars must be from 1 to"):
            made(1, chars=0)


def test_chunks_are_the_same_everywhere():
    """They depend on nothing but the arguments, have the size asked for, and differ."""
    made = chunks(50, chars=300, seed=7)

    assert made == chunks(50, chars=300, seed=7) != chunks(50, chars=300, seed=8)
    assert 50 == len({chunk.text for chunk in made}) == len({chunk.id for chunk in made})
    assert all(100 <= len(chunk.text) <= 500 for chunk in made)
    assert sorted((chunk.score for chunk in made), reverse=True) == [c.score for c in made]
    assert [] == chunks(0)


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_conversations_are_valid(count, tools):
    """Every call has its result behind it, and histories can be trimmed."""
    made = conversation(count, tools=tools, seed=count)

    assert count == len(made)
    assert made == conversation(count, tools=tools, seed=count)
    for at, message in enumerate(made):
        if message.get("tool_calls"):
            assert message["tool_calls"][0]["id"] == made[at + 1]["tool_call_id"]
    assert (tools and count > 9) == any(message["role"] == "tool" for message in made)
    if made:
        assert_fits(trim_messages(made, 5_000, model="gpt-4o"), "gpt-4o", 5_000)


@given(strategies.chunk_lists(), strategies.packer_options(), strategies.texts())
def test_strategies_of_packing(made, options, query):
    """What they make can be packed, and fits."""
    packing = Packer(30, **options).pack(query, made)

    assert_fits(packing, options.get("counter", "o200k_base"), 30)


@given(strategies.conversations())
def test_strategies_of_conversations(made):
    """What they make can be trimmed, and fits; the newest turn of some is longer than that."""
    try:
        trimmed = trim_messages(made, 200, model="gpt-4o")
    except BudgetExhaustedError:
        reject()
    assert_fits(trimmed, "gpt-4o", 200)


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_strategies_go_as_far_as_they_are_told(most):
    """Lists and chats of so many are made, and none of more."""
    for made in (
        strategies.chunk_lists(max_chunks=most, max_size=1),
        strategies.conversations(max_messages=most),
    ):
        find(made, lambda found: len(found) == most)
        with pytest.raises(NoSuchExample):
            find(made, lambda found: len(found) > most, settings=settings(max_examples=50))


PLUGIN = ("-p", "no:budgeteer", "-p", "budgeteer._pytest_plugin", "-p", "xdist")
"""Loads the plugin once, whether the package is installed or only on the path."""


@pytest.fixture
def _alone(monkeypatch):
    """No plugins but those named: those of other packages take seconds to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


TESTS = """
from concurrent.futures import ThreadPoolExecutor
from budgeteer.testing import assert_fits

def test_full():
    assert_fits("a b c", "words", 3)
    assert_fits("a", "words", 3)

def test_over():
    assert_fits("a b c", "words", 2)

def test_room():
    assert_fits("a", "words", 4)

def test_thread():
    with ThreadPoolExecutor() as pool:
        pool.submit(assert_fits, "a", "words", 10).result()

def test_messages():
    assert_fits([{"role": "user", "content": "tea"}], "words", 40)

def test_none():
    pass
"""


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_report(pytester, workers):
    """It names each test with its fullest check, the fullest first, over all workers."""
    pytester.makepyfile(TESTS)
    ran = pytester.runpytest_subprocess("--budget-report", "-n", workers, *PLUGIN)

    ran.stdout.fnmatch_lines(
        [
            "*budgets*",
            "150.0%  3 of 2 tokens  test_the_report.py::test_over",
            "100.0%  3 of 3 tokens  test_the_report.py::test_full, the fullest of 2 checks",
            " 25.0%  1 of 4 tokens  test_the_report.py::test_room",
            " 20.0%  8 of 40 tokens  test_the_report.py::test_messages",
            " 10.0%  1 of 10 tokens  test_the_report.py::test_thread",
        ]
    )
    ran.assert_outcomes(passed=5, failed=1)
    assert "test_none" not in ran.stdout.str()


def test_the_report_of_one_process(pytester, monkeypatch):
    """Without workers the report is the same, with the fullest twenty tests at most."""
    many = "".join(f"def test_{i}(): assert_fits('a', 'words', {i + 1})\n" for i in range(25))
    pytester.makepyfile(f"from budgeteer.testing import assert_fits\n{many}")
    monkeypatch.setattr(_fits, "observer", None)  # put back what observes this test
    arguments = ("--budget-report", "-n", "0", *PLUGIN)
    ran = pytester.runpytest_inprocess(*arguments)

    ran.assert_outcomes(passed=25)
    ran.stdout.fnmatch_lines(
        [
            "100.0%  1 of 1 tokens  *::test_0",
            " 50.0%  1 of 2 tokens  *::test_1",
            "and * tests with more room",
        ]
    )
    pytester.makepyfile("def test_none(): pass")
    ran = pytester.runpytest_inprocess(*arguments)
    ran.stdout.fnmatch_lines(["No test called budgeteer.testing.assert_fits."])


@pytest.mark.usefixtures("_alone")
def test_no_report(pytester):
    """Without the option nothing is said, and with no check that is said."""
    pytester.makepyfile("def test_none(): pass")
    plain, asked = (
        pytester.runpytest_subprocess(*more, "-n", "0", *PLUGIN)
        for more in ((), ("--budget-report",))
    )

    plain.stdout.no_fnmatch_line("*budget*")
    asked.stdout.fnmatch_lines(["No test called budgeteer.testing.assert_fits."])


def test_the_plugin_is_light():
    """Loading it with pytest loads nothing else of budgeteer."""
    code = (
        "import sys, budgeteer._pytest_plugin;"
        "print(*sorted(name for name in sys.modules if name.startswith('budgeteer')))"
    )

    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert ["budgeteer", "budgeteer._pytest_plugin"] == loaded
