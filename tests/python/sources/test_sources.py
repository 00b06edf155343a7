"""The sources of a configuration: directories, JSON Lines and inline texts."""

import json
import os

import pytest

from budgeteer._sources.sources import matches, split_markdown

NOTE = "sources: [{type: inline, text: A note.}]"
POLICY = "What is the remote work policy?"

DOCUMENT = """\
## Remote Work Policy
Employees may work...

## PTO Policy
All employees receive...

## Office Hours
The office is open...
"""
"""The three chunks of the document's own example, which score 1.0, 0.33 and 0.0."""


def texts(config):
    return [chunk.text for chunk in config.chunks()]


def test_the_documents_example_scores(configured):
    """The document's example query scores its three chunks 1.0, 0.33 and 0.0."""
    packing = configured(
        "budget: {ranking: relevance}\nsources: [{type: directory, path: .}]",
        **{"a.md": DOCUMENT},
    )
    kept = packing.query(POLICY).kept
    assert [1.0, 0.33, 0.0] == [round(chunk.score, 2) for chunk in kept]
    assert ["Remote Work Policy", "PTO Policy", "Office Hours"] == [
        chunk.chunk.title for chunk in kept
    ]


def test_a_directory_chunk_has_all_its_fields(configured, tmp_path):
    """Title, id, source, path and mtime say where a section comes from."""
    config = configured(
        "sources: [{type: directory, path: docs, name: handbook}]",
        **{"docs__sub__leave.md": "# Leave\n\nIntro.\n\n## PTO\nDays.\n"},
    )
    os.utime(tmp_path / "docs/sub/leave.md", (0, 1234.5))
    first, second = config.chunks()
    assert ("# Leave\n\nIntro.", "Leave", "sub/leave.md#0") == (first.text, first.title, first.id)
    assert ("## PTO\nDays.", "PTO", "sub/leave.md#1") == (second.text, second.title, second.id)
    assert "handbook" == first.source
    assert {"mtime": 1234.5, "path": "sub/leave.md"} == second.metadata


def test_names_default_to_what_is_written(configured):
    """A source without a name is called by its path as written, an inline text inline."""
    config = configured(
        "sources: [{type: directory, path: ./docs/}, {type: jsonl, path: a.jsonl},"
        " {type: inline, text: x}]",
        **{"docs__a.md": "A", "a.jsonl": '{"text": "B"}'},
    )
    assert ["./docs/", "a.jsonl", "inline"] == [chunk.source for chunk in config.chunks()]
    assert ["./docs/", "a.jsonl", "inline"] == [source.name for source in config.sources]


def test_files_come_in_the_order_of_their_paths(configured, monkeypatch):
    """The order is that of the relative paths as text, whatever the file system's is."""
    names = ["b.md", "a/z.md", "a.md", "B.md", "a/b/c.md", "a-b.md"]
    config = configured(
        "sources: [{type: directory, path: docs}]",
        **{f"docs/{name}": name for name in names},
    )
    assert sorted(names) == texts(config)
    walk = os.walk

    def reversed_walk(*args, **kwargs):
        for folder, folders, files in reversed(list(walk(*args, **kwargs))):
            yield folder, folders[::-1], files[::-1]

    monkeypatch.setattr(os, "walk", reversed_walk)
    assert sorted(names) == texts(config)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (None, [".hidden/h.md", "sub/deep/c.md", "sub/b.md", "top.md"]),
        ("*.md", ["top.md"]),
        ("sub/**/*.md", ["sub/deep/c.md", "sub/b.md"]),
        ("./**/[ab].m?", ["sub/b.md"]),
        ("**", [".hidden/h.md", "sub/deep/c.md", "sub/b.md", "top.MD", "top.md", "x.txt"]),
        ("**/**/*.txt", ["x.txt"]),
        ("nothing/*.md", []),
    ],
)
def test_the_pattern_chooses_files(configured, pattern, expected):
    """A glob is matched against relative paths, ** includes the top, and case counts."""
    names = ["top.md", "top.MD", "x.txt", "sub/b.md", "sub/deep/c.md", ".hidden/h.md"]
    said = "" if pattern is None else f", pattern: '{pattern}'"
    config = configured(
        f"sources: [{{type: directory, path: docs{said}}}]",
        **{f"docs/{name}": name for name in names},
    )
    assert sorted(expected) == texts(config)


@pytest.mark.parametrize(
    ("said", "pattern"),
    [("", "**/*.md"), (", pattern: '*.rst'", "*.rst"), (", pattern: '*'", None)],
)
def test_a_directory_without_a_file_of_the_pattern_is_warned_of(configured, caplog, said, pattern):
    """A folder of other texts is not read in silence; the warning names the pattern."""
    config = configured(
        f"sources: [{{type: directory, path: docs, name: notes{said}}}]", **{"docs/a.txt": "Tea."}
    )
    assert ["Tea."] * (pattern is None) == texts(config)
    expected = f"notes: no file in the folder matches pattern {pattern!r}"
    assert [expected] * (pattern is not None) == caplog.messages
    for record in caplog.records:
        assert ("no_files", "WARNING") == (record.code, record.levelname)
        assert ("notes", pattern) == (record.source, record.pattern)


def test_matching_many_wildcards_is_quick():
    """A pattern of many ** is matched in time that grows with its length, not beyond."""
    assert not matches(("a",) * 60, ["**", "a"] * 30 + ["b"])


def test_links_are_followed_to_files_only(configured, tmp_path):
    """A loop of links does not hang, a link to nowhere is left out, one to a file is read."""
    config = configured("sources: [{type: directory, path: docs}]", **{"docs__a.md": "A"})
    try:
        (tmp_path / "docs/loop").symlink_to(tmp_path / "docs", target_is_directory=True)
    except OSError:
        pytest.skip("this system makes no links")
    (tmp_path / "docs/self.md").symlink_to("self.md")
    (tmp_path / "docs/nowhere.md").symlink_to("gone.md")
    (tmp_path / "docs/b.md").symlink_to("a.md")
    (tmp_path / "docs/folder.md").mkdir()
    assert ["a.md#0", "b.md#0"] == [chunk.id for chunk in config.chunks()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t\n", []),
        ("Text.", [("stem", "Text.")]),
        ("# One #\nText.\n# Two", [("One", "# One #\nText.\n# Two")]),
        ("#\nText.", [("stem", "#\nText.")]),
        ("\n\n## A\n1\n\n\n## B ##\n2\n", [("A", "## A\n1"), ("B", "## B ##\n2")]),
        ("## A#\n1", [("A#", "## A#\n1")]),
        ("## C# ##\n1", [("C#", "## C# ##\n1")]),
        ("## \n1", [("", "## \n1")]),
        ("##A\n### B\n ## C\n\t## D", [("stem", "##A\n### B\n ## C\n\t## D")]),
        ("## A\r\n1\r\n\r\n## B\r2", [("A", "## A\n1"), ("B", "## B\n2")]),
        ("## A\n```\n## no\n```\n## B", [("A", "## A\n```\n## no\n```"), ("B", "## B")]),
        ("~~~ sh\n## no\n```\n~~~\n## B", [("stem", "~~~ sh\n## no\n```\n~~~"), ("B", "## B")]),
        ("````\n```\n## no\n`````\n## B", [("stem", "````\n```\n## no\n`````"), ("B", "## B")]),
        ("```\n## no\n``` x\n## no", [("stem", "```\n## no\n``` x\n## no")]),
        ("``` a`b\n## B", [("stem", "``` a`b"), ("B", "## B")]),
        ("~~~ a`b\n## no", [("stem", "~~~ a`b\n## no")]),
        ("   ```\n## no\n  ```  \n## B", [("stem", "```\n## no\n  ```"), ("B", "## B")]),
        ("    ```\n## B", [("stem", "```"), ("B", "## B")]),
        ("```\n# no\n```\n# Yes", [("Yes", "```\n# no\n```\n# Yes")]),
        ("## A\u2028## no\x0b## no", [("A\u2028## no\x0b## no", "## A\u2028## no\x0b## no")]),
    ],
)  # fmt: skip
def test_markdown_is_split_at_second_level_headings(text, expected):
    """A section starts at ``## `` outside fenced code and keeps its heading line."""
    assert expected == split_markdown(text, "stem")


def test_a_long_heading_is_read_in_linear_time():
    """A heading of many spaces and hashes costs no more than its length."""
    ((title, _),) = split_markdown("## a" + " #" * 200_000 + " b", "stem")
    assert title.endswith("# b")


def test_sections_are_numbered_by_file(configured):
    """The number in an id starts from 0 in each file and counts what is there."""
    config = configured(
        "sources: [{type: directory, path: .}]",
        **{"a.md": "\n\n## A\n## B\n", "b.md": " ", "c.md": "C"},
    )
    assert ["a.md#0", "a.md#1", "c.md#0"] == [chunk.id for chunk in config.chunks()]


def test_odd_bytes_in_markdown_are_replaced(configured, caplog, tmp_path):
    """A byte order mark goes; what is not UTF-8 becomes U+FFFD, with a warning, and no error."""
    config = configured(
        "sources: [{type: directory, path: .}]",
        **{"a.md": b"\xef\xbb\xbf## Tea\r\nGr\xfcn.\r\n"},
    )
    (chunk,) = config.chunks()
    assert ("Tea", "## Tea\nGr\ufffdn.") == (chunk.title, chunk.text)
    assert [".: not UTF-8, so characters are lost: a.md"] == caplog.messages
    assert ("not_utf8", 1) == (caplog.records[0].code, caplog.records[0].files)
    (tmp_path / "b.md").write_bytes(b"\xff")
    (tmp_path / "c.md").write_bytes("Gr\ufffdn".encode())
    caplog.clear()
    assert 3 == len(config.chunks())
    assert [".: not UTF-8, so characters are lost: a.md and 1 more"] == caplog.messages


def test_json_lines_are_read_field_by_field(configured):
    """A line gives a chunk's fields; unknown keys and blank lines are passed over."""
    rows = [
        {"text": "A", "id": 7, "title": "T", "source": "s", "score": 0.5, "metadata": {"k": [1]}},
        {"content": "B", "id": None, "title": None, "url": "x", "metadata": None},
        {"text": "C\u2028c", "content": "not this", "id": "seven"},
        {"text": "D", "kind": "k", "index": 2, "metadata": {"kind": None, "b": 1}},
    ]
    lines = "\ufeff" + "\r\n\n \n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    config = configured("sources: [{type: jsonl, path: a.jsonl, name: n}]", **{"a.jsonl": lines})
    a, b, c, d = config.chunks()
    assert {"b": 1, "kind": "k", "index": 2} == d.metadata
    assert ("A", "7", "s", "T", 0.5, {"k": [1]}) == (
        a.text, a.id, a.source, a.title, a.score, a.metadata,
    )  # fmt: skip
    assert ("B", None, "n", "", None, None) == (
        b.text, b.id, b.source, b.title, b.score, b.metadata,
    )  # fmt: skip
    assert ("C\u2028c", "seven") == (c.text, c.id)


def test_priority_orders_sources_and_ties_keep_the_order(configured):
    """Higher priority first, then the order of the file, then that within the source."""
    config = configured(
        """
        budget: {ranking: manual}
        sources:
          - {type: inline, text: low, priority: -1.5}
          - {type: inline, text: first}
          - {type: directory, path: docs, priority: 10}
          - {type: inline, text: second, priority: 0}
          - {type: inline, text: high too, priority: 10}
        """,
        **{"docs__a.md": "a1\n## a2", "docs__b.md": "b"},
    )
    expected = ["a1", "## a2", "b", "high too", "first", "second", "low"]
    assert expected == texts(config)
    assert "\n\n".join(expected) == config.query("second low").text


def test_priority_decides_between_equal_scores(configured):
    """Under relevance a tie goes to the source of higher priority."""
    config = configured(
        "sources: [{type: inline, text: tea one}, {type: inline, text: tea two, priority: 1}]"
    )
    assert ["tea two", "tea one"] == [kept.text for kept in config.query("tea").kept]


def test_recency_goes_by_modification_time(configured, tmp_path):
    """The file changed last comes first; what has no time comes last."""
    config = configured(
        "budget: {ranking: recency}\n"
        "sources: [{type: inline, text: note}, {type: directory, path: docs}]",
        **{"docs__a.md": "old", "docs__b.md": "new", "docs__c.md": "middle"},
    )
    for name, mtime in [("a", 100), ("b", 300), ("c", 200)]:
        os.utime(tmp_path / f"docs/{name}.md", (0, mtime))
    assert ["new", "middle", "old", "note"] == [kept.text for kept in config.query("").kept]


def test_each_query_sees_the_files_as_they_are(configured, tmp_path):
    """Sources are read anew by each call, and two calls give the same chunks."""
    config = configured("sources: [{type: directory, path: docs}]", **{"docs__a.md": "one"})
    assert config.chunks() == config.chunks()
    (tmp_path / "docs/b.md").write_text("two", encoding="utf-8")
    assert "one\n\ntwo" == config.query("").text
