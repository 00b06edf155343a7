"""Counters of tokenizers from files: what they count and refuse. Cases: tokenizer_cases.py."""

import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import BACKENDS, backend_named, compared, outcome

from budgeteer import CounterError, InvalidArgumentError, Packer, get_counter
from budgeteer._backend import backend
from budgeteer._codes import BOTH, END, START

FOLDER = Path(__file__).parents[2] / "cases"
FILES = FOLDER / "tokenizers"
CASES = json.loads((FOLDER / "tokenizers.json").read_text("utf-8"))
TEXTS = [case["text"] for case in CASES["encodings"]]
IS_NATIVE = backend.__name__ == "budgeteer._native"
needs_native = pytest.mark.skipif(not IS_NATIVE, reason="the reference reads tokenizer.json only")


@pytest.mark.parametrize("name", CASES["encodings"][0]["counts"])
def test_encodings(name):
    """Each encoding of the package counts as the package does that defines it."""
    texts = CASES["encodings"] if IS_NATIVE else CASES["encodings"][:150]
    counter = get_counter(name, cache=False)

    assert counter.is_exact
    expected = [case["counts"][name] for case in texts]
    assert expected == counter.count_batch([case["text"] for case in texts]).tolist()


@pytest.mark.parametrize("case", CASES["files"], ids=lambda case: case["file"])
@pytest.mark.parametrize("prefix", ["file:", "hf:"])
def test_files(case, prefix):
    """A file counts as the package does that wrote it, under both names."""
    if not IS_NATIVE and (not case["file"].endswith(".json") or case["file"] == "tekken.json"):
        pytest.skip("the reference reads tokenizer.json only")
    counter = get_counter(f"{prefix}{FILES / case['file']}")

    assert counter.is_exact
    assert case["counts"] == counter.count_batch(TEXTS).tolist()


@pytest.mark.parametrize("name", CASES["refused"])
def test_refused(name):
    """What the backend cannot count exactly goes to tokenizers, or is an error that says why."""
    path = f"file:{FILES / name}"
    if name.endswith(".model"):
        with pytest.raises(CounterError, match=r"^counter 'file:"):
            get_counter(path)
        return
    counter = get_counter(path)

    assert counter.is_exact
    assert counter.count("the teapot") > 0


def test_a_piece_that_is_unused(tmp_path):
    """SentencePiece merges it and takes it apart again: that is refused."""
    if not IS_NATIVE:
        pytest.skip("the reference reads tokenizer.json only")
    path = tmp_path / "tokenizer.model"
    for kind in (1, 5):  # as an ordinary piece it is read
        piece = b"\x0a\x03qqq\x18" + bytes([kind])
        path.write_bytes((FILES / "pieces.model").read_bytes() + b"\x0a\x07" + piece)
        if kind == 1:
            assert get_counter(f"file:{path}").is_exact
    with pytest.raises(CounterError, match="merged and then taken apart"):
        get_counter(f"file:{path}")


BEHIND_SPACES = {
    "type": "Split",
    "pattern": {"String": " "},
    "behavior": "MergedWithPrevious",
    "invert": False,
}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
PREPEND = {"type": "Prepend", "prepend": "\u2581"}
SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
NFC = {"type": "NFC"}


def normalized(*steps):
    """Return a change of a file: its normalizers."""
    return {"normalizer": {"type": "Sequence", "normalizers": [*steps]}}


def split(*steps):
    """Return a change of a file: its steps in front of the merges of bytes."""
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, BYTES]}}


def by(pattern):
    """Return a change of a file: the pattern that it splits by."""
    step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    return split({**step, "invert": False})


def merging(*merges):
    """Return a change of a file: the merges of bytes, in their order."""
    known = json.loads((FILES / "no-pattern.json").read_text("utf-8"))["model"]["vocab"]
    alphabet = [token for token in known if len(token) == 1]
    made = (merge.replace(" ", "") for merge in merges)
    vocab = {token: i for i, token in enumerate(dict.fromkeys([*alphabet, *made]))}
    return {"model": {"vocab": vocab, "merges": [*merges]}}


def without_bytes(name):
    """Return a change of a file: no token for a single byte."""
    known = json.loads((FILES / name).read_text("utf-8"))["model"]["vocab"]
    return {"model": {"vocab": {t: i for t, i in known.items() if not t.startswith("<0x")}}}


SPACELESS = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "a", "b"]
"""The tokens of a vocabulary of characters in which a space is three bytes."""

ODD_FILES = [
    ("characters.json", normalized(NFC, SPACES), ["cafe\u0301", "e\u0301"]),
    ("characters.json", normalized(PREPEND, PREPEND, SPACES), ["a", "the tea"]),
    ("characters.json", {"model": {"ignore_merges": True, "merges": []}}, ["he", "pot"]),
    (
        "characters.json",
        {"model": {"vocab": {token: i for i, token in enumerate(SPACELESS)}, "merges": []}},
        ["a b", "  ", "a\nb"],
    ),
    ("metaspace.json", {"normalizer": NFC}, ["cafe\u0301", "e\u0301"]),
    ("gpt2.json", split(BEHIND_SPACES), ["the teapot", "a  b", " the tea"]),
    ("gpt2.json", by("^c"), ["re\nce", "ce"]),
    ("gpt2.json", by("e$"), ["the tea, the\nthe", "the"]),
    ("gpt2.json", by(r"\p{L}{1,2}+"), ["the teapot"]),
    ("gpt2.json", by("(?m:.c)"), ["\nce"]),
    ("gpt2.json", by("[[:alpha:]]c"), ["\u00e9ce"]),
    ("gpt2.json", by(r"\G"), ["the tea"]),
    (
        "no-pattern.json",
        {**by(r"\w+|[^\w\s]+|\s+"), **merging("\xe2 \u0122", "a \xe2\u0122")},
        ["a\u200da"],
    ),
    ("no-pattern.json", {**by("(?i)ss|x"), **merging("a \xc3")}, ["a\xdf"]),
    ("no-pattern.json", {**by("x{2}?"), **merging("a b")}, ["ab"]),
    ("no-pattern.json", {**by(r"\pL"), **merging("a b")}, ["ab"]),
    ("no-pattern.json", merging("bb b", "bb bb", "b b"), ["bbbb", "abbbbba"]),
    ("no-pattern.json", merging("aaa a", "aa a", "a a"), ["aaaa", "aaaaaaa"]),
    ("no-pattern.json", merging("b aa", "aa b", "c b", "a a"), ["aabaab"]),
    ("no-pattern.json", merging("bb bab", "ba b", "b a", "bab a", "b b"), ["bbbaaaababa"]),
    ("characters.json", without_bytes("characters.json"), ["\u65e5\u672c\u8a9e", "the tea"]),
]
"""Files whose steps go together in a way that their maker alone counts, and texts that tell."""


def test_added_tokens(tmp_path):
    """An added token counts as plain text where a text spells it, also one that is not special."""
    file = json.loads((FILES / "gpt2.json").read_text("utf-8"))
    plain = get_counter(f"file:{FILES / 'gpt2.json'}").count("the <tool_call> tea")
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False)
    flags["normalized"] = True
    file["added_tokens"] = [{"id": len(file["model"]["vocab"]), "content": "<tool_call>", **flags}]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")

    assert plain == get_counter(f"file:{path}").count("the <tool_call> tea")


@pytest.mark.parametrize(("name", "change", "texts"), ODD_FILES)
def test_odd_files(tmp_path, name, change, texts):
    """Steps that count natively one by one count as their maker counts them together."""
    file = json.loads((FILES / name).read_text("utf-8"))
    model = {**file["model"], **change.get("model", {})}
    file.update({**change, "model": model})
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    tokenizer = pytest.importorskip("tokenizers").Tokenizer.from_file(str(path))
    counter = get_counter(f"file:{path}")

    expected = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
    assert expected == [counter.count(text) for text in texts]


def test_without_tokenizers(monkeypatch):
    """Without the package the error says what helps."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(CounterError, match=r"tokenizers may count it: pip install 'budgeteer"):
        get_counter(f"file:{FILES / 'refused-wordpiece.json'}")


@pytest.mark.parametrize(
    "path", ["", "gpt2", "no/such/file.json", "\ud800", "nul\0", "x" * 10_000, "/dev/null"]
)
@pytest.mark.parametrize("prefix", ["file:", "hf:"])
def test_no_file(tmp_path, monkeypatch, prefix, path):
    """A path that leads to no file is refused by its name, shortened; it is never downloaded."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match="there is no such file") as caught:
        get_counter(prefix + path)

    assert str(caught.value).startswith(f"counter {(prefix + path)[:80]!r} must have the path")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_path_that_is_no_text(tmp_path):
    """A file whose name is not UTF-8 is refused by its name."""
    path = tmp_path / os.fsdecode(b"\xff.json")
    shutil.copy(FILES / "gpt2.json", path)
    with pytest.raises(CounterError, match=r"^the path of 'file:.* must be UTF-8$"):
        get_counter(f"file:{path}")


def test_a_directory(tmp_path):
    """A directory stands for the file in it; without one there is no such file."""
    with pytest.raises(InvalidArgumentError, match="there is no such file"):
        get_counter(f"file:{tmp_path}")
    shutil.copy(FILES / "gpt2.json", tmp_path / "tokenizer.json")

    assert 3 == get_counter(f"file:{tmp_path}").count(TEXTS[11])


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}", b"null", b"hunter2 ", b"\xff", b"[" * 100_000, b"{" * 100_000),
        b'{"model": {"type": "hunter2"}}',
        b'{"model": {"type": "BPE", "vocab": "hunter2"}}',
    ],
    ids=lambda content: str(len(content)),
)
def test_a_bad_file(tmp_path, content):
    """What is no tokenizer is a CounterError that quotes none of it but the model's type."""
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(CounterError, match=r"^counter 'file:") as caught:
        get_counter(f"file:{path}")

    names_it = IS_NATIVE and content == b'{"model": {"type": "hunter2"}}'
    assert ("hunter2" in str(caught.value)) is names_it


def test_a_file_that_changes(tmp_path):
    """A file that is replaced is read again."""
    path = tmp_path / "tokenizer.json"
    shutil.copy(FILES / "gpt2.json", path)
    before = get_counter(f"file:{path}")
    first = next(case for case in CASES["files"] if case["file"] == "gpt2.json")["counts"]
    other = tmp_path / "other"
    shutil.copy(FILES / "no-pattern.json", other)
    other.replace(path)
    behind = get_counter(f"file:{path}")
    second = next(case for case in CASES["files"] if case["file"] == "no-pattern.json")["counts"]

    assert first == before.count_batch(TEXTS).tolist()
    assert second == behind.count_batch(TEXTS).tolist()


@needs_native
@pytest.mark.parametrize("name", ["tokenizer.model", "tekken.json", "tea.tiktoken"])
def test_a_file_that_changes_in_a_folder(tmp_path, name):
    """A file is read again, too, where its folder was asked for: that stays as it was."""
    path = tmp_path / name
    for file in ("pieces.model", "pieces-prefix.model", "tekken.json"):
        path.write_bytes((FILES / file).read_bytes())
        behind = get_counter(f"file:{tmp_path}")
        counts = next(case for case in CASES["files"] if case["file"] == file)["counts"]

        assert counts == behind.count_batch(TEXTS).tolist()


def test_a_file_is_read_once(monkeypatch):
    """A file that was read stays in memory."""
    name = f"file:{FILES / 'llama3.json'}"
    get_counter(name)
    monkeypatch.setattr("budgeteer._count.files.backend", None)

    assert 3 == get_counter(name).count(TEXTS[11])


def test_a_file_of_tokenizers_is_read_once(monkeypatch):
    """What only the package tokenizers counts stays in memory, too, and so does the refusal."""
    name = f"file:{FILES / 'refused-wordpiece.json'}"
    counter = get_counter(name)
    data = pickle.dumps(counter)
    monkeypatch.setattr("budgeteer._count.files.backend", None)
    monkeypatch.setattr("tokenizers.Tokenizer", None)

    for again in (get_counter(name), pickle.loads(data)):
        assert counter == again
        assert counter.count("the teapot") == again.count("the teapot")
    assert name.replace("file:", "hf:") == get_counter(name.replace("file:", "hf:")).name


def test_a_file_of_tokenizers_that_changes(tmp_path):
    """It is read again, by a pickle as well; one that the backend can count is then native."""
    path = tmp_path / "tokenizer.json"
    model = {"type": "WordLevel", "unk_token": "?"}
    counts = []
    for vocab in ({"?": 0}, {"?": 0, "green": 1, "tea": 2}):
        document = {"model": {**model, "vocab": vocab}, "pre_tokenizer": None}
        if len(vocab) > 1:
            document["pre_tokenizer"] = {"type": "Whitespace"}
        path.write_text(json.dumps({"added_tokens": [], **document}), "utf-8")
        counter = get_counter(f"file:{path}")
        data = pickle.dumps(counter)
        counts.append([counter.count("green tea"), pickle.loads(data).count("green tea")])
    shutil.copy(FILES / "gpt2.json", path)
    behind = get_counter(f"file:{path}")
    native = next(case for case in CASES["files"] if case["file"] == "gpt2.json")["counts"]

    assert [[1, 1], [2, 2]] == counts
    assert native == behind.count_batch(TEXTS).tolist()
    assert behind.cache_info().max_bytes > 0


@pytest.mark.parametrize("cache", [True, False])
def test_copies(cache):
    """A counter comes back from pickling and copying: in one process the same."""
    counter = get_counter(f"file:{FILES / 'gpt2.json'}", cache=cache)
    data = pickle.dumps(counter)
    for again in (pickle.loads(data), copy.deepcopy(counter)):
        assert counter == again
        assert hash(counter) == hash(again)
        assert counter.count("hello hello") == again.count("hello hello")
    assert counter != get_counter(f"file:{FILES / 'gpt2.json'}", cache=not cache)
    code = (
        "import os, pickle, sys\n"
        "os.chdir('/')\n"
        "print(pickle.loads(bytes.fromhex(sys.argv[1])).count('hello hello'))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, data.hex()], capture_output=True, text=True, check=True
    )

    assert len(data) < 1_000
    assert f"{counter.count('hello hello')}\n" == shown.stdout


@pytest.mark.parametrize("name", ["gpt2.json", "refused-wordpiece.json"])
def test_a_pickle_without_its_file(tmp_path, name):
    """A pickle whose file is gone, or another by now, is an error that names it."""
    path = tmp_path / "tokenizer.json"
    shutil.copy(FILES / name, path)
    data = pickle.dumps(get_counter(f"file:{path}"))
    path.unlink()
    with pytest.raises(CounterError, match=r"^the file of 'file:.*' cannot be read: No such file"):
        pickle.loads(data)
    path.write_text("{}", "utf-8")
    with pytest.raises(CounterError, match=r"file:"):
        pickle.loads(data)


def test_the_cache():
    """Counts are kept between calls, unless they are not wanted."""
    name = f"file:{FILES / 'digits.json'}"
    fresh, counter = get_counter(name, cache=False), get_counter(name)
    counter.clear_cache()
    for _ in range(3):
        fresh.count("hello hello")
        counter.count("hello hello")

    assert (2, 1, 1) == counter.cache_info()[:3]


@pytest.mark.parametrize("name", ["gpt2.json", "no-pattern.json", "characters.json"])
@pytest.mark.parametrize("template", ["plain", "xml", "markdown"])
def test_packing(name, template):
    """A packing keeps the budget by the count of its text."""
    counter = get_counter(f"file:{FILES / name}")
    chunks = [text for text in TEXTS if text.strip()][:120]
    for budget in (0, 7, 60, 500):
        for overflow in ("skip", "truncate_end"):
            packer = Packer(budget, counter=counter, template=template, overflow=overflow)
            packing = packer.pack("tea the pot", chunks)
            assert counter.count(packing.text) == packing.total_tokens <= budget


@needs_native
@pytest.mark.parametrize("name", ["claude3", "claude4.7", "claude4.8"])
def test_claude(name):
    """Counts for Claude are estimates that stop at a limit and cut as others do."""
    counter = get_counter(name)
    whole = counter.count("Green tea is mild. " * 50)

    assert not counter.is_exact
    assert 0 == counter.count("")
    assert whole == counter.count_till_limit("Green tea is mild. " * 50, whole)
    assert counter.count_till_limit("Green tea is mild. " * 50, whole - 1) is None
    cut = counter.truncate("Green tea is mild. " * 50, 20, marker=" ...")
    assert counter.count(cut) <= 20 < counter.count(cut) + 3


NAMES = [*(case["file"] for case in CASES["files"]), *CASES["refused"]]
IN_JSON = [name for name in NAMES if name.endswith(".json") and name != "tekken.json"]
"""The files that the reference reads, or refuses as native code does."""

PARTS = [
    *("the", "te", "a", " ", "  ", "\u2581", "\n", "\n\n", "12", "_", "'s", "."),
    *("\xe9", "e\u0301", "\u65e5", "\U0001f600", "\ud83d", "\ude00", "\u212b", "\u1100\u1161"),
]


@compared
@given(
    file=st.sampled_from(IN_JSON),
    text=st.lists(st.sampled_from(PARTS), max_size=20).map("".join),
    max_tokens=st.integers(0, 12),
    keep=st.sampled_from([START, END, BOTH]),
    marker=st.sampled_from(["", " [...]", "\u2581", "\u0301"]),
)
def test_backends_count_and_cut_alike(file, text, max_tokens, keep, marker):
    """Both read the same files, and cut texts at the same places."""
    answers = []
    for name in BACKENDS:
        module = backend_named(name)
        kind = outcome(module.Tokenizer, str(FILES / file), True)
        if isinstance(kind, tuple):  # what it refuses
            answers.append(kind)
            continue
        cut = module.truncate(kind, 1.0, None, text, max_tokens, keep, marker)
        counts = [module.count(kind, 1.0, part) for part in (text, cut)]
        assert counts[0] <= max_tokens or counts[1] <= max_tokens
        answers.append((cut, counts))

    assert answers[0] == answers[1]
