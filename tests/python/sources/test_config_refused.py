"""The YAML configuration: what it says on one line when it cannot be read."""

import os
import sys

import pytest
from test_config import NOTE

from budgeteer import BudgeteerError, InvalidArgumentError, Packer
from budgeteer._count.names import NAMES
from budgeteer._sources.meaning import meaning_of
from budgeteer._sources.sources import Directory
from budgeteer.config import Config, ConfigError, json_schema, load


@pytest.fixture
def refused(configured, tmp_path):
    """Load a configuration that must be refused; return the error without file and meaning."""

    def refused(text, **files):
        with pytest.raises(ConfigError) as caught:
            configured(text, **files).chunks()
        message = str(caught.value)
        assert "\n" not in message
        message = message.removeprefix(f"{tmp_path / 'budgeteer.yaml'}: ")
        meaning = meaning_of(message, json_schema())
        if not meaning or not message.endswith(f" {meaning}"):
            return message
        message = message.removesuffix(f" {meaning}")
        assert message[-1] in ".?"
        return message.removesuffix(".")

    return refused


def unknown(key, known, hint=None):
    hint = f"; did you mean {hint!r}?" if hint else ""
    return f"{key} is not a known key; known are {', '.join(map(repr, known.split()))}{hint}"


def one_of(key, allowed, found, hint=None):
    hint = f"; did you mean {hint!r}?" if hint else ""
    return f"{key} must be one of {', '.join(map(repr, allowed.split()))}, not {found}{hint}"


TOP = "budget sources"
BUDGET = (
    "max_tokens reserve_tokens counter ranking min_score overflow max_chunks dedupe selection "
    "units order template notice embedding estimator truncation"
)
EMBEDDING = (
    "model url api_key_env cache_dir dimensions batch_size max_batch_bytes max_concurrency "
    "timeout connect_timeout total_timeout max_retries backoff max_response_bytes max_cache_bytes "
    "max_input_tokens truncate ca_file allow_insecure_http"
)
STYLES = "'plain', 'tagged', 'markdown', 'xml', 'json'"
BM25 = "stemming stopwords k1 b"
LEXICAL = "stemming stopwords headings links feedback k1 b k3"
TEMPLATE = "format separator header footer nonce"
JSONL = "type path name priority"
INLINE = "type text name priority"
RANKINGS = "lexical bm25 keyword recency input score embedding hybrid relevance manual"
OVERFLOWS = "skip stop truncate_end truncate_middle"
TRUNCATIONS = "drop truncate_end truncate_middle"
ESTIMATORS = f"{', '.join(map(repr, NAMES))} or a model such as 'gpt-4o'"
NEEDS = "; a model of that name needs register_model, load_models, BUDGETEER_MODELS or 'file:PATH'"
RATIO = "must have a number of characters from 0.001 to 1000000 after the colon"
TYPES = "directory jsonl inline qdrant"
EMPTY = "the file is empty; it must be a mapping with 'sources'"
NO_SOURCES = "sources is required and must list at least one source"
PATTERN = "sources[0].pattern must be a glob below the directory, such as '**/*.md', not "
MOST = 2**63 - 1

WRONG_KEYS = [
    ("", EMPTY),
    ("# only a comment", EMPTY),
    ("[]", "the file must be a mapping, not list"),
    ("source: []", unknown("source", TOP, "sources")),
    ("permissions: []", unknown("permissions", TOP)),
    ("1: []", "the file has a key that is int, not str"),
    ("[a]: []", "the file has a key that is list, not str"),
    ("budget: {rankng: manual}", unknown("budget.rankng", BUDGET, "ranking")),
    ("budget: {yes: 1}", "budget has a key that is bool, not str"),
    (
        "budget: {embedding: {modle: m}}",
        unknown("budget.embedding.modle", EMBEDDING, "model"),
    ),
    (
        "sources: [{type: inline, text: x}, {type: inline, text: x, path: y}]",
        unknown("sources[1].path", INLINE),
    ),
    (
        "sources: [{type: jsonl, path: x, pattern: y}]",
        unknown("sources[0].pattern", JSONL),
    ),
    ("sources: []\nsources: []", "sources is given twice, again in line 2"),
    (
        "budget:\n  ranking: manual\n  ranking: manual",
        "budget.ranking is given twice, again in line 3",
    ),
    (
        "sources:\n- {type: inline,\n   type: inline}",
        "sources[0].type is given twice, again in line 3",
    ),
    ("budget: {<<: {}, <<: {}}", "budget.<< is given twice, again in line 1"),
    ("a: {deep: [{a: 1, a: 2}]}", "a.deep[0].a is given twice, again in line 1"),
]

WRONG_BUDGETS = [
    ("8000", "budget must be a mapping, not int"),
    ("{max_tokens: 0}", f"budget.max_tokens must be from 1 to {MOST}, not 0"),
    ("{max_tokens: -1}", f"budget.max_tokens must be from 1 to {MOST}, not -1"),
    (f"{{max_tokens: {2**63}}}", f"budget.max_tokens must be from 1 to {MOST}, not {2**63}"),
    ("{max_tokens: true}", "budget.max_tokens must be an int, not bool"),
    ("{max_tokens: 8e3}", "budget.max_tokens must be an int, not str"),
    ("{max_tokens: 8000.0}", "budget.max_tokens must be an int, not float"),
    ("{max_tokens: '8000'}", "budget.max_tokens must be an int, not str"),
    ("{max_tokens: }", "budget.max_tokens must be an int, not None"),
    ("{reserve_tokens: -1}", f"budget.reserve_tokens must be from 0 to {MOST}, not -1"),
    ("{reserve_tokens: false}", "budget.reserve_tokens must be an int, not bool"),
    ("{ranking: relevence}", one_of("budget.ranking", RANKINGS, "'relevence'", "relevance")),
    ("{ranking: bm52}", one_of("budget.ranking", RANKINGS, "'bm52'", "bm25")),
    (
        "{ranking: [a]}",
        one_of("budget.ranking", RANKINGS, "list").replace(
            ", not", ", or a mapping such as {bm25: {stemming: german}}, not"
        ),
    ),
    ('{ranking: "a\\nb"}', one_of("budget.ranking", RANKINGS, r"'a\nb'")),
    (
        "{ranking: embedding}",
        "budget.embedding is required when budget.ranking is 'embedding'",
    ),
    ("{embedding: yes}", "budget.embedding must be a mapping, not bool"),
    ("{embedding: {url: 1}}", "budget.embedding.url must be a str, not int"),
    ("{embedding: {model: null}}", "budget.embedding.model must be a str, not None"),
    ("{embedding: {cache_dir: [a]}}", "budget.embedding.cache_dir must be a str, not list"),
    (
        "{embedding: {model: ''}}",
        "budget.embedding.model must be a name in printable characters",
    ),
    (
        "{embedding: {cache_dir: ''}}",
        "budget.embedding.cache_dir must be a path, neither empty nor with a null",
    ),
    (
        "{embedding: {api_key_env: sk-proj-1234}}",
        (
            "budget.embedding.api_key_env must be the name of an environment variable: letters, "
            "digits and underscores"
        ),
    ),
    (
        "{embedding: {url: e.example}}",
        (
            "budget.embedding.url must be the full http or https URL of the endpoint, in ASCII "
            "and without a fragment"
        ),
    ),
    (
        "{embedding: {url: 'http://e.example'}}",
        (
            "budget.embedding.url must be https where a key is sent to another machine; "
            "api_key_env: null sends none, allow_insecure_http: true allows it"
        ),
    ),
    (
        "{truncation: truncate}",
        one_of("budget.truncation", TRUNCATIONS, "'truncate'", "truncate_end"),
    ),
    *(
        (
            f"{{estimator: {name}}}",
            f"budget.estimator must be one of {ESTIMATORS}, not {name!r}; did you mean {hint!r}?",
        )
        for name, hint in [
            ("word", "words"),
            ("o200k", "o200k_base"),
            ("cl100k-base", "cl100k_base"),
            ("gpt4o", "gpt-4o"),
        ]
    ),
    (
        "{estimator: qx}",
        f"budget.estimator must be one of {ESTIMATORS}, not 'qx'{NEEDS}",
    ),
    *(
        (
            f"{{estimator: 'chars_per_token:{x}'}}",
            f"budget.estimator 'chars_per_token:{x}' {RATIO}",
        )
        for x in ("x", "0", "nan", "1000001", "")
    ),
    ("{estimator: }", "budget.estimator must be a str, not None"),
    ("{counter: 4}", "budget.counter must be a str, not int"),
    (
        "{counter: word}",
        f"budget.counter must be one of {ESTIMATORS}, not 'word'; did you mean 'words'?",
    ),
    ("{overflow: drop}", one_of("budget.overflow", OVERFLOWS, "'drop'")),
    ("{truncation: stop}", one_of("budget.truncation", TRUNCATIONS, "'stop'")),
    ("{dedupe: None}", "budget.dedupe must be 'exact', 'near' or null, not 'None'"),
    ("{dedupe: 1}", "budget.dedupe must be 'exact', 'near' or null, not int"),
    ("{max_chunks: -1}", f"budget.max_chunks must be from 0 to {MOST}, not -1"),
    ("{min_score: high}", "budget.min_score must be a number, 'auto' or null, not 'high'"),
    ("{min_score: [1]}", "budget.min_score must be a float, not list"),
    (
        "{min_score: auto, ranking: keyword}",
        (
            "budget.min_score must be a number or null under ranking: keyword, not 'auto': that "
            "is for ranking: lexical and ranking: bm25"
        ),
    ),
    ("{notice: 1}", "budget.notice must be true, null or a str, not int"),
    ("{notice: ''}", "budget.notice must not be empty; null is for none"),
    ("{units: sentence, dedupe: near}", "budget.units must be 'chunk' under dedupe: near"),
    (
        "{units: sentence, selection: coverage}",
        "budget.units must be 'chunk' under selection: coverage",
    ),
    (
        "{template: 5}",
        f"budget.template must be one of {STYLES} or a mapping, not int",
    ),
    (
        "{template: '- {text}'}",
        (
            f"budget.template must be one of {STYLES} or a mapping, not '- {{text}}': a format "
            "string is given as {format: '- {text}'}"
        ),
    ),
    ("{template: {fromat: x}}", unknown("budget.template.fromat", TEMPLATE, "format")),
    ("{template: {format: 5}}", "budget.template.format must be a str, not int"),
    (
        "{template: {header: x}}",
        f"budget.template.format is required: one of {STYLES}, or a format string",
    ),
    (
        "{template: {format: xml, separator: x}}",
        (
            "budget.template.separator must be left out with format: xml; only a format string "
            "has a choice"
        ),
    ),
    (
        "{template: {format: '{text}', nonce: 1}}",
        "budget.template.nonce must be true, false or a str, not int",
    ),
    ("{ranking: {}}", "budget.ranking must have one ranking, not 0"),
    ("{ranking: {bm25: {}, hybrid: {}}}", "budget.ranking must have one ranking, not 2"),
    (
        "{ranking: {recency: {}}}",
        unknown("budget.ranking.recency", "lexical bm25 embedding hybrid"),
    ),
    ("{ranking: {bm25: 5}}", "budget.ranking.bm25 must be a mapping, not int"),
    ("{ranking: {bm25: {stem: x}}}", unknown("budget.ranking.bm25.stem", BM25, "stemming")),
    ("{ranking: {bm25: {k3: 2}}}", unknown("budget.ranking.bm25.k3", BM25)),
    (
        "{ranking: {lexical: {link: no}}}",
        unknown("budget.ranking.lexical.link", LEXICAL, "links"),
    ),
    (
        "{ranking: {lexical: {k3: -1}}}",
        "budget.ranking.lexical.k3 must be from 0 to 1000000, not -1.0",
    ),
    ("{ranking: {lexical: {links: 1}}}", "budget.ranking.lexical.links must be a bool, not int"),
    ("{ranking: {lexical: 5}}", "budget.ranking.lexical must be a mapping, not int"),
    (
        "{ranking: {hybrid: {weights: {bm25: 1}, bm25: bm52}}}",
        one_of("budget.ranking.hybrid.bm25", "lexical bm25", "'bm52'", "bm25"),
    ),
    (
        "{ranking: {hybrid: {weights: {bm25: 1}, bm25: {lexical: {k1: x}}}}}",
        "budget.ranking.hybrid.bm25.lexical.k1 must be a float, not str",
    ),
    ("{ranking: {bm25: {b: 2}}}", "budget.ranking.bm25.b must be from 0 to 1, not 2.0"),
    (
        "{ranking: {bm25: {stopwords: 5}}}",
        (
            "budget.ranking.bm25.stopwords must be the name of a language, a collection of words "
            "or null, not int"
        ),
    ),
    (
        "{ranking: {embedding: {fallback: bm25}}}",
        "budget.embedding is required when budget.ranking is 'embedding'",
    ),
    (
        "{ranking: hybrid}",
        "budget.embedding is required when budget.ranking is 'hybrid'",
    ),
    (
        "{ranking: {embedding: {fallback: bm}}, embedding: {}}",
        "budget.ranking.embedding.fallback must be 'lexical', 'bm25', a mapping or null, not 'bm'",
    ),
    (
        "{ranking: {embedding: {fallback: {b: x}}}, embedding: {}}",
        "budget.ranking.embedding.fallback.b must be a float, not str",
    ),
    (
        "{ranking: {hybrid: {k: 5}}, embedding: {}}",
        "budget.ranking.hybrid.k must be 60 under fusion: minmax: it has none",
    ),
    (
        "{ranking: {hybrid: {weights: {bm52: 1}}}}",
        (
            "a key of budget.ranking.hybrid.weights must be one of 'bm25', 'embedding', 'score', "
            "not 'bm52'; did you mean 'bm25'?"
        ),
    ),
    (
        "{ranking: {hybrid: {weights: {bm25: -1}}}}",
        "budget.ranking.hybrid.weights['bm25'] must be from 0 to 1000000, not -1.0",
    ),
    (
        "{ranking: {hybrid: {weights: {bm25: 1}, embedding: {}}}, embedding: {}}",
        "budget.ranking.hybrid.embedding must be left out where weights has none for 'embedding'",
    ),
    (
        "{ranking: {hybrid: {weights: {score: 1}, bm25: {b: 0.5}}}}",
        "budget.ranking.hybrid.bm25 must be left out where weights has none for 'bm25'",
    ),
    *(
        (
            f"{{{older}: {a}, {name}: {b}}}",
            (
                f"budget.{older} is the older name of budget.{name}: give one of them, not both "
                f"{a!r} and {b!r}"
            ),
        )
        for older, name, a, b in [
            ("estimator", "counter", "words", "o200k_base"),
            ("truncation", "overflow", "drop", "skip"),
        ]
    ),
    ("{embedding: {truncate: 1}}", "budget.embedding.truncate must be a bool, not int"),
    (
        "{embedding: {model: m, truncate: true}}",
        "budget.embedding.truncate needs max_input_tokens: the limit of this model is not known",
    ),
    ("{estimator: 4}", "budget.estimator must be a str, not int"),
    ("{estimator: [o200k_base]}", "budget.estimator must be a str, not list"),
]

WRONG_SOURCES = [
    ("", NO_SOURCES),
    ("[]", NO_SOURCES),
    ("{}", "sources must be a list, not dict"),
    ("docs", "sources must be a list, not str"),
    ("[docs]", "sources[0] must be a mapping, not str"),
    ("[{}]", "sources[0].type is required: one of 'directory', 'jsonl', 'inline', 'qdrant'"),
    ("[{type: http_api}]", one_of("sources[0].type", TYPES, "'http_api'")),
    ("[{type: dirctory}]", one_of("sources[0].type", TYPES, "'dirctory'", "directory")),
    ("[{type: }]", one_of("sources[0].type", TYPES, "None")),
    ("[{type: directory}]", "sources[0].path is required"),
    ("[{type: jsonl}]", "sources[0].path is required"),
    ("[{type: inline}]", "sources[0].text is required"),
    ("[{type: directory, path: 5}]", "sources[0].path must be a str, not int"),
    ("[{type: directory, path: ''}]", "sources[0].path must not be empty"),
    ("[{type: inline, text: 5}]", "sources[0].text must be a str, not int"),
    ("[{type: inline, text: x, name: 3}]", "sources[0].name must be a str, not int"),
    (
        "[{type: inline, text: x, priority: high}]",
        "sources[0].priority must be a float, not str",
    ),
    (
        "[{type: inline, text: x, priority: true}]",
        "sources[0].priority must be a float, not bool",
    ),
    (
        "[{type: inline, text: x, priority: .nan}]",
        "sources[0].priority must be a number, not NaN",
    ),
    ("[{type: directory, path: ., pattern: ''}]", PATTERN + "''"),
    ("[{type: directory, path: ., pattern: /etc/*}]", PATTERN + "'/etc/*'"),
    ("[{type: directory, path: ., pattern: a/../*}]", PATTERN + "'a/../*'"),
    (
        "[{type: inline, text: 2024-13-45}]",
        "sources[0].text cannot be read as timestamp; quote it if it is text",
    ),
]

NOT_PLAIN_YAML = [
    (
        "budget: [",
        (
            "line 1, column 10: expected the node content, but found '<stream end>' "
            "(while parsing a flow node)"
        ),
    ),
    ("a: b: c", "line 1, column 5: mapping values are not allowed here"),
    (
        "sources:\n\t- x",
        (
            r"line 2, column 1: found character '\t' that cannot start any token "
            "(while scanning for the next token)"
        ),
    ),
    ("a: *b", "line 1, column 4: found undefined alias 'b'"),
    (
        "a: 1\n---\nb: 1",
        "line 2, column 1: but found another document (expected a single document in the stream)",
    ),
    ("a: \x07", "line 1, column 4: the character #x0007 is not allowed"),
    ("a: 1\nbb\x00", "line 2, column 3: the character #x0000 is not allowed"),
    (
        "a: !!python/name:os.system ''",
        (
            "line 1, column 4: could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/name:os.system'"
        ),
    ),
    (
        "a: !!python/object/apply:os.system ['true']",
        "a has the unknown tag 'tag:yaml.org,2002:python/object/apply:os.system'",
    ),
    ("a: !!set {b}", "a has the unknown tag 'tag:yaml.org,2002:set'"),
    ("!!omap []", "the file has the unknown tag 'tag:yaml.org,2002:omap'"),
    ("a: !!int ''", "a cannot be read as int; quote it if it is text"),
    ("a: !!bool x", "a cannot be read as bool; quote it if it is text"),
    ("a: !!map x", "line 1, column 4: expected a mapping node, but found scalar"),
    ("a: &a [*a]", "a[0] contains itself"),
    ("a: &a {b: *a}", "a.b contains itself"),
    ("budget: {<<: 5}", "budget.<< must be a mapping or a list of mappings, not int"),
    ("budget: {<<: [{}, x]}", "budget.<< must be a mapping or a list of mappings, not str"),
    ("budget: " + "[" * 20_000, "nested too deeply"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *WRONG_KEYS,
        *((f"budget: {text}", why) for text, why in WRONG_BUDGETS),
        *((f"sources: {text}", why) for text, why in WRONG_SOURCES),
        *NOT_PLAIN_YAML,
    ],
)
def test_a_bad_configuration_is_refused_in_one_line(refused, text, message):
    """The message names the key, what was found and what is allowed, and hints at a near miss."""
    assert message == refused(text)


@pytest.mark.parametrize("merge", ["[{}]", "{{<<: [{}]}}"])
def test_a_small_file_of_many_aliases_stays_cheap(refused, merge):
    """Aliases of aliases, in lists or merges, cost no more than the file is long."""
    lines = [f"a{i}: &a{i} " + merge.format(", ".join([f"*a{i - 1}"] * 9)) for i in range(1, 40)]
    assert refused("\n".join(["a0: &a0 {x: 1}", *lines])).startswith("a0 is not a known key")


@pytest.mark.parametrize(
    ("name", "starts", "ends"),
    [
        (
            "tiktoken:cl100k_bse",
            "budget.estimator 'tiktoken:cl100k_bse' must have one of 'gpt2', ",
            " after the colon; did you mean 'cl100k_base'?",
        ),
        ("tiktoken:", "budget.estimator 'tiktoken:' must have one of ", " after the colon"),
        ("hf:", "budget.estimator 'hf:' must have the path ", "; there is no such file"),
        ("hf:gone", "budget.estimator 'hf:", "; there is no such file"),
        ("hf:a.json", "budget.estimator 'hf:", ""),
        ("file:gone", "budget.estimator 'file:", "; there is no such file"),
    ],
)
def test_a_counter_of_another_package_is_refused_by_its_key(refused, name, starts, ends):
    """What tiktoken or tokenizers cannot count with is said of the key that named it."""
    message = refused(f"budget: {{estimator: '{name}'}}\n{NOTE}", **{"a.json": "{}"})
    assert message.startswith(starts)
    assert message.endswith(ends)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{type: directory, path: gone}", "sources[0].path: {}gone does not exist"),
        ("{type: jsonl, path: gone}", "sources[0].path: {}gone does not exist"),
        (
            "{type: directory, path: a.txt}",
            "sources[0].path must be a directory, but {}a.txt is a file",
        ),
        ("{type: jsonl, path: docs}", "sources[0].path must be a file, but {}docs is a directory"),
    ],
)
def test_a_path_that_does_not_fit_is_refused_by_load(refused, tmp_path, source, message):
    """What a source needs is there when load returns, and of the kind that it needs."""
    found = refused(f"sources: [{source}]", **{"a.txt": "", "docs__a.md": ""})
    assert message.format(f"{tmp_path}{os.sep}") == found


def test_a_path_that_cannot_be_looked_up_is_refused_by_its_key(refused):
    """Whatever the system says of it: that a name is too long, or a folder may not be read."""
    message = refused(f"sources: [{{type: jsonl, path: {'a' * 300}}}]")
    assert message.startswith("sources[0].path: ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": ', "line 2, column 10: invalid JSON: Expecting value"),
        ("text", "line 2, column 1: invalid JSON: Expecting value"),
        ('{"text": NaN}', "line 2: invalid JSON: NaN is not a JSON number"),
        ('{"score": 1e999}', "line 2: invalid JSON: a number is beyond the range of a float"),
        ("[" * 200_000, "line 2: invalid JSON: nested too deeply"),
        ('"text"', "line 2: must be a JSON object, not str"),
        ("null", "line 2: must be a JSON object, not None"),
        ('{"body": "x"}', "line 2: must have a key 'text', 'content' or 'page_content'"),
        ('{"text": null}', "line 2: text must be a str, not None"),
        ('{"content": 5}', "line 2: content must be a str, not int"),
        ('{"text": "x", "id": true}', "line 2: id must be a str, not bool"),
        ('{"text": "x", "title": 5}', "line 2: title must be a str, not int"),
        ('{"text": "x", "source": []}', "line 2: source must be a str, not list"),
        ('{"text": "x", "score": "0.5"}', "line 2: score must be a float, not str"),
        ('{"text": "x", "metadata": "k"}', "line 2: metadata must be a mapping, not str"),
        (b'{"text": "Gr\xfcn"}', "line 2: not UTF-8"),
    ],
)
def test_a_bad_line_is_named(refused, tmp_path, line, message):
    """The message names the JSONL file, the line and what is wrong with it."""
    data = line if isinstance(line, bytes) else line.encode()
    found = refused(
        "sources: [{type: jsonl, path: a.jsonl}]",
        **{"a.jsonl": b'{"text": "fine"}\n' + data + b'\n{"text": "fine"}\n'},
    )
    assert f"{tmp_path / 'a.jsonl'}: {message}" == found


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    """A missing configuration, and a directory in its place, are named in one line."""
    with pytest.raises(ConfigError, match=r"cannot read .*gone\.yaml: No such file") as caught:
        load(tmp_path / "gone.yaml")
    assert isinstance(caught.value, BudgeteerError)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(ConfigError, match=r"cannot read "):
        load(tmp_path)
    with pytest.raises(ConfigError, match=r"^a\\x00b: embedded null"):
        load("a\0b")
    (tmp_path / "a.yaml").write_bytes(b"a: 1\nb: \xff")
    with pytest.raises(ConfigError, match=r"a\.yaml: line 2: not UTF-8"):
        load(tmp_path / "a.yaml")


def test_the_path_must_be_a_path():
    """What is no path is an argument error, not one of the configuration."""
    with pytest.raises(InvalidArgumentError, match="path must be a str or a path, not int"):
        load(5)


def test_a_newline_in_a_name_stays_in_one_line(tmp_path):
    """A message is one line even where a path has a newline in it."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "a\nb.yaml")
    assert r"a\nb.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_source_that_goes_away_is_named(configured, tmp_path):
    """A file deleted after load is one clear error at the next reading."""
    config = configured("sources: [{type: jsonl, path: a.jsonl}]", **{"a.jsonl": '{"text": "x"}'})
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"cannot read .*a\.jsonl: No such file"):
        config.query("x")


def test_a_directory_that_cannot_be_listed_is_an_error(tmp_path):
    """What cannot be listed is not passed over in silence."""
    config = Config(tmp_path, Packer(5), (Directory(tmp_path / "gone", "docs"),))
    with pytest.raises(ConfigError, match=r"cannot read .*gone: No such file"):
        config.chunks()


def test_without_pyyaml_the_message_says_what_to_install(refused, monkeypatch):
    """PyYAML is an extra, and its absence is named with the command that ends it."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert "reading it needs PyYAML: pip install 'budgeteer[cli]'" == refused(NOTE)
