"""
Canaries in what commands read: errors, warnings and progress show no text and no secret.

What a command answers goes to standard output, and has the texts that were asked for. The rest
goes to standard error and to the log.
"""

import json
from pathlib import Path

import embedding_server as server
import pytest
from canary_support import (
    KEY,
    MESSAGES,
    META,
    PASSWORD,
    QUERY,
    SECRETS,
    TEXT,
    TITLE,
    TOKEN,
    TOOLS,
    told,
)

CHUNK = {"text": f"{TEXT} of tea", "title": TITLE, "metadata": {"owner": META}}


def written(folder, name, *parts):
    """Return the path of a file of JSON Lines, or of text."""
    lines = [part if isinstance(part, str) else json.dumps(part) for part in parts]
    (folder / name).write_text("\n".join(lines), "utf-8")
    return folder / name


INSPECT = ("inspect", "--model", "gpt-4o", "--max-tokens", 9)
GOOD = {
    "ask": ("ask", "docs", f"tea {QUERY}", "-n", 20),
    "cut chunks": ("pack", "-q", QUERY, "-n", 9, "--overflow", "truncate_end"),
    "pack": ("pack", "-q", QUERY, "-n", 60, "--explain"),
    "requests": ("pack", "--input", "requests.jsonl", "-o", "packed.jsonl", "-n", 60),
    "count": ("count", "docs"),
    "cut": ("cut", "docs/a.md", "-n", 9),
    "inspect": (*INSPECT, "--messages", "messages.json", "--tools", "tools.json"),
}

STDIN = {
    **dict.fromkeys(["cut chunks", "pack"], "chunks.jsonl"),
    "no JSON": "broken.jsonl",
    "no text": "no-text.jsonl",
    "a text that is none": "number.jsonl",
}
"""What commands read from standard input."""

BAD = {
    "no JSON": ("pack", "-q", QUERY),
    "no text": ("pack", "-q", QUERY),
    "a text that is none": ("pack", "-q", QUERY),
    "a request that is none": ("pack", "--input", "number.jsonl", "-o", "packed.jsonl", "-n", 9),
    "no packings": ("compare", "chunks.jsonl", "chunks.jsonl"),
    "no bundle": ("gate", "chunks.jsonl"),
    "no message": (*INSPECT, "--messages", "tools.txt"),
    "no tool": (*INSPECT, "--messages", 9, "--tools", "no-text.json"),
    "more than may be": ("count", "docs", "--max", 1),
    "no counter": ("cut", "docs/a.md", "-n", 9, "-m", "file:docs/a.md"),
    "no configuration": ("query", "-c", "broken.jsonl", "-t", QUERY),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Be in a folder with files of all kinds."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(f"# {TITLE}\n\n" + f"{TEXT} of tea.\n\n" * 40, "utf-8")
    written(tmp_path, "chunks.jsonl", CHUNK, CHUNK | {"text": f"{TEXT} " * 90})
    written(tmp_path, "requests.jsonl", {"query": QUERY, "chunks": [CHUNK]}, {"query": QUERY})
    written(tmp_path, "broken.jsonl", CHUNK, f"{{'text': {TEXT}, '{TITLE}")
    written(tmp_path, "no-text.jsonl", CHUNK, {META: TEXT, "title": TITLE})
    written(tmp_path, "no-text.json", [{META: TEXT, "role": [TEXT], "title": TITLE}])
    written(tmp_path, "number.jsonl", {"text": [TEXT], "query": {TEXT: QUERY}, "title": TITLE})
    written(tmp_path, "messages.json", MESSAGES)
    written(tmp_path, "tools.json", TOOLS)
    written(tmp_path, "tools.txt", {"role": TEXT, "title": TITLE})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return tmp_path


def asked(run, arguments, name):
    """Return status, output and errors of a command, with what it reads."""
    stdin = Path(STDIN[name]).read_text("utf-8") if name in STDIN else None
    return run(*arguments, stdin=stdin)


@pytest.mark.parametrize("name", GOOD)
def test_what_is_no_answer_shows_no_text(run, caplog, name):
    """A command that answers writes nothing else that has a text."""
    status, out, err = asked(run, GOOD[name], name)
    assert status == (2 if name == "requests" else 0), err
    assert [] == told(err) == told(caplog.text) == told(out, SECRETS)


def test_why_a_request_was_not_packed_shows_no_text(run, folder):
    """The line of a request that is refused says why without its texts."""
    written(folder, "requests.jsonl", {"query": QUERY, "chunks": [{META: TEXT, "title": TITLE}]})
    run(*GOOD["requests"])
    (line,) = (folder / "packed.jsonl").read_text("utf-8").splitlines()
    assert "error" in line
    assert [] == told(line)


@pytest.mark.parametrize("name", BAD)
def test_errors_show_no_text(run, caplog, name):
    """A command that refuses names files, lines and options, and shows no text."""
    status, out, err = asked(run, BAD[name], name)
    assert 0 != status
    assert err
    assert [] == told(err) == told(caplog.text) == told(out, SECRETS)


@pytest.mark.parametrize("answer", [401, 500, "gone"])
def test_errors_of_an_endpoint_show_no_secret(run, caplog, folder, answer):
    """An endpoint that fails is named without its query, its key and what was sent."""
    with server.Endpoint() as endpoint:
        url = f"{endpoint.url}?token={TOKEN}"
        if answer != "gone":
            endpoint.always = server.status(answer)
        config = f"""
            budget: {{ranking: embedding, embedding: {{url: '{url}', max_retries: 0}}}}
            sources: [{{type: inline, text: {TEXT}}}]
        """
        written(folder, "budgeteer.yaml", config)
    status, out, err = run("query", "-c", "budgeteer.yaml", "-t", QUERY)
    assert (2, "") == (status, out)
    assert [] == told(err) == told(caplog.text)


def test_an_address_with_a_password_is_refused_without_it(run, caplog, folder):
    """The credentials of an address are not quoted."""
    url = f"https://user:{PASSWORD}@host.example/v1/embeddings?token={TOKEN}"
    config = f"""
        budget: {{ranking: embedding, embedding: {{url: '{url}'}}}}
        sources: [{{type: inline, text: {TEXT}}}]
    """
    written(folder, "budgeteer.yaml", config)
    status, out, err = run("query", "-c", "budgeteer.yaml", "-t", QUERY)
    assert (2, "") == (status, out)
    assert "user" in err
    assert [] == told(err, SECRETS) == told(caplog.text)
