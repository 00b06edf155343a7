"""Reference of ``rust/core/src/output/tree.rs``: JSON cut to a room, and still JSON."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from budgeteer._reference._output.cut import Clusters, plain, without_middle
from budgeteer._reference._output.scan import ARRAY, OBJECT, SCALAR, STRING, Node, scan
from budgeteer._reference._output.share import (
    MOST_ROWS,
    Markers,
    characters,
    number,
    ranked,
    scores_of,
    share,
    water_level,
)

BARE = {STRING: '""', ARRAY: "[]", OBJECT: "{}"}
"""The smallest text of a value, by its kind."""


def items(count: int, of: int) -> str:
    """Return what a marker says of the items of an array."""
    return f"{count} of {number(of, 'item')} left out"


def keys(count: int, of: int) -> str:
    """Return what a marker says of the members of an object."""
    return f"{count} of {number(of, 'key')} left out"


def quoted(text: str) -> str:
    """Return a marker between quotes; its pointer comes escaped."""
    return f'"{text}"'


def member(text: str) -> str:
    """Return a marker as a member of an object."""
    return f'"...":"{text}"'


@dataclass(slots=True)
class Draft:
    """A text that may be the answer, with the number of code points that it leaves out."""

    text: str
    left_out: int
    rows: int = 0
    """The rows of the outermost array, or of the table, that stay."""


class Tree:
    """A JSON text and its value; what is asked for again is remembered."""

    def __init__(
        self,
        text: str,
        root: Node,
        query: str | None,
        rows: Node,
        fixed: Node | None = None,
    ) -> None:
        """Take a compact text and its value; *fixed* is never cut, *rows* are counted."""
        self.text = text
        self.root = root
        self.query = query
        self.rows = rows
        self.fixed = fixed
        self._orders: dict[int, list[int]] = {}
        self._clusters: dict[int, Clusters] = {}
        self._measure(root)

    @property
    def size(self) -> int:
        """Return the length of the compact text."""
        return len(self.text)

    @property
    def bare(self) -> str | None:
        """Return the smallest text of this shape; None if it is this text."""
        return BARE.get(self.root.kind)

    def render(self, room: int, pointer: str | None) -> Draft:
        """Return a text of about *room* code points."""
        if pointer is not None:
            pointer = json.dumps(pointer, ensure_ascii=False)[1:-1]
        return _Writer(self, Markers(pointer)).draft(room)

    def order(self, node: Node) -> list[int]:
        """Return the places of what is in *node*, the best first."""
        found = self._orders.get(node.start)
        if found is None:
            texts = [plain(self.text[inner.key : inner.end]) for inner in node.inside]
            found = ranked(scores_of(self.query, texts))
            if node.kind == OBJECT and not self.query:
                found = [*range(len(texts))]
            self._orders[node.start] = found
        return found

    def clusters(self, node: Node) -> Clusters:
        """Return where the clusters of a string end."""
        found = self._clusters.get(node.start)
        if found is None:
            found = Clusters(self.text[node.start + 1 : node.end - 1], escaped=True)
            self._clusters[node.start] = found
        return found

    def _measure(self, node: Node) -> None:
        """Find the least sizes of *node* and of all that is in it."""
        for inner in node.inside:
            self._measure(inner)
        node.least = node.bare = node.size
        if node.kind == SCALAR or node is self.fixed:
            return
        count = len(node.inside)
        markers = Markers(None)
        if node.kind == STRING:
            marker = quoted(markers.show(characters(node.size - 2)))
        elif node.kind == ARRAY:
            marker = f"[{quoted(markers.show(items(count, count)))}]"
        else:
            marker = f"{{{member(markers.show(keys(count, count)))}}}"
            if count:
                sizes = [inner.start - inner.key + inner.least + 1 for inner in node.inside]
                node.least = min(node.size, 1 + sum(sizes))
        node.bare = min(node.least, len(marker))
        if node.kind != OBJECT:
            node.least = node.bare


class _Writer:
    """Writes one draft."""

    def __init__(self, tree: Tree, markers: Markers) -> None:
        self.tree = tree
        self.markers = markers
        self.parts: list[str] = []
        self.left_out = 0
        self.rows = 0

    def draft(self, room: int) -> Draft:
        self.value(self.tree.root, room)
        return Draft("".join(self.parts), self.left_out, self.rows)

    def value(self, node: Node, room: int) -> None:
        """Write a value."""
        if node.size <= room or node.size == node.bare:
            self.parts.append(self.tree.text[node.start : node.end])
            if node is self.tree.rows:
                self.rows = len(node.inside)
        elif node.kind == STRING:
            content = self.tree.text[node.start + 1 : node.end - 1]
            clusters = self.tree.clusters(node)
            text, lost = without_middle(content, clusters, room - 2, self.markers)
            self.parts.append(quoted(text))
            self.left_out += lost
        elif node.kind == ARRAY:
            self.array(node, room)
        else:
            self.object(node, room)

    def array(self, node: Node, room: int) -> None:
        """Write an array: its best rows whole, or cut where one alone would take much."""
        count = len(node.inside)
        if count == 1 and node.inside[0].least + 2 <= room:
            self.rows = 1 if node is self.tree.rows else self.rows
            self.members(node, [room - 1], str, "[]")
            return
        marker = quoted(self.markers.show(items(count, count)))
        room -= len(marker) + 2
        sizes = [inner.size + 1 for inner in node.inside]
        order = self.tree.order(node)
        cap = max(0, room) // min(count, MOST_ROWS)
        stops = self.tree.query is None  # so that there is one gap
        got = share(sizes, [v.least + 1 for v in node.inside], order, room, cap, stops=stops)
        if not any(got):
            got = share(sizes, [v.bare + 1 for v in node.inside], order, room, cap, stops=stops)
        dropped = got.count(0)
        if node is self.tree.rows:
            self.rows = count - dropped
        self.members(node, got, lambda: quoted(self.markers.write(items(dropped, count))), "[]")

    def object(self, node: Node, room: int) -> None:
        """Write an object: all its keys if they fit, else those of the best members."""
        count = len(node.inside)
        names = [inner.start - inner.key + 1 for inner in node.inside]
        sizes = [name + inner.size for name, inner in zip(names, node.inside, strict=True)]
        bare = [name + inner.bare for name, inner in zip(names, node.inside, strict=True)]
        least = [name + inner.least for name, inner in zip(names, node.inside, strict=True)]
        for floors in (least, bare):
            if 1 + sum(floors) <= room:
                level = water_level([*zip(sizes, floors, strict=True)], room - 1)
                got = [min(s, max(level, f)) for s, f in zip(sizes, floors, strict=True)]
                break
        else:
            room -= len(member(self.markers.show(keys(count, count)))) + 2
            got = share(sizes, bare, self.tree.order(node), room, 0)
        dropped = got.count(0)
        self.members(node, got, lambda: member(self.markers.write(keys(dropped, count))), "{}")

    def members(
        self, node: Node, got: Sequence[int], marker: Callable[[], str], brackets: str
    ) -> None:
        """Write what stays in *node*, with one marker where something was first left out."""
        self.parts.append(brackets[0])
        separator, is_marked = "", False
        for inner, room in zip(node.inside, got, strict=True):
            if room:
                name = self.tree.text[inner.key : inner.start]
                self.parts.append(separator + name)
                self.value(inner, room - 1 - len(name))
            else:
                self.left_out += inner.end - inner.key + 1
                if is_marked:
                    continue
                is_marked = True
                self.parts.append(separator + marker())
            separator = ","
        if not any(got):
            self.left_out -= 1  # a comma less than there are parts
        self.parts.append(brackets[1])


def table_of(tree: Tree) -> Tree | None:
    """
    Return an array of records as a table, its header once; None if it is not one.

    It is ``{"columns":[...],"rows":[[...],...]}``. All records have the same keys in the same
    order, each once.
    """
    records, text = tree.root.inside, tree.text
    if tree.root.kind != ARRAY or len(records) < 2:
        return None
    names = _names(text, records[0])
    if not names or len({*names}) < len(names):
        return None
    if any(record.kind != OBJECT or _names(text, record) != names for record in records):
        return None
    rows = [
        "[" + ",".join(text[inner.start : inner.end] for inner in record.inside) + "]"
        for record in records
    ]
    compact, root = scan(f'{{"columns":[{",".join(names)}],"rows":[{",".join(rows)}]}}')
    return Tree(compact, root, tree.query, root.inside[1], fixed=root.inside[0])


def _names(text: str, record: Node) -> list[str]:
    """Return the keys of a record, as written."""
    return [text[inner.key : inner.start - 1] for inner in record.inside]
