"""What is said of chunks at a terminal, where it is a table, and elsewhere."""

import io
import sys

import pytest

from budgeteer import Chunk, pack
from budgeteer.cli._explained import explained

CHUNKS = [Chunk("Green tea is mild.", id="a"), *("Black tea. " * (i + 9) for i in range(14))]
PACKING = pack("green tea", CHUNKS, 20, counter="words")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def at_a_terminal(monkeypatch):
    """Let standard error be a terminal, which pytest takes back between fixtures and tests."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_table_at_a_terminal(monkeypatch):
    """A terminal shows what is kept, and the ten best of what is dropped, with its reason."""
    pytest.importorskip("rich")
    at_a_terminal(monkeypatch)
    first, table = explained(PACKING, None)
    lines = table.splitlines()
    assert PACKING.explain() == first
    assert ["Rank", "Chunk", "Outcome", "Score", "Tokens", "Why"] == lines[1].split()
    assert [] != [line for line in lines if "0 a" in line and " kept " in line]
    dropped = len(PACKING.dropped)
    assert 10 == sum(" dropped " in line for line in lines)
    assert f"{dropped - 10} more were dropped." == lines[-1]
    whole = explained(PACKING, dropped)[1]
    assert dropped == sum(" dropped " in line for line in whole.splitlines())
    assert "more were dropped" not in whole


def test_a_terminal_without_rich(monkeypatch):
    """Without rich a terminal has the lines of a pipe, and no error."""
    at_a_terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "rich.box", None)
    lines = explained(PACKING, 2)
    assert 3 == len(lines)
    assert all(line.startswith("Chunk ") for line in lines[1:])
    assert [PACKING.explain()] == explained(PACKING, None)
