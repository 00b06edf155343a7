"""``budgeteer cut --kind``: results of tools stay valid."""

import json

import pytest

from budgeteer import fit_output

ROWS = json.dumps([{"id": i, "tea": "green" if i == 7 else "black"} for i in range(60)])
LOG = "12:30 INFO tea\n" * 90 + "12:31 ERROR no tea\n"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (ROWS, {"kind": "json"}),
        (ROWS, {"kind": "json", "query": "green"}),
        (ROWS, {"kind": "table"}),
        (ROWS, {"kind": "auto"}),
        (LOG, {"kind": "log"}),
        (LOG, {"kind": "text"}),
        (LOG, {"kind": "auto", "query": "error"}),
    ],
)
def test_it_writes_what_the_library_returns(run, text, options):
    """The text of `fit_output`, and nothing else."""
    arguments = [part for name in options for part in (f"--{name}", options[name])]
    for counter in ("o200k_base", "chars_div4"):
        fitted = fit_output(text, 50, **options, counter=counter)

        assert fitted.was_cut
        assert (0, fitted.text, "") == run("cut", "-n", 50, "-m", counter, *arguments, stdin=text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "json", "--keep", "both"], "--keep does nothing with --kind, which decides"),
        (["--kind", "auto", "--marker", ""], "--marker does nothing with --kind, which decides"),
        (["--query", "tea"], "--query does nothing without --kind: give --kind auto"),
        (["--kind", "jsn"], "'auto', 'text', 'json', 'table', 'log', 'diff', not 'jsn'; did you"),
        (["--kind", "json"], "standard input must be JSON for kind 'json', and is not from char"),
        (["--kind", "json"], "--kind text takes any text"),
        (["--kind", "diff"], "standard input must be a unified diff for kind 'diff'"),
    ],
)
def test_what_is_refused(refused, arguments, message):
    """What does nothing, or does not match, is an error."""
    assert message in refused("cut", "-n", 20, *arguments, stdin=LOG)


def test_json_that_is_nested_too_deeply(refused):
    """What cuts it all the same is an option."""
    said = refused("cut", "-n", 20, "--kind", "json", stdin="[" * 129 + "]" * 129)

    assert said == (
        "standard input must be nested at most 128 deep to be cut as JSON: --kind text takes it"
    )


def test_where_nothing_fits(refused):
    """The message has the arithmetic."""
    said = refused("cut", "-n", 0, "--kind", "json", stdin=ROWS)

    assert "nothing of standard input fits: -n 0 - 1 for its smallest text = -1" == said
    said = refused("cut", "-n", 2, "--kind", "auto", stdin=LOG)
    assert "no text fits beside the line that counts what is left out into the 2 of -n" in said
