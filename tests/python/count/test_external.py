"""Counters of other packages: what they count, what they refuse, and what is said of it."""

import copy
import json
import os
import pickle
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from support import texts

from budgeteer import BudgeteerError, CounterError, InvalidArgumentError, _external, get_counter
from budgeteer._external import tiktoken_counter


def hf_counter(path):
    """Return the counter of tokenizers for a file."""
    return _external.hf_counter(f"hf:{path}", str(Path(path).absolute()), "for a test")


ENCODINGS = ("cl100k_base", "o200k_base", "o200k_harmony")

LETTERS = [*"helo<s>", "\u0120", "he", "ll", "\u00ef", "\u00bf", "\u00bd"]
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
SPECIAL = {
    "id": len(LETTERS),
    "content": "<s>",
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
    "normalized": False,
    "special": True,
}
CONTENT = {
    "added_tokens": [SPECIAL],
    "pre_tokenizer": BYTE_LEVEL,
    "model": {
        "type": "BPE",
        "vocab": {letter: i for i, letter in enumerate(dict.fromkeys(LETTERS))},
        "merges": ["h e", "l l"],
    },
}
"""A tokenizer.json of few letters with the special token <s>."""


@pytest.fixture
def written(tmp_path):
    """Write a tokenizer.json that differs from CONTENT in the keys given; return its folder."""

    def written(**changes):
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps({**CONTENT, **changes}), encoding="utf-8")
        return tmp_path

    return written


def in_a_new_process(code, *arguments, **environment):
    """Return what *code* prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


@pytest.fixture
def offline():
    """An environment whose proxy is a port of this machine that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # held, but not listening: every connection is refused
        proxy = f"http://user:hunter2@127.0.0.1:{held.getsockname()[1]}"
        yield {
            **{name: proxy for both in ("https_proxy", "http_proxy", "all_proxy")
               for name in (both, both.upper())},
            "no_proxy": "",
            "NO_PROXY": "",
        }  # fmt: skip


# tiktoken


@pytest.mark.parametrize("name", ENCODINGS)
def test_tiktoken(vocabulary, name):
    """A tiktoken counter counts what encode_ordinary answers, for every text."""
    counter, encoding = tiktoken_counter(name), tiktoken.get_encoding(name)

    @given(text=texts | st.text(st.characters(categories=None, exclude_categories=[])))
    def law(text):
        assert len(encoding.encode_ordinary(text)) == counter(text)

    law()
    assert (f"tiktoken:{name}", 0) == (counter.name, counter(""))


@pytest.mark.parametrize(("text", "like"), [("\ud800", "\ufffd"), ("\ud83d\ude00", "\U0001f600")])
def test_tiktoken_surrogates(vocabulary, text, like):
    """A lone surrogate counts as U+FFFD, a pair of them as the character it stands for."""
    counter = tiktoken_counter("o200k_base")

    assert counter(f"tea {like}") == counter(f"tea {text}")


def test_tiktoken_special(vocabulary):
    """What spells a special token counts as text."""
    assert 1 < tiktoken_counter("o200k_base")("<|endoftext|>")


def test_tiktoken_panic(vocabulary, capfd):
    """A text at which tiktoken panics is a CounterError that quotes none of it."""
    counter = tiktoken_counter("o200k_base")
    with pytest.raises(CounterError) as caught:
        counter(" " * 1_000_000 + "secret")

    assert "the tokenizer of 'tiktoken:o200k_base' cannot encode a text" == str(caught.value)
    assert 3 == counter("Hello, world")
    assert "secret" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cl100k_bse", "; did you mean 'cl100k_base'?"),
        ("o200k", "; did you mean 'o200k_base'?"),
        ("", ""),
        ("\ud800", ""),
        ("x" * 10_000, ""),
    ],
)
def test_unknown_encoding(name, hint):
    """An encoding that tiktoken lacks is refused briefly, with those it has and the nearest."""
    with pytest.raises(InvalidArgumentError) as caught:
        tiktoken_counter(name)

    message = str(caught.value)
    assert message.startswith(f"counter {('tiktoken:' + name)[:80]!r} must have one of 'gpt2', ")
    assert message.endswith(f"'o200k_harmony' after the colon{hint}")
    assert len(message) < 300
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("name", "native"), [("cl100k_base", "cl100k_base"), ("o200k_harmony", "o200k_base")]
)
def test_tiktoken_is_missing(monkeypatch, name, native):
    """Without tiktoken the error says how to get it, and which counter does without."""
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(CounterError) as caught:
        tiktoken_counter(name)

    assert (
        f"counter 'tiktoken:{name}' needs tiktoken: pip install 'budgeteer[tiktoken]'; "
        f"the counter {native!r} counts the same without it"
    ) == str(caught.value)


def test_tiktoken_is_missing_for_a_foreign_encoding(monkeypatch):
    """No native counter is named where none counts the same."""
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(CounterError, match=r"'budgeteer\[tiktoken\]'$"):
        tiktoken_counter("gpt2")


SHOW = """
import sys, traceback
from budgeteer import CounterError
from budgeteer._external import tiktoken_counter
if sys.argv[1] == "without_requests":
    sys.modules["requests"] = None
for name in sys.argv[2:]:
    try:
        tiktoken_counter(name)
    except CounterError:
        print(traceback.format_exc())
"""


def errors_of(shown):
    """Return the message of each traceback, once it is sure that it is a short one."""
    assert "During handling" not in shown
    assert "direct cause" not in shown
    start = "budgeteer.errors.CounterError: "
    return [line.removeprefix(start) for line in shown.splitlines() if line.startswith(start)]


NO_VOCABULARY = (
    "the vocabulary of 'tiktoken:{}' can neither be read from TIKTOKEN_CACHE_DIR nor downloaded "
    "into it ({})"
)


@pytest.mark.parametrize("kind", ["ProxyError", "ModuleNotFoundError"])
def test_offline(tmp_path, offline, kind):
    """Without file and network the error is one sentence that tells no URL, path or password."""
    requests = "without_requests" if kind == "ModuleNotFoundError" else "with_requests"
    shown = in_a_new_process(
        SHOW, requests, "cl100k_base", "gpt2", TIKTOKEN_CACHE_DIR=str(tmp_path), **offline
    )
    hint = "; the counter 'cl100k_base' counts the same without it"

    assert [
        NO_VOCABULARY.format("cl100k_base", kind) + hint,
        NO_VOCABULARY.format("gpt2", kind),
    ] == errors_of(shown)
    for secret in ("hunter2", "://", str(tmp_path), "127.0.0.1"):
        assert secret not in shown


def test_damaged_vocabulary(vocabulary, tmp_path, offline):
    """A damaged file is not counted with."""
    for path in vocabulary.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    shown = in_a_new_process(SHOW, "", "o200k_base", TIKTOKEN_CACHE_DIR=str(tmp_path), **offline)

    assert ["o200k_base", "ProxyError"] == [
        part for part in ("o200k_base", "ProxyError") if part in errors_of(shown)[0]
    ]


def test_cache_dir_is_honoured(vocabulary, offline):
    """With the file in TIKTOKEN_CACHE_DIR nothing is downloaded."""
    code = (
        "from budgeteer._external import tiktoken_counter as counter\n"
        "import sys\n"
        "print(counter('o200k_base')('Hello, world'), 'requests' in sys.modules)"
    )

    assert "3 False\n" == in_a_new_process(code, TIKTOKEN_CACHE_DIR=str(vocabulary), **offline)


# tokenizers


def test_hf(written):
    """An hf counter counts the tokens of a file, given itself or by its directory."""
    folder = written()
    for path in (folder, folder / "tokenizer.json"):
        counter = hf_counter(str(path))
        assert f"hf:{path}" == counter.name
        assert [0, 1, 3, 4] == [counter(text) for text in ("", "he", "hello", "hell he")]


@given(text=texts | st.text([*"helo<s> "]))
def test_hf_is_what_tokenizers_counts(tmp_path_factory, text):
    """An hf counter counts what tokenizers answers, with special tokens taken as text."""
    content = json.dumps({key: CONTENT[key] for key in ("model", "pre_tokenizer")})
    path = tmp_path_factory.getbasetemp() / "plain.json"
    path.write_text(content, encoding="utf-8")
    tokenizer = tokenizers.Tokenizer.from_str(content)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    assert len(tokenizer.encode(whole).ids) == hf_counter(str(path))(text)


@pytest.mark.parametrize(
    ("changes", "text", "falsified", "expected"),
    [
        (
            {"truncation": {
                "max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right",
            }},
            "hello hello", 3, 7,
        ),
        (
            {"padding": {
                "strategy": {"Fixed": 20}, "direction": "Right", "pad_to_multiple_of": None,
                "pad_id": 0, "pad_type_id": 0, "pad_token": "h",
            }},
            "hello hello", 20, 7,
        ),
        (
            {"post_processor": {
                "type": "TemplateProcessing",
                "single": [
                    {"SpecialToken": {"id": "<s>", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}},
                ],
                "pair": [],
                "special_tokens": {
                    "<s>": {"id": "<s>", "ids": [SPECIAL["id"]], "tokens": ["<s>"]},
                },
            }},
            "hello", 4, 3,
        ),
        ({}, "<s>he", 2, 4),
        ({"added_tokens": [{**SPECIAL, "special": False, "normalized": True}]}, "<s>he", 2, 4),
        ({"model": {**CONTENT["model"], "dropout": 1.0}}, "hello", 5, 3),
    ],
    ids=["truncation", "padding", "template", "special", "added", "dropout"],
)  # fmt: skip
def test_hf_settings(written, changes, text, falsified, expected):
    """No setting of the file falsifies a count, though tokenizers heeds it; nor does a text."""
    path = written(**changes) / "tokenizer.json"
    heeded = tokenizers.Tokenizer.from_file(str(path)).encode(text)

    assert falsified == len(heeded.ids)
    assert expected == hf_counter(str(path))(text)


@pytest.mark.parametrize(("text", "like"), [("\ud800", "\ufffd"), ("\ud83d\ude00", "\U0001f600")])
def test_hf_surrogates(written, text, like):
    """A lone surrogate counts as U+FFFD, as it does with tiktoken."""
    counter = hf_counter(str(written()))

    assert counter(f"he {like}") == counter(f"he {text}")
    assert 4 == counter("h\ud800")


def test_hf_file_is_gone(written):
    """Unpickling without the file is an error that says so."""
    data = pickle.dumps(hf_counter(str(written())))
    (written() / "tokenizer.json").unlink()
    with pytest.raises(CounterError, match="cannot be read: No such file or directory"):
        pickle.loads(data)


def test_hf_cannot_encode(written):
    """A text that the file has no tokens for is a CounterError that quotes none of it."""
    model = {"type": "WordLevel", "vocab": {"tea": 0}, "unk_token": "?"}
    counter = hf_counter(str(written(model=model, added_tokens=[], pre_tokenizer=None)))
    with pytest.raises(CounterError, match=r"^the tokenizer of 'hf:.* cannot encode a text$"):
        counter("secret")

    assert 1 == counter("tea")


def test_tokenizers_is_missing(monkeypatch, tmp_path):
    """Without tokenizers the error says how to get it."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").touch()
    with pytest.raises(CounterError) as caught:
        hf_counter("t.json")

    message = (
        "counter 'hf:t.json': for a test; the package tokenizers may count it: "
        "pip install 'budgeteer[hf]'"
    )
    assert message == str(caught.value)
    assert caught.value.__suppress_context__


# both


@pytest.fixture(params=["tiktoken", "hf"])
def counter(request, vocabulary, written):
    """A counter of either package."""
    if request.param == "tiktoken":
        return tiktoken_counter("cl100k_base")
    return hf_counter(str(written()))


def test_serves_as_a_counter(counter):
    """get_counter takes it, and cuts with it."""
    wrapped = get_counter(counter)

    assert counter("hello hello") == wrapped.count("hello hello")
    assert counter(wrapped.truncate("hello " * 50, 9)) <= 9


def test_copies(counter):
    """A counter comes back from pickling and copying equal, with the same hash and counts."""
    for again in (pickle.loads(pickle.dumps(counter)), copy.deepcopy(counter)):
        assert counter == again
        assert hash(counter) == hash(again)
        assert counter("hello hello") == again("hello hello")


def test_pickle_is_small(counter):
    """A pickle and a repr hold names, not vocabularies."""
    assert len(pickle.dumps(counter)) < 1_000
    assert f"{type(counter).__name__}(name={counter.name!r})" == repr(counter)


def test_pickle_for_another_process(counter, tmp_path):
    """A pickle counts alike in another process, wherever that stands."""
    path = tmp_path / "pickled"
    path.write_bytes(pickle.dumps(counter))
    code = (
        "import os, pathlib, pickle, sys\n"
        "os.chdir('/')\n"
        "print(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())('hello hello'))"
    )

    assert f"{counter('hello hello')}\n" == in_a_new_process(code, path)


def test_pickle_of_a_relative_path(written, monkeypatch, tmp_path_factory):
    """A relative path is that of the directory in which the counter was made."""
    monkeypatch.chdir(written())
    counter = hf_counter("tokenizer.json")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    again = pickle.loads(pickle.dumps(counter))

    assert ("hf:tokenizer.json", 3) == (again.name, again("hello"))


def test_immutable(counter):
    """A counter cannot be changed."""
    with pytest.raises(AttributeError):
        counter.name = "other"


def test_threads(counter):
    """Many threads count as one does."""
    items = [f"hello {'he' * i}" for i in range(200)]
    expected = [counter(item) for item in items]
    with ThreadPoolExecutor(8) as pool:
        assert [expected] * 8 == list(pool.map(lambda _: [*map(counter, items)], range(8)))


def test_errors_are_ours():
    """Whatever goes wrong is a BudgeteerError."""
    for make in (tiktoken_counter, hf_counter):
        with pytest.raises(BudgeteerError):
            make("no such thing")


def test_import_is_light():
    """The module loads neither package."""
    code = (
        "import sys, budgeteer._external\n"
        "print({'tiktoken', 'tokenizers', 'requests', 'regex'} & {*sys.modules})"
    )

    assert "set()\n" == in_a_new_process(code)
