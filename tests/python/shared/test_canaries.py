"""
Canaries in all that is secret or a user's text, and what may show them.

Keys and the credentials of addresses are shown nowhere. Texts, titles, queries, metadata, messages
and results of tools are in no log, span, histogram, error or file of a cache. They are in the repr
of no object but those that are such a text: a chunk, what became of it, and a cut output.
"""

import asyncio
import pickle
import traceback

import embedding_server as server
import pytest
from canary_support import (
    ALL,
    KEY,
    MESSAGES,
    META,
    PASSWORD,
    QUERY,
    SECRETS,
    TEXT,
    TEXTS,
    TITLE,
    TOKEN,
    TOOLS,
    URL,
    chunks,
    told,
)
from service_support import SETTINGS, Embedder, Fake
from support import BACKENDS, using

from budgeteer import (
    Calibration,
    Chunk,
    Corpus,
    Layout,
    Packer,
    Prompt,
    Section,
    compare,
    fit_output,
    fit_request,
    get_counter,
    pack_table,
    parse_context,
    trim_messages,
)
from budgeteer.errors import BudgeteerError
from budgeteer.ranking import Embedding
from budgeteer.service import (
    ChunkRetriever,
    LlmSettings,
    QdrantRetriever,
    RetrievalService,
    context_length_error,
)
from budgeteer.window import count_messages, negotiate


def packed(packer, items):
    """Return all objects that come of packing."""
    packing = packer.pack(QUERY, items)
    again = asyncio.run(packer.apack(QUERY, items))
    other = Packer(9).pack(QUERY, items)
    points = packing.budget_curve()
    whatif = packing.whatif(max_tokens=9)
    batch = list(packer.pack_batch([(QUERY, items), (None, items)], on_error="yield"))
    return [packing, again, other, points, whatif, *batch, packer, compare(packing, other)]


PACKERS = {
    "plain": {},
    "cut": {"overflow": "truncate_end", "notice": True},
    "xml": {"template": "xml", "dedupe": "near", "selection": "coverage"},
    "tagged": {"template": "tagged", "order": "sticky", "min_score": "auto"},
    "keywords": {"ranking": "keyword", "units": "sentence"},
    "callable": {"counter": len},
    "recent": {"ranking": "recency", "counter": "claude4.8"},
}


@pytest.mark.parametrize("options", PACKERS.values(), ids=PACKERS)
def test_packing(backend, spans, log, options):
    """What packing logs, traces and makes shows no text but in what is a text."""
    packer = Packer(60, **options)
    made = packed(packer, chunks())
    made += packed(packer, Corpus(chunks()))
    made += [Corpus(chunks()), Prompt(lambda shown: f"{shown}"), get_counter(len)]

    texts = {index: told(repr(item) + str(item)) for index, item in enumerate(made)}
    assert not [made[index] for index, names in texts.items() if names]
    assert [] == told(log()) == told(spans())
    assert "budgeteer.pack" in spans()


def test_reprs_of_other_results(backend, spans, log, tmp_path):
    """Requests, histories, layouts, windows, tables and figures show no text and no message."""
    request = {"model": "gpt-4o", "messages": MESSAGES, "tools": TOOLS}
    fitted = fit_request(request, context_window=900, max_output_tokens=100)
    sections = [
        Section("system", content=TEXTS["system"], priority=2),
        Section("history", content=MESSAGES[1:], priority=1),
        Section("context", query=QUERY, chunks=chunks(), packer=Packer(60), priority=1),
    ]
    layout = Layout(400, sections)
    calibration = Calibration()
    calibration.observe(100, 120, model="gpt-4o")
    calibration.save(tmp_path / "calibration.json")
    made = [
        *(fitted, fitted.report, layout, layout.fit(), *sections, calibration),
        *(calibration.counter("gpt-4o"), count_messages(MESSAGES, model="gpt-4o")),
        negotiate(
            model="gpt-4o",
            messages=MESSAGES,
            tools=TOOLS,
            memories=[TEXTS["message"]],
            system_tokens=TEXTS["system"],
            max_output_tokens=9,
        ),
    ]

    assert not [item for item in made if told(repr(item) + str(item))]
    assert (
        [] == told(fitted.report.to_html()) == told((tmp_path / "calibration.json").read_bytes())
    )
    assert [] == told(log()) == told(spans())
    trimmed = trim_messages(MESSAGES, 60, model="gpt-4o")
    assert told(repr([*trimmed])) == ["message", "system"]  # a list of the caller's own messages
    assert ["result"] == told(repr(fit_output(MESSAGES[3]["content"], 60)))


def test_a_table(backend, spans, log):
    """A packed table, and its errors, show columns and rows and no text."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = arrow.table({"q": [QUERY], "c": [[TEXT, f"{TEXT} two"]]})
    made = pack_table(table, 9, query="q", chunks="c")

    assert [] == told(repr(made)) == told(log()) == told(spans())


class Failing(Embedder):
    """An embedder whose error quotes all that it knows."""

    model = "own"

    def embed(self, texts):
        raise ConnectionError(f"{URL} refused {KEY}: {texts}")

    embed_query = embed


class Wrong(Fake):
    """A retriever whose error quotes all that it knows."""

    def retrieve(self, query, limit):
        raise ConnectionError(f"{URL} refused {KEY}: {query}")


class Reranker:
    name = "by length"

    def rerank(self, query, found):
        return sorted(found, key=lambda chunk: len(str(chunk)))


class WrongReranker(Reranker):
    def rerank(self, query, found):
        raise ConnectionError(f"{URL} refused {KEY}: {query} {found}")


def failure(call):
    """Return the error that a call raises."""
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


def formatted(error, *, chain):
    """Return the traceback as a logger writes it, without the lines of these tests."""
    told = traceback.TracebackException.from_exception(error, capture_locals=False)
    return "".join(told.format(chain=chain))


SERVED = {
    "no retriever answers": {"retrievers": [Wrong()]},
    "embedder": {
        "retrievers": [Fake(*chunks())],
        "packer": Packer(9, ranking=Embedding(Failing())),
    },
    "reranker": {"retrievers": [Fake(*chunks())], "reranker": WrongReranker()},
    "bad chunk": {"retrievers": [Fake({"body": TEXT})]},
    "not a list": {"retrievers": [Fake()], "reranker": lambda query, found: query},
    "well": {"retrievers": [Fake(*chunks())]},
    "reranked": {"retrievers": [Fake(*chunks())], "reranker": Reranker()},
    "async": {"retrievers": [ChunkRetriever(chunks()[:2], name="own")]},
}


@pytest.mark.parametrize("name", SERVED)
def test_a_service(spans, log, name):
    """A service tells of no query, chunk or prompt, whether it answers or fails."""
    options = dict(SERVED[name])
    retrievers = options.pop("retrievers")
    packer = options.pop("packer", None)

    def ask():
        service = RetrievalService(
            retrievers, SETTINGS, system_prompt=TEXTS["system"], packer=packer, **options
        )
        made = [service, service.retrieve(QUERY), asyncio.run(service.aretrieve(QUERY))]
        return [*made, made[1].tokens, service.stats(), SETTINGS]

    if name in ("well", "reranked", "async"):
        assert not [item for item in ask() if told(repr(item) + str(item))]
        assert "budgeteer.retrieve" in spans()
    else:
        error = failure(ask)
        assert isinstance(error, BudgeteerError)
        assert [] == told(str(error)) == told(formatted(error, chain=False))
    assert [] == told(log()) == told(spans())


def test_what_a_service_warns_of(spans, log):
    """Warnings of chunks that are left out, small windows and unknown models tell no text."""
    small = LlmSettings(model="own-model", context_window=120, max_output_tokens=20)
    service = RetrievalService([Fake(*chunks())], small, system_prompt=TEXTS["system"])
    service.retrieve(QUERY)
    RetrievalService([Fake()], small, system_prompt=f"{TEXTS['system']} " * 200)
    too_long = failure(lambda: service.retrieve(f"{QUERY} " * 200))
    endpoint = Exception(f"maximum context length is 90 tokens. requested 99 {QUERY} {KEY}")

    assert "Token budget exceeded" in log()
    assert "every query will be refused" in log()
    assert [] == told(log()) == told(spans()) == told(f"{too_long} {too_long!r}")
    assert [] == told(str(context_length_error(endpoint)))


BAD = {
    "chunk": lambda: Packer(9).pack(QUERY, [*chunks(), {"body": TEXT, "title": TITLE}]),
    "type": lambda: Packer(9).pack(QUERY, [*chunks(), 3]),
    "score": lambda: Packer(9, ranking="score").pack(QUERY, [{"text": TEXT, "score": TEXT}]),
    "metadata": lambda: Packer(9, ranking="recency").pack(
        QUERY, [Chunk(TEXT, title=TITLE, metadata=META)]
    ),
    "chunks": lambda: Packer(9).pack(QUERY, TEXT),
    "query": lambda: Packer(9).pack(QUERY.encode(), chunks()),
    "counter": lambda: Packer(9, counter=lambda text: text).pack(QUERY, chunks()),
    "previous": lambda: Packer(9, order="sticky").pack(QUERY, chunks(), previous=TEXT.encode()),
    "vectors": lambda: Packer(9, ranking="embedding").pack(QUERY, chunks()),
    "deadline": lambda: Packer(9).pack(QUERY, chunks() * 2_000, deadline=1e-9),
    "prompt": lambda: Packer(9, template=Prompt(lambda shown: 3)).pack(QUERY, chunks()),
    "parsing": lambda: parse_context(f"{TEXT} {QUERY}", template="xml"),
    "saving": lambda: Corpus([Chunk(TEXT, metadata={"a": {META}})]).save("nowhere"),
    "message": lambda: count_messages([*MESSAGES, {"role": "user", "content": 3}], model="gpt-4o"),
    "role": lambda: count_messages([{"role": 3, "content": QUERY}], model="gpt-4o"),
    "history": lambda: trim_messages(MESSAGES, 3, model="gpt-4o"),
    "request": lambda: fit_request({"messages": MESSAGES, "model": "gpt-4o"}, context_window=9),
    "tools": lambda: fit_request(
        {"messages": MESSAGES, "tools": [{TEXT: 1}, TEXT]}, model="gpt-4o"
    ),
    "output": lambda: fit_output({TEXTS["result"]: {1, 2}}, 9),
    "json": lambda: fit_output(f"{{{TEXTS['result']}", 9, kind="json"),
    "diff": lambda: fit_output(TEXTS["result"], 9, kind="diff"),
    "layout": lambda: Layout(3, [Section("a", content=TEXTS["system"] * 9, required=True)]).fit(),
    "section": lambda: Layout(9, [Section("a", content=[{"role": 3, "content": TEXT}])]).fit(),
    "template": lambda: rendered("{{ raise_exception('bad: ' + messages[0].content) }}"),
    "attribute": lambda: rendered("{{ ({})[messages[0].content].x }}"),
    "number": lambda: rendered("{{ messages[0].content + 1 }}"),
}


def rendered(template):
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    request = {"messages": [{"role": "user", "content": TEXTS["message"]}]}
    return fit_request(request, model="qwen3-8b", context_window=99, template=template)


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("chosen", BACKENDS)
def test_errors(chosen, spans, log, name):
    """An error of bad input names places, types and lengths, and its traceback no more."""
    with using(chosen):
        error = failure(BAD[name])

    assert isinstance(error, (BudgeteerError, TypeError))
    shown = f"{error} {error!r} {error.args} {vars(error)}" + formatted(error, chain=True)
    assert [] == told(shown) == told(log()) == told(spans())


@pytest.mark.parametrize("by", ["embedding", "hybrid"])
def test_a_fallback(backend, log, spans, embedder, monkeypatch, endpoint, by):
    """Where an embedder fails the log has why, and neither key nor text."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = f'{{"error": {{"message": "{KEY} {TEXT} {TITLE}", "param": "input[0]"}}}}'
    endpoint.always = server.status(400, body)
    ranking = Embedding(embedder, fallback="lexical")
    packing = Packer(60, ranking=ranking).pack(QUERY, chunks())
    error = failure(lambda: Packer(60, ranking=Embedding(embedder)).pack(QUERY, chunks()))

    assert "lexical" == packing.fallback
    assert "that is the chunk of id 'a'" in str(error)
    assert "ranking by lexical" in log()
    assert [] == told(log()) == told(spans()) == told(formatted(error, chain=True))


def test_a_cache_of_embeddings(log, spans, endpoint, monkeypatch, tmp_path):
    """The files of the cache, and pickles of an embedder, have no key, text or title."""
    from budgeteer.embedding import OpenAIEmbedder

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    address = f"{endpoint.url}?version={TOKEN}"
    with OpenAIEmbedder(url=address, cache_dir=tmp_path / "cache", truncate=True) as embedder:
        Packer(60, ranking=Embedding(embedder)).pack(QUERY, chunks())
        embedder.embed([f"{TEXT} " * 9_000])
        embedder.embed_query(f"{QUERY} " * 9_000)
        assert 0 < len(endpoint.headers)
        assert all(f"Bearer {KEY}" == headers["Authorization"] for headers in endpoint.headers)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert files
        for path in files:
            assert [] == told(path.read_bytes())
        assert [] == told(repr(embedder) + str(embedder))
        # An address is what another process needs; a key in it is its owner's choice.
        assert ["token"] == told(pickle.dumps(embedder))
    assert "the rest is not embedded" in log()
    assert [] == told(log()) == told(spans())


REFUSED = {
    "credentials": {"url": URL},
    "no URL": {"url": f"{PASSWORD}@host"},
    "key as variable": {"api_key_env": f"{KEY}-1"},
    "key as variable's name": {"api_key_env": KEY.lower()},
    "fragment": {"url": f"https://host/#{TOKEN}"},
    "far": {"url": f"http://host.example/v1?{TOKEN}"},
    "closed": {"url": f"http://127.0.0.1:1/v1?{TOKEN}", "max_retries": 0},
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("value", [KEY, f"{KEY}\n{KEY}", ""])
def test_settings_of_an_embedder(log, spans, monkeypatch, name, value):
    """Whatever is wrong with address or key, neither is shown."""
    from budgeteer.embedding import OpenAIEmbedder

    monkeypatch.setenv("OPENAI_API_KEY", value)

    def ask():
        embedder = OpenAIEmbedder(**REFUSED[name])
        assert [] == told(repr(embedder) + str(embedder))
        embedder.embed([TEXT])

    error = failure(ask)
    assert isinstance(error, BudgeteerError)
    shown = f"{error} {error!r} {vars(error)}" + formatted(error, chain=True)
    assert [] == told(shown) == told(log()) == told(spans())


CONFIGS = {
    "credentials": f"ranking: embedding, embedding: {{url: '{URL}'}}",
    "key": f"ranking: embedding, embedding: {{api_key_env: '{KEY}-1'}}",
    "key of its own": f"ranking: embedding, embedding: {{api_key: '{KEY}'}}",
    "YAML": f"ranking: '{KEY}",
    "tag": f"ranking: !!{TEXT} '{KEY}'",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_errors_of_a_configuration(tmp_path, log, name):
    """An error of a configuration names the key of a setting, and no secret value."""
    from budgeteer.config import load

    path = tmp_path / "budgeteer.yaml"
    path.write_text(
        f"{{budget: {{max_tokens: 9, {CONFIGS[name]}}}, sources: [{{type: inline, text: x}}]}}",
        "utf-8",
    )
    error = failure(lambda: load(path))
    assert isinstance(error, BudgeteerError)
    assert [] == told(f"{error} {error!r}" + formatted(error, chain=True), SECRETS) == told(log())


def test_a_configuration(tmp_path, log, spans, endpoint, monkeypatch):
    """A configuration shows no text of a source and no address, and warns without a title."""
    pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    from budgeteer.config import load

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("QDRANT", SECRETS["server's key"])
    (tmp_path / "a.md").write_text(f"# {TITLE}\n" + f"{TEXT} " * 9_000, "utf-8")
    where = f"url: 'http://user:{PASSWORD}@127.0.0.1:1/?token={TOKEN}', api_key_env: QDRANT"
    path = tmp_path / "budgeteer.yaml"
    sources = f"[{{type: directory, path: ., pattern: '*.md'}}, {{type: inline, text: {TEXT}}}"
    embedding = f"embedding: {{url: '{endpoint.url}?token={TOKEN}'}}"
    budget = f"{{max_tokens: 99, ranking: embedding, {embedding}}}"
    path.write_text(f"{{budget: {budget}, sources: {sources}]}}", "utf-8")
    config = load(path)
    with config.embedder:
        packing = config.query(QUERY)
    assert "the rest is not embedded" in log()
    assert [] == told(repr(config) + repr(packing)) == told(log()) == told(spans())

    server_ = f"{{type: qdrant, collection: a, {where}}}"
    path.write_text(f"{{budget: {budget}, sources: {sources}, {server_}]}}", "utf-8")
    config = load(path)
    assert [] == told(repr(config) + str(config))
    with config.embedder:
        error = failure(lambda: config.query(QUERY))
    assert isinstance(error, BudgeteerError)
    assert [] == told(f"{error}" + formatted(error, chain=False)) == told(log()) == told(spans())


def test_a_server_of_qdrant(log, monkeypatch):
    """A retriever shows neither the address of its server nor the key."""
    pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    monkeypatch.setenv("QDRANT", SECRETS["server's key"])
    address = f"http://user:{PASSWORD}@127.0.0.1:1/?token={TOKEN}"
    retriever = QdrantRetriever("docs", embedder=Embedder(), url=address, api_key_env="QDRANT")
    error = failure(lambda: RetrievalService([retriever], SETTINGS).retrieve(QUERY))

    assert isinstance(error, BudgeteerError)
    assert [] == told(f"{error} {retriever!r}" + formatted(error, chain=False)) == told(log())


def test_reports(backend, log, embedder, monkeypatch):
    """A report shows the texts that were packed, and no key and no credentials."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    packing = Packer(60, ranking=Embedding(embedder)).pack(QUERY, chunks())
    page = packing.report()
    assert {"query", "text", "title"} <= {*told(page)}
    assert [] == told(page + packing._repr_html_() + packing.plot(), SECRETS)
    assert [] == told(log())


def test_the_search_finds_canaries(caplog):
    """What these tests search with finds canaries in any letters, in bytes and in records."""
    assert ["key"] == told(f"x{KEY.upper()}x") == told(KEY.lower().encode())
    assert [*ALL] == told(" ".join(ALL.values()))
    assert [] == told("tea")
    assert len({*ALL.values()}) == len(ALL)


def test_what_is_a_text_shows_its_beginning(backend):
    """A chunk and what became of it show their texts, of long ones the beginning."""
    packing = Packer(40).pack(QUERY, [*chunks(), f"{'tea ' * 99}{TEXT}"])
    assert {"text", "title"} <= {*told(repr(chunks()[0]))}
    assert {"text", "title"} <= {*told(repr(packing.kept[0]))}
    assert ["text", "query"] == sorted(told(repr(packing.dropped)), reverse=True)
    assert [] == told(repr(packing.dropped[-1]))
