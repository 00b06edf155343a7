"""The words of errors about files: the line, the key and the reason."""

import pytest

from budgeteer import InvalidArgumentError
from budgeteer._files import decode, join, parse_json, reason


@pytest.mark.parametrize(("data", "line"), [(b"\xff", 1), (b"\n\xff", 2), (b"a\n\nb\xff\n", 3)])
def test_the_line_that_is_not_utf8(data, line):
    """Lines count from 1, an empty first line too."""
    with pytest.raises(InvalidArgumentError, match=f"^line {line}: not UTF-8$"):
        decode(data)


def test_the_line_that_is_not_json():
    """A text without a place counts its lines from 1."""
    with pytest.raises(InvalidArgumentError, match=r"^line 2, column 1: invalid JSON: "):
        parse_json("[\nx")


def test_a_long_key_is_cut():
    """A key in an error has its first 80 characters."""
    assert "x" * 80 == join("", "x" * 99)
    assert f"a.{'x' * 80}" == join("a", "x" * 99)


def test_the_reason_of_a_failure():
    """It names the file; standard input is the input."""
    assert "cannot read a.md: Is a directory" == reason(OSError(21, "Is a directory", "a.md"))
    assert "cannot read the input: Input/output error" == reason(OSError(5, "Input/output error"))
