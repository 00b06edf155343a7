"""Reference of ``rust/core/src/output/scan.rs``: JSON as a tree of spans, nothing converted."""

import re
from dataclasses import dataclass, field

from budgeteer._codes import NOT_JSON, TOO_DEEP

DEEPEST = 128
"""The most levels of arrays and objects."""

SCALAR, STRING, ARRAY, OBJECT = range(4)

CLOSING = {ARRAY: "]", OBJECT: "}"}

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


@dataclass(slots=True)
class Node:
    """A value of a JSON text: its kind, where it stands in the compact text, what is in it."""

    kind: int
    key: int
    """Where its key starts, if it has one, else where it starts."""
    start: int
    end: int = 0
    inside: list["Node"] = field(default_factory=list)
    least: int = 0
    """The least size at which objects keep all their keys."""
    bare: int = 0
    """The least size at which it says that something was left out."""

    @property
    def size(self) -> int:
        """Return its length."""
        return self.end - self.start


class NotJsonError(Exception):
    """A text is not JSON, or too deep: the code, and the place."""


class _Scanner:
    """What was read of a JSON text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = _space(text, 0)
        self.parts: list[str] = []
        self.size = 0
        self.key = 0
        """Where the key of the next value starts in the compact text."""
        self.opened: list[Node] = []
        self.root: Node | None = None

    def refused(self, code: int = NOT_JSON) -> NotJsonError:
        """Return the error for what stands here."""
        return NotJsonError(code, self.at)

    def token(self, pattern: re.Pattern[str]) -> str:
        """Return the token of a pattern that starts here, and go behind it."""
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self.refused()
        self.at = found.end()
        return found[0]

    def key_of_member(self) -> str:
        """Read a key and the colon."""
        key = self.token(_STRING)
        self.at = _space(self.text, self.at)
        if self.text[self.at : self.at + 1] != ":":
            raise self.refused()
        self.at += 1
        self.key = self.size
        return key + ":"

    def value(self, char: str) -> tuple[str, str]:
        """Read a value, or the bracket that opens it; return it, and what is expected then."""
        last = self.opened[-1] if self.opened else None
        is_member = last is not None and last.kind == OBJECT
        node = Node(SCALAR, self.key if is_member else self.size, self.size)
        self.root = self.root or node
        if last is not None:
            last.inside.append(node)
        if char not in ("[", "{"):
            node.kind = STRING if char == '"' else SCALAR
            token = self.token(_STRING if char == '"' else _SCALAR)
            node.end = self.size + len(token)
            return token, "next"
        if len(self.opened) == DEEPEST:
            raise self.refused(TOO_DEEP)
        node.kind = ARRAY if char == "[" else OBJECT
        self.opened.append(node)
        self.at += 1
        behind = _space(self.text, self.at)
        if self.text[behind : behind + 1] == CLOSING[node.kind]:
            return char, "next"
        return char, "value" if char == "[" else "key"

    def next(self, char: str) -> tuple[str, str]:
        """Read what is behind a value in an array or object."""
        kind = self.opened[-1].kind
        expected = "next"
        if char == ",":
            expected = "value" if kind == ARRAY else "key"
        elif char == CLOSING[kind]:
            self.opened.pop().end = self.size + 1
        else:
            raise self.refused()
        self.at += 1
        return char, expected


def scan(text: str) -> tuple[str, Node]:
    """Return the text without the whitespace between its tokens, and its value."""
    scanner = _Scanner(text)
    expected = "value"
    while expected != "end":
        char = text[scanner.at : scanner.at + 1]
        if expected == "key":
            token, expected = scanner.key_of_member(), "value"
        elif expected == "value":
            token, expected = scanner.value(char)
        else:
            token, expected = scanner.next(char)
        scanner.parts.append(token)
        scanner.size += len(token)
        scanner.at = _space(text, scanner.at)
        if expected == "next" and not scanner.opened:
            expected = "end"
    if scanner.at < len(text) or scanner.root is None:
        raise scanner.refused()
    return "".join(scanner.parts), scanner.root


def _space(text: str, at: int) -> int:
    """Return where the whitespace from *at* on ends."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
